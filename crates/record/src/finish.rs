//! Finishes a trace whose recorder did not: it was killed, or the disk was full. The events become
//! Parquet, as do those of a complete trace that has raw blocks.
//!
//! **Method.** The trace is finalized ([`finalize`]), and its raw blocks are turned into Parquet. If the session of
//! the recording still exists, and is the trace's own (by name, owner, inode and a secret in
//! both), the rings are drained first, as far as they are undamaged. Then the session's directory
//! is removed, and a program that still runs is recorded no more. A session that is not the
//! trace's own is left alone.
//!
//! This must be requested explicitly: reading a trace writes nothing.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use undertick_clock::ClockId;
use undertick_format::TraceError;
use undertick_format::files::RAW_FILE;
use undertick_format::identity::ClockIdentity;
use undertick_format::manifest::{Exit, Manifest, Part};
use undertick_format::read::{Trace, read_manifest};

use crate::accounts;
use crate::damaged_session::Damaged;
use crate::description::flight;
use crate::finalize;
use crate::output::write_manifest;
use crate::recording_loop::{Ended, RecordingLoop};
use crate::request::RecordingProgress;
use crate::resume::{alive, attach_pages_to, clock_named, exclusive, unfinished};
use crate::session::{Files, Session, SessionDir};
use crate::session_identity::{self, NotTaken};
use crate::trace_dir::TraceDir;

/// Finishes a trace; `progress` receives the share done, 0 to 1.
///
/// # Errors
/// It is finished already and has no raw blocks, its recorder still runs, or the disk refuses; in
/// the last case it can be tried again.
pub fn finish(path: &Path, progress: &mut dyn FnMut(f64)) -> Result<Manifest, TraceError> {
    let trace = TraceDir::open(path)?;
    if has_raw_blocks(&read_manifest(path)?) {
        return encode_blocks(&trace, progress);
    }
    let (mut manifest, lock) = unfinished(&trace)?;
    let warning = match session_identity::take(&trace, &manifest) {
        Ok(dir) => {
            let manifest = take_over(&trace, manifest, dir, lock, progress)?;
            return Ok(match has_raw_blocks(&manifest) {
                true => encode_blocks(&trace, progress)
                    .unwrap_or_else(|error| with_raw_blocks(manifest, &error)),
                false => manifest,
            });
        }
        Err(NotTaken::Held) => return Err(NotTaken::Held.error(path)),
        Err(NotTaken::Over) => None,
        Err(NotTaken::Gone) => Some(
            "the recorder ended before the program did, and its rings are gone: what they still held is missing, and not counted".to_owned(),
        ),
        Err(NotTaken::Copy { original, .. }) => Some(format!(
            "this trace is a copy of {}: what its rings hold is not in it, and not counted",
            original.display()
        )),
        Err(NotTaken::NotOurs(why)) => Some(format!(
            "the session directory that the trace names is not its own ({why}) and was left alone: what the rings of the recording still held is missing, and not counted"
        )),
    };
    manifest.warnings.extend(warning);
    from_blocks(&trace, &mut manifest, progress)?;
    if has_raw_blocks(&manifest) {
        let before = manifest.clone();
        if let Err(error) = finalize::encode(&trace, &mut manifest, progress) {
            manifest = with_raw_blocks(before, &error);
        }
    }
    drop(lock);
    Ok(manifest)
}

/// The manifest of a trace that is complete, but could not be stored as Parquet.
fn with_raw_blocks(manifest: Manifest, error: &TraceError) -> Manifest {
    let mut manifest = manifest;
    manifest.warnings.push(format!(
        "the trace is complete with raw blocks, which could not be turned into Parquet: {error}"
    ));
    manifest
}

fn has_raw_blocks(manifest: &Manifest) -> bool {
    manifest.parts.iter().any(Part::has_raw_blocks)
}

/// Turns the raw blocks of a complete trace into Parquet, which other tools can read.
fn encode_blocks(trace: &TraceDir, progress: &mut dyn FnMut(f64)) -> Result<Manifest, TraceError> {
    let lock = exclusive(trace)?;
    // Another process may have done so before the lock was free; its checksums are checked.
    let mut manifest = Trace::open(trace.path())?.manifest;
    if has_raw_blocks(&manifest) {
        finalize::encode(trace, &mut manifest, progress)?;
    }
    drop(lock);
    Ok(manifest)
}

