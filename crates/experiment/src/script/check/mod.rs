//! Finds mistakes that only show when a setting is complete: missing partners, and resources that
//! are taken and never released.

mod holding;
mod messages;
mod waking;

use super::head::Names;
use super::message::{Bad, Origin, Result};
use super::plan::{Plan, Process};
use super::process::Mark;
use super::verb::Verb;

/// A complete setting, and where its parts are in the script.
pub(super) struct Draft<'s> {
    pub(super) plan: &'s Plan,
    pub(super) backend: Option<&'s Origin>,
    pub(super) processes: &'s Names,
    pub(super) channels: &'s Names,
    pub(super) marks: &'s [Mark],
}

/// Checks a setting.
pub(super) fn check(draft: &Draft<'_>) -> Result<()> {
    measured(draft)?;
    waking::check(draft)?;
    messages::check(draft)?;
    holding::check(draft)
}

impl Draft<'_> {
    /// All steps: process, step, verb.
    fn steps(&self) -> impl Iterator<Item = (usize, usize, &Verb)> {
        let processes = self.plan.processes.iter().enumerate();
        processes.flat_map(|(p, process)| {
            let steps = process.steps.iter().enumerate();
            steps.map(move |(s, step)| (p, s, &step.verb))
        })
    }

    fn bad(&self, process: usize, step: usize, why: impl AsRef<str>) -> Bad {
        self.marks[process].steps[step].bad(why)
    }

    fn name(&self, process: usize) -> &str {
        &self.plan.processes[process].name
    }

    /// Checks that both processes have the same number of replicas, because replica n works with
    /// replica n.
    fn same_replicas(&self, process: usize, step: usize, other: usize) -> Result<()> {
        let of = |p: usize| self.plan.processes[p].replicas;
        if of(process) == of(other) {
            return Ok(());
        }
        let why = format!(
            "{} has {} replicas and {} has {}, but replica n of one works with replica n of the \
             other; give them equally many",
            self.name(process),
            of(process),
            self.name(other),
            of(other)
        );
        Err(self.bad(process, step, why))
    }
}

/// The steps in order, and once more through the loop; true in the second round.
fn two_rounds(process: &Process) -> impl Iterator<Item = (usize, &Verb, bool)> {
    let first = (0..process.steps.len()).map(|i| (i, false));
    let again = (process.loop_to..process.steps.len()).map(|i| (i, true));
    let both = first.chain(again);
    both.map(|(i, is_again)| (i, &process.steps[i].verb, is_again))
}

/// Checks that a process is measured, and that the run ends.
fn measured(draft: &Draft<'_>) -> Result<()> {
    let processes = &draft.plan.processes;
    if processes.iter().all(|p| p.background) {
        let why =
            "every process is in the background, so the run never ends; leave background out once";
        return Err(draft.processes.from[0].bad(why));
    }
    if !processes.iter().any(|p| p.measured) {
        let why =
            "no process is measured; set measured = true in one that is not in the background";
        return Err(draft.processes.from[0].bad(why));
    }
    let is_timed = |p: &Process| p.measured && p.steps.iter().any(|s| s.timed);
    if !processes.iter().any(is_timed) {
        let why = "no step of a measured process is timed; leave out timed = false in one";
        return Err(draft.processes.from[0].bad(why));
    }
    Ok(())
}
