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
mod tests;
