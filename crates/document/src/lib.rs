//! The `report` document: what `undertick report --json` prints. The terminal table and the HTML
//! page are drawn from it.
//!
//! Version 1. Other programs read it, so fields are added, never renamed and
//! never given another meaning. Every duration is in nanoseconds unless its
//! name or its `unit` says otherwise. A figure that the data cannot give is
//! `null`, never zero and never a guess.

pub mod chapters;
mod experiment;
pub mod explanation;
pub mod figures;
mod impossible;
mod interposed;
mod interval;
pub mod passes;
mod paths;
mod stacks;
mod states;
mod tasks;
pub mod timeline;
mod trace;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

pub use experiment::{LineReport, Repeated, RepetitionFigure};

pub use impossible::{Must, is_open, without_impossible};
pub use interposed::{Allocations, Lock, LockKind, LockWaits, Locks, PathAllocations};
pub use interval::{
    AcrossHosts, Alternative, Compensation, Culled, Evidence, Histogram, IntervalKind,
    IntervalReport, Mode, OfThisRun, Reads, RunFigures, SampleStatistics, Sampled, ShareOf, Slowed,
    TakenOff, Unexplained, Valley, slowdown_of_program,
};
pub use paths::PathReport;
pub use stacks::{FunctionShare, PathStacks, StackFunction, StackNode, Stacks};
pub use states::{PathStates, StateCondition, StateFact, StateReport};
pub use tasks::{TaskLife, TaskPolled, TaskReport, TaskState, TaskTimes, TaskWaker, Tasks};
pub use trace::{ClockSummary, HostSummary, TraceSummary};

/// Version of the document this crate describes.
pub const SCHEMA_VERSION: u32 = 1;

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// How the analysis was configured.
    pub settings: Settings,
    /// What was recorded, where, and how completely; with several runs, over all of them.
    pub trace: TraceSummary,
    /// Number of runs that the figures come from (`record --runs`); absent for one recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// From the start of the first run to the end of the last, ns; absent for one recording and
    /// where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_within_ns: Option<i64>,
    /// One entry per interval, in the order of the table; without a table by total time, longest
    /// first.
    pub intervals: Vec<IntervalReport>,
    /// Spans by path, each after the one around it, the longest first among those with the same one
    /// around. Empty with a table, for several runs, and in documents of versions that did not
    /// distinguish paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathReport>,
    /// What tells the short calls of a path from the long ones, the longest path first; only paths of
    /// which something is known that does. Empty where it was not sought.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<PathStates>,
    /// Which functions the time of spans went to, where threads were sampled (`record --stacks`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<Stacks>,
    /// What threads waited for, where that was recorded (`record --with locks`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Locks>,
    /// What was allocated, where that was recorded (`record --with malloc`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations: Option<Allocations>,
    /// Tasks and what they did, where the program recorded tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Tasks>,
    /// One entry per counted event, the most frequent first.
    pub frequencies: Vec<FrequencyReport>,
    /// Straight lines through the figures of several settings of an experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineReport>,
    /// Passes of an experiment step by step, where they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<passes::Passes>,
    /// What the reader must know, the gravest first.
    pub warnings: Vec<Warning>,
}

impl Report {
    /// The names of the spans of a path, from the outermost on; none where there is no such path.
    pub fn path_names(&self, at: usize) -> impl Iterator<Item = &str> {
        let around = |&at: &usize| {
            let outer = self.paths[at].parent? as usize;
            // Each comes after the one around it; a document of others may say anything.
            (outer < at).then_some(outer)
        };
        let here = (at < self.paths.len()).then_some(at);
        let mut places: Vec<usize> = std::iter::successors(here, around).collect();
        places.reverse();
        (places.into_iter()).map(|at| self.paths[at].name.as_str())
    }

    /// Whether what belongs to a path, or to spans of these names that were still open, lies in another
    /// path or is that path's.
    #[must_use]
    pub fn is_inside(&self, (path, still_open): (Option<u32>, &[String]), outer: usize) -> bool {
        match path {
            None => {
                let first = still_open.iter().take(self.path_names(outer).count());
                !still_open.is_empty() && first.eq(self.path_names(outer))
            }
            Some(path) => {
                let around = |&at: &u32| {
                    let outer = self.paths.get(at as usize)?.parent;
                    outer.filter(|up| *up < at)
                };
                std::iter::successors(Some(path), around).any(|at| at as usize == outer)
            }
        }
    }

