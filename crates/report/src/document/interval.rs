//! The figures of one span or interval.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use super::Repeated;

/// One interval: what it is, how long it took, and how sure that is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalReport {
    /// Its name, from the program, the table, or `event N`.
    pub name: String,
    /// Samples behind the figures: matched and not culled.
    pub count: u64,
    /// Starts without an end and ends without a start.
    pub unmatched: u64,
    /// What was dropped on evidence.
    pub culled: Culled,
    /// What fell into its samples, dropped for it or not.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// Slow samples that no evidence explains; `null` where the trace holds no
    /// kernel events.
    #[serde(default)]
    pub unexplained: Option<Unexplained>,
    /// Mean, ns, compensated; `null` without samples.
    pub mean: Option<Estimate>,
    /// Median, ns, compensated; `null` without samples.
    pub median: Option<Estimate>,
    /// Quantiles, ns, compensated: keys `0.9`, `0.99`, `0.999`.
    pub quantiles: BTreeMap<String, Estimate>,
    /// Least sample, ns, compensated. Negative if cost or clock made it so.
    pub min: Option<f64>,
    /// Greatest sample, ns, compensated.
    pub max: Option<f64>,
    /// Standard deviation of the samples, ns; `null` below two.
    pub sd: Option<f64>,
    /// What was subtracted for the recording itself.
    pub compensation: Compensation,
    /// The same figures as facts of this recording, whose intervals allow for the clock and
    /// the cost of recording alone; `null` without samples and for several runs.
    #[serde(default)]
    pub of_this_run: Option<OfThisRun>,
    /// Its figures in each run; empty for one recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_run: Vec<RunFigures>,
    /// Distribution of the samples behind the figures, compensated.
    pub histogram: Histogram,
    /// Peaks of the distribution, ascending: one at least where there are samples,
    /// more where a test finds valleys between them. Empty in documents of versions
    /// that looked for none.
    pub modes: Vec<Mode>,
    /// Where its samples come from.
    pub kind: IntervalKind,
    /// How the clock was read at its two ends.
    pub reads: Reads,
    /// Starts that were never closed.
    pub unmatched_starts: u64,
    /// Ends that closed nothing.
    pub unmatched_ends: u64,
    /// Those of `unmatched_starts` that were open when events were lost.
    pub unmatched_by_loss: u64,
    /// Samples whose end was read before their start.
    pub negative: u64,
    /// The figures as they would be with every matched sample, and with the time of their
    /// disturbances.
    pub before_culling: Alternative,
    /// The figures as they would be with nothing subtracted.
    pub uncompensated: Alternative,
    /// Its share of the interval it lies in, where the table names one.
    pub share_of: Option<ShareOf>,
    /// Sum of all matched samples, dropped ones too, ns, compensated and without what is known
    /// of their disturbances; of a sampled interval the time of all executions, as
    /// [`Sampled::total`]; `null` where that cannot be true.
    pub total_ns: Option<f64>,
    /// Time of the total that its thread ran, ns; `null` where no kernel events tell.
    #[serde(default)]
    pub on_cpu_ns: Option<f64>,
    /// Time of the total that its thread waited, slept or had yielded, ns; likewise.
    #[serde(default)]
    pub off_cpu_ns: Option<f64>,
    /// Time of disturbances that is in none of the figures.
    #[serde(default)]
    pub taken_off: TakenOff,
    /// Step of the clock, ns.
    pub granularity_ns: f64,
    /// Uncompensated median in steps of the clock; below 20 it is known only
    /// to a step and the mean is the figure to use.
    pub median_steps: Option<f64>,
    /// What the reader must know about this interval.
    pub notes: Vec<String>,
    /// How often it was executed where not every execution was recorded; absent
    /// where each was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    /// By how much the measuring points inside slow it; absent where they were not
    /// switched off and on (`record --perturbation`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowed: Option<Slowed>,
    /// How it was put together from repetitions of an experiment; absent where it
    /// comes from one recording of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Repeated>,
    /// What the clocks of several hosts leave open of it; absent where no sample goes
    /// from one host to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across_hosts: Option<AcrossHosts>,
}

/// Figures of the recorded samples themselves, ns, compensated. Nothing is inferred about
/// another run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfThisRun {
    /// Mean of the samples.
    pub mean: Option<Estimate>,
    /// Median of the samples.
    pub median: Option<Estimate>,
    /// Quantiles of the samples: keys as in [`IntervalReport::quantiles`].
    pub quantiles: BTreeMap<String, Estimate>,
}

/// What one of several runs gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// Name of the run: that of its trace, without the ending.
    pub run: String,
    /// Samples behind the figures.
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

/// Time that was not a span's own: others had the CPU, or an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TakenOff {
    /// Samples behind the figures that some was taken off.
    pub count: u64,
    /// Time taken off all matched samples, dropped ones too, ns.
    pub time_ns: f64,
}

/// Samples that start on one host and end on another. The intervals of the figures are
/// widened by what is said here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcrossHosts {
    /// How many these are.
    pub samples: u64,
    /// Each is right within its clocks' half-widths: the mean of these, ns.
    pub half_width_ns_mean: f64,
    /// The greatest, ns.
    pub half_width_ns_max: f64,
    /// Samples shorter than their half-width: which end came first is not certain.
    pub concurrent: u64,
}

