//! Performs one repetition: creates what its processes share, starts them, and ensures that they
//! end.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::fail::fail;
use super::placement::{CpuPlacement, Cpus, restrict_to};
use super::policy;
use super::repetition_state::{self, OVER, Position, RepetitionState};
use super::shared_memory::SharedMemory;
use super::shared_state::{SharedState, WorkerSpec};
use crate::script::{Plan, Policy, Verb, Words as _};
use crate::{Cell, Ended, Experiment, Numbering, Repetition};

/// Initial size of shared memory, bytes; it grows.
const SHARED_MEMORY_BYTES: usize = 1 << 20;
/// Time between two checks of processes that do not progress.
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// Time between two checks of processes that do.
const WATCH_EVERY: Duration = Duration::from_millis(20);

/// A replica of a process while it runs.
struct Running {
    process: usize,
    /// `None`: a thread of this process.
    pid: Option<libc::pid_t>,
    at: &'static Position,
    exited: bool,
}

/// Performs one repetition in this process and its children, and ends them.
pub(crate) fn perform(
    experiment: &Experiment,
    numbering: &Numbering,
    cpus: &Cpus,
    cell: Cell,
) -> Repetition {
    let plan = &experiment.setting(cell.setting).plan;
    let mut repetition = Repetition::new(cell);
    let policy = match policy::permitted(&plan.policies) {
        Ok((policy, refused)) => {
            repetition.policy = Some(policy.word().to_owned());
            repetition.refused = refused;
            policy
        }
        Err(lacking) => {
            repetition.ended = Ended::Lacking(lacking);
            return repetition;
        }
    };
    let placements = match cpus.assign(plan, cell.repetition) {
        Ok(placements) => placements,
        Err(lacking) => {
            repetition.ended = Ended::Lacking(lacking);
            return repetition;
        }
    };
    repetition.cpus = placements.iter().map(|of| of[0].cpu()).collect();
    let created = SharedMemory::new(SHARED_MEMORY_BYTES)
        .and_then(|memory| Ok((SharedState::new(plan, &memory)?, memory)));
    let (shared, memory) = match created {
        Ok(created) => created,
        Err(error) => {
            repetition.ended = Ended::Failed(error.to_string());
            return repetition;
        }
    };
    let state = RepetitionState::new(&memory);
    let deadline = Instant::now() + plan.timeout;
    let begin = Begin {
        plan,
        numbering,
        cell,
        policy,
    };
    let mut all = match start(&begin, &placements, shared, &memory, state) {
        Ok(all) => all,
        Err(error) => {
            repetition.ended = Ended::Failed(error.to_string());
            return repetition;
        }
    };
    let ready = state.start(all.len() as u32, deadline, || failed(&mut all).is_some());
    repetition.ended = if ready {
        watch(plan, state, shared, &mut all, deadline)
    } else {
        failed(&mut all)
            .unwrap_or_else(|| Ended::TimedOut("its processes were not ready in time".to_owned()))
    };
    state.status.store(OVER, Ordering::Release);
    end(&mut all);
    repetition.passes = match state.passes.load(Ordering::Relaxed) {
        u64::MAX => 0,
        passes => passes,
    };
    repetition.seconds = state.took_ns.load(Ordering::Acquire) as f64 / 1e9;
    repetition
}

/// What a repetition begins with.
struct Begin<'a> {
    plan: &'a Plan,
    numbering: &'a Numbering,
    cell: Cell,
    policy: Policy,
}

/// Starts every process, and the threads after them, because a process with threads should not
/// fork.
fn start(
    &Begin {
        plan,
        numbering,
        cell,
        policy,
    }: &Begin<'_>,
    placements: &[Vec<CpuPlacement>],
    shared: &'static SharedState,
    memory: &SharedMemory,
    state: &'static RepetitionState,
) -> std::io::Result<Vec<Running>> {
    let mut order: Vec<usize> = (0..plan.processes.len()).collect();
    order.sort_by_key(|&p| plan.processes[p].is_thread);
    let mut all = Vec::new();
    for process in order {
        for (replica, placement) in placements[process].iter().enumerate() {
            let at = Position::new(memory);
            let spec = WorkerSpec {
                plan: plan.clone(),
                process,
                replica,
                user: all.len(),
                events: super::shared_state::event_numbers(plan, numbering, cell, process),
                seed: u64::from(cell.repetition) << 32 | (all.len() as u64) << 1,
            };
            let placement = placement.clone();
            let life = move || {
                if let Err(error) = restrict_to(&placement) {
                    fail("sched_setaffinity", &error);
                }
                if let Err(error) = policy::set(policy) {
                    fail("sched_setscheduler", &error);
                }
                let name = spec.plan.processes[spec.process].name.clone();
                match shared.worker(spec, state, at) {
                    Ok(worker) => worker.run(),
                    Err(error) => fail(&name, &error),
                }
            };
            let pid = if plan.processes[process].is_thread {
                std::thread::Builder::new().spawn(life)?;
                None
            } else {
                Some(fork(life)?)
            };
            all.push(Running {
                process,
                pid,
                at,
                exited: false,
            });
        }
    }
    Ok(all)
}

