//! A finished series, and the estimates it supports.

use undertick_units::{Estimate, Interval};

use crate::histogram::{Bin, Distribution};
use crate::inflation::{FEW, Inflation, inflation};
use crate::long_run::{SpreadOfMean, is_correlated, normal, spread_of_mean, student};
use crate::marks::{Mark, QUANTILES};
use crate::moments::Moments;
use crate::quantile::{Ranks, binomial_ranks};
use crate::series::Series;
use crate::skewed::mend;
use crate::strata::Strata;

/// Median, in clock steps, below which the mean is the figure to use.
const STEPS_FOR_MEDIAN: f64 = 20.0;
/// Cochran's rule: the mean of n values is normal enough from n > 25 G^2, G
/// their skewness (*Sampling Techniques*, 3rd ed., section 2.15).
const COCHRAN: f64 = 25.0;
/// Quantiles above this are tails.
const TAIL: f64 = 0.9;
/// Number of independent values beyond a tail's quantile from which it has an upper bound.
const FEWEST_BEYOND: f64 = 20.0;
/// The note where [`SpreadOfMean::too_short`] is set.
pub(crate) const TOO_SHORT: &str = "too few samples for their autocorrelation: they are worth fewer than ten independent ones, \
     so there is no interval; record for longer";

/// A finished series. Estimates are in ticks.
#[derive(Clone, Debug)]
pub struct Sample {
    pub(crate) series: Series,
    distribution: Distribution,
    over_time: Option<SpreadOfMean>,
}

impl Sample {
    pub(crate) fn new(series: Series) -> Self {
        Self {
            distribution: series.histogram.distribution(),
            series,
            over_time: None,
        }
    }

    /// Returns whether the values come from more than one thread, with a series for each thread.
    #[must_use]
    pub fn is_of_threads(&self) -> bool {
        self.series.closed.is_some()
    }

    /// Takes into account the spread of the mean over common slices of time
    /// ([`crate::spread_over_time`]). Threads that become slow together are not independent, which
    /// no single thread shows: where this variance is the larger one, the intervals use it.
    pub fn allow_for_time(&mut self, over_time: SpreadOfMean) {
        self.over_time = Some(over_time);
    }

    /// Returns the variance of the mean of all values.
    fn spread(&self) -> Option<(SpreadOfMean, Option<f64>)> {
        let n = self.moments().n();
        let Some(strata) = &self.series.closed else {
            let means = self.batch_means();
            let batched = self.series.sums.batched() as f64 / n as f64;
            return spread_of_mean(&means).map(|spread| {
                let variance = spread.variance * batched;
                (SpreadOfMean { variance, ..spread }, None)
            });
        };
        let spread = strata.spread(self.moments().variance().unwrap_or(0.0))?;
        match self.over_time {
            Some(over_time) if over_time.variance > spread.variance => {
                Some((over_time, Some(over_time.variance / spread.variance)))
            }
            _ => Some((spread, None)),
        }
    }

    fn batch_means(&self) -> Vec<f64> {
        let size = self.series.sums.size() as f64;
        (self.series.sums.sums().iter())
            .map(|&sum| sum as f64 / size)
            .collect()
    }

    /// Returns count, sum, variance and extremes.
    #[must_use]
    pub fn moments(&self) -> &Moments {
        &self.series.moments
    }

    /// Returns the histogram, ascending.
    #[must_use]
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// The mean in ticks, by batch means. `None` for no values; one value has no confidence
    /// interval.
    ///
    /// With a clock that steps by `granularity` ticks (0.0: none), the mean of the readings is
    /// Beilner's tick-count mean (eq. 6). It is unbiased while program and clock are asynchronous,
    /// so it is not widened by the step. If all readings agree, the interval says how far from a
    /// whole number of steps the truth may be without one reading in n having shown it.
    #[must_use]
    pub fn mean(&self, level: f64, granularity: f64) -> Option<Estimate> {
        let n = self.moments().n();
        let value = self.moments().mean()?;
        let mut notes = Vec::new();
        let mut interval = Interval { lo: None, hi: None };
        let mut effective = n as f64;
        if let Some((spread, together)) = self.spread() {
            let mut half = spread.half_width(level);
            let variance = self.moments().variance().unwrap_or(0.0);
            if variance > 0.0 {
                effective = effective.min(variance / spread.variance);
            } else if granularity > 0.0 {
                half = granularity * unseen_share(n, level);
                notes.push(
                    "all readings agree: right only if the program is not locked to the clock"
                        .into(),
                );
            }
            let shape = self.distribution.shape();
            let mend = mend(shape, effective, level);
            half *= mend.factor;
            let centre = value + mend.shift * variance.sqrt() / effective;
            // The interval always contains the value itself, however skewed.
            interval = Interval::new((centre - half).min(value), (centre + half).max(value));
            if spread.too_short {
                interval = Interval { lo: None, hi: None };
                notes.push(TOO_SHORT.into());
            } else if spread.correlation > 0.0 {
                notes.push(format!(
                    "widened for a correlation of {:.2} left between batches",
                    spread.correlation
                ));
            }
            if let Some(times) = together {
                notes.push(format!(
                    "its threads become slow together: variance times {times:.2}, from slices of time"
                ));
            }
            if n < FEW {
                notes.push(format!(
                    "fewer than {FEW} samples: autocorrelation not tested"
                ));
            }
            if too_skewed(effective, shape.skewness) {
                notes.push(format!(
                    "too few samples for their skewness {:.1}: the interval may be too narrow",
                    shape.skewness
                ));
            }
        } else {
            notes.push("one sample: no interval".into());
        }
        Some(Estimate {
            value,
            interval,
            level,
            unit: "ticks".into(),
            method: "mean, batch means".into(),
            n,
            n_effective: effective,
            notes,
        })
    }

