//! Clocks that the kernel keeps, read through `clock_gettime` (the vDSO where
//! the kernel offers it, a system call elsewhere).

use crate::ClockId;

/// Reads a kernel clock in nanoseconds since its own epoch; `None` where this kernel lacks the
/// clock or the reading is before the epoch.
#[inline]
pub(crate) fn read_ns(id: libc::clockid_t) -> Option<u64> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live local of the right type.
    if unsafe { libc::clock_gettime(id, &raw mut now) } != 0 {
        return None;
    }
    ns_from_parts(now.tv_sec, now.tv_nsec)
}

/// Converts seconds and nanoseconds to one count; exact up to the year 2554.
#[allow(clippy::unnecessary_cast, reason = "the field types differ by target")]
fn ns_from_parts(seconds: i64, ns: libc::c_long) -> Option<u64> {
    u64::try_from(seconds)
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(u64::try_from(ns as i64).ok()?)
}

/// Returns the kernel's stated resolution of the clock, nanoseconds. This is its claim, not its
/// behaviour: 1 ns here for a clock that moves in steps of 10.
#[must_use]
pub fn resolution_ns(clock: ClockId) -> Option<u64> {
    resolution_of(clock.kernel_id()?)
}

/// As [`resolution_ns`], for the kernel's number of a clock.
pub(crate) fn resolution_of(id: libc::clockid_t) -> Option<u64> {
    let mut resolution = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live local of the right type.
    if unsafe { libc::clock_getres(id, &raw mut resolution) } != 0 {
        return None;
    }
    ns_from_parts(resolution.tv_sec, resolution.tv_nsec)
}

#[cfg(test)]
mod tests;
