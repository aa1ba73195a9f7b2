//! Puts the library into a file that a program can load.

use std::ffi::OsString;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;

use crate::{FunctionsError, LIBRARY, LIBRARY_FILE};

/// Name of the environment variable for [`Preloaded::value`].
pub const VARIABLE: &str = "LD_PRELOAD";

/// The library as a file, which is removed when this is dropped.
pub struct Preloaded {
    dir: PathBuf,
    path: PathBuf,
}

impl Preloaded {
    /// Writes the library to the first directory from which it can be loaded: the temporary
    /// directory, else one of `others`. `/dev/shm`, where rings are, is often mounted so that
    /// nothing can be loaded from it.
    ///
    /// # Errors
    /// There is no such directory.
    pub fn write(others: &[&Path]) -> Result<Self, FunctionsError> {
        let temporary = std::env::temp_dir();
        let mut tried = Vec::new();
        for parent in std::iter::once(temporary.as_path()).chain(others.iter().copied()) {
            match write_in(parent) {
                Ok(preloaded) => return Ok(preloaded),
                Err(why) => tried.push(format!("{} ({why})", parent.display())),
            }
        }
        let tried = tried.join(", ");
        Err(FunctionsError::NoPlace { tried })
    }

    /// Value of the variable for the program's environment: this library, then what the user
    /// preloads. This library comes first, because the first one that has the hooks gets the calls.
    #[must_use]
    pub fn value(&self) -> OsString {
        let mut value = self.path.clone().into_os_string();
        if let Some(theirs) = std::env::var_os(VARIABLE).filter(|theirs| !theirs.is_empty()) {
            value.push(":");
            value.push(theirs);
        }
        value
    }
}

impl Drop for Preloaded {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.dir);
    }
}

fn write_in(parent: &Path) -> Result<Preloaded, String> {
    use std::io::Write;
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
    let path = dir.join(LIBRARY_FILE);
    let preloaded = Preloaded { dir, path };
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o500)
        .open(&preloaded.path)
        .and_then(|mut file| file.write_all(LIBRARY))
        .map_err(|e| e.to_string())?;
    Ok(preloaded)
}
