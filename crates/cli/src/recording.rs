//! `undertick record`.

mod calibrating;
mod summary;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use undertick_clock::{Choice, Source, facts};
use undertick_convert::import::card::{Card, Device, record_card};
use undertick_format::input::{self, Kind};
use undertick_format::manifest::{Exit, Manifest, Name, Part};
use undertick_record::attach::{self, Attach, attach_watched, command_of};
use undertick_record::functions::Functions;
use undertick_record::interposed::{self, Library};
use undertick_record::kernel::{MIN_EVERY, Opening, Wanted as KernelWanted};
use undertick_record::perturbation::Wanted;
use undertick_record::record::{RecordingProgress, Request, With, record_with};
use undertick_record::session::Settings;
use undertick_record::triggers::Triggers;
use undertick_trigger::{Rule, Watch};

use crate::Failure;
use crate::metrics::Metrics;
use crate::options::{Interposed, Overflow, Record, Recording};
use crate::progress::Progress;
use crate::runs;

pub use calibrating::{calibrate, calibrate_again, calibrate_now};
use calibrating::{calibrate_functions, is_kept};
pub use summary::summary;

pub fn run(arguments: Record) -> Result<u8, Failure> {
    if let Some(trace) = &arguments.resume {
        return resume(trace);
    }
    if let Some(trace) = &arguments.finish {
        return finish(trace);
    }
    if let Some(runs) = arguments.runs {
        return runs::run(&arguments.recording, runs, arguments.apart);
    }
    if let Some(device) = arguments.recording.card.clone() {
        return card(&device, arguments.recording);
    }
    let prepared = prepare(arguments.recording)?;
    let mut metrics = (arguments.metrics.as_deref())
        .map(|path| Metrics::start(path, &prepared.request.trace))
        .transpose()?;
    let mut progress = Progress::new();
    let result = perform(prepared, With::default(), &mut |update| {
        if let Some(metrics) = &mut metrics {
            metrics.update(&update);
        }
        progress.update(update);
    });
    progress.done();
    if let Some(metrics) = metrics {
        let ended = result.as_ref().map(|ended| &ended.manifest);
        metrics.finish(ended.map_or((0, 0), |manifest| {
            // What a flight recorder has overwritten is not lost.
            let overwritten: u64 = manifest.rings.iter().map(|ring| ring.overwritten).sum();
            (manifest.events, manifest.lost.saturating_sub(overwritten))
        }));
    }
    result.map(|ended| ended.say())
}

/// Resumes a recording whose recorder was killed.
fn resume(trace: &Path) -> Result<u8, Failure> {
    let source =
        Source::open(undertick_record::resume::clock_of(trace)?).map_err(Failure::usage)?;
    let facts = facts_of(source)?;
    let mut progress = Progress::new();
    let result =
        undertick_record::resume::resume(trace, &facts, &mut |update| progress.update(update));
    progress.done();
    summary(trace, &result?);
    Ok(0)
}

/// Finalizes a recording whose recorder was killed, or turns raw blocks into Parquet.
fn finish(trace: &Path) -> Result<u8, Failure> {
    let mut progress = Progress::new();
    let result =
        undertick_record::finish::finish(trace, &mut |share| progress.share("finalizing", share));
    progress.done();
    summary(trace, &result?);
    Ok(0)
}

/// Records the stream of an event card, until the stream ends or a signal ends the recording.
fn card(device: &Path, arguments: Recording) -> Result<u8, Failure> {
    let names = names(arguments.events.as_deref())?;
    let trace = match arguments.output {
        Some(given) => given,
        None => free_name(device.as_os_str(), "ut"),
    };
    let stream = std::io::BufReader::with_capacity(1 << 16, Device::open(device)?);
    let card = Card {
        ticks_per_second: arguments.ticks_per_second,
        names,
    };
    let mut progress = Progress::new();
    let mut on_bytes = |bytes| progress.count(format!("{} records of the card", bytes / 16));
    let recorded = record_card(device, stream, card, &trace, &mut on_bytes);
    progress.done();
    summary(&trace, &recorded?);
    Ok(0)
}

