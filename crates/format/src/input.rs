//! Opens input files: traces, tables, scripts, lists and documents are untrusted data.
//!
//! Only regular files are read: a FIFO would wait for a writer, and a device need not end. They
//! are opened so that none of this can hang ([`open`]). A file that is held in memory as a whole
//! is at most as long as its [`Kind`] says.
//!
//! Caveats: a path that the user gives is opened through symbolic links.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::TraceError;

/// A kind of file that is held in memory as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in an error: "a table".
    what: &'static str,
    /// What fails if it cannot be read.
    action: &'static str,
    /// Most bytes that are read.
    most_bytes: u64,
}

impl Kind {
    /// `manifest.json`. 2^18 names of events and the same number of threads, 255 bytes each with
    /// 75 around them, are 173 MB; a ring's account takes 220 bytes.
    pub const MANIFEST: Self = Self {
        what: "a manifest",
        action: "not a trace, cannot read its manifest",
        most_bytes: 256 << 20,
    };
    /// A table of intervals: 16384 entries of 256 bytes.
    pub const TABLE: Self = Self {
        what: "a table",
        action: "cannot read the table",
        most_bytes: 4 << 20,
    };
    /// A script, or the parameters of a simulated machine. Those that come with Undertick have at
    /// most 10 kB; the parser refuses a million steps.
    pub const SCRIPT: Self = Self {
        what: "a script",
        action: "cannot read the script",
        most_bytes: 4 << 20,
    };
    /// Names of events: 65536 of 255 bytes, with their numbers.
    pub const NAMES: Self = Self {
        what: "a list of names",
        action: "cannot read the names",
        most_bytes: 32 << 20,
    };
    /// A survey, a report or another document that is printed with `--json`. Reports of 4096
    /// intervals with their histograms have a tenth of this limit.
    pub const DOCUMENT: Self = Self {
        what: "a document of Undertick",
        action: "cannot read the document",
        most_bytes: 256 << 20,
    };
    /// Exchanges of `undertick sync`: 60 bytes each, a hundred a second for a day.
    pub const EXCHANGES: Self = Self {
        what: "a file of exchanges",
        action: "cannot read the exchanges",
        most_bytes: 512 << 20,
    };
    /// `stacks.json`: 2^18 nodes and frames, names of 300 bytes.
    pub const STACKS: Self = Self {
        what: "a list of stacks",
        action: "cannot read the stacks",
        most_bytes: 256 << 20,
    };
    /// The description of a directory of spans or of rounds, including the table by which it was
    /// made.
    pub const ABOUT: Self = Self {
        what: "a description of files",
        action: "cannot read what is said of the files",
        most_bytes: 64 << 20,
    };
}

/// Opens a regular file without waiting for anything.
///
/// # Errors
/// It cannot be opened, or is a fifo, a socket, a device or a directory.
pub fn open(path: &Path) -> Result<File, TraceError> {
    match opened(path).map_err(TraceError::io(path, "cannot open"))? {
        Ok(file) => Ok(file),
        Err(what) => Err(not_regular(path, what)),
    }
}

/// As [`open`], for a file that may be missing.
///
/// # Errors
/// As [`open`].
pub fn open_if_there(path: &Path) -> Result<Option<File>, TraceError> {
    match open(path) {
        Err(TraceError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// Returns the whole content of a regular file of that kind.
///
/// # Errors
/// As [`open`]; or the file is longer than its kind allows, or cannot be read.
pub fn bytes(path: &Path, kind: Kind) -> Result<Vec<u8>, TraceError> {
    let failed = || TraceError::io(path, kind.action);
    let file = match opened(path).map_err(failed())? {
        Ok(file) => file,
        Err(what) => return Err(not_regular(path, what)),
    };
    let length = file.metadata().map_err(failed())?.len();
    let mut bytes = Vec::new();
    if length <= kind.most_bytes {
        bytes.reserve_exact(usize::try_from(length).unwrap_or(0));
        // It may have grown since.
        let most = kind.most_bytes.saturating_add(1);
        file.take(most).read_to_end(&mut bytes).map_err(failed())?;
    }
    let length = length.max(bytes.len() as u64);
    if length > kind.most_bytes {
        return Err(TraceError::damaged(
            path,
            format!(
                "{length} bytes; {} has at most {}: give another file",
                kind.what, kind.most_bytes
            ),
        ));
    }
    Ok(bytes)
}

/// Returns the text of a regular file of that kind.
///
/// # Errors
/// As [`bytes`]; or the content is not UTF-8.
pub fn text(path: &Path, kind: Kind) -> Result<String, TraceError> {
    String::from_utf8(bytes(path, kind)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        TraceError::damaged(
            path,
            format!("byte {at} is not UTF-8, so this is not {}", kind.what),
        )
    })
}

/// Refuses a directory that holds anything but regular files and directories, down to `depth`:
/// another program will read it.
///
/// # Errors
/// The first such entry, or a directory that cannot be read.
pub fn only_regular_in(dir: &Path, depth: usize) -> Result<(), TraceError> {
    let failed = || TraceError::io(dir, "cannot read the directory");
    for entry in std::fs::read_dir(dir).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let path = entry.path();
        let about = (path.metadata()).map_err(TraceError::io(&path, "cannot look at"))?;
        if about.is_dir() {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            match depth.checked_sub(1) {
                _ if is_link => return Err(not_regular(&path, "a link to a directory")),
                Some(left) => only_regular_in(&path, left)?,
                None => return Err(not_regular(&path, "a directory too deep in others")),
            }
        } else if !about.is_file() {
            return Err(not_regular(&path, kind_of(about.file_type())));
        }
    }
    Ok(())
}

/// Returns the file, or what it is instead of a regular one.
fn opened(path: &Path) -> io::Result<Result<File, &'static str>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match file {
        // A socket cannot be opened, and a device may have no driver behind it.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(Err("a socket")),
        file => file?,
    };
    let about = file.metadata()?;
    Ok(match about.is_file() {
        true => Ok(file),
        false => Err(kind_of(about.file_type())),
    })
}

fn kind_of(kind: std::fs::FileType) -> &'static str {
    match kind {
        _ if kind.is_dir() => "a directory",
        _ if kind.is_fifo() => "a fifo",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

fn not_regular(path: &Path, what: &str) -> TraceError {
    let mend = "only regular files are read here; copy what it holds into one and give that";
    TraceError::damaged(path, format!("is {what}: {mend}"))
}

#[cfg(test)]
mod tests;
