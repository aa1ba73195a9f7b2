//! The figures of one span or interval.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use super::Repeated;

/// The figures of one interval: what it is, how long it took, and how certain that is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalReport {
    /// Its name, from the program or the table, or `event N`.
    pub name: String,
    /// Number of samples behind the figures: matched and not culled.
    pub count: u64,
    /// Number of starts without an end and ends without a start.
    pub unmatched: u64,
    /// Samples that were dropped on evidence.
    pub culled: Culled,
    /// The causes recorded in its samples, whether or not samples were dropped for them.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// Slow samples that no evidence explains; `null` where the trace holds no kernel events.
    #[serde(default)]
    pub unexplained: Option<Unexplained>,
    /// Mean, ns, compensated; `null` without samples.
    pub mean: Option<Estimate>,
    /// Median, ns, compensated; `null` without samples.
    pub median: Option<Estimate>,
    /// Quantiles, ns, compensated: keys `0.9`, `0.99`, `0.999`.
    pub quantiles: BTreeMap<String, Estimate>,
    /// Figures of the samples without a confidence interval, as fields of the interval in JSON.
    #[serde(flatten)]
    pub statistics: SampleStatistics,
    /// Cost of the recording itself that was subtracted.
    pub compensation: Compensation,
    /// The same figures for this recording alone: their confidence intervals allow only for the
    /// clock and the cost of recording. `null` without samples and for several runs.
    #[serde(default)]
    pub of_this_run: Option<OfThisRun>,
    /// Its figures in each run; empty for one recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_run: Vec<RunFigures>,
    /// Distribution of the samples behind the figures, compensated.
    pub histogram: Histogram,
    /// Peaks of the distribution, ascending: at least one where there are samples, more where a
    /// test finds valleys between them. Empty in documents of versions that looked for none.
    pub modes: Vec<Mode>,
    /// The origin of its samples.
    pub kind: IntervalKind,
    /// How the clock was read at its two ends.
    pub reads: Reads,
    /// Number of starts that were never closed.
    pub unmatched_starts: u64,
    /// Number of ends that closed nothing.
    pub unmatched_ends: u64,
    /// Number of `unmatched_starts` that were open when events were lost.
    pub unmatched_by_loss: u64,
    /// Number of samples whose end was read before their start.
    pub negative: u64,
    /// The figures with every matched sample, and with the time of their disturbances.
    pub before_culling: Alternative,
    /// The figures with nothing subtracted.
    pub uncompensated: Alternative,
    /// Its share of the enclosing interval, where the table names one.
    pub share_of: Option<ShareOf>,
    /// Sum of all matched samples, ns, compensated and without the known time of their
    /// disturbances. Dropped samples are included. For a sampled interval it is the time of all
    /// executions, as [`Sampled::total`]. `null` where the sum cannot be true.
    pub total_ns: Option<f64>,
    /// Time of the total for which its thread ran, ns; `null` where no kernel events show it.
    #[serde(default)]
    pub on_cpu_ns: Option<f64>,
    /// Time of the total for which its thread waited, slept or had yielded, ns; `null` likewise.
    #[serde(default)]
    pub off_cpu_ns: Option<f64>,
    /// Time of disturbances that is in none of the figures, ns.
    #[serde(default)]
    pub taken_off: TakenOff,
    /// Step of the clock, ns.
    pub granularity_ns: f64,
    /// Uncompensated median in steps of the clock; below 20 it is known only to a step, and the
    /// mean is the figure to use.
    pub median_steps: Option<f64>,
    /// What the reader must know about this interval.
    pub notes: Vec<String>,
    /// Number of its executions where not every one was recorded; absent where each was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    /// By how much the measuring points inside slow it; absent where they were not switched off and
    /// on (`record --perturbation`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowed: Option<Slowed>,
    /// Its figures in the repetitions of an experiment; absent where it comes from one recording of
    /// a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Repeated>,
    /// Its uncertainty from the clocks of several hosts; absent where no sample goes from one host
    /// to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across_hosts: Option<AcrossHosts>,
}

impl IntervalReport {
    /// Orders intervals by their total time, those whose total is not known first.
    #[must_use]
    pub fn cmp_total(&self, other: &Self) -> core::cmp::Ordering {
        let total = |of: &Self| of.total_ns.unwrap_or(f64::NEG_INFINITY);
        total(self).total_cmp(&total(other))
    }
}

