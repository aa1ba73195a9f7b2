//! Edge interpolation: where the loop may wait, it spins to an edge of the
//! tick, does the activity, and counts polls of the clock to the next edge.
//!
//! A shot that took `k` ticks from edge to edge and `K` polls after the activity
//! says `T = k d - K c - o`: `c` the cost of a poll, `o` what lies between the
//! edge and the start, and between the end and the first poll. A calibrating
//! shot beside it does nothing (`T = 0`): `0 = k0 d - K0 c - o`. The difference
//! is free of `o`: `T = (k - k0) d + (K0 - K) c`, and `c = k0 d / K0` but for
//! `o / d`, which is about 1e-4 and scales the result by that.

use undertick_units::{Estimate, Interval};

use super::ends::two_ends;
use crate::batches::Batches;
use crate::long_run::{SpreadOfMean, spread_of_mean, student};

/// A wait from edge to edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeShot {
    /// Whole ticks from the edge before to the edge after.
    pub ticks: i64,
    /// Polls between the activity and the edge after.
    pub polls: u64,
}

/// Shots of one activity, each with a calibrating shot beside it.
#[derive(Clone, Debug, Default)]
pub struct EdgeSamples {
    pairs: u64,
    ticks: i64,
    polls: i64,
    null_ticks: i64,
    null_polls: i64,
    /// Differences in ticks and in polls, by batches.
    batches: Batches<Differences>,
    dropped: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Differences {
    ticks: i64,
    polls: i64,
}

impl core::ops::AddAssign for Differences {
    fn add_assign(&mut self, other: Self) {
        self.ticks += other.ticks;
        self.polls += other.polls;
    }
}

impl EdgeSamples {
    /// Of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a shot and the calibrating shot beside it.
    pub fn push(&mut self, shot: EdgeShot, null: EdgeShot) {
        self.pairs += 1;
        self.ticks += shot.ticks;
        self.polls += shot.polls as i64;
        self.null_ticks += null.ticks;
        self.null_polls += null.polls as i64;
        let difference = Differences {
            ticks: shot.ticks - null.ticks,
            polls: null.polls as i64 - shot.polls as i64,
        };
        self.batches.extend(&[0], |_| difference);
    }

    /// A pair was disturbed and does not count.
    pub fn drop_pair(&mut self) {
        self.dropped += 1;
    }

    /// Pairs that count.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Pairs dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Cost of a poll, ns; `None` before a poll was counted.
    #[must_use]
    pub fn poll_cost_ns(&self, tick_ns: f64) -> Option<f64> {
        (self.null_polls > 0).then(|| self.null_ticks as f64 * tick_ns / self.null_polls as f64)
    }

    /// The mean duration, ns. The interval holds the scatter of the shots (edge
    /// jitter, drift of the poll cost, the activity's own) and one poll at
    /// either end, which would not average out if polls and ticks were locked.
    /// `None` below two pairs or without polls.
    #[must_use]
    pub fn estimate(&self, tick_ns: f64, level: f64) -> Option<Estimate> {
        let cost_ns = self.poll_cost_ns(tick_ns)?;
        let n = self.pairs as f64;
        let value = (self.ticks - self.null_ticks) as f64 * tick_ns / n
            + (self.null_polls - self.polls) as f64 * cost_ns / n;
        let size = self.batches.size() as f64;
        let means: Vec<f64> = (self.batches.sums().iter())
            .map(|d| (d.ticks as f64 * tick_ns + d.polls as f64 * cost_ns) / size)
            .collect();
        let spread = spread_of_mean(&means)?;
        let half = half_width(&spread, cost_ns, level);
        let mut notes = Vec::new();
        if spread.too_short {
            notes.push("the shots drift: the interval is that of one batch".to_owned());
        }
        Some(Estimate {
            value,
            interval: Interval::new((value - half).max(0.0), value + half),
            level,
            unit: "ns".into(),
            method: "tick edges, polls interpolated".into(),
            n: self.pairs,
            n_effective: spread.batches as f64,
            notes,
        })
    }
}

fn half_width(spread: &SpreadOfMean, cost_ns: f64, level: f64) -> f64 {
    let sd = spread.variance.sqrt() / cost_ns;
    let heavier = student(level, spread.degrees) / student(level, 1e6);
    cost_ns * two_ends(sd * heavier, f64::INFINITY, level)
}

#[cfg(test)]
mod tests {
    use super::{EdgeSamples, EdgeShot};

    /// Tick 1 ms, 1000 polls of 1 us: 950 polls are left after 50 us; over
    /// 1.3 ms, 700 of the second tick.
    #[test]
    fn by_hand() {
        for (ticks, polls, truth) in [(1, 950, 50_000.0), (2, 700, 1_300_000.0)] {
            let mut samples = EdgeSamples::new();
            for _ in 0..10 {
                samples.push(
                    EdgeShot { ticks, polls },
                    EdgeShot {
                        ticks: 1,
                        polls: 1000,
                    },
                );
            }
            let e = samples.estimate(1e6, 0.9).unwrap();
            assert!((e.value - truth).abs() < 1e-6, "{e:?}");
            // No scatter: the two ends of a poll are left, 0.6838 of 1 us.
            assert!(
                (e.interval.half_width().unwrap() - 683.77).abs() < 0.1,
                "{e:?}"
            );
        }
    }

    #[test]
    fn too_little_is_none() {
        let mut samples = EdgeSamples::new();
        assert_eq!(samples.estimate(1e6, 0.9), None);
        samples.push(
            EdgeShot { ticks: 1, polls: 5 },
            EdgeShot { ticks: 1, polls: 6 },
        );
        assert_eq!(samples.estimate(1e6, 0.9), None);
    }
}
