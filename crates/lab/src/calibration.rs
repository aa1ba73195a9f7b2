//! The cost of recording, by known doses of work.

mod paired;

use std::ffi::OsString;
use std::fmt;

use undertick_analyze::{Analysis, Compensate, Cull, Options};
use undertick_clock::{Choice, facts::Facts};
use undertick_report::document::{IntervalReport, Report};
use undertick_trace::manifest::{Calibration, SpanCost};
use undertick_trace::read::Trace;
use undertick_trace::record::{Request, record};
use undertick_trace::session::{DEFAULT_RING_BYTES, Settings};
use undertick_trace::{Overflow, TraceError};
use undertick_units::{Estimate, Interval};

unsafe extern "C" {
    fn undertick_calibration_workload(iterations: u32) -> u64;
}

/// Event numbers of `calibration.c`.
const CHAIN: &str = "event 1";
/// Pairs of multiply and add in the chain.
const CHAIN_PAIRS: f64 = 100.0 * 200.0;
const DOSES: [(u32, f64); 4] = [(1, 3.0), (2, 20.0), (3, 50.0), (4, 200.0)];
const PLAIN: u32 = 10;
const ORDERED: u32 = 20;
const PAIRED: u32 = 50;
const IN_LINE: u32 = 60;
const PLAIN_INNER: &str = "event 30";
const ORDERED_INNER: &str = "event 31";

/// Turns of the workload: about 3500 samples of each case, 250 ms.
const ITERATIONS: u32 = 60_000;

/// Why the cost is not known.
#[derive(Debug)]
pub struct NotCalibrated(String);

impl fmt::Display for NotCalibrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the cost of recording could not be measured: {}", self.0)
    }
}

impl core::error::Error for NotCalibrated {}

impl From<TraceError> for NotCalibrated {
    fn from(error: TraceError) -> Self {
        Self(error.to_string())
    }
}

/// The program that [`measure`] records: call it when the command line says so.
pub fn workload() {
    // SAFETY: no arguments but a number; it touches only its own table.
    std::hint::black_box(unsafe { undertick_calibration_workload(ITERATIONS) });
}

/// Runs of the workload. The least disturbed gives the figures, the others that
/// are comparable widen the intervals. A neighbour that comes in makes the
/// intervals of its run wide (seen here: 3 ns instead of 0.2), never narrow.
const RUNS: u32 = 3;
/// A run whose intervals are this many times wider says nothing of the others.
const COMPARABLE: f64 = 2.0;
/// Runs before it is given up on a machine that is too busy.
const MOST_RUNS: u32 = 6;

/// Measures what recording costs. `workload_command` must end up in
/// [`workload`], in a process of its own.
///
/// # Errors
/// It could not be recorded, or too little of it was undisturbed.
pub fn measure(
    workload_command: &[OsString],
    choice: &Choice,
    facts: &Facts,
) -> Result<Calibration, NotCalibrated> {
    let mut found: Vec<Calibration> = Vec::new();
    let mut failure = None;
    for _ in 0..MOST_RUNS {
        match measure_once(workload_command, choice, facts) {
            Ok(calibration) => found.push(calibration),
            Err(error) => failure = Some(error),
        }
        if found.len() as u32 == RUNS {
            break;
        }
    }
    found.sort_by(|a, b| width(a).total_cmp(&width(b)));
    let mut runs = found.into_iter();
    let Some(mut least_disturbed) = runs.next() else {
        return Err(failure.unwrap_or_else(|| NotCalibrated("no run".to_owned())));
    };
    let widest = COMPARABLE * width(&least_disturbed);
    for other in runs.filter(|run| width(run) <= widest) {
        hold_both(&mut least_disturbed, &other);
    }
    Ok(least_disturbed)
}

