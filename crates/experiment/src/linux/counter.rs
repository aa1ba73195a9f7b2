//! `eventfd(2)`: a counter in the kernel on which a process can wait.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::fail::{again_if_interrupted, because, fail_last, made};

/// The counter, open as long as any clone of it exists.
#[derive(Clone, Debug)]
pub(super) struct Counter(Arc<OwnedFd>);

impl Counter {
    /// Creates a counter of which a take removes the whole count.
    pub(super) fn create() -> io::Result<Self> {
        Self::with(0)
    }

    /// Creates a counter of which a take removes one.
    pub(super) fn create_semaphore() -> io::Result<Self> {
        Self::with(libc::EFD_SEMAPHORE)
    }

    fn with(flags: i32) -> io::Result<Self> {
        // SAFETY: no pointers.
        let fd = made(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | flags) })
            .map_err(|error| because("eventfd", &error))?;
        // SAFETY: new, and nobody else's.
        Ok(Self(Arc::new(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    pub(super) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Adds one and wakes the waiter.
    #[inline(always)]
    pub(super) fn add_one(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes of a live local are read.
        let written =
            again_if_interrupted(|| unsafe { libc::write(self.raw(), (&raw const one).cast(), 8) });
        if written.is_none() {
            fail_last("write to an eventfd");
        }
    }

    /// Waits until the count is not zero and takes.
    #[inline(always)]
    pub(super) fn take(&self) {
        let mut count = 0_u64;
        // SAFETY: eight bytes of a live local are written.
        let read =
            again_if_interrupted(|| unsafe { libc::read(self.raw(), (&raw mut count).cast(), 8) });
        if read.is_none() {
            fail_last("read of an eventfd");
        }
    }
}
