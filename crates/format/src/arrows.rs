//! Arrows between rows of a trace, as timelines draw them.

/// A row at which an arrow begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArrowEnd {
    /// Position of the row among all rows of [`Trace::batches`](crate::read::Trace::batches).
    pub row: u64,
    /// Number of the arrow, the same at both ends.
    pub arrow: u64,
}
