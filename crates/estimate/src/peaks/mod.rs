//! Peaks of the rates of a probe: how many there are, how much of the time the machine spends in
//! each, and what that costs.
//!
//! **Question.** A loop of known work is timed again and again. Its rate falls into peaks: the
//! fastest is the undisturbed machine, each other one is caused by a disturber. How many peaks are
//! real, what share has each, how slow is it, and how much of the machine is lost?
//!
//! **Method.** Each rate is divided by that of a reference beside it, which no memory access slows,
//! so that a core that changes its speed makes no peaks. The number of peaks is that of
//! [`modes_of_bins`](crate::modes_of_bins), of the time per work, tested with the number of
//! independent samples *within* the peaks. Shares are means over bursts. Their variance is that of
//! successive differences of bursts, which a disturber that comes and goes slowly does not inflate.
//!
//! **Caveats.** A share describes this run. What a disturber does while the probe sleeps is known
//! only as far as bursts are like the time between them. Peaks that touch count as one; a peak that
//! is seen in fewer than three bursts does not count.

mod bursts;
mod count;
mod describe;
mod histogram;
mod location;
mod of_histogram;
mod predict;
mod relative;
#[cfg(test)]
mod tests;

use undertick_units::Estimate;

pub use histogram::RateHistogram;
pub use of_histogram::peaks_of_histogram;
pub use predict::{predict, predict_times};

/// One sample of the probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Number of the burst, ascending. Samples of a burst are neighbours in time and
    /// may depend on each other. Bursts begin on a regular grid, jittered or not.
    pub burst: u32,
    /// Work per time, in any unit.
    pub rate: f64,
    /// The rate of a part that memory does not slow (a loop in registers), measured
    /// beside it, in any unit; 1 where there is none.
    pub reference: f64,
    /// The time that the sample took, s.
    pub seconds: f64,
}

/// Criteria for a peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakOptions {
    /// Level of the intervals; 0.95 by default.
    pub level: f64,
    /// Minimum share of a peak, of the samples or of the time; 0.01 by default. A peak that is
    /// proven to hold less of both, or has less than half of it, is joined to its neighbour.
    pub least_share: f64,
    /// Maximum probability that rates with one peak are reported to have more; 0.01 by default.
    pub false_alarm: f64,
    /// Width of a bin of the histogram, as a share of the clean rate; 0.01 by default.
    pub bin: f64,
    /// Maximum number of peaks; 8 by default. The best proven ones are kept.
    pub at_most: usize,
    /// Step of the clock as a share of the time of a clean sample; 0 (default) derives it from
    /// equal rates.
    pub step: f64,
    /// Minimum number of bursts that show a peak, where there are that many; 3 by default.
    pub least_bursts: usize,
}

impl Default for PeakOptions {
    fn default() -> Self {
        Self {
            level: 0.95,
            least_share: 0.01,
            false_alarm: 0.01,
            bin: 0.01,
            at_most: 8,
            step: 0.0,
            least_bursts: 3,
        }
    }
}

impl PeakOptions {
    /// Returns the options with each number in its range, and the default for NaN.
    fn sane(&self) -> Self {
        let default = Self::default();
        let within = |x: f64, lo: f64, hi: f64, default: f64| match x.is_finite() {
            true => x.clamp(lo, hi),
            false => default,
        };
        Self {
            level: within(self.level, 0.5, 0.9999, default.level),
            least_share: within(self.least_share, 0.0, 0.5, default.least_share),
            false_alarm: within(self.false_alarm, 1e-12, 0.5, default.false_alarm),
            bin: within(self.bin, 1e-4, 1.0, default.bin),
            step: within(self.step, 0.0, 1.0, default.step),
            ..*self
        }
    }
}

/// One peak.
#[derive(Clone, Debug, PartialEq)]
pub struct Peak {
    /// The middle of the shortest stretch that holds half of its samples, relative to
    /// the reference, then to the clean peak (which is 1).
    pub rate: Estimate,
    /// Time per work over that of the clean peak: 1 / `rate`.
    pub slowdown: Estimate,
    /// Share of the samples that fall into it under a schedule like this, in this run.
    pub sample_share: Estimate,
    /// Share of the run's time.
    pub time_share: Estimate,
    /// Lower limit of its relative rates, excluded.
    pub lo: f64,
    /// Upper limit of its relative rates, included.
    pub hi: f64,
    /// Number of bursts that show it.
    pub bursts: usize,
    /// Maximum probability that rates without the valley between it and the next faster peak show
    /// one proven this well. `None` for the clean peak.
    pub p_value: Option<f64>,
}

/// The peaks of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Peaks {
    /// The peaks, fastest first: the first is the clean one.
    pub peaks: Vec<Peak>,
    /// The clean peak's rate over the reference's, in their units.
    pub clean_rate: Estimate,
    /// 1 less the mean work per time over the clean rate: the share of the machine that is lost.
    /// Every moment of the run counts equally.
    pub mean_loss: Estimate,
    /// Interquartile range of the bursts' median reference over its median: how much
    /// the reference moved over the run.
    pub reference_drift: Estimate,
    /// The rates, relative to the clean one.
    pub histogram: RateHistogram,
    /// Number of usable samples.
    pub n: u64,
    /// Number of samples dropped because one of their figures was not a positive number.
    pub unusable: u64,
    /// Number of bursts.
    pub bursts: usize,
    /// Number of independent samples with which the number of peaks was tested.
    pub n_effective: f64,
}

/// Finds the peaks of a run of the probe; `None` without a usable sample.
///
/// **What the intervals describe.** A share is one of *this run*: its time from the first burst to
/// the last, sleeps included. Bursts are a sample of it, one from each place of the grid. Each
/// burst weighs the same in `time_share`. Of each burst only the time up to the length of a short
/// one is examined: a burst has a fixed number of samples, so one that begins undisturbed and is
/// then disturbed lasts longer, and would overstate the disturbance. With fewer than six bursts
/// there is no confidence interval.
#[must_use]
pub fn peaks(samples: &[RateSample], options: &PeakOptions) -> Option<Peaks> {
    let options = options.sane();
    let run = relative::Run::from_samples(samples, options.step)?;
    let found = count::count(&run, &options);
    Some(describe::describe(&run, &found, &options))
}
