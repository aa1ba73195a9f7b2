//! A mean with the distribution of its error, so that independent means can be combined.

use undertick_units::{Estimate, Interval};

use crate::batches::batch_size;
use crate::inflation::FEW;
use crate::long_run::{SpreadOfMean, spread_of_mean, student};
use crate::sample::{TOO_SHORT, too_skewed};
use crate::skewed::{FEWEST, Shape, mend_cumulants};

/// The mean of numbers in their order, with the cumulants of its error. The cumulants of sums and
/// differences of independent means are the sums of these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeanOf {
    pub(crate) value: f64,
    /// Variance of the mean.
    pub(crate) variance: f64,
    /// Degrees of freedom of `variance`.
    pub(crate) degrees: f64,
    /// Third cumulant of the mean.
    third: f64,
    /// Fourth cumulant of the mean.
    fourth: f64,
    /// Whether there are enough values to correct for their skewness.
    mendable: bool,
    pub(crate) n: usize,
    pub(crate) n_effective: f64,
    /// Spread of the mean; `None` below two values: no interval.
    spread: Option<SpreadOfMean>,
}

impl MeanOf {
    /// Computes the mean; `None` for no values.
    pub(crate) fn from_values(values: &[f64]) -> Option<Self> {
        let n = values.len();
        // Relative to the first number: large numbers with little spread keep their digits.
        let origin = *values.first()?;
        let mean_of = |of: &[f64]| of.iter().map(|x| x - origin).sum::<f64>() / of.len() as f64;
        let value = origin + mean_of(values);
        let size = batch_size(n);
        let means: Vec<f64> = values.chunks_exact(size).map(mean_of).collect();
        let mut mean = Self {
            value,
            variance: 0.0,
            degrees: 0.0,
            third: 0.0,
            fourth: 0.0,
            mendable: false,
            n,
            n_effective: n as f64,
            spread: spread_of_mean(&means),
        };
        let Some(spread) = mean.spread else {
            return Some(mean);
        };
        mean.degrees = spread.degrees;
        mean.variance = spread.variance * (means.len() * size) as f64 / n as f64;
        let squares: f64 = values.iter().map(|x| (x - value) * (x - value)).sum();
        let variance = squares / (n - 1) as f64;
        if mean.variance > 0.0 {
            mean.n_effective = mean.n_effective.min(variance / mean.variance);
        }
        let shape = Shape::from_weighted(values.iter().map(|&x| (x, 1.0)));
        mean.third = shape.skewness * variance.powf(1.5) / mean.n_effective.powi(2);
        mean.fourth = shape.excess * variance * variance / mean.n_effective.powi(3);
        mean.mendable = mean.n_effective >= FEWEST;
        Some(mean)
    }

    /// Returns this mean less `factor` times an independent one; degrees of freedom by Welch (1947)
    /// and Satterthwaite (1946).
    pub(crate) fn less(&self, factor: f64, other: &Self) -> Self {
        let theirs = factor * factor * other.variance;
        let variance = self.variance + theirs;
        let fourths = self.variance.powi(2) / self.degrees + theirs.powi(2) / other.degrees;
        Self {
            value: self.value - factor * other.value,
            variance,
            degrees: if fourths > 0.0 {
                variance * variance / fourths
            } else {
                self.degrees.min(other.degrees)
            },
            third: self.third - factor.powi(3) * other.third,
            fourth: self.fourth + factor.powi(4) * other.fourth,
            mendable: self.mendable && other.mendable,
            n: self.n + other.n,
            n_effective: self.n_effective.min(other.n_effective),
            spread: (self.spread.zip(other.spread)).map(|(ours, theirs)| SpreadOfMean {
                too_short: ours.too_short || theirs.too_short,
                ..theirs
            }),
        }
    }

    /// Student's confidence interval, corrected for skewness; one value has no bounds.
    pub(crate) fn interval(&self, level: f64) -> Interval {
        if self.spread.is_none_or(|spread| spread.too_short) {
            return Interval { lo: None, hi: None };
        }
        let mut half = student(level, self.degrees) * self.variance.sqrt();
        let mut centre = self.value;
        if self.mendable && self.variance > 0.0 {
            let excess = self.fourth / (self.variance * self.variance);
            half *= mend_cumulants(self.skewness(), excess, level);
            centre += self.third / (2.0 * self.variance);
        }
        // The interval always contains the value itself, however skewed.
        Interval::new(
            (centre - half).min(self.value),
            (centre + half).max(self.value),
        )
    }

    /// Returns the skewness of the mean itself: that of a single value over the root of n.
    fn skewness(&self) -> f64 {
        if self.variance > 0.0 {
            self.third / self.variance.powf(1.5)
        } else {
            0.0
        }
    }

    /// Returns notes for the reader; `of` names the numbers.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let Some(spread) = self.spread else {
            return vec!["one sample: no interval".into()];
        };
        if self.variance <= 0.0 {
            notes.push("all numbers agree".into());
        }
        if spread.too_short {
            notes.push(TOO_SHORT.into());
        } else if spread.correlation > 0.0 {
            notes.push(format!(
                "widened for a correlation of {:.2} left between batches",
                spread.correlation
            ));
        }
        if (self.n as u64) < FEW {
            notes.push(format!(
                "fewer than {FEW} samples: autocorrelation not tested"
            ));
        }
        if too_skewed(1.0, self.skewness()) {
            notes.push(format!(
                "too few samples for their skewness {:.1}: the interval may be too narrow",
                self.skewness() * self.n_effective.sqrt()
            ));
        }
        notes
    }

    /// Returns the mean as an estimate.
    pub(crate) fn estimate(&self, level: f64, method: &str) -> Estimate {
        Estimate {
            value: self.value,
            interval: self.interval(level),
            level,
            unit: "1".into(),
            method: method.into(),
            n: self.n as u64,
            n_effective: self.n_effective,
            notes: self.notes(),
        }
    }
}
