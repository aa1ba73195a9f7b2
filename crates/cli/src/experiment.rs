//! `undertick run` and `undertick primitives`.

use std::path::{Path, PathBuf};

use clap::Args;
use undertick_analyze::Cull;
use undertick_experiment::linux::{self, LocalMachine};
use undertick_experiment::simulated::Simulated;
use undertick_experiment::{
    self, Experiment, ExperimentError, Machine, Options, Outcome, Why, primitives,
};
use undertick_format::input::{self, Kind};
use undertick_report::{experiment as drawn, html};

use crate::Failure;
use crate::options::{Kernel, Results};
use crate::output;
use crate::progress::Progress;
use crate::recording::{clock, free_name};

/// The hidden command that performs an experiment; `undertick run` records it.
pub const DRIVER: &str = "__conductor";

/// Run an experiment script: processes, steps, replicas, placement, injection
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick run experiments/traffic-controller.toml\n  \
    undertick run experiments/locks.toml -o locks.ut --json | jq '.intervals[].repeated.typical'\n  \
    undertick run experiments/cmstar-messages.toml --machine cmstar\n\n\
    A script says what processes do, step by step; docs/book/scripts.md has all of it:\n  \
    passes = 1000\n  [[process]]\n  name = \"A\"\n  [[process.step]]\n  call = \"getppid\"\n\n\
    Ctrl-C ends the experiment; the repetitions done so far are analysed and the trace is kept."
)]
pub struct Run {
    /// The script
    #[arg(value_name = "SCRIPT.toml")]
    pub script: PathBuf,
    /// Machine to run it on: here; cmstar, cmstar:medusa (simulated, docs/book/cmstar.md), or a file of
    /// its parameters
    #[arg(long, value_name = "here|cmstar|FILE", default_value = "here")]
    pub machine: String,
    /// Trace directory to make [default: the script's name, with a number if that exists]
    #[arg(short, long, value_name = "NAME.ut")]
    pub output: Option<PathBuf>,
    /// Which kernel events to add to the trace: they cost about 1 us a wake-up
    #[arg(long, value_enum, default_value_t = Kernel::Off)]
    pub kernel: Kernel,
    #[command(flatten)]
    pub passes: crate::passes::PassesTable,
    /// Which samples to drop: auto, kernel, ratio:R (e.g. ratio:4), none [default: ratio:4 where no
    /// process waits, otherwise none]
    #[arg(long, value_name = "RULE")]
    pub cull: Option<String>,
    #[command(flatten)]
    pub results: Results,
}

pub fn run(arguments: &Run) -> Result<u8, Failure> {
    let path = arguments.script.display();
    let text = input::text(&arguments.script, Kind::SCRIPT)?;
    let name = (arguments.script.file_stem()).map_or_else(
        || path.to_string(),
        |stem| stem.to_string_lossy().into_owned(),
    );
    let experiment = Experiment::new([(name.clone(), text)])
        .map_err(|(_, bad)| Failure::usage(format!("{path}:{bad}")))?;
    let kernel = arguments.passes.kernel(arguments.kernel);
    let machine = machine(&arguments.machine, kernel)?;
    let options = Options {
        cull: arguments
            .cull
            .as_deref()
            .map(str::parse::<Cull>)
            .transpose()?,
        confidence: arguments.results.level()?,
    };
    let trace = match &arguments.output {
        Some(given) => not_there(given)?,
        None => free_name(name.as_ref(), "ut"),
    };
    let mut outcome = perform(&experiment, machine.as_ref(), &trace, options)?;
    (arguments.passes).add(&experiment, &mut outcome, &trace)?;
    arguments.results.page(|| html::render(&outcome.report))?;
    arguments.results.document(&outcome.report, || {
        let drawn = match arguments.results.full {
            true => drawn::render(&outcome.report, 100),
            false => drawn::first_screen(&outcome.report, 100),
        };
        crate::passes::PassesTable::drawn(&outcome.report) + &drawn
    })?;
    if !arguments.results.json {
        say!("trace: {}", trace.display());
    }
    status(&outcome)
}

fn status(outcome: &Outcome) -> Result<u8, Failure> {
    if outcome.performed.interrupted {
        return Ok(130);
    }
    if !outcome.is_complete() {
        return Err(Failure::machine(
            "some of it was not performed as asked: see the warnings",
        ));
    }
    Ok(0)
}

