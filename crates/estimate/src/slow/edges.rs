//! Edge interpolation: where the loop may wait, it spins to an edge of the
//! tick, does the activity, and counts polls of the clock to the next edge, where
//! the next shot may start.
//!
//! A shot that took `k` ticks from edge to edge and `K` polls after the activity gives
//! `T + o + h = k d - K c`. Here `o` is what lies between the edge and the start and between the
//! end and the first poll, and `h` is the time that interrupts took from the polls. Shots around
//! nothing have the same `o` and `h`, and show the cost of a poll: `c = d / K0` but for `o / d`
//! (1e-5). `K0` is the largest number of polls in one of them nearby: an interrupt only makes them
//! fewer, and the speed of polling changes by per cents, but not within a few ticks. The estimate
//! is how far the shots of the activity lie above those around nothing ([`shift`]): the duration of
//! a typical execution. Interrupts disturb about half of all ticks of 1 ms, so a mean would be off
//! by microseconds, and a median would be too imprecise.
//!
//! Shots must not keep step with interrupts that keep step with the clock: the caller has to vary
//! the waits between them.

use undertick_units::{Estimate, Interval};

use super::ends::two_ends;
use crate::shift::shift;

/// A wait from edge to edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeShot {
    /// Whole ticks from the edge before to the edge after.
    pub ticks: i64,
    /// Polls between the activity and the edge after.
    pub polls: u64,
}

impl EdgeShot {
    /// Returns the polls in a tick, if this is a shot around nothing.
    fn tick_polls(&self) -> f64 {
        self.polls as f64 / self.ticks.max(1) as f64
    }
}

/// Number of shots around nothing, before and after a shot, that give the speed of polling.
const NEAR: usize = 4;

/// Shots of a loop's activities and around nothing, in the order of time.
#[derive(Clone, Debug)]
pub struct EdgeSamples {
    /// Each with the number of its activity; `None` around nothing.
    shots: Vec<(Option<usize>, EdgeShot)>,
    dropped: Vec<u64>,
}

impl EdgeSamples {
    /// Creates the samples of a loop with that many activities.
    #[must_use]
    pub fn new(activities: usize) -> Self {
        Self {
            shots: Vec::new(),
            dropped: vec![0; activities],
        }
    }

    /// Adds a shot of that activity, or around nothing; it is later than all before.
    pub fn push(&mut self, activity: Option<usize>, shot: EdgeShot) {
        self.shots.push((activity, shot));
    }

    /// Records a disturbed shot, which does not count.
    pub fn drop_shot(&mut self, activity: Option<usize>) {
        if let Some(dropped) = activity.and_then(|a| self.dropped.get_mut(a)) {
            *dropped += 1;
        }
    }

    /// Returns the number of shots of that activity that count.
    #[must_use]
    pub fn shots(&self, activity: usize) -> u64 {
        let of = |shot: &&(Option<usize>, EdgeShot)| shot.0 == Some(activity);
        self.shots.iter().filter(of).count() as u64
    }

    /// Returns the number of dropped shots of that activity.
    #[must_use]
    pub fn dropped(&self, activity: usize) -> u64 {
        self.dropped.get(activity).copied().unwrap_or(0)
    }

    /// Returns the polls in a tick, from the shots around nothing in the order of time.
    fn speeds(&self) -> Vec<f64> {
        (self.shots.iter())
            .filter(|(activity, _)| activity.is_none())
            .map(|(_, shot)| shot.tick_polls())
            .collect()
    }

    /// Returns the cost of a poll, ns, from the fastest tick; `None` before there was one.
    #[must_use]
    pub fn poll_cost_ns(&self, tick_ns: f64) -> Option<f64> {
        let fastest = self.speeds().into_iter().reduce(f64::max)?;
        Some(tick_ns / fastest.max(1.0))
    }

    /// Returns `T + o + h` of every shot of that activity or around nothing, in ticks.
    fn held_ticks(&self, wanted: Option<usize>) -> Vec<f64> {
        let speeds = self.speeds();
        let mut nothing = 0;
        let mut held = Vec::new();
        for (activity, shot) in &self.shots {
            nothing += usize::from(activity.is_none());
            if *activity == wanted {
                let end = (nothing + NEAR).min(speeds.len());
                let near = &speeds[nothing.saturating_sub(NEAR + 1).min(end)..end];
                let fastest = near.iter().copied().fold(1.0, f64::max);
                held.push(shot.ticks as f64 - shot.polls as f64 / fastest);
            }
        }
        held
    }

