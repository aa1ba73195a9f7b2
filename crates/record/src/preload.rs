//! Libraries that the program loads before its own.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use undertick_format::TraceError;
use undertick_interpose::Library;

/// Name of the environment variable for [`Preloads::variable`].
const VARIABLE: &str = "LD_PRELOAD";

/// The libraries of a recording, as files that are removed when this is dropped.
#[derive(Default)]
pub(crate) struct Preloads(Vec<Preloaded>);

impl Preloads {
    /// Writes a library to the first directory from which it can be loaded: the temporary
    /// directory, else one of `others`. `/dev/shm`, where rings are, is often mounted so that
    /// nothing can be loaded from it.
    ///
    /// # Errors
    /// There is no such directory.
    pub(crate) fn add(
        &mut self,
        file: &str,
        bytes: &[u8],
        others: &[&Path],
    ) -> Result<(), TraceError> {
        let temporary = std::env::temp_dir();
        let mut tried = Vec::new();
        for parent in std::iter::once(temporary.as_path()).chain(others.iter().copied()) {
            match Preloaded::write(parent, file, bytes) {
                Ok(preloaded) => {
                    self.0.push(preloaded);
                    return Ok(());
                }
                Err(why) => tried.push(format!("{} ({why})", parent.display())),
            }
        }
        Err(TraceError::Recording(format!(
            "no place for {file} from which programs can be loaded; tried {}: give one in TMPDIR",
            tried.join(", ")
        )))
    }

    /// The variable that the program's environment needs, if there are any: these libraries, then what
    /// the user preloads. These come first, because the first one that has a function gets the calls. Those
    /// of a recording that records this recorder are left out: each call would be recorded twice.
    pub(crate) fn variable(&self) -> Option<(&'static str, OsString)> {
        let paths = self.0.iter().map(|library| library.path.clone().into());
        let theirs = std::env::var_os(VARIABLE).unwrap_or_default();
        let theirs = (theirs.as_bytes().split(|byte| b": ".contains(byte)))
            .map(|path| Path::new(OsStr::from_bytes(path)))
            .filter(|path| !path.as_os_str().is_empty() && !is_ours(path))
            .map(|path| path.as_os_str().to_owned());
        let all: Vec<OsString> = paths.chain(theirs).collect();
        (!self.0.is_empty()).then(|| (VARIABLE, all.join(OsStr::new(":"))))
    }
}

/// Whether a file is one that a recorder has written for a program.
fn is_ours(path: &Path) -> bool {
    let libraries = Library::ALL.map(Library::file).into_iter();
    let mut files = libraries.chain([undertick_functions::LIBRARY_FILE]);
    files.any(|file| path.file_name() == Some(OsStr::new(file)))
}

/// A library as a file, which is removed when this is dropped.
struct Preloaded {
    dir: PathBuf,
    path: PathBuf,
}

impl Preloaded {
    fn write(parent: &Path, file: &str, bytes: &[u8]) -> Result<Self, String> {
        let parent = std::path::absolute(parent).map_err(|e| e.to_string())?;
        if parent.to_string_lossy().contains([' ', ':', '\t']) {
            return Err("its name has a space or a colon, which LD_PRELOAD cannot have".to_owned());
        }
        let about = rustix::fs::statvfs(&parent).map_err(|e| e.to_string())?;
        if about.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            return Err("mounted noexec".to_owned());
        }
        // In a private directory, because no other user can put another file there.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let dir = parent.join(format!(
            "undertick-{}-{:x}",
            std::process::id(),
            now.tv_nsec
        ));
        rustix::fs::mkdir(&dir, rustix::fs::Mode::RWXU).map_err(|e| e.to_string())?;
        let path = dir.join(file);
        let preloaded = Self { dir, path };
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o500)
            .open(&preloaded.path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|e| e.to_string())?;
        Ok(preloaded)
    }
}

impl Drop for Preloaded {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.dir);
    }
}
