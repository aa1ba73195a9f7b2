//! The analysis kernel of Undertick: event batches in, report out.
//!
//! **Question.** Given the events of a trace, how long did each span take, how often did each
//! event come, and how sure is that?
//!
//! ```no_run
//! use undertick_analyze::{Analysis, Options};
//! # fn batches() -> Vec<arrow_array::RecordBatch> { vec![] }
//! # use undertick_format::manifest::Manifest;
//! # fn read(manifest: &Manifest) -> Result<(), undertick_analyze::Error> {
//! let mut analysis = Analysis::new(manifest, Options::default())?;
//! for _ in 0..analysis.passes() {
//!     for batch in batches() {
//!         analysis.push(&batch)?;
//!     }
//!     analysis.finish_pass();
//! }
//! let report = analysis.finish()?;
//! # Ok(())
//! # }
//! ```
//!
//! **Method.** Match interval boundaries. Take off the time of disturbances that the kernel's
//! events show, and drop the samples for which it stays unknown. Subtract the cost of recording,
//! then estimate (the order is that of TRAMS). Without a [`Table`] every begin/end pair, every
//! stage between two `next` points, every pair and every period of an instant is an interval.
//! There is one pass; there are two if samples are dropped by their ratio to the smallest
//! ([`Cull::Ratio`]).
//!
//! **Bounds.** Memory does not grow with the trace: about 100 KiB per interval (at most 4096
//! intervals), the open starts of each ring (at most 1024), and 2^20 waiting messages. What finds
//! no room is counted, and a warning says so.
//!
//! **Caveats.** Events of one ring must come in order. Differences are signed:
//! a clock that steps back gives negative samples, which are counted and kept.

// Modules that are public and hidden are for `undertick-causes`, which reads a trace a second time.

// Unit tests share the hand-made traces of the other tests.
#[cfg(test)]
extern crate self as undertick_analyze;

mod analysis;
pub mod arrows;
mod cells;
mod clocks;
#[doc(hidden)]
pub mod columns;
mod cost;
mod error;
mod fast_path;
pub mod hosts;
#[doc(hidden)]
pub mod innermost;
#[doc(hidden)]
pub mod kinds;
mod match_context;
mod matching;
mod messages;
mod modes;
mod names;
mod options;
mod pairs;
mod palette_matcher;
#[doc(hidden)]
pub mod parallel;
mod perturbation;
mod raw;
mod reading;
pub mod recent;
mod ring;
mod roles;
mod rules;
mod sample;
mod sampled;
mod shard;
mod slices;
mod span_rows;
pub mod spans;
#[doc(hidden)]
pub mod spool;
mod strata;
mod summary;
mod table;
mod tally;
mod timeline;
mod tree;
mod waiting;
mod warnings;
#[doc(hidden)]
pub mod watch;

pub use analysis::Analysis;
pub use error::{Error, Failed};
pub use options::{Compensate, Cull, Options};
pub use parallel::{analyze, analyze_on, find_spans, keep_spans};
pub use shard::{ShardResult, Worker};
pub use table::{Table, TableError, suggestion};
pub use timeline::analyze_with_timeline;
