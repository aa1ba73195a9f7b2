//! The driver: the recorded process, which performs one repetition after the other, each in its own
//! process.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::placement::Cpus;
use super::runner;
use crate::counted_work;
use crate::script::{Plan, Verb};
use crate::{Cell, Ended, Experiment, ExperimentError, Numbering, Repetition};

/// Set by Ctrl-C, or by a request to end.
static STOPPED: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOPPED.store(true, Ordering::Relaxed);
}

/// Performs the experiment whose texts are in a file, and writes a line of JSON for each repetition
/// to another file.
///
/// # Errors
/// The files cannot be read or written.
pub fn run_repetitions(texts: &Path, results: &Path) -> Result<(), ExperimentError> {
    let file_error = |what: &Path, e: &dyn std::fmt::Display| {
        ExperimentError::machine(format!("{}: {e}", what.display()))
    };
    let text = std::fs::read_to_string(texts).map_err(|e| file_error(texts, &e))?;
    let parsed = serde_json::from_str(&text).map_err(|e| file_error(texts, &e))?;
    let experiment = Experiment::of_texts(parsed)
        .map_err(|(name, e)| ExperimentError::machine(format!("{name}:{e}")))?;
    let numbering =
        Numbering::new(&experiment).map_err(|e| ExperimentError::machine(e.to_string()))?;
    let cpus = Cpus::here()
        .map_err(|e| ExperimentError::machine(format!("the CPUs cannot be found out: {e}")))?;
    let mut results_file = File::create(results).map_err(|e| file_error(results, &e))?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic word.
        unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
    }
    // Determined once; processes that are forked later inherit it.
    if experiment
        .settings()
        .any(|(setting, _)| works(&setting.plan))
    {
        let _ = counted_work::turn_ns();
    }
    let mut lacking: Vec<usize> = Vec::new();
    for cell in experiment.order() {
        if STOPPED.load(Ordering::Relaxed) {
            break;
        }
        if lacking.contains(&cell.setting) {
            continue;
        }
        let repetition = in_a_process(&experiment, &numbering, &cpus, cell);
        if matches!(repetition.ended, Ended::Lacking(_)) {
            lacking.push(cell.setting);
        }
        let line = serde_json::to_string(&repetition).map_err(|e| file_error(results, &e))?;
        writeln!(results_file, "{line}").map_err(|e| file_error(results, &e))?;
    }
    Ok(())
}

/// Performs a repetition in its own process, and ends that process after its timeout.
fn in_a_process(
    experiment: &Experiment,
    numbering: &Numbering,
    cpus: &Cpus,
    cell: Cell,
) -> Repetition {
    let failed = |why: String| Repetition {
        ended: Ended::Failed(why),
        ..Repetition::new(cell)
    };
    let (mut reader, writer) = match pipe() {
        Ok(ends) => ends,
        Err(error) => return failed(format!("pipe: {error}")),
    };
    // SAFETY: this process has one thread.
    let pid = match unsafe { libc::fork() } {
        -1 => return failed(format!("fork: {}", std::io::Error::last_os_error())),
        0 => {
            // SAFETY: no memory is passed.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::setpgid(0, 0);
            }
            drop(reader);
            let repetition = runner::perform(experiment, numbering, cpus, cell);
            let text = serde_json::to_string(&repetition).unwrap_or_default();
            let _ = File::from(writer).write_all(text.as_bytes());
            // SAFETY: nothing of this process is to be run any more.
            unsafe { libc::_exit(0) }
        }
        pid => pid,
    };
    drop(writer);
    let plan = &experiment.setting(cell.setting).plan;
    let answer = answer(&mut reader, limit(plan));
    // SAFETY: signals to our own child and its group; it has not been waited for.
    unsafe {
        libc::kill(-pid, libc::SIGKILL);
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
    match answer {
        Some(text) => match serde_json::from_slice(&text) {
            Ok(repetition) => repetition,
            Err(_) => failed("it ended without a word".to_owned()),
        },
        None if STOPPED.load(Ordering::Relaxed) => failed("interrupted".to_owned()),
        None => Repetition {
            ended: Ended::TimedOut("it did not end when its time was over".to_owned()),
            ..failed(String::new())
        },
    }
}

fn works(plan: &Plan) -> bool {
    let mut steps = plan.processes.iter().flat_map(|p| &p.steps);
    steps.any(|step| matches!(step.verb, Verb::Work { .. }))
}

/// Maximum total duration of a repetition, including its setup.
fn limit(plan: &Plan) -> Duration {
    plan.timeout + Duration::from_secs(2)
}

/// Reads until the other end is closed; `None` if that takes too long.
fn answer(reader: &mut File, at_most: Duration) -> Option<Vec<u8>> {
    let deadline = Instant::now() + at_most;
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || STOPPED.load(Ordering::Relaxed) {
            return None;
        }
        let mut poll = libc::pollfd {
            fd: reader.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry that lives through the call.
        let ready = unsafe {
            libc::poll(
                &raw mut poll,
                1,
                left.as_millis().min(1000) as libc::c_int + 1,
            )
        };
        if ready <= 0 {
            continue;
        }
        match reader.read(&mut buffer) {
            Ok(0) => return Some(text),
            Ok(n) => text.extend_from_slice(&buffer[..n]),
            Err(_) => return Some(text),
        }
    }
}

fn pipe() -> std::io::Result<(File, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just made, and ours alone.
    Ok(unsafe { (File::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}
