//! Waiting: for a word to change, by spinning, and for another process to block.

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::Act;
use super::fail::fail_last;
use super::shared_memory::SharedMemory;

/// Number of checks of a word before a spinning waiter yields its CPU, some microseconds: about the
/// cost of switching to another process and back. The awaited process may need that very CPU.
const SPINS: u32 = 100;

/// Spins, and yields the CPU now and then so that the awaited process can run, even with one CPU
/// for both.
#[derive(Debug, Default)]
pub(crate) struct Spinner {
    spins: u32,
}

impl Spinner {
    /// Spins once.
    #[inline(always)]
    pub(crate) fn turn(&mut self) {
        std::hint::spin_loop();
        self.spins += 1;
        if self.spins >= SPINS {
            self.spins = 0;
            offer_cpu();
        }
    }
}

#[cold]
fn offer_cpu() {
    // SAFETY: no arguments.
    unsafe { libc::sched_yield() };
}

/// Sleeps while the word holds `value`; may return early. Between processes, so
/// without `FUTEX_PRIVATE_FLAG`.
#[inline]
pub(crate) fn sleep_while(word: &AtomicU32, value: u32) {
    // SAFETY: the word is live; no time limit.
    let slept = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            std::ptr::null::<libc::timespec>(),
        )
    };
    if slept != 0 {
        let reason = std::io::Error::last_os_error().raw_os_error();
        if !matches!(reason, Some(libc::EAGAIN | libc::EINTR)) {
            fail_last("futex wait");
        }
    }
}

/// Wakes up to `most` sleepers on the word.
#[inline]
pub(crate) fn wake(word: &AtomicU32, most: i32) {
    // SAFETY: the kernel only looks the address up.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, most) };
    if woken < 0 {
        fail_last("futex wake");
    }
}

/// A binary semaphore between processes, on a futex: one process waits, and others post. A wait
/// returns once, however many times the semaphore was posted before.
#[derive(Debug, Default)]
pub(crate) struct BinarySemaphore(AtomicU32);

impl BinarySemaphore {
    const TAKEN: u32 = 0;
    const POSTED: u32 = 1;
    const WAITS: u32 = 2;

    /// Posts the semaphore and wakes the waiter.
    #[inline(always)]
    pub(crate) fn post(&self) {
        // Release: writes before the post are visible to the process that waits.
        if self.0.swap(Self::POSTED, Ordering::AcqRel) == Self::WAITS {
            wake(&self.0, 1);
        }
    }

    /// Takes the semaphore without sleeping, if it is posted.
    #[inline(always)]
    pub(crate) fn try_wait(&self) -> bool {
        self.0
            .compare_exchange(
                Self::POSTED,
                Self::TAKEN,
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok()
    }

    /// Sleeps until the semaphore is posted, and takes it. `sign` is raised during the sleep.
    #[inline(always)]
    pub(crate) fn wait(&self, sign: Sign) {
        if self.try_wait() {
            return;
        }
        sign.raise();
        loop {
            // Fails if the semaphore was posted just now.
            let _ = self.0.compare_exchange(
                Self::TAKEN,
                Self::WAITS,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            sleep_while(&self.0, Self::WAITS);
            // A wake without a post is possible, so check again.
            if self.try_wait() {
                break;
            }
        }
        sign.lower();
    }
}

/// `CLOCK_MONOTONIC`, ns.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The blocked processes, and since when each is blocked.
///
/// Each process reports that it is about to block, and when it runs again. In between it may not
/// yet sleep, or may have been woken and wait for a CPU. The kernel is asked which of these is the
/// case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked {
    members: &'static [&'static Presence],
    watched: &'static [bool],
    released: &'static AtomicU32,
}

/// The state of one process or thread.
#[derive(Debug, Default)]
struct Presence {
    /// When it began to block, `CLOCK_MONOTONIC`, ns; [`RUNS`] while it does not block.
    since: AtomicU64,
    /// The kernel's id of the thread; 0 before it has its [`Sign`].
    thread: AtomicU32,
}