/// A recording that is ready to begin.
pub struct Prepared {
    pub request: Request,
    /// The running program to attach to.
    pub attach: Option<Attach>,
    /// Events are stored as Parquet, whatever their number.
    pub as_parquet: bool,
    /// The kernel's trace buffers, which are opened while the rest is prepared.
    pub opening: Option<Opening>,
}

/// Prepares a recording from the options; measures the cost of recording.
pub fn prepare(arguments: Recording) -> Result<Prepared, Failure> {
    if arguments.card.is_some() {
        return Err(Failure::usage(
            "--card is for `undertick record` alone: record the card, then report",
        ));
    }
    match arguments.pid {
        Some(pid) => attach::check(pid)?, // before anything is measured
        None if arguments.length.is_some() => {
            return Err(Failure::usage(
                "--for is for a program that runs already: give --pid; one that is started is recorded until it ends",
            ));
        }
        None => {}
    }
    if !arguments.trigger.is_empty() && arguments.overflow != Overflow::Overwrite {
        return Err(Failure::usage(
            "--trigger keeps the last seconds of a flight recorder: add --overflow overwrite",
        ));
    }
    if arguments.trigger.len() > Watch::MOST_RULES {
        let most = Watch::MOST_RULES;
        return Err(Failure::usage(format!("--trigger: at most {most} rules")));
    }
    check_stacks(arguments.stacks, arguments.kernel.into())?;
    let names = names(arguments.events.as_deref())?;
    let trace = match &arguments.output {
        Some(given) => given.clone(),
        None => free_name(&program_name(&arguments), "ut"),
    };
    if trace.exists() {
        let name = trace.display();
        return Err(Failure::usage(format!(
            "{name}: exists already; remove it or give another name with -o"
        )));
    }
    if let Some(program) = arguments.command.first() {
        is_there(program)?;
    }
    let perturbation = (arguments.perturbation.as_deref())
        .map(|text| Wanted::parse(text, &names))
        .transpose()?;
    let functions = (arguments.functions.as_deref())
        .map(|filter| functions(&arguments.command[0], filter))
        .transpose()?;
    let with = libraries(&arguments.with);
    if !with.is_empty() {
        interposed::check(&arguments.command[0])?;
    }
    let mut names = names;
    names.extend(interposed::names(&with));
    let (choice, source) = source()?;
    let kernel = arguments.kernel.into();
    // A calibration must not find these buffers open: events take longer then.
    let measures = !arguments.no_calibration
        && (arguments.calibrate || !is_kept(&choice, kernel, functions.is_some()));
    let opening = match arguments.pid {
        None if !measures => Opening::begin(kernel, choice.clock),
        _ => None,
    };
    let facts = facts_of(source)?;
    let (mut calibration, warning) = if arguments.no_calibration {
        (None, None)
    } else {
        calibrate(&choice, &facts, kernel, arguments.calibrate)
    };
    let mut warnings: Vec<String> = warning.into_iter().collect();
    if let Some(calibration) = &mut calibration {
        if functions.is_some() {
            warnings.extend(calibrate_functions(calibration, &choice, &facts, kernel));
        } else {
            calibration.functions = None;
        }
    }
    for warning in warnings {
        say!("undertick: note: {warning}");
    }
    let request = Request {
        trace,
        command: arguments.command,
        settings: Settings {
            overflow: arguments.overflow.into(),
            ring_bytes: arguments.ring,
            budget_bytes: arguments.budget,
            clock: choice.clock,
            parent: None,
            rates: crate::sample::rates(&arguments.sample, &names)?,
        },
        choice,
        facts,
        calibration,
        names,
        kernel,
        stacks: arguments.stacks,
        perturbation,
        functions,
        with,
        triggers: triggers(
            arguments.trigger,
            arguments.keep,
            arguments.at_most,
            arguments.keep_total,
        ),
    };
    let length = arguments.length;
    Ok(Prepared {
        request,
        attach: arguments.pid.map(|pid| Attach { pid, length }),
        as_parquet: arguments.parquet,
        opening,
    })
}

