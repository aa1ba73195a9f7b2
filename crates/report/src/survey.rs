//! The `survey` document: a machine in figures that can be compared with those of another machine
//! or another day.

mod terminal;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use undertick_document::{Must, Warning};

pub(crate) use terminal::{columns, figure, machine};
pub use terminal::{first_screen, render};

/// Version of the document this crate describes.
pub const SCHEMA_VERSION: u32 = 1;

/// Value of `kind` in a survey.
pub const KIND: &str = "survey";

/// The groups of metrics, in the order in which they are shown, and their titles.
pub const GROUPS: [(&str, &str); 11] = [
    ("clocks", "Clocks"),
    ("speed", "Speed of the CPUs"),
    ("reading", "Reading clocks"),
    ("calls", "System calls and switching"),
    ("wakeup", "Waking up"),
    ("locks", "Locks"),
    ("messages", "Messages"),
    ("fork", "Making children"),
    ("faults", "Memory and page faults"),
    ("interference", "Interference"),
    ("recording", "Recording"),
];

/// A machine in figures. Other programs read this document: fields are added, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Survey {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Always [`KIND`].
    #[serde(default)]
    pub kind: String,
    /// The machine.
    pub host: Host,
    /// Unix time of the start, s.
    pub begun_unix_s: f64,
    /// Duration of the survey, s.
    pub took_s: f64,
    /// Level of the confidence intervals.
    #[serde(default = "usual_level")]
    pub confidence: f64,
    /// Whether it was stopped before its end.
    #[serde(default)]
    pub interrupted: bool,
    /// The figures, by group.
    pub metrics: Vec<Metric>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
    /// Metrics that are missing, and why.
    pub missing: Vec<Missing>,
}

const fn usual_level() -> f64 {
    0.95
}

/// The machine that was surveyed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Node name.
    pub name: String,
    /// Number of CPUs that could be used.
    pub cpus: u32,
    /// Model name of the CPU; empty where it is not known.
    pub cpu_model: String,
    /// Architecture, as `uname -m`.
    #[serde(default)]
    pub arch: String,
    /// Kernel release.
    pub kernel: String,
    /// Name that the hypervisor gives itself; `null` without one.
    pub hypervisor: Option<String>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// The clock behind the figures.
    pub clock: String,
    /// Version of Undertick.
    pub tool_version: String,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Stable name: the same on every machine and in every version.
    pub id: String,
    /// Its group, one of [`GROUPS`].
    pub group: String,
    /// What it is, in words.
    pub name: String,
    /// The figure; its confidence interval includes the differences between repetitions.
    pub estimate: Estimate,
    /// What its time includes, in words.
    pub includes: String,
    /// Which direction is an improvement.
    #[serde(default)]
    pub better: Better,
    /// How two values of the metric are compared.
    #[serde(default)]
    pub scale: Scale,
    /// The CPU that it belongs to, where it belongs to a single one: machines have different
    /// numbers of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<usize>,
    /// The duration that is exceeded once a second on average; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_a_second: Option<Estimate>,
}

impl Metric {
    /// Returns a metric of which lower values are better, and whose values are compared by their
    /// ratio.
    pub fn new(
        id: impl Into<String>,
        group: impl Into<String>,
        name: impl Into<String>,
        estimate: Estimate,
        includes: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            group: group.into(),
            name: name.into(),
            estimate,
            includes: includes.into(),
            better: Better::Lower,
            scale: Scale::Ratio,
            cpu: None,
            once_a_second: None,
        }
    }
}

/// The direction in which a figure improves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Lower is better: times, losses.
    #[default]
    Lower,
    /// Higher is better: speeds.
    Higher,
    /// Neither direction is better.
    Neither,
}

/// How two figures are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// By their ratio.
    #[default]
    Ratio,
    /// By their difference, for figures that may be 0 or less.
    Difference,
}

/// A metric that the survey lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// The metric, or the group followed by `.*`.
    pub id: String,
    /// Why, in words.
    pub why: String,
}

impl Survey {
    /// Returns the survey without impossible figures: those that contradict themselves, and those
    /// compared by ratios that lie below 0. They are listed as missing, with the reason.
    #[must_use]
    pub fn without_impossible(mut self) -> Self {
        let missing = &mut self.missing;
        self.metrics.retain_mut(|metric| {
            let must = match metric.scale {
                Scale::Ratio => Must::NotNegative,
                Scale::Difference => Must::Any,
            };
            let why = must.judge(&mut metric.estimate);
            missing.extend(why.map(|why| Missing {
                id: metric.id.clone(),
                why: format!("what was measured is impossible: {why}"),
            }));
            let once = &mut metric.once_a_second;
            if (once.as_mut()).is_some_and(|figure| must.judge(figure).is_some()) {
                *once = None;
            }
            why.is_none()
        });
        self
    }

    /// Checks what a reader of this document relies on, beyond its shape.
    ///
    /// # Errors
    /// Says where the document is broken, and how.
    pub fn check(&self) -> Result<(), String> {
        let mut ids = std::collections::HashSet::new();
        for (index, metric) in self.metrics.iter().enumerate() {
            let at = format!("metrics[{index}] ({:?})", crate::text::clean(&metric.id));
            let Estimate {
                value, interval, ..
            } = &metric.estimate;
            if metric.id.is_empty() {
                return Err(format!("{at}: has no id"));
            }
            if !ids.insert(&metric.id) {
                return Err(format!("{at}: there is one of that id before"));
            }
            let numbers = [Some(*value), interval.lo, interval.hi];
            if !numbers.into_iter().flatten().all(f64::is_finite) {
                return Err(format!("{at}: not a finite number"));
            }
            if let (Some(lo), Some(hi)) = (interval.lo, interval.hi)
                && lo > hi
            {
                return Err(format!(
                    "{at}: its interval [{lo}, {hi}] ends before it begins"
                ));
            }
            let level = metric.estimate.level;
            if !(level > 0.0 && level <= 1.0) {
                return Err(format!("{at}: {level} is no level of an interval"));
            }
        }
        Ok(())
    }

    /// The metrics of a group, in their order.
    pub fn group<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Metric> {
        self.metrics.iter().filter(move |m| m.group == group)
    }

    /// Groups that have metrics, with their titles: the known groups in their order, then others.
    #[must_use]
    pub fn groups(&self) -> Vec<(&str, &str)> {
        let has = |group: &str| self.metrics.iter().any(|m| m.group == group);
        let mut groups: Vec<(&str, &str)> =
            GROUPS.into_iter().filter(|(group, _)| has(group)).collect();
        for metric in &self.metrics {
            if !groups.iter().any(|(group, _)| *group == metric.group) {
                groups.push((&metric.group, &metric.group));
            }
        }
        groups
    }
}

/// The title of a group.
#[must_use]
pub fn title(group: &str) -> &str {
    let known = GROUPS.iter().find(|(name, _)| *name == group);
    known.map_or(group, |(_, title)| title)
}

#[cfg(test)]
#[path = "survey/tests.rs"]
mod tests;
