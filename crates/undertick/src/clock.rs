//! The two readings of the recorder; the same instructions as undertick.h.

use core::arch::asm;

/// Clock codes of the control page.
pub const COUNTER: u32 = 1;
const MONOTONIC: u32 = 3;

/// The counter of the CPU, not ordered against other instructions.
#[inline(always)]
pub fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let (low, high): (u32, u32);
        // SAFETY: RDTSC is there on every x86-64; a process for which it is
        // forbidden has no counter session.
        unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nostack)) };
        u64::from(high) << 32 | u64::from(low)
    }
    #[cfg(target_arch = "aarch64")]
    {
        let value: u64;
        // SAFETY: Linux lets user code read the virtual counter.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) value, options(nostack)) };
        value
    }
}

/// After all that comes before it, before all that comes after it.
#[inline(always)]
pub fn counter_ordered() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let (low, high): (u32, u32);
        // SAFETY: as `counter`; RDTSCP is there on every x86-64 CPU with an
        // invariant TSC, and without one there is no counter session.
        unsafe {
            asm!("rdtscp", "lfence", out("eax") low, out("edx") high, out("ecx") _, options(nostack))
        };
        u64::from(high) << 32 | u64::from(low)
    }
    #[cfg(target_arch = "aarch64")]
    {
        let value: u64;
        // SAFETY: as `counter`.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) value, options(nostack)) };
        value
    }
}

/// The fallback clocks, nanoseconds.
#[cold]
pub fn system(clock: u32) -> u64 {
    let id = if clock == MONOTONIC {
        libc::CLOCK_MONOTONIC
    } else {
        libc::CLOCK_MONOTONIC_RAW
    };
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}
