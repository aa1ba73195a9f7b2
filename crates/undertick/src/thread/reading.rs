//! The clock readings of a point.

use crate::clock;
use crate::process::Session;

/// How the clock is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Waits for nothing.
    Plain,
    /// Waits for everything before it; used for spans.
    Waiting,
    /// Serialised, with as little as possible between it and the work.
    Ordered,
    /// Two waiting readings; the difference is the payload.
    Pair,
    /// Two serialised readings, the second one the timestamp.
    PairBefore,
    /// Two serialised readings, the first one the timestamp.
    PairAfter,
}

/// The clock readings of a point.
#[derive(Clone, Copy)]
pub(crate) struct Readings {
    /// The timestamp.
    pub(super) first: u64,
    /// The other reading of a pair, otherwise 0.
    pub(super) second: u64,
    /// The CPU, if the timestamp's own instruction gave it.
    pub(super) cpu: Option<u32>,
}

impl Readings {
    pub(super) const NONE: Self = Self::new(0, 0);

    #[inline(always)]
    const fn new(first: u64, second: u64) -> Self {
        Self {
            first,
            second,
            cpu: None,
        }
    }
}

#[inline(always)]
pub(super) fn read(session: &Session, reading: Reading) -> Readings {
    if session.clock() != clock::COUNTER {
        let (first, second) = read_system(session, reading);
        return Readings::new(first, second);
    }
    match reading {
        Reading::Plain => Readings::new(clock::counter(), 0),
        Reading::Ordered => Readings::new(clock::counter_after().0, 0),
        Reading::Waiting => {
            let (first, cpu) = clock::counter_after();
            Readings {
                cpu,
                ..Readings::new(first, 0)
            }
        }
        Reading::Pair => {
            let (first, _) = clock::counter_after();
            let (second, cpu) = clock::counter_after();
            Readings {
                cpu,
                ..Readings::new(first, second)
            }
        }
        Reading::PairBefore => {
            let (first, second) = clock::counter_pair();
            Readings::new(second, first)
        }
        Reading::PairAfter => {
            let (first, second) = clock::counter_pair();
            Readings::new(first, second)
        }
    }
}

#[cold]
#[inline(never)]
fn read_system(session: &Session, reading: Reading) -> (u64, u64) {
    let first = clock::system(session.clock());
    match reading {
        Reading::Plain | Reading::Waiting | Reading::Ordered => (first, 0),
        Reading::Pair | Reading::PairAfter => (first, clock::system(session.clock())),
        Reading::PairBefore => (clock::system(session.clock()), first),
    }
}
