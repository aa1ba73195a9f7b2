//! Checks that a process releases in a pass what it takes: locks, children, regions.

use super::super::message::Result;
use super::super::plan::Process;
use super::super::verb::Verb;
use super::{Draft, two_rounds};

pub(super) fn check(draft: &Draft<'_>) -> Result<()> {
    for (p, process) in draft.plan.processes.iter().enumerate() {
        locks(draft, p, process)?;
        children(draft, p, process)?;
        regions(draft, p, process)?;
    }
    Ok(())
}

fn locks(draft: &Draft<'_>, p: usize, process: &Process) -> Result<()> {
    // For each lock, the step that took it, if it is held.
    let mut held: Vec<Option<usize>> = vec![None; draft.plan.locks.len()];
    for (s, verb, is_again) in two_rounds(process) {
        let (lock, takes, gives) = match *verb {
            Verb::Lock { lock } => (lock, true, false),
            Verb::Unlock { lock } => (lock, false, true),
            Verb::LockUnlock { lock, .. } => (lock, true, true),
            _ => continue,
        };
        let name = &draft.plan.locks[lock].name;
        let why = match (held[lock], takes) {
            (Some(_), true) if is_again => format!(
                "the lock {name:?} is still held from the pass before; add unlock = {name:?} after the step that takes it"
            ),
            (Some(_), true) => format!(
                "{} holds the lock {name:?} already and would wait for itself; add unlock = {name:?} before this",
                process.name
            ),
            (None, false) => format!(
                "{} does not hold the lock {name:?} here; add lock = {name:?} before this",
                process.name
            ),
            _ => {
                held[lock] = (!gives).then_some(s);
                continue;
            }
        };
        return Err(draft.bad(p, s, why));
    }
    for (lock, taken) in held.iter().enumerate() {
        let unlocks = |verb: &Verb| *verb == Verb::Unlock { lock };
        if let Some(s) = taken
            && !process.steps.iter().any(|step| unlocks(&step.verb))
        {
            let name = &draft.plan.locks[lock].name;
            let why = format!("the lock {name:?} is never given back; add unlock = {name:?}");
            return Err(draft.bad(p, *s, why));
        }
    }
    Ok(())
}

/// Checks that a process has at most one child at a time.
fn children(draft: &Draft<'_>, p: usize, process: &Process) -> Result<()> {
    let mut has_child = false;
    for (s, verb, is_again) in two_rounds(process) {
        let why = match (verb, has_child) {
            (Verb::Fork(_), true) if is_again => {
                "the child of the pass before has not been waited for; add a step reap = true"
            }
            (Verb::Fork(_), true) => {
                "a process has one child at a time; add a step reap = true before this"
            }
            (Verb::Reap, false) => {
                "there is no child to wait for here; add fork = \"fork\" before this"
            }
            (Verb::Fork(_), false) => {
                has_child = true;
                continue;
            }
            (Verb::Reap, true) => {
                has_child = false;
                continue;
            }
            _ => continue,
        };
        return Err(draft.bad(p, s, why));
    }
    Ok(())
}

fn regions(draft: &Draft<'_>, p: usize, process: &Process) -> Result<()> {
    let mut is_there: Vec<bool> = draft.plan.regions.iter().map(|r| r.ready).collect();
    for (s, verb, is_again) in two_rounds(process) {
        let (region, does) = match *verb {
            Verb::Create { region } => (region, "create"),
            Verb::Touch { region } => (region, "touch"),
            Verb::Fill { region } => (region, "fill"),
            Verb::Free { region } => (region, "free"),
            _ => continue,
        };
        let (name, ready) = (
            &draft.plan.regions[region].name,
            draft.plan.regions[region].ready,
        );
        let why = match (does, is_there[region]) {
            ("create", _) if ready => format!(
                "the region {name:?} is made before the first pass; set ready = false in [region.{name}] to make it in a step"
            ),
            ("create", true) if is_again => format!(
                "the region {name:?} is still there from the pass before; add free = {name:?}"
            ),
            ("create", true) => {
                format!("the region {name:?} is there already; add free = {name:?} before this")
            }
            ("create", false) => {
                is_there[region] = true;
                continue;
            }
            (_, true) => {
                is_there[region] = does != "free";
                continue;
            }
            (_, false) if ready => format!(
                "the region {name:?} has been given back; leave free out, or set ready = false and add create = {name:?}"
            ),
            (_, false) => format!(
                "{} has not made the region {name:?} here; add create = {name:?} before this",
                process.name
            ),
        };
        return Err(draft.bad(p, s, why));
    }
    Ok(())
}
