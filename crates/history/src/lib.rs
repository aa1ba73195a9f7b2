//! Benchmark figures over the versions of a program.
//!
//! **Question.** Since which version is a benchmark slower, and by how much?
//!
//! **Method.** [`store`] keeps one row for each benchmark and process of a measurement, in Parquet
//! files of which each measurement adds one: two that are added at the same time do not touch the
//! same file, so a directory of them can be kept in a branch. [`import`] reads what `undertick bench`
//! and other tools print. [`analysis`] takes the mean of the logarithms of each measurement, and
//! looks for changes of their mean ([`undertick_estimate::change_points`]); machines have each their
//! own mean.
//!
//! **Caveats.** The measurements of a machine are taken to be independent. A machine that becomes
//! slower for a week makes a change; an interleaved comparison (`undertick compare --bench`) tells
//! it from one of the program.

pub mod analysis;
pub mod import;
pub mod store;

use std::path::{Path, PathBuf};

/// Why a history cannot be read, or be added to.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// What the user gave is not what is needed.
    #[error("{0}")]
    Usage(String),
    /// A file or directory cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What went wrong, with a mend.
        why: String,
    },
}

impl HistoryError {
    fn file(path: &Path, why: impl ToString) -> Self {
        Self::File {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}
