//! The parts of a report that only experiments have.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

/// A straight line: how a figure of an experiment grows with a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineReport {
    /// Its name.
    pub name: String,
    /// Name of the script.
    pub script: String,
    /// Values of the other parameters.
    pub parameters: BTreeMap<String, String>,
    /// The figure that the line describes.
    pub of: String,
    /// The parameter that it depends on.
    pub against: String,
    /// The number of the parameter's units for which the slope is stated.
    pub per: f64,
    /// Slope, ns for `per` more of the parameter.
    pub slope: Estimate,
    /// Intercept: ns where the parameter is 0.
    pub intercept: Estimate,
    /// Number of settings that the line goes through.
    pub points: u64,
    /// Probability of points at least as far from a line as these, if they lay on one; `null` with
    /// two points.
    pub lack_of_fit_p: Option<f64>,
    /// The parameter's value where the points are farthest from the line, relative to the line.
    pub worst_at: Option<f64>,
    /// Relative deviation of the points there.
    pub worst_share: Option<f64>,
    /// What the slope includes, in words.
    pub includes: String,
}

/// An interval of an experiment: where it belongs, and the figures of its repetitions. The null
/// step of the same repetition is taken off each figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeated {
    /// Name of the script.
    pub script: String,
    /// Its title; may be empty.
    #[serde(default)]
    pub title: String,
    /// Values of its parameters.
    pub parameters: BTreeMap<String, String>,
    /// The CPUs on which its processes ran, in words.
    pub placement: String,
    /// The process whose step it is; empty for an interval from one process to another.
    pub process: String,
    /// Number of the step.
    pub step: Option<u32>,
    /// What its time includes, in words; may be empty.
    pub includes: String,
    /// The figure to quote, ns: the median, or the mean where the median has too few steps of the
    /// clock. Its confidence interval is that of the middle repetition.
    pub typical: Estimate,
    /// `median` or `mean`.
    pub typical_is: String,
    /// The duration that is exceeded once a second on average, ns; `null` if less was observed.
    pub largest_per_second: Option<Estimate>,
    /// The duration that is exceeded once a minute on average, ns; `null` likewise.
    pub largest_per_minute: Option<Estimate>,
    /// The figures of each repetition.
    pub repetitions: Vec<RepetitionFigure>,
}

/// Figures of one repetition, with its null step taken off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepetitionFigure {
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub median_ns: f64,
    /// Smallest sample, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<f64>,
    /// Largest sample, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<f64>,
    /// Standard deviation of the samples, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd_ns: Option<f64>,
    /// Number of samples.
    pub count: u64,
    /// Length of the part that counts, s.
    pub seconds: f64,
    /// CPU of each process; `null` where it was not pinned.
    pub cpus: Vec<Option<usize>>,
}
