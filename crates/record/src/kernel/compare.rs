//! Compares the switches that two sources recorded.
//!
//! Two records are the same switch if they name the same thread, direction and CPU, the second
//! source's record is the first one after the first source's, and they are not further apart than
//! [`Compare::apart`]. The kernel makes the first, goes on to switch, and makes the second within
//! a microsecond unless something interrupts it.

use std::collections::{HashMap, VecDeque};

use undertick_format::manifest::Comparison;

/// Most differences of time that are stored.
const MOST_DIFFERENCES: usize = 1 << 20;

/// A switch as one source recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) ticks: i64,
    pub(super) tid: i32,
    pub(super) cpu: i16,
    pub(super) into: bool,
    /// For a switch out: the thread could have run on.
    pub(super) runnable: bool,
}

/// The source of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwitchSource {
    First = 0,
    Second = 1,
}

/// The pending switches of the two sources, oldest first.
type PendingSwitches = [VecDeque<Switch>; 2];

/// Which source has the oldest switch.
fn oldest(pending: &PendingSwitches) -> Option<usize> {
    let ticks = |source: usize| pending[source].front().map(|switch: &Switch| switch.ticks);
    match (ticks(0), ticks(1)) {
        (Some(first), Some(second)) => Some(usize::from(second < first)),
        (Some(_), None) => Some(0),
        (None, Some(_)) => Some(1),
        (None, None) => None,
    }
}

/// Matches the switches of two sources as they arrive, in order of time.
#[derive(Debug)]
pub(super) struct Compare {
    /// Largest distance of two records of one switch, ticks.
    apart: i64,
    /// Ticks by which the second source's record may be the earlier one. The kernel makes it
    /// later, so this is what their clocks may differ by.
    early: i64,
    /// By thread, CPU and direction.
    waiting: HashMap<(i32, i16, bool), PendingSwitches>,
    recorded: [u64; 2],
    both: u64,
    causes_differ: u64,
    differences: Vec<i64>,
    added: u64,
    added_in: u64,
    swept: i64,
}

impl Compare {
    pub(super) fn new(apart: i64, early: i64) -> Self {
        Self {
            apart,
            early,
            waiting: HashMap::new(),
            recorded: [0; 2],
            both: 0,
            causes_differ: 0,
            differences: Vec::new(),
            added: 0,
            added_in: 0,
            swept: i64::MIN,
        }
    }

    /// Advances the time to `ticks`. Switches that only the second source recorded, and for which
    /// the first source's record can no longer arrive, are passed to `alone`.
    pub(super) fn pass(&mut self, ticks: i64, alone: impl FnMut(Switch)) {
        if ticks.saturating_sub(self.swept) > self.apart {
            self.sweep(ticks.saturating_sub(self.apart), alone);
            self.swept = ticks;
        }
    }

    /// Adds a switch that a source recorded.
    pub(super) fn take(&mut self, source: SwitchSource, switch: Switch) {
        self.recorded[source as usize] += 1;
        let key = (switch.tid, switch.cpu, switch.into);
        self.waiting.entry(key).or_default()[source as usize].push_back(switch);
    }

    /// Decides on all switches older than `before`: their possible counterparts have arrived by
    /// now.
    fn sweep(&mut self, before: i64, mut alone: impl FnMut(Switch)) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|_, pending| {
            while let Some(oldest) = oldest(pending)
                && pending[oldest][0].ticks < before
            {
                self.decide(pending, oldest, &mut alone);
            }
            pending.iter().any(|switches| !switches.is_empty())
        });
        self.waiting = waiting;
    }

    fn decide(
        &mut self,
        pending: &mut PendingSwitches,
        oldest: usize,
        alone: &mut impl FnMut(Switch),
    ) {
        let Some(switch) = pending[oldest].pop_front() else {
            return;
        };
        let other = pending[1 - oldest].front().copied().filter(|other| {
            let between = switch.ticks.abs_diff(other.ticks);
            if oldest == SwitchSource::Second as usize {
                return between <= self.early.unsigned_abs();
            }
            between <= self.apart.unsigned_abs()
                && !self.is_next_better(&pending[oldest], &pending[1 - oldest], between)
        });
        let Some(other) = other else {
            if oldest == SwitchSource::Second as usize {
                self.added += 1;
                self.added_in += u64::from(switch.into);
                alone(switch);
            }
            return;
        };
        pending[1 - oldest].pop_front();
        self.both += 1;
        self.causes_differ += u64::from(other.runnable != switch.runnable);
        let later = other.ticks - switch.ticks;
        if self.differences.len() < MOST_DIFFERENCES {
            self.differences
                .push(if oldest == 0 { later } else { -later });
        }
    }

    /// Whether the first source's next switch, and not one `between` ticks earlier, is the one that
    /// the second source recorded first: if that is not too late, and if the pairs that follow from
    /// it are closer together. A second record may be delayed until after the thread's next switch.
    fn is_next_better(
        &self,
        first: &VecDeque<Switch>,
        second: &VecDeque<Switch>,
        between: u64,
    ) -> bool {
        let (Some(next), Some(other)) = (first.front(), second.front()) else {
            return false;
        };
        let skipping = next.ticks.abs_diff(other.ticks);
        if next.ticks - self.early > other.ticks || skipping >= between {
            return false;
        }
        let Some(after) = second.get(1) else {
            return true;
        };
        let in_turn = next.ticks.abs_diff(after.ticks);
        let later = first.get(1).map_or(self.apart.unsigned_abs(), |later| {
            later.ticks.abs_diff(after.ticks)
        });
        skipping.saturating_add(later) < between.saturating_add(in_turn)
    }

    /// Returns the comparison; passes on the remaining switches that only the second source
    /// recorded.
    pub(super) fn finish(
        &mut self,
        sources: [&str; 2],
        ns_per_tick: f64,
        alone: impl FnMut(Switch),
    ) -> Comparison {
        self.sweep(i64::MAX, alone);
        self.differences.sort_unstable();
        let quantile = |share: f64| {
            let last = self.differences.len().saturating_sub(1);
            let at = (share * last as f64).round() as usize;
            (self.differences.get(at)).map_or(0.0, |&ticks| ticks as f64 * ns_per_tick)
        };
        Comparison {
            sources: sources.map(str::to_owned),
            first: self.recorded[0],
            second: self.recorded[1],
            both: self.both,
            causes_differ: self.causes_differ,
            later_ns_median: quantile(0.5),
            later_ns_p99: quantile(0.99),
            added: self.added,
            added_in: self.added_in,
        }
    }
}

#[cfg(test)]
mod tests;