/// Forks a child that runs `life` and exits; it also ends with its parent.
fn fork(life: impl FnOnce()) -> std::io::Result<libc::pid_t> {
    // SAFETY: this process has one thread (threads are started last), so the child
    // finds no lock taken.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            // SAFETY: no memory is passed.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            life();
            // SAFETY: nothing of this process is to be run any more.
            unsafe { libc::_exit(0) }
        }
        pid => Ok(pid),
    }
}

/// Waits until all processes that count are done.
fn watch(
    plan: &Plan,
    state: &RepetitionState,
    shared: &SharedState,
    all: &mut [Running],
    deadline: Instant,
) -> Ended {
    loop {
        let done = state.done.load(Ordering::Acquire);
        let counts = |r: &&Running| !plan.processes[r.process].background;
        let left: Vec<&Running> = (all.iter())
            .filter(counts)
            .filter(|r| r.at.done.load(Ordering::Acquire) == 0)
            .collect();
        if left.is_empty() {
            return Ended::Done;
        }
        if done > 0 && left.iter().all(|r| waits_in_vain(plan, r, state)) {
            state.status.store(OVER, Ordering::Release);
            shared.release_all();
            return Ended::Done;
        }
        if let Some(failed) = failed(all) {
            return failed;
        }
        if Instant::now() > deadline {
            return Ended::TimedOut(positions(plan, all));
        }
        let pause = if done > 0 { LOOK_EVERY } else { WATCH_EVERY };
        repetition_state::wait(&state.done, done, pause);
    }
}

/// Whether the process waits in its last pass for an event of the next pass of the others, which
/// are already done.
fn waits_in_vain(plan: &Plan, running: &Running, state: &RepetitionState) -> bool {
    let at = || {
        let step = running.at.step.load(Ordering::Acquire);
        (running.at.pass.load(Ordering::Acquire), step)
    };
    let before = at();
    std::thread::sleep(LOOK_EVERY);
    let steps = &plan.processes[running.process].steps;
    // A pass begins with a null step, and steps count from 1.
    let blocks = (before.1 as usize)
        .checked_sub(2)
        .and_then(|step| steps.get(plan.processes[running.process].loop_to + step))
        .is_some_and(|step| matches!(step.verb, Verb::Block | Verb::Wait | Verb::Receive { .. }));
    blocks && before == at() && state.done.load(Ordering::Acquire) > 0
}

/// Returns a failure if a process has ended early.
fn failed(all: &mut [Running]) -> Option<Ended> {
    for running in all.iter_mut() {
        let Some(pid) = running.pid.filter(|_| !running.exited) else {
            continue;
        };
        let mut status = 0;
        // SAFETY: `status` is valid for writing.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } != pid {
            continue;
        }
        running.exited = true;
        let ended_well = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        if !ended_well {
            let how = if libc::WIFSIGNALED(status) {
                format!("was ended by signal {}", libc::WTERMSIG(status))
            } else {
                "failed; it says why on standard error".to_owned()
            };
            return Some(Ended::Failed(format!("a process {how}")));
        }
    }
    None
}

/// Describes the position of every process, in words.
fn positions(plan: &Plan, all: &[Running]) -> String {
    let mut text = String::new();
    for running in all {
        let process = &plan.processes[running.process];
        let step = running.at.step.load(Ordering::Acquire) as usize;
        let pass = running.at.pass.load(Ordering::Acquire) + 1;
        let separator = if text.is_empty() { "" } else { "; " };
        let name = &process.name;
        let _ = if running.at.done.load(Ordering::Acquire) != 0 {
            write!(text, "{separator}{name} is done")
        } else if let Some(step) = step
            .checked_sub(2)
            .and_then(|s| process.steps.get(process.loop_to + s))
        {
            write!(
                text,
                "{separator}{name} is in step {} ({}, line {}) of pass {pass}",
                step.number, step.name, step.line
            )
        } else {
            write!(
                text,
                "{separator}{name} is between the steps of pass {pass}"
            )
        };
    }
    text
}

/// Ends the processes that still run.
fn end(all: &mut [Running]) {
    for running in all.iter().filter(|r| !r.exited) {
        if let Some(pid) = running.pid {
            if running.at.done.load(Ordering::Acquire) == 0 {
                // SAFETY: a signal to our own child, which has not been waited for.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            // SAFETY: our own child; nothing is written.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        }
    }
}
