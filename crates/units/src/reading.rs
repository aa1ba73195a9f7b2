//! Readings of a clock, differences of readings, nanoseconds.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use crate::Clock;

/// One reading of clock `C`: the raw count, in ticks of that clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reading<C: Clock> {
    raw: u64,
    clock: PhantomData<C>,
}

impl<C: Clock> Reading<C> {
    /// The reading with this raw count.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self {
            raw,
            clock: PhantomData,
        }
    }

    /// The raw count, in ticks of `C`.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.raw
    }
}

impl<C: Clock> fmt::Debug for Reading<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.raw, C::NAME)
    }
}

impl<C: Clock> Sub for Reading<C> {
    type Output = Ticks<C>;

    /// The signed difference. It is right while the readings are less than 2^63
    /// ticks apart, also across the wrap of the counter.
    fn sub(self, earlier: Self) -> Ticks<C> {
        Ticks::from_raw(self.raw.wrapping_sub(earlier.raw).cast_signed())
    }
}

impl<C: Clock> Add<Ticks<C>> for Reading<C> {
    type Output = Self;

    /// The reading `ticks` later (earlier, if negative), modulo 2^64.
    fn add(self, ticks: Ticks<C>) -> Self {
        Self::from_raw(self.raw.wrapping_add_signed(ticks.raw))
    }
}

/// A signed number of ticks of clock `C`: the difference of two readings.
///
/// A negative number means that the clock went back, or that the readings were
/// taken in the opposite order. It is never clamped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks<C: Clock> {
    raw: i64,
    clock: PhantomData<C>,
}

impl<C: Clock> Ticks<C> {
    /// A difference of this many ticks.
    #[must_use]
    pub const fn from_raw(raw: i64) -> Self {
        Self {
            raw,
            clock: PhantomData,
        }
    }

    /// The number of ticks.
    #[must_use]
    pub const fn raw(self) -> i64 {
        self.raw
    }
}

impl<C: Clock> fmt::Debug for Ticks<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ticks of {}", self.raw, C::NAME)
    }
}

impl<C: Clock> Add for Ticks<C> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::from_raw(self.raw + other.raw)
    }
}

impl<C: Clock> Sub for Ticks<C> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::from_raw(self.raw - other.raw)
    }
}

impl<C: Clock> Neg for Ticks<C> {
    type Output = Self;

    fn neg(self) -> Self {
        Self::from_raw(-self.raw)
    }
}

impl<C: Clock> AddAssign for Ticks<C> {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<C: Clock> SubAssign for Ticks<C> {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// A signed duration in whole nanoseconds; its range is 292 years either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Nanos(pub i64);

impl Add for Nanos {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Nanos {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for Nanos {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

#[cfg(test)]
mod tests;
