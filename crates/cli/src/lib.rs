//! The command line of Undertick: parses, calls, prints. It is a library, because the Python
//! package uses it, too (`python -m undertick`).

/// Prints a line on standard error, whatever the user wants to hear: an error, or a loss. It is
/// cleaned of characters that steer the terminal, because it may contain names and contents of files.
/// A write that fails, as when a terminal is closed, is ignored.
macro_rules! alert {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($text)*);
        let _ = writeln!(std::io::stderr(), "{}", undertick_text::clean_lines(&text));
    }};
}

/// As `alert`, but not with `--quiet`.
macro_rules! say {
    ($($text:tt)*) => {{
        if !crate::output::is_quiet() {
            alert!($($text)*);
        }
    }};
}

mod args;
mod bench;
mod calibrate;
mod clock;
mod compare;
mod config;
mod demo;
mod described;
mod doctor;
#[cfg(test)]
mod documented;
mod estimate;
mod experiment;
mod explain;
mod export;
mod front;
mod header;
mod history;
mod import;
mod interference;
mod interposed;
mod live;
mod merge;
mod metrics;
mod options;
mod output;
mod passes;
mod progress;
mod recording;
mod reporting;
mod reproduce;
mod runs;
mod sample;
mod schema;
mod sizes;
mod slow;
mod snapshot;
mod sql;
mod stacks;
mod survey;

mod sync;
mod tasks;

use std::ffi::OsString;
use std::io::Write;
use std::sync::OnceLock;

use args::Command;
use front::Asked;

/// The differences between the programs that have this command line.
#[derive(Clone, Debug)]
pub struct Own {
    /// The words that start it again, for the processes that some commands need beside them: the
    /// program's file, or an interpreter and its options.
    pub words: Vec<OsString>,
    /// The workload that measures the cost of recording, given its passes and whether functions are
    /// recorded. It is compiled like the programs that this one records, as a program or as a
    /// library.
    pub calibration: fn(u32, bool),
}

static OWN: OnceLock<Own> = OnceLock::new();

/// Runs a command line, whose first word is the program's name. Returns the exit status: 0 done, 1
/// the measurement could not be made as asked, 2 wrong usage or bad input, otherwise that of the
/// recorded program.
///
/// Call it in a process that does nothing else: it takes the process's signals and children, and
/// the first call's `own` counts for the life of the process.
pub fn run<I>(words: I, own: Own) -> u8
where
    I: IntoIterator<Item: Into<OsString> + Clone>,
{
    let _ = OWN.set(own);
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let words = match front::with_defaults(words) {
        Ok(words) => words,
        Err(failure) => {
            alert!("undertick: {}", output::shortened(&failure.text));
            return failure.status;
        }
    };
    let asked = match front::parse(&words) {
        Ok(asked) => asked,
        Err(error) => {
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let done = match asked {
        Asked::Command(arguments) => {
            output::set_manners(arguments.manners);
            perform(arguments.command)
        }
        Asked::Program(manners, program) => {
            output::set_manners(manners);
            front::record_and_report(&program)
        }
        Asked::Versions => front::versions(),
    };
    let status = match done {
        Ok(status) => status,
        Err(failure) => {
            alert!("undertick: {}", output::shortened(&failure.text));
            failure.status
        }
    };
    // Only a program written in Rust flushes it at its end.
    let _ = std::io::stdout().flush();
    status
}

/// Returns the words that start this command line with one of its hidden commands.
fn own_command(hidden: &str) -> Vec<OsString> {
    let own = OWN.get();
    let mut words = own.map_or_else(Vec::new, |own| own.words.clone());
    words.push(hidden.into());
    words
}

fn perform(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Demo(demo) => demo::run(demo),
        Command::Record(record) => recording::run(record),
        Command::Live(live) => live::run(live),
        Command::Report(report) => reporting::run(&report),
        Command::Explain(explain) => explain::run(&explain),
        Command::Stacks(of) => stacks::run(&of),
        Command::Locks(of) => interposed::locks(&of),
        Command::Allocations(of) => interposed::allocations(&of),
        Command::Tasks(of) => tasks::tasks(&of),
        Command::Export(export) => export::run(&export),
        Command::Import(import) => import::run(&import),
        Command::Sync(sync) => sync::run(&sync),
        Command::Merge(merge) => merge::run(&merge),
        Command::Header(header) => header::run(&header),
        Command::Schema(schema) => schema::run(&schema),
        Command::Completions(completions) => described::completions(&completions),
        Command::Man(man) => described::man(&man),
        Command::Calibrate(calibrate) => calibrate::run(&calibrate),
        Command::Estimate(estimate) => estimate::run(&estimate),
        Command::Sample(sample) => sample::run(&sample),
        Command::Snapshot(what) => snapshot::run(&what),
        Command::Slow(slow) => slow::run(&slow),
        Command::Clock(clock) => clock::run(&clock),
        Command::Doctor(doctor) => doctor::run(&doctor),
        Command::Survey(survey) => survey::run(&survey),
        Command::Compare(compare) => compare::run(&compare),
        Command::Bench(what) => bench::run(&what),
        Command::History(what) => history::run(&what),
        Command::Reproduce(what) => reproduce::run(&what),
        Command::ReproducePartner => reproduce::partner(),
        Command::ReproduceLoops => reproduce::loops(),
        Command::Sql(sql) => sql::run(&sql),
        Command::Run(run) => experiment::run(&run),
        Command::Primitives(primitives) => experiment::primitives(&primitives),
        Command::Interference(what) => interference::run(&what),
        Command::Probe(file) => interference::probe(&file),
        Command::Driver(files) => experiment::drive(&files),
        Command::DemoWorkload => demo::workload(),
        Command::CalibrationWorkload { passes, functions } => {
            OWN.get()
                .inspect(|own| (own.calibration)(passes, functions));
            Ok(0)
        }
    }
}

/// Why a command could not do its work.
pub struct Failure {
    /// 1: the measurement could not be made as asked; 2: wrong usage or input.
    status: u8,
    text: String,
}

impl Failure {
    /// Returns a failure of wrong usage or bad input.
    fn usage(text: impl ToString) -> Self {
        Self {
            status: 2,
            text: text.to_string(),
        }
    }

    /// Returns a failure of the machine: the input was right, but it could not be done here.
    fn machine(text: impl ToString) -> Self {
        Self {
            status: 1,
            text: text.to_string(),
        }
    }
}

impl From<undertick_analyze::Error> for Failure {
    fn from(error: undertick_analyze::Error) -> Self {
        Self::usage(error)
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

impl From<undertick_format::TraceError> for Failure {
    fn from(error: undertick_format::TraceError) -> Self {
        Self {
            status: error.exit_status() as u8,
            text: error.to_string(),
        }
    }
}
