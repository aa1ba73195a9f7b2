//! Which session directory belongs to which trace.
//!
//! A manifest is untrusted: anybody may have written the session path in it. Taking over a
//! session empties and removes its directory. That happens only if the session and the trace
//! identify each other:
//!
//! - The directory has the name, the owner, the mode, the device and the inode number of the
//!   session that the recorder made.
//! - A file of the recorder's user in it holds the secret that the manifest holds.
//! - That file names the trace's directory by device and inode number.
//! - No recorder holds the session's lock.
//!
//! A copy of a trace has the secret but is another directory.

use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use undertick_format::TraceError;
use undertick_format::files::MANIFEST_FILE;
use undertick_format::manifest::{Manifest, SessionIdentity};
use undertick_memory::session_dir::SessionDir;

use crate::trace_dir::TraceDir;

/// The file in the session directory that says which trace it is of.
pub(crate) const TRACE_FILE: &str = "trace";
/// Upper bound of the file's size.
const MOST_BYTES: u64 = 16 << 10;

/// The content of that file.
#[derive(Serialize, Deserialize)]
struct TraceOf {
    secret: String,
    device: u64,
    inode: u64,
    /// For messages, and to detect that the trace was moved or copied.
    path: PathBuf,
}

/// Writes to a new session directory which trace it belongs to.
///
/// # Errors
/// There is no room, or no random number.
pub(crate) fn bind(session: &SessionDir, trace: &TraceDir) -> Result<SessionIdentity, TraceError> {
    let secret = random_hex()?;
    let (device, inode) = trace.identity()?;
    let path = std::path::absolute(trace.path()).unwrap_or_else(|_| trace.path().to_owned());
    let of = TraceOf {
        secret: secret.clone(),
        device,
        inode,
        path,
    };
    let place = session.path().join(TRACE_FILE);
    let text = serde_json::to_vec(&of).map_err(|e| TraceError::damaged(&place, e))?;
    session
        .create(TRACE_FILE)?
        .write_all(&text)
        .map_err(TraceError::io(&place, "cannot write"))?;
    let (device, inode) = session.identity()?;
    Ok(SessionIdentity {
        secret,
        device,
        inode,
    })
}

/// Why a session is not taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// The trace names no session: its recorder had ended the recording.
    Over,
    /// Nothing exists at its path.
    Gone,
    /// A recorder holds it.
    Held,
    /// It belongs to the trace of which this one is a copy.
    Copy {
        /// The trace that it belongs to.
        original: PathBuf,
        /// Whether a recorder holds it.
        held: bool,
    },
    /// The directory found is not the session of this trace.
    NotOurs(&'static str),
}

/// Takes over the session of a trace and holds its lock from here on.
pub(crate) fn take(trace: &TraceDir, manifest: &Manifest) -> Result<SessionDir, NotTaken> {
    let Some(path) = manifest.session.as_deref().map(Path::new) else {
        return Err(NotTaken::Over);
    };
    if !is_session_name(path) {
        return Err(NotTaken::NotOurs("its name is not that of a session"));
    }
    let Ok(session) = SessionDir::open(path) else {
        return Err(NotTaken::Gone);
    };
    let Some(expected) = &manifest.session_identity else {
        return Err(NotTaken::NotOurs("the trace has no secret of it"));
    };
    let of = proof(&session, expected).map_err(NotTaken::NotOurs)?;
    let held = !session.lock();
    if trace.identity().ok() != Some((of.device, of.inode)) {
        let there = std::fs::metadata(&of.path).map(|about| (about.dev(), about.ino()));
        if held || there.is_ok_and(|there| there == (of.device, of.inode)) {
            let original = of.path;
            return Err(NotTaken::Copy { original, held });
        }
    }
    if held {
        return Err(NotTaken::Held);
    }
    Ok(session)
}

/// Returns the manifest that a recorder left in its session because the disk had no room for it.
pub(crate) fn kept_manifest(session: &SessionDir) -> Option<Manifest> {
    let us = rustix::process::geteuid().as_raw();
    let file = session.file(MANIFEST_FILE, us).ok().flatten()?;
    serde_json::from_reader(std::io::BufReader::new(file)).ok()
}

/// Opens the session of the recording in `trace`, to observe it and to request sampling rates;
/// does not take it over.
///
/// # Errors
/// It is over, or the directory that the trace names is not its session.
pub fn of_recording(trace: &Path, manifest: &Manifest) -> Result<SessionDir, TraceError> {
    look(manifest).map_err(|why| match why {
        NotTaken::Over => {
            TraceError::Usage(format!("{}: not being recorded any more", trace.display()))
        }
        why => why.error(trace),
    })
}

/// Opens the session of a trace for observation while its recorder continues; does not take it
/// over.
pub(crate) fn look(manifest: &Manifest) -> Result<SessionDir, NotTaken> {
    let Some(path) = manifest.session.as_deref().map(Path::new) else {
        return Err(NotTaken::Over);
    };
    let session = SessionDir::open(path).map_err(|_| NotTaken::Gone)?;
    let Some(expected) = (manifest.session_identity.as_ref()).filter(|_| is_session_name(path))
    else {
        return Err(NotTaken::NotOurs("the trace has no secret of it"));
    };
    proof(&session, expected).map_err(NotTaken::NotOurs)?;
    Ok(session)
}

/// Returns the content of the session's file, if it and all else match the trace.
fn proof(session: &SessionDir, expected: &SessionIdentity) -> Result<TraceOf, &'static str> {
    let identity = session.identity().ok();
    if identity != Some((expected.device, expected.inode)) {
        return Err("another directory is in its place");
    }
    if session.mode() != Some(0o700) {
        return Err("its mode is not 0700");
    }
    // The directory of an attached program belongs to the program's user.
    let us = rustix::process::geteuid().as_raw();
    if session.owner() != Some(us) && us != 0 {
        return Err("it belongs to another user");
    }
    let file = session.file(TRACE_FILE, us);
    let file = file
        .ok()
        .flatten()
        .ok_or("it does not say of which trace it is")?;
    let mut text = Vec::new();
    let read = file.take(MOST_BYTES).read_to_end(&mut text);
    let of: Option<TraceOf> = read.ok().and_then(|_| serde_json::from_slice(&text).ok());
    of.filter(|of| of.secret == expected.secret && of.secret.len() == SECRET_BYTES * 2)
        .ok_or("its secret is not that of the trace")
}

/// Whether the path is absolute and its name is `undertick-USER-PROCESS-NUMBER-NUMBER` of our
/// user.
fn is_session_name(path: &Path) -> bool {
    let us = rustix::process::geteuid().as_raw().to_string();
    let name = path.file_name().and_then(|name| name.to_str());
    let mut parts = name.unwrap_or("").split('-');
    let plain = |part: Option<&str>, is_digit: fn(&char) -> bool| {
        part.is_some_and(|part| !part.is_empty() && part.chars().all(|c| is_digit(&c)))
    };
    path.is_absolute()
        && parts.next() == Some("undertick")
        && parts.next() == Some(us.as_str())
        && plain(parts.next(), char::is_ascii_digit)
        && plain(parts.next(), char::is_ascii_hexdigit)
        && plain(parts.next(), char::is_ascii_digit)
        && parts.next().is_none()
}

const SECRET_BYTES: usize = 16;

fn random_hex() -> Result<String, TraceError> {
    let mut bytes = [0u8; SECRET_BYTES];
    let place = Path::new("/dev/urandom");
    std::fs::File::open(place)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(TraceError::io(place, "cannot read a random number"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
