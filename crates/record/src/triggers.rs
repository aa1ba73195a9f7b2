//! Rules that make snapshots of a flight recorder by themselves.

use std::time::Duration;

use undertick_trigger::Rule;

/// When to make snapshots, and what to keep of them.
#[derive(Clone, Debug)]
pub struct Triggers {
    /// The rules; each makes a snapshot when the program meets it.
    pub rules: Vec<Rule>,
    /// How much a snapshot holds of what came before the span, or the event, that met the rule.
    pub before: Duration,
    /// How long the recorder waits before it makes the snapshot.
    pub after: Duration,
    /// The largest number of snapshots in a stretch of time; further hits are counted.
    pub at_most: (u32, Duration),
    /// The largest number of bytes of all snapshots of this recording; of more the oldest are
    /// removed. `None`: no limit.
    pub most_bytes: Option<u64>,
}

/// A snapshot that was made while the program ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotMade {
    /// The trace.
    pub trace: std::path::PathBuf,
    /// What the program did to cause it; `None` for one that was requested.
    pub why: Option<String>,
    /// Snapshots that were removed to stay below the limit of bytes.
    pub removed: Vec<std::path::PathBuf>,
}