    /// The duration of that activity, ns: how far its shots lie above those around nothing. The
    /// interval is that of ranks plus one poll at either end, which would not average out if polls
    /// and ticks were locked. `None` where there are too few shots of either kind: below 4 at 90 %.
    #[must_use]
    pub fn estimate(&self, activity: usize, tick_ns: f64, level: f64) -> Option<Estimate> {
        let shots = self.held_ticks(Some(activity));
        let found = shift(&self.held_ticks(None), &shots, level)?;
        let ends = self.poll_cost_ns(tick_ns)? * two_ends(0.0, f64::INFINITY, level);
        let lo = (found.lo * tick_ns - ends).max(0.0);
        Some(Estimate {
            value: found.value * tick_ns,
            interval: Interval::new(lo, found.hi * tick_ns + ends),
            level,
            unit: "ns".into(),
            method: "shift of shots at tick edges against shots around nothing".into(),
            n: shots.len() as u64,
            n_effective: shots.len() as f64,
            notes: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{EdgeSamples, EdgeShot};

    fn shot(ticks: i64, polls: u64) -> EdgeShot {
        EdgeShot { ticks, polls }
    }

    /// Makes shots around nothing and of one activity alternate.
    fn in_turns(nothing: &[EdgeShot], activity: &[EdgeShot]) -> EdgeSamples {
        let mut samples = EdgeSamples::new(1);
        for (&null, &shot) in nothing.iter().zip(activity) {
            samples.push(None, null);
            samples.push(Some(0), shot);
        }
        samples
    }

    /// Tick 1 ms, 1000 polls of 1 us: 950 are left after 50 us; over 1.3 ms, 700 of
    /// the second tick. Polls twice as slow: half of each.
    #[test]
    fn by_hand() {
        for (null, of_activity, truth) in [
            (shot(1, 1000), shot(1, 950), 50_000.0),
            (shot(1, 1000), shot(2, 700), 1_300_000.0),
            (shot(1, 500), shot(1, 475), 50_000.0),
            (shot(2, 1000), shot(1, 475), 50_000.0),
        ] {
            let e = in_turns(&[null; 10], &[of_activity; 10])
                .estimate(0, 1e6, 0.9)
                .unwrap();
            assert!((e.value - truth).abs() < 1e-6, "{e:?}");
            // No scatter: only the two ends of a poll remain, 0.6838 of it.
            let poll_ns = 1e6 * null.ticks as f64 / null.polls as f64;
            assert!(
                (e.interval.half_width().unwrap() - 0.68377 * poll_ns).abs() < 0.1,
                "{e:?}"
            );
        }
    }

    /// Interrupts of 20 polls in four of ten waits of either kind: of 100
    /// differences 36 + 16 are 50 us, 24 are 20 us less and 24 are 20 us more, so
    /// the middle is 50 us, and at ranks 28 and 73 (50 - 1.645 * sqrt(100 * 21 / 12)
    /// = 28.2) too.
    #[test]
    fn interrupts_by_hand() {
        let hit = |i: usize| if i % 5 < 2 { 20 } else { 0 };
        let nothing: Vec<_> = (0..10).map(|i| shot(1, 1000 - hit(i))).collect();
        let activity: Vec<_> = (0..10).map(|i| shot(1, 950 - hit(i + 3))).collect();
        let e = in_turns(&nothing, &activity).estimate(0, 1e6, 0.9).unwrap();
        assert!((e.value - 50_000.0).abs() < 1e-6, "{e:?}");
        let half = e.interval.half_width().unwrap();
        assert!((half - 683.772).abs() < 0.1, "{e:?}");
    }

    /// From 1000 polls in a tick to 500: a shot has the speed of the four around nothing before it
    /// and the four after it. So of eight shots four are taken to be fast.
    #[test]
    fn the_speed_of_polling_is_that_nearby() {
        let mut samples = EdgeSamples::new(1);
        for i in 0..40 {
            let full = if i < 20 { 1000 } else { 500 };
            samples.push(None, shot(1, full));
            samples.push(Some(0), shot(1, full / 2));
        }
        let held = samples.held_ticks(Some(0));
        let off: Vec<usize> = (0..40).filter(|&i| held[i] != 0.5).collect();
        assert_eq!(off, [20, 21, 22, 23]);
        let nothing = samples.held_ticks(None);
        let off: Vec<usize> = (0..40).filter(|&i| nothing[i] != 0.0).collect();
        assert_eq!(off, [20, 21, 22, 23]);
        assert_eq!(samples.poll_cost_ns(1e6), Some(1000.0));
    }

    #[test]
    fn too_little_is_none() {
        let few = in_turns(&[shot(1, 6); 3], &[shot(1, 5); 3]);
        assert_eq!(few.estimate(0, 1e6, 0.9), None);
        let enough = in_turns(&[shot(1, 6); 4], &[shot(1, 5); 4]);
        assert!(enough.estimate(0, 1e6, 0.9).is_some());
        assert_eq!(EdgeSamples::new(1).estimate(0, 1e6, 0.9), None);
        assert_eq!(EdgeSamples::new(1).poll_cost_ns(1e6), None);
    }

    #[test]
    fn what_counts_is_counted() {
        let mut samples = EdgeSamples::new(2);
        samples.push(None, shot(1, 6));
        samples.push(Some(1), shot(1, 5));
        samples.push(Some(1), shot(1, 5));
        samples.drop_shot(Some(1));
        samples.drop_shot(None);
        assert_eq!((samples.shots(0), samples.shots(1)), (0, 2));
        assert_eq!((samples.dropped(0), samples.dropped(1)), (0, 1));
    }
}
