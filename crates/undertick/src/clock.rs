//! The clock readings of the recorder, with the same instructions as undertick.h.

use core::arch::asm;

use undertick_ring::layout::ring;

/// Clock codes of the control page.
pub const COUNTER: u32 = 1;
const MONOTONIC: u32 = 3;

/// Reads the counter of the CPU, not ordered against other instructions.
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

/// Reads the counter after everything before it, and the CPU where the same instruction gives it
/// (Linux keeps its number in the low 12 bits). Later instructions may start early: see [`fence`].
#[inline(always)]
pub fn counter_after() -> (u64, Option<u32>) {
    #[cfg(target_arch = "x86_64")]
    {
        let (low, high, aux): (u32, u32, u32);
        // SAFETY: as `counter`; RDTSCP is there on every x86-64 CPU with an
        // invariant TSC, and without one there is no counter session.
        unsafe {
            asm!("rdtscp", out("eax") low, out("edx") high, out("ecx") aux, options(nostack))
        };
        (u64::from(high) << 32 | u64::from(low), Some(aux & 0xfff))
    }
    #[cfg(target_arch = "aarch64")]
    {
        let value: u64;
        // SAFETY: as `counter`.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) value, options(nostack)) };
        (value, None)
    }
}

/// Reads the counter twice with nothing between; the same code as undertick.h, so that a pair costs
/// the same here.
#[inline(always)]
pub fn counter_pair() -> (u64, u64) {
    let first: u64;
    #[cfg(target_arch = "x86_64")]
    {
        let (low, high): (u64, u64);
        // SAFETY: as `counter_after`.
        unsafe {
            asm!(
                "rdtscp",
                "shl rdx, 32",
                "or rax, rdx",
                "mov {first}, rax",
                "lfence",
                "rdtscp",
                first = out(reg) first,
                out("rax") low,
                out("rdx") high,
                out("rcx") _,
                options(nostack)
            );
        }
        (first, high << 32 | low)
    }
    #[cfg(target_arch = "aarch64")]
    {
        let second: u64;
        // SAFETY: as `counter`.
        unsafe {
            asm!(
                "isb",
                "mrs {first}, cntvct_el0",
                "isb",
                "mrs {second}, cntvct_el0",
                first = out(reg) first,
                second = out(reg) second,
                options(nostack)
            );
        }
        (first, second)
    }
}

/// Waits until everything before it has been executed; nothing after it starts earlier.
#[inline(always)]
pub fn fence() {
    // SAFETY: waits, and changes nothing.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("lfence", options(nostack));
        #[cfg(target_arch = "aarch64")]
        asm!("isb", options(nostack));
    }
}

/// Reads one of the fallback clocks, nanoseconds.
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

/// Returns the ticks of [`ring::READS`] consecutive readings, as spans read the clock; the second
/// pass counts, when their code is no longer cold.
#[cold]
#[inline(never)]
pub fn time_reads(clock: u32) -> u32 {
    let (mut from, mut to) = (0, 0);
    for _ in 0..2 {
        if clock == COUNTER {
            from = counter_after().0;
            // Written without a branch: in a loop one would be predicted, or not.
            let _: [(u64, Option<u32>); READS - 1] = [
                counter_after(),
                counter_after(),
                counter_after(),
                counter_after(),
                counter_after(),
                counter_after(),
                counter_after(),
            ];
            to = counter_after().0;
        } else {
            from = system(clock);
            for _ in 0..READS {
                to = system(clock);
            }
        }
    }
    u32::try_from(to.wrapping_sub(from)).unwrap_or(u32::MAX)
}

const READS: usize = ring::READS as usize;
