//! `undertick calibrate`.

use std::sync::atomic::Ordering;

use clap::Args;
use undertick_calibrate::zero_test::{self, Failure as TestFailure, Load, Request};
use undertick_clock::{ClockId, Source};
use undertick_report::calibrate;

use crate::Failure;
use crate::output;
use crate::progress::Progress;

/// Zero-elapsed-time test of every compensation method on a clock: bias, k, choice
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick calibrate\n  undertick calibrate --clock monotonic --load self:2\n  \
    undertick calibrate --load load.toml --json | jq .chosen\n\n\
    load.toml holds one table [[process]] for each command to run beside the test:\n  \
    [[process]]\n  command = [\"stress-ng\", \"--vm\", \"1\"]\n  copies = 1"
)]
pub struct Calibrate {
    /// Clock to test [default: the one that recordings use]
    #[arg(long, value_name = "NAME")]
    pub clock: Option<String>,
    /// Load beside the test: none, self:N (N replicas of the test), a file of commands
    #[arg(long, value_name = "LOAD", default_value = "none")]
    pub load: String,
    /// Level of the confidence intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    pub confidence: f64,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

pub fn run(arguments: &Calibrate) -> Result<u8, Failure> {
    let clock = match &arguments.clock {
        Some(name) => name.parse::<ClockId>().map_err(Failure::usage)?,
        None => {
            undertick_clock::choose_from_environment()
                .map_err(Failure::usage)?
                .clock
        }
    };
    let clock = Source::open(clock)
        .map_err(|why| Failure::machine(format!("the clock {clock} cannot be used here: {why}")))?;
    let load: Load = arguments.load.parse().map_err(Failure::usage)?;
    let request = Request {
        level: output::level(arguments.confidence)?,
        ..Request::new(clock, load)
    };
    let stop = output::stop_on_signals();
    let mut progress = Progress::new();
    let result = zero_test::run(&request, |share| {
        progress.share("measuring nothing", share);
        !stop.load(Ordering::Relaxed)
    });
    progress.done();
    let outcome = result.map_err(failure)?;
    let document = outcome.document(&request);
    output::document(arguments.json, &document, || {
        calibrate::render(&document, 100)
    })
}

fn failure(failure: TestFailure) -> Failure {
    Failure {
        status: match &failure {
            TestFailure::Load(error) if error.usage => 2,
            TestFailure::Interrupted => 130,
            _ => 1,
        },
        text: failure.to_string(),
    }
}
