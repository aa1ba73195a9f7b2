//! `undertick clock`.

use clap::Args;
use undertick_report::audit;

use crate::Failure;
use crate::output;
use crate::progress::Progress;

/// Audit every clock here: step, read cost, CPUs apart, rate, wrap; which to use
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick clock\n  undertick clock --json | jq '.clocks[] | {name, granularity_ns}'\n\n\
    Takes about three seconds and keeps every CPU busy for parts of them."
)]
pub struct Clock {
    /// Level of the confidence intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    pub confidence: f64,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

pub fn run(arguments: &Clock) -> Result<u8, Failure> {
    let level = output::level(arguments.confidence)?;
    let mut progress = Progress::new();
    let found =
        undertick_calibrate::audit::run(level, |share| progress.share("reading clocks", share));
    progress.done();
    output::document(arguments.json, &found, || audit::render(&found, 110))
}
