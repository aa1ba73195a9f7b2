//! The `history` document: benchmarks over the versions of a program, and where they changed.

mod terminal;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_document::figures::per_cent;
use undertick_units::Estimate;

use crate::remarks::number_of;
use crate::table::{Cell, Columns};

/// Version of the document this crate describes.
pub const SCHEMA_VERSION: u32 = 1;

/// Value of `kind` in such a document.
pub const KIND: &str = "history";

pub use terminal::render;

/// Benchmarks over versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Version of the document.
    pub schema_version: u32,
    /// Always `history`.
    pub kind: String,
    /// The directory.
    pub directory: String,
    /// Number of versions.
    pub versions: u64,
    /// Number of machines.
    pub machines: u64,
    /// The newest version.
    pub newest: Option<String>,
    /// Level of the confidence intervals.
    pub level: f64,
    /// Share of false ones among the benchmarks whose newest version is called slower or faster.
    pub false_share: f64,
    /// Share by which the newest version may be slower.
    pub allow: f64,
    /// The benchmarks, by suite and name.
    pub benchmarks: Vec<BenchmarkHistory>,
}

/// One benchmark over versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchmarkHistory {
    /// The program or the set of benchmarks.
    pub suite: String,
    /// Its name.
    pub name: String,
    /// Its measurements, in the order of the versions.
    pub points: Vec<HistoryPoint>,
    /// Its changes, in the same order.
    pub changes: Vec<HistoryChange>,
    /// The newest version against those before it; `null` where that cannot be said.
    pub newest: Option<NewestVersion>,
    /// Why it cannot be said.
    pub not_judged: Option<String>,
}

/// A benchmark in a version on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPoint {
    /// Time of the version, Unix time in seconds.
    pub unix_s: f64,
    /// The version.
    pub version: String,
    /// The machine.
    pub machine: String,
    /// Geometric mean of the processes' times of an iteration, ns.
    pub time_ns: f64,
    /// Number of processes.
    pub processes: u64,
    /// The level of its stretch between two changes, on this machine, ns: a geometric mean.
    pub level_ns: f64,
}

/// A change of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryChange {
    /// Index of the first measurement after it.
    pub at: u64,
    /// The first version after it.
    pub version: String,
    /// The version before it.
    pub before: String,
    /// First and last version that it may be at, at the level of the document.
    pub within: [String; 2],
    /// Time after it over time before it.
    pub ratio: Estimate,
    /// Chance of so clear a step without a change.
    pub p: f64,
}

/// The newest version against the stretch before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewestVersion {
    /// The version.
    pub version: String,
    /// Its time over the time before it.
    pub ratio: Estimate,
    /// Chance of such a difference without a change, in either direction.
    pub p: f64,
    /// The same, adjusted for the number of benchmarks.
    pub adjusted_p: f64,
    /// What follows from that.
    pub verdict: NewestVerdict,
    /// Chance of such a time if the version is slower by the allowed share, adjusted for the number of
    /// benchmarks.
    pub allowed_p: f64,
    /// Whether it is surely slower by more than the allowed share.
    pub is_too_slow: bool,
}

/// Whether the newest version differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NewestVerdict {
    /// It is slower.
    Slower,
    /// It is faster.
    Faster,
    /// Nothing says that it differs by more than its interval.
    NoChangeFound,
}

impl NewestVerdict {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::NoChangeFound => "no change found",
        }
    }
}

impl BenchmarkHistory {
    /// Its name with that of its suite.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}: {}", self.suite, self.name)
    }
}

/// The table of all benchmarks.
pub(crate) fn columns<'a>() -> Columns<'a, &'a BenchmarkHistory> {
    Columns::new()
        .column("benchmark", |of: &BenchmarkHistory| {
            Cell::About(&of.name, of.suite.as_str().into())
        })
        .words()
        .column("now", |of| match of.points.last() {
            Some(point) => Cell::Duration(point.time_ns),
            None => Cell::text("-"),
        })
        .column("points", |of| Cell::Count(of.points.len() as u64))
        .column("changes", |of| Cell::Count(of.changes.len() as u64))
        .column("last change", |of| match of.changes.last() {
            Some(change) => Cell::Name(&change.version),
            None => Cell::text("-"),
        })
        .words()
        .column("by", |of| match of.changes.last() {
            Some(change) => Cell::text(change_of(&change.ratio)),
            None => Cell::text(""),
        })
}

/// A ratio as a change in per cent, with its interval.
pub(crate) fn change_of(ratio: &Estimate) -> String {
    let percent = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0));
    match (ratio.interval.lo, ratio.interval.hi) {
        (Some(lo), Some(hi)) => {
            format!(
                "{} % [{}, {}]",
                percent(ratio.value),
                percent(lo),
                percent(hi)
            )
        }
        _ => format!("{} %", percent(ratio.value)),
    }
}

/// What was measured, in a line.
pub(crate) fn summary(history: &History) -> String {
    format!(
        "{}, {}, {}",
        number_of(history.benchmarks.len() as u64, "benchmark"),
        number_of(history.versions, "version"),
        number_of(history.machines, "machine")
    )
}

/// What the newest version is like: those that differ, by name.
pub(crate) fn of_newest(history: &History) -> Vec<String> {
    let newest = |of: &BenchmarkHistory| {
        let newest = of.newest.as_ref()?;
        let differs = newest.verdict != NewestVerdict::NoChangeFound;
        (differs || newest.is_too_slow).then(|| {
            let by = match (newest.is_too_slow, history.allow > 0.0) {
                (true, true) => format!("slower by more than {}", per_cent(history.allow)),
                (true, false) => NewestVerdict::Slower.words().to_owned(),
                (false, _) => newest.verdict.words().to_owned(),
            };
            let change = change_of(&newest.ratio);
            let text = format!("{} is {by} in {}: {change}", of.full_name(), newest.version);
            (!newest.is_too_slow, text)
        })
    };
    let mut lines: Vec<(bool, String)> = history.benchmarks.iter().filter_map(newest).collect();
    // What is too slow comes first.
    lines.sort_by_key(|(is_allowed, _)| *is_allowed);
    lines.into_iter().map(|(_, text)| text).collect()
}

#[cfg(test)]
mod tests;
