//! Starts and ends in different threads, matched by key.

use std::collections::{HashMap, VecDeque};

/// Unmatched boundaries kept over all keys; beyond, the newest is dropped and
/// counted.
const MOST_WAITING: usize = 1 << 20;

/// One boundary of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundary {
    pub(crate) ts: i64,
    pub(crate) is_start: bool,
    pub(crate) ordered: bool,
}

#[derive(Debug)]
struct Waiting {
    first: Boundary,
    /// Empty almost always, and then without memory of its own.
    later: VecDeque<Boundary>,
}

/// Boundaries that wait for their other side. Rings come interleaved in
/// chunks, so the end may come first; per key the k-th start belongs to the
/// k-th end.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    waiting: HashMap<(u32, i64), Waiting>,
    n: usize,
}

/// What became of a boundary.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// Its other side.
    Matched(Boundary),
    /// It waits.
    Kept,
    /// There is no room for it.
    Dropped,
}

impl Messages {
    pub(crate) fn offer(&mut self, rule: u32, key: i64, boundary: Boundary) -> Outcome {
        match self.waiting.get_mut(&(rule, key)) {
            Some(waiting) if waiting.first.is_start != boundary.is_start => {
                let other = waiting.first;
                match waiting.later.pop_front() {
                    Some(next) => waiting.first = next,
                    None => drop(self.waiting.remove(&(rule, key))),
                }
                self.n -= 1;
                Outcome::Matched(other)
            }
            _ if self.n >= MOST_WAITING => Outcome::Dropped,
            Some(waiting) => {
                waiting.later.push_back(boundary);
                self.n += 1;
                Outcome::Kept
            }
            None => {
                let later = VecDeque::new();
                let first = boundary;
                self.waiting.insert((rule, key), Waiting { first, later });
                self.n += 1;
                Outcome::Kept
            }
        }
    }

    /// Every boundary that found no other side: rule, whether a start.
    pub(crate) fn drain(&mut self) -> Vec<(u32, bool)> {
        self.n = 0;
        let waiting = self.waiting.drain();
        waiting
            .flat_map(|((rule, _), w)| {
                std::iter::repeat_n((rule, w.first.is_start), 1 + w.later.len())
            })
            .collect()
    }
}
