//! The running-out of a quantum: two processes that compute on one CPU, and what it costs that the
//! scheduler takes it from one and gives it to the other.
//!
//! **Method.** Both processes do steps of one length without a pause. Where the next stamp is the
//! other's, the quantum has run out in between: from the last stamp of the one to the first of the
//! other pass a part of a step of each, and the switch. The two parts are of any length up to a
//! step, so that together they are one step in the mean and in the median; the time of a step is
//! taken off. What one process does from its first stamp to its last before the switch is a
//! quantum.

use undertick_experiment::script::{Plan, Stamps, Verb};
use undertick_experiment::{Experiment, ExperimentError, Mark, Performed};
use undertick_format::read::Trace;
use undertick_units::Estimate;

use super::bulk::median;
use super::read::Stamp;
use super::table::Scale;
use super::turns::over;

/// What the quantum of one process of a setting costs that runs out.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOut {
    /// Index of the setting.
    pub setting: usize,
    /// Name of the process whose quantum runs out.
    pub process: String,
    /// The time that the switch to the other takes, ns.
    pub switch: Option<Estimate>,
    /// The length of its quantum, ns.
    pub quantum: Option<Estimate>,
    /// Number of times that it ran out.
    pub count: u64,
}

/// Minimum number of switches for which a repetition counts.
const FEWEST: usize = 3;

/// Returns what running out costs, for each process of each setting in which two compute on one
/// CPU.
///
/// # Errors
/// The trace cannot be read.
pub fn run_outs(
    experiment: &Experiment,
    performed: &Performed,
    trace: &Trace,
    level: f64,
) -> Result<Vec<RunOut>, ExperimentError> {
    let scale = Scale::from_manifest(&trace.manifest);
    let mut all = Vec::new();
    for (index, recorded) in super::on_one_cpu(experiment, performed, trace, compute)? {
        let plan = &experiment.setting(index).plan;
        let found: Vec<Vec<Switches>> = (recorded.iter())
            .map(|recorded| switches(&recorded.stamps, plan.processes.len()))
            .collect();
        for (p, process) in plan.processes.iter().enumerate() {
            let of = |ticks: fn(&Switches) -> &Vec<i64>| -> Vec<f64> {
                (found.iter())
                    .map(|repetition| ticks(&repetition[p]))
                    .filter(|ticks| ticks.len() >= FEWEST)
                    .filter_map(|ticks| Some(median(ticks)? * scale.ns_per_tick))
                    .collect()
            };
            let count = (found.iter()).map(|r| r[p].gaps.len() as u64).sum();
            all.push(RunOut {
                setting: index,
                process: process.name.clone(),
                switch: over(of(|s| &s.gaps), count, level),
                quantum: over(of(|s| &s.quanta), count, level),
                count,
            });
        }
    }
    Ok(all)
}

/// Whether two processes do nothing but compute, in steps of one length.
fn compute(plan: &Plan) -> bool {
    let mut steps = plan.processes.iter().flat_map(|p| &p.steps);
    let first = plan.processes.first().and_then(|p| p.steps.first());
    plan.stamps == Stamps::Between
        && plan.processes.len() == 2
        && plan.processes.iter().all(|p| p.measured)
        && first.is_some_and(|first| {
            matches!(first.verb, Verb::Work { .. }) && steps.all(|step| step.verb == first.verb)
        })
}

/// The switches from one process to the other in one repetition, ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Switches {
    /// Time of each switch, with the time of a step taken off.
    pub(super) gaps: Vec<i64>,
    /// Length of each quantum that began and ended with a switch.
    pub(super) quanta: Vec<i64>,
}

