//! What was recorded, where and with which clock.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

/// Summary of what was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceSummary {
    /// Number of events analysed.
    pub events: u64,
    /// Number of events lost, all causes.
    pub lost: u64,
    /// Number of threads that wrote events.
    pub threads: u64,
    /// The clock behind every figure.
    pub clock: ClockSummary,
    /// By how much the measuring points slowed the program; `null` if that
    /// was not measured.
    pub perturbation: Option<Estimate>,
    /// Number of events that the program wrote or tried to write.
    pub written: u64,
    /// Number of events that reached the trace.
    pub received: u64,
    /// Number of events lost per cause: `dropped`, `overwritten`.
    pub lost_by: BTreeMap<String, u64>,
    /// Number of processes that wrote events.
    pub processes: u64,
    /// The recorded command and its arguments.
    pub command: Vec<String>,
    /// The machine.
    pub host: HostSummary,
    /// Unix time of the start, ns.
    pub started_unix_ns: i64,
    /// Length of the recording, ns, if it ended.
    pub duration_ns: Option<i64>,
    /// First to last event, ns; `null` without events.
    pub events_span_ns: Option<f64>,
    /// What the descheduled flag means: `any_deschedule` (blocking counts),
    /// `preemption_only` or `unavailable`.
    pub descheduled: String,
    /// Why the recorder made this snapshot by itself, as sentences without their stops; empty
    /// otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_because: Vec<String>,
}

/// The machine a trace was taken on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostSummary {
    /// Node name.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// Architecture, as `uname -m`.
    pub arch: String,
    /// Number of CPUs online.
    pub cpus: u32,
    /// Model name of the CPU, where known.
    pub cpu_model: String,
}

/// The clock of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockSummary {
    /// Its name: `tsc`, `cntvct`, `monotonic_raw`, ...
    pub name: String,
    /// Nanoseconds per tick.
    pub ns_per_tick: f64,
    /// Smallest step the clock takes, ticks.
    pub granularity_ticks: f64,
    /// Smallest step the clock takes, ns.
    pub granularity_ns: f64,
    /// Median cost of one reading, ns.
    pub read_cost_ns_median: f64,
    /// Where the rate came from.
    pub rate_source: String,
    /// Bound on the error of the rate, parts per billion. It scales every
    /// duration alike and is not part of the intervals.
    pub rate_error_ppb: f64,
}
