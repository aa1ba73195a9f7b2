//! The rate of a clock as an exact fraction, and conversions by integers only.

use core::fmt;

use crate::{Clock, Nanos, Ticks};

/// Nanoseconds in a second.
const NS_PER_S: u64 = 1_000_000_000;

/// Longest tick that a rate may have, seconds (544 years). It keeps
/// `u64::MAX` ticks below 2^98 s, so below 2^128 ns: no conversion overflows.
const LONGEST_TICK_S: u64 = 1 << 34;

/// Fastest clock that [`TickRate::from_span`] takes, ticks per second. It
/// keeps the denominator above 2^20 when low bits are dropped.
const FASTEST_MEASURED_HZ: u128 = 1 << 43;

/// How many ticks a clock makes in a second: `numerator / denominator`, exact.
///
/// ```
/// use undertick_units::TickRate;
///
/// let watch_crystal = TickRate::new(32_768, 1).unwrap();
/// // One tick is 30 517.578125 ns; conversions round down.
/// assert_eq!(watch_crystal.ns_from_ticks(1), 30_517);
/// assert_eq!(watch_crystal.ns_from_ticks(32_768), 1_000_000_000);
/// // Down means towards the past, also below zero.
/// assert_eq!(watch_crystal.ns_from_ticks_signed(-1), -30_518);
/// ```
///
/// Two rates are equal if their fractions are equal, whatever they were made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TickRate {
    numerator: u64,
    denominator: u64,
}

/// The reason why two numbers do not make a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRate {
    /// Numerator or denominator is zero.
    Zero,
    /// One tick would last longer than 2^34 s (544 years).
    TooSlow,
    /// A measurement gave more than 2^43 ticks per second (8.8 THz).
    TooFast,
}

impl fmt::Display for BadRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zero => "a clock rate with a zero in it",
            Self::TooSlow => "a clock rate below one tick in 544 years",
            Self::TooFast => "a measured clock rate above 8.8 THz",
        })
    }
}

impl core::error::Error for BadRate {}

impl TickRate {
    /// The rate of the kernel's clocks: one tick is one nanosecond.
    pub const NANOSECONDS: Self = Self {
        numerator: NS_PER_S,
        denominator: 1,
    };

    /// A rate of `numerator / denominator` ticks per second, stored in lowest terms.
    ///
    /// # Errors
    /// Fails if either number is zero, or if a tick is longer than 2^34 s.
    pub const fn new(numerator: u64, denominator: u64) -> Result<Self, BadRate> {
        if numerator == 0 || denominator == 0 {
            return Err(BadRate::Zero);
        }
        if denominator / numerator >= LONGEST_TICK_S {
            return Err(BadRate::TooSlow);
        }
        let divisor = gcd(numerator, denominator);
        Ok(Self {
            numerator: numerator / divisor,
            denominator: denominator / divisor,
        })
    }

    /// The rate of a clock that made `ticks` in `ns` nanoseconds.
    ///
    /// The rate is exact where the fraction in lowest terms fits in 64-bit numbers.
    /// Otherwise both numbers lose low bits, and the rate changes by less than
    /// `ticks per second / 2^63`: 0.3 ppb at 2.6 GHz, 1.1 ppb at 10 GHz.
    ///
    /// # Errors
    /// Fails as [`TickRate::new`] does, and for a rate above 2^43 ticks per second
    /// (8.8 THz).
    pub const fn from_span(ticks: u64, ns: u64) -> Result<Self, BadRate> {
        if ticks == 0 || ns == 0 {
            return Err(BadRate::Zero);
        }
        let ns_divisor = gcd(NS_PER_S, ns);
        let mut denominator = ns / ns_divisor;
        let mut numerator = ticks as u128 * (NS_PER_S / ns_divisor) as u128;
        if numerator / denominator as u128 > FASTEST_MEASURED_HZ {
            return Err(BadRate::TooFast);
        }
        let divisor = gcd(denominator, (numerator % denominator as u128) as u64);
        denominator /= divisor;
        numerator /= divisor as u128;
        while numerator > u64::MAX as u128 {
            numerator >>= 1;
            denominator >>= 1;
        }
        Self::new(numerator as u64, denominator)
    }

