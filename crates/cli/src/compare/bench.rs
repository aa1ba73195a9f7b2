//! `undertick compare --bench`: benchmark programs of other tools.

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use undertick_meter::benchmarks::Program;
use undertick_meter::compare::{self as comparing, Options, Suites, SuitesProgress};
use undertick_report::benchmarks::Harness;
use undertick_report::compare::SequentialEnd;

use super::{Compare, print, words};
use crate::Failure;
use crate::experiment::failure;
use crate::output;
use crate::progress::Progress;
use crate::sizes;

/// Default time of a comparison.
const TIME: Duration = Duration::from_secs(240);
/// Default share by which benchmarks may differ and count as alike.
const WITHIN: f64 = 0.02;

/// Options for benchmark programs.
#[derive(Args)]
#[command(next_help_heading = "Benchmarks of other tools")]
pub struct Bench {
    /// A and B are programs built from unchanged benchmark files of Google Benchmark, Criterion.rs, Go,
    /// pytest-benchmark or Rust's #[bench]. Run both in turn, at most --runs times; each process gives one
    /// sample of each benchmark. End when every benchmark is decided, or after --for [default: 4m; of
    /// --within: 0.02]
    #[arg(long)]
    pub bench: bool,
    /// The tool that the programs were written for, if it is not recognized
    #[arg(long, value_enum, value_name = "TOOL", requires = "bench")]
    harness: Option<Tool>,
    /// About how long to measure each benchmark in a process, where the tool has such an option
    #[arg(long, value_name = "TIME", value_parser = sizes::parse_time, default_value = "20ms", requires = "bench")]
    each: Duration,
    /// Kill a process that runs longer than TIME
    #[arg(long, value_name = "TIME", value_parser = sizes::parse_time, default_value = "5m", requires = "bench")]
    timeout: Duration,
    /// Chance that any benchmark is called different if none differs
    #[arg(long, value_name = "SHARE", value_parser = sizes::parse_fraction, default_value = "0.01", requires = "bench")]
    false_alarms: f64,
}

/// A tool by a short name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    /// Google Benchmark
    Google,
    /// Criterion.rs
    Criterion,
    /// Tests of Go, built with go test -c
    Go,
    /// pytest-benchmark
    Pytest,
    /// #[bench] of Rust
    Libtest,
    /// None: time the whole program
    Command,
}

impl Tool {
    pub const fn harness(self) -> Harness {
        match self {
            Self::Google => Harness::Google,
            Self::Criterion => Harness::Criterion,
            Self::Go => Harness::Go,
            Self::Pytest => Harness::Pytest,
            Self::Libtest => Harness::Libtest,
            Self::Command => Harness::Command,
        }
    }
}

pub fn run(arguments: &Compare, options: Options) -> Result<u8, Failure> {
    let Bench {
        harness,
        each,
        timeout,
        false_alarms,
        ..
    } = arguments.bench;
    let not_here = [
        (arguments.reference.is_some(), "--reference"),
        (arguments.table.is_some(), "--table"),
    ];
    if let Some((_, option)) = not_here.iter().find(|(is_given, _)| *is_given) {
        return Err(Failure::usage(format!(
            "{option} is for recordings; leave it out with --bench"
        )));
    }
    let program =
        |command| Program::new(words(command)?, harness.map(Tool::harness)).map_err(Failure::usage);
    let programs = [program(&arguments.a)?, program(&arguments.b)?];
    let scratch = output::scratch()?;
    let dir = match &arguments.output {
        Some(dir) if !is_empty(dir) && !comparing::has_rounds(dir) => {
            return Err(Failure::usage(format!(
                "{}: exists already and has no rounds of benchmarks to go on with; give another name with -o",
                dir.display()
            )));
        }
        Some(dir) => dir.clone(),
        None => scratch.path().join("runs"),
    };
    let within = options.within.unwrap_or(WITHIN);
    let wanted = Suites {
        programs,
        dir,
        each,
        rounds: arguments.runs.map(|runs| runs as usize),
        time: arguments.time.unwrap_or(TIME),
        limit: timeout,
        only: arguments.only.clone(),
        options,
        within,
        false_alarms,
        seed: super::seed(),
    };
    let stop = output::stop_on_signals();
    let mut progress = Progress::new();
    let found = comparing::compare_suites(&wanted, &stop, &mut |update| match update {
        SuitesProgress::Planned {
            benchmarks,
            round,
            most,
        } => say!(
            "undertick: {benchmarks} benchmarks ({}), {:.1} s a round; at most {most} rounds in {:.0} s; ends early when \
             each benchmark is known to differ, or to differ by less than {:.1} %",
            wanted.programs[0].harness.name(),
            round.as_secs_f64(),
            wanted.time.as_secs_f64(),
            within * 100.0
        ),
        SuitesProgress::Round { share, .. } => progress.share("comparing", share),
        SuitesProgress::Failed(side, name, why) => {
            alert!("undertick: {name} of {side} failed, and is left out: {why}");
        }
        SuitesProgress::Remark(text) => alert!("undertick: {text}"),
    });
    progress.done();
    let found = found.map_err(failure)?;
    let status = print(arguments, &found)?;
    let end = found.sequential.map(|sequential| sequential.end);
    Ok(match end {
        Some(SequentialEnd::Interrupted | SequentialEnd::Failed) => 1,
        _ => status,
    })
}

/// Whether nothing is in a directory, or there is none.
fn is_empty(dir: &Path) -> bool {
    !dir.exists() || std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}
