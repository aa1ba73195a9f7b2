//! How a sample was read: the kind of its readings, and the records inside it.

use std::collections::HashSet;

use undertick_format::manifest::{Name, Ring};
use undertick_ring::layout::FIRST_FUNCTION;

/// How the clock was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As plain spans do: it waits for what came before, unless the trace's recorder is too old
    /// for that.
    Plain,
    /// As an event or a fast span does: it waits for nothing.
    Unordered,
    /// Serialised.
    Ordered,
}

/// The kind of the plain spans in a trace: a function that the compiler's hooks record costs more
/// than a span of the program itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Spans of the program itself.
    ByHand,
    /// Functions.
    Functions,
    /// Both kinds; a sample's kind is not distinguished.
    Both,
}

impl Recorded {
    /// Derives the kind from the names of a trace and its rings. Functions are recorded into
    /// separate rings, so a thread with two rings has spans of both kinds, named or not.
    pub(crate) fn by(names: &[Name], rings: &[Ring]) -> Self {
        let is_function = |name: &&Name| name.pid.is_none() && name.event >= FIRST_FUNCTION;
        let mut threads = HashSet::new();
        let is_twice = |ring: &Ring| !threads.insert((ring.pid, ring.tid));
        match names.iter().filter(is_function).count() {
            0 => Self::ByHand,
            functions if functions < names.len() || rings.iter().any(is_twice) => Self::Both,
            _ => Self::Functions,
        }
    }
}

/// How the two ends of a sample were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Plain = 0,
    Mixed = 1,
    Ordered = 2,
    Unordered = 3,
    /// Plain readings of a sampled span: choosing whether it is recorded takes time inside it.
    Sampled = 4,
}

/// Number of [`Ends`].
pub(crate) const ENDS: usize = 5;

impl Ends {
    pub(crate) fn from_readings(start: Reading, end: Reading) -> Self {
        match (start, end) {
            (Reading::Plain, Reading::Plain) => Self::Plain,
            (Reading::Ordered, Reading::Ordered) => Self::Ordered,
            (Reading::Unordered, Reading::Unordered) => Self::Unordered,
            _ => Self::Mixed,
        }
    }
}

/// Number of records inside something, without serialised ones: those of plain spans in the low
/// half, events in the high half. Both counts wrap, and a difference of two of them is right as
/// long as it has at most 2^32 of either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inner(pub(super) u64);

impl Inner {
    pub(crate) const NONE: Self = Self(0);
    /// A begin, an end or a next of a plain span.
    pub(crate) const SPAN: Self = Self(1);
    /// An event, or an end of a fast span.
    pub(crate) const EVENT: Self = Self(1 << 32);

    /// [`Self::EVENT`] for 1, [`Self::SPAN`] for 0; without a branch.
    #[inline]
    pub(crate) fn one_reading(is_event: u8) -> Self {
        Self(1 << (is_event * 32))
    }

    #[inline]
    pub(crate) fn and(self, more: Self) -> Self {
        Self(self.0.wrapping_add(more.0))
    }

    /// Those between `then` and now.
    #[inline]
    pub(crate) fn since(self, then: Self) -> Self {
        Self(self.0.wrapping_sub(then.0))
    }

    pub(crate) fn spans(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn events(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn records(self) -> u64 {
        u64::from(self.spans()) + u64::from(self.events())
    }
}
