//! Pairs of readings found in a trace: the cost of one reading, and when it was measured.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use undertick_estimate::Moments;

/// Most pairs stored for look-up, 24 bytes each: 96 MiB. With more, every second one is removed
/// and only every second further one is stored, and so on.
const MOST: usize = 1 << 22;

/// A pair of readings of one ring.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pair {
    ts: i64,
    ticks: u32,
    ring: i32,
}

/// All pairs of a trace. They are gathered in a separate pass, before samples are taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    /// Whether this pass gathers pairs.
    pub(crate) gathering: bool,
    /// Number of the ring of the next rows.
    pub(crate) ring: i32,
    /// The pairs in order of time.
    settled: Arc<Vec<Pair>>,
    pub(crate) gathered: Gathered,
}

/// Pairs in the order in which they arrive.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Gathered {
    /// Plain pairs (`ut_pair`).
    plain: Vec<Pair>,
    /// One pair in this many is stored.
    every: u64,
    seen: u64,
    /// Ticks of all plain pairs, and of those that serialised boundaries carry.
    pub(crate) plain_ticks: Moments,
    pub(crate) ordered_ticks: Moments,
}

impl Gathered {
    #[cold]
    fn keep(&mut self, ring: i32, ts: i64, ticks: i64) {
        let Ok(short) = u32::try_from(ticks) else {
            return;
        };
        self.plain_ticks.push(ticks);
        if self.seen.is_multiple_of(self.every.max(1)) {
            if self.plain.len() == MOST {
                self.thin();
            }
            self.plain.push(Pair {
                ts,
                ticks: short,
                ring,
            });
        }
        self.seen += 1;
    }

    fn thin(&mut self) {
        let mut keep = false;
        self.plain.retain(|_| {
            keep = !keep;
            keep
        });
        self.every = self.every.max(1) * 2;
    }

    /// Merges pairs that were gathered by others.
    pub(crate) fn merge(&mut self, mut other: Self) {
        while self.every.max(1) < other.every {
            self.thin();
        }
        while other.every.max(1) < self.every {
            other.thin();
        }
        self.plain.append(&mut other.plain);
        while self.plain.len() > MOST {
            self.thin();
        }
        self.seen += other.seen;
        self.plain_ticks.merge(&other.plain_ticks);
        self.ordered_ticks.merge(&other.ordered_ticks);
    }
}

impl Pairs {
    /// Adds a `ut_pair`. One during which the thread was descheduled is not a cost of the clock.
    #[inline]
    pub(crate) fn add(&mut self, ts: i64, ticks: i64, flag: i8) {
        if self.gathering && flag != 1 {
            self.gathered.keep(self.ring, ts, ticks);
        }
    }

    /// Adds the pair of a serialised boundary; 0: it has none.
    #[inline]
    pub(crate) fn note(&mut self, ticks: u32) {
        if ticks != 0 && self.gathering {
            self.gathered.ordered_ticks.push(i64::from(ticks));
        }
    }

    /// Ends the gathering.
    pub(crate) fn settle(&mut self) {
        self.gathering = false;
        let mut plain = std::mem::take(&mut self.gathered.plain);
        plain.sort_by_key(|p| p.ts);
        self.settled = Arc::new(plain);
    }

    /// Method I: the last pair of this ring before `start` and the first after `end`; where one
    /// is missing, the other one is used for both.
    pub(crate) fn own(&self, start: i64, end: i64) -> Option<[u32; 2]> {
        self.around(start, end, |p| p.ring == self.ring)
    }

    /// Method II: the pairs of other rings nearest to `start` and to `end`.
    pub(crate) fn of_sampler(&self, start: i64, end: i64) -> Option<[u32; 2]> {
        let other = |p: &&Pair| p.ring != self.ring;
        let nearest = |at: i64| {
            let place = self.settled.partition_point(|p| p.ts < at);
            let before = self.settled[..place].iter().rev().take(FAR).find(other);
            let after = self.settled[place..].iter().take(FAR).find(other);
            match (before, after) {
                (Some(b), Some(a)) if at - b.ts < a.ts - at => Some(b.ticks),
                (_, Some(a)) => Some(a.ticks),
                (Some(b), None) => Some(b.ticks),
                (None, None) => None,
            }
        };
        Some([nearest(start)?, nearest(end)?])
    }

    fn around(&self, start: i64, end: i64, wanted: impl Fn(&&Pair) -> bool) -> Option<[u32; 2]> {
        let first = self.settled.partition_point(|p| p.ts <= start);
        let before = self.settled[..first].iter().rev().take(FAR).find(&wanted);
        let last = self.settled.partition_point(|p| p.ts < end);
        let after = self.settled[last..].iter().take(FAR).find(&wanted);
        match (before.or(after), after.or(before)) {
            (Some(before), Some(after)) => Some([before.ticks, after.ticks]),
            _ => None,
        }
    }
}

/// Most pairs of other rings that are skipped in the search for a near one.
const FAR: usize = 256;

#[cfg(test)]
mod tests;
