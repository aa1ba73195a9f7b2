//! The memo's figures over all repetitions: a step's time until the next stamp, separately for
//! those after which the process itself went on and those after which another ran.

use undertick_estimate::Numbers;
use undertick_experiment::script::{Plan, Stamps, Verb};
use undertick_experiment::{Experiment, ExperimentError, Mark, Performed};
use undertick_format::read::Trace;
use undertick_units::Estimate;

use super::bulk::median;
use super::table::{Scale, Value, values};

/// The duration of one step of one setting until the next stamp, with its null step taken off.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Index of the setting.
    pub setting: usize,
    /// The process's name.
    pub process: String,
    /// The step's number.
    pub number: u32,
    /// Duration where the process itself went on, ns.
    pub kept: Option<Estimate>,
    /// Duration where another process came out of a step in which it waited, ns. A process that
    /// comes out of any other step had run in between.
    pub given: Option<Estimate>,
    /// Number of values of each kind.
    pub counts: [u64; 2],
    /// Number of wakeups of a process that did not wait; they belong to neither kind.
    pub needless: u64,
    /// Number of values after which another process comes out of a step in which it did not wait: it
    /// had run before, and its run lies in the value. They belong to neither kind.
    pub interrupted: u64,
}

/// Minimum number of values of a kind for which a repetition counts.
const FEWEST: usize = 5;

/// The repetitions' medians of one step, and the numbers of all its values.
#[derive(Default)]
pub(super) struct Once {
    pub(super) kept: Vec<f64>,
    pub(super) given: Vec<f64>,
    pub(super) counts: [u64; 2],
    pub(super) needless: u64,
    pub(super) interrupted: u64,
}

/// Every step of every setting whose processes share one CPU.
///
/// # Errors
/// The trace cannot be read.
pub fn turns(
    experiment: &Experiment,
    performed: &Performed,
    trace: &Trace,
    level: f64,
) -> Result<Vec<Turn>, ExperimentError> {
    let scale = Scale::from_manifest(&trace.manifest);
    let mut all = Vec::new();
    for (index, recorded) in super::on_one_cpu(experiment, performed, trace, wakes)? {
        let plan = &experiment.setting(index).plan;
        let each: Vec<Vec<Vec<Vec<Value>>>> = recorded
            .iter()
            .map(|r| values(&r.stamps, plan).of)
            .collect();
        let nulls: Vec<Vec<f64>> = recorded.iter().map(|r| nulls(r, plan)).collect();
        for (p, process) in plan
            .processes
            .iter()
            .enumerate()
            .filter(|(_, p)| p.measured)
        {
            for s in process.loop_to..process.steps.len() {
                let mut once = Once::default();
                for (values, nulls) in each.iter().zip(&nulls) {
                    once.add(&values[p][s], plan, p, (nulls[p], &scale));
                }
                all.push(Turn {
                    setting: index,
                    process: process.name.clone(),
                    number: process.steps[s].number,
                    kept: over(once.kept, once.counts[0], level),
                    given: over(once.given, once.counts[1], level),
                    counts: once.counts,
                    needless: once.needless,
                    interrupted: once.interrupted,
                });
            }
        }
    }
    Ok(all)
}

/// Whether one of several processes wakes another.
fn wakes(plan: &Plan) -> bool {
    let mut steps = plan.processes.iter().flat_map(|p| &p.steps);
    plan.stamps == Stamps::Between
        && plan.processes.len() > 1
        && steps.any(|s| matches!(s.verb, Verb::Wakeup { .. } | Verb::Notify { .. }))
}

impl Once {
    /// Adds a repetition; each of its values that has an end is of one kind.
    pub(super) fn add(
        &mut self,
        values: &[Value],
        plan: &Plan,
        process: usize,
        (null, scale): (f64, &Scale),
    ) {
        let (mut kept, mut given) = (Vec::new(), Vec::new());
        for value in values {
            let Some((ts, after)) = value.next else {
                continue;
            };
            if value.needless {
                self.needless += 1;
            } else if after.process == process {
                kept.push(ts - value.start);
            } else if after.waited(plan) {
                given.push(ts - value.start);
            } else {
                self.interrupted += 1;
            }
        }
        self.counts[0] += kept.len() as u64;
        self.counts[1] += given.len() as u64;
        let less = |ticks: f64| (ticks - null) * scale.ns_per_tick;
        for (all, of) in [(&mut self.kept, &kept), (&mut self.given, &given)] {
            if of.len() >= FEWEST {
                all.extend(median(of).map(less));
            }
        }
    }
}

/// The median null step of each process, ticks.
fn nulls(recorded: &super::read::Recorded, plan: &Plan) -> Vec<f64> {
    (0..plan.processes.len())
        .map(|p| {
            let mut own = recorded.stamps.iter().filter(|s| s.process == p).peekable();
            let mut lengths = Vec::new();
            while let Some(stamp) = own.next() {
                if let (Some(Mark::NullBefore | Mark::NullAfter), Some(next)) =
                    (stamp.begins, own.peek())
                {
                    lengths.push(next.ts - stamp.ts);
                }
            }
            median(&lengths).unwrap_or(0.0)
        })
        .collect()
}

/// The median of the repetitions.
pub(super) fn over(values: Vec<f64>, samples: u64, level: f64) -> Option<Estimate> {
    let n = values.len();
    let values = Numbers::new(values);
    let mut estimate = values.quantile(0.5, level)?;
    if estimate.interval.lo.is_none() || estimate.interval.hi.is_none() {
        estimate = values.mean(level)?;
    }
    estimate.unit = "ns".to_owned();
    estimate.method = format!("{n} repetitions' medians, {}", estimate.method);
    estimate.n = samples;
    Some(estimate)
}
