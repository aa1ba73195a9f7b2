//! Runs benchmark programs that were written for other tools, as they are, and reads what they
//! measured.
//!
//! **Method.** A program is started with its own tool's options, for a short time, and what the tool
//! writes for machines is read. The tool's loop times many iterations between two readings of the
//! clock, so what a reading costs does not matter. The figure of a process is the median of its
//! measurements of a benchmark, because some of them may have been interrupted. It is one sample: how
//! memory was placed and which core it ran on are the same for all measurements of a process.
//!
//! **Caveats.** What a tool leaves out, or adds to an iteration, is left out or added here.

mod alone;
mod criterion;
mod go;
mod google;
mod libtest;
mod process;
mod pytest;
mod recognize;
mod runner;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use undertick_report::benchmarks::{Benchmark, Harness};

pub use alone::{Alone, AloneProgress, measure};
use process::{Child, run};
pub(crate) use recognize::found;
pub(crate) use runner::{Round, Runner};

/// Most benchmarks of a program.
const MOST: usize = 16_384;

/// A benchmark program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The tool that it was written for.
    pub harness: Harness,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// How to run it once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How<'a> {
    /// About how long each benchmark is to be measured, where the tool can be told.
    pub(crate) each: Duration,
    /// This benchmark alone; `None`: all.
    pub(crate) only: Option<&'a str>,
    /// Files that the process leaves: they begin with this.
    pub(crate) files: &'a Path,
    /// When it has hung.
    pub(crate) limit: Duration,
    /// Whether the user stopped it.
    pub(crate) stop: &'a AtomicBool,
}

/// What a process said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {
    /// In the order of the program, each name once.
    pub(crate) benchmarks: Vec<Benchmark>,
    /// Benchmarks that the tool says failed, and why.
    pub(crate) failed: Vec<(String, String)>,
    /// The program failed, and the tool does not say in which benchmark.
    pub(crate) remark: Option<String>,
}

/// Why a process said nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Silent {
    /// The user stopped it.
    Stopped,
    /// What went wrong, in words.
    Failed(String),
}

impl Program {
    /// A benchmark program; `harness`: what it was written for, where the user knows.
    ///
    /// # Errors
    /// It is no program, or it is not seen what it was written for.
    pub fn new(command: Vec<OsString>, harness: Option<Harness>) -> Result<Self, String> {
        let harness = match harness {
            Some(harness) => harness,
            None => recognize::harness(&command)?,
        };
        Ok(Self { harness, command })
    }

    /// Runs it once.
    pub(crate) fn run(&self, how: &How<'_>) -> Result<Said, Silent> {
        let out = how.files.with_extension("json");
        let dir = how.files.with_extension("criterion");
        // What an earlier process left is not of this one.
        let _ = std::fs::remove_file(&out);
        let _ = std::fs::remove_dir_all(&dir);
        let (arguments, environment) = match self.harness {
            Harness::Google => (google::arguments(how, &out), None),
            Harness::Criterion => {
                let home = ("CRITERION_HOME", dir.clone());
                (criterion::arguments(how), Some(home))
            }
            Harness::Go => (go::arguments(how), None),
            // What is running when it crashes is said before it runs.
            Harness::Pytest => {
                let at_once = ("PYTHONUNBUFFERED", PathBuf::from("1"));
                (pytest::arguments(how, &out), Some(at_once))
            }
            Harness::Libtest => (libtest::arguments(how), None),
            Harness::Command => (Vec::new(), None),
        };
        let ended = run(&self.child(arguments, environment, how)).map_err(Silent::Failed)?;
        if ended.stopped {
            return Err(Silent::Stopped);
        }
        let said = match self.harness {
            Harness::Google => google::read(&out),
            Harness::Criterion => criterion::read(&dir),
            Harness::Go => go::read(&ended.output()),
            Harness::Pytest => pytest::read(&out),
            Harness::Libtest => libtest::read(&ended.output()),
            Harness::Command => Ok(self.whole(ended.took)),
        };
        // A program may fail in one benchmark, say so, and measure the others. If it ends in the middle,
        // those after it are missing.
        let is_usable = ended.is_success()
            || match self.harness {
                Harness::Google => !ended.was_killed(),
                Harness::Go => {
                    ended.status() == Some(1)
                        && said.as_ref().is_ok_and(|said| !said.failed.is_empty())
                }
                // Some tests failed, and all were run.
                Harness::Pytest => ended.status() == Some(1),
                Harness::Criterion | Harness::Libtest | Harness::Command => false,
            };
        if said.as_ref().is_ok_and(|said| said.benchmarks.len() > MOST) {
            return Err(Silent::Failed(too_many()));
        }
        match said {
            Ok(said) if is_usable && !said.benchmarks.is_empty() => Ok(Said {
                remark: (said.failed.is_empty() && !ended.is_success())
                    .then(|| format!("{}; {}", ended.how(), ended.last())),
                ..said
            }),
            Ok(said) => Err(Silent::Failed(match said.failed.first() {
                Some((_, why)) if how.only.is_some() => why.clone(),
                Some((name, why)) if said.benchmarks.is_empty() => format!("{name}: {why}"),
                _ if ended.is_success() => {
                    format!("it measured nothing; {}", ended.last())
                }
                _ => format!("it {}; {}", ended.how(), ended.last()),
            })),
            Err(_)
                if ended.is_success()
                    && matches!(self.harness, Harness::Google | Harness::Pytest)
                    && !out.exists() =>
            {
                Err(Silent::Failed(format!(
                    "it wrote no measurements; is it a program of {}?",
                    self.harness.name()
                )))
            }
            Err(why) if ended.is_success() => Err(Silent::Failed(why)),
            Err(_) => Err(Silent::Failed(format!(
                "it {}; {}",
                ended.how(),
                ended.last()
            ))),
        }
    }

