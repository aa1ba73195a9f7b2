//! A clock with any tick from 50 us to 100 ms: a thread of the library advances a page in shared
//! memory.
//!
//! **Question.** What would a measurement with a clock of that tick give? And what does such a
//! clock itself cost the program?
//!
//! ```
//! use undertick_clock::adjustable::AdjustableClock;
//!
//! let clock = AdjustableClock::start(1_000_000, None)?;
//! std::thread::sleep(std::time::Duration::from_millis(20));
//! println!("{} ticks, {:.3} % of a CPU", clock.read_ticks(), 100.0 * clock.cost().share());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Method.** The thread sleeps until the next tick is due (an absolute time of `CLOCK_MONOTONIC`,
//! by a futex wait, which a stop also ends). It then writes how many ticks have passed since the
//! start: one system call and one clock read a tick. A late wake-up writes a count that is right
//! for its time, so the clock stays true however late the thread is. A tick that was never shown
//! individually counts as missed. The page is a [latch](crate::wide::latched) of two words of 32
//! bits; another process that gets the descriptor maps it with [`Page::map`].
//!
//! **Caveats.** A tick is shown late by the time that the kernel takes to wake the thread: some
//! microseconds on an idle CPU, a time slice on a busy one. The delay shifts readings but does not
//! accumulate. `CLOCK_MONOTONIC` follows the corrections of Unix time, and so does this clock.

mod overhead;
mod page;

pub use overhead::{Overhead, corrected_mean_ns, on_same_cpu};
pub use page::Page;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::kernel;

/// Shortest and longest tick, ns.
pub const TICK_NS: core::ops::RangeInclusive<u64> = 50_000..=100_000_000;

/// A running clock; its thread ends when it is dropped.
#[derive(Debug)]
pub struct AdjustableClock {
    page: Page,
    shared: Arc<Shared>,
    ticker: Option<JoinHandle<()>>,
    started_ns: u64,
}

/// State shared between the ticker and its owner.
#[derive(Debug, Default)]
struct Shared {
    /// 1: the ticker must end. Also the word that the ticker waits on.
    stop: AtomicU32,
    wakeups: AtomicU64,
    missed: AtomicU64,
}

/// What the clock has done and used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Number of ticks since the start.
    pub ticks: u64,
    /// Number of times that the thread woke.
    pub wakeups: u64,
    /// Number of ticks that were never shown individually because a wake-up came late.
    pub missed: u64,
    /// CPU time of the thread, ns, without the interrupts that wake it.
    pub cpu_ns: u64,
    /// Time since the start, ns.
    pub elapsed_ns: u64,
}

impl Cost {
    /// Returns the CPU time of the thread as a share of the elapsed time.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.cpu_ns as f64 / (self.elapsed_ns.max(1)) as f64
    }

    /// Returns the CPU time of the thread per wake-up, ns; 0 before the first.
    #[must_use]
    pub fn cpu_ns_per_wakeup(&self) -> f64 {
        self.cpu_ns as f64 / (self.wakeups.max(1)) as f64
    }
}