    /// Ticks per second = numerator / [`denominator`](Self::denominator).
    #[must_use]
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// Ticks per second = [`numerator`](Self::numerator) / denominator.
    #[must_use]
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// Ticks per second, rounded to a float: for printing, not for converting.
    #[must_use]
    pub fn ticks_per_s(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Length of one tick in nanoseconds, rounded to a float (relative error
    /// below 4e-16).
    #[must_use]
    pub fn ns_per_tick(self) -> f64 {
        NS_PER_S as f64 * self.denominator as f64 / self.numerator as f64
    }

    /// Nanoseconds in `ticks` ticks: exact, then rounded down.
    ///
    /// The result has 128 bits because `u64::MAX` ticks of a 32 768 Hz clock
    /// are 5.6e23 ns; up to 1 GHz and above it fits in 64.
    #[must_use]
    pub const fn ns_from_ticks(self, ticks: u64) -> u128 {
        scale(ticks, self.denominator, NS_PER_S, self.numerator).0
    }

    /// Nanoseconds in a signed number of ticks, as by [`ns_from_ticks`](Self::ns_from_ticks).
    /// The result is rounded towards the past, so that equal steps of the clock convert
    /// alike on both sides of zero.
    #[must_use]
    pub const fn ns_from_ticks_signed(self, ticks: i64) -> i128 {
        let (down, is_whole) = scale(
            ticks.unsigned_abs(),
            self.denominator,
            NS_PER_S,
            self.numerator,
        );
        if ticks >= 0 {
            return down.cast_signed();
        }
        let up = if is_whole { down } else { down + 1 };
        -up.cast_signed()
    }

    /// A difference of readings in nanoseconds, rounded as
    /// [`ns_from_ticks_signed`](Self::ns_from_ticks_signed); `None` beyond 292 years.
    #[must_use]
    pub fn nanos_from_ticks<C: Clock>(self, ticks: Ticks<C>) -> Option<Nanos> {
        i64::try_from(self.ns_from_ticks_signed(ticks.raw()))
            .ok()
            .map(Nanos)
    }

    /// Whole ticks in `ns` nanoseconds: exact, then rounded down. The result is
    /// `None` where the number of ticks does not fit in 64 bits.
    #[must_use]
    pub fn ticks_from_ns(self, ns: u64) -> Option<u64> {
        let whole = ns / NS_PER_S;
        let rest = ns % NS_PER_S;
        // Below 2^35 * 2^64, and below 2^30 * 2^64: both products fit. The
        // fraction that the whole seconds leave is carried into the second part.
        let numerator = u128::from(self.numerator);
        let denominator = u128::from(self.denominator);
        let seconds = u128::from(whole) * numerator;
        let carried = seconds % denominator * u128::from(NS_PER_S) + u128::from(rest) * numerator;
        let ticks = seconds / denominator + carried / (denominator * u128::from(NS_PER_S));
        u64::try_from(ticks).ok()
    }
}

/// `floor(a * b * c / d)`, and whether that is exact, for `a * b / d < 2^98`, `c < 2^30`: the product of
/// three would need 158 bits, so the division happens between the factors and
/// its remainder is carried on. `a*b = q*d + r` gives
/// `a*b*c/d = q*c + r*c/d`, and `q*c` is whole.
const fn scale(a: u64, b: u64, c: u64, d: u64) -> (u128, bool) {
    // Usual rates: 128 bits are several times slower to divide.
    if let Some(product) = a.checked_mul(b)
        && let Some(carried) = (product % d).checked_mul(c)
    {
        let whole = (product / d) as u128 * c as u128;
        return (whole + (carried / d) as u128, carried.is_multiple_of(d));
    }
    let product = a as u128 * b as u128;
    let quotient = product / d as u128;
    let remainder = product % d as u128;
    let carried = remainder * c as u128;
    (
        quotient * c as u128 + carried / d as u128,
        carried.is_multiple_of(d as u128),
    )
}

/// Greatest common divisor; `gcd(a, 0) = a`.
const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl fmt::Display for TickRate {
    /// Writes the rate in MHz, with enough digits to resolve 1 Hz at 1 GHz.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} MHz", self.ticks_per_s() / 1e6)
    }
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;
