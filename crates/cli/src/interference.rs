//! `undertick interference`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use undertick_experiment::linux;
use undertick_meter::interference::{self as meter, Mix, Request, Schedule};
use undertick_report::{html, interference as drawn};

use crate::Failure;
use crate::experiment::{failure, not_there};
use crate::options::Kernel;
use crate::output;
use crate::progress::Progress;
use crate::recording::clock;
use crate::sizes;

/// The hidden command of the probe's process.
pub const PROBE: &str = "__probe";

/// Measure what other users of the memory and of the CPU cost here, how often, and which they are
#[derive(Args)]
#[command(after_help = "Examples:\n  undertick interference --for 60s\n  \
    undertick interference --json > before.json; undertick interference --compare before.json\n  \
    undertick interference --continuous --interval 10s\n\n\
    A probe of a known mix runs in bursts on one CPU; the peaks of its rates are the states of the machine.\n\
    Ctrl-C ends it and reports the bursts so far.")]
pub struct Interference {
    /// How long to measure
    #[arg(long = "for", value_name = "TIME", value_parser = sizes::parse_time)]
    time: Option<Duration>,
    /// What the probe executes
    #[arg(long, value_enum, value_name = "NAME", default_value_t = MixWord::Stream)]
    mix: MixWord,
    /// Bytes that the mix goes through [default: by the caches, four times the last for stream and chain]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    footprint: Option<u64>,
    /// CPU to stay on [default: the last one]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Perform the schedule and the mix of 1971: 50 samples of 290 us within a page every 10 s, 100 times (17 minutes)
    #[arg(long, conflicts_with_all = ["mix", "burst", "every", "continuous"])]
    published: bool,
    /// Length of a burst; one shorter than two time slices misses processes on its CPU
    #[arg(long, value_name = "TIME", value_parser = sizes::parse_time)]
    burst: Option<Duration>,
    /// Time from one burst to the next
    #[arg(long, value_name = "TIME", value_parser = sizes::parse_time)]
    every: Option<Duration>,
    /// Also report the loss if each cause were active for this share of the time
    #[arg(long, value_name = "SHARE")]
    activity: Option<f64>,
    /// Compare with an earlier run's JSON document
    #[arg(long, value_name = "FILE.json", conflicts_with = "continuous")]
    compare: Option<PathBuf>,
    /// Measure until stopped, with less than 1 % of a CPU, and print a line for each interval
    #[arg(long)]
    continuous: bool,
    /// Length of an interval of --continuous
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = sizes::parse_time, requires = "continuous")]
    interval: Duration,
    /// Save the trace to this directory
    #[arg(short, long, value_name = "NAME.ut")]
    output: Option<PathBuf>,
    /// Which kernel events to add to the trace
    #[arg(long, value_enum, default_value_t = Kernel::Off)]
    kernel: Kernel,
    /// Level of the confidence intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    confidence: f64,
    /// Seed of the random moments of the bursts
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Write a self-contained page
    #[arg(long, value_name = "FILE", conflicts_with = "continuous")]
    html: Option<PathBuf>,
    /// One JSON document on standard output, nothing else; one per line with --continuous
    #[arg(long)]
    json: bool,
}

/// Names of the mixes.
#[derive(Clone, Copy, ValueEnum)]
enum MixWord {
    /// One word of each line of a large region, line after line: bandwidth
    Stream,
    /// Dependent loads from a large region: latency
    Chain,
    /// Dependent loads from half of the last cache
    L3,
    /// Dependent loads from half of the second-level cache
    L2,
    /// Dependent loads from half of the first-level cache
    L1,
    /// Reads, writes and additions in one page, as in 1971
    Page,
    /// Registers only
    Arithmetic,
}

impl MixWord {
    const fn mix(self) -> Mix {
        match self {
            Self::Stream => Mix::Stream,
            Self::Chain => Mix::Chain,
            Self::L3 => Mix::L3,
            Self::L2 => Mix::L2,
            Self::L1 => Mix::L1,
            Self::Page => Mix::Page,
            Self::Arithmetic => Mix::Arithmetic,
        }
    }
}

pub fn run(arguments: &Interference) -> Result<u8, Failure> {
    let scratch = output::scratch()?;
    let trace = match &arguments.output {
        Some(given) => not_there(given)?,
        None => scratch.path().join("interference.ut"),
    };
    let earlier = arguments.compare.as_deref().map(earlier).transpose()?;
    let request = request(arguments, trace)?;
    if arguments.continuous {
        return continuous(arguments, &request);
    }
    let mut progress = Progress::new();
    let found = meter::measure(&request, |share| {
        progress.share("measuring", share.min(1.0))
    });
    progress.done();
    let mut found = found.map_err(failure)?;
    if let Some(activity) = arguments.activity {
        meter::predict(&mut found, activity);
    }
    if let Some((name, earlier)) = &earlier {
        found.compared = Some(meter::against(&found, earlier, name));
    }
    output::page(arguments.html.as_deref(), || {
        html::interference::render(&found)
    })?;
    output::document(arguments.json, &found, || drawn::render(&found, 100))?;
    Ok(if found.interrupted { 130 } else { 0 })
}

