//! The directory of a session, accessed by its descriptor: programs own it, and may replace it or
//! its files.
//!
//! Files are opened and removed relative to the descriptor, links are not followed, and anything
//! but a plain file of the session's owner is ignored. So nothing outside of the directory is
//! touched, whatever the program does to it.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};

use undertick_format::TraceError;

/// A session's directory.
#[derive(Debug)]
pub struct SessionDir {
    fd: OwnedFd,
    path: PathBuf,
}

impl SessionDir {
    /// Makes a session directory, 0700, with a new name.
    ///
    /// # Errors
    /// It cannot be made in `parent`.
    pub fn make(parent: &Path) -> Result<Self, TraceError> {
        let uid = rustix::process::getuid().as_raw();
        let pid = std::process::id();
        for attempt in 0..1000u32 {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_nsec;
            let path = parent.join(format!("undertick-{uid}-{pid}-{now:x}-{attempt}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let opened = Self::open(&path).map_err(TraceError::io(&path, "cannot open"))?;
                    if opened.owner() == Some(uid) {
                        return Ok(opened);
                    }
                    return Err(TraceError::Recording(format!(
                        "{}: another user has put something in the session directory's place: give a directory in UNDERTICK_DIR that only you write to",
                        path.display()
                    )));
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    return Err(TraceError::io(&path, "cannot make the session directory")(
                        e,
                    ));
                }
            }
        }
        Err(TraceError::Recording(format!(
            "{}: no free name for a session directory",
            parent.display()
        )))
    }

    /// Opens an existing directory; [`Self::owner`] tells its owner.
    ///
    /// # Errors
    /// It is not a directory, or is a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let path = path.to_owned();
        Ok(Self { fd, path })
    }

    /// The user who owns it.
    #[must_use]
    pub fn owner(&self) -> Option<u32> {
        Some(rustix::fs::fstat(&self.fd).ok()?.st_uid)
    }

    /// Its permission bits.
    pub fn mode(&self) -> Option<u32> {
        Some(rustix::fs::fstat(&self.fd).ok()?.st_mode & 0o7777)
    }

    /// Its device and inode number.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn identity(&self) -> Result<(u64, u64), TraceError> {
        let about = rustix::fs::fstat(&self.fd)
            .map_err(|e| TraceError::io(&self.path, "cannot look at")(e.into()))?;
        Ok((about.st_dev, about.st_ino))
    }

    /// Takes the lock of the process that records or finishes the session, if it is free. The
    /// kernel releases it when the process ends.
    pub fn lock(&self) -> bool {
        rustix::fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Whether the directory is still where it was made.
    pub fn is_in_its_place(&self) -> bool {
        self.is_at(&self.path)
    }

    /// The path at which it was made.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a new file, 0600.
    pub fn create(&self, name: &str) -> Result<File, TraceError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o600))
            .map(File::from)
            .map_err(|e| TraceError::io(&self.path.join(name), "cannot create")(e.into()))
    }

    /// Replaces the file of that name by one with these bytes, atomically.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), TraceError> {
        let new = format!("{name}.new");
        let path = self.path.join(&new);
        let failed = || TraceError::io(&path, "cannot write");
        self.remove(&new);
        self.create(&new)?.write_all(bytes).map_err(failed())?;
        rustix::fs::renameat(&self.fd, &new, &self.fd, name).map_err(|e| failed()(e.into()))
    }

    /// Opens a file for reading and writing; `None` if there is none.
    ///
    /// # Errors
    /// It is not a plain file, has another name elsewhere, or is not `owner`'s.
    pub fn file(&self, name: &str, owner: u32) -> Result<Option<File>, TraceError> {
        let path = || self.path.join(name);
        let foreign = || {
            TraceError::damaged(
                &path(),
                "not a file of the session: the program put something else in its place",
            )
        };
        // Without waiting: it may be a FIFO.
        let flags =
            OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            // A link, a directory, a socket.
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::ISDIR | rustix::io::Errno::NXIO) => {
                return Err(foreign());
            }
            Err(e) => return Err(TraceError::io(&path(), "cannot open")(e.into())),
        };
        let about = file
            .metadata()
            .map_err(TraceError::io(&path(), "cannot look at"))?;
        if about.uid() != owner || !about.is_file() {
            return Err(foreign());
        }
        if about.nlink() > 1 {
            return Err(TraceError::Usage(format!(
                "{}: the file has another name, too, so nobody knows whose it is: remove that one",
                path().display()
            )));
        }
        Ok(Some(file))
    }

    /// Removes a file, or a link but not its target.
    fn remove(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::empty());
    }

    /// Gives it to another user.
    pub fn give_to(&self, owner: (Option<u32>, Option<u32>)) -> Result<(), TraceError> {
        std::os::unix::fs::fchown(self.fd.as_fd(), owner.0, owner.1).map_err(TraceError::io(
            &self.path,
            "cannot be given to the program's user",
        ))
    }

    /// Removes the directory and its content.
    pub fn remove_all(&self) {
        // The program may have removed our permissions.
        let _ = rustix::fs::fchmod(&self.fd, Mode::from_raw_mode(0o700));
        // A program may be making a file in it at this moment.
        for _ in 0..10 {
            self.empty();
            if !self.is_at(&self.path) || fs::remove_dir(&self.path).is_ok() {
                break;
            }
        }
        // The program may have moved it.
        let by_us = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        if let Ok(moved) = fs::read_link(by_us)
            && self.is_at(&moved)
        {
            let _ = fs::remove_dir(&moved);
        }
    }

    fn is_at(&self, path: &Path) -> bool {
        let Ok(ours) = rustix::fs::fstat(&self.fd) else {
            return false;
        };
        fs::symlink_metadata(path)
            .is_ok_and(|there| (there.dev(), there.ino()) == (ours.st_dev, ours.st_ino))
    }

    fn empty(&self) {
        let Ok(entries) = rustix::fs::Dir::read_from(&self.fd) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()).is_err() {
                // The directory, opened so that links inside it are not followed.
                let inside = PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()));
                let _ = fs::remove_dir_all(inside.join(OsStr::from_bytes(name.to_bytes())));
            }
        }
    }
}

#[cfg(test)]
mod tests;
