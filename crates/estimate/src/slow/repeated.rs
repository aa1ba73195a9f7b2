//! Figures from repetitions of an experiment: the mean of their results, and the standard deviation
//! of a single one, which is what eq. 10a predicts.

use statrs::distribution::{ChiSquared, ContinuousCDF};
use undertick_units::{Estimate, Interval};

use crate::long_run::student;

/// Mean of the repetitions with Student's interval. `least_sd` is the smallest standard deviation
/// of one repetition that is believed (e.g. a tick more in one of them), because few repetitions
/// may all agree by chance. `None` below two repetitions.
#[must_use]
pub fn mean_of_repetitions(
    values: &[f64],
    least_sd: f64,
    level: f64,
    unit: &str,
) -> Option<Estimate> {
    let (mean, variance) = moments(values)?;
    let n = values.len() as f64;
    let sd = variance.sqrt().max(least_sd);
    let half = student(level, n - 1.0) * sd / n.sqrt();
    Some(Estimate {
        value: mean,
        interval: Interval::new(mean - half, mean + half),
        level,
        unit: unit.to_owned(),
        method: "Student's t over the repetitions".to_owned(),
        n: values.len() as u64,
        n_effective: n,
        notes: Vec::new(),
    })
}

/// Standard deviation of one repetition, with the interval for normal results (chi-squared). `None`
/// below two repetitions.
#[must_use]
pub fn spread_of_repetitions(values: &[f64], level: f64, unit: &str) -> Option<Estimate> {
    let (_, variance) = moments(values)?;
    let degrees = values.len() as f64 - 1.0;
    let chi = ChiSquared::new(degrees).ok()?;
    let bound = |p: f64| (variance * degrees / chi.inverse_cdf(p)).sqrt();
    Some(Estimate {
        value: variance.sqrt(),
        interval: Interval::new(bound(0.5 + level / 2.0), bound(0.5 - level / 2.0)),
        level,
        unit: unit.to_owned(),
        method: "chi-squared over the repetitions".to_owned(),
        n: values.len() as u64,
        n_effective: values.len() as f64,
        notes: Vec::new(),
    })
}

/// Mean and variance (divided by n - 1).
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((mean, squares / (n - 1.0)))
}

#[cfg(test)]
mod tests;
