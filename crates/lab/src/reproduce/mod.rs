//! The published figures again: as printed, by formula, simulated, measured here.
//!
//! **Question.** Do the tables of the sources follow from what they say they
//! follow from, and what do the same experiments give on this machine, where a
//! fine clock tells the truth beside the slow one?
//!
//! *Measuring with Slow Clocks* (Beilner 1988, ICSI
//! TR-88-003). Its tables are recomputed from the printed counts and formulas;
//! its experiment, two processes that pass a message to and fro with twelve
//! measuring points, runs here over a Unix socket ([`ping_pong`]). The experiments of
//! *Timing test of New Traffic Controller* ([`traffic`]) and of *Hardware-Assisted
//! Multiprocessor Performance Measurements* ([`trams`]) are scripts like any other;
//! those of *Measuring Time in Cm\** ([`cmstar`]) run on a simulated machine.
//!
//! **Caveats.** What is measured here is this kernel, not DASH on a Sun 3: the
//! four intervals of user code do counted work of the published length, the
//! eight of the kernel take what they take.

pub mod cmstar;
mod compared;
mod dash;
pub mod interference;
#[cfg(test)]
mod invented;
pub mod ping_pong;
mod simulated;
mod tables;
pub mod traffic;
pub mod trams;

use std::ffi::OsString;

use undertick_report::reproduce::Reproduction;

use ping_pong::{Failed, Setup};

/// How much of an experiment to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Repetitions enough for order statistics.
    Full,
    /// Few and short ones.
    Quick,
}

/// Several sources as one document.
#[must_use]
pub fn joined(all: Vec<Reproduction>) -> Option<Reproduction> {
    all.into_iter().reduce(|mut whole, one| {
        whole.source = format!("{}+{}", whole.source, one.source);
        whole.title = format!("{}; {}", whole.title, one.title);
        whole.items.extend(one.items);
        whole.tables.extend(one.tables);
        whole.plots.extend(one.plots);
        whole.findings.extend(one.findings);
        whole.interrupted |= one.interrupted;
        whole
    })
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// Cycles of a repetition of the experiment; 10 000 in the source.
    pub cycles: u64,
    /// Repetitions; 10 in the source.
    pub repetitions: u64,
    /// Level of the intervals.
    pub level: f64,
    /// A command that ends up in [`ping_pong::partner`], in a process of its own.
    pub partner_command: Vec<OsString>,
}

/// About how long [`slow_clock`] takes, s: the user code of a cycle takes
/// 607 us, and the kernel's part some tens of microseconds.
#[must_use]
pub fn expected_seconds(request: &Request) -> f64 {
    let user_s: f64 = ping_pong::USER_NS.iter().sum::<f64>() / 1e9;
    let cycles = request.cycles + ping_pong::WARM_UP;
    (request.repetitions * cycles) as f64 * (user_s + 30e-6)
}

/// Reproduces `slow-clock`. `go_on` hears the share done so far; when it
/// returns false the experiment ends with the repetitions that are complete.
///
/// # Errors
/// The experiment could not be run here.
pub fn slow_clock(
    request: &Request,
    go_on: impl FnMut(f64) -> bool + Send,
) -> Result<Reproduction, Failed> {
    let run = ping_pong::run(
        &Setup {
            cycles: request.cycles,
            repetitions: request.repetitions,
            tick_ns: 1_000_000,
            partner_command: request.partner_command.clone(),
        },
        go_on,
    )?;
    let mut found = Reproduction {
        schema_version: 1,
        source: "slow-clock".to_owned(),
        title: "Heinz Beilner, Measuring with Slow Clocks, ICSI TR-88-003, 1988".to_owned(),
        items: Vec::new(),
        tables: Vec::new(),
        plots: Vec::new(),
        findings: Vec::new(),
        interrupted: run.interrupted,
    };
    tables::required_cycles(&mut found);
    tables::bounds(&mut found, run.clock_share);
    dash::published_and_measured(&mut found, &run, request.level);
    Ok(found)
}
