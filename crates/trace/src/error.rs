use std::path::{Path, PathBuf};

/// What went wrong with a trace or a recording: file, place and mend.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file could not be read or written.
    #[error("{}: {action}: {source}{}", path.display(), hint(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// Not a trace, or not a sound one.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        what: String,
    },
    /// Written by another version.
    #[error("{}: trace format version {found}, this Undertick reads {expected}; use the Undertick that recorded it", path.display())]
    Version {
        /// The manifest.
        path: PathBuf,
        /// Version found.
        found: u64,
        /// Version this crate reads.
        expected: u32,
    },
    /// The recording could not be made as asked.
    #[error("{0}")]
    Recording(String),
    /// The command line or the input asks for something impossible.
    #[error("{0}")]
    Usage(String),
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

impl From<undertick_functions::FunctionsError> for TraceError {
    fn from(error: undertick_functions::FunctionsError) -> Self {
        if error.is_usage() {
            Self::Usage(error.to_string())
        } else {
            Self::Recording(error.to_string())
        }
    }
}
