//! The call trees of both sides as one, with what is known of each path's change.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use undertick_document::Report;
use undertick_units::{Estimate, Interval};

use super::Verdict;
use super::subject::to_quote;
use crate::survey::Metric;

/// Group of the figures of paths.
const GROUP: &str = "paths";
/// Paths with as many around them are left out: the names of all of them would fill the memory.
const DEEPEST: usize = 256;

/// A path of either side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The names of its spans, with `/` between them.
    pub id: String,
    /// Name of its innermost span.
    pub name: String,
    /// Index of the path around it, which comes before.
    pub parent: Option<usize>,
    /// Whether other paths have the same name, too.
    pub shares_name: bool,
    /// Number of calls, total and self time.
    pub side: PathSide,
    /// The typical time of a call; `None` where it is not known. It has an interval only where the
    /// path is the only one with its name.
    pub metric: Option<Metric>,
}

/// The paths of a report.
pub(super) fn paths(report: &Report) -> Vec<PathFigure> {
    let mut same: HashMap<&str, usize> = HashMap::new();
    for path in &report.paths {
        *same.entry(&path.name).or_default() += 1;
    }
    let estimates: HashMap<&str, Estimate> = (report.intervals.iter())
        .filter(|interval| same.get(interval.name.as_str()) == Some(&1))
        .filter_map(|interval| Some((interval.name.as_str(), to_quote(interval)?)))
        .collect();
    let mut found: Vec<PathFigure> = Vec::new();
    // The place of each path of the report among those found, and the depth there.
    let mut places: Vec<Option<(usize, usize)>> = Vec::new();
    for path in &report.paths {
        let around = path
            .parent
            .map(|parent| places.get(parent as usize).copied());
        let (parent, depth) = match around {
            None => (None, 0),
            Some(Some(Some((place, depth)))) if depth + 1 < DEEPEST => (Some(place), depth + 1),
            Some(_) => {
                places.push(None);
                continue;
            }
        };
        places.push(Some((found.len(), depth)));
        let alone = || plain(path.median_ns?, path.calls);
        let typical = estimates.get(path.name.as_str()).cloned().or_else(alone);
        let id = match parent {
            Some(parent) => format!("{}/{}", found[parent].id, path.name),
            None => path.name.clone(),
        };
        found.push(PathFigure {
            metric: typical
                .as_ref()
                .map(|of| Metric::new(&id, GROUP, &id, of.clone(), "")),
            id,
            name: path.name.clone(),
            parent,
            shares_name: same.get(path.name.as_str()) != Some(&1),
            side: PathSide {
                calls: path.calls as f64,
                total_ns: path.total.as_ref().map(|total| total.value),
                self_ns: path.self_ns,
                call_ns: typical.map(|typical| typical.value),
            },
        });
    }
    found
}

/// A median without an interval.
fn plain(ns: f64, calls: u64) -> Option<Estimate> {
    ns.is_finite().then(|| Estimate {
        value: ns,
        interval: Interval { lo: None, hi: None },
        level: 0.95,
        unit: "ns".to_owned(),
        method: "median of the path's samples".to_owned(),
        n: calls,
        n_effective: calls as f64,
        notes: Vec::new(),
    })
}
