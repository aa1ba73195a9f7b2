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
mod tests {
    use super::*;

    fn counted(counts: &[i64]) -> ActivityCounts {
        let mut of = ActivityCounts::default();
        counts.iter().for_each(|&count| of.push(count));
        of
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// 240 counts of a fixed irregular sequence, everything calculated from its definition: there
    /// are 60 batches of 4, the first number below 64.
    #[test]
    fn by_definition() {
        let counts: Vec<i64> = (0..240_i64).map(|i| (i * i * 7 + i / 3) % 11 % 4).collect();
        let x: Vec<f64> = counts.iter().map(|&c| c as f64).collect();
        let m = mean(&x);
        let variance = mean(&x.iter().map(|v| v * v).collect::<Vec<_>>()) - m * m;
        let found = Independence::from_counts(&counted(&counts)).unwrap();
        for lag in 1..=LAGS {
            let products: Vec<f64> = x.windows(lag + 1).map(|w| w[0] * w[lag]).collect();
            let r = (mean(&products) - m * m) / variance;
            assert!((found.autocorrelation[lag - 1] - r).abs() < 1e-12, "{lag}");
        }
        let q: f64 = found.autocorrelation.iter().map(|r| 240.0 * r * r).sum();
        // Chi-squared with 4 degrees has the closed form 1 - exp(-q/2) (1 + q/2).
        let p = (-q / 2.0).exp() * (1.0 + q / 2.0);
        assert!((found.p_autocorrelation - p).abs() < 1e-9, "{found:?}");
        let batches: Vec<f64> = x.chunks(4).map(mean).collect();
        let between: f64 =
            batches.iter().map(|b| (b - m) * (b - m)).sum::<f64>() / (batches.len() - 1) as f64;
        assert_eq!(batches.len(), 60);
        assert!((found.batch_ratio - 4.0 * between / variance).abs() < 1e-12);
        let (ratio, degrees) = batch_ratio(&counted(&counts), variance).unwrap();
        assert_eq!((ratio, degrees), (found.batch_ratio, 59.0));
    }

    /// Chi-squared with 2 degrees is exponential.
    #[test]
    fn probabilities_by_hand() {
        assert!((chi_squared(3.0, 2.0) - (1.0 - (-1.5_f64).exp())).abs() < 1e-9);
        assert_eq!(chi_squared(-1.0, 2.0), 0.0);
        let found = |p_autocorrelation, p_batches| Independence {
            autocorrelation: [0.0; LAGS],
            batch_ratio: 1.0,
            p_autocorrelation,
            p_batches,
        };
        assert!(!found(0.0011, 0.0011).is_rejected());
        assert!(found(0.0009, 0.5).is_rejected() && found(0.5, 0.0009).is_rejected());
    }

    #[test]
    fn swinging_and_balancing_counts_are_told_apart() {
        // 32 zeros, 32 ones and so on swing together; 0, 1, 0, 1 balance.
        let swings: Vec<i64> = (0..1024).map(|i| i / 32 % 2).collect();
        let balances: Vec<i64> = (0..1024).map(|i| i % 2).collect();
        let swings = Independence::from_counts(&counted(&swings)).unwrap();
        let balances = Independence::from_counts(&counted(&balances)).unwrap();
        assert!(
            swings.batch_ratio > 10.0 && swings.is_rejected(),
            "{swings:?}"
        );
        assert!(
            balances.batch_ratio < 0.1 && balances.is_rejected(),
            "{balances:?}"
        );
        assert!(balances.autocorrelation[0] < -0.9 && balances.autocorrelation[1] > 0.9);
        assert!(swings.p_batches < 1e-6 && balances.p_batches < 1e-6);
    }

    /// 63 counts are too few, and so are 7 batches.
    #[test]
    fn too_few_say_nothing() {
        let mixed = |n: i64| (0..n).map(|i| i * 5 % 3).collect::<Vec<i64>>();
        assert_eq!(Independence::from_counts(&counted(&mixed(63))), None);
        assert!(Independence::from_counts(&counted(&mixed(64))).is_some());
        assert_eq!(Independence::from_counts(&counted(&[1; 100])), None);
        assert_eq!(batch_ratio(&counted(&mixed(7)), 1.0), None);
        let (_, degrees) = batch_ratio(&counted(&mixed(8)), 1.0).unwrap();
        assert_eq!(degrees, 7.0);
        let (_, degrees) = batch_ratio(&counted(&mixed(63)), 1.0).unwrap();
        assert_eq!(degrees, 62.0);
        let (_, degrees) = batch_ratio(&counted(&mixed(64)), 1.0).unwrap();
        assert_eq!(degrees, 31.0);
    }
}
