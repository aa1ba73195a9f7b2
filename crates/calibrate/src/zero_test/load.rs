//! The load beside the experiment: none, replicas of the experiment itself (Kong et al. 1986), or
//! the commands of a file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde::Deserialize;
use undertick_clock::Source;

use super::measure;

/// Maximum number of replicas: each is a thread that never waits.
const MOST_REPLICAS: u32 = 1024;

/// The load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// No load.
    None,
    /// This many replicas of the measuring loop.
    Replicas(u32),
    /// The commands of a TOML file.
    Script(PathBuf),
}

/// Why a load could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct LoadError {
    text: String,
    /// Whether the input was wrong, rather than the machine unable.
    pub usage: bool,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Replicas(n) => write!(f, "self:{n}"),
            Self::Script(path) => write!(f, "{}", path.display()),
        }
    }
}

impl FromStr for Load {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        let usage = |text: String| LoadError { text, usage: true };
        if text == "none" {
            return Ok(Self::None);
        }
        if let Some(count) = text.strip_prefix("self:") {
            return match count.parse() {
                Ok(n) if (1..=MOST_REPLICAS).contains(&n) => Ok(Self::Replicas(n)),
                _ => Err(usage(format!(
                    "--load {text}: the number of replicas is 1 to {MOST_REPLICAS}, e.g. self:2"
                ))),
            };
        }
        if Path::new(text).extension().is_some_and(|e| e == "toml") {
            return Ok(Self::Script(text.into()));
        }
        Err(usage(format!(
            "--load {text}: none, self:N (N replicas of the measurement) or the name of a .toml file"
        )))
    }
}

/// The file: `[[process]]` with `command = ["stress-ng", "--vm", "1"]` and,
/// optionally, `copies = 2`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    process: Vec<Process>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Process {
    command: Vec<String>,
    #[serde(default = "one")]
    copies: u32,
}

fn one() -> u32 {
    1
}

impl Load {
    /// Starts the load; it ends when the returned value is dropped.
    pub(super) fn start(&self, clock: Source) -> Result<Running, LoadError> {
        let mut running = Running::default();
        match self {
            Self::None => {}
            Self::Replicas(n) => {
                for _ in 0..*n {
                    let stop = Arc::clone(&running.stop);
                    let thread = std::thread::Builder::new()
                        .name("replica".into())
                        .spawn(move || measure::replica(clock, &stop))
                        .map_err(|error| LoadError {
                            text: format!("replica of the measurement: {error}"),
                            usage: false,
                        })?;
                    running.threads.push(thread);
                }
            }
            Self::Script(path) => {
                let script = read(path)?;
                for process in &script.process {
                    for _ in 0..process.copies {
                        let child = spawn(path, process)?;
                        running
                            .children
                            .get_mut()
                            .expect("not shared")
                            .push((process.command.join(" "), child));
                    }
                }
            }
        }
        if *self != Self::None {
            // The start-up of the commands is not part of the load.
            std::thread::sleep(std::time::Duration::from_millis(300));
            running.check()?;
        }
        Ok(running)
    }
}

fn read(path: &Path) -> Result<Script, LoadError> {
    let usage = |text: String| LoadError { text, usage: true };
    let text = std::fs::read_to_string(path)
        .map_err(|error| usage(format!("{}: {error}", path.display())))?;
    let script: Script =
        toml::from_str(&text).map_err(|error| usage(format!("{}: {error}", path.display())))?;
    match script.process.iter().position(|p| p.command.is_empty()) {
        Some(i) => Err(usage(format!(
            "{}: process {} has an empty command",
            path.display(),
            i + 1
        ))),
        None => Ok(script),
    }
}

fn spawn(path: &Path, process: &Process) -> Result<Child, LoadError> {
    Command::new(&process.command[0])
        .args(&process.command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| LoadError {
            text: format!("{}: {}: {error}", path.display(), process.command[0]),
            usage: true,
        })
}

/// A running load.
#[derive(Debug, Default)]
pub(super) struct Running {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    children: Mutex<Vec<(String, Child)>>,
}

impl Running {
    /// Checks that every process of the load still runs.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let mut children = self
            .children
            .lock()
            .expect("nothing panics while it is held");
        for (command, child) in children.iter_mut() {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(LoadError {
                    text: format!(
                        "the load `{command}` ended ({status}) before the measurement did; give it more to do"
                    ),
                    usage: false,
                });
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let children = self.children.get_mut();
        for (_, child) in children.into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests;
