//! What readings of the clock cost while a program was recorded, and what follows for costs that
//! were measured at another time.

use serde::{Deserialize, Serialize};
use undertick_units::{Estimate, Interval};

/// Samples of what a reading of the clock costs, taken by a recorded thread now and then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadCost {
    /// Samples, each of some readings one after the other; none that was interrupted.
    pub samples: u64,
    /// The shortest of them, ticks of one reading.
    pub least_ticks: f64,
    /// Their mean, likewise.
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
    /// What makes readings dearer makes the stores and checks around them dearer, too: a cost
    /// moves by this power of it. By 1.0 to 1.4, between calibrations and over series of
    /// recordings.
    const POWER: f64 = 1.2;
    /// In one recording the power may be this much less or more.
    const MAY_DIFFER: f64 = 0.5;
    /// No core, and no neighbour, makes readings so much dearer or cheaper.
    const MOST: f64 = 4.0;

    /// From what one cost to what one costs; `None` where one of them is not known, or cannot
    /// be.
    #[must_use]
    pub fn between(from: Option<&Estimate>, to: Option<&Estimate>) -> Option<Self> {
        let (from, to) = (from?, to?);
        let share = |of: &Estimate| Some(of.interval.half_width()? / of.value);
        let ratio = to.value / from.value;
        let error = ratio * share(from)?.hypot(share(to)?);
        let is_one = (1.0 / Self::MOST..=Self::MOST).contains(&ratio) && error.is_finite();
        is_one.then_some(Self { ratio, error })
    }

    /// What a cost is times, after the change.
    fn factor(&self) -> f64 {
        self.ratio.powf(Self::POWER)
    }

    /// Share of a changed cost by which it may be wrong for the change.
    #[must_use]
    pub fn unsure(&self) -> f64 {
        Self::POWER * self.error / self.ratio + Self::MAY_DIFFER * self.ratio.ln().abs()
    }

    /// The cost and its interval after the change, if that were known exactly.
    pub fn scale(&self, cost: &mut Estimate) {
        let Interval { lo, hi } = cost.interval;
        cost.interval = Interval {
            lo: lo.map(|lo| lo * self.factor()),
            hi: hi.map(|hi| hi * self.factor()),
        };
        cost.value *= self.factor();
    }

    /// As [`Self::scale`], and the interval holds what is not sure of that, too.
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
    /// Fewer samples say nothing of the rest of the time.
    const LEAST_SAMPLES: u64 = 8;
    /// Half-width of a mean, in standard errors, at 95 % with so few of them.
    const QUANTILE: f64 = 2.36;
    /// A ring whose mean is this many times the shortest sample of all was interrupted in it.
    const INTERRUPTED: f64 = 3.0;

    /// Of all rings of a recording, each with how many events it has: these count.
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

    /// What a reading cost in the mean, ns; `None` where there are too few samples.
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