/// The intervals of `a` made to hold those of `b` too: what runs a moment apart
/// disagree about is not known better than that.
fn hold_both(a: &mut Calibration, b: &Calibration) {
    let hull = |a: &mut Estimate, b: &Estimate| {
        let (x, y) = (a.interval, b.interval);
        a.interval = Interval {
            lo: x.lo.zip(y.lo).map(|(x, y)| x.min(y)),
            hi: x.hi.zip(y.hi).map(|(x, y)| x.max(y)),
        };
    };
    for (a, b) in [(&mut a.plain, &b.plain), (&mut a.ordered, &b.ordered)] {
        hull(&mut a.empty_ns, &b.empty_ns);
        hull(&mut a.dosed_ns, &b.dosed_ns);
    }
    hull(&mut a.inner_event_ns, &b.inner_event_ns);
    hull(&mut a.inner_ordered_ns, &b.inner_ordered_ns);
    if let (Some(a), Some(b)) = (&mut a.paired, &b.paired) {
        hull(&mut a.span.dosed_ns, &b.span.dosed_ns);
        hull(&mut a.pairs_bias_ns, &b.pairs_bias_ns);
        // The constant belongs to its own run's shares.
        let drift = (b.span.dosed_ns.value - a.span.dosed_ns.value).abs();
        let bound = |b: Option<f64>, by: f64| b.map(|b| b + by);
        a.constant_ns.interval = Interval {
            lo: bound(a.constant_ns.interval.lo, -drift),
            hi: bound(a.constant_ns.interval.hi, drift),
        };
    }
}

/// How uncertain a calibration is, all figures together, ns.
fn width(calibration: &Calibration) -> f64 {
    let c = calibration;
    [
        &c.ordered.dosed_ns,
        &c.ordered.empty_ns,
        &c.plain.empty_ns,
        &c.inner_ordered_ns,
    ]
    .iter()
    .map(|figure| figure.interval.half_width().unwrap_or(f64::INFINITY))
    .sum()
}

fn measure_once(
    workload_command: &[OsString],
    choice: &Choice,
    facts: &Facts,
) -> Result<Calibration, NotCalibrated> {
    let dir =
        tempfile::tempdir().map_err(|e| NotCalibrated(format!("no temporary directory: {e}")))?;
    let request = Request {
        trace: dir.path().join("calibration.ut"),
        command: workload_command.to_vec(),
        settings: Settings {
            overflow: Overflow::Grow,
            ring_bytes: DEFAULT_RING_BYTES,
            budget_bytes: None,
            clock: choice.clock,
            parent: None,
        },
        choice: *choice,
        facts: facts.clone(),
        calibration: None,
        names: Vec::new(),
    };
    let trace = request.trace.clone();
    record(request, |_| {})?;
    let trace = Trace::open(&trace, |_| {})?;
    // Nothing is subtracted: what is left over is the very figure wanted. The
    // ratio rule takes out interrupts, which the flag does not tell of; a
    // section's cost does not reach four times the least.
    let options = Options {
        cull: Cull::Ratio(4.0),
        compensate: Compensate::None,
        ..Options::default()
    };
    let failed = |e: undertick_analyze::Error| NotCalibrated(e.to_string());
    let mut analysis = Analysis::new(&trace.manifest, options).map_err(failed)?;
    for _ in 0..analysis.passes() {
        for batch in trace.batches() {
            analysis.push(&batch?).map_err(failed)?;
        }
        analysis.finish_pass();
    }
    let report = analysis.finish().map_err(failed)?;
    let calibration = from_report(&report)?;
    let pair_ns = of_chain(&report)?;
    let paired = paired::measure(&trace, PAIRED as i32, &DOSES, &pair_ns, &calibration.1)?;
    Ok(Calibration {
        paired: Some(paired),
        ..calibration.0
    })
}

/// The costs that a constant can state, and that of spans with pairs.
fn from_report(report: &Report) -> Result<(Calibration, SpanCost), NotCalibrated> {
    let mean = |name: &str| figure(report, name, |interval| &interval.mean);
    let pair = of_chain(report)?;
    let span_cost = |base: u32| -> Result<SpanCost, NotCalibrated> {
        // Serialised sections in two surroundings.
        let bases: &[u32] = match base {
            ORDERED => &[ORDERED, IN_LINE],
            _ => &[base],
        };
        let doses = (bases.iter())
            .flat_map(|base| DOSES.map(|(offset, pairs)| (base + offset, pairs)))
            .map(|(event, pairs)| Ok(less_work(&mean(&format!("event {event}"))?, &pair, pairs)))
            .collect::<Result<Vec<_>, NotCalibrated>>()?;
        let empty = Estimate {
            method: "mean of sections around nothing".to_owned(),
            ..mean(&format!("event {base}"))?
        };
        Ok(SpanCost {
            empty_ns: empty,
            dosed_ns: in_any_surroundings(together(&doses), &pair),
            least_dose_ns: Some(DOSES[0].1 * pair.value),
        })
    };
    let (plain, ordered) = (span_cost(PLAIN)?, span_cost(ORDERED)?);
    // Two halves of 50 pairs, a record (or two) between, and the section's own
    // cost: what remains is the inner record's.
    let inner = |name: &str, section: &SpanCost, records: f64| {
        let with_inner = less_work(&mean(name)?, &pair, 100.0);
        Ok::<_, NotCalibrated>(scaled(
            &difference(&with_inner, &section.dosed_ns),
            1.0 / records,
        ))
    };
    let calibration = Calibration {
        inner_event_ns: inner(PLAIN_INNER, &plain, 1.0)?,
        inner_ordered_ns: inner(ORDERED_INNER, &ordered, 2.0)?,
        plain,
        ordered,
        paired: None,
    };
    Ok((calibration, span_cost(PAIRED)?))
}

