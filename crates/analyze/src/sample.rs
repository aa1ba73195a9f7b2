//! One matched sample of an interval.

use crate::reading::{Ends, Inner};
use crate::tree::Path;

/// A matched sample, as the clock showed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// End minus start, ticks.
    pub(crate) ticks: i64,
    /// Reading at its start.
    pub(crate) start: i64,
    pub(crate) ends: Ends,
    /// Pairs of readings taken with its start and its end, ticks; 0: none.
    pub(crate) pairs: [u32; 2],
    /// Readings of the same ring strictly inside, the serialised ones apart.
    pub(crate) inner: Inner,
    pub(crate) inner_ordered: u32,
    /// A record after the start, up to the end, says descheduled.
    pub(crate) hit: bool,
    /// The flag of one of those records is unknown.
    pub(crate) unknown: bool,
    pub(crate) sampling: Sampling,
    /// Where it lies in the tree of spans; what is not a span lies at the root.
    pub(crate) path: Path,
}

impl Sample {
    /// Whether any record lies inside it.
    #[inline]
    pub(crate) fn holds_records(&self) -> bool {
        self.inner != Inner::NONE || self.inner_ordered | self.sampling.records != 0
    }
}

/// The sampling data of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sampling {
    /// One execution in this many was recorded at that time; 0: it is a full span.
    pub(crate) one_in: u32,
    /// Number of executions that it stands for.
    pub(crate) stands_for: u32,
    /// Sampled executions inside it, recorded or not, as far as records report them.
    pub(crate) inside: u64,
    /// Records of sampled spans inside it.
    pub(crate) records: u32,
}
