//! The call trees of both sides as one, with what is known of each path's change.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_document::Report;
use undertick_units::Estimate;

use super::Verdict;
use super::subject::to_quote;

/// A path of either side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathChange {
    /// Name of its innermost span.
    pub name: String,
    /// Index of the path around it, which comes before; `null`: it is outermost.
    pub parent: Option<u32>,
    /// Number of paths around it.
    pub depth: u32,
    /// What the first side has of it; `null`: nothing.
    pub a: Option<PathSide>,
    /// What the second side has of it; `null`: nothing.
    pub b: Option<PathSide>,
    /// Typical time of a call, second over first; `null` where it has no meaning or is not known.
    pub ratio: Option<Estimate>,
    /// Probability of a difference at least this large by chance, adjusted for the number of paths
    /// (Benjamini and Hochberg); `null` without intervals.
    pub adjusted_p: Option<f64>,
    /// The verdict on the typical time of a call.
    pub verdict: Verdict,
    /// The verdict in words.
    pub words: String,
}

/// A path on one side: of several runs, the means over all of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathSide {
    /// Number of calls.
    pub calls: f64,
    /// Time of all calls, ns; `null` where it is not known.
    pub total_ns: Option<f64>,
    /// The part of it in no span inside, ns; likewise.
    pub self_ns: Option<f64>,
    /// Typical time of a call, ns: the median, or the mean where the median is less than 20 steps
    /// of the clock. Of several runs the middle one. `null` where it is not known.
    pub call_ns: Option<f64>,
}

impl PathChange {
    /// Whether the verdict is a difference.
    #[must_use]
    pub const fn differs(&self) -> bool {
        self.verdict.differs()
    }
}

/// A path of one report.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFigure {
    /// Name of its innermost span, or of the role.
    pub name: String,
    /// Whether it is a role of threads.
    pub is_role: bool,
    /// Index of the path around it, which comes before.
    pub parent: Option<usize>,
    /// Whether other paths have the same name, too.
    pub shares_name: bool,
    /// Number of calls, total and self time, typical call.
    pub side: PathSide,
    /// The typical call with its interval: that of the name, where no other path has it.
    pub typical: Option<Estimate>,
}

impl PathFigure {
    /// The path as one of many runs, whose own intervals say nothing.
    #[must_use]
    pub fn without_interval(self) -> Self {
        Self {
            typical: None,
            ..self
        }
    }
}

/// The paths of a report.
pub(super) fn paths(report: &Report) -> Vec<PathFigure> {
    let mut same: HashMap<&str, usize> = HashMap::new();
    for path in report.paths.iter().filter(|path| path.threads.is_none()) {
        *same.entry(&path.name).or_default() += 1;
    }
    let is_alone = |name: &str| same.get(name) == Some(&1);
    let mut estimates: HashMap<&str, Estimate> = (report.intervals.iter())
        .filter(|interval| is_alone(&interval.name))
        .filter_map(|interval| Some((interval.name.as_str(), to_quote(interval)?)))
        .collect();
    (report.paths.iter())
        .map(|path| {
            let is_role = path.threads.is_some();
            let typical = match is_role {
                true => None,
                false => estimates.remove(path.name.as_str()),
            };
            PathFigure {
                name: path.name.clone(),
                is_role,
                parent: path.parent.map(|parent| parent as usize),
                shares_name: !is_alone(&path.name),
                side: PathSide {
                    calls: path.calls as f64,
                    total_ns: path.total.as_ref().map(|total| total.value),
                    self_ns: path.self_ns,
                    call_ns: typical.as_ref().map(|of| of.value).or(path.median_ns),
                },
                typical,
            }
        })
        .collect()
}
