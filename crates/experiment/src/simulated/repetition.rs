//! Performs one repetition on a separate machine.

use std::fmt::Write as _;
use std::sync::Arc;

use undertick_cmstar::{Machine, Moment, ProcessId, Stopped};
use undertick_record::synthetic::SyntheticRing;

use super::Simulated;
use super::processes;
use super::worker::{RepetitionState, Worker};
use crate::script::{Placement, Plan};
use crate::{Cell, Ended, Experiment, Numbering, Repetition};

/// The result of a repetition.
pub(super) struct Ran {
    pub(super) repetition: Repetition,
    pub(super) rings: Vec<SyntheticRing>,
    /// Duration of each reading of the clock, ns.
    pub(super) reading_ns: Vec<u64>,
    /// Readings for which the routine was too slow: they are not in the rings.
    pub(super) too_slow: u64,
    /// Virtual time, ns.
    pub(super) duration_ns: u64,
}

/// A script's timeout is meant for a modern machine; a Cm is allowed this many times longer.
const SLOWER: u32 = 100;
/// Virtual time between two checks whether any process progresses, ns.
const LOOK_EVERY_NS: u64 = 100_000_000;

pub(super) fn run(
    machine: &Simulated,
    experiment: &Experiment,
    numbering: &Numbering,
    cell: Cell,
) -> Ran {
    let plan = &experiment.setting(cell.setting).plan;
    let mut repetition = Repetition::new(cell);
    if let Some(lacking) = super::lacks(plan, machine.sizes()) {
        repetition.ended = Ended::Lacking(lacking);
        return Ran {
            repetition,
            rings: Vec::new(),
            reading_ns: Vec::new(),
            too_slow: 0,
            duration_ns: 0,
        };
    }
    let seed = (cell.setting as u64) << 32 | u64::from(cell.repetition);
    let mut on: Machine<Worker> = Machine::new(&machine.parameters, machine.os, seed);
    let state = Arc::new(RepetitionState::default());
    let started = processes::start(&mut on, machine, plan, (numbering, cell), &state);
    repetition.ended = watch(&mut on, plan, &started);
    repetition.passes = state.passes();
    repetition.seconds = state.seconds();
    let placements = processes::placements(machine, plan);
    repetition.cpus = (plan.processes.iter().zip(&placements))
        .map(|(process, cms)| (process.place != Placement::Any).then_some(cms[0]))
        .collect();
    let duration_ns = on.now().ns();
    let first_pid = 1 + 1000 * cell.setting as i32;
    let workers = on.into_programs();
    let reading_ns = workers
        .iter()
        .flat_map(|a| &a.reading_ns)
        .copied()
        .collect();
    let too_slow = workers.iter().map(|a| a.too_slow).sum();
    let rings = (workers.into_iter().zip(started))
        .filter(|(worker, _)| !worker.records.is_empty())
        .map(|(worker, (p, _, _))| SyntheticRing {
            pid: first_pid + p as i32,
            tid: first_pid + p as i32,
            name: plan.processes[p].name.clone(),
            records: worker.records,
            true_ns: worker.true_ns,
        })
        .collect();
    Ran {
        repetition,
        rings,
        reading_ns,
        too_slow,
        duration_ns,
    }
}

/// Runs the machine until all processes that count are done, or none progresses.
fn watch(on: &mut Machine<Worker>, plan: &Plan, started: &[(usize, usize, ProcessId)]) -> Ended {
    let timeout = plan.timeout.saturating_mul(SLOWER).as_nanos();
    let timeout = Moment::from_ns(u64::try_from(timeout).unwrap_or(u64::MAX / 2));
    let awaited = || {
        let counts = |one: &&(usize, usize, ProcessId)| !plan.processes[one.0].background;
        started.iter().filter(counts)
    };
    let mut before = None;
    loop {
        let until = on.now().plus_ns(LOOK_EVERY_NS).min(timeout);
        let stopped = on.run(until);
        // A process that waits for an event of the next pass of the others, which are already done,
        // waits in vain.
        let some_done = awaited().any(|one| on.program(one.2).is_done());
        let at: Vec<(u64, usize)> = (awaited())
            .map(|one| on.program(one.2).position())
            .collect();
        let stands_still = before.as_ref() == Some(&at);
        match stopped {
            Stopped::AllEnded => return Ended::Done,
            Stopped::Stuck if some_done => return Ended::Done,
            Stopped::Stuck => {
                return Ended::Failed(format!(
                    "all wait for each other: {}",
                    positions(on, plan, started)
                ));
            }
            Stopped::Limit if some_done && stands_still => return Ended::Done,
            Stopped::Limit if on.now() >= timeout => {
                return Ended::TimedOut(positions(on, plan, started));
            }
            Stopped::Limit => before = Some(at),
        }
    }
}

/// Describes the position of every process, in words.
fn positions(on: &Machine<Worker>, plan: &Plan, started: &[(usize, usize, ProcessId)]) -> String {
    let mut text = String::new();
    for (p, _, id) in started {
        let process = &plan.processes[*p];
        let (pass, step) = on.program(*id).position();
        let separator = if text.is_empty() { "" } else { "; " };
        let name = &process.name;
        let step = step
            .checked_sub(2)
            .and_then(|s| process.steps.get(process.loop_to + s));
        let _ = match step {
            Some(step) => write!(
                text,
                "{separator}{name} is in step {} ({}, line {}) of pass {}: {}",
                step.number,
                step.name,
                step.line,
                pass + 1,
                on.doing(*id)
            ),
            None => write!(
                text,
                "{separator}{name} is between the steps of pass {}: {}",
                pass + 1,
                on.doing(*id)
            ),
        };
    }
    text
}
