//! The Arm virtual counter.
//!
//! | function | waits for earlier instructions | holds later ones back |
//! |---|---|---|
//! | [`read`] | no | no |
//! | [`read_ordered`] (`isb; mrs; isb`) | to have executed | yes |
//!
//! A plain `mrs` of the counter may be taken early, out of program order. The
//! instruction barrier before it makes earlier instructions execute first; the
//! one after it refetches what follows. Neither waits for stores to be visible.

use core::arch::asm;

use undertick_units::{Cntvct, Reading};

/// Reads `mrs CNTVCT_EL0`, not ordered.
#[inline(always)]
#[must_use]
pub fn read() -> Reading<Cntvct> {
    let ticks: u64;
    // SAFETY: reads a register that Linux leaves open to user space; no memory,
    // no flags.
    unsafe {
        asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
    }
    Reading::from_raw(ticks)
}

/// Reads `isb; mrs CNTVCT_EL0; isb`. The compiler does not move memory accesses across it either.
#[inline(always)]
#[must_use]
pub fn read_ordered() -> Reading<Cntvct> {
    let ticks: u64;
    // SAFETY: as in `read`; ISB only orders.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags));
    }
    Reading::from_raw(ticks)
}

/// Returns `CNTFRQ_EL0`: the rate that the firmware declares, Hz; `None` if it left 0.
#[must_use]
pub fn declared_hz() -> Option<u64> {
    let hz: u64;
    // SAFETY: reads a register that Linux leaves open to user space; no memory,
    // no flags.
    unsafe {
        asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags));
    }
    // The upper half is reserved.
    Some(hz & 0xffff_ffff).filter(|hz| *hz != 0)
}