    /// The `p`-quantile in ticks, by order statistics. `None` for no values. A bound is missing
    /// where its rank falls outside the sample. The upper bound of a quantile above 0.9 is also
    /// missing where fewer than 20 independent values lie beyond it: they do not show how far the
    /// tail reaches.
    ///
    /// The value is the order statistic of rank ceil(n p), to the width of its histogram bin. If
    /// the indicator `x <= q` is autocorrelated, n is divided by the variance inflation f that its
    /// batch means show, and the level is met with Student's t. A reading may be off by one step of
    /// the clock either way, so the bounds are moved out by `granularity` ticks.
    #[must_use]
    pub fn quantile(&self, p: f64, level: f64, granularity: f64) -> Option<Estimate> {
        let n = self.moments().n();
        let value = self.inside(self.bin_of(p)?.middle());
        // A series too short for its memory shows only part of a correlation.
        let too_short = self.spread().is_some_and(|(spread, _)| spread.too_short);
        let inflation = self.inflation(p, level).map(|f| Inflation {
            too_short: f.too_short || too_short,
            ..f
        });
        let effective = n as f64 / inflation.map_or(1.0, |f| f.variance);
        let mut ranks = widened_ranks(n, p, level, inflation);
        if p > TAIL && effective * (1.0 - p) < FEWEST_BEYOND {
            ranks.hi = None;
        }
        let bound = |rank: Option<u64>, edge: fn(&Bin) -> i64, step: f64| {
            let bin = self.distribution.at_rank(rank?)?;
            Some(self.inside(edge(&bin) as f64) + step)
        };
        let mut notes = Vec::new();
        let is_too_short = inflation.is_some_and(|f| f.too_short);
        if is_too_short {
            notes.push(TOO_SHORT.into());
        } else if ranks.lo.is_none() || ranks.hi.is_none() {
            notes.push(format!(
                "too few samples for both bounds of the {p} quantile"
            ));
        }
        if let Some(f) = inflation.filter(|f| !f.too_short) {
            notes.push(format!(
                "widened for autocorrelation: variance times {:.2}",
                f.variance
            ));
        }
        if granularity > 0.0 && value.abs() < STEPS_FOR_MEDIAN * granularity {
            notes.push(format!(
                "{:.1} steps of the clock: known to a step only, use the mean",
                value / granularity
            ));
        }
        Some(Estimate {
            value,
            interval: Interval {
                lo: bound(ranks.lo, |b| b.lo, -granularity),
                hi: bound(ranks.hi, |b| b.hi, granularity),
            },
            level,
            unit: "ticks".into(),
            method: "order statistics".into(),
            n,
            n_effective: effective,
            notes,
        })
    }

    /// The mean of exactly these values, in ticks; `None` for no values. The interval covers only
    /// the uncertainty of the clock: each of two readings is behind by up to a step of
    /// `granularity` ticks. So a difference is off by the difference of two uniform errors, whose
    /// variance is step^2 / 6, and the variance of the mean of n is an n-th of that.
    #[must_use]
    pub fn own_mean(&self, level: f64, granularity: f64) -> Option<Estimate> {
        let n = self.moments().n();
        let value = self.moments().mean()?;
        let half = match self.moments().variance() {
            Some(variance) if variance > 0.0 => {
                (normal(level) * granularity / (6.0 * n as f64).sqrt()).min(granularity)
            }
            // All readings agree, perhaps because the program keeps step with the clock.
            _ => granularity,
        };
        Some(Estimate {
            value,
            interval: Interval::new(value - half, value + half),
            level,
            unit: "ticks".into(),
            method: "of this run".into(),
            n,
            n_effective: n as f64,
            notes: Vec::new(),
        })
    }

    /// The `p`-quantile of exactly these values, in ticks; `None` for no values. The interval is a
    /// step of the clock, `granularity` ticks, either way and the width of the histogram's bin.
    #[must_use]
    pub fn own_quantile(&self, p: f64, granularity: f64) -> Option<Estimate> {
        let n = self.moments().n();
        let bin = self.bin_of(p)?;
        Some(Estimate {
            value: self.inside(bin.middle()),
            interval: Interval::new(
                self.inside(bin.lo as f64) - granularity,
                self.inside(bin.hi as f64) + granularity,
            ),
            level: 1.0,
            unit: "ticks".into(),
            method: "of this run".into(),
            n,
            n_effective: n as f64,
            notes: Vec::new(),
        })
    }

