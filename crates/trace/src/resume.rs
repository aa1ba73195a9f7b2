//! Going on with a recording whose recorder was killed.
//!
//! **Method.** A recorder gives a ring's writer back only what is in its file, so what it
//! had not written is still in the rings; the program wrote on until they were full, and
//! counted what it had to drop. Who goes on cuts the file to its last whole block, adds up
//! how far each ring is in it, reads on from there, and adds to the same trace.
//!
//! **Caveats.** The kernel's events between the kill and the resumption are in nobody's
//! hands; a row says that they are missing. How a program ends that is not our child is
//! not known. Threads that ended meanwhile are read like others.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use undertick_clock::ClockId;
use undertick_clock::facts::Facts;

use crate::TraceError;
use crate::accounts::{self, Program};
use crate::attach::end_is_wanted;
use crate::door::{self, Door, has_ended};
use crate::keep::RAW_FILE;
use crate::manifest::{Exit, Manifest, State};
use crate::read::read_manifest;
use crate::record::{Tell, watch_signals};
use crate::running::{PAUSE, Running};
use crate::session::Session;

/// The clock that a recording is made with.
///
/// # Errors
/// It is no trace, or its clock is none of ours.
pub fn clock_of(trace: &Path) -> Result<ClockId, TraceError> {
    let manifest = read_manifest(trace)?;
    manifest
        .clock
        .name
        .parse()
        .map_err(|_| TraceError::damaged(trace, format!("no such clock: {}", manifest.clock.name)))
}

/// Goes on with a recording until its program has ended, or SIGINT, SIGTERM, SIGHUP or
/// SIGQUIT comes, which ends the recording alone. `facts` are of its clock
/// ([`clock_of`]).
///
/// # Errors
/// There is nothing to go on with, somebody else does, or the trace could not be kept.
pub fn resume(
    trace: &Path,
    facts: &Facts,
    mut told: impl FnMut(Tell),
) -> Result<Manifest, TraceError> {
    let name = trace.display();
    let manifest = read_manifest(trace)?;
    let over = || {
        TraceError::Usage(format!(
            "{name}: recorded to its end; there is nothing to go on with, it can be opened"
        ))
    };
    if manifest.state == State::Complete {
        return Err(over());
    }
    let lock = lock(trace)?;
    let manifest = read_manifest(trace)?; // it may have been finished before
    if manifest.state == State::Complete {
        return Err(over());
    }
    if manifest.perturbation.is_some() {
        return Err(TraceError::Usage(format!(
            "{name}: recorded with --perturbation, which nobody can go on with; open it, as in `undertick report {name}`"
        )));
    }
    if manifest.clock.name != facts.clock.name() {
        return Err(TraceError::Usage(format!(
            "{name}: recorded with the clock {}, not {}",
            manifest.clock.name,
            facts.clock.name()
        )));
    }
    let left = Left::of(trace, &manifest, facts.clock)?;
    let settings = left.session.settings().clone();
    let mut signals = vec![SIGINT, SIGTERM, SIGHUP, SIGQUIT];
    signals.extend(Running::snapshot_signal(&settings));
    let mut signals = watch_signals(&signals)?;
    left.session.switch(true);
    let pid = left.program.pid;
    let ended = left.ended;
    let mut running = Running::again(trace, left.session, manifest, facts.clock, lock)?;
    if ended.is_some() {
        running.watch_kernel(facts, pid)?;
    }
    let interrupted = loop {
        let is_over = ended.as_ref().is_none_or(has_ended);
        let moved = running.round(&mut told);
        // Children have rings of their own, and may live on.
        if is_over && !running.has_rings() {
            break false;
        }
        if end_is_wanted(&mut running, &mut signals) {
            break true;
        }
        running.pause(moved, PAUSE);
    };
    running.finish(exit(interrupted), told)
}

/// Ends a recording whose recorder was killed: what is in the rings is kept, and the
/// program is recorded no more. `None`: nothing is left but the trace, and it is yet to
/// be finished.
pub(crate) fn end(
    trace: &Path,
    manifest: &Manifest,
    lock: File,
    mut told: impl FnMut(f64),
) -> Option<Result<Manifest, TraceError>> {
    let clock = manifest.clock.name.parse().ok()?;
    let left = Left::of(trace, manifest, clock).ok()?;
    let running = Running::again(trace, left.session, manifest.clone(), clock, lock).ok()?;
    Some(running.finish(exit(false), |tell| {
        if let Tell::Keeping(share) = tell {
            told(share);
        }
    }))
}

const fn exit(interrupted: bool) -> Exit {
    Exit {
        status: None,
        signal: None,
        interrupted,
    }
}

/// Takes the lock by which a recorder that lives is known.
fn lock(trace: &Path) -> Result<File, TraceError> {
    let raw = trace.join(RAW_FILE);
    let file = File::open(&raw).map_err(TraceError::io(&raw, "cannot open"))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(_) => Err(TraceError::Recording(format!(
            "{}: its recorder lives, or somebody is just finishing it; wait for the end",
            trace.display()
        ))),
    }
}

/// What a recorder that was killed has left.
struct Left {
    session: Session,
    program: Program,
    /// Readable when the program has ended; `None`: it has.
    ended: Option<OwnedFd>,
}

impl Left {
    fn of(trace: &Path, manifest: &Manifest, clock: ClockId) -> Result<Self, TraceError> {
        let name = trace.display();
        let dir = manifest.session.as_ref().map(PathBuf::from);
        let Some(dir) = dir.filter(|dir| dir.is_dir()) else {
            return Err(TraceError::Usage(format!(
                "{name}: its rings are gone (the machine was started anew, or another recorder came to the program); \
                 what was kept can be opened, as in `undertick report {name}`"
            )));
        };
        let Some(program) = accounts::read(trace).program else {
            return Err(TraceError::Usage(format!(
                "{name}: its recorder was killed before the program was recorded; remove it and record again"
            )));
        };
        let ended = alive(&program);
        let doors = match program.attached && ended.is_some() {
            true => doors_to(&dir, program.pid)?,
            false => Vec::new(),
        };
        // Who attached to it since has taken the rings away.
        let ended = ended.filter(|_| !program.attached || !doors.is_empty());
        let session = Session::reopen(&dir, doors, &manifest.recorder, clock)?;
        Ok(Self {
            session,
            program,
            ended,
        })
    }
}

/// The process, if it is still the one that was recorded.
fn alive(program: &Program) -> Option<OwnedFd> {
    let process = pidfd_open(Pid::from_raw(program.pid)?, PidfdFlags::empty()).ok()?;
    (started(program.pid) == Some(program.started)).then_some(process)
}

/// When a process began, as the kernel counts: tells it from another one of its number.
pub(crate) fn started(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(19)?.parse().ok()
}

/// The doors of a program that lead to a session, in the order of their rings' numbers.
fn doors_to(dir: &Path, pid: i32) -> Result<Vec<Door>, TraceError> {
    let (_, doors) = door::Program::find(pid)?;
    let mut doors: Vec<(u32, Door)> = (doors.into_iter())
        .filter_map(|mut door| Some((door.reenter(dir)?, door)))
        .collect();
    doors.sort_by_key(|(next, _)| *next);
    Ok(doors.into_iter().map(|(_, door)| door).collect())
}
