//! Waiting: for a word to change, by spinning, for another process to block.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::Act;
use super::arena::Arena;
use super::fail::fail_last;

/// Looks at a word before a spinning waiter offers its CPU: some microseconds.
/// Who is waited for may need that very CPU.
const SPINS: u32 = 1000;

/// The same for who waits for another to block: the way of one who is already
/// there is short.
const LOOKS: u32 = 100;

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

/// Who is blocked, and since when: a word each process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked {
    signs: &'static [&'static AtomicU64],
    watched: &'static [bool],
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
        let signs = watched
            .iter()
            .map(|_| arena.place_apart(AtomicU64::new(RUNS)))
            .collect();
        Self {
            signs: arena.place_all(signs),
            watched: arena.place_all(watched.to_vec()),
        }
    }

    /// How many processes there are.
    pub(crate) fn members(&self) -> usize {
        self.signs.len()
    }

    /// The word of a process.
    pub(crate) fn sign(&self, me: usize) -> Sign {
        Sign(self.watched[me].then_some(self.signs[me]))
    }

    /// Spins until the process has been blocked for `settle`: when its word goes
    /// up it is only on its way to sleep. The CPU is offered now and then, else a
    /// target on the same CPU would never get there.
    ///
    /// # Panics
    /// The process is not watched.
    pub(crate) fn until(&self, target: usize, settle: Duration) -> Act {
        assert!(self.watched[target], "nobody watches process {target}");
        let sign = self.signs[target];
        let settle_ns = settle.as_nanos() as u64;
        Box::new(move || {
            let mut seen = RUNS;
            let mut looks = 0_u32;
            loop {
                let since = sign.load(Ordering::Acquire);
                if since != RUNS && now_ns().saturating_sub(since) >= settle_ns {
                    return;
                }
                std::hint::spin_loop();
                looks += 1;
                // At once when the word has gone up: the target may wait for this
                // very CPU to do the rest of its way.
                if since != seen || looks.is_multiple_of(LOOKS) {
                    seen = since;
                    offer_cpu();
                }
            }
        })
    }
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
