//! The cost of clock readings while a program was recorded, and the correction it implies for
//! costs that were measured at another time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::{Estimate, Interval};

/// Samples of the cost of a clock reading, taken by a recorded thread now and then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadCost {
    /// Number of samples, each of several consecutive readings; none was interrupted.
    pub samples: u64,
    /// The shortest sample, ticks of one reading.
    pub least_ticks: f64,
    /// Mean of the samples, likewise.
    pub mean_ticks: f64,
    /// Standard deviation of the samples, likewise.
    pub deviation_ticks: f64,
}

/// The factor by which readings of the clock have become dearer or cheaper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The present cost of one reading over its former cost.
    pub ratio: f64,
    /// Half-width of the ratio.
    pub error: f64,
}

impl Change {
    /// A cost changes by this power of the ratio: what makes readings dearer also makes the
    /// stores and checks around them dearer. The power was 1.0 to 1.4, between calibrations and
    /// over series of recordings.
    const POWER: f64 = 1.2;
    /// In one recording the power may be lower or higher by this much.
    const MAY_DIFFER: f64 = 0.5;
    /// No core, and no neighbour, changes the cost of readings by more than this factor.
    const MOST: f64 = 4.0;

    /// Returns the change between two costs of a reading; `None` where one of them is unknown or
    /// impossible.
    #[must_use]
    pub fn between(from: Option<&Estimate>, to: Option<&Estimate>) -> Option<Self> {
        let (from, to) = (from?, to?);
        let share = |of: &Estimate| Some(of.interval.half_width()? / of.value);
        let ratio = to.value / from.value;
        let error = ratio * share(from)?.hypot(share(to)?);
        let is_one = (1.0 / Self::MOST..=Self::MOST).contains(&ratio) && error.is_finite();
        is_one.then_some(Self { ratio, error })
    }

    /// The factor by which a cost is multiplied after the change.
    fn factor(&self) -> f64 {
        self.ratio.powf(Self::POWER)
    }

    /// The share of a changed cost that is uncertain because of the change.
    #[must_use]
    pub fn unsure(&self) -> f64 {
        Self::POWER * self.error / self.ratio + Self::MAY_DIFFER * self.ratio.ln().abs()
    }

    /// Changes the cost and its interval as if the change were known exactly.
    pub fn scale(&self, cost: &mut Estimate) {
        let Interval { lo, hi } = cost.interval;
        cost.interval = Interval {
            lo: lo.map(|lo| lo * self.factor()),
            hi: hi.map(|hi| hi * self.factor()),
        };
        cost.value *= self.factor();
    }

    /// As [`Self::scale`], with the uncertainty of the change included in the interval.
    pub fn apply(&self, cost: &mut Estimate) {
        self.scale(cost);
        let more = self.unsure() * cost.value.abs();
        let Interval { lo, hi } = cost.interval;
        cost.interval = Interval {
            lo: lo.map(|lo| lo - more),
            hi: hi.map(|hi| hi + more),
        };
    }
}

impl ReadCost {
    /// Fewer samples do not represent the rest of the time.
    const LEAST_SAMPLES: u64 = 8;
    /// Half-width of a mean, in standard errors, at 95 % with that few samples.
    const QUANTILE: f64 = 2.36;
    /// A ring whose mean is this many times the shortest sample of all had an interrupted sample.
    const INTERRUPTED: f64 = 3.0;

    /// Combines the samples of all rings of a recording, weighted by each ring's number of
    /// events.
    pub(super) fn of_all(rings: impl Iterator<Item = (u64, Self)>) -> Option<Self> {
        let is_one = |(_, ring): &(u64, Self)| {
            let ticks = [ring.least_ticks, ring.mean_ticks, ring.deviation_ticks];
            ring.samples > 0 && ring.mean_ticks > 0.0 && ticks.iter().all(|ticks| ticks.is_finite())
        };
        let rings: Vec<(u64, Self)> = rings.filter(is_one).collect();
        let least_ticks =
            (rings.iter()).fold(f64::INFINITY, |l, (_, ring)| l.min(ring.least_ticks));
        let (mut samples, mut events, mut sum, mut squares) = (0_u64, 0.0, 0.0, 0.0);
        for (received, ring) in &rings {
            if ring.mean_ticks > Self::INTERRUPTED * least_ticks {
                continue;
            }
            let weight = *received as f64;
            samples = samples.saturating_add(ring.samples);
            events += weight;
            sum += weight * ring.mean_ticks;
            squares += weight * (ring.deviation_ticks.powi(2) + ring.mean_ticks.powi(2));
        }
        let mean_ticks = sum / events;
        let variance = (squares / events - mean_ticks * mean_ticks).max(0.0);
        let deviation_ticks = variance.sqrt();
        let is_known = samples > 0 && mean_ticks.is_finite() && deviation_ticks.is_finite();
        is_known.then_some(Self {
            samples,
            least_ticks,
            mean_ticks,
            deviation_ticks,
        })
    }

    /// Mean cost of a reading, ns; `None` where there are too few samples.
    pub(super) fn mean_ns(&self, ns_per_tick: f64) -> Option<Estimate> {
        if self.samples < Self::LEAST_SAMPLES {
            return None;
        }
        let value = self.mean_ticks * ns_per_tick;
        let n = self.samples as f64;
        let half = Self::QUANTILE * self.deviation_ticks * ns_per_tick / n.sqrt();
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
