//! The document of `undertick interference`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use undertick_document::Warning;

/// The results of the probe. The field names are the JSON shape that other programs read; extend,
/// never rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interference {
    /// Version of the document's format: 1.
    pub schema_version: u32,
    /// What was executed, when and where.
    pub probe: Probe,
    /// The clean peak first, then the slowed peaks, the fastest first.
    pub peaks: Vec<Peak>,
    /// The disturbers behind the slowed peaks: one entry for all peaks of the same cause and name.
    #[serde(default)]
    pub disturbers: Vec<Disturber>,
    /// Share of its speed that the mix lost over the whole time, whatever the cause.
    pub mean_loss: Estimate,
    /// The mean loss by cause; the parts add up to the whole.
    pub losses: Vec<Loss>,
    /// Relative change of the speed of the core itself, which is removed from the rates.
    pub reference_drift: Option<Estimate>,
    /// Distribution of the rates of the samples.
    pub histogram: RateHistogram,
    /// Interruptions of single samples.
    pub interruptions: Vec<Interruption>,
    /// Losses at other activities, where these were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Prediction>,
    /// Comparison with an earlier run, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
    /// Whether the measurement ended early.
    pub interrupted: bool,
}

/// What was executed, when and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Name of the mix.
    pub mix: String,
    /// Unit of the mix's work: `lines`, `loads`.
    pub work: String,
    /// Units of work per second in the clean peak.
    pub clean_rate: Option<Estimate>,
    /// The CPU that it was pinned to; `null` where it was not pinned.
    pub cpu: Option<usize>,
    /// Bytes that the mix goes through.
    pub footprint_bytes: u64,
    /// Number of complete bursts.
    pub bursts: u64,
    /// Number of samples in these bursts.
    pub samples: u64,
    /// Nominal length of a burst, s.
    pub burst_s: f64,
    /// Time from one burst to the next, s.
    pub every_s: f64,
    /// Start of the first burst's period, s since 1970; `null` if the clock was not compared with it.
    #[schemars(with = "Option<f64>")]
    pub begun_unix_s: f64,
    /// Time from then to the end of the last burst, s.
    pub seconds: f64,
    /// Share of a CPU that the probe and the meter used.
    pub own_use: Option<f64>,
    /// How the probe detects that it lost its CPU: `mark` (the recorder's), `unknown`.
    pub taken_off_by: String,
}

/// A peak of the rates: a state that the machine was in for a share of the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// Rate relative to the clean peak.
    pub rate: f64,
    /// Time for the same work, relative to the clean peak.
    pub slowdown: Estimate,
    /// Share of the time that the peak accounts for.
    pub time_share: Estimate,
    /// Share of the samples that the peak holds, or of the bursts for a peak of bursts.
    pub sample_share: Estimate,
    /// `clean`, `memory-traffic`, `same-cpu-process`, `host`, `unknown`.
    pub cause: String,
    /// The evidence for the cause, by name.
    pub evidence: BTreeMap<String, serde_json::Value>,
    /// What forms the peak: `samples`, `bursts` (in which a process had the CPU), or `activity`.
    /// The last has no separate peak, but the probe is slower the more a process runs.
    pub of: String,
}

/// A cause that slows the probe, with all its peaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturber {
    /// The cause of its peaks.
    pub cause: String,
    /// Name of the process or CPU, where the evidence has one.
    pub name: Option<String>,
    /// Share of the time in which it slowed the probe: that of its peaks, or that of its CPU time
    /// where that is known to go with the slow-down.
    pub time_share: Estimate,
    /// Time for the same work while it slows the probe, relative to the clean peak or to the time
    /// in which it is not active.
    pub slowdown: Estimate,
    /// Indices of its peaks.
    pub peaks: Vec<usize>,
}

/// One cause's part of the loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// `slowed`, `same-cpu-process`, `host`, `short`.
    pub cause: String,
    /// Share of the mix's speed.
    pub share: Estimate,
}

/// Distribution of the rates, in bins of about 1 % of the clean rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateHistogram {
    /// Unit of the edges: `1`, relative to the clean peak.
    pub unit: String,
    /// Edges of the bins, ascending, one more than counts.
    pub edges: Vec<f64>,
    /// Number of samples in each bin.
    pub counts: Vec<u64>,
    /// Time of these samples, s.
    pub seconds: Vec<f64>,
    /// Number of neighbouring samples that were averaged to one rate.
    pub together: u64,
}

/// Interruptions of single samples by one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interruption {
    /// `same-cpu-process`, `host`, `short`.
    pub cause: String,
    /// The cause in words.
    pub what: String,
    /// Number of interruptions.
    pub count: u64,
    /// Number per second of the probe's time.
    pub per_second: f64,
    /// Median duration, ns.
    pub median_ns: f64,
    /// Maximum duration, ns.
    pub longest_ns: f64,
}

/// The loss at another activity of a cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// The cause of the peak.
    pub cause: String,
    /// The peak's rate, relative to the clean peak.
    pub rate: f64,
    /// Share of the time in which the cause is assumed to be active.
    pub activity: f64,
    /// Share of the speed lost at that activity.
    pub loss: Estimate,
}

/// Comparison with an earlier run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Name of the earlier run's document.
    pub with: String,
    /// Mean loss of the earlier run.
    pub mean_loss: Estimate,
    /// Mean loss of this run less that of the earlier one.
    pub difference: Estimate,
    /// Clean rate of this run over that of the earlier one.
    pub clean_rate_ratio: Option<Estimate>,
    /// Clean rate less the loss, of this run over the earlier one: the value of the change between
    /// the runs.
    pub speed_ratio: Option<Estimate>,
    /// The verdict in plain words.
    pub verdict: String,
}

/// A line of the continuous meter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Version of the line's format: 1.
    pub schema_version: u32,
    /// End of the interval, s since 1970; `null` if the system's clock stands before that.
    #[schemars(with = "Option<f64>")]
    pub unix_s: f64,
    /// Length of the interval, s.
    pub seconds: f64,
    /// Number of bursts in the interval.
    pub bursts: u64,
    /// Share of the mix's speed that was lost.
    pub mean_loss: Option<Estimate>,
    /// Share of the time slowed by other users of the memory.
    pub slowed_share: f64,
    /// Slow-down during that time.
    pub slowdown: Option<f64>,
    /// Share of the bursts in which another process had the CPU.
    pub taken_off_share: f64,
    /// Core speed relative to the beginning of the run.
    pub core_speed: f64,
    /// Share of this CPU that the hypervisor took, as the kernel counts it.
    pub steal_share: f64,
    /// Suspected causes, each with the CPUs that it used now and when nothing was slowed.
    pub suspects: Vec<Suspect>,
    /// Share of a CPU that the probe's bursts and the meter used; the cost of starting the probe is
    /// in no line.
    pub own_use: f64,
}

/// A suspected cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suspect {
    /// Name of a process, or of a CPU.
    pub name: String,
    /// `memory-traffic` or `same-cpu-process`.
    pub cause: String,
    /// Number of CPUs used now.
    pub use_now: f64,
    /// Number of CPUs used when nothing was slowed.
    pub use_when_clean: f64,
}
