//! Reproduces published figures: as printed, by formula, simulated, and measured on this machine.
//!
//! **Question.** Do the tables of the sources follow from their stated assumptions, and what do the
//! same experiments give on this machine, where a fine clock shows the truth beside the slow one?
//!
//! *Measuring with Slow Clocks* (Beilner 1988, ICSI TR-88-003): its tables are recomputed from the
//! printed counts and formulas. Its experiment, in which two processes pass a message to and fro
//! with twelve measuring points, runs here over a Unix socket ([`ping_pong`]). The experiments of
//! *Timing test of New Traffic Controller* ([`traffic`]) and of *Hardware-Assisted Multiprocessor
//! Performance Measurements* ([`trams`]) are ordinary scripts; those of *Measuring Time in Cm\**
//! ([`cmstar`]) run on a simulated machine.
//!
//! **Caveats.** Measurements here are of this kernel, not of DASH on a Sun 3. The four intervals of
//! user code do counted work of the published duration; the eight of the kernel take the time that
//! this kernel needs.

pub mod cmstar;
mod compared;
mod dash;
pub mod interference;
#[cfg(test)]
mod invented;
mod inventory;
pub mod ping_pong;
mod simulated;
mod tables;
pub mod traffic;
pub mod trams;
mod verdict;

use std::ffi::OsString;

use undertick_report::reproduce::Reproduction;

pub use inventory::conclude;

use ping_pong::{Failed, Setup};

/// How much of an experiment to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Enough repetitions for order statistics.
    Full,
    /// A few short repetitions.
    Quick,
}

/// Combines several sources into one document.
#[must_use]
pub fn joined(all: Vec<Reproduction>) -> Option<Reproduction> {
    all.into_iter().reduce(|mut whole, one| {
        whole.source = format!("{}+{}", whole.source, one.source);
        whole.title = format!("{}; {}", whole.title, one.title);
        whole.tables_and_figures.extend(one.tables_and_figures);
        whole.items.extend(one.items);
        whole.tables.extend(one.tables);
        whole.plots.extend(one.plots);
        whole.findings.extend(one.findings);
        whole.interrupted |= one.interrupted;
        whole
    })
}

/// What to reproduce.
#[derive(Clone, Debug)]
pub struct Request {
    /// Cycles of a repetition of the experiment; 10 000 in the source.
    pub cycles: u64,
    /// Repetitions; 10 in the source.
    pub repetitions: u64,
    /// Level of the intervals.
    pub level: f64,
    /// A command that must call [`ping_pong::partner`] in its own process.
    pub partner_command: Vec<OsString>,
}

/// Approximate duration of [`slow_clock`], s: the user code of a cycle takes 607 us, and the
/// kernel's part some tens of microseconds.
#[must_use]
pub fn expected_seconds(request: &Request) -> f64 {
    let user_s: f64 = ping_pong::USER_NS.iter().sum::<f64>() / 1e9;
    let cycles = request.cycles + ping_pong::WARM_UP;
    (request.repetitions * cycles) as f64 * (user_s + 30e-6)
}

/// Reproduces `slow-clock`. Calls `go_on` with the share done so far; when it returns false the
/// experiment ends with the complete repetitions.
///
/// # Errors
/// The experiment could not be run on this machine.
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
        interrupted: run.interrupted,
        ..Reproduction::new(
            "slow-clock",
            "Heinz Beilner, Measuring with Slow Clocks, ICSI TR-88-003, 1988",
        )
    };
    tables::required_cycles(&mut found);
    tables::bounds(&mut found, run.clock_share);
    dash::published_and_measured(&mut found, &run, request.level);
    Ok(found)
}
