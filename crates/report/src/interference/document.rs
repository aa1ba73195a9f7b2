//! The document of a survey of interference.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use crate::document::Warning;

/// What the probe met. The field names are the JSON shape that other programs read;
/// extend, never rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interference {
    /// 1.
    pub schema_version: u32,
    /// What was executed, when and where.
    pub probe: Probe,
    /// The clean peak first, then those that were slowed, the fastest first.
    pub peaks: Vec<Peak>,
    /// Who made the others: one entry for all peaks that have one cause and one name.
    #[serde(default)]
    pub disturbers: Vec<Disturber>,
    /// Share of its speed that the mix lost over the whole time, whatever the cause.
    pub mean_loss: Estimate,
    /// The same by cause: the parts add up to the whole.
    pub losses: Vec<Loss>,
    /// How far the speed of the core itself moved, relative: taken out of the rates.
    pub reference_drift: Option<Estimate>,
    /// Rates of the samples.
    pub histogram: RateHistogram,
    /// What hit single samples.
    pub interruptions: Vec<Interruption>,
    /// What would be lost at another activity, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Prediction>,
    /// Against an earlier run, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
    /// Ended before its time.
    pub interrupted: bool,
}

/// What was executed, when and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The mix by its word.
    pub mix: String,
    /// Unit of its work: `lines`, `loads`.
    pub work: String,
    /// Units of work per second in the clean peak.
    pub clean_rate: Option<Estimate>,
    /// CPU it stayed on; `null` where it was free.
    pub cpu: Option<usize>,
    /// Bytes it went through.
    pub footprint_bytes: u64,
    /// Bursts that are whole.
    pub bursts: u64,
    /// Samples in them.
    pub samples: u64,
    /// Nominal length of a burst, s.
    pub burst_s: f64,
    /// From one to the next, s.
    pub every_s: f64,
    /// When the first burst's period began, s since 1970.
    pub begun_unix_s: f64,
    /// From then to the end of the last, s.
    pub seconds: f64,
    /// Share of a CPU that probe and meter used.
    pub own_use: Option<f64>,
    /// What says that the probe lost its CPU: `mark` (the recorder's), `unknown`.
    pub taken_off_by: String,
}

/// A peak of the rates: a state that the machine was in for a share of the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Relative to the clean peak.
    pub rate: f64,
    /// Time for the same work over that of the clean peak.
    pub slowdown: Estimate,
    /// Share of the time.
    pub time_share: Estimate,
    /// Share of the samples (of the bursts, where it is of bursts).
    pub sample_share: Estimate,
    /// `clean`, `memory-traffic`, `same-cpu-process`, `host`, `unknown`.
    pub cause: String,
    /// What the cause rests on, by name.
    pub evidence: BTreeMap<String, serde_json::Value>,
    /// What has the peak: `samples`, `bursts` (in which a process had the CPU), or
    /// `activity`: no peak of its own, but the probe is slower the more a process runs.
    pub of: String,
}

/// Who slows the probe, with all peaks that are its doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturber {
    /// As that of its peaks.
    pub cause: String,
    /// Name of a process or a CPU, where the evidence has one.
    pub name: Option<String>,
    /// Share of the time in which it slowed the probe: of its peaks, or of its CPU time where that
    /// is known to go with the slowness.
    pub time_share: Estimate,
    /// Time for the same work then over that of the clean peak, or over that while it is not
    /// active.
    pub slowdown: Estimate,
    /// Indices of its peaks.
    pub peaks: Vec<usize>,
}

/// A part of the loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// `slowed`, `same-cpu-process`, `host`, `short`.
    pub cause: String,
    /// Share of the mix's speed.
    pub share: Estimate,
}

/// Rates in bins of about 1 % of the clean rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateHistogram {
    /// `1`: relative to the clean peak.
    pub unit: String,
    /// One more than counts, ascending.
    pub edges: Vec<f64>,
    /// Samples.
    pub counts: Vec<u64>,
    /// Their time, s.
    pub seconds: Vec<f64>,
    /// Neighbouring samples that were averaged to one rate.
    pub together: u64,
}

/// What hit single samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interruption {
    /// `same-cpu-process`, `host`, `short`.
    pub cause: String,
    /// In words.
    pub what: String,
    /// How many.
    pub count: u64,
    /// Per second of the probe's time.
    pub per_second: f64,
    /// Time of the middle one, ns.
    pub median_ns: f64,
    /// Time of the longest one, ns.
    pub longest_ns: f64,
}

/// A loss at another activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Whose: the cause of a peak.
    pub cause: String,
    /// Its place, relative to the clean peak.
    pub rate: f64,
    /// Share of the time in which it is taken to be active.
    pub activity: f64,
    /// Share of the speed lost then.
    pub loss: Estimate,
}

/// Against an earlier run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Name of the earlier run's document.
    pub with: String,
    /// Its mean loss.
    pub mean_loss: Estimate,
    /// This run's less that.
    pub difference: Estimate,
    /// Clean rate now over then.
    pub clean_rate_ratio: Option<Estimate>,
    /// Clean rate less the loss, now over then: the value of what was changed.
    pub speed_ratio: Option<Estimate>,
    /// In plain words.
    pub verdict: String,
}

/// A line of the continuous meter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// 1.
    pub schema_version: u32,
    /// End of the interval, s since 1970.
    pub unix_s: f64,
    /// Its length, s.
    pub seconds: f64,
    /// Bursts in it.
    pub bursts: u64,
    /// Share of the mix's speed that was lost.
    pub mean_loss: Option<Estimate>,
    /// Share of the time slowed by other users of the memory.
    pub slowed_share: f64,
    /// Slow-down then.
    pub slowdown: Option<f64>,
    /// Share of the bursts in which another process had the CPU.
    pub taken_off_share: f64,
    /// Core speed against that of the run's beginning.
    pub core_speed: f64,
    /// Share of this CPU that the hypervisor took, as the kernel counts it.
    pub steal_share: f64,
    /// Who is taken to be the cause, and the CPUs it used now and when nothing was
    /// slowed.
    pub suspects: Vec<Suspect>,
    /// Share of a CPU that the probe's bursts and the meter used; what the probe's start takes is
    /// in no line.
    pub own_use: f64,
}

/// Who is taken to be the cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// Name of a process, or of a CPU.
    pub name: String,
    /// `memory-traffic` or `same-cpu-process`.
    pub cause: String,
    /// CPUs used now.
    pub use_now: f64,
    /// CPUs used when nothing was slowed.
    pub use_when_clean: f64,
}
