//! The directory of a trace, accessed by its descriptor, for writing.
//!
//! A recording continues when its directory is moved, and finishing a trace that came from
//! elsewhere touches nothing outside of it. Files are opened relative to the descriptor, links
//! are not followed, new files must not exist, and anything but a plain file with one name is
//! refused.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use undertick_format::TraceError;

/// A trace directory that is written to. Clones share the descriptor.
#[derive(Clone, Debug)]
pub struct TraceDir {
    fd: Arc<OwnedFd>,
    path: PathBuf,
}

impl TraceDir {
    /// Makes the directory of a new trace.
    ///
    /// # Errors
    /// It exists already, or cannot be made.
    pub fn make(path: &Path) -> Result<Self, TraceError> {
        std::fs::create_dir(path).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                TraceError::Usage(format!(
                    "{}: exists already; remove it or give another name with -o",
                    path.display()
                ))
            } else {
                TraceError::io(path, "cannot make the trace directory")(error)
            }
        })?;
        Self::open(path)
    }

    /// Opens an existing directory.
    ///
    /// # Errors
    /// It is not a directory, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|e| TraceError::io(path, "cannot open the trace directory")(e.into()))?;
        Ok(Self {
            fd: Arc::new(fd),
            path: path.to_owned(),
        })
    }

    /// Opens an existing directory that is no link.
    ///
    /// # Errors
    /// It is a link or not a directory, or cannot be opened.
    pub(crate) fn open_itself(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self {
            fd: Arc::new(fd),
            path: path.to_owned(),
        })
    }

    /// Locks the directory itself, until this and its clones are dropped; false if another process has.
    pub(crate) fn lock(&self) -> bool {
        rustix::fs::flock(
            &*self.fd,
            rustix::fs::FlockOperation::NonBlockingLockExclusive,
        )
        .is_ok()
    }

    /// The path at which it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The present path, if it is known.
    pub(crate) fn path_now(&self) -> PathBuf {
        let by_us = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let now = std::fs::read_link(by_us).ok();
        now.filter(|now| !self.is_at(&self.path) && self.is_at(now))
            .unwrap_or_else(|| self.path.clone())
    }

    /// Its device and inode number.
    ///
    /// # Errors
    /// The file system refuses.
    pub(crate) fn identity(&self) -> Result<(u64, u64), TraceError> {
        let about = rustix::fs::fstat(&*self.fd)
            .map_err(|e| TraceError::io(&self.path, "cannot look at")(e.into()))?;
        Ok((about.st_dev, about.st_ino))
    }

    fn is_at(&self, path: &Path) -> bool {
        let there = std::fs::symlink_metadata(path).map(|about| (about.dev(), about.ino()));
        matches!((there, self.identity()), (Ok(there), Ok(ours)) if there == ours)
    }

    /// The path of a file in it, for messages and for readers.
    #[must_use]
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// It does not exist, or is not a plain file with one name.
    pub(crate) fn read(&self, name: &str) -> io::Result<File> {
        self.existing(name, OFlags::RDONLY)
    }

    /// Opens a file for reading, if it exists.
    ///
    /// # Errors
    /// It is not a plain file with one name, or cannot be opened.
    pub(crate) fn read_if_there(&self, name: &str) -> Result<Option<File>, TraceError> {
        match self.read(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => Ok(Some(
                opened.map_err(TraceError::io(&self.join(name), "cannot open"))?,
            )),
        }
    }

    /// Opens an existing file to change it in place.
    ///
    /// # Errors
    /// It does not exist, or is not a plain file with one name.
    pub(crate) fn change(&self, name: &str) -> io::Result<File> {
        self.existing(name, OFlags::RDWR)
    }

    /// Opens a file for appending; makes it if it does not exist.
    ///
    /// # Errors
    /// It is not a plain file with one name, or cannot be made.
    pub(crate) fn append(&self, name: &str) -> io::Result<File> {
        match self.existing(name, OFlags::WRONLY | OFlags::APPEND) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.open_new(name, OFlags::WRONLY | OFlags::APPEND)
            }
            opened => opened,
        }
    }

    /// Makes a new file.
    ///
    /// # Errors
    /// The name exists already, or the file cannot be made.
    pub(crate) fn create_new(&self, name: &str) -> io::Result<File> {
        self.open_new(name, OFlags::RDWR)
    }

    /// Makes a file anew and removes what had its name; of a link, the link itself and not its
    /// target.
    ///
    /// # Errors
    /// A directory has its name, or it cannot be made.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        self.remove(name);
        self.create_new(name)
    }

    /// Whether anything has that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&*self.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Length of a plain file, bytes; 0 if there is none.
    pub(crate) fn length(&self, name: &str) -> u64 {
        let opened = self.read(name).and_then(|file| file.metadata());
        opened.map_or(0, |about| about.len())
    }

    /// Renames a file, and replaces what has the new name.
    ///
    /// # Errors
    /// It does not exist, or the disk refuses.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&*self.fd, from, &*self.fd, to)?)
    }

    /// Removes a file, or a link but not its target; returns whether it did.
    pub(crate) fn remove(&self, name: &str) -> bool {
        rustix::fs::unlinkat(&*self.fd, name, AtFlags::empty()).is_ok()
    }

    /// Replaces the file of that name by one with these bytes, atomically. It is on the disk
    /// afterwards, and takes the room that was reserved for it.
    ///
    /// # Errors
    /// The disk refuses; then no part of it is left.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = new_name(name);
        let set_aside = self.change(&new).or_else(|_| self.create(&new));
        let written = set_aside.and_then(|file| {
            file.write_all_at(bytes, 0)?;
            file.set_len(bytes.len() as u64)?;
            file.sync_all()
        });
        if let Err(error) = written.and_then(|()| self.rename(&new, name)) {
            self.remove(&new);
            return Err(error);
        }
        Ok(())
    }

    /// Reserves room for a file of `bytes` bytes that [`Self::replace`] will write; returns
    /// whether there is that much.
    pub(crate) fn set_aside(&self, name: &str, bytes: u64) -> bool {
        let new = new_name(name);
        let file = self.change(&new).or_else(|_| self.create(&new));
        file.is_ok_and(|file| {
            let flags = rustix::fs::FallocateFlags::empty();
            rustix::fs::fallocate(&file, flags, 0, bytes.max(1)).is_ok()
        })
    }

    /// Releases the room that was reserved.
    pub(crate) fn release(&self, name: &str) {
        self.remove(&new_name(name));
    }

    fn existing(&self, name: &str, access: OFlags) -> io::Result<File> {
        // Without waiting: it may be a FIFO.
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(rustix::fs::openat(&*self.fd, name, flags, Mode::empty())?);
        let about = file.metadata()?;
        if !about.is_file() || about.nlink() != 1 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a plain file of the trace: it is a directory, a pipe or a device, or has another name elsewhere",
            ));
        }
        Ok(file)
    }

    fn open_new(&self, name: &str, access: OFlags) -> io::Result<File> {
        let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        Ok(File::from(rustix::fs::openat(
            &*self.fd, name, flags, mode,
        )?))
    }
}

/// The name of a file while it is written.
fn new_name(name: &str) -> String {
    format!("{name}.new")
}

#[cfg(test)]
mod tests;
