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
mod tests {
    use super::*;
    use crate::{MonotonicRaw, Tsc};

    #[test]
    fn a_step_back_is_negative() {
        let earlier = Reading::<Tsc>::from_raw(100);
        let later = Reading::<Tsc>::from_raw(126);
        assert_eq!((later - earlier).raw(), 26);
        assert_eq!((earlier - later).raw(), -26);
    }

    #[test]
    fn the_wrap_of_the_counter_is_no_step_back() {
        let before = Reading::<Tsc>::from_raw(u64::MAX - 9);
        let after = Reading::<Tsc>::from_raw(16);
        // From MAX-9, ten ticks reach 0, sixteen more reach 16.
        assert_eq!((after - before).raw(), 26);
        assert_eq!((before - after).raw(), -26);
    }

    #[test]
    fn the_farthest_differences() {
        let zero = Reading::<Tsc>::from_raw(0);
        let farthest = Reading::<Tsc>::from_raw((1 << 63) - 1);
        assert_eq!((farthest - zero).raw(), i64::MAX);
        assert_eq!((zero - farthest).raw(), -i64::MAX);
    }

    #[test]
    fn adding_a_difference_gives_the_other_reading_back() {
        for (a, b) in [(0, u64::MAX), (5, 3), (u64::MAX, 1 << 63), (7, 7)] {
            let (a, b) = (
                Reading::<MonotonicRaw>::from_raw(a),
                Reading::<MonotonicRaw>::from_raw(b),
            );
            assert_eq!(a + (b - a), b);
        }
    }

    #[test]
    fn readings_and_ticks_cost_what_their_number_costs() {
        assert_eq!(size_of::<Reading<Tsc>>(), 8);
        assert_eq!(size_of::<Option<Ticks<Tsc>>>(), size_of::<Option<i64>>());
    }

    #[test]
    fn debug_names_the_clock() {
        assert_eq!(format!("{:?}", Reading::<Tsc>::from_raw(13)), "13@tsc");
        assert_eq!(
            format!("{:?}", Ticks::<MonotonicRaw>::from_raw(-4)),
            "-4 ticks of monotonic_raw"
        );
    }
}
