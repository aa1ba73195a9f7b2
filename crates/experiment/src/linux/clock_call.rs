//! Reads clocks, in each way that this machine offers.

use std::hint::black_box;
use std::mem::MaybeUninit;

use super::Act;
use crate::script::ClockCall;

/// Makes an act that reads the clock once. `None`: this machine has no such clock.
pub(crate) fn read(kind: ClockCall) -> Option<Act> {
    match kind {
        ClockCall::Counter => counter(),
        ClockCall::CounterFenced => counter_fenced(),
        ClockCall::CounterWithCpu => counter_with_cpu(),
        ClockCall::Monotonic => kernel(libc::CLOCK_MONOTONIC),
        ClockCall::MonotonicRaw => kernel(libc::CLOCK_MONOTONIC_RAW),
        ClockCall::MonotonicCoarse => kernel(libc::CLOCK_MONOTONIC_COARSE),
        ClockCall::Realtime => kernel(libc::CLOCK_REALTIME),
        ClockCall::RealtimeCoarse => kernel(libc::CLOCK_REALTIME_COARSE),
        ClockCall::Boottime => kernel(libc::CLOCK_BOOTTIME),
        ClockCall::Tai => kernel(libc::CLOCK_TAI),
        ClockCall::ThreadCpu => kernel(libc::CLOCK_THREAD_CPUTIME_ID),
        ClockCall::ProcessCpu => kernel(libc::CLOCK_PROCESS_CPUTIME_ID),
        ClockCall::Gettimeofday => Some(Box::new(|| {
            let mut now = MaybeUninit::<libc::timeval>::uninit();
            // SAFETY: the kernel fills the live local; no time zone is asked for.
            unsafe { libc::gettimeofday(now.as_mut_ptr(), std::ptr::null_mut()) };
            black_box(&now);
        })),
        ClockCall::Getrusage => Some(Box::new(|| {
            let mut used = MaybeUninit::<libc::rusage>::uninit();
            // SAFETY: the kernel fills the live local.
            unsafe { libc::getrusage(libc::RUSAGE_SELF, used.as_mut_ptr()) };
            black_box(&used);
        })),
        ClockCall::Times => Some(Box::new(|| {
            let mut used = MaybeUninit::<libc::tms>::uninit();
            // SAFETY: the kernel fills the live local.
            black_box(unsafe { libc::times(used.as_mut_ptr()) });
            black_box(&used);
        })),
    }
}

fn kernel(clock: libc::clockid_t) -> Option<Act> {
    let read = move |now: &mut MaybeUninit<libc::timespec>| {
        // SAFETY: the kernel fills the live local.
        unsafe { libc::clock_gettime(clock, now.as_mut_ptr()) }
    };
    let has = read(&mut MaybeUninit::uninit()) == 0;
    has.then(|| -> Act {
        Box::new(move || {
            let mut now = MaybeUninit::uninit();
            read(&mut now);
            black_box(&now);
        })
    })
}

/// Whether the counter can be read: some processes must not read it, and get a signal. Whether it
/// is a good clock is a different question.
fn has_counter() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = !undertick_clock::TscFacts::gather().disabled_by_prctl;
    #[cfg(not(target_arch = "x86_64"))]
    let has = undertick_clock::Source::open(undertick_clock::ClockId::Cntvct).is_ok();
    has
}

fn counter() -> Option<Act> {
    #[cfg(target_arch = "x86_64")]
    return with_counter(|| undertick_clock::tsc::read().raw());
    #[cfg(target_arch = "aarch64")]
    return with_counter(|| undertick_clock::cntvct::read().raw());
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

fn counter_fenced() -> Option<Act> {
    #[cfg(target_arch = "x86_64")]
    return with_counter(|| undertick_clock::tsc::read_fenced().raw());
    #[cfg(target_arch = "aarch64")]
    return with_counter(|| undertick_clock::cntvct::read_ordered().raw());
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

fn counter_with_cpu() -> Option<Act> {
    #[cfg(target_arch = "x86_64")]
    if undertick_clock::tsc::has_rdtscp() {
        return with_counter(|| {
            let mut cpu = 0;
            // SAFETY: the instruction is there; the pointer is to a live local.
            let ticks = unsafe { core::arch::x86_64::__rdtscp(&raw mut cpu) };
            black_box(cpu);
            ticks
        });
    }
    None
}

#[allow(dead_code, reason = "on other architectures there is no counter")]
fn with_counter(read: impl Fn() -> u64 + 'static) -> Option<Act> {
    has_counter().then(|| -> Act {
        Box::new(move || {
            black_box(read());
        })
    })
}

#[cfg(test)]
mod tests;
