//! Which intervals and counts the rows of an event feed.

use serde::{Deserialize, Serialize};
use undertick_document::IntervalKind;

/// Place of an event that has not been seen yet.
pub(crate) const UNSEEN: u32 = u32::MAX;
/// Most intervals, and most frequencies. Long ones take about 100 KiB each; further names are
/// counted, not analysed.
pub(crate) const MOST_NAMES: usize = 4096;
/// Place of an event beyond [`MOST_NAMES`].
pub(crate) const TOO_MANY: u32 = u32::MAX - 1;

/// The destinations of the rows of one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) span: u32,
    pub(crate) pair: u32,
    pub(crate) period: u32,
    /// Index into [`crate::ring::Ring::last`].
    pub(crate) instant: u32,
    /// Row of counts.
    pub(crate) counted: u32,
    /// Actions of the table.
    pub(crate) actions: u32,
}

pub(crate) const NEW_CELL: Cell = Cell {
    span: UNSEEN,
    pair: UNSEEN,
    period: UNSEEN,
    instant: UNSEEN,
    counted: UNSEEN,
    actions: UNSEEN,
};

/// The kind of an event's interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Family {
    Span,
    Pair,
    Period,
}

impl Family {
    pub(crate) fn kind(self) -> IntervalKind {
        match self {
            Self::Span => IntervalKind::Nested,
            Self::Pair => IntervalKind::Pair,
            Self::Period => IntervalKind::Period,
        }
    }

    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Span => "",
            Self::Pair => " (pair)",
            Self::Period => " (period)",
        }
    }
}
