//! `undertick compare`.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use undertick_analyze::Options as Analysis;
use undertick_document::Warning;
use undertick_meter::compare::{self as comparing, InTurn, Input, Options, Recorded};
use undertick_report::compare::{self, Comparison};
use undertick_report::html;

use crate::Failure;
use crate::experiment::{failure, not_there};
use crate::options::Kernel;
use crate::output;
use crate::progress::Progress;
use crate::recording::{calibrate_now, clock};
use crate::reporting::read_table;
use crate::sizes;

mod bench;

pub use bench::Tool;

/// Exit status if something is slower than --gate allows.
const TOO_SLOW: u8 = 3;
/// Default number of runs of each of two commands.
const USUAL_RUNS: u64 = 5;
/// Number of columns of the table on a terminal.
const COLUMNS: usize = 110;

/// Compare two programs, traces, sets of runs, reports or surveys, with bounds of the differences
#[derive(Args)]
#[command(
    override_usage = "undertick compare [OPTIONS] <A> <B>\n       undertick compare [OPTIONS] --runs <N> <'COMMAND A'> <'COMMAND B'>\n       undertick compare [OPTIONS] --bench <'BENCHMARKS A'> <'BENCHMARKS B'>",
    after_help = "Examples:\n  \
    undertick compare ./old ./new                               # records both in turn, five times\n  \
    undertick compare --runs 20 './old 1000' './new 1000'\n  \
    undertick compare --for 10s --gate 0.02 --markdown=\"$GITHUB_STEP_SUMMARY\" ./old ./new\n  \
    undertick compare --runs 20 -o kept ./old ./new; undertick compare kept/a kept/b --json\n  \
    undertick compare before.ut after.ut --only 'parse*'\n  \
    undertick compare --runs 10 --html changes.html ./old ./new # the call tree, coloured by change\n  \
    undertick compare --bench ./old/bench ./new/bench --gate 0.03 # benchmarks of other tools, as they are\n  \
    undertick compare monday.json tuesday.json                  # of survey --json or report --json\n\n\
    A and B are both a trace, a report or a survey as JSON, or a directory of these: a set of runs. The\n\
    confidence intervals of sets come from the differences between runs, those of commands from the differences\n\
    between rounds. Commands are split at spaces, with quotes as in a shell; no shell runs them.\n\n\
    Exit status: 0 whatever differs; 3 if something is surely slower than --gate allows; 1 if it could not be\n\
    measured; 2 wrong usage or input."
)]
pub struct Compare {
    /// The first: differences are stated against it
    #[arg(value_name = "A")]
    a: OsString,
    /// The second
    #[arg(value_name = "B")]
    b: OsString,
    /// A and B are commands: record both in turn, in random order, N times [default if both are
    /// programs: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=2000))]
    runs: Option<u64>,
    /// A and B are commands: record them in turn for TIME, e.g. 10s; with --runs, until either
    /// limit
    #[arg(long = "for", value_name = "TIME", value_parser = sizes::parse_time)]
    time: Option<Duration>,
    /// Save the recordings of A and B in DIR/a and DIR/b; with --bench, the figures of each round, and
    /// continue the rounds that are already in DIR
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Which kernel events to record
    #[arg(long, value_enum, default_value = "auto")]
    kernel: Kernel,
    /// Figures that surely differ by less than this share count as alike
    #[arg(long, value_name = "SHARE", value_parser = share)]
    within: Option<f64>,
    /// Exit with status 3 if something is surely slower by more than this share; 0: by any amount
    #[arg(long, value_name = "SHARE", value_parser = share)]
    gate: Option<f64>,
    /// For sets of runs: divide durations by those of the span of this name in the same run, which
    /// the change does not touch, so that a slow-down of a whole run cancels
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,
    /// Only figures of this name; * is any text, ? any character; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Table of intervals, where A and B are traces or commands
    #[arg(long, value_name = "TABLE.toml")]
    table: Option<PathBuf>,
    /// Level of the confidence intervals; of the reported differences at most 1 - LEVEL are false
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    confidence: f64,
    /// Print GitHub's Markdown instead of the table, or append it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    markdown: Option<Option<PathBuf>>,
    /// Write the verdicts as JUnit's XML to FILE, for CI systems: with --gate, what is too slow has failed;
    /// without, what is slower
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
    /// Write a page with the call tree, coloured by what changed, to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Every figure, not what fits on one screen
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    full: bool,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    json: bool,
    // Last: its heading is that of all options after it.
    #[command(flatten)]
    bench: bench::Bench,
}

