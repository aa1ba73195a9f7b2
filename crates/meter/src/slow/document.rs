//! The result of a slow run, in the form that other programs read.

use schemars::JsonSchema;
use serde::Serialize;
use undertick_clock::adjustable::{Overhead, corrected_mean_ns};
use undertick_estimate::slow::{ActivityResult, Independence};
use undertick_units::{Estimate, Interval};

/// The document of `undertick slow run`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Document {
    /// Always 1.
    pub schema_version: u32,
    /// The slow clock, as requested.
    pub clock: String,
    /// Its tick, ns.
    pub tick_ns: f64,
    /// The estimator used: `counts`, `stepped` or `edges`.
    pub estimator: String,
    /// The reason for that estimator, where the choice was left to the program.
    pub why: Option<String>,
    /// Number of cycles run, or of shots.
    pub cycles: u64,
    /// Of these, the number dropped because the scheduler took the thread off its CPU.
    pub dropped: u64,
    /// How disturbed cycles are detected: `rseq` or `none`.
    pub evidence: String,
    /// Time of the run, seconds.
    pub seconds: f64,
    /// Of this, the time spent in delays, seconds.
    pub delay_seconds: f64,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// The activities, in order.
    pub activities: Vec<ActivityRow>,
    /// The whole cycle.
    pub cycle: Option<ActivityRow>,
    /// Share of the CPU that the clock itself took from the loop, and that is taken off the means;
    /// `None` if it ran on another CPU, or takes nothing.
    pub clock_share: Option<f64>,
    /// Standard deviation of the length of a cycle, ticks: bounds and best guess.
    pub jitter_ticks: Option<[f64; 3]>,
    /// What the reader must know.
    pub findings: Vec<String>,
}

/// One activity.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivityRow {
    /// Its name.
    pub name: String,
    /// The mean duration, ns.
    pub mean: Estimate,
    /// Ticks counted.
    pub ticks: Option<i64>,
    /// Standard deviation of the mean by eq. 10a, ns.
    pub predicted_sd_ns: Option<f64>,
    /// Standard deviation of the mean on which the interval is based, ns.
    pub sd_ns: Option<f64>,
    /// True mean of the same cycles by the fine clock, ns.
    pub truth_ns: Option<f64>,
    /// Estimate less truth, ns.
    pub error_ns: Option<f64>,
    /// Why there is no interval.
    pub refused: Option<String>,
    /// Tests of independence.
    pub independence: Option<IndependenceRow>,
}

/// Tests of the independence of counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IndependenceRow {
    /// Autocorrelation at lags 1, 2, ...
    pub autocorrelation: Vec<f64>,
    /// Variance of batch means over that of independent counts.
    pub batch_ratio: f64,
    /// Whether independence is rejected.
    pub rejected: bool,
}

impl From<&Independence> for IndependenceRow {
    fn from(tests: &Independence) -> Self {
        Self {
            autocorrelation: tests.autocorrelation.to_vec(),
            batch_ratio: tests.batch_ratio,
            rejected: tests.is_rejected(),
        }
    }
}

impl ActivityRow {
    pub(super) fn counted(name: &str, result: ActivityResult, truth_ns: Option<f64>) -> Self {
        Self {
            name: name.to_owned(),
            ticks: Some(result.ticks),
            predicted_sd_ns: Some(result.predicted_sd_ns),
            sd_ns: Some(result.sd_ns),
            error_ns: truth_ns.map(|truth| result.estimate.value - truth),
            truth_ns,
            refused: result.refused.map(|lock| lock.to_string()),
            independence: result.independence.as_ref().map(IndependenceRow::from),
            mean: result.estimate,
        }
    }

    pub(super) fn shot(name: &str, mean: Estimate, truth_ns: Option<f64>) -> Self {
        Self {
            name: name.to_owned(),
            ticks: None,
            predicted_sd_ns: None,
            sd_ns: None,
            error_ns: truth_ns.map(|truth| mean.value - truth),
            truth_ns,
            refused: None,
            independence: None,
            mean,
        }
    }
}

impl Document {
    /// Takes off what a clock on the loop's CPU took (Beilner 1988, "the clock itself may cost").
    /// Truths and errors stay those of the loop as it ran, beside its clock.
    pub fn take_off_clock(&mut self, cost: &Overhead) {
        let without = |ns: f64, share: f64| corrected_mean_ns(ns, share.clamp(0.0, 1.0));
        let (least, most) = (
            cost.share - cost.share_spread,
            cost.share + cost.share_spread,
        );
        for row in self.activities.iter_mut().chain(&mut self.cycle) {
            let Some(value) = without(row.mean.value, cost.share) else {
                row.refused =
                    Some("the clock leaves nothing of its CPU: use a longer tick".to_owned());
                continue;
            };
            row.mean.value = value;
            let Interval { lo, hi } = row.mean.interval;
            row.mean.interval = Interval {
                lo: lo.and_then(|lo| without(lo, most)),
                hi: hi.and_then(|hi| without(hi, least)),
            };
        }
        self.clock_share = Some(cost.share);
        self.findings.push(format!(
            "the clock runs on the loop's CPU and takes {:.2} % of it, which is taken off the means; truth and error \
             are of the loop beside its clock",
            100.0 * cost.share
        ));
    }

    /// Whether an activity has no interval because the run was locked.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.activities.iter().any(|a| a.refused.is_some())
    }
}
