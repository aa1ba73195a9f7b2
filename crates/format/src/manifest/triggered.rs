//! Why a flight recorder made a snapshot by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule that the recorded program met (`record --trigger`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Triggered {
    /// The rule, as it was given.
    pub rule: String,
    /// What happened, as a sentence without its stop.
    pub text: String,
    /// Process; `None` for what is of no thread.
    pub pid: Option<i32>,
    /// Thread; `None` for what is of no thread.
    pub tid: Option<i32>,
    /// When it was met, ticks of the trace clock: the end of a span, an event, or when the recorder
    /// looked.
    pub ts: i64,
    /// When the span began, ticks of the trace clock.
    pub began_ts: Option<i64>,
    /// How long the span took, or has been open, ns.
    pub took_ns: Option<f64>,
    /// What the kernel said of the thread of a span that is still open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ThreadState>,
}

/// What the kernel says of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadState {
    /// Its state, in a word: `running`, `sleeping`, `waiting for a disk`, `stopped`, ...
    pub state: String,
    /// The function of the kernel in which it waits; `None` if it does not, or if the kernel does
    /// not say.
    pub waits_in: Option<String>,
    /// Number of the system call that it is in.
    pub system_call: Option<i64>,
    /// Time on a CPU so far, ns.
    pub on_cpu_ns: Option<u64>,
    /// Time in which it was ready and waited for a CPU, ns.
    pub run_queue_ns: Option<u64>,
    /// The CPU on which it ran last.
    pub cpu: Option<i32>,
    /// Other threads that ran or were ready on that CPU, where it was one: names and numbers, at most
    /// four.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_on_cpu: Vec<String>,
}

/// The rules of a recording, and what is kept by them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TriggerSettings {
    /// The rules, as they were given.
    pub rules: Vec<String>,
    /// How much a snapshot holds of what came before, ns.
    pub before_ns: u64,
    /// How long after the rule was met it is made, ns.
    pub after_ns: u64,
    /// The largest number of snapshots in a stretch of time.
    pub at_most: u32,
    /// That stretch, ns.
    pub at_most_in_ns: u64,
    /// The largest size of all snapshots together, bytes.
    pub most_bytes: Option<u64>,
}