pub fn run(arguments: &Compare) -> Result<u8, Failure> {
    let options = Options {
        level: output::level(arguments.confidence)?,
        within: arguments.within,
        gate: arguments.gate,
        false_alarms: None,
    };
    let analysis = Analysis {
        table: arguments.table.as_deref().map(read_table).transpose()?,
        confidence: options.level,
        ..Analysis::default()
    };
    if arguments.json && matches!(arguments.markdown, Some(None)) {
        return Err(Failure::usage(
            "--json and --markdown both want standard output; give --markdown=FILE",
        ));
    }
    if arguments.bench.bench {
        return bench::run(arguments, options);
    }
    let runs = match (arguments.runs, arguments.time) {
        (None, None) if are_commands(arguments) => Some(USUAL_RUNS),
        (runs, _) => runs,
    };
    if runs.is_none() && arguments.time.is_none() {
        let paths = [PathBuf::from(&arguments.a), PathBuf::from(&arguments.b)];
        let found = compared(arguments, &paths, &analysis, &options)?;
        return print(arguments, &found);
    }
    let scratch = output::scratch()?;
    let dir = match &arguments.output {
        Some(given) => not_there(given)?,
        None => scratch.path().join("runs"),
    };
    let recorded = recorded(arguments, runs, dir)?;
    let mut found = compared(arguments, &recorded.sets, &analysis, &options)?;
    [&mut found.a.file, &mut found.b.file]
        .into_iter()
        .zip([&arguments.a, &arguments.b])
        .for_each(|(file, command)| *file = command.to_string_lossy().into_owned());
    found.warnings.extend(interrupted(&recorded));
    let status = print(arguments, &found)?;
    Ok(if recorded.interrupted { 1 } else { status })
}

/// Compares the second input with the first.
fn compared(
    arguments: &Compare,
    paths: &[PathBuf; 2],
    analysis: &Analysis,
    options: &Options,
) -> Result<Comparison, Failure> {
    let mut progress = Progress::new();
    let mut open = |index: usize| -> Result<Input, Failure> {
        let mut on_progress =
            |share: f64| progress.share("analysing", (index as f64 + share) / 2.0);
        comparing::open(&paths[index], analysis, &mut on_progress).map_err(Failure::usage)
    };
    let both = open(0).and_then(|a| Ok((a, open(1)?)));
    progress.done();
    let (mut a, mut b) = both?;
    let held = (arguments.reference.as_deref())
        .map(|reference| comparing::hold_against(&mut a, &mut b, reference))
        .transpose()
        .map_err(Failure::usage)?;
    for (input, path) in [(&mut a, &paths[0]), (&mut b, &paths[1])] {
        if input.keep_only(&arguments.only) == 0 && !arguments.only.is_empty() {
            return Err(Failure::usage(format!(
                "{}: no figure has a name like {:?}; `undertick compare` without --only shows all",
                path.display(),
                arguments.only
            )));
        }
    }
    let mut found = comparing::compare_as(a, b, options).map_err(Failure::usage)?;
    found.warnings.extend(held);
    Ok(found)
}

