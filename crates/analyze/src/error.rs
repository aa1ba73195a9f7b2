//! Errors in options and input.

use thiserror::Error;
use undertick_format::TraceError;

use crate::table::TableError;

/// Why an analysis cannot be made.
#[derive(Debug, Error)]
pub enum Error {
    /// The table does not fit the trace.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An option has an invalid value.
    #[error("{option} {given:?}: {mend}")]
    Option {
        /// The option's name on the command line.
        option: &'static str,
        /// The value that was given.
        given: String,
        /// What to do.
        mend: String,
    },
    /// A method needs something this trace lacks.
    #[error("{method} is not available for this trace: {why}")]
    NotAvailable {
        /// The option and its value.
        method: String,
        /// What is missing.
        why: &'static str,
    },
    /// The manifest contradicts itself.
    #[error("manifest: {0}")]
    Manifest(&'static str),
    /// A batch does not have the columns of a trace.
    #[error("event batch: column {column} ({name}) {what}")]
    Batch {
        /// Index of the column.
        column: usize,
        /// Its name in the schema.
        name: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// More rings than a trace can sensibly have.
    #[error("more than {0} rings: the trace is damaged")]
    Rings(usize),
    /// The caller did not feed every pass to its end.
    #[error("the trace must be read {needed} times to its end, it was read {done} times")]
    Passes {
        /// Passes needed.
        needed: usize,
        /// Passes finished.
        done: usize,
    },
}

/// Why a trace could not be analysed.
#[derive(Debug, Error)]
pub enum Failed {
    /// It cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// It does not allow the requested analysis.
    #[error(transparent)]
    Analysis(#[from] Error),
}
