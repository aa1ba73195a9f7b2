//! What the processes of a repetition tell each other, beside the script.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::arena::Arena;
use super::wait::wake;

/// Passes do not count yet.
pub(crate) const WARMING_UP: u32 = 0;
/// The clock is read and recorded.
pub(crate) const RECORDING: u32 = 1;
/// It is over: what blocks is let go, nothing is recorded any more.
pub(crate) const OVER: u32 = 2;

/// The words that all look at. In memory that all share.
#[derive(Debug)]
pub(crate) struct Board {
    /// [`WARMING_UP`], [`RECORDING`] or [`OVER`]. Looked at before each step, so a
    /// step is recorded exactly if it ends after the leader has switched it on and
    /// before it is over: what one process caused in another after that is
    /// recorded, too.
    pub(crate) state: AtomicU32,
    /// Passes that count; known before the state says that it is recording.
    pub(crate) passes: AtomicU64,
    /// Processes that are ready to begin.
    pub(crate) ready: AtomicU32,
    /// They may.
    pub(crate) go: AtomicU32,
    /// Processes that have done all their passes.
    pub(crate) done: AtomicU32,
    /// How long the leader's passes took that counted, ns.
    pub(crate) took_ns: AtomicU64,
}

/// Where a process is.
#[derive(Debug)]
pub(crate) struct Whereabouts {
    /// Passes that it has ended, those before recording included.
    pub(crate) pass: AtomicU64,
    /// Index of its step, plus 1; 0 outside.
    pub(crate) step: AtomicU32,
    /// It has done all its passes.
    pub(crate) done: AtomicU32,
}

impl Board {
    pub(crate) fn new(arena: &Arena) -> &'static Self {
        arena.place_apart(Self {
            state: AtomicU32::new(WARMING_UP),
            passes: AtomicU64::new(u64::MAX),
            ready: AtomicU32::new(0),
            go: AtomicU32::new(0),
            done: AtomicU32::new(0),
            took_ns: AtomicU64::new(0),
        })
    }

    /// Says that one more is ready, and waits until all are.
    pub(crate) fn arrive(&self) {
        self.ready.fetch_add(1, Ordering::AcqRel);
        wake(&self.ready, i32::MAX);
        while self.go.load(Ordering::Acquire) == 0 {
            wait(&self.go, 0, Duration::from_millis(100));
        }
    }

    /// Lets all begin once so many are ready. False: they were not by the deadline,
    /// or `failed` says so.
    pub(crate) fn start(
        &self,
        all: u32,
        deadline: Instant,
        mut failed: impl FnMut() -> bool,
    ) -> bool {
        loop {
            let ready = self.ready.load(Ordering::Acquire);
            if ready >= all {
                break;
            }
            if Instant::now() > deadline || failed() {
                return false;
            }
            wait(&self.ready, ready, Duration::from_millis(20));
        }
        self.go.store(1, Ordering::Release);
        wake(&self.go, i32::MAX);
        true
    }

    /// One more has done all its passes.
    pub(crate) fn leave(&self, whereabouts: &Whereabouts) {
        whereabouts.done.store(1, Ordering::Release);
        self.done.fetch_add(1, Ordering::AcqRel);
        wake(&self.done, i32::MAX);
    }
}

impl Whereabouts {
    pub(crate) fn new(arena: &Arena) -> &'static Self {
        arena.place_apart(Self {
            pass: AtomicU64::new(0),
            step: AtomicU32::new(0),
            done: AtomicU32::new(0),
        })
    }
}

/// Waits until the word is no longer that, about so long at most.
pub(crate) fn wait(word: &AtomicU32, is: u32, at_most: Duration) {
    let timeout = libc::timespec {
        tv_sec: at_most.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(at_most.subsec_nanos()),
    };
    // SAFETY: the word and the timeout live through the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            is,
            &raw const timeout,
        );
    }
}
