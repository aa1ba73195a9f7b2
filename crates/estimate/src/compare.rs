//! Two runs against each other: difference and ratio.

use undertick_units::{Estimate, Interval};

use crate::mean::MeanOf;
use crate::numbers::Numbers;

/// Difference of means, `a` less `b`, for runs measured one after the other: batch means of each,
/// Welch and Satterthwaite's degrees of freedom, and a correction for skewness. `None` if a run is
/// empty; without a confidence interval if a run has only one number.
///
/// Whatever else differs between the runs (core speed, temperature, memory layout) is in the
/// difference and not in the interval. [`paired_difference`] removes slow drift.
///
/// ```
/// use undertick_estimate::{Numbers, difference};
///
/// let run = |offset: f64| Numbers::new((0..1000).map(|i| f64::from(i * 617 % 1000) + offset).collect());
/// let d = difference(&run(100.0), &run(0.0), 0.95).unwrap();
/// assert_eq!(d.value, 100.0);
/// assert!(d.interval.lo.unwrap() > 70.0 && d.interval.hi.unwrap() < 130.0);
/// ```
#[must_use]
pub fn difference(a: &Numbers, b: &Numbers, level: f64) -> Option<Estimate> {
    let (a, b) = (
        MeanOf::from_values(a.values())?,
        MeanOf::from_values(b.values())?,
    );
    let mut estimate = a
        .less(1.0, &b)
        .estimate(level, "difference of means, Welch");
    estimate.notes = notes_of(&a, &b);
    Some(estimate)
}

/// Ratio of means, `a` over `b`, for runs measured one after the other: the ratios r for which the
/// mean of `a` less r times the mean of `b` may be 0 (Fieller 1954), with the interval of
/// [`difference`]. `None` if a run is empty or the mean of `b` is 0. There is no confidence
/// interval where that of `b` contains 0.
#[must_use]
pub fn ratio(a: &Numbers, b: &Numbers, level: f64) -> Option<Estimate> {
    let (a, b) = (
        MeanOf::from_values(a.values())?,
        MeanOf::from_values(b.values())?,
    );
    let residual = |ratio: f64| a.less(ratio, &b);
    let notes = notes_of(&a, &b);
    fieller(&a, &b, residual, level, "ratio of means, Fieller", notes)
}

/// Mean of `a - b` over pairs measured in turn (a, b, a, b, ...). Drift slower than one pair
/// cancels; correlation between pairs widens the confidence interval. `None` for empty series and
/// series of unequal length.
#[must_use]
pub fn paired_difference(a: &[f64], b: &[f64], level: f64) -> Option<Estimate> {
    let residual = MeanOf::from_values(&residuals(a, b, 1.0)?)?;
    Some(residual.estimate(level, "mean difference of pairs, batch means"))
}

/// Mean of `a` over mean of `b`, from pairs measured in turn, by Fieller's method on the pairs'
/// `a - r b`. Returns `None` as [`paired_difference`] does, and if the mean of `b` is 0. There is
/// no confidence interval where that of `b` contains 0.
#[must_use]
pub fn paired_ratio(a: &[f64], b: &[f64], level: f64) -> Option<Estimate> {
    let (mean_a, mean_b) = (MeanOf::from_values(a)?, MeanOf::from_values(b)?);
    let at_one = residuals(a, b, mean_a.value / mean_b.value)?;
    if mean_b.value == 0.0 {
        return None;
    }
    let notes = MeanOf::from_values(&at_one)?.notes();
    let residual = |ratio: f64| {
        let of = residuals(a, b, ratio).expect("as long as each other");
        MeanOf::from_values(&of).expect("not empty")
    };
    let method = "ratio of means of pairs, Fieller";
    fieller(&mean_a, &mean_b, residual, level, method, notes)
}

/// The `p`-quantile of `a` less that of `b`, for runs measured one after the other. The distances
/// from each quantile to its bounds are added as squares (MOVER; Zou and Donner 2008). `None` if a
/// run is empty. A bound is missing where one of those that it needs is missing.
#[must_use]
pub fn difference_of_quantiles(a: &Numbers, b: &Numbers, p: f64, level: f64) -> Option<Estimate> {
    let (a, b) = (a.quantile(p, level)?, b.quantile(p, level)?);
    Some(combined(
        &a,
        &b,
        "difference of quantiles, MOVER",
        |x| x,
        |x| x,
    ))
}

