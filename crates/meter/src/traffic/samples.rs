//! Single samples of a step, and the causes of those far over the minimum.

use super::evidence::Cause;
use super::read::Recorded;
use super::table::{Scale, values};
use undertick_experiment::script::Plan;

/// Every sample of one step of a process in one repetition.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Durations until the process's next stamp, ns.
    pub ns: Vec<f64>,
    /// Samples over ten times the minimum, with their causes.
    pub anomalies: Vec<Anomaly>,
}

/// A sample over ten times the minimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anomaly {
    /// Duration until the process's next stamp, ns.
    pub ns: f64,
    /// The disturbance of the process itself.
    pub cause: Option<Cause>,
    /// Whether another thread of the recording came onto a CPU during the sample.
    pub another_came: bool,
}

/// TRAMS's anomalies are over this many times the minimum.
const ANOMALY: f64 = 10.0;

pub(super) fn samples(
    recorded: &Recorded,
    plan: &Plan,
    scale: &Scale,
    process: usize,
    step: usize,
) -> Samples {
    let values = values(&recorded.stamps, plan);
    let evidence = scale.evidence(recorded);
    let all: Vec<(i64, i64)> = (values.of[process][step].iter())
        .filter_map(|v| Some((v.start, v.own? - v.start)))
        .collect();
    let least = all
        .iter()
        .map(|(_, ticks)| *ticks)
        .min()
        .unwrap_or(0)
        .max(1);
    let tid = recorded.tids[process].unwrap_or(-1);
    let anomalies = (all.iter())
        .filter(|(_, ticks)| *ticks as f64 > ANOMALY * least as f64)
        .map(|&(start, ticks)| {
            let found = evidence.disturbances(tid, &[], start, start + ticks);
            let there = |c: &Cause| found.ticks[*c as usize].is_some();
            Anomaly {
                ns: scale.ns(ticks),
                cause: Cause::ALL.into_iter().find(there),
                another_came: evidence.another_came(tid, start, start + ticks),
            }
        });
    Samples {
        ns: all.iter().map(|(_, ticks)| scale.ns(*ticks)).collect(),
        anomalies: anomalies.collect(),
    }
}
