//! The interface between an experiment and a machine.

use std::path::Path;

use serde::{Deserialize, Serialize};
use undertick_format::TraceError;

use super::{Cell, Experiment};
use crate::script::{Plan, Policy, Words as _};

/// A machine that performs scripts: this one, or a simulated one.
///
/// It offers verbs, processors and a clock, creates the processes, and leaves a trace with the
/// event numbers of [`Numbering`](super::Numbering). All later steps are the same for all machines.
pub trait Machine {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Processors that processes may be placed on.
    fn processors(&self) -> usize;

    /// What it lacks for this plan, in words; `None` if it can perform it.
    fn lacks(&self, plan: &Plan) -> Option<String>;

    /// Performs every repetition of the settings for which it lacks nothing, in the order of
    /// [`Experiment::order`], into a new trace.
    ///
    /// # Errors
    /// Nothing could be performed.
    fn perform(
        &self,
        experiment: &Experiment,
        trace: &Path,
        progress: &mut dyn FnMut(ExperimentProgress),
    ) -> Result<Performed, ExperimentError>;
}

/// Progress of an experiment.
#[derive(Clone, Copy, Debug)]
pub enum ExperimentProgress {
    /// Repetitions that are over, and their number in all.
    Repetition(usize, usize),
    /// The trace is being finalized: the share that is done, 0 to 1.
    Finalizing(f64),
}

/// The result of performing an experiment.
#[derive(Clone, Debug, Default)]
pub struct Performed {
    /// One entry for each repetition that was begun, in order.
    pub repetitions: Vec<Repetition>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

/// The outcome of one repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Repetition {
    /// Index of the setting.
    pub setting: usize,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// How it ended.
    pub ended: Ended,
    /// Passes that counted.
    pub passes: u64,
    /// Time that these passes took, s.
    pub seconds: f64,
    /// The CPU of each process, by its first replica; `None` where it was free.
    pub cpus: Vec<Option<usize>>,
    /// The scheduling policy of its processes, as the script calls it; `None` where the machine has
    /// none.
    #[serde(default)]
    pub policy: Option<String>,
    /// The policies that the script prefers and the system refuses, and why.
    #[serde(default)]
    pub refused: Option<String>,
}

impl Repetition {
    /// One in which nothing has been done yet.
    pub(crate) const fn new(cell: Cell) -> Self {
        Self {
            setting: cell.setting,
            repetition: cell.repetition,
            ended: Ended::Done,
            passes: 0,
            seconds: 0.0,
            cpus: Vec::new(),
            policy: None,
            refused: None,
        }
    }

    /// The scheduling policy in words, if it is not the default one.
    #[must_use]
    pub fn policy_words(&self) -> Option<String> {
        let policy = self.policy.as_deref()?;
        (policy != Policy::Other.word()).then(|| format!("policy {policy}"))
    }
}

/// How a repetition ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All its passes are done.
    Done,
    /// It was ended after its timeout; says where its processes were then.
    TimedOut(String),
    /// It failed; the text says what is known.
    Failed(String),
    /// This machine lacks something for it.
    Lacking(String),
}

/// Why an experiment could not be performed.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct ExperimentError {
    /// What was wrong, in words.
    pub text: String,
    /// The kind of cause.
    pub why: Why,
}

/// The kind of cause for which an experiment could not be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The machine is unable, at least now.
    Machine,
    /// The input is wrong.
    Input,
    /// It was interrupted before there was anything to keep.
    Interrupted,
}

impl ExperimentError {
    /// Returns the error of a machine that cannot perform the experiment.
    pub fn machine(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            why: Why::Machine,
        }
    }

    /// Returns the error of a wrong input.
    pub fn input(text: impl Into<String>) -> Self {
        Self {
            why: Why::Input,
            ..Self::machine(text)
        }
    }

    /// Returns the error of an experiment that was interrupted before there was anything to keep.
    pub fn interrupted(text: impl Into<String>) -> Self {
        Self {
            why: Why::Interrupted,
            ..Self::machine(text)
        }
    }
}

impl From<TraceError> for ExperimentError {
    fn from(error: TraceError) -> Self {
        match error.exit_status() {
            2 => Self::input(error.to_string()),
            _ => Self::machine(error.to_string()),
        }
    }
}