/// By how much the measuring points inside an interval slow it: measured by
/// switching them off and on at random. That cost is subtracted from the interval's figures
/// where its compensation is `in place`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slowed {
    /// What was switched: `points`, or `kernel events`.
    pub what: String,
    /// Its mean with the points less that without them, ns.
    pub by: Estimate,
    /// The same as a share of the mean without them.
    pub share: Estimate,
    /// The same by the number of points, ns; `null` if there were none.
    pub per_point: Option<Estimate>,
    /// Points inside it on average that were switched.
    pub points: f64,
    /// Samples behind the figures with the points, and without them.
    pub samples: [u64; 2],
    /// Samples over four times the median, likewise.
    pub long: [u64; 2],
}

/// An interval of which only some executions were recorded, drawn at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// Times that it was executed: exact.
    pub executions: u64,
    /// Matched samples: executions that were recorded.
    pub recorded: u64,
    /// One in so many is recorded; `null` if that was changed meanwhile.
    pub rate: Option<u32>,
    /// Time of all executions, ns: the mean, that many times.
    pub total: Option<Estimate>,
}

/// Where the samples of an interval come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// How the clock was read at the two ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Those of plain spans: the reading waits until earlier instructions are executed.
    Plain,
    /// Readings that wait for nothing, at both ends: edges not ordered.
    Unordered,
    /// Serialised readings at both ends.
    Ordered,
    /// Some of each.
    Mixed,
}

/// What was dropped on evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Culled {
    /// Samples dropped.
    pub count: u64,
    /// Their share of the matched samples, 0..=1.
    pub share: f64,
    /// Samples dropped per cause: `descheduled`, `ratio`, and those of
    /// [`Evidence`]; one that several fell into counts for the first of them.
    pub by: BTreeMap<String, u64>,
}

/// What one cause did to an interval's samples, by the kernel's own events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// `preempted`, `switched` (not known why), `interrupt`, `softirq`, `migration`, `fault`,
    /// `waited` (the thread gave its CPU away itself) or `own softirq` (raised by its own
    /// system call).
    pub cause: String,
    /// Samples it fell into.
    pub count: u64,
    /// Their share of the matched samples, 0..=1.
    pub share: f64,
    /// Time it took of them, ns; 0 where only the moment is known.
    pub time_ns: f64,
    /// Whether the time it took was taken off, or the sample dropped where that is not known
    /// well enough.
    pub culled: bool,
}

/// Samples that are far over the least even without the time of what is known to
/// have hit them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unexplained {
    /// Over so many times the least.
    pub ratio: f64,
    /// Samples over that although nothing at all is known to have hit them.
    pub without_evidence: u64,
    /// Samples over that without the time of what hit them: these, and those
    /// that something hit too, dropped or not.
    pub count: u64,
    /// Their share of the matched samples, 0..=1.
    pub share: Estimate,
}

/// The same figures under another treatment of the same samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// Samples.
    pub count: u64,
    /// Mean, ns.
    pub mean: Option<Estimate>,
    /// Median, ns.
    pub median: Option<Estimate>,
    /// Distribution; absent where it is that of the figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

/// What was subtracted for the recording itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compensation {
    /// `none` or `calibrated`.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Unit of `edges`: `ns`.
    pub unit: String,
    /// Ascending, one more than `counts`; empty without samples. Bin `i`
    /// holds `edges[i] <= x < edges[i + 1]`. Widths grow with the value, so
    /// draw them on a logarithmic axis or divide by the width.
    pub edges: Vec<f64>,
    /// Samples per bin, empty bins inside the range included.
    pub counts: Vec<u64>,
}

/// A peak of the distribution: the samples between two valleys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mode {
    /// Where it is, ns: the median of its samples.
    pub at: f64,
    /// Where it begins, ns.
    pub lo: f64,
    /// Where it ends, ns.
    pub hi: f64,
    /// Share of the samples in it, 0..=1. Where modes overlap each holds some of
    /// the other's tail.
    pub share: f64,
    /// `at` with its interval.
    #[serde(default)]
    pub place: Option<Estimate>,
    /// `share` with its interval, which allows for how long a mode lasts.
    #[serde(default)]
    pub share_interval: Option<Estimate>,
    /// What divides it from the next mode above; `null` for the last.
    #[serde(default)]
    pub valley: Option<Valley>,
}

/// What divides two modes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Valley {
    /// Where it begins, ns.
    pub lo: f64,
    /// Where it ends, ns.
    pub hi: f64,
    /// Its density over that of the lower of the peaks beside it.
    pub depth: f64,
    /// How often at most a distribution without this valley shows one proven so
    /// well.
    pub p_value: f64,
}

/// A share of an enclosing interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShareOf {
    /// Name of the enclosing interval.
    pub of: String,
    /// Share, unit `1`; `null` if the enclosing interval has no time in it.
    pub share: Option<Estimate>,
}
