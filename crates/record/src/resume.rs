//! Resumes a recording after its recorder was killed.
//!
//! **Method.** A recorder gives space in a ring back to its writer only for what is in its file.
//! So what it had not written is still in the rings. The program wrote on until they were full,
//! and counted what it had to drop. The next recorder cuts the file to its last whole block,
//! computes how much of each ring is in it, reads on from there, and adds to the same trace.
//!
//! **Caveats.** The kernel's events between the kill and the resumption are lost; a row says that
//! they are missing. The exit status of a program that is not our child is unknown. Threads that
//! ended in between are read like others.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use undertick_clock::ClockId;
use undertick_clock::facts::Facts;
use undertick_format::TraceError;
use undertick_format::files::RAW_FILE;
use undertick_format::manifest::{Exit, Manifest, State};
use undertick_format::read::read_manifest;
use undertick_memory::attach_page::{self, AttachPage, has_ended};

use crate::accounts::{self, Program, started};
use crate::attach::end_is_wanted;
use crate::record::watch_signals;
use crate::recording_loop::RecordingLoop;
use crate::request::{PAUSE, RecordingProgress};
use crate::session::{Files, Session, SessionDir};
use crate::session_identity::{self, NotTaken};
use crate::trace_dir::TraceDir;

/// Returns the clock with which a recording is made.
///
/// # Errors
/// It is not a trace, or its clock is unknown.
pub fn clock_of(trace: &Path) -> Result<ClockId, TraceError> {
    clock_named(trace, &read_manifest(trace)?)
}

pub(crate) fn clock_named(trace: &Path, manifest: &Manifest) -> Result<ClockId, TraceError> {
    let name = &manifest.clock.name;
    (name.parse()).map_err(|_| TraceError::damaged(trace, format!("no such clock: {name}")))
}

/// Resumes a recording until its program has ended, or SIGINT, SIGTERM, SIGHUP or SIGQUIT comes,
/// which ends only the recording. `facts` are those of its clock ([`clock_of`]).
///
/// # Errors
/// There is nothing to resume, another recorder records it, or the trace could not be finalized.
pub fn resume(
    path: &Path,
    facts: &Facts,
    progress: &mut dyn FnMut(RecordingProgress),
) -> Result<Manifest, TraceError> {
    let name = path.display();
    let trace = TraceDir::open(path)?;
    let (manifest, lock) = unfinished(&trace)?;
    if manifest.perturbation.is_some() {
        return Err(TraceError::Usage(format!(
            "{name}: recorded with --perturbation, which cannot be gone on with: `undertick record --finish {name}` keeps what there is"
        )));
    }
    if manifest.clock.name != facts.clock.name() {
        return Err(TraceError::Usage(format!(
            "{name}: recorded with the clock {}, not {}",
            manifest.clock.name,
            facts.clock.name()
        )));
    }
    let dir = session_identity::take(&trace, &manifest).map_err(|why| why.error(path))?;
    let left = Left::find(&trace, &manifest, facts.clock, dir)?;
    let settings = left.session.settings().clone();
    let mut signals = vec![SIGINT, SIGTERM, SIGHUP, SIGQUIT];
    signals.extend(RecordingLoop::snapshot_signal(&settings));
    let mut signals = watch_signals(&signals)?;
    left.session.switch(true);
    let pid = left.program.pid;
    let ended = left.ended;
    let mut recording = RecordingLoop::again(trace, left.session, manifest, facts.clock, lock)?;
    recording.resume_rules()?;
    if ended.is_some() {
        recording.watch_kernel(facts, pid)?;
    }
    let interrupted = loop {
        let is_over = ended.as_ref().is_none_or(has_ended);
        recording.search_orphans(is_over);
        let moved = recording.round(progress);
        // Child processes have their own rings, and may continue to run.
        if is_over && !recording.has_rings() {
            break false;
        }
        if end_is_wanted(&mut recording, &mut signals) {
            break true;
        }
        recording.pause(moved, PAUSE);
    };
    recording.finish(exit(interrupted), progress)
}

const fn exit(interrupted: bool) -> Exit {
    Exit {
        status: None,
        signal: None,
        interrupted,
    }
}