/// The libraries that are asked for, once each.
fn libraries(with: &[Interposed]) -> Vec<Library> {
    let all = [
        (Interposed::Locks, Library::Locks),
        (Interposed::Malloc, Library::Malloc),
    ];
    (all.into_iter())
        .filter_map(|(asked, library)| with.contains(&asked).then_some(library))
        .collect()
}

/// Refuses samples that cannot be taken.
fn check_stacks(every: Option<Duration>, kernel: KernelWanted) -> Result<(), Failure> {
    let Some(every) = every else {
        return Ok(());
    };
    if kernel == KernelWanted::Off {
        return Err(Failure::usage(
            "--stacks comes with the kernel's events: leave out --kernel off",
        ));
    }
    if every < MIN_EVERY {
        return Err(Failure::usage(format!(
            "--stacks: the interval must be at least {} us; 1ms is usual",
            MIN_EVERY.as_micros()
        )));
    }
    Ok(())
}

fn triggers(
    rules: Vec<Rule>,
    (before, after): (Duration, Duration),
    at_most: (u32, Duration),
    most_bytes: u64,
) -> Option<Triggers> {
    (!rules.is_empty()).then_some(Triggers {
        rules,
        before,
        after,
        at_most,
        most_bytes: Some(most_bytes),
    })
}

/// A recording that is over.
pub struct Ended {
    trace: PathBuf,
    pub manifest: Manifest,
    is_attached: bool,
}

/// Records until the program, or its recording, has ended; then checks the cost of recording again.
pub fn perform(
    prepared: Prepared,
    mut with: With,
    progress: &mut dyn FnMut(RecordingProgress),
) -> Result<Ended, Failure> {
    let trace = prepared.request.trace.clone();
    let (choice, facts) = (prepared.request.choice, prepared.request.facts.clone());
    with.opening = prepared.opening;
    let mut manifest = match prepared.attach {
        Some(attach) => attach_watched(prepared.request, attach, with.watch, progress)?,
        None => record_with(prepared.request, with, progress)?,
    };
    calibrate_again(&trace, &mut manifest, &choice, &facts)?;
    if prepared.as_parquet && manifest.parts.iter().any(Part::has_raw_blocks) {
        manifest = undertick_record::finish::finish(&trace, &mut |share| {
            progress(RecordingProgress::Finalizing(share));
        })?;
    }
    Ok(Ended {
        trace,
        manifest,
        is_attached: prepared.attach.is_some(),
    })
}

impl Ended {
    /// Prints the summary; returns the exit status.
    pub fn say(&self) -> u8 {
        summary(&self.trace, &self.manifest);
        match self.is_attached {
            true => 0,
            false => status(self.manifest.exit),
        }
    }
}

/// Rejects a program that does not exist, before anything is measured for it.
pub fn is_there(program: &OsString) -> Result<(), Failure> {
    let is_path = program.as_encoded_bytes().contains(&b'/');
    let is_found = if is_path {
        Path::new(program).exists()
    } else {
        // If PATH is not set, the C library uses a default.
        std::env::var_os("PATH").is_none() || undertick_functions::before::find(program).is_some()
    };
    if is_found {
        return Ok(());
    }
    let mend = match program.as_encoded_bytes().first() {
        Some(b'-') => {
            "no such option; --help lists them (a program of that name is given by its path)"
        }
        _ => "no such program; give its path, or a name that is in PATH",
    };
    Err(Failure::usage(format!(
        "{}: {mend}",
        program.to_string_lossy()
    )))
}

