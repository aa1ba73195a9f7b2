//! Locks that are shared between processes and threads.
//!
//! A spinning process yields its CPU now and then, so that the lock's holder can run even where
//! both have one CPU. `pthread_spin_lock` is the exception: it belongs to the C library and only
//! spins. Two users on one CPU wait for each other until a time slice ends.

mod futex;
pub(super) mod pthread;
mod queue;
mod spin;

use std::io;

use self::futex::FutexMutex;
use self::pthread::{Mutex, SpinLock};
use self::queue::{QueueLock, QueueUser};
use self::spin::{Spin, Ticket};
use super::Act;
use super::shared_memory::SharedMemory;
use crate::script::LockKind;

/// The operations of a user of a lock.
trait Exclusive: Copy + 'static {
    fn lock(self);
    /// Unlocks; only after `lock`, by the same user.
    fn unlock(self);
}

/// A lock, for use by any process or thread that inherits it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lock {
    Pthread(&'static Mutex),
    PthreadSpin(&'static SpinLock),
    Spin(&'static Spin),
    Ticket(&'static Ticket),
    Mcs(&'static QueueLock),
    Futex(&'static FutexMutex),
}

impl Lock {
    /// Creates a free lock. At most `most_users` may use it, numbered from 0.
    ///
    /// # Errors
    /// The C library has no such lock for use between processes.
    pub(crate) fn create(
        kind: LockKind,
        memory: &SharedMemory,
        most_users: usize,
    ) -> io::Result<Self> {
        Ok(match kind {
            LockKind::Pthread => Self::Pthread(Mutex::create(memory)?),
            LockKind::PthreadSpin => Self::PthreadSpin(SpinLock::create(memory)?),
            LockKind::Spin => Self::Spin(memory.place_apart(Spin::default())),
            LockKind::Ticket => Self::Ticket(memory.place_apart(Ticket::default())),
            LockKind::Mcs => Self::Mcs(QueueLock::create(memory, most_users)),
            LockKind::Futex => Self::Futex(memory.place_apart(FutexMutex::default())),
        })
    }

    /// The acts of locking and unlocking for one user; each user must have a different number.
    pub(crate) fn acts(self, user: usize) -> (Act, Act) {
        match self {
            Self::Pthread(lock) => acts(lock),
            Self::PthreadSpin(lock) => acts(lock),
            Self::Spin(lock) => acts(lock),
            Self::Ticket(lock) => acts(lock),
            Self::Mcs(lock) => acts(QueueUser::new(lock, user)),
            Self::Futex(lock) => acts(lock),
        }
    }

    /// Locks and unlocks this many times: the long loop.
    pub(crate) fn lock_unlock(self, user: usize, times: u64) -> Act {
        match self {
            Self::Pthread(lock) => long_loop(lock, times),
            Self::PthreadSpin(lock) => long_loop(lock, times),
            Self::Spin(lock) => long_loop(lock, times),
            Self::Ticket(lock) => long_loop(lock, times),
            Self::Mcs(lock) => long_loop(QueueUser::new(lock, user), times),
            Self::Futex(lock) => long_loop(lock, times),
        }
    }
}

fn acts<L: Exclusive>(lock: L) -> (Act, Act) {
    (
        Box::new(move || lock.lock()),
        Box::new(move || lock.unlock()),
    )
}

fn long_loop<L: Exclusive>(lock: L, times: u64) -> Act {
    Box::new(move || {
        for _ in 0..times {
            lock.lock();
            lock.unlock();
        }
    })
}

#[cfg(test)]
mod tests;
