//! A lock of one word, which waits with `futex(2)`.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Exclusive;
use crate::linux::wait::{sleep_while, wake};

/// The word: free, taken, or taken and perhaps with a sleeping waiter (the three states of
/// Drepper's "Futexes are tricky"). Without contention neither locking nor unlocking makes a system
/// call.
#[derive(Debug, Default)]
pub(crate) struct FutexMutex(AtomicU32);

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const SOMEBODY_SLEEPS: u32 = 2;

impl FutexMutex {
    #[cold]
    #[inline(never)]
    fn lock_or_sleep(&self) {
        // A lock taken here is marked as if a waiter slept, because this thread cannot know
        // otherwise. The cost is one superfluous wake at the end.
        while self.0.swap(SOMEBODY_SLEEPS, Ordering::Acquire) != FREE {
            sleep_while(&self.0, SOMEBODY_SLEEPS);
        }
    }
}

impl Exclusive for &'static FutexMutex {
    #[inline(always)]
    fn lock(self) {
        // Acquire: partner of the Release in `unlock`.
        let taken = self
            .0
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            self.lock_or_sleep();
        }
    }

    #[inline(always)]
    fn unlock(self) {
        if self.0.swap(FREE, Ordering::Release) == SOMEBODY_SLEEPS {
            wake(&self.0, 1);
        }
    }
}
