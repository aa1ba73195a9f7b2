//! Edge interpolation: where the loop may wait, it spins to an edge of the
//! tick, does the activity, and counts polls of the clock to the next edge.
//!
//! A shot that took `k` ticks from edge to edge and `K` polls after the activity
//! says `T = k d - K c - o`: `c` the cost of a poll, `o` what lies between the
//! edge and the start, and between the end and the first poll. A calibrating
//! shot beside it does nothing (`T = 0`): `0 = k0 d - K0 c - o`. The difference
//! is free of `o`: `T = (k - k0) d + (K0 - K) c`, and `c = k0 d / K0` but for
//! `o / d`, which is about 1e-4 and scales the result by that.

//!
//! What hits the polls (an interrupt, a busy neighbour on the core) hits them
//! for most of a tick, not only the activity, so the pairs scatter with heavy
//! tails on both sides. The estimate is therefore their median, with the
//! interval of order statistics: the duration of a typical execution.

use undertick_units::{Estimate, Interval};

use super::ends::two_ends;
use crate::quantile::binomial_ranks;

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
    pairs: Vec<Pair>,
    dropped: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    shot: EdgeShot,
    null: EdgeShot,
}

impl EdgeSamples {
    /// Of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a shot and the calibrating shot beside it.
    pub fn push(&mut self, shot: EdgeShot, null: EdgeShot) {
        self.pairs.push(Pair { shot, null });
    }

    /// A pair was disturbed and does not count.
    pub fn drop_pair(&mut self) {
        self.dropped += 1;
    }

    /// Pairs that count.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        self.pairs.len() as u64
    }

    /// Pairs dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Cost of a poll, ns, by the median calibrating shot; `None` before a poll
    /// was counted.
    #[must_use]
    pub fn poll_cost_ns(&self, tick_ns: f64) -> Option<f64> {
        let mut costs: Vec<f64> = (self.pairs.iter())
            .filter(|pair| pair.null.polls > 0)
            .map(|pair| pair.null.ticks as f64 * tick_ns / pair.null.polls as f64)
            .collect();
        costs.sort_by(f64::total_cmp);
        (!costs.is_empty()).then(|| median(&costs))
    }

    /// The duration, ns: median of the pairs, interval from order statistics
    /// (edge jitter, drift of the poll cost, the activity's own scatter), and
    /// one poll at either end, which would not average out if polls and ticks
    /// were locked. `None` where there are too few pairs for both bounds: below
    /// 5 at 90 %.
    #[must_use]
    pub fn estimate(&self, tick_ns: f64, level: f64) -> Option<Estimate> {
        let cost_ns = self.poll_cost_ns(tick_ns)?;
        let mut durations: Vec<f64> = (self.pairs.iter())
            .map(|Pair { shot, null }| {
                let polls = null.polls as f64 - shot.polls as f64;
                (shot.ticks - null.ticks) as f64 * tick_ns + polls * cost_ns
            })
            .collect();
        durations.sort_by(f64::total_cmp);
        let n = durations.len() as u64;
        let ranks = binomial_ranks(n, 0.5, level);
        let at = |rank: u64| durations[rank as usize - 1];
        let poll = cost_ns * two_ends(0.0, f64::INFINITY, level);
        Some(Estimate {
            value: median(&durations),
            interval: Interval::new((at(ranks.lo?) - poll).max(0.0), at(ranks.hi?) + poll),
            level,
            unit: "ns".into(),
            method: "median of shots at tick edges, polls interpolated".into(),
            n,
            n_effective: n as f64,
            notes: Vec::new(),
        })
    }
}

/// Of ascending values, at least one.
fn median(values: &[f64]) -> f64 {
    let n = values.len();
    0.5 * (values[(n - 1) / 2] + values[n / 2])
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