/// Performs an experiment, and draws its progress.
pub fn perform(
    experiment: &Experiment,
    machine: &dyn Machine,
    trace: &Path,
    options: Options,
) -> Result<Outcome, Failure> {
    let mut progress = Progress::new();
    let result =
        undertick_experiment::perform(experiment, machine, trace, options, &mut |update| {
            match update {
                undertick_experiment::ExperimentProgress::Repetition(done, all) => {
                    progress.share("repetitions", done as f64 / all.max(1) as f64);
                }
                undertick_experiment::ExperimentProgress::Finalizing(share) => {
                    progress.share("finalizing", share)
                }
            }
        });
    progress.done();
    result.map_err(failure)
}

pub fn failure(error: ExperimentError) -> Failure {
    Failure {
        status: match error.why {
            Why::Machine => 1,
            Why::Input => 2,
            Why::Interrupted => 130,
        },
        text: error.text,
    }
}

/// Returns the machine of this name.
pub fn machine(name: &str, kernel: Kernel) -> Result<Box<dyn Machine>, Failure> {
    match name {
        "here" => Ok(Box::new(this_machine(kernel)?)),
        other => Ok(Box::new(Simulated::named(other).map_err(failure)?)),
    }
}

/// Returns this machine, which records the kernel events that `kernel` asks for.
pub fn this_machine(kernel: Kernel) -> Result<LocalMachine, Failure> {
    let (choice, facts) = clock()?;
    Ok(LocalMachine {
        driver_command: crate::own_command(DRIVER),
        choice,
        facts,
        kernel: kernel.into(),
    })
}

/// Measure the operating system's primitives: calls, clocks, locks, wake-ups, messages, fork, ...
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick primitives\n  undertick primitives --only messages,locks --json | jq '.intervals[].repeated.typical'\n\n\
    Each is a script like those of `undertick run`; --show prints it, to be changed and run."
)]
pub struct Primitives {
    /// Only these groups, e.g. calls,locks (all: see --list)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// List the names of the groups
    #[arg(long)]
    pub list: bool,
    /// Print the scripts instead of running them
    #[arg(long)]
    pub show: bool,
    /// Save the trace to this directory
    #[arg(short, long, value_name = "NAME.ut")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub results: Results,
}

pub fn primitives(arguments: &Primitives) -> Result<u8, Failure> {
    if arguments.list {
        let names: Vec<&str> = primitives::names().collect();
        return output::print(&(names.join("\n") + "\n"));
    }
    let scripts = primitives::scripts(&arguments.only, &linux::cpus()).map_err(Failure::usage)?;
    if arguments.show {
        let each = scripts
            .iter()
            .map(|(name, text)| format!("# {name}\n{text}\n"));
        return output::print(&each.collect::<String>());
    }
    let experiment =
        Experiment::new(scripts).map_err(|(name, bad)| Failure::usage(format!("{name}:{bad}")))?;
    let machine = this_machine(Kernel::Off)?;
    let options = Options {
        cull: None,
        confidence: arguments.results.level()?,
    };
    let scratch = output::scratch()?;
    let trace = match &arguments.output {
        Some(given) => not_there(given)?,
        None => scratch.path().join("primitives.ut"),
    };
    let outcome = perform(&experiment, &machine, &trace, options)?;
    arguments.results.page(|| html::render(&outcome.report))?;
    arguments
        .results
        .document(&outcome.report, || match arguments.results.full {
            true => drawn::primitives(&outcome.report, 100),
            false => drawn::primitives_first_screen(&outcome.report, 100),
        })?;
    status(&outcome)
}

/// Returns the path of a trace that does not exist yet.
pub fn not_there(trace: &Path) -> Result<PathBuf, Failure> {
    if trace.exists() {
        return Err(Failure::usage(format!(
            "{}: exists already; remove it or give another name with -o",
            trace.display()
        )));
    }
    Ok(trace.to_owned())
}

/// The files for the texts of the experiment and for its results.
#[derive(Args)]
pub struct DriverFiles {
    texts: PathBuf,
    results: PathBuf,
}

pub fn drive(files: &DriverFiles) -> Result<u8, Failure> {
    linux::run_repetitions(&files.texts, &files.results).map_err(failure)?;
    Ok(0)
}
