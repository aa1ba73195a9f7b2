//! Tests whether the counts of an activity are independent from cycle to cycle.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::counts::{ActivityCounts, LAGS};
use crate::long_run::variance_and_lag1;

/// Minimum number of cycles for a test.
const FEW: u64 = 64;

/// Results of the tests of independence of the counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Independence {
    /// Autocorrelation of the counts at lags 1, 2, ...
    pub autocorrelation: [f64; LAGS],
    /// Variance of batch means over that expected of independent counts: above 1 the counts swing
    /// together, below 1 they balance each other.
    pub batch_ratio: f64,
    /// Probability of autocorrelations this large if independent (Box and
    /// Pierce 1970).
    pub p_autocorrelation: f64,
    /// Probability of a batch ratio this far from 1, both sides.
    pub p_batches: f64,
}

impl Independence {
    /// Tests the counts of one activity. `None` if there are too few or all agree.
    #[must_use]
    pub fn from_counts(counts: &ActivityCounts) -> Option<Self> {
        let (n, variance) = (counts.n as f64, counts.variance());
        if counts.n < FEW || variance <= 0.0 {
            return None;
        }
        let mean = counts.mean();
        let mut autocorrelation = [0.0; LAGS];
        for (lag, r) in autocorrelation.iter_mut().enumerate() {
            let pairs = n - (lag + 1) as f64;
            *r = (counts.products[lag] as f64 / pairs - mean * mean) / variance;
        }
        let q: f64 = autocorrelation.iter().map(|r| n * r * r).sum();
        let (batch_ratio, degrees) = batch_ratio(counts, variance)?;
        let below = chi_squared(batch_ratio * degrees, degrees);
        Some(Self {
            autocorrelation,
            batch_ratio,
            p_autocorrelation: 1.0 - chi_squared(q, LAGS as f64),
            p_batches: 2.0 * below.min(1.0 - below),
        })
    }

    /// Returns whether independence is rejected, with 1 false alarm in 1000 per test.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        self.p_autocorrelation < 1e-3 || self.p_batches < 1e-3
    }
}

/// Variance of batch means times their size over the variance of the counts,
/// and its degrees of freedom, at 16 to 63 batches.
pub(super) fn batch_ratio(counts: &ActivityCounts, variance: f64) -> Option<(f64, f64)> {
    let mut size = counts.batches.size() as f64;
    let mut means: Vec<f64> = (counts.batches.sums().iter())
        .map(|&sum| sum as f64 / size)
        .collect();
    while means.len() >= 64 {
        means = means.chunks_exact(2).map(|p| (p[0] + p[1]) / 2.0).collect();
        size *= 2.0;
    }
    if means.len() < 8 {
        return None;
    }
    let (between, _) = variance_and_lag1(&means);
    Some((between * size / variance, (means.len() - 1) as f64))
}

pub(super) fn chi_squared(x: f64, degrees: f64) -> f64 {
    ChiSquared::new(degrees).map_or(f64::NAN, |c| c.cdf(x.max(0.0)))
}

#[cfg(test)]
mod tests;
