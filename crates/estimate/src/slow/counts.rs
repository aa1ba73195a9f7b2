//! Counting ticks in the activities of a loop.

use super::results::{Results, results};
use super::walk::PhaseWalk;
use crate::batches::Batches;

/// Maximum lag of the autocorrelations of the counts, from 1.
pub(super) const LAGS: usize = 4;

/// Ticks counted in one activity, one count per cycle. Its memory does not grow.
#[derive(Clone, Debug, Default)]
pub struct ActivityCounts {
    pub(super) n: u64,
    pub(super) ticks: i64,
    pub(super) squares: i128,
    pub(super) least: i64,
    pub(super) most: i64,
    pub(super) products: [i128; LAGS],
    recent: [i64; LAGS],
    pub(super) batches: Batches<i64>,
}

impl ActivityCounts {
    /// Adds the count of a cycle, in whole ticks.
    pub fn push(&mut self, count: i64) {
        (self.least, self.most) = if self.n == 0 {
            (count, count)
        } else {
            (self.least.min(count), self.most.max(count))
        };
        for (lag, product) in self.products.iter_mut().enumerate() {
            if self.n > lag as u64 {
                *product += i128::from(self.recent[lag]) * i128::from(count);
            }
        }
        self.recent.rotate_right(1);
        self.recent[0] = count;
        self.n += 1;
        self.ticks += count;
        self.squares += i128::from(count) * i128::from(count);
        self.batches.extend(&[count], |counts| counts.iter().sum());
    }

    /// Returns the number of cycles counted.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Returns the ticks counted in all cycles together.
    #[must_use]
    pub fn ticks(&self) -> i64 {
        self.ticks
    }

    /// Returns the mean count: eq. 6b in units of the tick. 0 for no cycles.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.ticks as f64 / self.n.max(1) as f64
    }

    /// Returns the variance of the counts, squared ticks (divided by n).
    #[must_use]
    pub fn variance(&self) -> f64 {
        let n = self.n.max(1) as f64;
        (self.squares as f64 / n - self.mean().powi(2)).max(0.0)
    }
}

/// Ticks counted in every activity of a loop, and in its whole cycle. The
/// readings themselves are not kept.
///
/// A loop of m points has m activities: (1,2), (2,3), ..., (m,1); the last one
/// ends with the first point of the next cycle.
#[derive(Clone, Debug)]
pub struct LoopCounts {
    pub(super) activities: Vec<ActivityCounts>,
    pub(super) cycle: ActivityCounts,
    pub(super) walk: PhaseWalk,
    pub(super) stretches: u64,
    pub(super) dropped: u64,
    last: Option<i64>,
}

impl LoopCounts {
    /// Creates the counts of a loop with that many activities.
    #[must_use]
    pub fn new(activities: usize) -> Self {
        Self {
            activities: vec![ActivityCounts::default(); activities],
            cycle: ActivityCounts::default(),
            walk: PhaseWalk::default(),
            stretches: 0,
            dropped: 0,
            last: None,
        }
    }

    /// Adds a cycle: its readings at each point, in whole ticks, including the one that ends the
    /// cycle (one more than there are activities). `joined` says that the cycle begins with the
    /// reading that ended the previous one; a delay between the two makes it false.
    ///
    /// # Panics
    /// If the number of readings is not that of the activities plus one.
    pub fn push(&mut self, readings: &[i64], joined: bool) {
        assert_eq!(readings.len(), self.activities.len() + 1, "readings");
        for (counts, ends) in self.activities.iter_mut().zip(readings.windows(2)) {
            counts.push(ends[1] - ends[0]);
        }
        let (first, last) = (readings[0], readings[readings.len() - 1]);
        self.cycle.push(last - first);
        self.walk.push(first);
        if !(joined && self.last == Some(first)) {
            self.stretches += 1;
        }
        self.last = Some(last);
    }

    /// Records a disturbed cycle, e.g. one in whose middle another program ran: it counts as
    /// dropped, and the next one follows no other.
    pub fn drop_cycle(&mut self) {
        self.dropped += 1;
        self.last = None;
        self.walk.interrupt();
    }

    /// Returns the counts of each activity.
    #[must_use]
    pub fn activities(&self) -> &[ActivityCounts] {
        &self.activities
    }

    /// Returns the counts of the whole cycle.
    #[must_use]
    pub fn cycle(&self) -> &ActivityCounts {
        &self.cycle
    }

    /// Returns the number of cycles dropped as disturbed.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns how the phase moved.
    #[must_use]
    pub fn walk(&self) -> &PhaseWalk {
        &self.walk
    }

    /// Returns estimates in nanoseconds, for a tick of that length, at that level.
    #[must_use]
    pub fn results(&self, tick_ns: f64, level: f64) -> Results {
        results(self, tick_ns, level)
    }
}

#[cfg(test)]
mod tests;
