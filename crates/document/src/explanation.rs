//! Why single calls took longer than others of their path: what `undertick explain --json` prints.
//!
//! A census: every figure is of a call of this recording. Those of a call are exact to
//! [`Explanation::error_ns`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Lock;
use super::states::StateCondition;

/// Version of the document.
pub const SCHEMA_VERSION: u32 = 1;

/// The slowest calls of some paths, and what their excess over the typical call consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Bound on the error of a single time, ns: the clock's step, and the error of the kernel's times
    /// where there are some.
    pub error_ns: f64,
    /// Whether the trace has kernel events about its threads. Without them, time off the CPU cannot be
    /// separated from time on it.
    pub has_kernel_events: bool,
    /// The paths, the one with the largest excess of its slowest calls first.
    pub paths: Vec<ExplainedPath>,
}

/// The slowest calls of one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedPath {
    /// Names of its spans, from the outermost on; before them that of its role, if there are several.
    pub path: Vec<String>,
    /// Number of its calls.
    pub calls: u64,
    /// The call that the others are compared with.
    pub typical: TypicalCall,
    /// The excess of the slowest calls together, by cause, the largest first.
    pub together: Vec<Part>,
    /// The slowest calls, the slowest first.
    pub slowest: Vec<SlowCall>,
}

impl ExplainedPath {
    /// The excess of its slowest calls together, ns.
    #[must_use]
    pub fn excess_ns(&self) -> f64 {
        self.slowest.iter().map(|call| call.excess_ns).sum()
    }
}

/// The mean of the calls between the 40 % and the 60 % quantile of the durations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypicalCall {
    /// Number of calls that were looked at: all, or a random choice over the whole recording.
    pub looked_at: u64,
    /// Number of calls that it is the mean of.
    pub n: u64,
    /// Its time, ns: from begin to end, less the cost of recording.
    pub took_ns: f64,
    /// The shortest and the longest of these calls, ns.
    pub within_ns: [f64; 2],
    /// What its time consists of; `self` is the rest on the CPU.
    pub parts: Vec<Part>,
}

/// A slow call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowCall {
    /// When it began, ns after the first event.
    pub start_ns: f64,
    /// Its time, ns: from begin to end, less the cost of recording.
    pub took_ns: f64,
    /// That beyond the time of the typical call, ns: the sum of the parts.
    pub excess_ns: f64,
    /// Its thread: number, and name if it has one.
    pub tid: i32,
    /// See `tid`.
    pub thread: Option<String>,
    /// The CPU on which it began; `null`: not known.
    pub cpu: Option<i16>,
    /// The recorder found its thread descheduled, and no kernel event shows for how long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub off_cpu_unseen: bool,
    /// Most time that the hypervisor may have taken of the excess on the CPU (spans inside, its state,
    /// unexplained), ns; absent where that is under a twentieth of the excess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_up_to_ns: Option<f64>,
    /// What the excess consists of, the largest first.
    pub parts: Vec<Part>,
    /// The stacks in which its thread was sampled, that with most time first (`record --stacks`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<CallStack>,
    /// What it waited for, that with most time first (`record --with locks`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<CallWait>,
}

/// What the thread of a slow call waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallWait {
    /// What it waited for.
    pub lock: Lock,
    /// Number of waits.
    pub n: u64,
    /// Their time in the call, ns.
    pub waited_ns: f64,
    /// The thread that held the lock when the wait began; of conditions and semaphores, the one that
    /// signalled or posted last before it ended. Absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Names of the spans that that thread was in then, from the role or the outermost one on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_in: Vec<String>,
}

/// A stack in which the thread of a slow call was sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallStack {
    /// Names of its functions, from the innermost on; of deep stacks the innermost ones.
    pub functions: Vec<String>,
    /// Samples on a CPU.
    pub on_cpu: u64,
    /// Time waited in it, ns.
    pub waited_ns: f64,
}

/// A part of the time of a call, or of its excess over that of the typical one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// What took it.
    pub cause: PartCause,
    /// The thread that had the CPU, the one that woke it, or the name of the span inside. Of several it
    /// is the one that took most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// What is true of the calls of its state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StateCondition>,
    /// Time, ns; below 0 where the typical call spends more.
    pub ns: f64,
    /// How often it occurred in the call; over several calls, in how many of them it was the
    /// largest part.
    pub n: u64,
    /// How often it occurs in the typical call, in the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical_n: Option<f64>,
}

/// What takes the time of a call.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PartCause {
    /// Its thread could have run, and another program had the CPU.
    Preempted,
    /// Its thread could have run, and another thread of the program had the CPU.
    OwnThread,
    /// Its thread was off its CPU, for an unknown reason.
    Switched,
    /// Its thread waited or slept.
    Waited,
    /// Its thread waited uninterruptibly: for a disk, another device, or a lock in the kernel.
    Blocked,
    /// Its thread was stopped by a signal or a debugger.
    Stopped,
    /// Its thread had been woken and was not on a CPU yet.
    Queued,
    /// Interrupts.
    Interrupt,
    /// Deferred work of interrupts.
    SoftInterrupt,
    /// Deferred work that its own system calls raised.
    OwnSoftInterrupt,
    /// Page faults, by what others cost in calls of the path.
    Fault,
    /// Spans directly inside, of one name: their time on the CPU.
    Child,
    /// What calls of its state take more than others.
    State,
    /// In the typical call: its time on the CPU outside of spans inside.
    #[serde(rename = "self")]
    Own,
    /// The rest.
    Unexplained,
}
