//! Measures the benchmarks of one program, process by process, until their means are known well enough.
//!
//! **Method.** Each process gives one number of each benchmark, and these are the samples: how memory was
//! placed and which core was used are the same for all measurements within a process. The mean's confidence
//! interval comes from the scatter between processes. Whether it is narrow enough is asked after a few numbers
//! of processes that are fixed beforehand ([`Looks`]).
//!
//! **Caveats.** To end when an interval is narrow prefers narrow ones: of simulated runs with normal scatter,
//! 93 to 95 % of the intervals at 95 % hold the truth. What another build, another machine or another hour
//! would give is not in the interval: compare two programs in turn ([`crate::compare::compare_suites`]), not
//! two results of this.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use undertick_document::Warning;
use undertick_estimate::{Looks, MOST_RUNS, Numbers};
use undertick_experiment::ExperimentError;
use undertick_report::benchmarks::{
    BenchmarkRun, BenchmarkRuns, Benchmarks, KIND, KIND_OF_RUNS, SCHEMA_VERSION,
};
use undertick_report::compare::SequentialEnd;

use super::{How, Program, Round, Runner, is_of, unix_s};
use crate::survey::machine;

/// With fewer processes nothing can be said.
const FEWEST: usize = 2;

/// What to measure and how.
#[derive(Clone, Debug)]
pub struct Alone {
    /// The program.
    pub program: Program,
    /// Where each process' figures are kept: `0001.json` and so on, a set of runs for a comparison.
    pub dir: Option<PathBuf>,
    /// About how long a benchmark is measured in a process.
    pub each: Duration,
    /// Most processes; `None`: as many as fit into the time.
    pub runs: Option<usize>,
    /// No process is begun that would probably end later.
    pub time: Duration,
    /// When a process has hung.
    pub limit: Duration,
    /// Names of the benchmarks that are wanted, with `*` and `?`; all if empty.
    pub only: Vec<String>,
    /// Level of the intervals.
    pub level: f64,
    /// A mean is known well enough when half of its interval is at most this share of it.
    pub within: f64,
}

/// Progress for the user.
#[derive(Clone, Debug, PartialEq)]
pub enum AloneProgress {
    /// Share of the work done, if it does not end earlier, 0 to 1.
    Share(f64),
    /// A benchmark does not run: which, and why.
    Failed(String, String),
    /// Something else that the user should know.
    Remark(String),
}

/// Runs the program until the mean of each benchmark is known well enough, or the time is over.
///
/// # Errors
/// The program measures nothing, or a directory cannot be written.
pub fn measure(
    wanted: &Alone,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(AloneProgress),
) -> Result<BenchmarkRuns, ExperimentError> {
    let scratch = tempfile::tempdir()
        .map_err(|e| ExperimentError::machine(format!("no temporary directory: {e}")))?;
    let files = scratch.path().join("process");
    let how = How {
        each: wanted.each,
        only: None,
        files: &files,
        limit: wanted.limit,
        stop,
    };
    let looks = Looks::new(wanted.runs.unwrap_or(MOST_RUNS).max(FEWEST));
    let mut measuring = Measuring {
        wanted,
        runner: Runner::new(&wanted.program),
        samples: Vec::new(),
        runs: 0,
        warnings: Vec::new(),
    };
    if !wanted.only.is_empty() {
        measuring.choose(&how)?;
    }
    let (begun, begun_unix_s) = (Instant::now(), unix_s());
    let mut longest = Duration::ZERO;
    let end = loop {
        let runs = measuring.runs;
        if stop.load(Ordering::Relaxed) {
            break SequentialEnd::Interrupted;
        }
        if runs >= looks.most() {
            break SequentialEnd::Rounds;
        }
        if runs >= FEWEST && begun.elapsed() + longest > wanted.time {
            break SequentialEnd::Time;
        }
        let run_begun = Instant::now();
        match measuring.run(&how, progress) {
            Ok(true) => {}
            Ok(false) => break SequentialEnd::Interrupted,
            Err(error) if runs >= FEWEST => {
                measuring.warn("ended_early", error.text);
                break SequentialEnd::Failed;
            }
            Err(error) => return Err(error),
        }
        let took = run_begun.elapsed();
        let runs = measuring.runs;
        // The first run has files to read and failures to find that no other has.
        longest = if runs == FEWEST {
            took
        } else {
            longest.max(took)
        };
        if runs < looks.most() && looks.is_due(runs) && measuring.is_known() {
            break SequentialEnd::Decided;
        }
        let of_time = begun.elapsed().as_secs_f64() / wanted.time.as_secs_f64().max(1e-9);
        let of_runs = runs as f64 / looks.most() as f64;
        progress(AloneProgress::Share(of_time.max(of_runs).min(1.0)));
    };
    measuring.result(end, begun_unix_s, begun.elapsed())
}

struct Measuring<'a> {
    wanted: &'a Alone,
    runner: Runner<'a>,
    /// By benchmark, in the order of the program: what each process said, ns.
    samples: Vec<(String, Vec<f64>)>,
    runs: usize,
    warnings: Vec<Warning>,
}

