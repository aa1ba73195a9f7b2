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
mod tests;
