//! The command line. Names and options are fixed, because other programs call them.

use clap::{Parser, Subcommand};

use crate::options::{Demo, Export, Header, Record, Report};
use crate::output::Manners;

/// Measures time on machines with many processors, and says how wrong it may be.
#[derive(Parser)]
#[command(
    name = "undertick",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Arguments {
    #[command(flatten)]
    pub manners: Manners,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Demo(Demo),
    Record(Record),
    Live(crate::live::Live),
    Report(Report),
    Explain(crate::explain::Explain),
    Stacks(crate::stacks::StacksArguments),
    Locks(crate::interposed::LocksArguments),
    Allocations(crate::interposed::AllocationsArguments),
    Tasks(crate::tasks::TasksArguments),
    Export(Export),
    Import(crate::import::Import),
    Sync(crate::sync::Sync),
    Merge(crate::merge::Merge),
    Header(Header),
    Calibrate(crate::calibrate::Calibrate),
    Estimate(crate::estimate::Estimate),
    Clock(crate::clock::Clock),
    Doctor(crate::doctor::Doctor),
    Sample(crate::sample::Sample),
    Snapshot(crate::snapshot::Snapshot),
    Slow(crate::slow::Slow),
    Run(crate::experiment::Run),
    Primitives(crate::experiment::Primitives),
    Interference(crate::interference::Interference),
    Survey(crate::survey::Survey),
    Compare(crate::compare::Compare),
    Bench(crate::bench::Bench),
    History(crate::history::History),
    Sql(crate::sql::Sql),
    Reproduce(crate::reproduce::Reproduce),
    Schema(crate::schema::Schema),
    Completions(crate::described::Completions),
    Man(crate::described::Man),
    /// The probe of `undertick interference`
    #[command(hide = true, name = crate::interference::PROBE)]
    Probe(crate::interference::Probe),
    /// The second process of the experiment of `undertick reproduce slow-clock`
    #[command(hide = true, name = crate::reproduce::PARTNER)]
    ReproducePartner,
    /// Records events in loops; recorded by `undertick reproduce trams`
    #[command(hide = true, name = crate::reproduce::LOOPS)]
    ReproduceLoops,
    /// Performs an experiment; recorded by `undertick run`
    #[command(hide = true, name = crate::experiment::DRIVER)]
    Driver(crate::experiment::DriverFiles),
    /// The workload of the demo, recorded by `undertick demo`
    #[command(hide = true, name = "__demo-workload")]
    DemoWorkload,
    /// The workload of the calibration, recorded by `undertick record`
    #[command(hide = true, name = "__calibration-workload")]
    CalibrationWorkload {
        /// Number of passes
        #[arg(default_value_t = undertick_calibrate::calibration::PASSES)]
        passes: u32,
        /// Record functions
        #[arg(long)]
        functions: bool,
    },
}