/// Returns the manifest of a trace that is not finished, and its lock, which marks a process that
/// records or finishes it.
///
/// # Errors
/// It is finished, another process records or finishes it, or its raw events are gone.
pub(crate) fn unfinished(trace: &TraceDir) -> Result<(Manifest, File), TraceError> {
    let path = trace.path();
    let name = path.display();
    let over = || {
        TraceError::Usage(format!(
            "{name}: finished, and its events are Parquet: there is nothing to go on with; open it, as in `undertick report {name}`"
        ))
    };
    if read_manifest(path)?.state == State::Complete {
        return Err(over());
    }
    let lock = exclusive(trace)?;
    // Another process may have finished it before the lock was free.
    let manifest = read_manifest(path)?;
    match manifest.state {
        State::Complete => Err(over()),
        State::Recording => Ok((manifest, lock)),
    }
}

/// Takes the lock of a trace, which marks a process that records or finishes it.
///
/// # Errors
/// Another process has it, or the raw events are gone.
pub(crate) fn exclusive(trace: &TraceDir) -> Result<File, TraceError> {
    let lock = trace
        .read(RAW_FILE)
        .map_err(TraceError::io(&trace.join(RAW_FILE), "cannot open"))?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(_) => Err(TraceError::Recording(format!(
            "{}: its recorder is still running, or another process is finishing it; wait until that ends",
            trace.path().display()
        ))),
    }
}

impl NotTaken {
    /// Why a recording cannot be resumed.
    pub(crate) fn error(self, trace: &Path) -> TraceError {
        let name = trace.display();
        let finish = format!("`undertick record --finish {name}` keeps what is in the trace");
        match self {
            Self::Over => TraceError::Usage(format!(
                "{name}: its recorder had ended the recording and was killed while it finished the trace; {finish}"
            )),
            Self::Gone => TraceError::Usage(format!(
                "{name}: its rings are gone (the machine was started anew, or another recorder came to the program); {finish}"
            )),
            Self::Held => TraceError::Recording(format!(
                "{name}: its recorder is still running, or another process is finishing it; wait until that ends"
            )),
            Self::Copy { original, held } => TraceError::Usage(format!(
                "{name}: a copy of {}, {}; {finish} of the copy",
                original.display(),
                match held {
                    true => "which is being recorded",
                    false => "to which its rings belong: go on with that one",
                }
            )),
            Self::NotOurs(why) => TraceError::Usage(format!(
                "{name}: the session directory that it names is not its own ({why}), and is left alone; {finish}"
            )),
        }
    }
}

/// What a killed recorder has left.
struct Left {
    session: Session,
    program: Program,
    /// Readable when the program has ended; `None`: it has ended.
    ended: Option<OwnedFd>,
}

impl Left {
    fn find(
        trace: &TraceDir,
        manifest: &Manifest,
        clock: ClockId,
        dir: SessionDir,
    ) -> Result<Self, TraceError> {
        let Some(program) = accounts::read(trace).program else {
            let name = trace.path().display();
            return Err(TraceError::Usage(format!(
                "{name}: its recorder was killed before the program was recorded; remove it and record again"
            )));
        };
        let ended = alive(&program);
        let attach_pages = match program.attached && ended.is_some() {
            true => attach_pages_to(dir.path(), program.pid)?,
            false => Vec::new(),
        };
        // A recorder that has attached to the program since has taken the rings away.
        let ended = ended.filter(|_| !program.attached || !attach_pages.is_empty());
        let files = Files::open(&dir).map_err(|error| {
            let name = trace.path().display();
            match error {
                TraceError::Damaged { .. } => TraceError::Usage(format!(
                    "{error}: it cannot be gone on with; `undertick record --finish {name}` keeps what is in the trace"
                )),
                other => other,
            }
        })?;
        let session = Session::reopen(dir, files, attach_pages, &manifest.recorder, clock)?;
        Ok(Self {
            session,
            program,
            ended,
        })
    }
}

/// The process, if it is still the one that was recorded.
pub(crate) fn alive(program: &Program) -> Option<OwnedFd> {
    let process = pidfd_open(Pid::from_raw(program.pid)?, PidfdFlags::empty()).ok()?;
    (started(program.pid) == Some(program.started)).then_some(process)
}

/// The attach pages of a program that lead to a session.
pub(crate) fn attach_pages_to(dir: &Path, pid: i32) -> Result<Vec<AttachPage>, TraceError> {
    let place = dir.parent().unwrap_or(dir);
    let (_, attach_pages) = attach_page::Program::find(pid, place)?;
    Ok((attach_pages.into_iter())
        .filter_map(|mut attach_page| attach_page.reenter(dir).then_some(attach_page))
        .collect())
}
