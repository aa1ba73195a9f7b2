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
mod tests {
    use super::*;
    use crate::linux::test_harness;
    use crate::script::Words;

    fn took_ns(act: &mut Act) -> u64 {
        let begin = now_ns();
        act();
        now_ns() - begin
    }

    #[test]
    fn work_takes_about_as_long_as_said() {
        // The quickest of many, as in the calibration. A disturbance can only lengthen the time.
        let quickest = |ns| {
            let mut act = work(ns);
            (0..50).map(|_| took_ns(&mut act)).min().unwrap() as f64
        };
        for ns in [20e3, 200e3] {
            let found = quickest(ns);
            assert!((0.5 * ns..3.0 * ns).contains(&found), "{found} for {ns} ns");
        }
    }

    #[test]
    fn sleep_is_not_shorter_than_said() {
        assert!(took_ns(&mut sleep(3e6)) >= 3_000_000);
    }

    #[test]
    fn every_call_returns() {
        null()();
        offer()();
        for (_, kind) in Call::WORDS {
            let mut act = call(*kind);
            (0..100).for_each(|_| act());
        }
    }

    #[test]
    fn running_out_ends_when_another_has_had_the_cpu() {
        // The kernel reports it in its own words. (The CPU may sometimes have gone to a third
        // thread, but not each time.)
        let times_taken = || -> u64 {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
            line.unwrap().trim().parse().unwrap()
        };
        let on = undertick_clock::cpus::allowed()[0];
        let memory = crate::linux::shared_memory::SharedMemory::new(4096).unwrap();
        let count = memory.place_apart(std::sync::atomic::AtomicU64::new(0));
        let over = memory.place_apart(std::sync::atomic::AtomicU64::new(0));
        use std::sync::atomic::Ordering::Relaxed;
        test_harness::processes(2, &[on], |me| {
            if me == 1 {
                while over.load(Relaxed) == 0 {
                    count.fetch_add(1, Relaxed);
                }
                return;
            }
            while count.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            let mut act = run_out();
            let counted = count.load(Relaxed);
            for _ in 0..20 {
                let before = times_taken();
                let took = took_ns(&mut act);
                assert!(took < 900_000_000, "{took} ns: it has not noticed");
                assert!(times_taken() > before, "it kept its CPU");
            }
            assert!(count.load(Relaxed) > counted, "the other one has not run");
            over.store(1, Relaxed);
        });
    }
}
