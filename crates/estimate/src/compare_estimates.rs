//! Comparison of two finished estimates whose samples are no longer available: ratio, difference,
//! and the probability that chance alone sets them this far apart.

use statrs::distribution::{ContinuousCDF, StudentsT};
use undertick_units::{Estimate, Interval};

use crate::long_run::{normal_quantile, student};

/// One estimate against another.
#[derive(Clone, Debug, PartialEq)]
pub struct Versus {
    /// The second over the first; `None` unless both are above 0, without bounds unless both
    /// intervals are above 0.
    pub ratio: Option<Estimate>,
    /// The second less the first, in their unit.
    pub difference: Estimate,
    /// Probability that two estimates of one truth are as far apart as these, or farther; `None`
    /// where an interval lacks a bound that this needs.
    pub p: Option<f64>,
}

/// Minimum degrees of freedom assumed for an interval.
const LEAST_DEGREES: f64 = 1.0;
/// From here on the t distribution is treated as normal.
const MANY_DEGREES: f64 = 1e6;

/// Compares the second estimate with the first, from their intervals alone.
///
/// Ratio and difference get their bounds from the distances of both estimates' bounds, added as
/// squares (MOVER; Zou and Donner 2008), for a ratio on logarithms. The distances are taken for
/// Student's t with `n_effective - 1` degrees. On that basis they are rescaled to `level`, and
/// chance is judged by Welch and Satterthwaite's degrees. An estimate of level 1 has hard bounds:
/// these are added as they are, and a difference within them counts as none.
///
/// The intervals must contain all variation between the two; variation that they omit (two hours,
/// two rooms) is reported as a difference here.
///
/// ```
/// use undertick_estimate::versus;
/// use undertick_units::{Estimate, Interval};
///
/// let of = |value: f64| Estimate {
///     value,
///     interval: Interval::new(value * 0.98, value * 1.02),
///     level: 0.95,
///     unit: "ns".into(),
///     method: String::new(),
///     n: 1000,
///     n_effective: 8.0,
///     notes: vec![],
/// };
/// let found = versus(&of(100.0), &of(120.0), 0.95);
/// assert!((found.ratio.unwrap().value - 1.2).abs() < 1e-12);
/// assert!(found.p.unwrap() < 1e-4);
/// ```
#[must_use]
pub fn versus(a: &Estimate, b: &Estimate, level: f64) -> Versus {
    let linear = Scaled::both(a, b, |x| x);
    let is_positive = |e: &Estimate| e.value > 0.0;
    let bounded = |e: &Estimate| e.interval.lo.is_none_or(|lo| lo > 0.0);
    let ratio = (is_positive(a) && is_positive(b)).then(|| {
        let scaled = (bounded(a) && bounded(b)).then(|| Scaled::both(a, b, f64::ln));
        (b.value / a.value, scaled)
    });
    let on_logarithms = ratio.as_ref().and_then(|(_, scaled)| scaled.as_ref());
    Versus {
        p: on_logarithms.unwrap_or(&linear).p(),
        difference: estimate(a, b, b.value - a.value, linear.interval(level), level),
        ratio: ratio.map(|(value, scaled)| {
            let none = Interval { lo: None, hi: None };
            let bounds = scaled.map_or(none, |s| s.interval(level));
            let back = Interval {
                lo: bounds.lo.map(f64::exp),
                hi: bounds.hi.map(f64::exp),
            };
            Estimate {
                unit: "1".to_owned(),
                ..estimate(a, b, value, back, level)
            }
        }),
    }
}

fn estimate(a: &Estimate, b: &Estimate, value: f64, interval: Interval, level: f64) -> Estimate {
    Estimate {
        value,
        interval,
        level,
        unit: a.unit.clone(),
        method: "from both intervals, MOVER".to_owned(),
        n: a.n.saturating_add(b.n),
        n_effective: a.n_effective.min(b.n_effective),
        notes: Vec::new(),
    }
}

/// Two estimates on a scale on which they are subtracted.
struct Scaled {
    difference: f64,
    /// Distances from the first to its lower and its upper bound, then those of the second.
    arms: [[Arm; 2]; 2],
}

/// Distance from an estimate to one of its bounds.
#[derive(Clone, Copy)]
enum Arm {
    Missing,
    /// The truth is not farther than this.
    Hard(f64),
    /// A standard error, and its degrees of freedom.
    Soft {
        error: f64,
        degrees: f64,
    },
}

