//! The traffic controller's table: the duration of each step of each pass, by the stamps of all
//! processes in order of time, and the causes of values that are out of place.
//!
//! **Question.** How long is a step if the next stamp of any process ends it, and why was it longer
//! this time?
//!
//! **Method.** As in the memo, all stamps of one repetition are ordered by time, and a step's time
//! is the difference to the stamp after it. On one CPU the next stamp is made by the process that
//! runs next, so the step in which a process gives its processor away lasts until another runs. A
//! value far over its step's median is out of place; the kernel rows in the same trace show what
//! disturbed it. What occurs in most values of a step (the switch of a block) is part of the step
//! and explains nothing.
//!
//! **Caveats.** Tracing costs about 1 us per wake-up, which is contained in the values. A source
//! that cannot report interrupts leaves them without evidence. Neither the read cost of the clock
//! nor the cost of stepping is taken off the values.

mod bulk;
mod evidence;
mod quantum;
mod read;
mod samples;
mod table;
mod turns;

#[cfg(test)]
mod tests;

use undertick_document::passes::Passes;
use undertick_format::read::Trace;

use read::Recorded;
use table::Scale;
use undertick_experiment::script::{Plan, Stamps};
use undertick_experiment::{
    Cell, Ended, Experiment, ExperimentError, Numbering, Performed, Repetition,
};

pub use evidence::Cause;
pub use quantum::{RunOut, run_outs};
pub use samples::{Anomaly, Samples};
pub use turns::{Turn, turns};

/// Maximum number of stamps of one repetition that are used.
const MOST_STAMPS: usize = 2_000_000;

/// The passes of one repetition, the first that was completed, for every setting whose clock is
/// read between two steps. The table shows `shown` passes; all are counted.
///
/// # Errors
/// The trace cannot be read.
pub fn passes(
    experiment: &Experiment,
    performed: &Performed,
    trace: &Trace,
    shown: usize,
) -> Result<Vec<Passes>, ExperimentError> {
    let of = first_of_each(experiment, performed);
    let recorded = recorded(experiment, &of, trace)?;
    let scale = Scale::from_manifest(&trace.manifest);
    Ok((of.iter().zip(&recorded))
        .map(|(repetition, recorded)| {
            let subject = table::TableSubject {
                script: experiment.script_of(repetition.setting),
                setting: experiment.setting(repetition.setting),
                repetition,
            };
            table::passes(&subject, recorded, &scale, shown)
        })
        .collect())
}

/// Returns every sample of a step, one [`Samples`] for each of the repetitions in their order, each
/// sample with its cause if it is over ten times the median. `process` and `step` are indices into the
/// plan.
///
/// # Errors
/// The trace cannot be read, or is not that of these repetitions.
pub fn all_samples(
    experiment: &Experiment,
    repetitions: &[&Repetition],
    trace: &Trace,
    process: usize,
    step: usize,
) -> Result<Vec<Samples>, ExperimentError> {
    let recorded = recorded(experiment, repetitions, trace)?;
    let scale = Scale::from_manifest(&trace.manifest);
    Ok((repetitions.iter().zip(&recorded))
        .map(|(repetition, recorded)| {
            let plan = &experiment.setting(repetition.setting).plan;
            samples::samples(recorded, plan, &scale, process, step)
        })
        .collect())
}

fn recorded(
    experiment: &Experiment,
    repetitions: &[&Repetition],
    trace: &Trace,
) -> Result<Vec<Recorded>, ExperimentError> {
    let numbering =
        Numbering::new(experiment).map_err(|e| ExperimentError::machine(e.to_string()))?;
    let wanted: Vec<(&Plan, Cell)> = (repetitions.iter())
        .map(|r| {
            let cell = Cell {
                setting: r.setting,
                repetition: r.repetition,
            };
            (&experiment.setting(r.setting).plan, cell)
        })
        .collect();
    read::read(&wanted, &numbering, || trace.batches())
        .map_err(|e| ExperimentError::machine(e.to_string()))
}

/// What was recorded of each setting that is wanted and whose processes share one CPU, by its index:
/// its complete repetitions. The trace is read once.
fn on_one_cpu(
    experiment: &Experiment,
    performed: &Performed,
    trace: &Trace,
    is_wanted: impl Fn(&Plan) -> bool,
) -> Result<Vec<(usize, Vec<Recorded>)>, ExperimentError> {
    let mut done: Vec<&Repetition> = (performed.repetitions.iter())
        .filter(|r| r.ended == Ended::Done && is_wanted(&experiment.setting(r.setting).plan))
        .filter(|r| r.cpus.iter().all(|cpu| cpu.is_some() && *cpu == r.cpus[0]))
        .collect();
    if done.is_empty() {
        return Ok(Vec::new());
    }
    done.sort_by_key(|r| r.setting);
    let mut all: Vec<(usize, Vec<Recorded>)> = Vec::new();
    for (repetition, recorded) in done.iter().zip(recorded(experiment, &done, trace)?) {
        match all
            .last_mut()
            .filter(|(setting, _)| *setting == repetition.setting)
        {
            Some((_, of)) => of.push(recorded),
            None => all.push((repetition.setting, vec![recorded])),
        }
    }
    Ok(all)
}

fn first_of_each<'a>(experiment: &Experiment, performed: &'a Performed) -> Vec<&'a Repetition> {
    (experiment.settings().enumerate())
        .filter(|(_, (setting, _))| setting.plan.stamps == Stamps::Between)
        .filter_map(|(index, _)| {
            (performed.repetitions.iter())
                .filter(|r| r.setting == index && r.ended == Ended::Done)
                .min_by_key(|r| r.repetition)
        })
        .collect()
}
