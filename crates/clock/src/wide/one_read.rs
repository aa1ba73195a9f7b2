//! 1-Read: the low word alone, and a memory of the rest.

use core::fmt;

/// A low word extended by counting its wraps. Each reader has its own state.
///
/// ```
/// use undertick_clock::wide::OneRead;
///
/// let mut clock = OneRead::new(16, 0x0001_fff0);
/// assert_eq!(clock.extend(0xfff0), 0x0001_fff0);
/// assert_eq!(clock.extend(0x0005), 0x0002_0005);
/// ```
///
/// **Right only while less than a period of the low word lies between calls.** A longer gap loses
/// whole periods without a trace; [`GuardedOneRead`] detects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneRead {
    width_bits: u32,
    last_ticks: u64,
}

impl OneRead {
    /// Starts with the clock at `start_ticks`; `width_bits` from 1 to 63.
    ///
    /// # Panics
    /// With another width.
    #[must_use]
    pub const fn new(width_bits: u32, start_ticks: u64) -> Self {
        assert!(0 < width_bits && width_bits < 64);
        Self {
            width_bits,
            last_ticks: start_ticks,
        }
    }

    const fn period(&self) -> u64 {
        1 << self.width_bits
    }

    /// Returns the smallest value not below the last one that has this low word.
    const fn next(&self, low: u64) -> u64 {
        let mask = self.period() - 1;
        let (high, old_low) = (self.last_ticks & !mask, self.last_ticks & mask);
        let low = low & mask;
        let carry = if low < old_low { self.period() } else { 0 };
        high.wrapping_add(carry) | low
    }

    /// Returns the whole clock, given the low word that it shows now.
    #[inline]
    pub const fn extend(&mut self, low: u64) -> u64 {
        self.last_ticks = self.next(low);
        self.last_ticks
    }
}

/// Bounds of the time at which a low word was read, by a coarse clock in ticks of the fine one: not
/// before `earliest_ticks`, not after `latest_ticks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The coarse clock before the read, ticks.
    pub earliest_ticks: u64,
    /// The coarse clock after the read, plus its step, ticks.
    pub latest_ticks: u64,
}

/// A gap between two calls that cannot have been bridged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Several numbers of whole periods fit what the coarse clock says: this many.
    Ambiguous(u64),
    /// No number fits: the two clocks contradict each other.
    Contradiction,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous(periods) => write!(
                f,
                "the coarse clock does not tell which of {periods} periods of the low word this is"
            ),
            Self::Contradiction => f.write_str(
                "the low word and the coarse clock contradict each other: was a clock set?",
            ),
        }
    }
}

impl core::error::Error for Gap {}

/// 1-Read with a coarse second clock: a gap of any length is bridged where only one number of
/// periods fits the coarse clock, and reported otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardedOneRead {
    one: OneRead,
    window: Window,
    rate_error_ppm: u64,
}

impl GuardedOneRead {
    /// Starts with the clock at `start_ticks`, read within `window`. `rate_error_ppm` bounds how
    /// far the rates of the two clocks are apart.
    ///
    /// # Panics
    /// As [`OneRead::new`].
    #[must_use]
    pub const fn new(
        width_bits: u32,
        start_ticks: u64,
        window: Window,
        rate_error_ppm: u64,
    ) -> Self {
        Self {
            one: OneRead::new(width_bits, start_ticks),
            window,
            rate_error_ppm,
        }
    }

    /// Returns the whole clock, given the low word and the window in which it was read.
    ///
    /// # Errors
    /// The gap since the last successful call cannot have been bridged. The state is unchanged;
    /// start again with [`GuardedOneRead::new`].
    pub fn extend(&mut self, low: u64, window: Window) -> Result<u64, Gap> {
        let nearest = self.one.next(low);
        let forward = nearest.wrapping_sub(self.one.last_ticks);
        let (least, most) = self.elapsed(window).ok_or(Gap::Contradiction)?;
        // Elapsed = forward + k periods, least <= elapsed <= most.
        let period = self.one.period();
        let last = most.checked_sub(forward).ok_or(Gap::Contradiction)? / period;
        let first = least.saturating_sub(forward).div_ceil(period);
        match (last + 1).saturating_sub(first) {
            0 => Err(Gap::Contradiction),
            1 => {
                self.one.last_ticks = nearest.wrapping_add(first * period);
                self.window = window;
                Ok(self.one.last_ticks)
            }
            several => Err(Gap::Ambiguous(several)),
        }
    }

    /// Returns the smallest and the largest number of ticks since the last call, by the coarse
    /// clock; `None` if it went back or by more than half its range.
    fn elapsed(&self, window: Window) -> Option<(u64, u64)> {
        let most = window
            .latest_ticks
            .checked_sub(self.window.earliest_ticks)?;
        let least = window
            .earliest_ticks
            .saturating_sub(self.window.latest_ticks);
        // At least a tick where the rates differ; too much is harmless.
        let slack = |ticks: u64| {
            (u128::from(ticks) * u128::from(self.rate_error_ppm)).div_ceil(1_000_000) as u64
        };
        Some((
            least.saturating_sub(slack(least)),
            most.checked_add(slack(most))?,
        ))
    }
}
