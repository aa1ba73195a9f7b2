//! Shared words with which the processes of a repetition coordinate, outside the script.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::shared_memory::SharedMemory;
use super::wait::wake;

/// Status: passes do not count yet.
pub(crate) const WARMING_UP: u32 = 0;
/// Status: the clock is read and recorded.
pub(crate) const RECORDING: u32 = 1;
/// Status: the repetition is over. Blocked processes are released, and nothing more is recorded.
pub(crate) const OVER: u32 = 2;

/// Words that all processes read, in shared memory.
#[derive(Debug)]
pub(crate) struct RepetitionState {
    /// [`WARMING_UP`], [`RECORDING`] or [`OVER`]. It is read before each step. A step is therefore
    /// recorded exactly if it ends after the leader has switched recording on and before the
    /// repetition is over. What one process then causes in another is also recorded.
    pub(crate) status: AtomicU32,
    /// Number of passes that count; valid once the status is [`RECORDING`].
    pub(crate) passes: AtomicU64,
    /// Processes that are ready to begin.
    pub(crate) ready: AtomicU32,
    /// Nonzero when the processes may begin.
    pub(crate) go: AtomicU32,
    /// Processes that have done all their passes.
    pub(crate) done: AtomicU32,
    /// Duration of the leader's passes that counted, ns.
    pub(crate) took_ns: AtomicU64,
}

/// The position of a process in its script.
#[derive(Debug)]
pub(crate) struct Position {
    /// Passes that the process has ended, those before recording included.
    pub(crate) pass: AtomicU64,
    /// Index of the current step, plus 1; 0 outside a step.
    pub(crate) step: AtomicU32,
    /// Nonzero when the process has done all its passes.
    pub(crate) done: AtomicU32,
}

impl RepetitionState {
    pub(crate) fn new(memory: &SharedMemory) -> &'static Self {
        memory.place_apart(Self {
            status: AtomicU32::new(WARMING_UP),
            passes: AtomicU64::new(u64::MAX),
            ready: AtomicU32::new(0),
            go: AtomicU32::new(0),
            done: AtomicU32::new(0),
            took_ns: AtomicU64::new(0),
        })
    }

    /// Reports that one more process is ready, and waits until all are.
    pub(crate) fn arrive(&self) {
        self.ready.fetch_add(1, Ordering::AcqRel);
        wake(&self.ready, i32::MAX);
        while self.go.load(Ordering::Acquire) == 0 {
            wait(&self.go, 0, Duration::from_millis(100));
        }
    }

    /// Lets all begin once this many are ready. Returns false if they were not ready by the
    /// deadline, or if `failed` returns true.
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

    /// Reports that one more process has done all its passes.
    pub(crate) fn leave(&self, position: &Position) {
        position.done.store(1, Ordering::Release);
        self.done.fetch_add(1, Ordering::AcqRel);
        wake(&self.done, i32::MAX);
    }
}

impl Position {
    pub(crate) fn new(memory: &SharedMemory) -> &'static Self {
        memory.place_apart(Self {
            pass: AtomicU64::new(0),
            step: AtomicU32::new(0),
            done: AtomicU32::new(0),
        })
    }
}

/// Waits until the word differs from `is`, for about `at_most`.
pub(crate) fn wait(word: &AtomicU32, is: u32, at_most: Duration) {
    let timeout = libc::timespec {
        tv_sec: at_most.as_secs() as i64,
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
