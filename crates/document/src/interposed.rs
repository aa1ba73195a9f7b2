//! What threads waited for and allocated, by span.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Report;

/// Kind of a lock.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// A mutex.
    #[default]
    Mutex,
    /// A read-write lock, which the thread takes to read.
    RwLockToRead,
    /// A read-write lock, which the thread takes to write.
    RwLockToWrite,
    /// A condition variable.
    Condition,
    /// A semaphore.
    Semaphore,
}

/// Something that threads wait for.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Lock {
    /// What it is.
    pub kind: LockKind,
    /// Process id.
    pub pid: i32,
    /// Address in the process, hexadecimal.
    pub address: String,
    /// The name of its variable, if it lies in one with a symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What threads waited for (`record --with locks`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Locks {
    /// Waits.
    pub waits: u64,
    /// Total time of the waits, ns.
    pub waited_ns: f64,
    /// Waits that had not ended when the recording did.
    pub still_waiting: u64,
    /// Records lost in the rings of all preloaded libraries; if there are any, some waits may be missing.
    pub lost: u64,
    /// Rows by lock, waiting span, and holding or waking thread and span; the longest total time first, at
    /// most 4096.
    pub rows: Vec<LockWaits>,
}

/// Waits of one path for one lock, by the thread and the path that held it or woke the waiting thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockWaits {
    /// What they waited for.
    pub lock: Lock,
    /// Index in [`Report::paths`] of the innermost span that waited; absent outside of all spans, and for a
    /// path without a finished call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<u32>,
    /// Names of the spans that waited, from the role or the outermost one on, of a path of which no call
    /// ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_open: Vec<String>,
    /// Whether it is known which thread held the lock when the wait began; of conditions and semaphores,
    /// which thread signalled or posted last before it ended.
    pub by_is_known: bool,
    /// Name of that thread, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// As `path`, of the span that that thread was in then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_path: Option<u32>,
    /// As `still_open`, of the spans that that thread was in then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_still_open: Vec<String>,
    /// Number of waits.
    pub n: u64,
    /// Those that had not ended when the recording did.
    pub still_waiting: u64,
    /// Total time of these waits, ns.
    pub waited_ns: f64,
    /// The longest, ns.
    pub longest_ns: f64,
}

/// Allocations through the C library (`record --with malloc`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Allocations {
    /// Calls that allocate: `malloc`, `calloc`, `realloc` and their kin.
    pub calls: u64,
    /// Bytes that they requested.
    pub bytes: u64,
    /// Calls that free: `free`, and `realloc` of memory.
    pub frees: u64,
    /// Calls that allocate and belong to no known span, because records before them are lost.
    pub unplaced_calls: u64,
    /// Records lost in the rings of all preloaded libraries; if there are any, some calls may be missing.
    pub lost: u64,
    /// The allocations by path, that with most calls first, at most 4096.
    pub paths: Vec<PathAllocations>,
}

/// Allocations in calls of which the span of a path was the innermost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathAllocations {
    /// Index in [`Report::paths`]; absent outside of all spans, and for a path without a finished call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<u32>,
    /// Names of the spans, from the role or the outermost one on, of a path of which no call ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_open: Vec<String>,
    /// Calls that allocate.
    pub calls: u64,
    /// Bytes that they requested.
    pub bytes: u64,
    /// Calls that free.
    pub frees: u64,
}

/// Whether the index of a path is below `paths`.
fn is_in(path: Option<u32>, paths: usize) -> bool {
    path.is_none_or(|path| (path as usize) < paths)
}

impl Locks {
    /// Drops rows with impossible values or unknown paths.
    pub(crate) fn keep_possible(&mut self, paths: usize) {
        let is_time = |ns: f64| ns.is_finite() && ns >= 0.0;
        self.rows.retain(|row| {
            is_in(row.path, paths)
                && is_in(row.by_path, paths)
                && is_time(row.waited_ns)
                && is_time(row.longest_ns)
                && row.longest_ns <= row.waited_ns * (1.0 + 1e-9)
                && row.still_waiting <= row.n
        });
        if !is_time(self.waited_ns) {
            self.waited_ns = self.rows.iter().map(|row| row.waited_ns).sum();
        }
    }
}

impl Allocations {
    /// Drops rows of unknown paths.
    pub(crate) fn keep_possible(&mut self, paths: usize) {
        self.paths.retain(|of| is_in(of.path, paths));
    }

    /// The allocations in a path and in the spans inside it.
    #[must_use]
    pub fn inside(&self, report: &Report, path: usize) -> PathAllocations {
        let mut sum = PathAllocations {
            path: Some(path as u32),
            ..PathAllocations::default()
        };
        let is_inside = |of: &&PathAllocations| report.is_inside((of.path, &of.still_open), path);
        for of in self.paths.iter().filter(is_inside) {
            sum.calls = sum.calls.saturating_add(of.calls);
            sum.bytes = sum.bytes.saturating_add(of.bytes);
            sum.frees = sum.frees.saturating_add(of.frees);
        }
        sum
    }
}
