//! Waiting: for a word to change, by spinning, for another process to block.

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::Act;
use super::arena::Arena;
use super::fail::fail_last;

/// Looks at a word before a spinning waiter offers its CPU, some microseconds:
/// about what it costs to go to another process and back. Who is waited for may
/// need that very CPU.
const SPINS: u32 = 100;

/// Spins, and offers the CPU now and then so that whoever is waited for gets to
/// run, even with one CPU for both.
#[derive(Debug, Default)]
pub(crate) struct Spinner {
    spins: u32,
}

impl Spinner {
    /// One turn.
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

/// Wakes as many as sleep on the word, up to `most`.
#[inline]
pub(crate) fn wake(word: &AtomicU32, most: i32) {
    // SAFETY: the kernel only looks the address up.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, most) };
    if woken < 0 {
        fail_last("futex wake");
    }
}

/// A word on which one process sleeps and which others open: it lets through
/// once for however many times it was opened before.
#[derive(Debug, Default)]
pub(crate) struct Gate(AtomicU32);

impl Gate {
    const CLOSED: u32 = 0;
    const OPEN: u32 = 1;
    const SLEEPS: u32 = 2;

    /// Opens it; wakes who sleeps.
    #[inline(always)]
    pub(crate) fn open(&self) {
        // Release: what was written before is seen by who comes through.
        if self.0.swap(Self::OPEN, Ordering::AcqRel) == Self::SLEEPS {
            wake(&self.0, 1);
        }
    }

    /// Comes through without sleeping and closes it behind, if it is open.
    #[inline(always)]
    pub(crate) fn try_pass(&self) -> bool {
        self.0
            .compare_exchange(
                Self::OPEN,
                Self::CLOSED,
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok()
    }

    /// Sleeps until it is opened, comes through and closes it. `sign` is up while
    /// it sleeps.
    #[inline(always)]
    pub(crate) fn pass(&self, sign: Sign) {
        if self.try_pass() {
            return;
        }
        sign.raise();
        loop {
            // Fails where it was opened just now.
            let _ = self.0.compare_exchange(
                Self::CLOSED,
                Self::SLEEPS,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            sleep_while(&self.0, Self::SLEEPS);
            // A wake without an opening is possible: look again.
            if self.try_pass() {
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

/// Who is blocked, and since when.
///
/// Each process says itself that it is about to block, and when it runs again. In
/// between it may not have got to sleep yet, or may have been woken and wait for
/// a CPU: which of these, the kernel is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked {
    members: &'static [&'static Presence],
    watched: &'static [bool],
    released: &'static AtomicU32,
}

/// Of one process or thread.
#[derive(Debug, Default)]
struct Presence {
    /// When it began to block, `CLOCK_MONOTONIC`, ns; [`RUNS`] outside.
    since: AtomicU64,
    /// The kernel's number of the thread; 0 before it has its [`Sign`].
    thread: AtomicU32,
}

/// A process's word of [`Blocked`]: up from right before the system call in which
/// it waits. The stamp costs a reading of the monotonic clock, so only a process
/// that somebody looks at has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sign(Option<&'static AtomicU64>);

/// No time since the machine was started.
const RUNS: u64 = 0;

impl Blocked {
    /// A word for each process. `watched`: another one looks at it
    /// ([`Blocked::until`]).
    pub(crate) fn create(watched: &[bool], arena: &Arena) -> Self {
        let members = watched
            .iter()
            .map(|_| arena.place_apart(Presence::default()))
            .collect();
        Self {
            members: arena.place_all(members),
            watched: arena.place_all(watched.to_vec()),
            released: arena.place_apart(AtomicU32::new(0)),
        }
    }

    /// How many processes there are.
    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    /// The word of a process, for itself: to be called in its own process and
    /// thread.
    pub(crate) fn sign(&self, me: usize) -> Sign {
        let mine = self.members[me];
        // SAFETY: no arguments.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        mine.thread.store(thread as u32, Ordering::Release);
        Sign(self.watched[me].then_some(&mine.since))
    }

    /// Spins until the process has been blocked for `settle`, and sleeps. The CPU
    /// is offered now and then, else a target on the same CPU would never get
    /// there.
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
                    // It may wait for this very CPU to do the rest of its way.
                    offer_cpu();
                }
                spinner.turn();
            }
        })
    }

    /// The end of an experiment: nobody waits for others to block any more.
    pub(super) fn release(&self) {
        self.released.store(1, Ordering::SeqCst);
    }
}

/// What the kernel says of a thread: its `stat` under `/proc`, opened once.
#[derive(Debug, Default)]
struct State(Option<OwnedFd>);

impl State {
    /// Whether it sleeps. Taken for granted where the kernel does not say.
    fn sleeps(&mut self, thread: &AtomicU32) -> bool {
        if self.0.is_none() {
            self.0 = open_stat(thread.load(Ordering::Acquire));
        }
        let Some(file) = &self.0 else {
            return true;
        };
        // Its number, its name in parentheses (15 bytes at most), its state.
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
    // On the stack: a step allocates nothing.
    let mut path = [0_u8; 32];
    write!(&mut path[..31], "/proc/{thread}/stat").ok()?;
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero byte.
    let fd = unsafe { libc::open(path.as_ptr().cast(), flags) };
    // SAFETY: if not negative it is new, and nobody else's.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Sign {
    /// Nobody looks.
    pub(crate) const UNSEEN: Self = Self(None);

    /// About to wait.
    #[inline(always)]
    pub(crate) fn raise(self) {
        if let Some(word) = self.0 {
            word.store(now_ns(), Ordering::Release);
        }
    }

    /// Has waited.
    #[inline(always)]
    pub(crate) fn lower(self) {
        if let Some(word) = self.0 {
            word.store(RUNS, Ordering::Release);
        }
    }
}