/// Returns the program after which the trace is named.
fn program_name(arguments: &Recording) -> OsString {
    let running = arguments.pid.map(|pid| {
        let words = command_of(pid).unwrap_or_default();
        words
            .first()
            .map_or_else(|| format!("pid-{pid}"), Clone::clone)
    });
    running.map_or_else(|| arguments.command[0].clone(), Into::into)
}

/// Returns the functions that `--functions` selects; prints a note at once if that may record
/// little.
fn functions(program: &OsString, filter: &str) -> Result<Functions, Failure> {
    let filter = undertick_functions::filter(filter).map_err(Failure::usage)?;
    let functions = Functions::for_program(program, filter)?;
    if let Some(note) = functions.note() {
        say!("undertick: note: {note}");
    }
    Ok(functions)
}

/// Returns the recording clock and its properties.
pub fn clock() -> Result<(Choice, facts::Facts), Failure> {
    let (choice, source) = source()?;
    Ok((choice, facts_of(source)?))
}

fn source() -> Result<(Choice, Source), Failure> {
    let choice = undertick_clock::choose_from_environment().map_err(Failure::usage)?;
    let source = Source::open(choice.clock).map_err(Failure::usage)?;
    Ok((choice, source))
}

fn facts_of(source: Source) -> Result<facts::Facts, Failure> {
    facts::gather(source, undertick_clock::rate::SHORTEST_SPAN).map_err(|e| {
        Failure::machine(format!(
            "the rate of {} could not be found: {e:?}",
            source.clock().name()
        ))
    })
}

/// Returns the program's exit status, in the form of a shell.
pub fn status(exit: Option<Exit>) -> u8 {
    match exit {
        Some(Exit {
            status: Some(status),
            ..
        }) => status as u8,
        Some(Exit {
            signal: Some(signal),
            ..
        }) => 128u8.wrapping_add(signal as u8),
        _ => 1,
    }
}

/// Returns `PROGRAM.ENDING`, with a number if that exists.
pub fn free_name(program: &std::ffi::OsStr, ending: &str) -> PathBuf {
    let stem = Path::new(program).file_name().map_or_else(
        || "trace".into(),
        |name| name.to_string_lossy().into_owned(),
    );
    let first = PathBuf::from(format!("{stem}.{ending}"));
    if !first.exists() {
        return first;
    }
    (2u32..)
        .map(|n| PathBuf::from(format!("{stem}-{n}.{ending}")))
        .find(|path| !path.exists())
        .unwrap_or(first)
}

/// Returns the names of `--events`; none without that option.
fn names(events: Option<&Path>) -> Result<Vec<Name>, Failure> {
    events.map_or_else(|| Ok(Vec::new()), read_names)
}

/// Longest name of an event, bytes: the same limit as for names given by a program.
const MOST_NAME_BYTES: usize = 255;

/// Reads the table `[names]` of an events file.
pub fn read_names(path: &Path) -> Result<Vec<Name>, Failure> {
    let text = input::text(path, Kind::NAMES)?;
    let table: toml::Table = text
        .parse()
        .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    let names = table
        .get("names")
        .and_then(toml::Value::as_table)
        .ok_or_else(|| {
            Failure::usage(format!(
                "{}: no [names] table; write for example\n[names]\n1 = \"parse\"",
                path.display()
            ))
        })?;
    names
        .iter()
        .map(|(number, name)| {
            let event: u16 = number.parse().map_err(|_| {
                Failure::usage(format!(
                    "{}: [names]: {number:?} is not an event number 0..65535",
                    path.display()
                ))
            })?;
            let name = name.as_str().ok_or_else(|| {
                Failure::usage(format!(
                    "{}: [names] {number}: the name must be a text",
                    path.display()
                ))
            })?;
            if name.len() > MOST_NAME_BYTES {
                return Err(Failure::usage(format!(
                    "{}: [names] {number}: the name has {} bytes; give it at most {MOST_NAME_BYTES}",
                    path.display(),
                    name.len()
                )));
            }
            Ok(Name {
                pid: None,
                event,
                name: name.to_owned(),
            })
        })
        .collect()
}
