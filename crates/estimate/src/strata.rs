//! The uncertainty of the common mean of several series of the same quantity, one from each thread.
//!
//! Threads differ, and which threads there are is not a matter of chance. So each thread is a
//! stratum: its mean has its own variance, which its batches show. The variance of the common mean
//! is the sum of these, each weighted by the square of its share (Cochran, *Sampling Techniques*,
//! 3rd ed., eq. 5.5), with Satterthwaite's degrees of freedom (5.16). If the threads were joined
//! into one series, their different levels would look like one very long correlation.

use serde::{Deserialize, Serialize};

use crate::batches::Batches;
use crate::inflation::inflation;
use crate::long_run::{SpreadOfMean, spread_of_mean};
use crate::marks::{Mark, QUANTILES};

/// Number of values below which a series is not closed but continues with the next one.
pub(crate) const LEAST: u64 = 512;

/// Maximum share of the values that may come from series too short for their memory: these count
/// with the variance of a single batch.
const MOST_TOO_SHORT: f64 = 0.1;
/// From this number of series on each counts, however short it is: their errors are independent.
const MANY: u64 = 2;

/// The strata: results of the series that have ended, each from one thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Strata {
    /// Number of values in them.
    pub(crate) n: u64,
    /// The number of these values that came in series of one value: such series do not show their
    /// own scatter.
    alone: u64,
    mean: Pooled,
    /// One entry for each of [`QUANTILES`].
    shares: [Pooled; QUANTILES.len()],
}

/// Pooled variances of sums. For series with n values each: the sum of n^2 times the variance of
/// the mean.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Pooled {
    variance: f64,
    /// Sum of the squares of these, each over its degrees of freedom.
    over_degrees: f64,
    batches: usize,
    /// The largest correlation that was corrected for.
    correlation: f64,
    /// Number of series, and of values in those that were too short for their memory.
    series: u64,
    too_short: u64,
    /// Whether any series scattered more than independent values do.
    inflated: bool,
}

impl Pooled {
    fn add(&mut self, n: u64, spread: &SpreadOfMean, inflated: bool) {
        let variance = (n as f64).powi(2) * spread.variance;
        self.variance += variance;
        self.over_degrees += variance * variance / spread.degrees;
        self.batches += spread.batches;
        self.correlation = self.correlation.max(spread.correlation);
        self.series += 1;
        self.too_short += u64::from(spread.too_short) * n;
        self.inflated |= inflated;
    }

    fn merge(&mut self, other: &Self) {
        self.variance += other.variance;
        self.over_degrees += other.over_degrees;
        self.batches += other.batches;
        self.correlation = self.correlation.max(other.correlation);
        self.series += other.series;
        self.too_short += other.too_short;
        self.inflated |= other.inflated;
    }

    /// Returns the spread of the mean of `n` values.
    fn spread(&self, n: u64) -> SpreadOfMean {
        let degrees = self.variance * self.variance / self.over_degrees;
        SpreadOfMean {
            variance: self.variance / (n as f64).powi(2),
            degrees: if degrees.is_finite() {
                degrees.max(1.0)
            } else {
                f64::MAX // they do not scatter at all
            },
            batches: self.batches,
            correlation: self.correlation,
            too_short: self.series < MANY && self.too_short as f64 > MOST_TOO_SHORT * n as f64,
        }
    }
}

impl Strata {
    /// Adds a series of `n` values that has ended.
    pub(crate) fn add(&mut self, n: u64, sums: &Batches<i128>, marks: &[Mark]) {
        if n == 0 {
            return;
        }
        self.n += n;
        let size = sums.size() as f64;
        let means: Vec<f64> = (sums.sums().iter()).map(|&sum| sum as f64 / size).collect();
        let Some(spread) = spread_of_mean(&means) else {
            self.alone += n;
            return;
        };
        let batched = |spread: SpreadOfMean, batched: u64| SpreadOfMean {
            variance: spread.variance * batched as f64 / n as f64,
            ..spread
        };
        self.mean.add(n, &batched(spread, sums.batched()), false);
        for (pooled, mark) in self.shares.iter_mut().zip(marks) {
            let (spread, inflated) = of_share(mark, n);
            pooled.add(n, &batched(spread, n), inflated);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.alone += other.alone;
        self.mean.merge(&other.mean);
        for (ours, theirs) in self.shares.iter_mut().zip(&other.shares) {
            ours.merge(theirs);
        }
    }

    /// Returns the spread of the mean of all values, whose single values have this variance; `None`
    /// where nothing is known about it.
    pub(crate) fn spread(&self, variance: f64) -> Option<SpreadOfMean> {
        if self.mean.batches == 0 {
            return None;
        }
        let mut pooled = self.mean;
        pooled.variance += self.alone as f64 * variance;
        Some(pooled.spread(self.n))
    }

    /// Returns the inflation for the quantile at that index in [`QUANTILES`]: how many times the
    /// variance of independent values the share of values up to the quantile has, with its degrees
    /// of freedom. `None` where no correlation showed.
    pub(crate) fn inflation(&self, place: usize, p: f64) -> Option<SpreadOfMean> {
        let pooled = self.shares.get(place).filter(|pooled| pooled.inflated)?;
        let spread = pooled.spread(self.n);
        let independent = p * (1.0 - p) / self.n as f64;
        let variance = (spread.variance / independent).max(1.0);
        Some(SpreadOfMean { variance, ..spread })
    }
}

/// Returns the variance of the share that a mark saw in `n` values, and whether it exceeds that of
/// independent ones.
fn of_share(mark: &Mark, n: u64) -> (SpreadOfMean, bool) {
    let size = mark.below.size() as f64;
    let shares: Vec<f64> = (mark.below.sums().iter())
        .map(|&sum| sum as f64 / size)
        .collect();
    let share = if shares.is_empty() {
        mark.p
    } else {
        mark.share()
    };
    let independent = share * (1.0 - share) / n as f64;
    let plain = SpreadOfMean {
        variance: independent,
        degrees: f64::MAX,
        batches: shares.len(),
        correlation: 0.0,
        too_short: false,
    };
    let found = inflation(&shares, size, 0.95).zip(spread_of_mean(&shares));
    match found {
        None => (plain, false),
        Some((inflation, spread)) => {
            let variance = independent * inflation.variance;
            (SpreadOfMean { variance, ..spread }, true)
        }
    }
}
