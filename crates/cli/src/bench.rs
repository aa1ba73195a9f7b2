//! `undertick bench`: the benchmarks of one program of another tool.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use undertick_meter::benchmarks::{Alone, AloneProgress, Program, measure};
use undertick_report::benchmarks;
use undertick_report::compare::SequentialEnd;

use crate::Failure;
use crate::compare::Tool;
use crate::experiment::{failure, not_there};
use crate::output;
use crate::progress::Progress;
use crate::sizes;

/// Number of columns of the table on a terminal.
const COLUMNS: usize = 110;

/// Measure the benchmarks of a program of Google Benchmark, Criterion.rs, Go, pytest-benchmark or Rust's #[bench]
#[derive(Args)]
#[command(
    override_usage = "undertick bench [OPTIONS] [--] <PROGRAM>...",
    after_help = "Examples:\n  \
    undertick bench ./build/bench_parser\n  \
    undertick bench --within 0.005 --for 5m target/release/deps/parser-1f2e3d4c\n  \
    undertick bench --only 'BM_sort*' -o figures ./bench   # the figures of each process in figures/\n\n\
    The program is unchanged, and is run again and again, as many processes as it takes until each mean is known\n\
    within --within, or until --for is over. Each process is one sample of each benchmark.\n\n\
    Whether a change made something faster: undertick compare --bench OLD NEW runs both in turn.\n\n\
    Exit status: 0; 1 if it could not be measured; 130 if it was stopped; 2 wrong usage or input."
)]
pub struct Bench {
    /// The tool that the program was written for, if it is not recognized
    #[arg(long, value_enum, value_name = "TOOL")]
    harness: Option<Tool>,
    /// A mean is known well enough when half of its confidence interval is at most this share of it
    #[arg(long, value_name = "SHARE", value_parser = sizes::parse_fraction, default_value = "0.01")]
    within: f64,
    /// End after TIME, whatever is known by then
    #[arg(long = "for", value_name = "TIME", value_parser = sizes::parse_time, default_value = "1m")]
    time: Duration,
    /// At most N processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=2000))]
    runs: Option<u64>,
    /// About how long to measure each benchmark in a process, where the tool has such an option
    #[arg(long, value_name = "TIME", value_parser = sizes::parse_time, default_value = "20ms")]
    each: Duration,
    /// Kill a process that runs longer than TIME
    #[arg(long, value_name = "TIME", value_parser = sizes::parse_time, default_value = "5m")]
    timeout: Duration,
    /// Only benchmarks of this name; * is any text, ? any character; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Save the figures of each process in DIR, a set of runs for `undertick compare`
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Level of the confidence intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    confidence: f64,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    json: bool,
    /// Program and arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

pub fn run(arguments: &Bench) -> Result<u8, Failure> {
    let harness = arguments.harness.map(Tool::harness);
    let wanted = Alone {
        program: Program::new(arguments.command.clone(), harness).map_err(Failure::usage)?,
        dir: arguments.output.as_deref().map(not_there).transpose()?,
        each: arguments.each,
        runs: arguments.runs.map(|runs| runs as usize),
        time: arguments.time,
        limit: arguments.timeout,
        only: arguments.only.clone(),
        level: output::level(arguments.confidence)?,
        within: arguments.within,
    };
    let stop = output::stop_on_signals();
    let mut progress = Progress::new();
    let measured = measure(&wanted, &stop, &mut |update| match update {
        AloneProgress::Share(share) => progress.share("measuring", share),
        AloneProgress::Failed(name, why) => {
            alert!("undertick: {name} failed, and is left out: {why}");
        }
        AloneProgress::Remark(text) => alert!("undertick: {text}"),
    });
    progress.done();
    let found = measured.map_err(failure)?;
    output::document(arguments.json, &found, || {
        benchmarks::render(&found, COLUMNS)
    })?;
    Ok(match found.end {
        SequentialEnd::Interrupted => 130,
        SequentialEnd::Failed => 1,
        SequentialEnd::Decided | SequentialEnd::Rounds | SequentialEnd::Time => 0,
    })
}
