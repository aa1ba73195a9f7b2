//! The command line: names and options are fixed, other programs call them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::sizes;

/// Measures time on machines with many processors, and says how wrong it may be.
#[derive(Parser)]
#[command(name = "undertick", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Record(Record),
}

/// Run an instrumented program and keep what it records
#[derive(Args)]
#[command(after_help = "Example:\n  undertick record -o run.ut -- ./server --port 8080\n  undertick report run.ut\n\n\
    The exit status is the program's. Ctrl-C ends the program and leaves a readable trace; a second\n\
    Ctrl-C stops waiting for it.")]
pub struct Record {
    /// Trace directory to make [default: PROGRAM.ut, with a number if that exists]
    #[arg(short, long, value_name = "NAME.ut")]
    pub output: Option<PathBuf>,
    /// TOML file with event names: [names] then NUMBER = "name"
    #[arg(long, value_name = "EVENTS.toml")]
    pub events: Option<PathBuf>,
    /// What to do when a ring is full
    #[arg(long, value_enum, default_value = "grow")]
    pub overflow: Overflow,
    /// First size of each thread's ring
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = sizes::parse)]
    pub ring: u64,
    /// Most memory for all rings together [default: 1 GiB, or half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub budget: Option<u64>,
    /// Program and arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Overflow {
    /// Take more memory, up to the budget; then drop
    Grow,
    /// Drop the new event
    Drop,
    /// Give up the oldest events (keeps the last seconds)
    Overwrite,
    /// Wait for the recorder (slows the program)
    Block,
}

impl From<Overflow> for undertick_trace::Overflow {
    fn from(overflow: Overflow) -> Self {
        match overflow {
            Overflow::Grow => Self::Grow,
            Overflow::Drop => Self::Drop,
            Overflow::Overwrite => Self::Overwrite,
            Overflow::Block => Self::Block,
        }
    }
}
