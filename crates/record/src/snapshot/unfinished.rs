//! A snapshot that is being made: it has its name when it is complete, whenever the process that makes
//! it is killed.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use undertick_format::TraceError;

use crate::finalize::remove_files;
use crate::trace_dir::TraceDir;

/// The directory, beside the place that the snapshot will have, under a hidden name. It is locked as long
/// as a process makes it.
pub(super) struct Unfinished {
    pub(super) dir: TraceDir,
    path: PathBuf,
}

impl Unfinished {
    /// Makes the directory. What a process that was killed left there is removed.
    ///
    /// # Errors
    /// There is something of the snapshot's name already, or another process is making it.
    pub(super) fn make(out: &Path) -> Result<Self, TraceError> {
        if out.symlink_metadata().is_ok() {
            return Err(exists(out));
        }
        let name = out.file_name().unwrap_or_default().to_string_lossy();
        let path = out.with_file_name(format!(".{name}.unfinished"));
        if let Ok(dir) = TraceDir::open_itself(&path)
            && dir.lock()
        {
            let left = Self { dir, path };
            left.remove();
            return Self::at(left.path.clone());
        }
        Self::at(path)
    }

    fn at(path: PathBuf) -> Result<Self, TraceError> {
        let dir = TraceDir::make(&path)?;
        dir.lock();
        Ok(Self { dir, path })
    }

    /// Gives the complete snapshot its name.
    ///
    /// # Errors
    /// The name was taken, or the file system refuses.
    pub(super) fn publish(&self, out: &Path) -> Result<(), TraceError> {
        let renamed = rustix::fs::renameat_with(CWD, &self.path, CWD, out, RenameFlags::NOREPLACE);
        let renamed = renamed.map_err(io::Error::from).or_else(|error| {
            // Not all file systems can refuse by themselves.
            match error.kind() {
                io::ErrorKind::AlreadyExists => Err(error),
                _ if out.symlink_metadata().is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
                _ => std::fs::rename(&self.path, out),
            }
        });
        renamed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(out),
            _ => TraceError::io(out, "cannot give the snapshot its name")(error),
        })
    }

    /// Removes it.
    pub(super) fn remove(&self) {
        remove_files(&self.dir);
        let _ = std::fs::remove_dir(&self.path);
    }
}

fn exists(out: &Path) -> TraceError {
    TraceError::Usage(format!(
        "{}: exists already; remove it or give another name with -o",
        out.display()
    ))
}