    /// The names of its benchmarks, so that each can be run by itself; empty where it cannot.
    pub(crate) fn list(&self, how: &How<'_>) -> Result<Vec<String>, Silent> {
        let arguments = match self.harness {
            Harness::Google => google::LIST,
            Harness::Criterion => criterion::LIST,
            Harness::Go => go::LIST,
            Harness::Libtest => libtest::LIST,
            Harness::Pytest | Harness::Command => return Ok(Vec::new()),
        };
        let arguments = arguments.iter().map(OsString::from).collect();
        let ended = run(&self.child(arguments, None, how)).map_err(Silent::Failed)?;
        if ended.stopped {
            return Err(Silent::Stopped);
        }
        let text = ended.output();
        let lines = text.lines().map(str::trim);
        let names: Vec<String> = match self.harness {
            Harness::Google => lines.map(str::to_owned).collect(),
            Harness::Go => go::listed(lines),
            _ => lines
                .filter_map(|line| Some(line.strip_suffix(": benchmark")?.to_owned()))
                .collect(),
        };
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        match names.is_empty() {
            true => Err(Silent::Failed(format!(
                "it {}; {}",
                ended.how(),
                ended.last()
            ))),
            false => Ok(names),
        }
    }

    fn child<'a>(
        &'a self,
        arguments: Vec<OsString>,
        environment: Option<(&'static str, PathBuf)>,
        how: &'a How<'a>,
    ) -> Child<'a> {
        Child {
            command: &self.command,
            arguments,
            environment,
            files: how.files,
            limit: how.limit,
            stop: how.stop,
        }
    }

    fn whole(&self, took: Duration) -> Said {
        let time_ns = took.as_secs_f64() * 1e9;
        Said {
            benchmarks: vec![Benchmark {
                // The two sides may be two files of different names.
                name: "elapsed".to_owned(),
                time_ns,
                iterations: 1,
            }],
            ..Said::default()
        }
    }
}

pub(crate) fn unix_s() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64())
}

fn too_many() -> String {
    format!("more than {MOST} benchmarks; choose some by the tool's own options")
}

/// Whether a benchmark is one that failed, or part of it. Go adds the number of CPUs to the names of those
/// that it measured, and the names of parts after a `/`.
pub(crate) fn is_of(harness: Harness, name: &str, failed: &str) -> bool {
    if harness != Harness::Go {
        return name == failed;
    }
    let (name, failed) = (go::without_cpus(name), go::without_cpus(failed));
    let part = name.strip_prefix(failed);
    part.is_some_and(|part| part.is_empty() || part.starts_with('/'))
}

/// Puts what was measured of each benchmark together, in the order of the names: `(name, ns of an
/// iteration, iterations)`.
fn middles(measured: impl IntoIterator<Item = (String, f64, u64)>) -> Vec<Benchmark> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut all: Vec<(String, Vec<f64>, u64)> = Vec::new();
    for (name, ns, iterations) in measured {
        if !ns.is_finite() {
            continue;
        }
        let place = *places.entry(name.clone()).or_insert_with(|| {
            all.push((name, Vec::new(), 0));
            all.len() - 1
        });
        let (_, values, sum) = &mut all[place];
        values.push(ns);
        *sum = sum.saturating_add(iterations);
    }
    (all.into_iter())
        .map(|(name, mut values, iterations)| {
            values.sort_by(f64::total_cmp);
            let half = values.len() / 2;
            let time_ns = match values.len() % 2 {
                0 => f64::midpoint(values[half - 1], values[half]),
                _ => values[half],
            };
            Benchmark {
                name,
                time_ns,
                iterations,
            }
        })
        .collect()
}

/// A name as a regular expression that matches nothing else.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests;