/// Returns a measurement of that length with the usual schedule.
pub fn usual(time: Duration, confidence: f64, trace: PathBuf) -> Result<Request, Failure> {
    let mut schedule = Schedule::new(Mix::Stream);
    schedule.total = Some(time);
    schedule.cpu = linux::cpus().last().copied();
    with(schedule, Kernel::Off, confidence, trace)
}

/// Returns the checked request of the command.
fn request(arguments: &Interference, trace: PathBuf) -> Result<Request, Failure> {
    let mix = arguments.mix.mix();
    let mut schedule = match (arguments.continuous, arguments.published) {
        (true, _) => Schedule::continuous(mix),
        (_, true) => Schedule::published(),
        _ => Schedule::new(mix),
    };
    schedule.total = arguments.time.or(schedule.total);
    schedule.burst = arguments.burst.unwrap_or(schedule.burst);
    schedule.every = arguments.every.unwrap_or(schedule.every);
    schedule.footprint_bytes = arguments.footprint;
    schedule.seed = arguments.seed;
    let cpus = linux::cpus();
    schedule.cpu = Some(match arguments.cpu {
        Some(cpu) if !cpus.contains(&cpu) => {
            return Err(Failure::usage(format!(
                "--cpu {cpu}: not one of the CPUs that this process may use ({})",
                cpus.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            )));
        }
        Some(cpu) => cpu,
        None => *cpus.last().unwrap_or(&0),
    });
    if schedule.burst >= schedule.every {
        return Err(Failure::usage(format!(
            "--burst {:?}: bursts must be shorter than from one to the next (--every {:?})",
            schedule.burst, schedule.every
        )));
    }
    if schedule.total.is_some_and(|total| total < schedule.every) {
        return Err(Failure::usage(format!(
            "--for {:?}: shorter than from one burst to the next (--every {:?})",
            schedule.total.unwrap_or_default(),
            schedule.every
        )));
    }
    if arguments
        .activity
        .is_some_and(|a| !(0.0..=1.0).contains(&a))
    {
        return Err(Failure::usage(
            "--activity: a share of the time lies between 0 and 1, e.g. 0.3",
        ));
    }
    with(schedule, arguments.kernel, arguments.confidence, trace)
}

fn with(
    schedule: Schedule,
    kernel: Kernel,
    confidence: f64,
    trace: PathBuf,
) -> Result<Request, Failure> {
    let (choice, facts) = clock()?;
    Ok(Request {
        schedule,
        probe_command: crate::own_command(PROBE),
        choice,
        facts,
        trace,
        kernel: kernel.into(),
        level: output::level(confidence)?,
    })
}

/// Returns an earlier run's document, and its name.
fn earlier(path: &Path) -> Result<(String, drawn::Interference), Failure> {
    let shown = path.display();
    let text = undertick_format::input::text(path, undertick_format::input::Kind::DOCUMENT)?;
    let found: drawn::Interference = serde_json::from_str(&text).map_err(|e| {
        Failure::usage(format!(
            "{shown}: not a document of `undertick interference --json` ({e})"
        ))
    })?;
    Ok((shown.to_string(), found))
}

fn continuous(arguments: &Interference, request: &Request) -> Result<u8, Failure> {
    let stop = output::stop_on_signals();
    let keep = arguments.output.is_some();
    let mut printed = Ok(0);
    let ended = meter::watch(request, arguments.interval, keep, &stop, |line| {
        let text = match arguments.json {
            true => serde_json::to_string(line).unwrap_or_default(),
            false => format!("{} {}", time_of_day(line.unix_s), drawn::line(line)),
        };
        if printed.is_ok() {
            printed = output::print(&(text + "\n"));
        }
    });
    ended.map_err(failure)?;
    printed
}

/// Returns the time of day, UTC, as hours, minutes and seconds.
fn time_of_day(unix_s: f64) -> String {
    let s = unix_s as u64 % 86_400;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// The file that holds the schedule.
#[derive(Args)]
pub struct Probe {
    schedule: PathBuf,
}

pub fn probe(probe: &Probe) -> Result<u8, Failure> {
    meter::probe_from(&probe.schedule).map_err(failure)?;
    Ok(0)
}

#[cfg(test)]
mod tests;
