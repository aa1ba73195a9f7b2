//! The lock between a flight recorder, which takes rings away, and a snapshot, which needs them to stay.
//! The locks are the kernel's, on the control page's file; they end with their holder.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use undertick_format::TraceError;
use undertick_ring::layout;

use crate::session_dir::SessionDir;

/// How long the end of a recording and a snapshot wait for each other.
const AT_MOST: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A session's lock, held or not.
#[derive(Debug)]
pub struct SessionLock(File);

impl SessionLock {
    /// Opens the lock of a session, not yet taken.
    ///
    /// # Errors
    /// The control page is gone, or something else is in its place.
    pub fn open(session: &SessionDir) -> Result<Self, TraceError> {
        let owner = session.owner().unwrap_or(u32::MAX);
        let file = session.file(layout::CONTROL_FILE, owner)?;
        let path = || session.path().join(layout::CONTROL_FILE);
        file.map(Self)
            .ok_or_else(|| TraceError::damaged(&path(), "it is gone"))
    }

    /// Takes the lock exclusively, if that succeeds at once.
    pub fn take(&self) -> bool {
        flock(&self.0, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Releases the lock.
    pub fn give(&self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }

    /// Takes the lock exclusively, or continues without it: a snapshot that takes this long is
    /// stopped.
    pub fn wait(&self) {
        self.wait_for(FlockOperation::NonBlockingLockExclusive);
    }

    /// Takes a shared lock; false if it was not available.
    pub fn share(&self) -> bool {
        self.wait_for(FlockOperation::NonBlockingLockShared)
    }

    fn wait_for(&self, how: FlockOperation) -> bool {
        let since = Instant::now();
        while flock(&self.0, how).is_err() {
            if since.elapsed() > AT_MOST {
                return false;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        true
    }
}
