//! Means over bursts, and their uncertainty as means over the whole run.

use undertick_units::{Estimate, Interval};

use super::relative::Run;
use crate::long_run::student;

/// Minimum number of bursts for a confidence interval.
pub(super) const LEAST_BURSTS: usize = 6;

/// Share of the bursts that are shorter than the time examined in each.
const SHORT: f64 = 0.05;

/// A mean over bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OverBursts {
    pub(super) mean: f64,
    /// Variance of the mean, about that over the whole run; `None` below six bursts.
    pub(super) variance: Option<f64>,
    /// Degrees of freedom of `variance`.
    pub(super) degrees: f64,
    pub(super) bursts: usize,
}

/// Weighted mean of one value for each burst, and its variance by successive differences (von
/// Neumann 1941; for systematic samples Wolter 1984, estimator 2): half the mean square of the
/// differences of neighbours, over the number of bursts. Slow changes cancel in it, as they should:
/// bursts on a grid follow them.
pub(super) fn over_bursts(values: &[f64], weights: &[f64]) -> OverBursts {
    let bursts = values.len();
    let total: f64 = weights.iter().sum();
    let mean = (values.iter().zip(weights))
        .map(|(x, w)| x * w)
        .sum::<f64>()
        / total;
    let n = bursts as f64;
    // The contribution of each burst to the mean, times n.
    let own: Vec<f64> = (values.iter().zip(weights))
        .map(|(x, w)| w * n / total * (x - mean))
        .collect();
    let squares: f64 = own.windows(2).map(|w| (w[1] - w[0]) * (w[1] - w[0])).sum();
    OverBursts {
        mean,
        variance: (bursts >= LEAST_BURSTS).then(|| squares / (2.0 * (n - 1.0)) / n),
        // Degrees for overlapping differences of independent normal values.
        degrees: 2.0 * (n - 1.0) * (n - 1.0) / (3.0 * n - 4.0).max(1.0),
        bursts,
    }
}

impl OverBursts {
    /// Returns the mean as a share, by the score interval for the number of independent samples
    /// that has this variance, at most `samples`. Where no burst differs, each counts once.
    pub(super) fn share(&self, samples: usize, level: f64, method: &str) -> Estimate {
        let p = self.mean.clamp(0.0, 1.0);
        let spread = p * (1.0 - p);
        let effective = match self.variance {
            Some(variance) if spread > 0.0 => (spread / variance).min(samples as f64),
            _ => self.bursts as f64,
        };
        let mut notes = Vec::new();
        let interval = match self.variance {
            Some(_) => score(p, effective, student(level, self.degrees)),
            None => {
                notes.push(too_few(self.bursts));
                Interval { lo: None, hi: None }
            }
        };
        Estimate {
            value: p,
            interval,
            level,
            unit: "1".into(),
            method: method.into(),
            n: samples as u64,
            n_effective: effective,
            notes,
        }
    }
}

/// The note beside a figure without an interval.
pub(super) fn too_few(bursts: usize) -> String {
    format!("{bursts} of at least {LEAST_BURSTS} bursts: no interval")
}

/// The score interval of a share of n, `z` standard deviations wide.
pub(super) fn score(p: f64, n: f64, z: f64) -> Interval {
    let shrink = 1.0 + z * z / n;
    let centre = (p + z * z / (2.0 * n)) / shrink;
    let half = z / shrink * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    Interval::new(
        (centre - half).max(0.0).min(p),
        (centre + half).min(1.0).max(p),
    )
}

/// Returns the time examined in each burst, s: that of a short one.
pub(super) fn window(run: &Run) -> f64 {
    let mut lengths: Vec<f64> = (run.bursts.iter())
        .map(|burst| run.samples[burst.clone()].iter().map(|s| s.seconds).sum())
        .collect();
    lengths.sort_unstable_by(f64::total_cmp);
    lengths[(SHORT * (lengths.len() - 1) as f64) as usize]
}

/// Returns for each burst the mean of `of` (a figure of a sample) over its first `window` seconds.
pub(super) fn over_time(run: &Run, window: f64, of: impl Fn(usize) -> f64) -> Vec<f64> {
    (run.bursts.iter())
        .map(|burst| {
            let (mut seen, mut sum) = (0.0, 0.0);
            for i in burst.clone() {
                let time = run.samples[i].seconds.min(window - seen);
                if time <= 0.0 {
                    break;
                }
                seen += time;
                sum += time * of(i);
            }
            sum / seen
        })
        .collect()
}
