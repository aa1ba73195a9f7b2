//! Estimates from numbers of any unit, held in memory in their order.

use undertick_units::{Estimate, Interval};

use crate::batches::batch_size;
use crate::inflation::inflation;
use crate::mean::MeanOf;
use crate::quantile::{binomial_ranks, interpolated};
use crate::sample::{TOO_SHORT, widened_ranks};

/// Numbers in the order in which they were measured.
///
/// ```
/// use undertick_estimate::Numbers;
///
/// let numbers = Numbers::new((0..1000).map(|i| f64::from(i * 617 % 1000)).collect());
/// let median = numbers.quantile(0.5, 0.95).unwrap();
/// assert_eq!(median.value, 499.5);
/// assert!(median.interval.lo.unwrap() < 499.5 && median.interval.hi.unwrap() > 499.5);
/// ```
#[derive(Clone, Debug)]
pub struct Numbers {
    values: Vec<f64>,
    sorted: Vec<f64>,
}

impl Numbers {
    /// Takes finite numbers.
    ///
    /// # Panics
    /// If a number is infinite or not a number.
    #[must_use]
    pub fn new(values: Vec<f64>) -> Self {
        assert!(values.iter().all(|x| x.is_finite()), "finite numbers only");
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Self { values, sorted }
    }

    /// Returns how many numbers there are.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.values.len() as u64
    }

    /// The mean, by batch means, with Student's confidence interval corrected for skewness
    /// (Edgeworth expansion to order 1/n). `None` for no numbers; one number has no confidence
    /// interval.
    #[must_use]
    pub fn mean(&self, level: f64) -> Option<Estimate> {
        Some(MeanOf::from_values(&self.values)?.estimate(level, "mean, batch means"))
    }

    /// Returns the numbers in the order given.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// The `p`-quantile, 0 < p < 1, by order statistics. Those of the median are interpolated
    /// (Hettmansperger and Sheather 1986), so that a small sample's interval has the level asked
    /// for, rather than the next one that two order statistics have. `None` for no numbers. A bound
    /// is missing where its rank falls outside the sample.
    #[must_use]
    pub fn quantile(&self, p: f64, level: f64) -> Option<Estimate> {
        let n = self.sorted.len();
        let rank = ((p * n as f64).ceil() as usize).clamp(1, n.max(1));
        let mut value = *self.sorted.get(rank - 1)?;
        let is_median = p == 0.5;
        if is_median && n.is_multiple_of(2) {
            value += (self.sorted[n / 2] - value) / 2.0;
        }
        let mut estimate = self.without_interval(value, level, "order statistics");
        let found = self.inflation(value, level);
        let at = |rank: Option<u64>| Some(self.sorted[rank? as usize - 1]);
        let between = |rank: u64, share: f64| {
            let (a, b) = (self.sorted[rank as usize - 1], self.sorted[rank as usize]);
            a + (b - a) * share
        };
        estimate.interval = match (
            found,
            is_median.then(|| interpolated(n as u64, level)).flatten(),
        ) {
            (None, Some((rank, share))) => {
                estimate.method = "order statistics, interpolated".into();
                let mirrored = n as u64 - rank;
                Interval::new(between(rank, share), between(mirrored, 1.0 - share))
            }
            (found, _) => {
                let ranks = match found {
                    Some(_) => widened_ranks(n as u64, p, level, found),
                    None => binomial_ranks(n as u64, p, level),
                };
                Interval {
                    lo: at(ranks.lo),
                    hi: at(ranks.hi),
                }
            }
        };
        if found.is_some_and(|found| found.too_short) {
            estimate.notes.push(TOO_SHORT.into());
        } else if estimate.interval.lo.is_none() || estimate.interval.hi.is_none() {
            (estimate.notes).push(format!(
                "too few samples for both bounds of the {p} quantile"
            ));
        }
        if let Some(found) = found {
            estimate.n_effective = n as f64 / found.variance;
        }
        if let Some(found) = found.filter(|found| !found.too_short) {
            estimate.notes.push(format!(
                "widened for autocorrelation: variance times {:.2}",
                found.variance
            ));
        }
        Some(estimate)
    }

    /// Returns how much more the share of numbers up to `value` scatters between batches than that
    /// of independent ones.
    fn inflation(&self, value: f64, level: f64) -> Option<crate::inflation::Inflation> {
        let size = batch_size(self.values.len());
        let shares: Vec<f64> = (self.values.chunks_exact(size))
            .map(|chunk| chunk.iter().filter(|&&x| x <= value).count() as f64 / size as f64)
            .collect();
        inflation(&shares, size as f64, level)
    }

    fn without_interval(&self, value: f64, level: f64, method: &str) -> Estimate {
        Estimate {
            value,
            interval: Interval { lo: None, hi: None },
            level,
            unit: "1".into(),
            method: method.into(),
            n: self.n(),
            n_effective: self.n() as f64,
            notes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