impl Scaled {
    fn both(a: &Estimate, b: &Estimate, onto: fn(f64) -> f64) -> Self {
        Self {
            difference: onto(b.value) - onto(a.value),
            arms: [a, b].map(|e| {
                [e.interval.lo, e.interval.hi].map(|bound| {
                    let arm = bound.map(|bound| (onto(bound) - onto(e.value)).abs());
                    Arm::from_estimate(e, arm.filter(|arm| arm.is_finite()))
                })
            }),
        }
    }

    /// The arms that set one bound: the bound towards lower values takes the second's lower arm and
    /// the first's upper one.
    fn towards(&self, lower: bool) -> [Arm; 2] {
        let [a, b] = self.arms;
        if lower { [a[1], b[0]] } else { [a[0], b[1]] }
    }

    fn interval(&self, level: f64) -> Interval {
        let arm = |lower: bool| {
            let [a, b] = self.towards(lower);
            let (soft_a, hard_a) = a.at(level)?;
            let (soft_b, hard_b) = b.at(level)?;
            Some(soft_a.hypot(soft_b) + hard_a + hard_b)
        };
        Interval {
            lo: arm(true).map(|arm| self.difference - arm),
            hi: arm(false).map(|arm| self.difference + arm),
        }
    }

    fn p(&self) -> Option<f64> {
        let arms = self.towards(self.difference > 0.0);
        let (mut hard, mut variance, mut squares) = (0.0, 0.0, 0.0);
        for arm in arms {
            match arm {
                Arm::Missing => return None,
                Arm::Hard(arm) => hard += arm,
                Arm::Soft { error, degrees } => {
                    let square = error * error;
                    variance += square;
                    squares += square * square / degrees;
                }
            }
        }
        let apart = self.difference.abs() - hard;
        if apart <= 0.0 {
            return Some(1.0);
        }
        if variance == 0.0 {
            return Some(0.0);
        }
        let degrees = if squares > 0.0 {
            variance * variance / squares
        } else {
            f64::INFINITY
        };
        Some(two_sided(apart / variance.sqrt(), degrees))
    }
}

impl Arm {
    fn from_estimate(estimate: &Estimate, arm: Option<f64>) -> Self {
        let degrees = (estimate.n_effective - 1.0).max(LEAST_DEGREES);
        match arm {
            None => Self::Missing,
            Some(arm) if estimate.level >= 1.0 => Self::Hard(arm),
            Some(arm) => Self::Soft {
                error: arm / quantile(estimate.level, degrees),
                degrees,
            },
        }
    }

    /// Returns how far away the bound of that level lies: the part by chance, and the certain part.
    fn at(self, level: f64) -> Option<(f64, f64)> {
        match self {
            Self::Missing => None,
            Self::Hard(arm) => Some((0.0, arm)),
            Self::Soft { error, degrees } => Some((error * quantile(level, degrees), 0.0)),
        }
    }
}

fn quantile(level: f64, degrees: f64) -> f64 {
    if degrees >= MANY_DEGREES || !degrees.is_finite() {
        normal_quantile(level)
    } else {
        student(level, degrees)
    }
}

/// Standard error of an estimate, derived from its confidence interval: half its width, by
/// Student's t with `n_effective - 1` degrees. For hard bounds, that of a value drawn evenly
/// between them. `None` without both bounds.
#[must_use]
pub fn standard_error(estimate: &Estimate) -> Option<f64> {
    of_half_width(estimate, estimate.interval.half_width()?)
}

/// Standard error of the logarithm of the estimate; `None` unless the interval lies above 0.
#[must_use]
pub fn standard_error_of_ln(estimate: &Estimate) -> Option<f64> {
    let (lo, hi) = (estimate.interval.lo?, estimate.interval.hi?);
    if !(lo > 0.0 && hi >= lo) {
        return None;
    }
    of_half_width(estimate, (hi / lo).ln() / 2.0)
}

fn of_half_width(estimate: &Estimate, half: f64) -> Option<f64> {
    let error = match Arm::from_estimate(estimate, Some(half.abs()).filter(|half| half.is_finite()))
    {
        Arm::Missing => return None,
        Arm::Hard(half) => half / 3.0_f64.sqrt(),
        Arm::Soft { error, .. } => error,
    };
    Some(error)
}

/// Probability that Student's t lies this far from 0, or farther, on either side.
pub(crate) fn two_sided(t: f64, degrees: f64) -> f64 {
    let degrees = degrees.clamp(LEAST_DEGREES / 4.0, MANY_DEGREES);
    let t = StudentsT::new(0.0, 1.0, degrees).map(|t_of| 2.0 * t_of.sf(t.abs()));
    t.unwrap_or(1.0).min(1.0)
}

#[cfg(test)]
#[path = "compare_estimates_tests.rs"]
mod tests;
