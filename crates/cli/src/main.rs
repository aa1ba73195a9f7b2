//! `undertick`: parses, calls, prints.

mod args;
mod calibrate;
mod clock;
mod compare;
mod demo;
mod estimate;
mod experiment;
mod export;
mod header;
mod interference;
mod output;
mod passes;
mod progress;
mod recording;
mod reporting;
mod reproduce;
mod sample;
mod sizes;
mod slow;
mod survey;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Demo(demo) => demo::run(demo),
        Command::Record(record) => recording::run(record),
        Command::Report(report) => reporting::run(&report),
        Command::Export(export) => export::run(&export),
        Command::Header(header) => header::run(&header),
        Command::Calibrate(calibrate) => calibrate::run(&calibrate),
        Command::Estimate(estimate) => estimate::run(&estimate),
        Command::Sample(sample) => sample::run(&sample),
        Command::Slow(slow) => slow::run(&slow),
        Command::Clock(clock) => clock::run(&clock),
        Command::Survey(survey) => survey::run(&survey),
        Command::Compare(compare) => compare::run(&compare),
        Command::Reproduce(what) => reproduce::run(&what),
        Command::ReproducePartner => reproduce::partner(),
        Command::Run(run) => experiment::run(&run),
        Command::Primitives(primitives) => experiment::primitives(&primitives),
        Command::Interference(what) => interference::run(&what),
        Command::Probe(file) => interference::probe(&file),
        Command::Conductor(files) => experiment::conduct(&files),
        Command::DemoWorkload => demo::workload(),
        Command::CalibrationWorkload => {
            undertick_lab::calibration::workload();
            Ok(0)
        }
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprintln!("undertick: {}", failure.text);
            ExitCode::from(failure.status)
        }
    }
}

/// Why a command could not do what it was asked.
pub struct Failure {
    /// 1: the measurement could not be made as asked; 2: wrong usage or input.
    status: u8,
    text: String,
}

impl Failure {
    /// Wrong usage or bad input.
    fn usage(text: impl ToString) -> Self {
        Self {
            status: 2,
            text: text.to_string(),
        }
    }
}

impl From<undertick_analyze::Failed> for Failure {
    fn from(failed: undertick_analyze::Failed) -> Self {
        match failed {
            undertick_analyze::Failed::Trace(error) => error.into(),
            undertick_analyze::Failed::Analysis(error) => error.into(),
        }
    }
}

impl From<undertick_analyze::Error> for Failure {
    fn from(error: undertick_analyze::Error) -> Self {
        Self::usage(error)
    }
}

impl From<undertick_trace::TraceError> for Failure {
    fn from(error: undertick_trace::TraceError) -> Self {
        Self {
            status: error.exit_status() as u8,
            text: error.to_string(),
        }
    }
}
