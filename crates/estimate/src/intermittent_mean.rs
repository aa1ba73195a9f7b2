//! The mean over a time that was observed only at some moments.

use undertick_units::{Estimate, Interval};

use crate::long_run::student;

/// Mean over a time of a quantity, from `values`: one observation in each of as many equally long
/// parts of the time, at a random moment of its part.
///
/// The confidence interval is of the mean over *this* time, not over another time. Where the
/// quantity changes seldom, observations tell more than as many independent values, because each
/// part is observed. The variance is that of successive differences (von Neumann 1941):
/// `sum((v[i+1] - v[i])^2) / (2 (n - 1) n)`. A quantity that stays constant over many observations
/// contributes only at its changes. There it contributes about three times too much (a change is
/// anywhere in its part: 1/6 of a part squared, not 1/2), so the interval is rather too wide. A
/// quantity that differs from observation to observation without order has the usual interval.
/// Student's distribution has two thirds of `n - 1` degrees, the equivalent of successive
/// differences.
///
/// `None` with fewer than two observations.
#[must_use]
pub fn intermittent_mean(values: &[f64], level: f64) -> Option<Estimate> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.windows(2).map(|v| (v[1] - v[0]).powi(2)).sum();
    let variance = squares / (2.0 * (n - 1) as f64 * n as f64);
    let degrees = (2.0 * (n - 1) as f64 / 3.0).max(1.0);
    let half = student(level, degrees) * variance.sqrt();
    Some(Estimate {
        value: mean,
        interval: Interval::new(mean - half, mean + half),
        level,
        unit: "1".into(),
        method: "mean of spaced looks, successive differences".into(),
        n: n as u64,
        n_effective: n as f64,
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
