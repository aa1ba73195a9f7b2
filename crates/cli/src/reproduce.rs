//! `undertick reproduce`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use undertick_calibrate::zero_test::{self, Load};
use undertick_experiment::{Experiment, Options, Outcome, linux};
use undertick_format::read::Trace;
use undertick_meter::interference::{self as meter, Disturbance, Mix};
use undertick_meter::loops;
use undertick_report::html;
use undertick_report::reproduce::{Reproduction, first_screen, render};
use undertick_reproduce::interference::{MeteredRun, with_runs};
use undertick_reproduce::{self, Request, Run};

use crate::Failure;
use crate::experiment::{self, failure};
use crate::options::{Kernel, Results};
use crate::output;
use crate::progress::Progress;

/// The hidden command of the experiment's second process.
pub const PARTNER: &str = "__reproduce-partner";
/// The hidden command of the program that records events in loops.
pub const LOOPS: &str = "__reproduce-loops";

/// Reproduce published tables: as printed, by formula, simulated, measured here
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick reproduce traffic --html traffic.html\n  \
    undertick reproduce slow-clock --quick --json | jq '.items[] | {id, published, formula}'\n\n\
    On two CPUs cmstar simulates for three minutes (--quick: half a minute). slow-clock runs an experiment of one \
    minute (--quick: two seconds); traffic, trams and interference run ones of 10 to 50 seconds. Ctrl-C ends it and \
    reports the complete repetitions."
)]
pub struct Reproduce {
    /// Source of the tables
    #[arg(value_enum)]
    source: Source,
    /// Shorter experiments: fewer and shorter repetitions
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    results: Results,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Source {
    /// Measuring Time in Cm* (1986): on a simulated Cm*, and here
    Cmstar,
    /// Measuring with Slow Clocks (1988)
    SlowClock,
    /// Hardware-Assisted Multiprocessor Performance Measurements (1987)
    Trams,
    /// Measurements of Memory Interference (1971)
    Interference,
    /// Timing test of New Traffic Controller
    Traffic,
    /// All of them, one after the other
    All,
}

pub fn run(arguments: &Reproduce) -> Result<u8, Failure> {
    let found = reproduced(arguments, arguments.source)?;
    if let Some(path) = &arguments.results.html {
        std::fs::write(path, html::reproduce::render(&found))
            .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    }
    arguments
        .results
        .document(&found, || match arguments.results.full {
            true => render(&found, COLUMNS),
            false => first_screen(&found, COLUMNS_OF_SCREEN),
        })?;
    Ok(if found.interrupted { 130 } else { 0 })
}

fn reproduced(arguments: &Reproduce, source: Source) -> Result<Reproduction, Failure> {
    let mut found = match source {
        Source::Cmstar => cmstar(arguments)?,
        Source::SlowClock => slow_clock(arguments)?,
        Source::Traffic => traffic(arguments)?,
        Source::Trams => trams(arguments)?,
        Source::Interference => interference(arguments)?,
        Source::All => return all(arguments),
    };
    undertick_reproduce::conclude(&mut found);
    Ok(found)
}

fn all(arguments: &Reproduce) -> Result<Reproduction, Failure> {
    let mut each = Vec::new();
    let sources = [
        Source::Cmstar,
        Source::SlowClock,
        Source::Traffic,
        Source::Trams,
        Source::Interference,
    ];
    for source in sources {
        let found = reproduced(arguments, source)?;
        let interrupted = found.interrupted;
        each.push(found);
        if interrupted {
            break;
        }
    }
    undertick_reproduce::joined(each).ok_or_else(|| Failure::usage("nothing to do"))
}

/// Reproduces Cm*: the simulated machine, and zero tests and messages here.
fn cmstar(arguments: &Reproduce) -> Result<Reproduction, Failure> {
    let request = undertick_reproduce::cmstar::Request {
        run: how_long(arguments),
        level: arguments.results.level()?,
    };
    let stop = output::stop_on_signals();
    let mut progress = Progress::new();
    let mut found = undertick_reproduce::cmstar::simulated(&request, |share| {
        progress.share("simulating", share);
        !stop.load(Ordering::Relaxed)
    });
    progress.done();
    if !found.interrupted {
        let messages = perform(
            arguments,
            undertick_reproduce::cmstar::message_scripts(request.run),
            undertick_reproduce::cmstar::MACHINE,
            Kernel::Off,
        )?;
        undertick_reproduce::cmstar::with_messages(&mut found, &messages.outcome.report);
        messages.add_findings(&mut found);
    }
    let mut zeros = Vec::new();
    for (name, load) in [
        ("none", Load::None),
        ("two replicas of the test", Load::Replicas(2)),
    ] {
        if found.interrupted {
            return Ok(found);
        }
        match zero(&request, load, &stop) {
            Ok(outcome) => zeros.push((name.to_owned(), outcome)),
            Err(zero_test::Failure::Interrupted) => found.interrupted = true,
            Err(why) => (found.findings).push(format!("no zero test here, load: {name}: {why}")),
        }
    }
    let here = match found.interrupted {
        true => None,
        false => Some(perform(
            arguments,
            undertick_reproduce::cmstar::scripts_here(request.run),
            "here",
            Kernel::Off,
        )?),
    };
    let report = here.as_ref().map(|here| &here.outcome.report);
    let cpus = undertick_reproduce::cmstar::spread_of_cpus(request.level);
    undertick_reproduce::cmstar::with_measured(&mut found, cpus, &zeros, report);
    if let Some(here) = &here {
        here.add_findings(&mut found);
    }
    Ok(found)
}

/// Runs a zero test on this machine.
fn zero(
    request: &undertick_reproduce::cmstar::Request,
    load: Load,
    stop: &AtomicBool,
) -> Result<zero_test::Outcome, zero_test::Failure> {
    let clock = undertick_clock::Source::open(undertick_clock::best().clock)
        .map_err(|_| zero_test::Failure::TooFew { kept: 0 })?;
    let mut test = zero_test::Request::new(clock, load);
    test.level = request.level;
    if request.run == Run::Quick {
        test.blocks /= 4;
    }
    let mut progress = Progress::new();
    let outcome = zero_test::run(&test, |share| {
        progress.share("measuring nothing", share);
        !stop.load(Ordering::Relaxed)
    });
    progress.done();
    outcome
}

fn slow_clock(arguments: &Reproduce) -> Result<Reproduction, Failure> {
    let level = arguments.results.level()?;
    let (cycles, repetitions) = if arguments.quick {
        (500, 4)
    } else {
        (10_000, 10)
    };
    let request = Request {
        cycles,
        repetitions,
        level,
        partner_command: crate::own_command(PARTNER),
    };
    say!(
        "{repetitions} repetitions of {cycles} cycles: about {:.0} s",
        undertick_reproduce::expected_seconds(&request)
    );
    let stop = output::stop_on_signals();
    let mut progress = Progress::new();
    let result = undertick_reproduce::slow_clock(&request, |share| {
        progress.share("measuring", share);
        !stop.load(Ordering::Relaxed)
    });
    progress.done();
    result.map_err(Failure::machine)
}

/// An experiment that was performed, with its trace, which is deleted with it.
struct Performed {
    experiment: Experiment,
    outcome: Outcome,
    trace: PathBuf,
    _scratch: tempfile::TempDir,
}

fn perform(
    arguments: &Reproduce,
    scripts: Vec<(String, String)>,
    machine: &str,
    kernel: Kernel,
) -> Result<Performed, Failure> {
    let options = Options {
        cull: None,
        confidence: arguments.results.level()?,
    };
    let experiment = Experiment::new(scripts)
        .map_err(|(name, bad)| Failure::machine(format!("{name}:{bad}")))?;
    let scratch = output::scratch()?;
    let trace = scratch.path().join("reproduce.ut");
    let machine = experiment::machine(machine, kernel)?;
    let outcome = experiment::perform(&experiment, machine.as_ref(), &trace, options)?;
    Ok(Performed {
        experiment,
        outcome,
        trace,
        _scratch: scratch,
    })
}

impl Performed {
    /// Adds to the findings what could not be performed.
    fn add_findings(&self, found: &mut Reproduction) {
        let warnings = self.outcome.report.warnings.iter();
        found.findings.extend(warnings.map(|w| w.text.clone()));
        found.interrupted |= self.outcome.performed.interrupted;
    }
}

fn how_long(arguments: &Reproduce) -> Run {
    if arguments.quick {
        Run::Quick
    } else {
        Run::Full
    }
}

fn traffic(arguments: &Reproduce) -> Result<Reproduction, Failure> {
    let scripts = undertick_reproduce::traffic::scripts(how_long(arguments), &linux::cpus());
    let done = perform(arguments, scripts, "here", Kernel::Off)?;
    let trace = Trace::open(&done.trace)?;
    let orders = undertick_reproduce::traffic::orders(
        &done.experiment,
        &done.outcome.performed,
        &trace,
        arguments.results.confidence,
    )
    .map_err(Failure::machine)?;
    let mut found = undertick_reproduce::traffic::reproduction(&done.outcome.report, &orders);
    done.add_findings(&mut found);
    Ok(found)
}

fn trams(arguments: &Reproduce) -> Result<Reproduction, Failure> {
    let run = how_long(arguments);
    let single = perform(
        arguments,
        undertick_reproduce::trams::scripts(run, &linux::cpus()),
        "here",
        Kernel::Off,
    )?;
    // Only the kernel knows why a wait was long, and taking locks causes few wakeups.
    let locks = perform(
        arguments,
        undertick_reproduce::trams::contended_scripts(run, &linux::cpus()),
        "here",
        Kernel::Auto,
    )?;
    let trace = Trace::open(&locks.trace)?;
    let waits =
        undertick_reproduce::trams::contended(&locks.experiment, &locks.outcome.performed, &trace)
            .map_err(Failure::machine)?;
    let (choice, facts) = crate::recording::clock()?;
    let scratch = output::scratch()?;
    let loops = loops::measure(loops::Request {
        command: crate::own_command(LOOPS),
        choice,
        facts,
        trace: scratch.path().join("loops.ut"),
        level: arguments.results.level()?,
    })
    .map_err(failure)?;
    let mut found = undertick_reproduce::trams::reproduction(
        &single.outcome.report,
        &locks.outcome.report,
        &waits,
        &loops,
    );
    single.add_findings(&mut found);
    locks.add_findings(&mut found);
    Ok(found)
}

/// Returns the published figures, and those of the meter here: undisturbed, and disturbed in two
/// ways.
fn interference(arguments: &Reproduce) -> Result<Reproduction, Failure> {
    let mut found = undertick_reproduce::interference::published(arguments.results.level()?);
    let scratch = output::scratch()?;
    let time = Duration::from_secs(if arguments.quick { 2 } else { 15 });
    let usual = |name: &str| {
        crate::interference::usual(
            time,
            arguments.results.confidence,
            scratch.path().join(name),
        )
    };
    let cpus = linux::cpus();
    let (other, probes) = (cpus[0], *cpus.last().unwrap_or(&cpus[0]));
    let percent = 100.0 * Disturbance::SHARE;
    let ways = [
        ("as it is".to_owned(), None),
        (
            format!("with memory traffic of another CPU for {percent:.0} % of the time"),
            Some((Mix::Stream, other)),
        ),
        (
            format!("with a process on the probe's CPU for {percent:.0} % of the time"),
            Some((Mix::Arithmetic, probes)),
        ),
    ];
    let mut runs = Vec::new();
    let mut progress = Progress::new();
    for (i, (name, disturber)) in ways.iter().enumerate() {
        if *disturber == Some((Mix::Stream, probes)) {
            (found.findings).push(format!("not measured here: {name}; there is one CPU"));
            continue;
        }
        let request = usual(&i.to_string())?;
        let disturbance = disturber
            .map(|(mix, cpu)| Disturbance::start(&request.probe_command, mix, cpu, time))
            .transpose()
            .map_err(failure)?;
        let measured = meter::measure(&request, |share| {
            progress.share("measuring", (i as f64 + share.min(1.0)) / ways.len() as f64);
        })
        .map_err(failure)?;
        drop(disturbance);
        found.interrupted |= measured.interrupted;
        runs.push(MeteredRun {
            name: name.clone(),
            mean_loss: measured.mean_loss,
            peaks: (measured.peaks.into_iter().skip(1))
                .map(|peak| (peak.time_share, peak.slowdown))
                .collect(),
        });
        if found.interrupted {
            break;
        }
    }
    progress.done();
    with_runs(&mut found, &runs);
    Ok(found)
}

/// Number of columns: room for the widest table, and for the first screen.
const COLUMNS: usize = 132;
const COLUMNS_OF_SCREEN: usize = 100;

/// Records events in loops.
pub fn loops() -> Result<u8, Failure> {
    loops::perform();
    Ok(0)
}

/// Runs the experiment's second process.
pub fn partner() -> Result<u8, Failure> {
    undertick_reproduce::ping_pong::partner()
        .map_err(|e| Failure::machine(format!("the second process of the experiment: {e}")))?;
    Ok(0)
}