/// The slow-down of a program by its points, as a share: that of the interval which stayed on and took
/// most time. `None` where none was switched.
#[must_use]
pub fn slowdown_of_program(intervals: &[IntervalReport]) -> Option<Estimate> {
    let slowed = (intervals.iter()).filter_map(|i| Some((i, i.slowed.as_ref()?)));
    let (interval, slowed) = slowed.max_by(|(a, _), (b, _)| a.cmp_total(b))?;
    let mut share = slowed.share.clone();
    share.method = format!("of {}, by {}: {}", interval.name, slowed.what, share.method);
    Some(share)
}

/// Figures of the samples that have no confidence interval; `null` where they cannot be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleStatistics {
    /// Minimum sample, ns, compensated. Negative if cost or clock made it so.
    pub min: Option<f64>,
    /// Maximum sample, ns, compensated.
    pub max: Option<f64>,
    /// Standard deviation of the samples, ns; `null` below two samples.
    pub sd: Option<f64>,
}

impl SampleStatistics {
    /// The figures that are never below 0, each with its name in notes.
    pub(crate) const fn not_negative(&mut self) -> [(&'static str, &mut Option<f64>); 1] {
        let Self { min: _, max: _, sd } = self;
        [("standard deviation", sd)]
    }
}

/// Figures of the recorded samples alone, ns, compensated. Nothing is inferred about another run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfThisRun {
    /// Mean of the samples.
    pub mean: Option<Estimate>,
    /// Median of the samples.
    pub median: Option<Estimate>,
    /// Quantiles of the samples: keys as in [`IntervalReport::quantiles`].
    pub quantiles: BTreeMap<String, Estimate>,
}

/// Figures of one of several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFigures {
    /// Name of the run: that of its trace, without the extension.
    pub run: String,
    /// Number of samples behind the figures.
    pub count: u64,
    /// Sum of all matched samples, ns.
    pub total_ns: Option<f64>,
    /// Mean, ns.
    pub mean_ns: Option<f64>,
    /// Median, ns.
    pub median_ns: Option<f64>,
    /// Quantiles, ns: keys as in [`IntervalReport::quantiles`].
    pub quantiles_ns: BTreeMap<String, f64>,
}

/// Time of disturbances that was taken off: other threads had the CPU, or an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TakenOff {
    /// Number of samples behind the figures from which time was taken off.
    pub count: u64,
    /// Time taken off all matched samples, ns, dropped ones included.
    pub time_ns: f64,
}

/// Samples that start on one host and end on another. They widen the confidence intervals of the
/// figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcrossHosts {
    /// Number of these samples.
    pub samples: u64,
    /// Mean half-width of their clocks, ns; each sample is right within its half-width.
    pub half_width_ns_mean: f64,
    /// Maximum half-width, ns.
    pub half_width_ns_max: f64,
    /// Number of samples shorter than their half-width: which end came first is not certain.
    pub concurrent: u64,
}

/// By how much the measuring points inside an interval slow it, measured by switching them off and
/// on at random. That cost is subtracted from the interval's figures where its compensation is
/// `in place`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slowed {
    /// What was switched: `points`, or `kernel events`.
    pub what: String,
    /// The mean with the points less the mean without them, ns.
    pub by: Estimate,
    /// That difference as a share of the mean without the points.
    pub share: Estimate,
    /// That difference per point, ns; `null` if there were no points.
    pub per_point: Option<Estimate>,
    /// Mean number of switched points inside it.
    pub points: f64,
    /// Number of samples behind the figures with the points, and without them.
    pub samples: [u64; 2],
    /// Number of samples over four times the median, with the points and without them.
    pub long: [u64; 2],
}

/// An interval of which only some executions were recorded, drawn at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// Exact number of its executions.
    pub executions: u64,
    /// Number of matched samples: the executions that were recorded.
    pub recorded: u64,
    /// One in this many executions is recorded; `null` if the number changed during the recording.
    pub rate: Option<u32>,
    /// Time of all executions, ns: the mean times the number of executions.
    pub total: Option<Estimate>,
}

/// The origin of an interval's samples.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum IntervalKind {
    /// A begin and the end that closes it, in one thread.
    Nested,
    /// A stage between two `ut_next` points.
    Stage,
    /// Two successive readings: the cost of a reading, not of the program.
    Pair,
    /// From one event to the next of the same number in one thread.
    Period,
    /// Start and end with the same payload, in one thread.
    Key,
    /// Start and end with the same payload, in any two threads.
    Message,
}

