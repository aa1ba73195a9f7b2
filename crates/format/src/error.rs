use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use undertick_text::{clean, clean_lines};

/// What went wrong with a trace or a recording: file, place and mend. Text from files and
/// programs is made harmless before it is shown.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file could not be read or written.
    #[error("{}: {action}: {source}{}", shown(path), hint(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// Not a trace, or a damaged one.
    #[error("{}: {}", shown(path), clean_lines(what))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        what: String,
    },
    /// Written by another version.
    #[error(
        "{}: trace format version {found}, this Undertick reads {expected}; use the Undertick that recorded it",
        shown(path)
    )]
    Version {
        /// The manifest.
        path: PathBuf,
        /// Version found.
        found: u64,
        /// Version this crate reads.
        expected: u32,
    },
    /// The recording could not be made as asked.
    #[error("{}", clean_lines(_0))]
    Recording(String),
    /// The command line or the input asks for something impossible.
    #[error("{}", clean_lines(_0))]
    Usage(String),
}

fn shown(path: &Path) -> String {
    clean(&path.to_string_lossy()).into_owned()
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => " (free some space, or give another place with -o)",
        std::io::ErrorKind::PermissionDenied => " (is it yours?)",
        std::io::ErrorKind::NotFound => " (is the name right?)",
        _ => "",
    }
}

impl TraceError {
    /// An I/O error with its file and action.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            path,
            action,
            source,
        }
    }

    /// A file that is not what it should be.
    pub fn damaged(path: &Path, what: impl ToString) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            what: what.to_string(),
        }
    }

    /// The error for a session of another Undertick version, which can read its content.
    #[must_use]
    pub fn other_version(path: &Path) -> Self {
        Self::Usage(format!(
            "{}: made by another version of Undertick: finish the recording with that one",
            path.display()
        ))
    }

    /// Exit status of the command line: 2 wrong usage or bad input, 1 the
    /// measurement could not be made as asked.
    #[must_use]
    pub fn exit_status(&self) -> i32 {
        match self {
            Self::Damaged { .. } | Self::Version { .. } | Self::Usage(_) => 2,
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => 2,
            Self::Io { .. } | Self::Recording(_) => 1,
        }
    }
}

/// Converts an error of the Parquet library; one that is really an I/O error keeps its kind.
#[must_use]
pub fn parquet_error(path: &Path, action: &'static str, error: ParquetError) -> TraceError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => TraceError::io(path, action)(*io),
            Err(other) => TraceError::damaged(path, format!("{action}: {other}")),
        },
        other => TraceError::damaged(path, format!("{action}: {other}")),
    }
}

#[cfg(test)]
mod tests;
