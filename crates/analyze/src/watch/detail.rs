//! More about calls that are to be explained: what lay inside them, and the slowest of a path.

use std::cmp::Reverse;

use super::Call;

/// Most names of spans inside a call that are told apart.
const MOST_NAMES: usize = 64;

/// The spans of one interval directly inside a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    pub interval: u32,
    pub n: u32,
    /// Their time on the CPU, compensated, ticks.
    pub ticks: i64,
}

/// What explains a call.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// From its begin to its end, compensated, ticks.
    pub elapsed: i64,
    pub end: i64,
    pub inside: Vec<Inside>,
    /// A record says that its thread was descheduled, and no row of the kernel does.
    pub is_unseen: bool,
    /// Its time counts in the figures of its path.
    pub is_kept: bool,
}

/// Adds a span to those inside its outer one. Beyond [`MOST_NAMES`] it counts for the outer one's
/// own time.
pub(super) fn add(inside: &mut Vec<Inside>, interval: u32, ticks: i64) {
    if let Some(of) = inside.iter_mut().find(|of| of.interval == interval) {
        of.n = of.n.saturating_add(1);
        of.ticks = of.ticks.saturating_add(ticks);
    } else if inside.len() < MOST_NAMES {
        inside.push(Inside {
            interval,
            n: 1,
            ticks,
        });
    }
}

/// The slowest calls of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slowest {
    most: usize,
    /// Up to twice as many as wanted, in no order.
    calls: Vec<Call>,
    /// Time below which no call is wanted.
    least: i64,
}

fn elapsed(call: &Call) -> i64 {
    call.detail.as_ref().map_or(0, |detail| detail.elapsed)
}

impl Slowest {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            calls: Vec::new(),
            least: i64::MIN,
        }
    }

    /// Whether a call of that time may be one of them.
    pub(super) fn takes(&self, elapsed: i64) -> bool {
        self.most > 0 && elapsed >= self.least
    }

    pub(super) fn push(&mut self, call: Call) {
        if self.takes(elapsed(&call)) {
            self.calls.push(call);
            if self.calls.len() >= 2 * self.most {
                self.settle();
            }
        }
    }

    pub(super) fn append(&mut self, other: Self) {
        self.most = self.most.max(other.most);
        self.calls.extend(other.calls);
        self.settle();
    }

    /// Sorts them, the slowest first and of equal ones the first, and forgets those beyond.
    fn settle(&mut self) {
        self.calls
            .sort_by_key(|call| (Reverse(elapsed(call)), call.start, call.ring));
        self.calls.truncate(self.most);
        if self.calls.len() == self.most {
            self.least = self.calls.last().map_or(i64::MIN, elapsed);
        }
    }

    /// The calls, the slowest first.
    pub(crate) fn calls(mut self) -> Vec<Call> {
        self.settle();
        self.calls
    }

    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Call> {
        self.calls.iter_mut()
    }
}
