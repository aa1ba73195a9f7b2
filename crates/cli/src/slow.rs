//! `undertick slow`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;
use undertick_clock::adjustable::{Overhead, on_same_cpu};
use undertick_clock::cpus;
use undertick_clock::slow::{SlowClock, SlowName};
use undertick_estimate::slow::{Plan, Question};
use undertick_format::input::{self, Kind};
use undertick_meter::slow::{ActivityRow, Document, Estimator, Request, Script};

use crate::Failure;
use crate::output;
use crate::progress::Progress;

/// Measure durations shorter than the tick of the clock: plan a measurement, run it
#[derive(Args)]
pub struct Slow {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Plan(PlanArguments),
    Run(RunArguments),
}

/// Compute the cycles and the time that a measurement will need
#[derive(Args)]
#[command(
    after_help = "Example:\n  undertick slow plan --duration 50us --tick 1ms --confidence 0.9 --precision 0.1 --loop 2.5ms"
)]
struct PlanArguments {
    /// Expected duration of the shortest activity, which determines the plan
    #[arg(long, value_name = "DURATION", value_parser = duration_ns)]
    duration: f64,
    /// Tick of the clock
    #[arg(long, value_name = "DURATION", value_parser = duration_ns)]
    tick: f64,
    /// Level of the confidence interval
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    confidence: f64,
    /// Whole width of the confidence interval over the duration
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    precision: f64,
    /// Length of the loop that the activity lies in
    #[arg(long = "loop", value_name = "DURATION", value_parser = duration_ns)]
    cycle: Option<f64>,
    /// Cost of reading the clock, for the shots at tick edges
    #[arg(long, value_name = "DURATION", default_value = "50ns", value_parser = duration_ns)]
    poll: f64,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    json: bool,
}

/// Run a loop of steps against a slow clock
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick slow run experiments/slow-parts.toml --clock quantised:1ms\n  \
    undertick slow run loop.toml --clock monotonic-coarse --estimator edges --json\n\n\
    A script says how long to run and lists the steps of the loop; docs/book/slow-clocks.md has all its keys:\n  \
    seconds = 10.0\n  [[step]]\n  name = \"small\"\n  work = \"50us\"\n  [[step]]\n  call = \"getppid\"\n\n\
    Ctrl-C ends the run and gives the estimates so far."
)]
struct RunArguments {
    /// Script of the loop
    #[arg(value_name = "SCRIPT.toml")]
    script: PathBuf,
    /// Clock: adjustable:TICK, quantised:TICK, monotonic-coarse, realtime-coarse or times
    #[arg(long, value_name = "NAME")]
    clock: String,
    /// Estimator: counts, stepped, edges or auto
    #[arg(long, value_name = "NAME", default_value = "auto")]
    estimator: String,
    /// Level of the confidence intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    confidence: f64,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Slow) -> Result<u8, Failure> {
    match &arguments.action {
        Action::Plan(plan) => planned(plan),
        Action::Run(run) => measured(run),
    }
}

fn duration_ns(text: &str) -> Result<f64, String> {
    undertick_meter::slow::duration_ns(text)
        .ok_or_else(|| format!("{text:?} is no duration; write e.g. 50us, 2.5ms or 1s"))
}

/// The document of `slow plan`.
#[derive(Serialize, JsonSchema)]
pub struct PlanDocument {
    schema_version: u32,
    /// Cycles needed by counting ticks.
    cycles: u64,
    /// Time for them, seconds; `null` without `--loop`.
    seconds: Option<f64>,
    /// Length of a tick as a multiple of the duration.
    tick_over_duration: f64,
    /// Level of the confidence interval, e.g. 0.95.
    level: f64,
    /// Whole width of the confidence interval as a share of the duration.
    precision: f64,
    /// Cycles needed if their phase is stepped, at a scatter of 0.2 % of the tick.
    stepped_cycles: u64,
    /// Time for them, delays included, seconds; `null` without `--loop`.
    stepped_seconds: Option<f64>,
    /// Samples needed if the loop may wait for the edges of ticks.
    edge_samples: u64,
    /// Time for them, with one calibrating shot each, seconds.
    edge_seconds: f64,
    /// Delay to add to each cycle, ns, so that the phase is stepped; `null` without `--loop`.
    proposed_delay_ns: Option<f64>,
    /// Objections to counting in this loop.
    warnings: Vec<String>,
}

fn planned(arguments: &PlanArguments) -> Result<u8, Failure> {
    let level = output::level(arguments.confidence)?;
    let question = Question {
        duration_ns: arguments.duration,
        tick_ns: arguments.tick,
        level,
        precision: arguments.precision,
        loop_ns: arguments.cycle,
        poll_ns: arguments.poll,
    };
    let plan = Plan::for_question(&question).ok_or_else(|| {
        Failure::usage(format!(
            "--precision {}: give the whole width of the interval as a share of the duration, e.g. 0.1",
            arguments.precision
        ))
    })?;
    let document = PlanDocument {
        schema_version: 1,
        cycles: plan.cycles,
        seconds: plan.seconds,
        tick_over_duration: plan.tick_over_duration,
        level,
        precision: arguments.precision,
        stepped_cycles: plan.stepped_cycles,
        stepped_seconds: plan.stepped_seconds,
        edge_samples: plan.edge_samples,
        edge_seconds: plan.edge_seconds,
        proposed_delay_ns: plan.delay_ns,
        warnings: plan.warnings,
    };
    output::document(arguments.json, &document, || document.text())
}