/// A process's word of [`Blocked`]: raised right before the system call in which it waits. The
/// reading of the monotonic clock has a cost, so only a watched process has a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sign(Option<&'static AtomicU64>);

/// A value that is no time since the machine was started.
const RUNS: u64 = 0;

impl Blocked {
    /// Creates a word for each process. `watched`: another process observes it
    /// ([`Blocked::until`]).
    pub(crate) fn create(watched: &[bool], memory: &SharedMemory) -> Self {
        let members = watched
            .iter()
            .map(|_| memory.place_apart(Presence::default()))
            .collect();
        Self {
            members: memory.place_all(members),
            watched: memory.place_all(watched.to_vec()),
            released: memory.place_apart(AtomicU32::new(0)),
        }
    }

    /// Number of processes.
    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    /// The word of a process, for its own use; must be called in its own process and thread.
    pub(crate) fn sign(&self, me: usize) -> Sign {
        let mine = self.members[me];
        // SAFETY: no arguments.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        mine.thread.store(thread as u32, Ordering::Release);
        Sign(self.watched[me].then_some(&mine.since))
    }

    /// Spins until the process has been blocked for `settle`, and sleeps. The CPU is yielded now
    /// and then; otherwise a target on the same CPU would never block.
    ///
    /// # Panics
    /// The process is not watched.
    pub(crate) fn until(&self, target: usize, settle: Duration) -> Act {
        assert!(self.watched[target], "nobody watches process {target}");
        let (target, released) = (self.members[target], self.released);
        let settle_ns = settle.as_nanos() as u64;
        let mut state = State::default();
        Box::new(move || {
            let mut spinner = Spinner::default();
            while released.load(Ordering::Relaxed) == 0 {
                let since = target.since.load(Ordering::Acquire);
                if since != RUNS && now_ns().saturating_sub(since) >= settle_ns {
                    if state.sleeps(&target.thread) {
                        return;
                    }
                    // The target may need this very CPU to reach its sleep.
                    offer_cpu();
                }
                spinner.turn();
            }
        })
    }

    /// Ends all waits for others to block, at the end of an experiment.
    pub(super) fn release(&self) {
        self.released.store(1, Ordering::SeqCst);
    }
}

/// The kernel's state of a thread: its `stat` under `/proc`, opened once.
#[derive(Debug, Default)]
struct State(Option<OwnedFd>);

impl State {
    /// Whether the thread sleeps. Assumed where the kernel does not report it.
    fn sleeps(&mut self, thread: &AtomicU32) -> bool {
        if self.0.is_none() {
            self.0 = open_stat(thread.load(Ordering::Acquire));
        }
        let Some(file) = &self.0 else {
            return true;
        };
        // The thread's number, its name in parentheses (15 bytes at most), its state.
        let mut text = [0_u8; 64];
        // SAFETY: the kernel writes at most so many bytes to the live local.
        let read =
            unsafe { libc::pread(file.as_raw_fd(), text.as_mut_ptr().cast(), text.len(), 0) };
        let text = &text[..usize::try_from(read).unwrap_or(0)];
        let name_end = text.iter().rposition(|byte| *byte == b')');
        name_end.is_none_or(|end| text.get(end + 2) == Some(&b'S'))
    }
}

fn open_stat(thread: u32) -> Option<OwnedFd> {
    // The path is on the stack, because a step allocates nothing.
    let mut path = [0_u8; 32];
    write!(&mut path[..31], "/proc/{thread}/stat").ok()?;
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero byte.
    let fd = unsafe { libc::open(path.as_ptr().cast(), flags) };
    // SAFETY: if not negative it is new, and nobody else's.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Sign {
    /// A sign that no process observes.
    pub(crate) const UNSEEN: Self = Self(None);

    /// Raises the sign before waiting.
    #[inline(always)]
    pub(crate) fn raise(self) {
        if let Some(word) = self.0 {
            word.store(now_ns(), Ordering::Release);
        }
    }

    /// Lowers the sign after waiting.
    #[inline(always)]
    pub(crate) fn lower(self) {
        if let Some(word) = self.0 {
            word.store(RUNS, Ordering::Release);
        }
    }
}
