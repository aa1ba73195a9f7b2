//! The `compare` document: the figures of one document compared with those of another.

mod junit;
mod markdown;
mod screen;
mod subject;
mod terminal;
mod tree;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_document::Warning;
use undertick_units::Estimate;

use crate::survey::{Better, Host};

pub use junit::render_junit;
pub use markdown::render_markdown;
pub use screen::first_screen;
pub use subject::{NotComparable, Side, Subject, subject};
pub use terminal::render;
pub(crate) use terminal::{columns, gate, legend, of_ratio, source_line, summary};
pub use tree::{PathChange, PathFigure, PathSide};

/// Version of the document this crate describes.
pub const SCHEMA_VERSION: u32 = 1;

/// Code of the warning that the runs are too few for any figure to be called different.
pub const FEW_RUNS: &str = "few_runs";

/// Value of `kind` in a comparison.
pub const KIND: &str = "comparison";

/// A comparison of two documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Always [`KIND`].
    pub kind: String,
    /// The first document, the base of the comparison.
    pub a: Source,
    /// The second document.
    pub b: Source,
    /// Level of the confidence intervals.
    pub confidence: f64,
    /// Upper limit of the average share of false discoveries among the differences.
    pub false_share: f64,
    /// Whether the runs of both sides belong together in rounds; differences are then taken by
    /// round.
    #[serde(default)]
    pub paired: bool,
    /// Figures whose confidence interval lies within this share of no difference are alike; absent
    /// where no such share was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// The slow-down that was to be ruled out; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// How many rounds there were and why no more; absent where their number was not decided on the
    /// way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<Sequential>,
    /// Numbers of figures by verdict.
    pub summary: Summary,
    /// One entry for each figure that both have, in the order of the first.
    pub rows: Vec<Row>,
    /// The call trees of both sides as one, each path before those inside it. Empty where a side
    /// has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathChange>,
    /// Names of figures that only the first has.
    pub only_in_a: Vec<String>,
    /// Names of figures that only the second has.
    pub only_in_b: Vec<String>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
}

/// A comparison whose number of rounds was decided on the way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sequential {
    /// Number of rounds that were made.
    pub rounds: u64,
    /// Largest number of rounds that was planned.
    pub most: u64,
    /// Why there were no more.
    pub end: SequentialEnd,
    /// Chance that any figure is called different, at any of the looks, if none differs.
    pub false_alarms: f64,
}

/// Why a comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SequentialEnd {
    /// Each figure has a verdict.
    Decided,
    /// All rounds that were planned are made.
    Rounds,
    /// The time is over.
    Time,
    /// It was stopped.
    Interrupted,
    /// A program failed as a whole.
    Failed,
}

/// A slow-down that is not allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// A figure that is slower by more than this share is too slow.
    pub share: f64,
    /// Ids of the figures that surely are too slow. If none were, this list would have entries in
    /// at most the share `false_share` of comparisons, however many figures there are.
    pub too_slow: Vec<String>,
}

/// The source of one of the two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// The file it was read from.
    pub file: String,
    /// What its figures are from: `survey`, `report` or `benchmarks`.
    pub kind: String,
    /// The machine that was measured.
    pub host: Host,
    /// Unix time of the start, s.
    pub begun_unix_s: f64,
    /// The runs behind the document; absent where it is one document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
}

/// Numbers of figures by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Figures that both have.
    pub compared: u64,
    /// Figures that differ, with false discoveries controlled.
    pub differ: u64,
    /// Differing figures that are better in the second.
    pub better: u64,
    /// Differing figures that are worse in the second.
    pub worse: u64,
    /// Figures that would each count as different at the level if compared alone.
    pub differ_alone: u64,
    /// How many of `differ_alone` to expect by chance if nothing were different.
    pub expected_by_chance: f64,
    /// Figures that do not differ by more than their `bound`, which is small.
    pub alike: u64,
    /// Figures that give no verdict.
    pub cannot_tell: u64,
}

/// A figure that both documents have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Its stable name.
    pub id: String,
    /// Its group.
    pub group: String,
    /// What it is, in words.
    pub name: String,
    /// Which direction is an improvement.
    pub better: Better,
    /// The figure in the first document.
    pub a: Estimate,
    /// The figure in the second document.
    pub b: Estimate,
    /// Second over first; `null` where a ratio has no meaning.
    pub ratio: Option<Estimate>,
    /// Second less first.
    pub difference: Estimate,
    /// Probability of a difference at least this large by chance; `null` without intervals.
    pub p: Option<f64>,
    /// The p-value, adjusted for the number of figures (Benjamini and Hochberg).
    pub adjusted_p: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The truth lies within this share of no difference, at the level; `null` where there is no
    /// such bound.
    pub bound: Option<f64>,
    /// Number of runs of each side that would probably suffice for a verdict if nothing were
    /// different; absent where that is not known or was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_wanted: Option<u64>,
    /// Probability that chance alone makes it look slower than the gate's share allows, adjusted
    /// for the number of figures; absent without a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_p: Option<f64>,
    /// The verdict in words.
    pub words: String,
}

/// How a figure of the second document compares with that of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better; the figure is a time or a speed.
    Faster,
    /// Worse; the figure is a time or a speed.
    Slower,
    /// Smaller; the figure is neither a time nor a speed.
    Less,
    /// Larger; the figure is neither a time nor a speed.
    More,
    /// No difference larger than `bound`.
    Alike,
    /// The confidence intervals are too wide for a verdict.
    CannotTell,
}

impl Verdict {
    /// Whether it is a difference.
    #[must_use]
    pub const fn differs(self) -> bool {
        !matches!(self, Self::Alike | Self::CannotTell)
    }
}

#[cfg(test)]
#[path = "compare/tests.rs"]
mod tests;
