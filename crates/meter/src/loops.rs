//! Successive events in a straight row and in loops, as in the first measurements of TRAMS: twelve
//! cells of four constructs and three arguments.
//!
//! **Question.** What does recording an event cost, and what does the turn of a loop cost around it?
//!
//! **Method.** *Hardware-Assisted Multiprocessor Performance Measurements* (NBSIR 87-3585, section
//! 3): a program does nothing but record events, and the interval from one to the next is the time
//! of a record, with a turn of the loop around it. Intervals over four times the minimum are
//! dropped. Each cell has its own event number, so one recording holds all.
//!
//! **Caveats.** A compiler of today may make the three loops the same. Where the clock moves in
//! steps as long as a record, an interval is a few steps, and only the mean is fine.

use std::ffi::OsString;
use std::hint::black_box;
use std::path::PathBuf;

use undertick_analyze::{Compensate, Cull, Options, analyze};
use undertick_clock::Choice;
use undertick_clock::facts::Facts;
use undertick_document::Report;
use undertick_experiment::ExperimentError;
use undertick_format::read::Trace;
use undertick_record::kernel;
use undertick_record::record::{Request as Recording, record};
use undertick_record::session::Settings;

/// What is around a record.
pub const CONSTRUCTS: [&str; 4] = ["straight", "do-while", "while", "for"];
/// The argument of a record.
pub const ARGUMENTS: [&str; 3] = ["constant", "variable", "constant or variable"];

/// Number of events of a cell.
const EVENTS: u32 = 32_000;
/// Number of records in a row, in the straight construct.
const ROW: u32 = 32;
/// Intervals over this many times the minimum are dropped, as in the source.
const RATIO: f64 = 4.0;

/// What to measure with.
#[derive(Clone, Debug)]
pub struct Request {
    /// A command that must call [`perform`] in its own process.
    pub command: Vec<OsString>,
    /// The recording clock.
    pub choice: Choice,
    /// Facts about that clock.
    pub facts: Facts,
    /// Trace directory to create.
    pub trace: PathBuf,
    /// Level of the intervals.
    pub level: f64,
}

/// The name of a cell, which is that of its events.
#[must_use]
pub fn name(construct: &str, argument: &str) -> String {
    format!("{construct}, {argument}")
}

/// The name of the interval between the events of a cell, in the report of [`measure`].
#[must_use]
pub fn interval_name(construct: &str, argument: &str) -> String {
    format!("{} (period)", name(construct, argument))
}

/// Records the loops, and analyses the intervals between their events; each cell has the interval
/// of its [`interval_name`].
///
/// # Errors
/// The program could not be recorded, or its trace cannot be analysed.
pub fn measure(request: Request) -> Result<Report, ExperimentError> {
    let machine_error = |e: &dyn std::fmt::Display| ExperimentError::machine(e.to_string());
    let recording = Recording {
        trace: request.trace.clone(),
        command: request.command,
        settings: Settings::growing(request.choice.clock),
        choice: request.choice,
        facts: request.facts,
        calibration: None,
        names: Vec::new(),
        kernel: kernel::Wanted::Off,
        stacks: None,
        perturbation: None,
        triggers: None,
        functions: None,
        with: Vec::new(),
    };
    record(recording, &mut |_| {})?;
    let trace = Trace::open(&request.trace).map_err(|e| machine_error(&e))?;
    let options = Options {
        table: None,
        cull: Cull::Ratio(RATIO),
        compensate: Compensate::None,
        confidence: request.level,
    };
    analyze(&trace, options, &mut |_| {}).map_err(|e| machine_error(&e))
}

/// The recorded program.
pub fn perform() {
    let mut number = 0;
    for construct in CONSTRUCTS {
        for argument in ARGUMENTS {
            number += 1;
            undertick::name(number, &name(construct, argument));
            match argument {
                "constant" => cell(construct, number, |_| 0xfa),
                "variable" => cell(construct, number, |q| q),
                _ => cell(construct, number, |q| q | 0xfa),
            }
        }
    }
}

/// Records the events of one cell.
#[inline(never)]
fn cell(construct: &str, number: u16, argument: impl Fn(u32) -> u32) {
    match construct {
        "straight" => {
            for _ in 0..EVENTS / ROW {
                let q = black_box(7);
                macro_rules! row {
                    ($($n:literal)*) => { $( let _ = $n; undertick::event(number, argument(q)); )* };
                }
                row!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
            }
        }
        "do-while" => {
            let mut q = black_box(EVENTS);
            loop {
                undertick::event(number, argument(q));
                q -= 1;
                if q == 0 {
                    break;
                }
            }
        }
        "while" => {
            let mut q = black_box(EVENTS);
            while q > 0 {
                q -= 1;
                undertick::event(number, argument(q));
            }
        }
        _ => {
            for i in 1..=black_box(EVENTS) {
                undertick::event(number, argument(i));
            }
        }
    }
}
