//! Functions that nobody instrumented by hand, as events of a recording.

use std::ffi::OsString;
use std::path::Path;

pub use undertick_functions::FIRST_FUNCTION;
use undertick_functions::answers::Answers;
use undertick_functions::{FunctionsError, LIBRARY, LIBRARY_FILE, Regex, before};

use undertick_format::TraceError;
use undertick_format::manifest::Name;

use crate::preload::Preloads;

/// Functions to record. This is made before the trace, so that a program without recordable
/// functions leaves nothing behind.
pub struct Functions {
    filter: Regex,
    before: before::Before,
}

impl Functions {
    /// Selects the functions of the program, and of what it starts or opens, that match the
    /// filter.
    ///
    /// # Errors
    /// Nothing can be recorded of this program: the reason and the mend.
    pub fn for_program(program: &OsString, filter: Regex) -> Result<Self, TraceError> {
        let before = before::look(program, &filter).map_err(functions_error)?;
        Ok(Self { filter, before })
    }

    /// Selects functions that match the filter, for a program that is known to call the hooks.
    ///
    /// # Errors
    /// The filter is not a regular expression.
    pub fn unseen(filter: &str) -> Result<Self, TraceError> {
        Ok(Self {
            filter: undertick_functions::filter(filter).map_err(functions_error)?,
            before: before::Before::default(),
        })
    }

    /// What the user should know before the program runs.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.before.note.as_deref()
    }

    pub(crate) fn start(
        &self,
        session: &Path,
        trace: &Path,
        preloads: &mut Preloads,
    ) -> Result<Recorded, TraceError> {
        preloads.add(LIBRARY_FILE, LIBRARY, &[session, trace])?;
        let answers = Answers::start(session, self.filter.clone()).map_err(functions_error)?;
        for (path, module) in &self.before.modules {
            answers.prepare(path, module).map_err(functions_error)?;
        }
        let note = self.before.note.clone();
        Ok(Recorded { answers, note })
    }
}

pub(crate) fn functions_error(error: FunctionsError) -> TraceError {
    if error.is_usage() {
        TraceError::Usage(error.to_string())
    } else {
        TraceError::Recording(error.to_string())
    }
}

/// A session that records functions.
pub(crate) struct Recorded {
    answers: Answers,
    note: Option<String>,
}

impl Recorded {
    /// Returns warnings about the functions. `names` are those of the session; names that the
    /// programs gave themselves have a process.
    pub(crate) fn finish(self, names: &[Name]) -> Vec<String> {
        let found = self.answers.finish();
        let mut warnings = found.warnings;
        if !names
            .iter()
            .any(|n| n.pid.is_none() && n.event >= FIRST_FUNCTION)
        {
            let why = self.note.unwrap_or_else(|| {
                "was one called that the filter takes, and in a program for which the loader heeds LD_PRELOAD?".to_owned()
            });
            warnings.push(format!("no call of a function was recorded: {why}"));
        }
        let missed = found.missed;
        if missed.functions > 0 {
            warnings.push(format!(
                "{} functions got no number, since there are 32768: their {} calls are not recorded; take fewer with --functions",
                missed.functions, missed.calls
            ));
        }
        if missed.unanswered > 0 {
            warnings.push(format!(
                "{} times a program did not get the names of a file's functions in time: they are not recorded",
                missed.unanswered
            ));
        }
        if let Some(theirs) = names
            .iter()
            .find(|n| n.pid.is_some() && n.event >= FIRST_FUNCTION)
        {
            warnings.push(format!(
                "the program has an event {} ({}) of its own: with --functions the numbers from {FIRST_FUNCTION} on are those of functions",
                theirs.event, theirs.name
            ));
        }
        warnings
    }
}

/// Names of the functions that were called in a session.
pub(crate) fn names(session: &Path) -> Vec<Name> {
    undertick_functions::table::called(session)
        .into_iter()
        .map(|called| Name {
            pid: None,
            event: called.event,
            name: called.name,
        })
        .collect()
}
