//! What readings of the clock cost while a program was recorded, and what follows for costs that
//! were measured at another time.

use serde::{Deserialize, Serialize};
use undertick_units::{Estimate, Interval};

/// Samples of what a reading of the clock costs, taken by a recorded thread now and then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadCost {
    /// Samples, each of some readings one after the other; none that was interrupted.
    pub samples: u64,
    /// Their mean, ticks of one reading.
    pub mean_ticks: f64,
    /// Standard deviation of a sample, likewise.
    pub deviation_ticks: f64,
}

/// By what readings of the clock have become dearer or cheaper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// What one costs, over what it cost.
    pub ratio: f64,
    /// Half-width of that.
    pub error: f64,
}

impl Change {
    /// What makes readings dearer makes the stores and checks around them dearer, too: costs moved
    /// by 1.0 to 1.4 times as much, between calibrations and over series of recordings.
    const GAIN: f64 = 1.2;
    /// In one recording that may be this much less or more.
    const MAY_DIFFER: f64 = 0.5;

    /// From what one cost to what one costs; `None` where one of them is not known, or cannot
    /// be.
    #[must_use]
    pub fn between(from: Option<&Estimate>, to: Option<&Estimate>) -> Option<Self> {
        let (from, to) = (from?, to?);
        let share = |of: &Estimate| Some(of.interval.half_width()? / of.value);
        let ratio = to.value / from.value;
        let error = ratio * share(from)?.hypot(share(to)?);
        let is_one = ratio > 0.0 && ratio.is_finite() && error.is_finite();
        is_one.then_some(Self { ratio, error })
    }

    /// Changes a cost accordingly, and widens its interval by what is not sure of that.
    pub fn apply(&self, cost: &mut Estimate) {
        let factor = (1.0 + Self::GAIN * (self.ratio - 1.0)).max(0.0);
        let unsure = Self::GAIN * self.error + Self::MAY_DIFFER * (self.ratio - 1.0).abs();
        let more = unsure * cost.value.abs();
        let Interval { lo, hi } = cost.interval;
        cost.interval = Interval {
            lo: lo.map(|lo| lo * factor - more),
            hi: hi.map(|hi| hi * factor + more),
        };
        cost.value *= factor;
    }
}

impl ReadCost {
    /// Fewer samples say nothing of the rest of the time.
    const LEAST_SAMPLES: u64 = 8;

    /// Of all rings of a recording, by how many samples each has.
    pub(super) fn of_all(rings: impl Iterator<Item = Self>) -> Option<Self> {
        let (mut samples, mut sum, mut squares) = (0, 0.0, 0.0);
        for ring in rings {
            let n = ring.samples as f64;
            samples += ring.samples;
            sum += n * ring.mean_ticks;
            squares += n * (ring.deviation_ticks.powi(2) + ring.mean_ticks.powi(2));
        }
        let n = samples as f64;
        let mean_ticks = sum / n;
        let variance = (squares / n - mean_ticks * mean_ticks).max(0.0);
        let deviation_ticks = variance.sqrt();
        let is_one = samples > 0 && mean_ticks.is_finite() && deviation_ticks.is_finite();
        is_one.then_some(Self {
            samples,
            mean_ticks,
            deviation_ticks,
        })
    }

    /// What a reading cost in the mean, ns; `None` where there are too few samples.
    pub(super) fn mean_ns(&self, ns_per_tick: f64) -> Option<Estimate> {
        if self.samples < Self::LEAST_SAMPLES || self.mean_ticks <= 0.0 {
            return None;
        }
        let value = self.mean_ticks * ns_per_tick;
        let n = self.samples as f64;
        let half = 1.96 * self.deviation_ticks * ns_per_tick / n.sqrt();
        Some(Estimate {
            value,
            interval: Interval::new(value - half, value + half),
            level: 0.95,
            unit: "ns".into(),
            method: "mean of samples in the program".into(),
            n: self.samples,
            n_effective: n,
            notes: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests;