    /// The names of a path, the role's first if there are roles, with `/` between them.
    #[must_use]
    pub fn path_name(&self, at: usize) -> String {
        self.path_names(at).collect::<Vec<&str>>().join("/")
    }

    /// The most that the self time of a path can be, ns, where it is not known because what was
    /// subtracted for recording exceeds it or because spans inside were not recorded all the time;
    /// otherwise `None`.
    #[must_use]
    pub fn most_self_ns(&self, at: usize) -> Option<f64> {
        let is_unknown = |path: &&PathReport| path.self_ns.is_none() && path.threads.is_none();
        let path = self.paths.get(at).filter(is_unknown)?;
        let inside = (self.paths.iter()).filter(|other| other.parent == Some(at as u32));
        let least: Option<f64> = inside.map(|other| other.total.as_ref()?.interval.lo).sum();
        let most = path.total.as_ref()?.interval.hi? - least?;
        (most > 0.0).then_some(most)
    }

    /// Whether the outermost paths are roles of threads.
    #[must_use]
    pub fn has_roles(&self) -> bool {
        self.paths.iter().any(|path| path.threads.is_some())
    }

    /// The names of a path without its role, unless another role has the same path.
    #[must_use]
    pub fn short_name(&self, at: usize) -> String {
        if !self.has_roles() {
            return self.path_name(at);
        }
        let short = || self.path_names(at).skip(1);
        let is_alike = |&other: &usize| {
            let last = |at: usize| &self.paths[at].name;
            other != at && last(other) == last(at) && self.path_names(other).skip(1).eq(short())
        };
        match short().next().is_none() || (0..self.paths.len()).any(|other| is_alike(&other)) {
            true => self.path_name(at),
            false => short().collect::<Vec<&str>>().join("/"),
        }
    }

    /// The paths of spans that a text names: that whose names it has, from the role or the outermost
    /// span on with `/` between them; where there is none, those whose names without the role it has,
    /// or else those with these last names.
    #[must_use]
    pub fn paths_named(&self, text: &str) -> Vec<usize> {
        let is_span = |&at: &usize| self.paths[at].threads.is_none();
        let spans: Vec<usize> = (0..self.paths.len()).filter(is_span).collect();
        let having = |names: &dyn Fn(usize) -> bool| -> Vec<usize> {
            spans.iter().copied().filter(|&at| names(at)).collect()
        };
        let roles = usize::from(self.has_roles());
        let without_role = |at: usize| {
            self.path_names(at)
                .skip(roles)
                .collect::<Vec<_>>()
                .join("/")
        };
        let end = format!("/{text}");
        let by: [&dyn Fn(usize) -> bool; 3] = [
            &|at| self.path_name(at) == text,
            &|at| without_role(at) == text,
            &|at| self.path_name(at).ends_with(&end),
        ];
        let mut found = by.into_iter().map(having);
        found.find(|found| !found.is_empty()).unwrap_or_default()
    }
}

/// How the analysis was configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Level of every confidence interval, e.g. 0.95.
    pub confidence: f64,
    /// `auto`, `kernel`, `ratio:4` or `none`, as on the command line.
    pub cull: String,
    /// `auto` or `none`, as on the command line.
    pub compensate: String,
    /// Name of the table that defined the intervals; `null` without one.
    pub table: Option<String>,
    /// Which question the confidence intervals of `mean`, `median` and `quantiles` answer.
    #[serde(default)]
    pub scope: Scope,
}

/// The question that a confidence interval answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// What this run would have given had it gone on. The interval comes from the differences
    /// between the run's own blocks, and another run may lie outside.
    #[default]
    ThisRun,
    /// What a repetition gives. The interval comes from the differences between runs.
    Repetition,
}

/// How often an event occurred.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrequencyReport {
    /// Its name.
    pub name: String,
    /// Events per second of the time from the first to the last event; `null` if there is no such
    /// time.
    pub per_second: Option<Estimate>,
    /// Share of the events that lie in the enclosing interval, where the
    /// table names one.
    pub share_of: Option<ShareOf>,
    /// Number of events.
    pub count: u64,
}

/// Something the reader must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Short and stable, for programs: `lost_events`, `unmatched`, ...
    pub code: String,
    /// The message in plain words, with what to try next.
    pub text: String,
}

#[cfg(test)]
mod tests;