impl IntervalKind {
    /// Whether it is a span of a thread: a begin and its end, or a stage.
    #[must_use]
    pub fn is_span(self) -> bool {
        matches!(self, Self::Nested | Self::Stage)
    }
}

/// How the clock was read at the two ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Readings of plain spans: each waits until earlier instructions are executed.
    Plain,
    /// Readings that wait for nothing, at both ends, so that the edges are not ordered.
    Unordered,
    /// Serialised readings at both ends.
    Ordered,
    /// Readings of several kinds.
    Mixed,
}

/// Samples that were dropped on evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Culled {
    /// Number of samples dropped.
    pub count: u64,
    /// Their share of the matched samples, 0..=1.
    pub share: f64,
    /// Number of samples dropped per cause: `descheduled`, `ratio`, and the causes of [`Evidence`].
    /// A sample with several causes counts for the first of them.
    pub by: BTreeMap<String, u64>,
}

/// The effect of one cause on an interval's samples, from the kernel's own events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// `preempted`, `switched` (not known why), `interrupt`, `softirq`, `migration`, `fault`,
    /// `waited` (the thread gave its CPU away itself) or `own softirq` (raised by its own
    /// system call).
    pub cause: String,
    /// Number of samples in which it occurred.
    pub count: u64,
    /// Their share of the matched samples, 0..=1.
    pub share: f64,
    /// Time that it took from these samples, ns; 0 where only the moment is known.
    pub time_ns: f64,
    /// Whether the time it took was taken off, or the sample dropped where that time is not known
    /// well enough.
    pub culled: bool,
}

/// Samples that are far above the minimum even without the time of their known disturbances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unexplained {
    /// Multiple of the minimum that these samples exceed.
    pub ratio: f64,
    /// Number of samples above it with no known disturbance.
    pub without_evidence: u64,
    /// Number of samples above it without the time of their known disturbances, dropped or not.
    /// Samples without a known disturbance are included.
    pub count: u64,
    /// Their share of the matched samples, 0..=1.
    pub share: Estimate,
}

/// The same figures under another treatment of the same samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    /// Number of samples.
    pub count: u64,
    /// Mean, ns.
    pub mean: Option<Estimate>,
    /// Median, ns.
    pub median: Option<Estimate>,
    /// Distribution; absent where it equals that of the figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

/// Cost of the recording itself that was subtracted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compensation {
    /// How: `none`, `calibrated`, `in place`, `long-term`, `pairs`, `sampler`, or `control-variate`.
    pub method: String,
    /// Mean cost subtracted per sample, ns, inner records included.
    pub cost: Option<Estimate>,
    /// Variance without compensation over variance with it; `null` for a
    /// constant cost, which changes no variance.
    pub k: Option<Estimate>,
    /// Mean number of records strictly inside a sample.
    pub inner_records: Option<f64>,
}

/// A distribution as bins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// Unit of `edges`: `ns`.
    pub unit: String,
    /// Ascending, one more than `counts`; empty without samples. Bin `i` holds
    /// `edges[i] <= x < edges[i + 1]`. Widths grow with the value, so draw the bins on a
    /// logarithmic axis or divide by the width.
    pub edges: Vec<f64>,
    /// Samples per bin, empty bins inside the range included.
    pub counts: Vec<u64>,
}

/// A peak of the distribution: the samples between two valleys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mode {
    /// Its position, ns: the median of its samples.
    pub at: f64,
    /// Where it begins, ns.
    pub lo: f64,
    /// Where it ends, ns.
    pub hi: f64,
    /// Share of the samples in it, 0..=1. Where modes overlap, each holds some of the other's tail.
    pub share: f64,
    /// `at` with its confidence interval.
    #[serde(default)]
    pub place: Option<Estimate>,
    /// `share` with its confidence interval, which allows for how long a mode lasts.
    #[serde(default)]
    pub share_interval: Option<Estimate>,
    /// The valley between it and the next mode above; `null` for the last mode.
    #[serde(default)]
    pub valley: Option<Valley>,
}

/// A valley between two modes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Valley {
    /// Its lower end, ns.
    pub lo: f64,
    /// Its upper end, ns.
    pub hi: f64,
    /// Its density over that of the lower of the two adjacent peaks.
    pub depth: f64,
    /// Upper bound on how often a distribution without this valley shows one as significant.
    pub p_value: f64,
}

/// A share of an enclosing interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShareOf {
    /// Name of the enclosing interval.
    pub of: String,
    /// Share, unit `1`; `null` if the enclosing interval has no time in it.
    pub share: Option<Estimate>,
}
