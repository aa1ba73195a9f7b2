//! Who may take rings away: a flight recorder does while nobody makes a snapshot. Locks
//! of the kernel's, on the control page's file, which end with who has them.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use undertick_ring::layout;

use crate::TraceError;
use crate::session_dir::SessionDir;

/// How long the end of a recording, or a snapshot, waits for the other one.
const AT_MOST: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A session's lock, had or not.
#[derive(Debug)]
pub(crate) struct SessionLock(File);

impl SessionLock {
    /// # Errors
    /// The control page is gone, or something else is in its place.
    pub(crate) fn open(session: &SessionDir) -> Result<Self, TraceError> {
        let owner = session.owner().unwrap_or(u32::MAX);
        let file = session.file(layout::CONTROL_FILE, owner)?;
        let path = || session.path().join(layout::CONTROL_FILE);
        file.map(Self)
            .ok_or_else(|| TraceError::damaged(&path(), "it is gone"))
    }

    /// Takes it alone, if that can be had at once.
    pub(crate) fn take(&self) -> bool {
        flock(&self.0, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    pub(crate) fn give(&self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }

    /// Takes it alone, or goes on without: a snapshot that takes so long is stopped.
    pub(crate) fn wait(&self) {
        self.wait_for(FlockOperation::NonBlockingLockExclusive);
    }

    /// Takes it together with others; false: it was not to be had.
    pub(crate) fn share(&self) -> bool {
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
