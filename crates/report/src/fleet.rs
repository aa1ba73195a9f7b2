//! The `fleet` document: the surveys of many machines, compared with each other.

mod terminal;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_document::Warning;

use crate::survey::{Better, Scale};

pub use terminal::render;
pub(crate) use terminal::{
    OfType, by_type, changes, distributions, drift_summary, groups, summary, type_name, types,
    versions,
};

/// Version of the document this crate describes.
pub const SCHEMA_VERSION: u32 = 1;

/// Value of `kind` in a fleet.
pub const KIND: &str = "fleet";

/// A comparison of many machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fleet {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Always [`KIND`].
    pub kind: String,
    /// The directory that the surveys were read from.
    pub directory: String,
    /// Level of the confidence intervals.
    pub confidence: f64,
    /// Upper limit of the average share of false discoveries among the machines called out of the
    /// ordinary.
    pub false_share: f64,
    /// Types of machines, the most frequent first.
    pub types: Vec<Type>,
    /// Every machine.
    pub hosts: Vec<HostRow>,
    /// Machines out of the ordinary, the most certain first.
    pub outliers: Vec<OutlyingHost>,
    /// Every metric that at least one machine has.
    pub metrics: Vec<FleetMetric>,
    /// Files that could not be read.
    pub unreadable: Vec<Unreadable>,
    /// Machines that lack metrics which most others have.
    pub lacking: Vec<Lacking>,
    /// Versions of Undertick and how many machines have each, the most frequent first.
    pub versions: Vec<(String, u64)>,
    /// Comparison with earlier surveys; `null` where none were given.
    pub drift: Option<Drift>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
}

/// A type of machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Type {
    /// Model name of the CPU; empty where it is not known.
    pub cpu_model: String,
    /// Number of machines of this type.
    pub hosts: u64,
    /// Whether its machines were compared with each other.
    pub compared: bool,
}

/// Summary of a machine in one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostRow {
    /// Its name; followed by the file where several machines have that name.
    pub host: String,
    /// The file of its survey.
    pub file: String,
    /// Index of its type.
    pub of_type: usize,
    /// How many times slower it is than the middle machine of its type, over all metrics; `null`
    /// where that is not known.
    pub slowness: Option<f64>,
    /// How many times wider its confidence intervals are than usual.
    pub noise: Option<f64>,
    /// Whether it is out of the ordinary.
    pub is_outlier: bool,
    /// Its version of Undertick, where most machines have another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_version: Option<String>,
}

/// A machine out of the ordinary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutlyingHost {
    /// Its name, as in `hosts`.
    pub host: String,
    /// Index of its type.
    pub of_type: usize,
    /// Probability that a machine of this fleet is as extreme in any metric.
    pub p: f64,
    /// The p-value, adjusted for the number of machines.
    pub adjusted_p: f64,
    /// The metrics in which it is out of the ordinary, the most certain first.
    pub reasons: Vec<Reason>,
}

/// One reason why a machine is out of the ordinary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The metric; or `slowness` or `noise`, which cover all metrics.
    pub metric: String,
    /// The reason in words.
    pub words: String,
    /// The machine's value over the middle one; `null` where only differences have a meaning.
    pub ratio: Option<f64>,
    /// Its value less the middle one, in the metric's unit; `null` where ratios are compared.
    pub difference: Option<f64>,
    /// Distance from the middle value, in standard deviations.
    pub deviations: f64,
    /// Probability that a machine of this fleet is as extreme.
    pub p: f64,
}

/// A metric over all machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetMetric {
    /// Its stable name.
    pub id: String,
    /// Its group.
    pub group: String,
    /// What it is, in words.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is an improvement.
    pub better: Better,
    /// How two values of the metric are compared.
    pub scale: Scale,
    /// Number of machines that lack it.
    pub lacking: u64,
    /// Its distribution by type, the most frequent type first.
    pub by_type: Vec<Distribution>,
}

/// A metric over the machines of a type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Index of the type.
    pub of_type: usize,
    /// Number of machines that have it.
    pub hosts: u64,
    /// Minimum, 5 %, 25 %, median, 75 %, 95 %, maximum.
    pub quantiles: [f64; 7],
    /// Edges of the bins, ascending, one more than `counts`; evenly spaced in logarithms where
    /// ratios are compared.
    pub edges: Vec<f64>,
    /// Machines in each bin.
    pub counts: Vec<u64>,
    /// By how much machines differ, apart from their own errors: a share of the value, or in the
    /// unit where only differences have a meaning; `null` where it was not estimated.
    pub scatter: Option<f64>,
    /// Degrees of freedom of the t distribution that machines are judged by; heavy tails have few.
    pub degrees: Option<f64>,
    /// Number of machines out of the ordinary in this metric.
    pub outlying: u64,
}

/// A file that could not be read as a survey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unreadable {
    /// The file.
    pub file: String,
    /// Where in it, what is wrong, and the mend.
    pub why: String,
}

/// A machine that lacks metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lacking {
    /// Its name, as in `hosts`.
    pub host: String,
    /// The metrics.
    pub metrics: Vec<String>,
    /// Why it lacks them, as its survey says; may be empty.
    pub why: String,
}

/// Comparison with earlier surveys of the same machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// The directory that the earlier surveys were read from.
    pub directory: String,
    /// Number of machines that are in both.
    pub hosts: u64,
    /// Number of machines that are only in the current surveys.
    pub only_now: u64,
    /// Number of machines that are only in the earlier surveys.
    pub only_then: u64,
    /// How each metric changed in the middle machine.
    pub metrics: Vec<MetricDrift>,
    /// Machines that changed differently from the others, the most certain first.
    pub changed: Vec<OutlyingHost>,
    /// Earlier files that could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// How a metric changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricDrift {
    /// Its stable name.
    pub id: String,
    /// What it is, in words.
    pub name: String,
    /// Number of machines that have it in both.
    pub hosts: u64,
    /// Current value over the earlier one, or less the earlier one where only differences have a
    /// meaning.
    pub change: f64,
    /// Confidence interval of the change.
    pub interval: [Option<f64>; 2],
    /// Probability that as many machines change the same way by chance.
    pub p: f64,
    /// The p-value, adjusted for the number of metrics.
    pub adjusted_p: f64,
    /// Whether the fleet changed in this metric, with false discoveries controlled.
    pub changed: bool,
    /// How two values of the metric are compared.
    pub scale: Scale,
    /// Its unit.
    pub unit: String,
}

impl Fleet {
    /// The slowest machines, the slowest first.
    #[must_use]
    pub fn slowest(&self, at_most: usize) -> Vec<&HostRow> {
        ranked(&self.hosts, at_most, |host| host.slowness)
    }

    /// Names of machines that have this version, where most have another.
    pub fn of_version<'a>(&'a self, version: &'a str) -> impl Iterator<Item = &'a str> {
        let has = move |host: &&HostRow| host.other_version.as_deref() == Some(version);
        self.hosts.iter().filter(has).map(|host| host.host.as_str())
    }

    /// The noisiest machines, the noisiest first.
    #[must_use]
    pub fn noisiest(&self, at_most: usize) -> Vec<&HostRow> {
        ranked(&self.hosts, at_most, |host| host.noise)
    }
}

fn ranked(hosts: &[HostRow], at_most: usize, score: fn(&HostRow) -> Option<f64>) -> Vec<&HostRow> {
    let mut all: Vec<(&HostRow, f64)> = (hosts.iter())
        .filter_map(|host| Some((host, score(host)?)))
        .filter(|(_, score)| *score > 1.0)
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.into_iter()
        .take(at_most)
        .map(|(host, _)| host)
        .collect()
}
