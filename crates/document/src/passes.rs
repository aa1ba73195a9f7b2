//! The traffic controller's table: every step of the first passes, with the values that are out of
//! place and their causes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The passes of one repetition of one setting. The field names are the JSON shape
/// that other programs read; extend, never rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passes {
    /// Name of the script.
    pub script: String,
    /// Parameters and their values.
    pub parameters: BTreeMap<String, String>,
    /// The CPU of each process, in words.
    pub placement: String,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Number of passes that the counts below cover.
    pub passes: u64,
    /// Number of these passes in the table.
    pub shown: u64,
    /// Whether all processes shared one CPU. The next stamp then shows which process ran next, and
    /// the time until it is what is marked; otherwise it is the time until the process's own next
    /// stamp.
    pub one_cpu: bool,
    /// The rule by which a value is out of place, in words.
    pub rule: String,
    /// The kernel events that were available, in words.
    pub evidence: String,
    /// Every step, ordered by its number.
    pub steps: Vec<Step>,
    /// Values out of place in the passes shown, by step and pass.
    pub marks: Vec<Mark>,
    /// Counts over all passes.
    pub counts: Counts,
}

/// A step of a process in each pass shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The process's name.
    pub process: String,
    /// Its number in the script.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Time until the next stamp of any process, ns, by pass; `None` where it is not in the trace.
    pub next_ns: Vec<Option<f64>>,
    /// Time until the next stamp of the same process, ns, by pass.
    pub own_ns: Vec<Option<f64>>,
    /// Median of `next_ns` over all passes, ns.
    pub next_median_ns: Option<f64>,
    /// Median of `own_ns` over all passes, ns.
    pub own_median_ns: Option<f64>,
    /// Share of the passes in which the next stamp belonged to another process.
    pub given_away: f64,
    /// Number of passes in which its value is out of place.
    pub out_of_place: u64,
}

/// A value out of place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// The process's name.
    pub process: String,
    /// The step's number.
    pub number: u32,
    /// The pass, from 1.
    pub pass: u64,
    /// The value, ns.
    pub value_ns: f64,
    /// Excess over the step's median, ns.
    pub over_ns: f64,
    /// The cause. From the kernel's rows: `interrupt`, `softirq`, `preempted`, `switched`,
    /// `migration`, `fault`, `waited`; from the stamps: `order`; or `no evidence`.
    pub cause: String,
    /// Time that the cause took beyond what it usually takes in that step, ns; `None` where the
    /// kernel gives no length.
    pub taken_ns: Option<f64>,
    /// What the kernel reports of it, in words.
    pub detail: String,
}

/// Numbers of values out of place over all passes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Number of values examined.
    pub values: u64,
    /// Number of values out of place.
    pub out_of_place: u64,
    /// Number of values out of place by cause.
    pub by: BTreeMap<String, u64>,
    /// Share of the values out of place that nothing explains; `None` if there are none.
    pub without_evidence: Option<f64>,
}

/// The cause when no row of the kernel explains a value.
pub const NO_EVIDENCE: &str = "no evidence";

/// The cause when no row of the kernel explains a value, but another process or step came next than
/// in most passes.
pub const ORDER: &str = "order";
