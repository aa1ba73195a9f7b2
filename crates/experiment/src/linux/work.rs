//! Work, and the simplest calls of the scheduler and the kernel.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::time::Duration;

use super::Act;
use super::wait::now_ns;
use crate::counted_work;
use crate::script::Call;

/// Maximum time for which [`run_out`] waits to lose its CPU.
const LONGEST: Duration = Duration::from_secs(1);
/// A gap in the time that a spinning thread sees, ns. Losing the CPU and getting it back takes
/// longer; most gaps are interrupts instead.
const GAP_NS: u64 = 1000;

/// Does nothing.
pub(crate) fn null() -> Act {
    Box::new(|| ())
}

/// Executes a counted number of dependent instructions that take about this long, ns. The number is
/// determined once in a process; children that are forked later inherit it.
pub(crate) fn work(ns: f64) -> Act {
    let turns = (ns / counted_work::turn_ns()).round() as u64;
    Box::new(move || counted_work::turns(turns))
}

/// Sleeps at least this long.
pub(crate) fn sleep(ns: f64) -> Act {
    let time = Duration::from_nanos(ns as u64);
    Box::new(move || std::thread::sleep(time))
}

/// Yields the CPU to others.
pub(crate) fn offer() -> Act {
    call(Call::SchedYield)
}

/// Runs until the scheduler has taken the CPU away and given it back. Where no other thread wants
/// the CPU that never happens, so it ends after a second.
pub(crate) fn run_out() -> Act {
    Box::new(|| {
        let begin = now_ns();
        let taken_before = times_taken();
        let mut last = begin;
        while last - begin < LONGEST.as_nanos() as u64 {
            let now = now_ns();
            // Only the kernel knows whether another thread ran in the gap.
            if now - last > GAP_NS && times_taken() != taken_before {
                return;
            }
            last = now;
        }
    })
}

/// Number of times that this thread has lost its CPU involuntarily. (The recorder's mark would show
/// it without a system call, but the mark has one owner.)
fn times_taken() -> libc::c_long {
    let mut used = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the live local, which is all zeros if it does not.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, used.as_mut_ptr());
        used.assume_init().ru_nivcsw
    }
}

/// Makes a system call that does almost nothing.
pub(crate) fn call(call: Call) -> Act {
    match call {
        Call::Getppid => Box::new(|| {
            // SAFETY: no arguments.
            black_box(unsafe { libc::getppid() });
        }),
        Call::Getpid => Box::new(|| {
            // SAFETY: no arguments.
            black_box(unsafe { libc::syscall(libc::SYS_getpid) });
        }),
        Call::Gettid => Box::new(|| {
            // SAFETY: no arguments.
            black_box(unsafe { libc::syscall(libc::SYS_gettid) });
        }),
        Call::SchedYield => Box::new(|| {
            // SAFETY: no arguments.
            black_box(unsafe { libc::sched_yield() });
        }),
        Call::Getcpu => Box::new(|| {
            // SAFETY: no arguments.
            black_box(unsafe { libc::sched_getcpu() });
        }),
    }
}

#[cfg(test)]
mod tests;
