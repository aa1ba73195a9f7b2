//! `undertick survey`: this machine, or a fleet of surveys.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use undertick_experiment::linux::{self, LocalMachine};
use undertick_meter::interference::{self, Mix, Schedule};
use undertick_meter::{fleet, survey};
use undertick_report::html;
use undertick_report::{fleet as drawn_fleet, survey as drawn};

use crate::Failure;
use crate::experiment::this_machine;
use crate::interference::PROBE;
use crate::options::{Kernel, Results};
use crate::output;
use crate::progress::Progress;

/// Describe this machine on one page, in about a minute, or compare the surveys of many machines
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick survey --html page.html\n  undertick survey --json > $(hostname).json\n  \
    undertick compare monday.json tuesday.json\n  \
    undertick survey --fleet surveys/ --html fleet.html\n  \
    undertick survey --fleet this-week/ --against last-week/ --json | jq '.outliers[].host'\n\n\
    Takes about a minute and keeps CPUs busy for most of it. Ctrl-C ends it and reports the complete parts."
)]
pub struct Survey {
    /// Do not measure: compare the surveys (.json files) of this directory
    #[arg(long, value_name = "DIR")]
    pub fleet: Option<PathBuf>,
    /// With --fleet: earlier surveys of the same machines, to report what has changed
    #[arg(long, value_name = "DIR", requires = "fleet")]
    pub against: Option<PathBuf>,
    /// Fewer and shorter repetitions: a quarter of the time, wider confidence intervals
    #[arg(long, conflicts_with = "fleet")]
    pub quick: bool,
    #[command(flatten)]
    pub results: Results,
}

pub fn run(arguments: &Survey) -> Result<u8, Failure> {
    let level = arguments.results.level()?;
    if let Some(directory) = &arguments.fleet {
        return of_fleet(arguments, directory, level);
    }
    let machine = this_machine(Kernel::Off)?;
    let scratch = output::scratch()?;
    let meter = meter(&machine, scratch.path().join("interference.ut"), level);
    let stop = output::stop_on_signals();
    let request = survey::Request {
        level,
        quick: arguments.quick,
        meter: meter.as_ref(),
        stop: &stop,
    };
    let mut progress = Progress::new();
    let found = survey::run(&machine, request, &mut |what, share| {
        progress.share(what, share)
    });
    progress.done();
    arguments
        .results
        .page(|| html::survey::render(&found.survey))?;
    arguments
        .results
        .document(&found.survey, || match arguments.results.full {
            true => drawn::render(&found.survey, 100),
            false => drawn::first_screen(&found.survey, 100),
        })?;
    if found.survey.interrupted {
        return Ok(130);
    }
    match found.failed {
        Some(text) => Err(Failure::machine(text)),
        None => Ok(0),
    }
}

/// Returns the request of the interference meter, on the last CPU, as in `undertick interference`.
fn meter(machine: &LocalMachine, trace: PathBuf, level: f64) -> Option<interference::Request> {
    let mut schedule = Schedule::new(Mix::Stream);
    schedule.cpu = linux::cpus().last().copied();
    let program = machine.driver_command.first()?.clone();
    Some(interference::Request {
        schedule,
        probe_command: vec![program, OsString::from(PROBE)],
        choice: machine.choice,
        facts: machine.facts.clone(),
        trace,
        kernel: Kernel::Off.into(),
        level,
    })
}

fn of_fleet(arguments: &Survey, directory: &Path, level: f64) -> Result<u8, Failure> {
    let found =
        fleet::fleet(directory, arguments.against.as_deref(), level).map_err(Failure::usage)?;
    arguments.results.page(|| html::fleet::render(&found))?;
    arguments
        .results
        .document(&found, || drawn_fleet::render(&found, 110))
}
