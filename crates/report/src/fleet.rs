//! The `fleet` document: the surveys of many machines beside each other.

mod terminal;

use serde::{Deserialize, Serialize};

use crate::document::Warning;
use crate::survey::{Better, Scale};

pub use terminal::render;
pub(crate) use terminal::{
    bounds, changed_by, drift_summary, groups, quantity, scatter, summary, type_name, types,
    versions,
};

/// Version of the document this crate describes.
pub const SCHEMA_VERSION: u32 = 1;

/// What `kind` is in a fleet.
pub const KIND: &str = "fleet";

/// Many machines beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Always [`KIND`].
    pub kind: String,
    /// Where the surveys were read from.
    pub directory: String,
    /// Level of the intervals.
    pub confidence: f64,
    /// Machines among those called out of the ordinary that are not, on average at
    /// most.
    pub false_share: f64,
    /// Kinds of machines, the most frequent first.
    pub types: Vec<Type>,
    /// Every machine.
    pub hosts: Vec<HostRow>,
    /// Machines out of the ordinary, the surest first.
    pub outliers: Vec<OutlyingHost>,
    /// Every metric that a machine has.
    pub metrics: Vec<FleetMetric>,
    /// Files that could not be read.
    pub unreadable: Vec<Unreadable>,
    /// Machines that lack metrics which most others have.
    pub lacking: Vec<Lacking>,
    /// Versions of Undertick and how many machines have them, the most frequent first.
    pub versions: Vec<(String, u64)>,
    /// Against earlier surveys; `null` where none were given.
    pub drift: Option<Drift>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
}

/// A kind of machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Type {
    /// Model name of the CPU; empty where it is not known.
    pub cpu_model: String,
    /// Machines of it.
    pub hosts: u64,
    /// Whether its machines were compared with each other.
    pub compared: bool,
}

/// A machine in a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRow {
    /// Its name; with the file behind it where several have the name.
    pub host: String,
    /// The file.
    pub file: String,
    /// Index of its type.
    pub of_type: usize,
    /// How many times slower than the middle machine of its type, over all metrics;
    /// `null` where that cannot be said.
    pub slowness: Option<f64>,
    /// How many times wider its intervals are than usual.
    pub noise: Option<f64>,
    /// Whether it is out of the ordinary.
    pub is_outlier: bool,
    /// Its version of Undertick, where most machines have another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_version: Option<String>,
}

/// A machine out of the ordinary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutlyingHost {
    /// Its name, as in `hosts`.
    pub host: String,
    /// Index of its type.
    pub of_type: usize,
    /// How likely a machine of this fleet is so far out in anything.
    pub p: f64,
    /// The same, adjusted for the number of machines.
    pub adjusted_p: f64,
    /// In what, the surest first.
    pub reasons: Vec<Reason>,
}

/// One reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The metric; or `slowness`, `noise` over all metrics.
    pub metric: String,
    /// In words.
    pub words: String,
    /// The machine's value over the middle one; `null` where only differences mean
    /// something.
    pub ratio: Option<f64>,
    /// Its value less the middle one, in the metric's unit; `null` of a ratio.
    pub difference: Option<f64>,
    /// In standard deviations.
    pub deviations: f64,
    /// How likely a machine of this fleet is there.
    pub p: f64,
}

/// A metric over all machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetMetric {
    /// Its stable name.
    pub id: String,
    /// Its group.
    pub group: String,
    /// What it is, in words.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// How two of it are compared.
    pub scale: Scale,
    /// Machines that lack it.
    pub lacking: u64,
    /// By type, the most frequent first.
    pub by_type: Vec<Distribution>,
}

/// A metric over the machines of a type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Index of the type.
    pub of_type: usize,
    /// Machines that have it.
    pub hosts: u64,
    /// Least, 5 %, 25 %, middle, 75 %, 95 %, greatest.
    pub quantiles: [f64; 7],
    /// Edges of the bins, ascending, one more than `counts`; even in logarithms where
    /// ratios are compared.
    pub edges: Vec<f64>,
    /// Machines in each bin.
    pub counts: Vec<u64>,
    /// By how much machines differ, their own errors taken off: a share of the value,
    /// or in the unit where only differences mean something; `null` where that was not
    /// looked for.
    pub scatter: Option<f64>,
    /// Degrees of the t distribution that machines are judged by: few for heavy tails.
    pub degrees: Option<f64>,
    /// Machines out of the ordinary in it.
    pub outlying: u64,
}

/// A file that is no survey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The file.
    pub file: String,
    /// Where in it, what is wrong, and the mend.
    pub why: String,
}

/// A machine that lacks metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacking {
    /// Its name, as in `hosts`.
    pub host: String,
    /// The metrics.
    pub metrics: Vec<String>,
    /// Why, as its survey says; may be empty.
    pub why: String,
}

/// Against earlier surveys of the same machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Where these were read from.
    pub directory: String,
    /// Machines that are in both.
    pub hosts: u64,
    /// Machines that are only here.
    pub only_now: u64,
    /// Machines that were only there.
    pub only_then: u64,
    /// How each metric changed in the middle machine.
    pub metrics: Vec<MetricDrift>,
    /// Machines that changed otherwise than the others, the surest first.
    pub changed: Vec<OutlyingHost>,
    /// Files of then that could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// How a metric changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricDrift {
    /// Its stable name.
    pub id: String,
    /// What it is, in words.
    pub name: String,
    /// Machines that have it in both.
    pub hosts: u64,
    /// Now over then, or now less then where only differences mean something.
    pub change: f64,
    /// Interval of the change.
    pub interval: [Option<f64>; 2],
    /// How likely as many machines change the same way by chance.
    pub p: f64,
    /// The same, adjusted for the number of metrics.
    pub adjusted_p: f64,
    /// Whether the fleet changed in it, false discoveries controlled.
    pub changed: bool,
    /// How two of it are compared.
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
