//! What threads polled while tasks were queued.

use std::collections::BTreeMap;

use super::reader::{Entry, TaskChange};

/// A time in which a task was queued, ticks.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) pid: i32,
    pub(super) number: u64,
    pub(super) start: i64,
    pub(super) end: i64,
    /// By the name of the tasks that were polled.
    pub(super) polled: BTreeMap<u16, Polled>,
}

/// Polls of tasks of one name, ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Polled {
    /// Their time within the window.
    pub(super) within: i64,
    /// The longest one, from begin to end.
    pub(super) longest: i64,
}

/// Windows of many tasks.
pub(super) struct Windows {
    /// By their begins.
    all: Vec<Window>,
    longest: i64,
}

impl Windows {
    pub(super) fn new(mut all: Vec<Window>) -> Self {
        all.retain(|window| window.end > window.start);
        all.sort_by_key(|window| window.start);
        let longest = (all.iter()).map(|window| window.end.saturating_sub(window.start));
        let longest = longest.max();
        Self {
            all,
            longest: longest.unwrap_or(0),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a poll to the windows that it overlaps.
    pub(super) fn take(&mut self, entry: &Entry) {
        let TaskChange::Polled(end) = entry.change else {
            return;
        };
        let earliest = entry.ts.saturating_sub(self.longest);
        let from = (self.all).partition_point(|window| window.start < earliest);
        for window in &mut self.all[from..] {
            if window.start >= end {
                return;
            }
            let within = (end.min(window.end)).saturating_sub(entry.ts.max(window.start));
            let is_own = window.number == entry.number;
            if within <= 0 || is_own || window.pid != entry.pid {
                continue;
            }
            let polled = window.polled.entry(entry.name).or_default();
            polled.within = polled.within.saturating_add(within);
            polled.longest = polled.longest.max(end.saturating_sub(entry.ts));
        }
    }

    /// The window of a task that ends at that time.
    pub(super) fn find(&self, pid: i32, number: u64, end: i64) -> Option<&Window> {
        let is_its = |of: &&Window| (of.pid, of.number, of.end) == (pid, number, end);
        self.all.iter().find(is_its)
    }
}
