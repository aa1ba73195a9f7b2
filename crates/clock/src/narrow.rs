//! Narrow words of this machine's own clocks.

use crate::slow::{Fine, OpenError};
use crate::wide::{Gap, GuardedOneRead, Shape, Window, Words};
use crate::{ClockId, kernel};

/// A 64-bit clock, read as the narrow words in which some buses show it.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    fine: Fine,
    shape: Shape,
}

impl Split {
    /// Returns the clock in words of this shape; bits above them are not shown.
    #[must_use]
    pub const fn new(fine: Fine, shape: Shape) -> Self {
        Self { fine, shape }
    }
}

impl Words for Split {
    #[inline]
    fn read_word(&mut self, index: usize) -> u64 {
        self.fine.read_ticks() >> (self.shape.width_bits() as usize * index)
    }
}

/// A clock of which only the low 32 bits are read, extended again by 1-Read with
/// `CLOCK_MONOTONIC_COARSE` as the second clock.
#[derive(Clone, Copy, Debug)]
pub struct Extended {
    fine: Fine,
    coarse_step_ns: u64,
    coarse_from_ns: u64,
    reader: GuardedOneRead,
}

/// Number of bits that are read.
const WIDTH_BITS: u32 = 32;

/// Maximum error of the rate: `CLOCK_MONOTONIC` follows the corrections of Unix time, 500 ppm at
/// most, and as much again is allowed for a rate that was only measured.
const RATE_ERROR_PPM: u64 = 1_000;

impl Extended {
    /// Starts at the current reading of the clock. Each thread needs its own reader, which may be a
    /// copy.
    ///
    /// # Errors
    /// The clock is not available here, or the kernel has no coarse clock.
    pub fn open(clock: ClockId) -> Result<Self, OpenError> {
        let fine = Fine::open(clock)?;
        let coarse = libc::CLOCK_MONOTONIC_COARSE;
        let coarse_step_ns = kernel::resolution_of(coarse).ok_or(OpenError::KernelLacks)?;
        let coarse_from_ns = kernel::read_ns(coarse).ok_or(OpenError::KernelLacks)?;
        let blank = Window {
            earliest_ticks: 0,
            latest_ticks: 0,
        };
        let mut this = Self {
            fine,
            coarse_step_ns,
            coarse_from_ns,
            reader: GuardedOneRead::new(WIDTH_BITS, 0, blank, RATE_ERROR_PPM),
        };
        let (start, window) = this.read_within(|fine| fine);
        this.reader = GuardedOneRead::new(WIDTH_BITS, start, window, RATE_ERROR_PPM);
        Ok(this)
    }

    /// Returns the whole clock from its low 32 bits, in ticks.
    ///
    /// # Errors
    /// The gap since the last call cannot have been bridged.
    pub fn read_ticks(&mut self) -> Result<u64, Gap> {
        let (low, window) = self.read_within(|fine| fine & u64::from(u32::MAX));
        self.reader.extend(low, window)
    }

    /// Takes a reading between two of the coarse clock; a coarse reading is at most a step old.
    fn read_within(&self, part: impl Fn(u64) -> u64) -> (u64, Window) {
        let before = self.coarse_ns();
        let part = part(self.fine.read_ticks());
        let after = self.coarse_ns();
        let ticks = |ns: u64| (ns as f64 / self.fine.rate().ns_per_tick()) as u64;
        // A late tick interrupt makes the coarse clock older than a step.
        let latest_ns = after + 2 * self.coarse_step_ns;
        let window = Window {
            earliest_ticks: ticks(before),
            latest_ticks: ticks(latest_ns) + 1,
        };
        (part, window)
    }

    /// Returns the coarse clock since the opening, ns, one step ahead so that it is never below 0.
    fn coarse_ns(&self) -> u64 {
        kernel::read_ns(libc::CLOCK_MONOTONIC_COARSE)
            .unwrap_or(self.coarse_from_ns)
            .saturating_sub(self.coarse_from_ns)
    }
}
