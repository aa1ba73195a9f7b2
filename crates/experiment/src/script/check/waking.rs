//! Checks that a process that blocks is woken, and that a backend exists for it.

use super::super::message::Result;
use super::super::plan::Process;
use super::super::verb::{Backend, Verb};
use super::{Draft, two_rounds};

pub(super) fn check(draft: &Draft<'_>) -> Result<()> {
    backend(draft)?;
    targets(draft)?;
    starts(draft)?;
    for (p, process) in draft.plan.processes.iter().enumerate() {
        blocks(draft, p)?;
        waits(draft, p, process)?;
    }
    Ok(())
}

fn is_event(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::Notify { .. } | Verb::AddEvent { .. } | Verb::DelEvent { .. } | Verb::Wait
    )
}

fn uses_backend(verb: &Verb) -> bool {
    is_event(verb) || matches!(verb, Verb::Wakeup { .. } | Verb::Block)
}

fn is_blocking(verb: &Verb) -> bool {
    matches!(verb, Verb::Block | Verb::Wait | Verb::Receive { .. })
}

/// Checks that there is a backend if, and only if, a step needs one, and that it supports the step.
fn backend(draft: &Draft<'_>) -> Result<()> {
    let user = draft.steps().find(|(_, _, verb)| uses_backend(verb));
    match (draft.plan.control, user) {
        (None, Some((p, s, _))) => {
            let why = "this step needs a backend; write backend = \"futex\" above the first [table] (or eventfd, pipe, condvar, signal)";
            Err(draft.bad(p, s, why))
        }
        (Some(_), None) => {
            let from = draft.backend.cloned().unwrap_or_default();
            let why = "no step uses the backend (wakeup, block, notify, addevent, delevent, wait); leave it out";
            Err(from.bad(why))
        }
        (Some(Backend::Signal), _) => {
            let Some((p, s, _)) = draft.steps().find(|(_, _, verb)| is_event(verb)) else {
                return Ok(());
            };
            let why = "signals have no events; use backend = \"futex\", \"eventfd\", \"pipe\" or \"condvar\"";
            Err(draft.bad(p, s, why))
        }
        _ => Ok(()),
    }
}

/// Checks that the target of each wakeup or watch is another process, which can block.
fn targets(draft: &Draft<'_>) -> Result<()> {
    for (p, s, verb) in draft.steps() {
        let (target, does) = match *verb {
            Verb::Wakeup { process } => (process, "wakes"),
            Verb::UntilBlocked { process } => (process, "watches"),
            _ => continue,
        };
        if target == p {
            let why = format!("{} {does} itself here; name another process", draft.name(p));
            return Err(draft.bad(p, s, why));
        }
        draft.same_replicas(p, s, target)?;
        let steps = &draft.plan.processes[target].steps;
        let watches = matches!(verb, Verb::UntilBlocked { .. });
        if watches && !steps.iter().any(|step| is_blocking(&step.verb)) {
            let why = format!(
                "{} never blocks, so this would wait for ever; give it a step block, wait or receive",
                draft.name(target)
            );
            return Err(draft.bad(p, s, why));
        }
    }
    Ok(())
}

fn starts(draft: &Draft<'_>) -> Result<()> {
    for (process, mark) in draft.plan.processes.iter().zip(draft.marks) {
        if process.starts_blocked && !process.steps.iter().any(|s| is_blocking(&s.verb)) {
            let why = "it cannot start blocked without a step block, wait or receive; add one, or leave start out";
            return Err(mark.start.bad(why));
        }
    }
    Ok(())
}

/// Checks that another process wakes each process that blocks.
fn blocks(draft: &Draft<'_>, p: usize) -> Result<()> {
    let is_woken = draft
        .steps()
        .any(|(other, _, verb)| other != p && *verb == Verb::Wakeup { process: p });
    let mut own = draft.steps().filter(|(own, _, _)| *own == p);
    match own.find(|(_, _, verb)| **verb == Verb::Block) {
        Some((p, s, _)) if !is_woken => {
            let name = draft.name(p);
            let why = format!(
                "nobody wakes {name}, so it blocks for ever; add wakeup = {name:?} to another process"
            );
            Err(draft.bad(p, s, why))
        }
        _ => Ok(()),
    }
}

/// Checks that some process notifies one of the events that are added where a process waits.
fn waits(draft: &Draft<'_>, p: usize, process: &Process) -> Result<()> {
    let mut added: Vec<u32> = Vec::new();
    let mut has_come = false;
    for (s, verb, _) in two_rounds(process) {
        match *verb {
            Verb::AddEvent { event } if !added.contains(&event) => added.push(event),
            Verb::DelEvent { event } => added.retain(|&other| other != event),
            Verb::Notify { event } => has_come |= added.contains(&event),
            Verb::Wait => {
                if !added.is_empty() && !has_come {
                    notified(draft, (p, s), &added)?;
                }
                added.clear();
                has_come = false;
            }
            _ => {}
        }
    }
    Ok(())
}

fn notified(draft: &Draft<'_>, (p, s): (usize, usize), added: &[u32]) -> Result<()> {
    let mut theirs = draft.steps().filter(|(other, _, verb)| {
        *other != p && matches!(verb, Verb::Notify { event } if added.contains(event))
    });
    if let Some((other, step, _)) = theirs.next() {
        return draft.same_replicas(other, step, p);
    }
    let events: Vec<String> = added.iter().map(u32::to_string).collect();
    let why = format!(
        "{} waits here for event {}, which no other process notifies; add notify = {} to one",
        draft.name(p),
        events.join(" or "),
        added[0]
    );
    Err(draft.bad(p, s, why))
}
