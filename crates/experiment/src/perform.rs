//! Performs an experiment, from its scripts to its report.

use std::path::Path;

use undertick_analyze::Cull;
use undertick_document::Report;

use super::Experiment;
use super::analysis::{RATIO, analyse};
use super::combine::combine;
use super::machine::{Ended, ExperimentError, ExperimentProgress, Machine, Performed};
use super::numbering::Numbering;
use crate::script::{Plan, Process, Verb};

/// Options of the analysis of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which samples to drop; `None`: those over four times the minimum if no process ever waits,
    /// otherwise none.
    pub cull: Option<Cull>,
    /// Level of every interval.
    pub confidence: f64,
}

/// The result of an experiment.
#[derive(Debug)]
pub struct Outcome {
    /// The figures.
    pub report: Report,
    /// The outcome of each repetition.
    pub performed: Performed,
}

impl Outcome {
    /// Whether every setting has figures.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        (self.performed.repetitions.iter()).all(|r| r.ended == Ended::Done)
    }
}

/// Performs, analyses and combines an experiment. The trace stays where it is.
///
/// # Errors
/// Nothing could be performed, or the trace cannot be analysed.
pub fn perform(
    experiment: &Experiment,
    machine: &dyn Machine,
    trace: &Path,
    options: Options,
    progress: &mut dyn FnMut(ExperimentProgress),
) -> Result<Outcome, ExperimentError> {
    let numbering =
        Numbering::new(experiment).map_err(|e| ExperimentError::input(e.to_string()))?;
    let performed = machine.perform(experiment, trace, progress)?;
    let cull = |plan: &Plan| match options.cull {
        Some(cull) => cull,
        None if waits(plan) => Cull::None,
        None => Cull::Ratio(RATIO),
    };
    let analysed = analyse(
        experiment,
        &numbering,
        &performed.repetitions,
        trace,
        cull,
        options.confidence,
    )?;
    let report = combine(experiment, &performed, &analysed, options.confidence);
    Ok(Outcome { report, performed })
}

/// Whether a step may give the CPU away, or wait for another process: its duration then does not
/// show disturbances.
fn waits(plan: &Plan) -> bool {
    let users = |lock: usize| {
        let takes = |p: &&Process| {
            let mut verbs = p.steps.iter().map(|s| &s.verb);
            verbs.any(|v| matches!(v, Verb::Lock { lock: l } | Verb::LockUnlock { lock: l, .. } if *l == lock))
        };
        plan.processes
            .iter()
            .filter(takes)
            .map(|p| p.replicas)
            .sum::<u32>()
    };
    let has_rivals = (0..plan.locks.len()).any(|lock| users(lock) > 1);
    let mut steps = plan.processes.iter().flat_map(|p| &p.steps);
    has_rivals
        || steps.any(|step| {
            matches!(
                step.verb,
                Verb::Sleep { .. }
                    | Verb::Yield
                    | Verb::RunOut
                    | Verb::Block
                    | Verb::Wait
                    | Verb::Wakeup { .. }
                    | Verb::Notify { .. }
                    | Verb::Send { .. }
                    | Verb::Receive { .. }
                    | Verb::Reap
                    | Verb::Fork(_)
            )
        })
}
