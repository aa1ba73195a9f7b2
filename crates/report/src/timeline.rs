//! What happened in one second of a trace, small enough for a page: columns of time that
//! say how busy each thread was and with what, the longest spans one by one, and a shorter
//! window in which every span is there.
//!
//! It stands beside the report document in the page, in an element of its own.

use serde::{Deserialize, Serialize};

/// Version of the timeline.
pub const SCHEMA_VERSION: u32 = 1;

/// One second, or the whole of a shorter trace. Times are ns from its begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Its begin, ns after the first event of the trace.
    pub from_ns: f64,
    /// Its length, ns.
    pub length_ns: f64,
    /// From the first to the last event of the trace, ns.
    pub of_ns: f64,
    /// How it was chosen, in words.
    pub chosen: String,
    /// Columns into which it is divided.
    pub columns: u32,
    /// Names that lanes and spans mean by number.
    pub names: Vec<String>,
    /// Why a span is in no figure, by number; 0 is empty: it is.
    pub dropped: Vec<String>,
    /// Threads first, then CPUs.
    pub lanes: Vec<Lane>,
    /// The longest spans, in order of time.
    pub spans: Vec<Span>,
    /// All spans of the second, those in columns alone included.
    pub spans_all: u64,
    /// Points that are no spans in it.
    pub instants: u64,
    /// Lanes of threads for which there was no room.
    pub lanes_left_out: u64,
    /// The slowest span and what is around it.
    pub detail: Option<Detail>,
    /// Measuring points switched: when, and to what (1 all on, 2 some off, 3 between).
    pub switches: Vec<(f64, u32)>,
}

/// What a lane is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneKind {
    /// Spans of a thread by depth; its last row, if the kernel told: when it was off its CPU.
    Thread,
    /// Which threads ran on a CPU.
    Cpu,
    /// Interrupts and their deferred work on a CPU.
    Interrupts,
}

/// A thread, or a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// What it is.
    pub kind: LaneKind,
    /// What it is called.
    pub label: String,
    /// Spans that touch the second.
    pub spans: u64,
    /// Time in its outermost spans, or on the CPU, over the length.
    pub busy: f64,
    /// Rows that have anything in them.
    pub rows: Vec<Row>,
    /// Events lost: when, and how many.
    pub losses: Vec<(f64, u64)>,
}

/// One row of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Depth of the spans; [`OFF_CPU`] of the row that says when the thread was off its CPU.
    pub row: u32,
    /// Of each column that is not empty, one after the other: its number; the name that took
    /// most of it; share of it that spans took, thousandths; spans that began in it.
    pub cells: Vec<u32>,
}

/// The row of a thread's lane that says when it was off its CPU.
pub const OFF_CPU: u32 = 1000;

/// A span: lane, row, start, length, name, why it is in no figure (0: it is in them).
pub type Span = (u32, u32, f64, f64, u32, u32);

/// A window with every span in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Its begin, ns.
    pub from_ns: f64,
    /// Its length, ns.
    pub length_ns: f64,
    /// The span for which it was chosen.
    pub slowest: Span,
    /// By how much that is over the median of its interval, ns.
    pub over_median_ns: f64,
    /// In order of time.
    pub spans: Vec<Span>,
    /// Spans shorter than this are not among them, ns; `null` if all are.
    pub shorter_left_out_ns: Option<f64>,
}
