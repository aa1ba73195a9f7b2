//! Locks whose waiters all spin on one word.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Exclusive;
use crate::linux::wait::Spinner;

/// Test and test-and-set: waiters only read until the lock looks free.
#[derive(Debug, Default)]
pub(crate) struct Spin(AtomicU32);

/// Ticket lock: a user draws a number, and spins until it is served.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    /// The number that the next user draws.
    next: AtomicU32,
    /// The number whose turn it is.
    served: AtomicU32,
}

impl Exclusive for &'static Spin {
    #[inline(always)]
    fn lock(self) {
        // Acquire: sees what was written under the lock before. Its partner is
        // the Release in `unlock`.
        while self.0.swap(1, Ordering::Acquire) != 0 {
            spin_while(|| self.0.load(Ordering::Relaxed) != 0);
        }
    }

    #[inline(always)]
    fn unlock(self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Exclusive for &'static Ticket {
    #[inline(always)]
    fn lock(self) {
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: partner of the Release in `unlock`.
        if self.served.load(Ordering::Acquire) != mine {
            spin_while(|| self.served.load(Ordering::Acquire) != mine);
        }
    }

    #[inline(always)]
    fn unlock(self) {
        // Only the holder writes `served`.
        let mine = self.served.load(Ordering::Relaxed);
        self.served.store(mine.wrapping_add(1), Ordering::Release);
    }
}

/// Spins as long as `holds` returns true.
#[cold]
#[inline(never)]
pub(super) fn spin_while(holds: impl Fn() -> bool) {
    let mut spinner = Spinner::default();
    while holds() {
        spinner.turn();
    }
}