/// The `p`-quantile of `a` over that of `b`, both positive: as [`difference_of_quantiles`] on their
/// logarithms. `None` if a run is empty or a quantile is not positive. A bound is missing where one
/// of those that it needs is missing or not positive.
#[must_use]
pub fn ratio_of_quantiles(a: &Numbers, b: &Numbers, p: f64, level: f64) -> Option<Estimate> {
    let (a, b) = (a.quantile(p, level)?, b.quantile(p, level)?);
    if a.value <= 0.0 || b.value <= 0.0 {
        return None;
    }
    Some(combined(
        &a,
        &b,
        "ratio of quantiles, MOVER",
        f64::ln,
        f64::exp,
    ))
}

/// `a - b` on the scale `onto`, with the bounds' distances from the values
/// added as squares, and `back`.
fn combined(
    a: &Estimate,
    b: &Estimate,
    method: &str,
    onto: fn(f64) -> f64,
    back: fn(f64) -> f64,
) -> Estimate {
    let value = onto(a.value) - onto(b.value);
    // The distance of a bound; `None` where the scale has no such bound.
    let arm = |of: &Estimate, bound: Option<f64>| {
        Some((onto(bound?) - onto(of.value)).abs()).filter(|arm| arm.is_finite())
    };
    let both = |x: Option<f64>, y: Option<f64>| Some(x?.hypot(y?));
    let below = both(arm(a, a.interval.lo), arm(b, b.interval.hi));
    let above = both(arm(a, a.interval.hi), arm(b, b.interval.lo));
    let mut notes = a.notes.clone();
    notes.extend(
        b.notes
            .iter()
            .filter(|&note| !a.notes.contains(note))
            .cloned(),
    );
    Estimate {
        value: back(value),
        interval: Interval {
            lo: below.map(|arm| back(value - arm)),
            hi: above.map(|arm| back(value + arm)),
        },
        level: a.level,
        unit: "1".into(),
        method: method.into(),
        n: a.n + b.n,
        n_effective: a.n_effective.min(b.n_effective),
        notes,
    }
}

fn residuals(a: &[f64], b: &[f64], ratio: f64) -> Option<Vec<f64>> {
    let pair = a.iter().zip(b).map(|(a, b)| a - ratio * b);
    (a.len() == b.len()).then(|| pair.collect())
}

/// Steps in the search for a bound; each divides the distance by the denominator's mean in
/// half-widths, which is at least 1.1 (see below).
const STEPS: usize = 400;
/// Minimum distance of the denominator from 0, in its half-widths: nearer to 0 there are no bounds.
const APART: f64 = 1.1;

/// Solves for the ratios r whose residual `a - r b` may have the mean 0.
fn fieller(
    a: &MeanOf,
    b: &MeanOf,
    residual: impl Fn(f64) -> MeanOf,
    level: f64,
    method: &str,
    notes: Vec<String>,
) -> Option<Estimate> {
    if b.value == 0.0 {
        return None;
    }
    let value = a.value / b.value;
    let mut estimate = residual(value).estimate(level, method);
    estimate.value = value;
    estimate.notes = notes;
    estimate.interval = Interval { lo: None, hi: None };
    let own = b.interval(level);
    let (Some(lo), Some(hi)) = (own.lo, own.hi) else {
        return Some(estimate);
    };
    let towards_zero = if b.value > 0.0 {
        b.value - lo
    } else {
        hi - b.value
    };
    if b.value.abs() <= APART * towards_zero {
        (estimate.notes).push("the denominator may be 0: no interval".into());
        return Some(estimate);
    }
    // The bound of the residual's mean, in ratios: at the required bound it is r itself.
    let bound = |upper: bool| {
        let mut r = value;
        for _ in 0..STEPS {
            let of = residual(r);
            let interval = of.interval(level);
            let end = if upper { interval.hi? } else { interval.lo? };
            let next = (a.value + (end - of.value)) / b.value;
            if (next - r).abs() <= 1e-12 * r.abs() {
                return Some(next);
            }
            r = next;
        }
        None
    };
    let (x, y) = (bound(false), bound(true));
    estimate.interval = if b.value > 0.0 {
        Interval { lo: x, hi: y }
    } else {
        Interval { lo: y, hi: x }
    };
    if x.is_none() || y.is_none() {
        (estimate.notes).push("a bound was not found".into());
    }
    Some(estimate)
}

fn notes_of(a: &MeanOf, b: &MeanOf) -> Vec<String> {
    let of = |which: &str, mean: &MeanOf| -> Vec<String> {
        (mean.notes().iter())
            .map(|note| format!("{which}: {note}"))
            .collect()
    };
    [of("first", a), of("second", b)].concat()
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
