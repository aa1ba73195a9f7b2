//! The file kept beside runs that were recorded in turn: it says which belong together.

use std::path::Path;

use serde::{Deserialize, Serialize};
use undertick_format::input::{self, Kind};

/// Name of the file, which lies beside the directories of both programs' runs.
pub(super) const FILE: &str = "rounds.json";
/// Names of those directories.
pub(super) const SIDES: [&str; 2] = ["a", "b"];

const SCHEMA_VERSION: u32 = 1;
const KIND: &str = "rounds";

/// The rounds of a recording in turn; runs of the same name belong to the same round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Rounds {
    schema_version: u32,
    kind: String,
    /// Seed of the order in each round.
    pub(super) seed: u64,
    /// Programs and arguments of both.
    pub(super) commands: [Vec<String>; 2],
    /// Side that was first in each round, `a` or `b`.
    pub(super) first: Vec<String>,
    /// The most rounds, where that was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) most: Option<usize>,
    /// The chance of a false alarm that looks at the rounds have spent.
    #[serde(default)]
    pub(super) spent: f64,
    /// The number of rounds at the last look, and the chance that it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) looked: Option<(usize, f64)>,
    /// Benchmarks of both programs that failed, and why.
    #[serde(default)]
    pub(super) failed: [Vec<(String, String)>; 2],
    /// What else the user should know of both programs.
    #[serde(default)]
    pub(super) remarks: [Option<String>; 2],
    /// What else must be the same for rounds to be continued, in words for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) conditions: Vec<String>,
}

impl Rounds {
    pub(super) fn new(seed: u64, commands: [Vec<String>; 2]) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            kind: KIND.to_owned(),
            seed,
            commands,
            first: Vec::new(),
            most: None,
            spent: 0.0,
            looked: None,
            failed: [Vec::new(), Vec::new()],
            remarks: [None, None],
            conditions: Vec::new(),
        }
    }

    /// The rounds of a directory; `None` where it has none.
    pub(super) fn read(dir: &Path) -> Option<Self> {
        let text = input::text(&dir.join(FILE), Kind::ABOUT).ok()?;
        let rounds: Self = serde_json::from_str(&text).ok()?;
        (rounds.kind == KIND && rounds.schema_version == SCHEMA_VERSION).then_some(rounds)
    }

    /// Writes all of the file or nothing: a process that is killed leaves the one before.
    pub(super) fn write(&self, dir: &Path) -> Result<(), String> {
        let path = dir.join(FILE);
        let new = dir.join(format!("{FILE}.new"));
        let text = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        std::fs::write(&new, text + "\n")
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|e| format!("{}: {e}", path.display()))
    }
}

/// Whether the runs of two directories belong together by name.
pub(super) fn are_of_one(a: &Path, b: &Path) -> bool {
    let place = |dir: &Path| {
        let dir = dir.canonicalize().ok()?;
        let name = dir.file_name()?.to_str()?.to_owned();
        Some((dir.parent()?.to_owned(), name))
    };
    let (Some((parent, a)), Some((other, b))) = (place(a), place(b)) else {
        return false;
    };
    let both = SIDES == [a.as_str(), b.as_str()] || SIDES == [b.as_str(), a.as_str()];
    both && parent == other && Rounds::read(&parent).is_some()
}
