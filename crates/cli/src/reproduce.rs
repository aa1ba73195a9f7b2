//! `undertick reproduce`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::{Args, ValueEnum};
use undertick_lab::reproduce::{self, Request};
use undertick_report::html;
use undertick_report::reproduce::render;

use crate::Failure;
use crate::output;
use crate::progress::Progress;

/// The hidden command of the experiment's second process.
pub const PARTNER: &str = "__reproduce-partner";

/// Published tables again: as printed, by formula, simulated, measured here
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick reproduce slow-clock --html slow-clock.html\n  \
    undertick reproduce slow-clock --quick --json | jq '.items[] | {id, published, formula}'\n\n\
    slow-clock runs an experiment of about a minute (--quick: two seconds). Ctrl-C ends it and gives\n\
    what the complete repetitions say."
)]
pub struct Reproduce {
    /// Which source
    #[arg(value_enum)]
    source: Source,
    /// A shorter experiment: 4 repetitions of 500 cycles instead of 10 of 10 000
    #[arg(long)]
    quick: bool,
    /// Level of the intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    confidence: f64,
    /// Write a self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Source {
    /// Measuring Time in Cm* (1986): not there yet
    Cmstar,
    /// Measuring with Slow Clocks (1988)
    SlowClock,
    /// Hardware-Assisted Multiprocessor Performance Measurements (1987): not there yet
    Trams,
    /// Measurements of Memory Interference (1971): not there yet
    Interference,
    /// Timing test of New Traffic Controller: not there yet
    Traffic,
    /// Those that are there
    All,
}

/// Sources that this version cannot reproduce.
const MISSING: &str = "cmstar, trams, interference and traffic";

pub fn run(arguments: &Reproduce) -> Result<u8, Failure> {
    match arguments.source {
        Source::SlowClock => slow_clock(arguments),
        Source::All => {
            eprintln!("undertick: {MISSING} cannot be reproduced yet; reproducing slow-clock");
            slow_clock(arguments)
        }
        missing => {
            let name = missing.to_possible_value();
            let name = name.as_ref().map_or("it", |v| v.get_name());
            Err(Failure::usage(format!(
                "{name} cannot be reproduced by this version yet; there is slow-clock"
            )))
        }
    }
}

fn slow_clock(arguments: &Reproduce) -> Result<u8, Failure> {
    let level = output::level(arguments.confidence)?;
    let cannot = |text: String| Failure { status: 1, text };
    let program = std::env::current_exe()
        .map_err(|e| cannot(format!("the path of this program is not known: {e}")))?;
    let (cycles, repetitions) = if arguments.quick {
        (500, 4)
    } else {
        (10_000, 10)
    };
    let request = Request {
        cycles,
        repetitions,
        level,
        partner_command: vec![program.into_os_string(), OsString::from(PARTNER)],
    };
    eprintln!(
        "{repetitions} repetitions of {cycles} cycles: about {:.0} s",
        reproduce::expected_seconds(&request)
    );
    let stop = output::stop_on_signals();
    let mut progress = Progress::new();
    let result = reproduce::slow_clock(&request, |share| {
        progress.share("measuring", share);
        !stop.load(Ordering::Relaxed)
    });
    progress.done();
    let mut found = result.map_err(|e| cannot(e.to_string()))?;
    if arguments.source == Source::All {
        (found.findings).push(format!("not reproduced yet: {MISSING}"));
    }
    if let Some(path) = &arguments.html {
        std::fs::write(path, html::reproduce::render(&found))
            .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    }
    output::document(arguments.json, &found, || render(&found, COLUMNS))?;
    Ok(if found.interrupted { 130 } else { 0 })
}

/// Room for the widest table.
const COLUMNS: usize = 132;

/// The experiment's second process.
pub fn partner() -> Result<u8, Failure> {
    reproduce::ping_pong::partner().map_err(|e| Failure {
        status: 1,
        text: format!("the second process of the experiment: {e}"),
    })?;
    Ok(0)
}
