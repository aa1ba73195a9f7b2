//! How does a trace become a file of another tool, and a file of another tool a trace?
//!
//! [`export`] writes Perfetto, Chrome, OTLP, CSV and Parquet; [`import`] reads OTLP, Chrome, Perfetto,
//! CTF, `perf script` and the stream of the event card.
//!
//! Invariants: an import writes only the new trace, an export only the new file; what an import
//! cannot keep is counted.

pub mod export;
pub mod import;