/// Prints the comparison; returns the exit status.
fn print(arguments: &Compare, found: &Comparison) -> Result<u8, Failure> {
    output::page(arguments.html.as_deref(), || html::compare::render(found))?;
    output::page(arguments.junit.as_deref(), || compare::render_junit(found))?;
    if let Some(Some(path)) = &arguments.markdown {
        append(path, &compare::render_markdown(found))?;
    }
    output::document(arguments.json, found, || match &arguments.markdown {
        Some(None) => compare::render_markdown(found),
        _ if arguments.full => compare::render(found, COLUMNS),
        _ => compare::first_screen(found, COLUMNS),
    })?;
    let is_too_slow = |found: &Comparison| Some(!found.gate.as_ref()?.too_slow.is_empty());
    Ok(match is_too_slow(found) {
        Some(true) => TOO_SLOW,
        _ => 0,
    })
}

/// Appends to a file, because steps of GitHub that write a summary share it.
fn append(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = std::fs::OpenOptions::new();
    (file.create(true).append(true).open(path))
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| Failure::machine(format!("{}: cannot write the summary: {e}", path.display())))
}

/// Records both commands in turn.
fn recorded(arguments: &Compare, runs: Option<u64>, dir: PathBuf) -> Result<Recorded, Failure> {
    let commands = [words(&arguments.a)?, words(&arguments.b)?];
    let (choice, facts) = clock()?;
    let (calibration, warning) = calibrate_now(&choice, &facts, arguments.kernel.into());
    if let Some(warning) = warning {
        say!("undertick: note: {warning}");
    }
    let wanted = InTurn {
        commands,
        dir,
        rounds: runs.map(|runs| runs as usize),
        time: arguments.time,
        choice,
        facts,
        calibration,
        kernel: arguments.kernel.into(),
        seed: seed(),
    };
    let mut progress = Progress::new();
    let recorded =
        comparing::record_in_turn(&wanted, |update| progress.share("recording", update.share));
    progress.done();
    let recorded = recorded.map_err(failure)?;
    if recorded.rounds < 2 {
        return Err(Failure::machine(
            "stopped before two rounds were complete: nothing can be said",
        ));
    }
    Ok(recorded)
}

/// A seed of the order of runs.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64)
}

fn interrupted(recorded: &Recorded) -> Option<Warning> {
    recorded.interrupted.then(|| Warning {
        code: "interrupted".to_owned(),
        text: format!(
            "stopped after {} rounds: there were to be more",
            recorded.rounds
        ),
    })
}

/// Returns whether both are programs that can be started, with or without arguments, and not files
/// to read.
fn are_commands(arguments: &Compare) -> bool {
    [&arguments.a, &arguments.b].into_iter().all(|word| {
        let is_read = Path::new(word)
            .extension()
            .is_some_and(|e| e == "json" || e == "ut");
        let program = words(word).ok().and_then(|words| words.into_iter().next());
        !is_read && program.is_some_and(|program| is_program(Path::new(&program)))
    })
}

/// Returns whether this is an executable file, at that path or in PATH.
fn is_program(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let may_run = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let on_path = || std::env::var_os("PATH").unwrap_or_default();
    match program.components().count() {
        1 if !program.is_absolute() => {
            may_run(program)
                || std::env::split_paths(&on_path()).any(|dir| may_run(&dir.join(program)))
        }
        _ => may_run(program),
    }
}

/// Returns the program and the arguments of a command, as a shell splits it.
fn words(command: &OsString) -> Result<Vec<OsString>, Failure> {
    let shown = command.to_string_lossy();
    let text = command
        .to_str()
        .ok_or_else(|| Failure::usage(format!("{shown}: not UTF-8; give it by another name")))?;
    let words = shlex::split(text).ok_or_else(|| {
        Failure::usage(format!(
            "{shown}: a quote is not closed, or a backslash stands at the end; quote it as in a shell"
        ))
    })?;
    if words.is_empty() {
        return Err(Failure::usage(
            "with --runs or --for, A and B are commands, and one of them is empty",
        ));
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

/// Parses a share of a figure, e.g. `0.02`.
fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text
        .parse()
        .map_err(|_| "a share is a number, for example 0.02 for 2 %".to_owned())?;
    match share {
        share if (0.0..10.0).contains(&share) => Ok(share),
        _ => Err("a share lies between 0 and 10; 0.02 is 2 %".to_owned()),
    }
}

#[cfg(test)]
mod tests;