fn figure(
    report: &Report,
    name: &str,
    of: fn(&IntervalReport) -> &Option<Estimate>,
) -> Result<Estimate, NotCalibrated> {
    (report.intervals.iter())
        .find(|interval| interval.name == name)
        .and_then(|interval| of(interval).clone())
        .filter(|figure| figure.interval.half_width().is_some())
        .ok_or_else(|| NotCalibrated(format!("too few undisturbed samples of {name}")))
}

/// One pair of instructions of a dose, ns. From the chains' median: at 20 us
/// one chain in ten can be hit by something that the ratio rule does not see,
/// and a step of the clock is 0.05 % of it.
fn of_chain(report: &Report) -> Result<Estimate, NotCalibrated> {
    let chain = figure(report, CHAIN, |interval| &interval.median)?;
    Ok(scaled(&chain, 1.0 / CHAIN_PAIRS))
}

/// A section's mean less its dose, whose price the chain tells.
fn less_work(section: &Estimate, pair: &Estimate, pairs: f64) -> Estimate {
    difference(section, &scaled(pair, pairs))
}

fn scaled(a: &Estimate, by: f64) -> Estimate {
    let bound = |b: Option<f64>| b.map(|b| b * by);
    Estimate {
        value: a.value * by,
        interval: Interval {
            lo: bound(a.interval.lo),
            hi: bound(a.interval.hi),
        },
        ..a.clone()
    }
}

/// a - b of independent estimates: half-widths add in squares.
fn difference(a: &Estimate, b: &Estimate) -> Estimate {
    let value = a.value - b.value;
    let half = |e: &Estimate| e.interval.half_width().unwrap_or(f64::INFINITY);
    let width = half(a).hypot(half(b));
    Estimate {
        value,
        interval: Interval::new(value - width, value + width),
        method: "section less its dose".to_owned(),
        n: a.n.min(b.n),
        n_effective: a.n_effective.min(b.n_effective),
        notes: Vec::new(),
        ..a.clone()
    }
}

/// Instructions of a pair of multiply and add, in cycles of the core.
const PAIR_CYCLES: f64 = 4.0;

/// The same cost in other code: which instructions lie beside a section shifts
/// it by up to a cycle of the core (four programs, inlined or not: 29.2..29.8 ns
/// at 0.35 ns a cycle).
fn in_any_surroundings(cost: Estimate, pair: &Estimate) -> Estimate {
    let cycle = pair.value / PAIR_CYCLES;
    Estimate {
        interval: Interval {
            lo: cost.interval.lo.map(|lo| lo - cycle),
            hi: cost.interval.hi.map(|hi| hi + cycle),
        },
        ..cost
    }
}

/// One figure for doses that should agree: their mean, and an interval that
/// holds all their values, so that a cost which changes with the work shows.
fn together(doses: &[Estimate]) -> Estimate {
    let count = doses.len() as f64;
    let value = doses.iter().map(|dose| dose.value).sum::<f64>() / count;
    let half = doses
        .iter()
        .filter_map(|dose| dose.interval.half_width())
        .map(|half| half * half)
        .sum::<f64>()
        .sqrt()
        / count;
    let lo = doses
        .iter()
        .map(|dose| dose.value)
        .fold(value - half, f64::min);
    let hi = doses
        .iter()
        .map(|dose| dose.value)
        .fold(value + half, f64::max);
    Estimate {
        value,
        interval: Interval::new(lo, hi),
        method: format!("sections around {count} known doses of work, less the work"),
        n: doses.iter().map(|dose| dose.n).sum(),
        n_effective: doses.iter().map(|dose| dose.n_effective).sum(),
        ..doses[0].clone()
    }
}
