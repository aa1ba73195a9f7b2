//! `undertick record --runs`: records the same command several times, each run as a trace in one
//! directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use undertick_format::manifest::Exit;
use undertick_record::record::With;

use crate::Failure;
use crate::options::Recording;
use crate::progress::Progress;
use crate::recording::{free_name, is_there, perform, prepare, status, summary};

/// Directories of the runs that were cut short, and of the runs whose program failed. They are not
/// part of the set.
const INTERRUPTED: &str = "interrupted";
const FAILED: &str = "failed";

/// Exit status of a set that was stopped between two runs.
const STOPPED: u8 = 130;
/// Period of the checks whether to stop waiting.
const LOOK: Duration = Duration::from_millis(50);

/// Records the command `wanted` times, in a fresh process each, which begins at least `apart` after
/// the previous one.
///
/// Ends early at Ctrl-C, and when the program fails, with its status; the recorded runs remain.
pub fn run(arguments: &Recording, wanted: u64, apart: Duration) -> Result<u8, Failure> {
    if arguments.pid.is_some() || arguments.card.is_some() {
        return Err(Failure::usage(
            "--runs starts the program anew each time, so it goes with a command, not with --pid or --card",
        ));
    }
    if !arguments.trigger.is_empty() {
        return Err(Failure::usage(
            "--trigger keeps what was slow, which is no run like the others: leave out --runs",
        ));
    }
    is_there(&arguments.command[0])?; // before anything is made
    let dir =
        (arguments.output.clone()).unwrap_or_else(|| free_name(&arguments.command[0], "runs"));
    fs::create_dir(&dir).map_err(|e| {
        Failure::usage(format!(
            "{}: cannot make the directory of the runs: {e}; give another with -o",
            dir.display()
        ))
    })?;
    let mut next = Instant::now();
    for run in 1..=wanted {
        if !wait_until(next, &format!("run {run} of {wanted}")) {
            say_set(&dir, run - 1);
            return Ok(STOPPED);
        }
        next = Instant::now() + apart;
        let name = format!("{run:04}.ut");
        let trace = dir.join(&name);
        let recording = Recording {
            output: Some(trace.clone()),
            ..arguments.clone()
        };
        let prepared = prepare(recording)?;
        let mut progress = Progress::new();
        progress.count(format!("run {run} of {wanted}"));
        let ended = perform(prepared, With::default(), &mut |update| {
            progress.update(update)
        });
        progress.done();
        let manifest = ended?.manifest;
        summary(&trace, &manifest);
        let below = match manifest.exit {
            Some(Exit {
                interrupted: true, ..
            }) => INTERRUPTED,
            exit if status(exit) != 0 => FAILED,
            _ => continue,
        };
        let kept = set_aside(&dir, below, &name)?;
        alert!(
            "undertick: run {run} of {wanted} was {below} and is no part of the set: {}",
            kept.display()
        );
        say_set(&dir, run - 1);
        return Ok(match status(manifest.exit) {
            0 => 1,
            status => status,
        });
    }
    say_set(&dir, wanted);
    Ok(0)
}

/// Waits for the next run; returns false if the set was stopped.
fn wait_until(moment: Instant, what: &str) -> bool {
    if moment <= Instant::now() {
        return true;
    }
    // The handlers exist only here, because a recording installs others.
    let stop = Arc::new(AtomicBool::new(false));
    let handlers: Vec<_> = [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter_map(|signal| signal_hook::flag::register(signal, Arc::clone(&stop)).ok())
        .collect();
    let mut progress = Progress::new();
    while let Some(left) = moment.checked_duration_since(Instant::now())
        && !left.is_zero()
        && !stop.load(Ordering::Relaxed)
    {
        progress.count(format!(
            "{what} begins in {:.0} s (--apart)",
            left.as_secs_f64().ceil()
        ));
        thread::sleep(LOOK.min(left));
    }
    progress.done();
    for handler in handlers {
        signal_hook::low_level::unregister(handler);
    }
    !stop.load(Ordering::Relaxed)
}

/// Moves a run out of the set.
fn set_aside(dir: &Path, below: &str, name: &str) -> Result<PathBuf, Failure> {
    let to = dir.join(below).join(name);
    fs::create_dir_all(dir.join(below))
        .and_then(|()| fs::rename(dir.join(name), &to))
        .map_err(|e| Failure::machine(format!("{}: {e}", to.display())))?;
    Ok(to)
}

fn say_set(dir: &Path, runs: u64) {
    let dir = dir.display();
    match runs {
        0 => alert!("undertick: no run is complete in {dir}"),
        1 => say!("undertick: 1 run in {dir}: undertick report {dir}"),
        runs => say!("undertick: {runs} runs in {dir}: undertick report {dir}"),
    }
}