impl PlanDocument {
    fn text(&self) -> String {
        let time = |s: Option<f64>| s.map_or(String::new(), |s| format!(", {s:.1} s"));
        let mut text = format!(
            "tick / duration {:.4}; {} % interval of {} of the mean in width\n\
             counts    {} cycles{}\n\
             stepped   {} cycles{} (cycles that scatter by 0.2 % of the tick)\n\
             edges     {} shots, {:.2} s (if the loop may wait)\n",
            self.tick_over_duration,
            self.level * 100.0,
            self.precision,
            self.cycles,
            time(self.seconds),
            self.stepped_cycles,
            time(self.stepped_seconds),
            self.edge_samples,
            self.edge_seconds,
        );
        for warning in &self.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        text
    }
}

fn measured(arguments: &RunArguments) -> Result<u8, Failure> {
    let name: SlowName = arguments.clock.parse().map_err(Failure::usage)?;
    let estimator: Estimator =
        (arguments.estimator.parse()).map_err(|e| Failure::usage(format!("--estimator {e}")))?;
    let level = output::level(arguments.confidence)?;
    let path = arguments.script.display();
    let text = input::text(&arguments.script, Kind::SCRIPT)?;
    let script = Script::parse(&text).map_err(|e| Failure::usage(format!("{path}:{e}")))?;
    let unavailable = |e: &dyn std::fmt::Display| {
        Failure::machine(format!(
            "the clock {} cannot be had here: {e}",
            arguments.clock
        ))
    };
    let clock = SlowClock::open(name).map_err(|e| unavailable(&e))?;
    // The clock is on the first CPU, the loop on the last.
    let cost = match name {
        SlowName::Adjustable { tick_ns } => {
            apart(tick_ns, script.blocks()).map_err(|e| unavailable(&e))?
        }
        _ => None,
    };
    let request = Request {
        beside_clock: cost.is_some(),
        script,
        clock: arguments.clock.clone(),
        estimator,
        level,
    };
    let stop = output::stop_on_signals();
    let mut progress = Progress::new();
    let result = undertick_meter::slow::run(&request, &clock, |share| {
        progress.share("measuring", share);
        !stop.load(Ordering::Relaxed)
    });
    progress.done();
    let mut document = result.map_err(Failure::machine)?;
    if let Some(cost) = &cost {
        document.take_off_clock(cost);
    }
    output::document(arguments.json, &document, || drawn(&document))?;
    if document.is_refused() {
        return Err(Failure::machine(
            "no interval: the loop is locked to the tick, or preempted too often; use --estimator stepped, or edges if the loop may wait",
        ));
    }
    Ok(if document.interrupted { 130 } else { 0 })
}

/// Moves this thread to the last CPU, away from the adjustable clock; where there is one CPU,
/// returns what the clock takes of it. The partner of a loop that waits would move with it, so such a
/// loop stays where it is.
fn apart(tick_ns: u64, waits: bool) -> std::io::Result<Option<Overhead>> {
    match cpus::allowed()[..] {
        [only] => on_same_cpu(tick_ns, only).map(Some),
        [.., last] if !waits => cpus::pin(last).map(|()| None),
        _ => Ok(None),
    }
}

/// Returns the table of a run.
fn drawn(document: &Document) -> String {
    let mut text = format!(
        "{} (tick {}), {}: {} cycles in {:.2} s, {} dropped as preempted\n",
        document.clock,
        length(document.tick_ns),
        document.estimator,
        document.cycles,
        document.seconds,
        document.dropped
    );
    if let Some(why) = &document.why {
        let _ = writeln!(text, "{} because {why}", document.estimator);
    }
    let _ = writeln!(
        text,
        "{:<16} {:>12} {:>25} {:>8} {:>10} {:>10} {:>12} {:>10}",
        "activity", "mean", "interval", "n", "sd (10a)", "sd", "truth", "error"
    );
    for row in document.activities.iter().chain(&document.cycle) {
        text.push_str(&line(row));
    }
    for finding in &document.findings {
        let _ = writeln!(text, "{finding}");
    }
    for row in &document.activities {
        if let Some(why) = &row.refused {
            let _ = writeln!(text, "{}: refused: {why}", row.name);
        }
        if row.independence.as_ref().is_some_and(|i| i.rejected) {
            let _ = writeln!(
                text,
                "{}: counts depend on each other from cycle to cycle",
                row.name
            );
        }
        for note in row.mean.notes.iter().filter(|_| row.refused.is_none()) {
            let _ = writeln!(text, "{}: {note}", row.name);
        }
    }
    text
}

fn line(row: &ActivityRow) -> String {
    let or_dash = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), length);
    let interval = match (row.mean.interval.lo, row.mean.interval.hi) {
        (Some(lo), Some(hi)) => format!("{} .. {}", length(lo), length(hi)),
        _ => "refused".to_owned(),
    };
    format!(
        "{:<16} {:>12} {:>25} {:>8} {:>10} {:>10} {:>12} {:>10}\n",
        row.name,
        length(row.mean.value),
        interval,
        row.mean.n,
        or_dash(row.predicted_sd_ns),
        or_dash(row.sd_ns),
        or_dash(row.truth_ns),
        or_dash(row.error_ns)
    )
}

/// Returns nanoseconds as text with a suitable unit.
fn length(ns: f64) -> String {
    let size = ns.abs();
    if size < 1e3 {
        format!("{ns:.1} ns")
    } else if size < 1e6 {
        format!("{:.3} us", ns / 1e3)
    } else {
        format!("{:.4} ms", ns / 1e6)
    }
}
