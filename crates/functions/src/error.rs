use std::path::PathBuf;

/// Why functions cannot be recorded: what, where and the mend.
#[derive(Debug, thiserror::Error)]
pub enum FunctionsError {
    /// A file could not be read or written.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The filter is no regular expression.
    #[error("--functions {filter:?}: {error}")]
    Filter {
        /// The filter as given.
        filter: String,
        /// Where it is wrong.
        error: regex::Error,
    },
    /// No function of this program can be recorded.
    #[error("{}: {why}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Why not, and the mend.
        why: String,
    },
}

impl FunctionsError {
    pub(crate) fn io(
        path: &std::path::Path,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            path,
            action,
            source,
        }
    }

    /// Whether the command line asks for something impossible.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Filter { .. } | Self::Program { .. })
    }
}
