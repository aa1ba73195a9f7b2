//! The `compare` document: the figures of one document beside those of another.

mod markdown;
mod subject;
mod terminal;

use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use crate::document::Warning;
use crate::survey::{Better, Host};

pub use markdown::render_markdown;
pub use subject::{NotComparable, Side, Subject, subject};
pub use terminal::render;

/// Version of the document this crate describes.
pub const SCHEMA_VERSION: u32 = 1;

/// What `kind` is in a comparison.
pub const KIND: &str = "comparison";

/// Two documents beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Always [`KIND`].
    pub kind: String,
    /// The first, that all is compared with.
    pub a: About,
    /// The second.
    pub b: About,
    /// Level of the intervals.
    pub confidence: f64,
    /// False discoveries among the differences, on average at most.
    pub false_share: f64,
    /// Runs of both sides belong together in rounds: differences are of rounds.
    #[serde(default)]
    pub paired: bool,
    /// Figures whose interval lies within this share of no difference are alike;
    /// absent where nobody said what is little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// What was to be ruled out; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// How it came out, in figures.
    pub summary: Summary,
    /// One entry for each figure that both have, in the order of the first.
    pub rows: Vec<Row>,
    /// Names of figures that only the first has.
    pub only_in_a: Vec<String>,
    /// Names of figures that only the second has.
    pub only_in_b: Vec<String>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
}

/// A slow-down that is not to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Slower by more than this share is too slow.
    pub share: f64,
    /// Ids of the figures that surely are: were none, a list that is not empty would
    /// come in at most the share 1 - level of comparisons, however many figures.
    pub too_slow: Vec<String>,
}

/// One of the two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Where it was read from.
    pub file: String,
    /// What its figures are from: `survey` or `report`.
    pub kind: String,
    /// The machine.
    pub host: Host,
    /// Unix time of its begin, s.
    pub begun_unix_s: f64,
    /// Runs that it is made of; absent where it is one document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
}

/// How many figures differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Figures that both have.
    pub compared: u64,
    /// Those that differ, false discoveries controlled.
    pub differ: u64,
    /// Of these, better in the second.
    pub better: u64,
    /// Of these, worse in the second.
    pub worse: u64,
    /// Figures whose difference alone would be called one at the level.
    pub differ_alone: u64,
    /// So many of them chance alone would make, were nothing different.
    pub expected_by_chance: f64,
    /// Figures that do not differ by more than their `bound`, which is small.
    pub alike: u64,
    /// Figures of which nothing can be told.
    pub cannot_tell: u64,
}

/// A figure of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its stable name.
    pub id: String,
    /// Its group.
    pub group: String,
    /// What it is, in words.
    pub name: String,
    /// Which way is better.
    pub better: Better,
    /// In the first.
    pub a: Estimate,
    /// In the second.
    pub b: Estimate,
    /// Second over first; `null` where that has no meaning.
    pub ratio: Option<Estimate>,
    /// Second less first.
    pub difference: Estimate,
    /// How likely chance alone sets them so far apart; `null` without intervals.
    pub p: Option<f64>,
    /// The same, adjusted for the number of figures (Benjamini and Hochberg).
    pub adjusted_p: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The truth lies within this share of no difference, at the level; `null` where
    /// that cannot be said.
    pub bound: Option<f64>,
    /// So many runs of each side would probably tell, were nothing different; absent
    /// where that is not known or not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_wanted: Option<u64>,
    /// How likely chance alone makes it look slower than the gate's share allows,
    /// adjusted for the number of figures; absent without a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_p: Option<f64>,
    /// The verdict in words.
    pub words: String,
}

/// How a figure of the second document is to that of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better by a time or a speed.
    Faster,
    /// Worse by a time or a speed.
    Slower,
    /// Less of what is neither a time nor a speed.
    Less,
    /// More of what is neither.
    More,
    /// No difference larger than `bound`.
    Alike,
    /// The intervals are too wide.
    CannotTell,
}

#[cfg(test)]
#[path = "compare/tests.rs"]
mod tests;
