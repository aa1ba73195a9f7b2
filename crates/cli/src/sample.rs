//! Rates of sampled spans: `undertick record --sample`, and `undertick sample` while a program
//! runs.

use std::path::PathBuf;

use clap::Args;
use undertick_format::manifest::Name;
use undertick_format::read;
use undertick_record::names;
use undertick_record::sampled::{Rate, change_rate};
use undertick_record::session::of_recording;

use crate::Failure;

/// Largest rate that fits into a ring.
const MOST: u32 = 65_535;

/// Change how many sampled spans are recorded, while the program runs
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick sample run.ut parse=4   (one in 4 of the spans of `parse`)\n  \
    undertick sample run.ut 100       (one in 100 of all that have no rate of their own)\n\n\
    A change holds from the next recorded span on. The program can no longer change a\n\
    rate that was set here or with --sample."
)]
pub struct Sample {
    /// Trace directory of the running recording
    #[arg(value_name = "NAME.ut")]
    pub trace: PathBuf,
    /// Record one in N spans, N from 1 to 65535, of an event by number or name
    #[arg(value_name = "[EVENT=]N", required = true)]
    pub rates: Vec<String>,
}

pub fn run(arguments: &Sample) -> Result<u8, Failure> {
    let manifest = read::read_manifest(&arguments.trace)?;
    if manifest.session.is_none() {
        let trace = arguments.trace.display();
        return Err(Failure::usage(format!(
            "{trace}: not being recorded any more; give --sample to `undertick record` for the next one"
        )));
    }
    let session = of_recording(&arguments.trace, &manifest)?;
    let mut known = names::read(&session).events;
    known.extend(manifest.names);
    for rate in rates(&arguments.rates, &known)? {
        change_rate(&session, rate)?;
    }
    Ok(0)
}

/// Parses `EVENT=N` or `N`, with the event given by its number or by one of these names.
pub fn rates(texts: &[String], known: &[Name]) -> Result<Vec<Rate>, Failure> {
    texts.iter().map(|text| rate(text, known)).collect()
}

fn rate(text: &str, known: &[Name]) -> Result<Rate, Failure> {
    let (event, number) = match text.rsplit_once('=') {
        Some((event, number)) => (Some(event), number),
        None => (None, text),
    };
    let one_in = (number.parse().ok())
        .filter(|n| (1..=MOST).contains(n))
        .ok_or_else(|| {
            Failure::usage(format!(
                "{text}: one in how many is a number from 1 to {MOST}, as in parse=16 or 16"
            ))
        })?;
    let event = event.map(|event| match event.parse() {
        Ok(number) => Ok(number),
        Err(_) => (known.iter().find(|name| name.name == event))
            .map(|name| name.event)
            .ok_or_else(|| {
                Failure::usage(format!(
                    "{text}: no event {event:?} is known; give its number, 0 to 65535, or its name in --events"
                ))
            }),
    });
    Ok(Rate {
        event: event.transpose()?,
        one_in,
    })
}

#[cfg(test)]
mod tests;
