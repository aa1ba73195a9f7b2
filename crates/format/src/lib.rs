//! What is a trace, and how is one read without trust in whoever wrote it?
//!
//! [`block`] and [`rows`] are the raw records of rings, [`schema`] the columns of the Parquet files,
//! [`manifest`] everything else. [`read::Trace`] opens a trace.
//!
//! Invariants: nothing here writes; only regular files are read, without waiting; memory is bounded.
//!
//! Caveats: symbolic links are followed ([`input`]).

pub mod arrows;
pub mod block;
mod block_batches;
mod error;
pub mod files;
pub mod groups;
pub mod identity;
pub mod input;
pub mod interposed;
pub mod manifest;
pub mod manifest_file;
pub mod messages;
pub mod palette_block;
mod part_file;
pub mod raw_order;
pub mod read;
pub mod rows;
pub mod run_set;
pub mod schema;
pub mod stacks;
pub mod tasks;

pub use error::{TraceError, parquet_error};
