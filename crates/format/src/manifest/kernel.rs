//! The description of the kernel's rows in a manifest.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

/// The kernel events while the program ran: rows with `mode` 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// Every source that was tried.
    pub sources: Vec<KernelSource>,
    /// Rows in the trace.
    pub rows: u64,
    /// Records lost that would have become rows, as far as they were counted.
    pub lost: u64,
    /// Losses for which the kernel did not say how many records they were.
    #[serde(default)]
    pub losses_not_counted: u64,
    /// Bound on the error of a row's time against the trace clock, ns: the worst of the sources
    /// used.
    pub error_ns: f64,
    /// Comparison of two sources of switches, where both ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Whether switches in and out alternate for each thread, as they must.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Balance>,
    /// Threads of other programs that took the CPU of a thread that could have run on, as far as
    /// their names are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherThread>,
    /// How threads were sampled, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<StackSampling>,
}

/// How the program's threads were sampled with their stacks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackSampling {
    /// CPU time between two samples, ns.
    pub every_ns: u64,
    /// Bytes of each stack that were copied; frames further out are missing.
    pub stack_bytes: u32,
    /// Whether threads were sampled while they ran in the kernel.
    pub in_kernel: bool,
    /// Whether threads were sampled when they left their CPU.
    pub when_leaving: bool,
    /// Why something of this is missing, in plain words; empty if nothing is.
    pub why: String,
    /// Samples in the trace.
    pub samples: u64,
    /// Samples whose stack lacks its outer frames.
    pub cut: u64,
    /// Samples without any frame.
    pub unknown: u64,
}

/// A thread of another program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherThread {
    /// Its number.
    pub tid: i32,
    /// Its name when it was last seen.
    pub name: String,
}

/// A source of kernel events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelSource {
    /// `tracefs`, `perf` or `proc_stat`.
    pub name: String,
    /// Whether it ran.
    pub used: bool,
    /// Why it did not run, or what it could not do, in plain words; empty if all is well.
    pub why: String,
    /// The row kinds that it provides, by name; of a source that did not run, the kinds that are
    /// missing with it.
    pub tells: Vec<String>,
    /// Records taken from it.
    pub records: u64,
    /// Records it lost, as far as counted.
    pub lost: u64,
    /// The clock of its records' times.
    pub clock: String,
    /// Bound on the error of these times on the trace clock, ns: 0 if they are
    /// readings of it.
    pub error_ns: f64,
}

/// The same switches seen by two sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The source that the rows come from, and the other one.
    pub sources: [String; 2],
    /// Switches of the first one, while both ran.
    pub first: u64,
    /// Switches of the other one.
    pub second: u64,
    /// Switches that both sources recorded: same thread, same direction, same CPU.
    pub both: u64,
    /// Of these, switches out with a different cause (waits or preempted).
    pub causes_differ: u64,
    /// The second one's time less the first one's: median, ns.
    pub later_ns_median: f64,
    /// 99th percentile, ns.
    pub later_ns_p99: f64,
    /// Switches that only the second source recorded and that were added to the rows.
    #[serde(default)]
    pub added: u64,
    /// Of them, those onto a CPU. Some kernels lose these in their trace buffers where the CPU
    /// was idle.
    #[serde(default)]
    pub added_in: u64,
}

/// Switches in and out of the program's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Balance {
    /// Switches in.
    pub switches_in: u64,
    /// Switches out.
    pub switches_out: u64,
    /// Switches in of a thread that was already in: its switch out is missing.
    pub missing_out: u64,
    /// Switches out of a thread that was already out: its switch in is missing.
    pub missing_in: u64,
}