impl Measuring<'_> {
    fn error(&self, why: &str) -> ExperimentError {
        let program = &self.wanted.program;
        let name = program.command.first().map(|word| word.to_string_lossy());
        ExperimentError::input(format!(
            "{} ({}): {why}",
            name.unwrap_or_default(),
            program.harness.name()
        ))
    }

    fn warn(&mut self, code: &str, text: String) {
        self.warnings.push(Warning {
            code: code.to_owned(),
            text,
        });
    }

    /// Runs each benchmark by itself from now on; false if the user stopped it.
    fn choose(&mut self, how: &How<'_>) -> Result<bool, ExperimentError> {
        let chosen = self.runner.choose(how, &self.wanted.only);
        chosen.map_err(|why| self.error(&why))
    }

    /// One process, or one for each benchmark; false if the user stopped it.
    fn run(
        &mut self,
        how: &How<'_>,
        progress: &mut dyn FnMut(AloneProgress),
    ) -> Result<bool, ExperimentError> {
        let (begun, begun_unix_s) = (Instant::now(), unix_s());
        let (benchmarks, failed, remark) = loop {
            match self.runner.round(how) {
                Ok(Round::Measured {
                    benchmarks,
                    failed,
                    remark,
                }) => break (benchmarks, failed, remark),
                Ok(Round::Stopped) => return Ok(false),
                Ok(Round::Again) => {
                    if !self.choose(how)? {
                        return Ok(false);
                    }
                }
                Err(why) => return Err(self.error(&why)),
            }
        };
        if let Some(how) = remark {
            let text = format!("it {how}; its measurements are used");
            progress(AloneProgress::Remark(text.clone()));
            self.warn("benchmark_status", text);
        }
        for (name, why) in failed {
            progress(AloneProgress::Failed(name.clone(), why.clone()));
            self.warn("benchmark_failed", format!("{name} failed: {why}"));
        }
        let failed: Vec<String> = self
            .runner
            .failed
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        self.runner.leave_out(failed.iter());
        if let Some(dir) = &self.wanted.dir {
            let document = Benchmarks {
                schema_version: SCHEMA_VERSION,
                kind: KIND.to_owned(),
                harness: self.wanted.program.harness,
                command: self.command(),
                host: machine(),
                begun_unix_s,
                took_s: begun.elapsed().as_secs_f64(),
                benchmarks: benchmarks.clone(),
            };
            std::fs::create_dir_all(dir)
                .map_err(|e| ExperimentError::input(format!("{}: {e}", dir.display())))?;
            let path = dir.join(format!("{:04}.json", self.runs + 1));
            let text = serde_json::to_string_pretty(&document).unwrap_or_default();
            std::fs::write(&path, text + "\n")
                .map_err(|e| ExperimentError::machine(format!("{}: {e}", path.display())))?;
        }
        self.runs += 1;
        for of in &benchmarks {
            match self.samples.iter_mut().find(|(name, _)| *name == of.name) {
                Some((_, values)) => values.push(of.time_ns),
                None => self.samples.push((of.name.clone(), vec![of.time_ns])),
            }
        }
        Ok(true)
    }

    fn command(&self) -> Vec<String> {
        let words = self.wanted.program.command.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// Whether the mean of each benchmark is known well enough.
    fn is_known(&self) -> bool {
        let is_narrow = |values: &[f64]| {
            let mean = Numbers::new(values.to_vec()).mean(self.wanted.level)?;
            let (lo, hi) = mean.interval.lo.zip(mean.interval.hi)?;
            Some((hi - lo) / 2.0 <= self.wanted.within * mean.value.abs())
        };
        self.measured()
            .all(|(_, values)| is_narrow(values).unwrap_or(false))
    }

    /// The benchmarks that never failed.
    fn measured(&self) -> impl Iterator<Item = &(String, Vec<f64>)> {
        let harness = self.wanted.program.harness;
        let has_failed = move |name: &str| {
            (self.runner.failed.iter()).any(|(failed, _)| is_of(harness, name, failed))
        };
        (self.samples.iter()).filter(move |(name, _)| !has_failed(name))
    }

    fn result(
        self,
        end: SequentialEnd,
        begun_unix_s: f64,
        took: Duration,
    ) -> Result<BenchmarkRuns, ExperimentError> {
        if self.runs < FEWEST {
            return Err(ExperimentError::machine(
                "stopped before two processes had ended: nothing can be said",
            ));
        }
        let benchmarks = self.measured().filter_map(|(name, values)| {
            let mean = Numbers::new(values.clone()).mean(self.wanted.level)?;
            Some(BenchmarkRun {
                name: name.clone(),
                mean: undertick_units::Estimate {
                    unit: "ns".to_owned(),
                    method: "mean over processes".to_owned(),
                    ..mean
                },
                min_ns: values.iter().copied().fold(f64::INFINITY, f64::min),
                max_ns: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            })
        });
        let benchmarks: Vec<BenchmarkRun> = benchmarks.collect();
        if benchmarks.is_empty() {
            return Err(
                self.error("each of its benchmarks failed in some process: nothing is left")
            );
        }
        Ok(BenchmarkRuns {
            schema_version: SCHEMA_VERSION,
            kind: KIND_OF_RUNS.to_owned(),
            harness: self.wanted.program.harness,
            command: self.command(),
            host: machine(),
            begun_unix_s,
            took_s: took.as_secs_f64(),
            runs: self.runs as u64,
            end,
            within: self.wanted.within,
            benchmarks,
            warnings: self.warnings,
        })
    }
}
