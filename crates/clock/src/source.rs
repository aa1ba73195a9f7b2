//! Reads of a clock that was found usable.

#[cfg(target_arch = "aarch64")]
use undertick_units::Cntvct;
#[cfg(target_arch = "x86_64")]
use undertick_units::Tsc;
use undertick_units::{
    Boottime, Clock, Monotonic, MonotonicCoarse, MonotonicRaw, Reading, Realtime,
};

use crate::availability::{Unavailable, usable};
use crate::{ClockId, kernel};

/// A clock of this machine that can be read.
///
/// ```
/// use undertick_clock::{ClockId, Source};
///
/// let clock = Source::open(ClockId::MonotonicRaw)?;
/// let before = clock.read_ticks();
/// let after = clock.read_ticks();
/// assert!(after >= before);
/// # Ok::<(), undertick_clock::Unavailable>(())
/// ```
///
/// The clock is selected by a branch at each read, about a nanosecond. Where the clock is known
/// when the program is built, [`ReadClock`] reads it without the branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    clock: ClockId,
}

impl Source {
    /// Opens the clock, if this machine has it and it may be read.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn open(clock: ClockId) -> Result<Self, Unavailable> {
        usable(clock)?;
        Ok(Self { clock })
    }

    /// Returns which clock this is.
    #[must_use]
    pub const fn clock(self) -> ClockId {
        self.clock
    }

    /// Returns a reading in ticks; the CPU may take it earlier or later than written.
    #[inline]
    #[must_use]
    pub fn read_ticks(self) -> u64 {
        match self.clock {
            #[cfg(target_arch = "x86_64")]
            ClockId::Tsc => crate::tsc::read().raw(),
            #[cfg(target_arch = "aarch64")]
            ClockId::Cntvct => crate::cntvct::read().raw(),
            other => kernel_ticks(other),
        }
    }

    /// Returns a reading in ticks that is taken after everything before it and before everything
    /// after it: the fenced TSC, `isb` on Arm. Kernel clocks are read as they are: the kernel's own
    /// code waits for earlier instructions, and nothing holds back later ones.
    #[inline]
    #[must_use]
    pub fn read_ticks_ordered(self) -> u64 {
        match self.clock {
            #[cfg(target_arch = "x86_64")]
            ClockId::Tsc => crate::tsc::read_fenced().raw(),
            #[cfg(target_arch = "aarch64")]
            ClockId::Cntvct => crate::cntvct::read_ordered().raw(),
            other => kernel_ticks(other),
        }
    }
}

/// Reads a kernel clock, in its ticks of 1 ns. `open` has read it once with success, and a clock
/// does not go away; 0 would mean that it did.
#[inline]
fn kernel_ticks(clock: ClockId) -> u64 {
    clock.kernel_id().and_then(kernel::read_ns).unwrap_or(0)
}

/// A clock known at build time: reading it costs no more than its instructions.
///
/// ```
/// use undertick_clock::ReadClock;
/// use undertick_units::{MonotonicRaw, TickRate};
///
/// let begin = MonotonicRaw::read();
/// let span = MonotonicRaw::read() - begin;
/// assert!(TickRate::NANOSECONDS.nanos_from_ticks(span).unwrap().0 >= 0);
/// ```
pub trait ReadClock: Clock {
    /// The clock that this is.
    const ID: ClockId;

    /// Returns a reading; the CPU may take it earlier or later than written.
    fn read() -> Reading<Self>;

    /// Returns a reading taken after everything before it and before everything after it.
    #[inline(always)]
    fn read_ordered() -> Reading<Self> {
        Self::read()
    }
}

#[cfg(target_arch = "x86_64")]
impl ReadClock for Tsc {
    const ID: ClockId = ClockId::Tsc;

    #[inline(always)]
    fn read() -> Reading<Self> {
        crate::tsc::read()
    }

    #[inline(always)]
    fn read_ordered() -> Reading<Self> {
        crate::tsc::read_fenced()
    }
}

#[cfg(target_arch = "aarch64")]
impl ReadClock for Cntvct {
    const ID: ClockId = ClockId::Cntvct;

    #[inline(always)]
    fn read() -> Reading<Self> {
        crate::cntvct::read()
    }

    #[inline(always)]
    fn read_ordered() -> Reading<Self> {
        crate::cntvct::read_ordered()
    }
}

macro_rules! read_kernel_clock {
    ($($marker:ident),*) => {$(
        impl ReadClock for $marker {
            const ID: ClockId = ClockId::$marker;

            #[inline(always)]
            fn read() -> Reading<Self> {
                Reading::from_raw(kernel_ticks(Self::ID))
            }
        }
    )*};
}

read_kernel_clock!(Monotonic, MonotonicRaw, Boottime, MonotonicCoarse, Realtime);

#[cfg(test)]
mod tests;