pub(super) fn switches(stamps: &[Stamp], processes: usize) -> Vec<Switches> {
    let mut all = vec![Switches::default(); processes];
    let mut steps = Vec::new();
    let mut began: Option<i64> = None;
    for pair in stamps.windows(2) {
        let (last, next) = (pair[0], pair[1]);
        if last.process == next.process {
            if matches!(last.begins, Some(Mark::Step(_))) {
                steps.push(next.ts - last.ts);
            }
            continue;
        }
        // The first and the last part of a repetition are no whole quanta, and a process that has
        // ended gives its CPU away by that.
        if last.begins.is_none() {
            began = None;
            continue;
        }
        let of = &mut all[last.process];
        of.gaps.push(next.ts - last.ts);
        of.quanta.extend(began.map(|began| last.ts - began));
        began = Some(next.ts);
    }
    let step = median(&steps).unwrap_or(0.0).round() as i64;
    for gap in all.iter_mut().flat_map(|of| &mut of.gaps) {
        *gap -= step;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes whose steps take 100 ticks. A switch from A takes 37 ticks and one from B 41;
    /// what it interrupts is done after the other's quantum.
    struct Made {
        now: i64,
        stamps: Vec<Stamp>,
        /// What is left of the step of each process.
        left: [i64; 2],
    }

    impl Made {
        /// Runs a process for that many whole steps and a part of one.
        fn runs(&mut self, process: usize, steps: usize, part: i64) {
            self.now += self.left[process];
            for _ in 0..steps {
                self.stamp(process, Some(Mark::Step(0)));
                self.now += 100;
            }
            self.stamp(process, Some(Mark::Step(0)));
            self.now += part;
            self.left[process] = 100 - part;
            self.now += [37, 41][process];
        }

        fn stamp(&mut self, process: usize, begins: Option<Mark>) {
            self.stamps.push(Stamp {
                ts: self.now,
                process,
                begins,
            });
        }
    }

    #[test]
    fn a_switch_is_what_neither_process_computes_in() {
        let mut made = Made {
            now: 5000,
            stamps: Vec::new(),
            left: [0; 2],
        };
        // The parts of both processes around a switch come to 60, 100, 140, and so on.
        for (a, b) in [
            (20, 60),
            (60, 40),
            (80, 60),
            (50, 20),
            (80, 30),
            (40, 60),
            (10, 10),
        ] {
            made.runs(0, 30, a);
            made.runs(1, 20, b);
        }
        let [a, b] = &switches(&made.stamps, 2)[..] else {
            panic!("two processes")
        };
        assert_eq!((a.gaps.len(), b.gaps.len()), (7, 6));
        // By hand. A is interrupted after 20, 60, 80, 50, 80, 40 and 10 ticks of a step; B had left
        // nothing the first time, and then 40, 60, 40, 80, 70 and 40.
        let contained = [20, 60 + 40, 80 + 60, 50 + 40, 80 + 80, 40 + 70, 10 + 40];
        assert_eq!(a.gaps, contained.map(|ticks| ticks + 37 - 100));
        // B after 60, 40, 60, 20, 30 and 60; A had left 80, 40, 20, 50, 20 and 60.
        let contained = [60 + 80, 40 + 40, 60 + 20, 20 + 50, 30 + 20, 60 + 60];
        assert_eq!(b.gaps, contained.map(|ticks| ticks + 41 - 100));
        assert_eq!(median(&a.gaps), Some(37.0));
        assert_eq!(
            a.quanta, [3000; 6],
            "the first one did not begin with a switch"
        );
        assert_eq!(b.quanta, [2000; 6]);
    }

    /// A process that ends gives its CPU away; its quantum did not run out.
    #[test]
    fn an_end_is_no_switch() {
        let mut made = Made {
            now: 0,
            stamps: Vec::new(),
            left: [0; 2],
        };
        made.runs(0, 5, 50);
        made.runs(1, 5, 50);
        made.runs(0, 5, 50);
        made.stamp(0, None);
        made.runs(1, 5, 50);
        made.runs(0, 5, 50);
        let found = switches(&made.stamps, 2);
        assert_eq!((found[0].gaps.len(), found[1].gaps.len()), (1, 2));
        assert_eq!(
            found[0].quanta, [0; 0],
            "its first did not begin with a switch, its last ended with the process"
        );
        assert_eq!(found[1].quanta, [500]);
    }
}
