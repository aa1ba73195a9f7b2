//! The parts of a report that only experiments have.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

/// How a figure of an experiment grows with a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineReport {
    /// Its name.
    pub name: String,
    /// Name of the script.
    pub script: String,
    /// Values of the other parameters.
    pub parameters: BTreeMap<String, String>,
    /// Of which figure.
    pub of: String,
    /// The parameter.
    pub against: String,
    /// The slope is stated for so many of the parameter's unit.
    pub per: f64,
    /// ns for `per` more of the parameter.
    pub slope: Estimate,
    /// ns where the parameter is 0.
    pub intercept: Estimate,
    /// Settings that it goes through.
    pub points: u64,
    /// Probability of points as far from a line as these, if they lay on one; `null`
    /// with two points.
    pub lack_of_fit_p: Option<f64>,
    /// Where the points are farthest from it, by their share of it.
    pub worst_at: Option<f64>,
    /// By which share they are off there.
    pub worst_share: Option<f64>,
    /// What the slope includes, in words.
    pub includes: String,
}

/// An interval of an experiment: where it belongs, and what its repetitions gave.
/// The null step of the same repetition is taken off each of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeated {
    /// Name of the script.
    pub script: String,
    /// Its title; may be empty.
    #[serde(default)]
    pub title: String,
    /// Values of its parameters.
    pub parameters: BTreeMap<String, String>,
    /// Where its processes ran.
    pub placement: String,
    /// The process whose step it is; empty for one from process to process.
    pub process: String,
    /// Number of the step.
    pub step: Option<u32>,
    /// What its time includes, in words; may be empty.
    pub includes: String,
    /// The figure to quote, ns: the median, or the mean where the median is too few
    /// steps of the clock. Its interval is that of the middle repetition.
    pub typical: Estimate,
    /// `median` or `mean`.
    pub typical_is: String,
    /// What is exceeded once a second on average, ns; `null` if less was observed.
    pub largest_per_second: Option<Estimate>,
    /// The same for a minute.
    pub largest_per_minute: Option<Estimate>,
    /// Each repetition.
    pub repetitions: Vec<RepetitionFigure>,
}

/// What one repetition gave, its null step taken off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepetitionFigure {
    /// Which, from 1.
    pub repetition: u32,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub median_ns: f64,
    /// Samples.
    pub count: u64,
    /// Length of the part that counts, s.
    pub seconds: f64,
    /// CPU of each process; `null` where it was free.
    pub cpus: Vec<Option<usize>>,
}
