//! Arithmetic on estimates: change of unit, subtraction of a cost.

use undertick_units::{Estimate, Interval};

/// A constant that is subtracted from every sample, and its uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// The cost, in the unit of the samples.
    pub value: f64,
    /// The true cost may be lower by this much.
    pub below: f64,
    /// The true cost may be higher by this much.
    pub above: f64,
    /// The bounds are not a statistical interval but the disagreement of two
    /// methods: they are added in full, not as the root of a sum of squares.
    pub systematic: bool,
}

impl Cost {
    /// Takes the cost from an estimate; a missing bound makes the whole value uncertain on that
    /// side.
    #[must_use]
    pub fn from_estimate(estimate: &Estimate) -> Self {
        let value = estimate.value;
        let bound =
            |b: Option<f64>, sign: f64| b.map_or(value.abs(), |b| (sign * (b - value)).max(0.0));
        Self {
            value,
            below: bound(estimate.interval.lo, -1.0),
            above: bound(estimate.interval.hi, 1.0),
            systematic: false,
        }
    }

    /// Returns this cost `factor` times (`factor` >= 0).
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            below: self.below * factor,
            above: self.above * factor,
            ..self
        }
    }

    /// Returns the sum of both costs. Their errors come from one calibration and may agree in sign,
    /// so they add in full.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            below: self.below + other.below,
            above: self.above + other.above,
            systematic: self.systematic || other.systematic,
        }
    }

    /// Returns the cost of a sample that may have either of two: the middle, with bounds that
    /// contain both.
    ///
    /// ```
    /// use undertick_estimate::Cost;
    /// let cost = |value: f64| Cost { value, below: 1.0, above: 2.0, systematic: false };
    /// let either = cost(10.0).or(cost(16.0)); // 9 to 12, 15 to 18
    /// assert_eq!((either.value, either.below, either.above), (13.5, 4.5, 4.5));
    /// ```
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let lo = (self.value - self.below).min(other.value - other.below);
        let hi = (self.value + self.above).max(other.value + other.above);
        Self {
            value: f64::midpoint(lo, hi),
            below: (hi - lo) / 2.0,
            above: (hi - lo) / 2.0,
            systematic: true,
        }
    }

    /// Widens an estimate from which this cost has already been subtracted: a lower cost means a
    /// higher figure, so `below` moves the upper bound.
    pub fn widen(self, estimate: &mut Estimate) {
        let value = estimate.value;
        let join = |own: f64, cost: f64| {
            if self.systematic {
                own + cost
            } else {
                own.hypot(cost)
            }
        };
        estimate.interval = Interval {
            lo: estimate
                .interval
                .lo
                .map(|lo| value - join(value - lo, self.above)),
            hi: estimate
                .interval
                .hi
                .map(|hi| value + join(hi - value, self.below)),
        };
    }
}

/// Converts the estimate to another unit: everything times `factor` (> 0).
#[must_use]
pub fn scaled(estimate: Estimate, factor: f64, unit: &str) -> Estimate {
    Estimate {
        value: estimate.value * factor,
        interval: Interval {
            lo: estimate.interval.lo.map(|x| x * factor),
            hi: estimate.interval.hi.map(|x| x * factor),
        },
        unit: unit.into(),
        ..estimate
    }
}

/// Returns the estimate with `delta` added to the value and its bounds.
#[must_use]
pub fn shifted(estimate: Estimate, delta: f64) -> Estimate {
    Estimate {
        value: estimate.value + delta,
        interval: Interval {
            lo: estimate.interval.lo.map(|x| x + delta),
            hi: estimate.interval.hi.map(|x| x + delta),
        },
        ..estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, lo: f64, hi: f64) -> Estimate {
        Estimate {
            value,
            interval: Interval::new(lo, hi),
            level: 0.95,
            unit: "ticks".into(),
            method: "test".into(),
            n: 1,
            n_effective: 1.0,
            notes: vec![],
        }
    }

    /// The estimate's half-widths are 3 below and 6 above; the cost is uncertain by 8 below, 4
    /// above.
    #[test]
    fn uncertainty_of_the_cost_widens_the_other_side() {
        let cost = Cost::from_estimate(&estimate(20.0, 12.0, 24.0));
        assert_eq!((cost.below, cost.above), (8.0, 4.0));
        let mut e = estimate(100.0, 97.0, 106.0);
        cost.widen(&mut e);
        assert_eq!(e.interval, Interval::new(95.0, 110.0));
        let mut e = estimate(100.0, 97.0, 106.0);
        Cost {
            systematic: true,
            ..cost
        }
        .widen(&mut e);
        assert_eq!(e.interval, Interval::new(93.0, 114.0));
    }

    #[test]
    fn a_missing_bound_stays_missing_or_counts_in_full() {
        let mut open = estimate(20.0, 0.0, 0.0);
        open.interval = Interval {
            lo: None,
            hi: Some(21.0),
        };
        let cost = Cost::from_estimate(&open).times(2.0);
        assert_eq!((cost.below, cost.above), (40.0, 2.0));
        cost.widen(&mut open);
        assert_eq!(open.interval.lo, None);
    }

    #[test]
    fn scale_and_shift_by_hand() {
        let e = scaled(shifted(estimate(10.0, 8.0, 14.0), 2.0), 0.5, "ns");
        assert_eq!(
            (e.value, e.interval, e.unit.as_str()),
            (6.0, Interval::new(5.0, 8.0), "ns")
        );
    }

    #[test]
    fn costs_add_up_by_hand() {
        let a = Cost::from_estimate(&estimate(20.0, 12.0, 24.0));
        let twice = a.times(2.0);
        assert_eq!((twice.value, twice.below, twice.above), (40.0, 16.0, 8.0));
        let sum = a.and(twice);
        assert_eq!(sum.value, 60.0);
        assert_eq!((sum.below, sum.above, sum.systematic), (24.0, 12.0, false));
        let bounds = Cost {
            systematic: true,
            ..a
        };
        assert!(a.and(bounds).systematic && bounds.and(a).systematic);
    }
}