    /// Returns the bin that contains the order statistic of rank ceil(n p).
    fn bin_of(&self, p: f64) -> Option<Bin> {
        let n = self.moments().n();
        let rank = ((p * n as f64).ceil() as u64).clamp(1, n.max(1));
        self.distribution.at_rank(rank)
    }

    /// Limits `x` to the extremes: bins are wider than the values in them, and the extremes are
    /// known exactly.
    fn inside(&self, x: f64) -> f64 {
        match (self.moments().min(), self.moments().max()) {
            (Some(lo), Some(hi)) => x.clamp(lo as f64, hi as f64),
            _ => x,
        }
    }

    /// Returns how much more the share of values below the quantile scatters than that of
    /// independent values; `None` if no correlation shows.
    fn inflation(&self, p: f64, level: f64) -> Option<Inflation> {
        Some(self.inflation_and_share(p, level)?.0)
    }

    /// Returns the inflation, and the share of values up to the threshold at which it was measured.
    pub(crate) fn inflation_and_share(&self, p: f64, level: f64) -> Option<(Inflation, f64)> {
        let logit = |p: f64| (p / (1.0 - p)).ln();
        let nearest = |mark: &&Mark| (logit(mark.p) - logit(p)).abs();
        if let Some(strata) = &self.series.closed {
            return Some((self.inflation_of_threads(strata, p, level)?, p));
        }
        let mark = (self.series.marks.iter()).min_by(|a, b| nearest(a).total_cmp(&nearest(b)))?;
        let size = mark.below.size() as f64;
        let shares: Vec<f64> = (mark.below.sums().iter())
            .map(|&sum| sum as f64 / size)
            .collect();
        if shares.len() < FEW as usize || shares.iter().all(|share| *share == shares[0]) {
            return Some((self.inflation_of_mean(level)?, p));
        }
        Some((inflation(&shares, size, level)?, mark.share()))
    }

    /// Combines several threads: the inflation that each showed, and what they show together.
    fn inflation_of_threads(&self, strata: &Strata, p: f64, level: f64) -> Option<Inflation> {
        let logit = |p: f64| (p / (1.0 - p)).ln();
        let far = |place: &usize| (logit(QUANTILES[*place]) - logit(p)).abs();
        let place = (0..QUANTILES.len()).min_by(|a, b| far(a).total_cmp(&far(b)))?;
        let own = strata.inflation(place, QUANTILES[place]);
        let too_short = own.is_some_and(|own| own.too_short);
        let own = own.map(|own| (own.variance, own.degrees));
        let together = self
            .spread()
            .and_then(|(spread, times)| times.zip(Some(spread.degrees)));
        let (variance, degrees) = match (own, together) {
            (None, None) => return None,
            (Some(own), None) => own,
            (None, Some(together)) => together,
            (Some(own), Some(together)) => (own.0 * together.0, own.1.min(together.1)),
        };
        Some(Inflation {
            variance,
            quantile_ratio: student(level, degrees) / normal(level),
            too_short,
        })
    }

    /// Returns the inflation of the mean, for a quantile that ran away from the threshold that
    /// watches it: only a drift does that.
    fn inflation_of_mean(&self, level: f64) -> Option<Inflation> {
        let size = self.series.sums.size() as f64;
        let means = self.batch_means();
        if !is_correlated(&means) {
            return None;
        }
        let spread = spread_of_mean(&means)?;
        let independent = self.moments().variance()? / (means.len() as f64 * size);
        Some(Inflation {
            variance: (spread.variance / independent).max(1.0),
            quantile_ratio: student(level, spread.degrees) / normal(level),
            too_short: spread.too_short,
        })
    }
}

/// Cochran's rule: too few independent values for this skewness.
pub(crate) fn too_skewed(n_effective: f64, skewness: f64) -> bool {
    n_effective < COCHRAN * skewness * skewness
}

/// Returns the ranks in a sample of n / f independent values, stretched to n.
pub(crate) fn widened_ranks(n: u64, p: f64, level: f64, inflation: Option<Inflation>) -> Ranks {
    let Some(f) = inflation else {
        return binomial_ranks(n, p, level);
    };
    if f.too_short {
        return Ranks { lo: None, hi: None };
    }
    let stretch = f.variance * f.quantile_ratio * f.quantile_ratio;
    let independent = (n as f64 / stretch).floor() as u64;
    if independent == 0 {
        return Ranks { lo: None, hi: None };
    }
    let stretch = n as f64 / independent as f64;
    let ranks = binomial_ranks(independent, p, level);
    Ranks {
        lo: (ranks.lo).map(|r| ((r as f64 * stretch).floor() as u64).clamp(1, n)),
        // Rank r counts the r - 1 values below it.
        hi: (ranks.hi).map(|r| (((r - 1) as f64 * stretch).ceil() as u64 + 1).clamp(1, n)),
    }
}

/// Returns the largest share that n readings can hide with probability 1 - level: (1 - x)^n = (1 -
/// level) / 2.
fn unseen_share(n: u64, level: f64) -> f64 {
    1.0 - ((1.0 - level) / 2.0).powf(1.0 / n as f64)
}

#[cfg(test)]
mod tests;
