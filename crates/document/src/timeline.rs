//! The events of one second of a trace, small enough for a page. Columns of time show how busy each
//! thread was and with what. The longest spans are kept one by one, and a shorter window holds
//! every span.
//!
//! The page holds the timeline in a separate element beside the report document.

use serde::{Deserialize, Serialize};

/// Version of the timeline's format.
pub const SCHEMA_VERSION: u32 = 1;

/// One second of a trace, or all of a shorter trace. Times are ns from its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Its start, ns after the first event of the trace.
    pub from_ns: f64,
    /// Its length, ns.
    pub length_ns: f64,
    /// From the first to the last event of the trace, ns.
    pub of_ns: f64,
    /// How it was chosen, in words.
    pub chosen: String,
    /// Number of columns into which it is divided.
    pub columns: u32,
    /// Names that lanes and spans refer to by number.
    pub names: Vec<String>,
    /// Reasons why a span is in no figure, by number; 0 is empty and means that it is in the
    /// figures.
    pub dropped: Vec<String>,
    /// The lanes of threads, followed by those of CPUs.
    pub lanes: Vec<Lane>,
    /// The longest spans, in order of time.
    pub spans: Vec<Span>,
    /// Number of all spans of the second, including those shown only in columns.
    pub spans_all: u64,
    /// Number of points in it that are not spans.
    pub instants: u64,
    /// Number of lanes of threads for which there was no room.
    pub lanes_left_out: u64,
    /// The slowest span and what is around it.
    pub detail: Option<Detail>,
    /// Switches of the measuring points: when, and to which state (1 all on, 2 some off, 3
    /// between).
    pub switches: Vec<(f64, u32)>,
}

/// What a lane shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneKind {
    /// Spans of a thread by depth; if the kernel's events tell, the last row shows when it was off
    /// its CPU.
    Thread,
    /// Which threads ran on a CPU.
    Cpu,
    /// Interrupts and their deferred work on a CPU.
    Interrupts,
}

/// A thread, or a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// What the lane shows.
    pub kind: LaneKind,
    /// Its label.
    pub label: String,
    /// Number of spans that overlap the second.
    pub spans: u64,
    /// Time in its outermost spans, or on the CPU, as a share of the length.
    pub busy: f64,
    /// The rows that are not empty.
    pub rows: Vec<Row>,
    /// Losses of events: when, and how many.
    pub losses: Vec<(f64, u64)>,
}

/// One row of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Depth of the spans; [`OFF_CPU`] for the row that shows when the thread was off its CPU.
    pub row: u32,
    /// Four numbers for each column that is not empty: its index; the name that took most of it;
    /// the share of it that spans took, thousandths; the number of spans that began in it.
    pub cells: Vec<u32>,
}

/// Number of the row of a thread's lane that shows when it was off its CPU.
pub const OFF_CPU: u32 = 1000;

/// A span: lane, row, start, length, name, reason why it is in no figure (0: it is in them).
pub type Span = (u32, u32, f64, f64, u32, u32);

/// A window with every span in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Its start, ns.
    pub from_ns: f64,
    /// Its length, ns.
    pub length_ns: f64,
    /// The span for which it was chosen.
    pub slowest: Span,
    /// Excess of that span over the median of its interval, ns.
    pub over_median_ns: f64,
    /// The spans in order of time.
    pub spans: Vec<Span>,
    /// Minimum length below which spans are left out, ns; `null` if all are there.
    pub shorter_left_out_ns: Option<f64>,
}