impl AdjustableClock {
    /// Starts a clock with this tick. Its thread stays on `cpu` if one is given, otherwise it runs
    /// wherever the caller may.
    ///
    /// # Errors
    /// The tick is not in [`TICK_NS`], the CPU is not available, or the system refused the memory
    /// or the thread.
    pub fn start(tick_ns: u64, cpu: Option<usize>) -> io::Result<Self> {
        if !TICK_NS.contains(&tick_ns) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a tick of {tick_ns} ns: it must lie between 50 us and 100 ms"),
            ));
        }
        let page = Page::create(tick_ns)?;
        let shared = Arc::new(Shared::default());
        let started_ns = now_ns()?;
        let (ready, answer) = std::sync::mpsc::channel();
        let ticker = {
            let (shared, page) = (Arc::clone(&shared), page.try_clone()?);
            std::thread::Builder::new()
                .name("undertick-clock".to_owned())
                .spawn(move || {
                    let pinned = cpu.map_or(Ok(()), crate::cpus::pin);
                    let go = pinned.is_ok();
                    let told = ready.send(pinned);
                    if go && told.is_ok() {
                        tick(&page, &shared, started_ns);
                    }
                })?
        };
        let clock = Self {
            page,
            shared,
            ticker: Some(ticker),
            started_ns,
        };
        match answer.recv() {
            Ok(pinned) => pinned.map(|()| clock),
            Err(_) => Err(io::Error::other("the clock's thread ended at once")),
        }
    }

    /// Returns the number of ticks since the start.
    ///
    /// # Panics
    /// If the ticker has not finished a write in ten thousand rounds of waiting for it, which
    /// happens under no scheduler.
    #[inline]
    #[must_use]
    pub fn read_ticks(&self) -> u64 {
        self.page.read_ticks()
    }

    /// Returns the length of a tick, ns.
    #[must_use]
    pub fn tick_ns(&self) -> u64 {
        self.page.tick_ns()
    }

    /// Returns the descriptor of the page, to be given to another process.
    #[must_use]
    pub fn page_fd(&self) -> BorrowedFd<'_> {
        self.page.as_fd()
    }

    /// Returns what the clock has done and used so far.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let cpu_ns = self.ticker.as_ref().and_then(cpu_ns_of).unwrap_or(0);
        Cost {
            ticks: self.read_ticks(),
            wakeups: self.shared.wakeups.load(Ordering::Relaxed),
            missed: self.shared.missed.load(Ordering::Relaxed),
            cpu_ns,
            elapsed_ns: now_ns().unwrap_or(0).saturating_sub(self.started_ns),
        }
    }
}

impl Drop for AdjustableClock {
    fn drop(&mut self) {
        end(&self.shared.stop);
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
    }
}

fn now_ns() -> io::Result<u64> {
    kernel::read_ns(libc::CLOCK_MONOTONIC).ok_or_else(io::Error::last_os_error)
}

/// Returns the CPU time of a thread, by its own CPU clock.
fn cpu_ns_of(thread: &JoinHandle<()>) -> Option<u64> {
    let mut id = 0;
    // A number for some C libraries, an address for others.
    let handle = thread.as_pthread_t() as libc::pthread_t;
    // SAFETY: the thread is not joined while the handle lives; `id` is a live local.
    let got = unsafe { libc::pthread_getcpuclockid(handle, &raw mut id) };
    (got == 0).then(|| kernel::read_ns(id)).flatten()
}

/// Body of the clock's thread.
fn tick(page: &Page, shared: &Shared, started_ns: u64) {
    // Without this the kernel may wait 50 us longer to join wake-ups.
    // SAFETY: sets a number of this thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    let mut shown = 0;
    while shared.stop.load(Ordering::Acquire) == 0 {
        wait_until(&shared.stop, started_ns + (shown + 1) * page.tick_ns());
        let Ok(now) = now_ns() else { return };
        shared.wakeups.fetch_add(1, Ordering::Relaxed);
        shown = show(page, shared, now.saturating_sub(started_ns), shown);
    }
}

/// Shows the count that is right after `elapsed_ns`, if it is a new one; returns the count then
/// shown.
fn show(page: &Page, shared: &Shared, elapsed_ns: u64, shown: u64) -> u64 {
    let (count, missed) = due(elapsed_ns, page.tick_ns(), shown);
    if count <= shown {
        return shown;
    }
    page.write_ticks(count);
    shared.missed.fetch_add(missed, Ordering::Relaxed);
    count
}

/// Returns the count that is right after `elapsed_ns`, and how many ticks between it and the count
/// shown last are never shown.
fn due(elapsed_ns: u64, tick_ns: u64, shown: u64) -> (u64, u64) {
    let count = elapsed_ns / tick_ns;
    (count, count.saturating_sub(shown + 1))
}

/// Sleeps until an absolute time of `CLOCK_MONOTONIC`, or until the word changes.
fn wait_until(word: &AtomicU32, at_ns: u64) {
    let at = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as i64,
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the kernel compares the live word and reads the live time; it
    // writes nothing. However the call ends, the caller looks at both again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            0_u32,
            &raw const at,
            core::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
}

/// Ends the ticker. The wake ends a wait that has begun; a wait that has not begun finds the word
/// changed.
fn end(stop: &AtomicU32) {
    // Pairs with the ticker's acquire load.
    stop.store(1, Ordering::Release);
    wake(stop);
}

fn wake(word: &AtomicU32) {
    // SAFETY: the address of a live word, which the kernel does not touch.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1_u32,
        )
    };
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