/// Changes the manifest of a complete trace, while no other process turns its raw blocks into
/// Parquet; returns the new one. Where the file system has no locks it is changed without one.
///
/// # Errors
/// Another process has the lock for longer than some seconds, there is no such trace, or the disk
/// refuses.
pub fn change_manifest(
    path: &Path,
    change: impl FnOnce(&mut Manifest),
) -> Result<Manifest, TraceError> {
    let trace = TraceDir::open(path)?;
    let raw = trace.read_if_there(RAW_FILE)?;
    let begun = Instant::now();
    while let Some(raw) = &raw
        && rustix::fs::flock(raw, FlockOperation::NonBlockingLockExclusive)
            == Err(Errno::WOULDBLOCK)
    {
        if begun.elapsed() > LONGEST_LOCK {
            return Err(TraceError::Recording(format!(
                "{}: another process has locked its raw blocks",
                path.display()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut manifest = read_manifest(path)?;
    change(&mut manifest);
    write_manifest(&trace, &manifest)?;
    Ok(manifest)
}

/// How long another process may hold the lock: to turn 10^8 events into Parquet takes 3 s.
const LONGEST_LOCK: Duration = Duration::from_secs(30);

/// Drains the rings of a session that was taken over, and ends it.
fn take_over(
    trace: &TraceDir,
    manifest: Manifest,
    dir: SessionDir,
    lock: File,
    progress: &mut dyn FnMut(f64),
) -> Result<Manifest, TraceError> {
    let clock = clock_named(trace.path(), &manifest)?;
    // The disk had no room for the recorder's last manifest.
    let kept = session_identity::kept_manifest(&dir);
    let is_drained = kept.is_some();
    let mut manifest = kept.unwrap_or(manifest);
    let program = accounts::read(trace).program;
    let lives = program.as_ref().and_then(alive);
    let attach_pages = match &program {
        Some(program) if program.attached && lives.is_some() => {
            attach_pages_to(dir.path(), program.pid).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let ended = Ended {
        exit: manifest.exit,
        duration_ns: manifest.duration_ns,
        is_same_clock: is_same_clock(&manifest, clock),
    };
    let files = match Files::open(&dir) {
        Ok(files) => files,
        Err(damage @ TraceError::Damaged { .. }) => {
            let left = Damaged::new(dir, attach_pages);
            if !left.let_go() && lives.is_some() {
                return Err(TraceError::Recording(format!(
                    "{damage}, and the recorded program still runs, which nobody can tell to stop recording: end it first"
                )));
            }
            if !is_drained {
                manifest.warnings.push(format!(
                    "{damage}: what the rings of the recording still held is missing, and not counted"
                ));
            }
            from_what_is_left(trace, &mut manifest, &left, progress)?;
            left.remove();
            return Ok(manifest);
        }
        Err(other) => return Err(other),
    };
    let session = Session::reopen(dir, files, attach_pages, &manifest.recorder, clock)?;
    let mut recording = RecordingLoop::again(trace.clone(), session, manifest, clock, lock)?;
    recording.search_orphans(lives.is_none());
    recording.end_as(ended);
    let exit = ended.exit.unwrap_or(Exit {
        status: None,
        signal: None,
        interrupted: false,
    });
    recording.finish(exit, &mut |state| {
        if let RecordingProgress::Finalizing(share) = state {
            progress(share);
        }
    })
}

/// Finishes from what is in the trace, and what a damaged session still knows.
fn from_what_is_left(
    trace: &TraceDir,
    manifest: &mut Manifest,
    left: &Damaged,
    progress: &mut dyn FnMut(f64),
) -> Result<(), TraceError> {
    let names = left.names();
    manifest.names = crate::names::merge_names(names.events, &manifest.names);
    if !names.threads.is_empty() {
        manifest.threads = names.threads;
    }
    if !names.locks.is_empty() {
        manifest.locks = crate::lock_names::found(&names.locks);
    }
    manifest.lost = manifest.lost.max(left.lost_no_ring());
    from_blocks(trace, manifest, progress)
}

fn is_same_clock(manifest: &Manifest, clock: ClockId) -> bool {
    let of_trace = manifest.hosts.first().map(|host| &host.clock);
    of_trace == Some(&ClockIdentity::here(clock))
}

/// Finishes only from what is in the trace.
fn from_blocks(
    trace: &TraceDir,
    manifest: &mut Manifest,
    progress: &mut dyn FnMut(f64),
) -> Result<(), TraceError> {
    let accounts = accounts::read(trace);
    if manifest.rings.is_empty() {
        let (rings, sampled): (Vec<_>, Vec<_>) = (accounts.ended.into_values())
            .map(|ended| (ended.ring, ended.sampled))
            .unzip();
        manifest.rings = rings;
        manifest.sampled = sampled.into_iter().flatten().collect();
    }
    if manifest.recorder.overflow == "overwrite" && manifest.flight.is_none() {
        flight(manifest, accounts.given_up, None);
    }
    manifest.session = None;
    manifest.session_identity = None;
    finalize::finish(trace, manifest, progress)
}
