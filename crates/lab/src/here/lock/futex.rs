//! A lock of one word, with `futex(2)` to wait.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Exclusive;
use crate::here::wait::{sleep_while, wake};

/// The word: free, taken, or taken and somebody may sleep (the three states of
/// Drepper's "Futexes are tricky"). Without rivals neither taking nor giving
/// back makes a system call.
#[derive(Debug, Default)]
pub(crate) struct FutexMutex(AtomicU32);

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const SOMEBODY_SLEEPS: u32 = 2;

impl FutexMutex {
    #[cold]
    #[inline(never)]
    fn lock_or_sleep(&self) {
        // Taken this way it counts as if somebody slept: this one cannot know
        // that nobody else does. One wake too many at the end is the price.
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
