//! `undertick compare`.

use std::path::PathBuf;

use clap::Args;
use undertick_lab::compare as lab;
use undertick_report::compare;

use crate::Failure;
use crate::output;

/// Two surveys, or two reports as JSON, beside each other: what differs and by how much
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick survey --json > a.json   # and b.json on another machine, or another day\n  \
    undertick compare a.json b.json\n  \
    undertick compare a.json b.json --json | jq '.rows[] | select(.verdict == \"slower\") | .id'\n\n\
    A and B are files that `undertick survey --json`, `undertick primitives --json` or `undertick report --json`\n\
    printed, both of one kind. The exit status is 0 whatever differs."
)]
pub struct Compare {
    /// The first: all is stated against it
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The second
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Level of the intervals; of what is called different, the rest at most is not
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    pub confidence: f64,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

pub fn run(arguments: &Compare) -> Result<u8, Failure> {
    let level = output::level(arguments.confidence)?;
    let a = lab::read(&arguments.a).map_err(Failure::usage)?;
    let b = lab::read(&arguments.b).map_err(Failure::usage)?;
    let found = lab::compare(a, b, level).map_err(Failure::usage)?;
    output::document(arguments.json, &found, || compare::render(&found, 110))
}
