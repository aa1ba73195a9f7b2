//! Runs a process to its end, with a limit, and keeps what it printed.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    set_parent_process_death_signal, waitid,
};
use undertick_format::input::{self, Kind};

/// How often to look whether it has hung or was stopped; its end is seen at once.
const EVERY: Duration = Duration::from_millis(50);
/// Number of last lines that are shown of what a failed program printed.
const LAST_LINES: usize = 3;
/// Characters of a line that are shown.
const LONGEST_LINE: usize = 200;

/// A process to run.
pub(super) struct Child<'a> {
    pub(super) command: &'a [OsString],
    /// Further arguments.
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Option<(&'static str, PathBuf)>,
    /// Its output goes to files that begin with this.
    pub(super) files: &'a Path,
    pub(super) limit: Duration,
    pub(super) stop: &'a AtomicBool,
}

/// How it ended.
pub(super) struct Ended {
    status: ExitStatus,
    pub(super) took: Duration,
    /// The user stopped it.
    pub(super) stopped: bool,
    has_hung: Option<Duration>,
    printed: [PathBuf; 2],
}

/// Runs it; it and its children are gone afterwards, but for those that left its process group.
pub(super) fn run(child: &Child<'_>) -> Result<Ended, String> {
    let printed = ["out", "err"].map(|ending| child.files.with_extension(ending));
    let file = |path: &PathBuf| {
        File::create(path).map_err(|e| format!("{}: cannot write: {e}", path.display()))
    };
    let program = child.command.first().cloned().unwrap_or_default();
    let mut command = Command::new(&program);
    command
        .args(child.command.iter().skip(1))
        .args(&child.arguments)
        .stdin(Stdio::null())
        .stdout(file(&printed[0])?)
        .stderr(file(&printed[1])?)
        // So that what it starts can be ended with it, and Ctrl-C is for us.
        .process_group(0);
    if let Some((name, value)) = &child.environment {
        command.env(name, value);
    }
    // SAFETY: a system call that takes no memory, between fork and exec.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    let begun = Instant::now();
    let mut running = command
        .spawn()
        .map_err(|e| format!("{}: cannot start: {e}", program.to_string_lossy()))?;
    let pid = Pid::from_child(&running);
    // Without one (before Linux 5.3) its end is seen some milliseconds late.
    let fd = pidfd_open(pid, PidfdFlags::empty()).ok();
    let has_ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let (mut stopped, mut has_hung) = (false, None);
    let took = loop {
        match &fd {
            Some(fd) => {
                let mut fds = [PollFd::new(fd, PollFlags::IN)];
                let wait = Timespec::try_from(EVERY).ok();
                let _ = poll(&mut fds, wait.as_ref());
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
        let took = begun.elapsed();
        if !matches!(waitid(WaitId::Pid(pid), has_ended), Ok(None)) {
            break took;
        }
        stopped = child.stop.load(Ordering::Relaxed);
        has_hung = (took > child.limit).then_some(child.limit);
        if stopped || has_hung.is_some() {
            break took;
        }
    };
    // What it left behind would run beside the next one. It has not been waited for yet, so no other
    // group has this number.
    let _ = kill_process_group(pid, Signal::KILL);
    let status = running
        .wait()
        .map_err(|e| format!("{}: {e}", program.to_string_lossy()))?;
    Ok(Ended {
        status,
        took,
        stopped,
        has_hung,
        printed,
    })
}

impl Ended {
    pub(super) fn is_success(&self) -> bool {
        self.status.success()
    }

    /// Its exit status; `None`: a signal ended it.
    pub(super) fn status(&self) -> Option<i32> {
        self.status.code()
    }

    /// Whether a signal ended it, ours or another.
    pub(super) fn was_killed(&self) -> bool {
        self.status.code().is_none()
    }

    /// How it ended, after "it".
    pub(super) fn how(&self) -> String {
        match (self.has_hung, self.status.code(), self.status.signal()) {
            (Some(limit), ..) => {
                format!(
                    "had not ended after {:.0} s, and was killed",
                    limit.as_secs_f64()
                )
            }
            (None, Some(status), _) => format!("ended with status {status}"),
            (None, None, Some(signal)) => format!("was ended by signal {signal}"),
            _ => "did not end".to_owned(),
        }
    }

    /// What it printed on standard output.
    pub(super) fn output(&self) -> String {
        text(&self.printed[0])
    }

    /// What it printed last, in a sentence without its end.
    pub(super) fn last(&self) -> String {
        let printed = self.printed.each_ref().map(|path| text(path));
        let lines: Vec<&str> = (printed.iter().rev())
            .map(|text| text.lines().filter(|line| !line.trim().is_empty()))
            .map(|lines| lines.collect::<Vec<_>>())
            .find(|lines| !lines.is_empty())
            .unwrap_or_default();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        match last.is_empty() {
            true => "it printed nothing".to_owned(),
            false => {
                let short = |line: &&str| line.chars().take(LONGEST_LINE).collect::<String>();
                let last: Vec<String> = last.iter().map(short).collect();
                format!("it printed last: {}", last.join(" / "))
            }
        }
    }
}

/// The text of a file, as far as it is one; empty where it cannot be read.
fn text(path: &Path) -> String {
    let bytes = input::bytes(path, Kind::DOCUMENT).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
