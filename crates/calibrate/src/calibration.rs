//! The cost of recording, by known doses of work.

mod chains;
mod costs;
mod fastest;
pub mod functions;
mod interrupts;
pub mod kept;
mod look;
mod paired;
mod sampled;
mod samples;

use std::collections::HashMap;
use std::ffi::{OsString, c_int};
use std::time::SystemTime;

use tempfile::TempDir;
use undertick_clock::Choice;
use undertick_clock::facts::Facts;
use undertick_format::TraceError;
use undertick_format::manifest::Calibration;
use undertick_format::read::Trace;
use undertick_record::functions::Functions;
use undertick_record::kernel::{Wanted, wait_for_removals};
use undertick_record::record::{Request, record};
use undertick_record::session::Settings;
use undertick_units::{Estimate, Interval};

pub use look::{Look, before_and_after, compared, look_again};

use chains::Chains;
use costs::{PAIRED, from_samples, scaled};
use fastest::Fastest;
use samples::Samples;

unsafe extern "C" {
    fn undertick_calibration_workload(passes: u32, of_functions: c_int) -> u64;
}

/// Passes of the workload. Each pass is one sample of every regular span; sampled spans are
/// recorded in one pass of four. Spans in random order have a fourth as many samples. Takes about
/// 200 ms.
pub const PASSES: u32 = 5_000;

/// Why the cost of recording could not be measured.
#[derive(Debug, thiserror::Error)]
#[error("the cost of recording could not be measured: {0}")]
pub struct NotCalibrated(String);

impl From<TraceError> for NotCalibrated {
    fn from(error: TraceError) -> Self {
        Self(error.to_string())
    }
}

/// The program that [`measure`] or [`functions::measure`] records. Call it when the command line
/// asks for it, with the number of passes given there, or [`PASSES`].
// Inline, so that a library that has its own workload does not link this one's C code, which is
// compiled for programs and cannot be part of a library.
#[inline]
pub fn workload(passes: u32, of_functions: bool) {
    // SAFETY: no arguments but numbers; it touches only its own tables.
    std::hint::black_box(unsafe {
        undertick_calibration_workload(passes, c_int::from(of_functions))
    });
}

/// Number of runs of the workload.
const RUNS: usize = 4;
/// This many least disturbed runs give the result: the first the figures, the others widen their
/// intervals. A busy neighbour makes the intervals of a run wide (seen here: 3 ns instead of 0.2),
/// never narrow.
const LEAST_DISTURBED: usize = 2;
/// A run whose intervals are this many times wider than the others' is ignored.
const COMPARABLE: f64 = 2.0;
/// Maximum number of runs before giving up because the machine is too busy.
const MOST_RUNS: u32 = 6;

/// Measures the cost of recording. With kernel events, also measures the time that an interrupt
/// takes beyond what the kernel reports. `workload_command` must call [`workload`] in its own
/// process.
///
/// # Errors
/// The workload could not be recorded, or too little of it was undisturbed.
pub fn measure(
    workload_command: &[OsString],
    choice: &Choice,
    facts: &Facts,
    kernel: Wanted,
) -> Result<Calibration, NotCalibrated> {
    let mut interrupt = None;
    let run = |number: u32| {
        // Setting up kernel events takes longer than the run, so only the first run does it.
        let kernel = if number == 0 { kernel } else { Wanted::Off };
        let found = measure_once(workload_command, choice, facts, kernel);
        Ok(found.map(|mut calibration| {
            interrupt = interrupt.take().or(calibration.interrupt.take());
            calibration
        }))
    };
    let (mut least_disturbed, others) = runs(run, width)?;
    for other in &others {
        hold_both(&mut least_disturbed, other);
    }
    check(&least_disturbed)?;
    least_disturbed.interrupt = interrupt;
    least_disturbed.measured_unix_ns = Some(unix_ns());
    Ok(least_disturbed)
}

/// Returns the least disturbed of some runs, judged by their uncertainty, widened by the others.
/// `run` receives the number of the run. A failed run may be repeated, but not after an error of
/// its own.
fn runs<T>(
    mut run: impl FnMut(u32) -> Result<Result<T, NotCalibrated>, NotCalibrated>,
    width: impl Fn(&T) -> f64,
) -> Result<(T, Vec<T>), NotCalibrated> {
    let (mut found, mut failure) = (Vec::new(), None);
    for number in 0..MOST_RUNS {
        match run(number)? {
            Ok(one) => found.push(one),
            Err(error) => failure = Some(error),
        }
        if found.len() == RUNS {
            break;
        }
    }
    found.sort_by(|a, b| width(a).total_cmp(&width(b)));
    let mut found = found.into_iter().take(LEAST_DISTURBED);
    let Some(least_disturbed) = found.next() else {
        return Err(failure.unwrap_or_else(|| NotCalibrated("no run".to_owned())));
    };
    let widest = COMPARABLE * width(&least_disturbed);
    let others = found.filter(|run| width(run) <= widest).collect();
    Ok((least_disturbed, others))
}

fn unix_ns() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as i64)
}

fn half(figure: &Estimate) -> f64 {
    figure.interval.half_width().unwrap_or(f64::INFINITY)
}

/// Upper bound on the cost of a record, in pairs of readings; the lower bound is 0.
const MOST_PAIRS: f64 = 3.0;
/// The same for the upper bound of what a record costs far from others: 2 to 4 pairs were measured.
const MOST_PAIRS_FAR: f64 = 20.0;

/// Rejects impossible figures. On a busy machine, or on one that migrates during the measurement,
/// differences can take any value.
fn check(calibration: &Calibration) -> Result<(), NotCalibrated> {
    let c = calibration;
    let plain = c.plain.empty_ns.value;
    let figures = [
        ("a plain span", &c.plain.dosed_ns, plain),
        ("an event inside a span", &c.inner_event_ns, plain),
        (
            "an ordered span",
            &c.ordered.dosed_ns,
            c.ordered.empty_ns.value,
        ),
        (
            "a record of an ordered span inside a span",
            &c.inner_ordered_ns,
            c.ordered.empty_ns.value,
        ),
    ];
    let inner_span =
        (c.inner_span_ns.iter()).map(|cost| ("a record of a span inside a span", cost, plain));
    let off = (c.inner_off_ns.iter()).map(|cost| ("a point that is off", cost, plain));
    let sampled = (c.sampled.iter()).flat_map(|sampled| {
        sampled::costs(sampled)
            .into_iter()
            .map(|(what, cost)| (what, cost, plain))
    });
    for (what, cost, pair) in (figures.into_iter())
        .chain(inner_span)
        .chain(off)
        .chain(sampled)
    {
        believe(what, cost.value, pair, MOST_PAIRS)?;
    }
    let far = (c.sparse.iter()).flat_map(|sparse| {
        [
            ("an event far from others", &sparse.event_ns),
            ("a record of a span far from others", &sparse.span_ns),
            (
                "a record of an ordered span far from others",
                &sparse.ordered_ns,
            ),
        ]
    });
    for (what, cost) in far {
        let most = cost.interval.hi.unwrap_or(f64::INFINITY);
        believe(what, most, plain, MOST_PAIRS_FAR)?;
    }
    Ok(())
}

/// Rejects an impossible cost, ns; `pair` is the time of two readings with nothing between, ns.
fn believe(what: &str, cost: f64, pair: f64, most_pairs: f64) -> Result<(), NotCalibrated> {
    if (0.0..=most_pairs * pair).contains(&cost) {
        return Ok(());
    }
    Err(NotCalibrated(format!(
        "{what} came out at {:.1} ns, and two readings with nothing between at {pair:.1} ns: \
         it costs more than nothing and less than {most_pairs} such pairs",
        cost
    )))
}

/// The figures that both calibrations have, each of `a` with that of `b`.
fn both_figures<'a>(
    a: &'a mut Calibration,
    b: &'a mut Calibration,
) -> Vec<(&'a mut Estimate, &'a Estimate)> {
    let mut of_b: HashMap<&str, &'a mut Estimate> = b.costs_mut().into_iter().collect();
    let both = |(name, a): (&str, &'a mut Estimate)| Some((a, &*of_b.remove(name)?));
    a.costs_mut().into_iter().filter_map(both).collect()
}

/// Widens the intervals of `a` to contain those of `b`, because a cost is not known better than
/// runs a moment apart agree on it. A change of the read cost between the two is not counted,
/// because each recording measures its read cost.
fn hold_both(a: &mut Calibration, b: &Calibration) {
    let (mut b, _) = as_beside(a, b);
    for (a, b) in both_figures(a, &mut b) {
        hold(a, b);
    }
    if let (Some(a), Some(b)) = (&mut a.paired, &b.paired) {
        // The constant belongs with the shares of its own run.
        let drift = (b.span.dosed_ns.value - a.span.dosed_ns.value).abs();
        let bound = |b: Option<f64>, by: f64| b.map(|b| b + by);
        a.constant_ns.interval = Interval {
            lo: bound(a.constant_ns.interval.lo, -drift),
            hi: bound(a.constant_ns.interval.hi, drift),
        };
    }
}

/// The costs `b` scaled to the read cost of `a`, and the share by which the scaling may be wrong.
fn as_beside(a: &Calibration, b: &Calibration) -> (Calibration, f64) {
    let mut b = b.clone();
    let change = b.change_to(a.read_ns.as_ref());
    // Spans with pairs cost what their own pairs show.
    let mut paired = b.paired.take();
    if let (Some(of_b), Some(of_a)) = (&mut paired, &a.paired) {
        let shift = of_b.slope() * (of_a.pair_ns.value - of_b.pair_ns.value);
        of_b.span.dosed_ns = shifted(&of_b.span.dosed_ns, shift);
    }
    if let Some(change) = &change {
        for (_, cost) in b.costs_mut() {
            change.scale(cost);
        }
    }
    (
        Calibration { paired, ..b },
        change.map_or(0.0, |change| change.unsure()),
    )
}

fn shifted(cost: &Estimate, by: f64) -> Estimate {
    Estimate {
        value: cost.value + by,
        interval: Interval {
            lo: cost.interval.lo.map(|lo| lo + by),
            hi: cost.interval.hi.map(|hi| hi + by),
        },
        ..cost.clone()
    }
}

/// Widens the interval of `a` to contain that of `b`.
fn hold(a: &mut Estimate, b: &Estimate) {
    let (x, y) = (a.interval, b.interval);
    a.interval = Interval {
        lo: x.lo.zip(y.lo).map(|(x, y)| x.min(y)),
        hi: x.hi.zip(y.hi).map(|(x, y)| x.max(y)),
    };
}

/// Total uncertainty of a calibration over all of its figures, ns.
fn width(calibration: &Calibration) -> f64 {
    let c = calibration;
    let sampled = (c.sampled.iter()).flat_map(|sampled| [&sampled.counted_ns, &sampled.record_ns]);
    [
        &c.ordered.dosed_ns,
        &c.ordered.empty_ns,
        &c.plain.dosed_ns,
        &c.plain.empty_ns,
        &c.inner_ordered_ns,
    ]
    .into_iter()
    .chain(sampled)
    .map(half)
    .sum()
}

/// Records the workload. The directory exists as long as the first value.
fn recorded(
    workload_command: &[OsString],
    choice: &Choice,
    facts: &Facts,
    kernel: Wanted,
    functions: Option<Functions>,
) -> Result<(TempDir, Trace), NotCalibrated> {
    let dir =
        tempfile::tempdir().map_err(|e| NotCalibrated(format!("no temporary directory: {e}")))?;
    let request = Request {
        trace: dir.path().join("calibration.ut"),
        command: workload_command.to_vec(),
        settings: Settings::growing(choice.clock),
        choice: *choice,
        facts: facts.clone(),
        calibration: None,
        names: Vec::new(),
        kernel,
        stacks: None,
        perturbation: None,
        triggers: None,
        with: Vec::new(),
        functions,
    };
    let trace = request.trace.clone();
    wait_for_removals();
    record(request, &mut |_| {})?;
    let trace = Trace::open(&trace)?;
    Ok((dir, trace))
}

fn measure_once(
    workload_command: &[OsString],
    choice: &Choice,
    facts: &Facts,
    kernel: Wanted,
) -> Result<Calibration, NotCalibrated> {
    let (_dir, trace) = recorded(workload_command, choice, facts, kernel, None)?;
    let samples = Samples::read(&trace)?;
    let chains = Chains::measure(&samples)?;
    let fastest = Fastest::by_pairs(&samples, &PAIRED.events());
    let calibration = from_samples(&samples, &chains, &fastest)?;
    let paired = paired::measure(&samples, PAIRED, &chains, &fastest)?;
    Ok(Calibration {
        sampled: Some(sampled::measure(&samples, &chains)?),
        paired: Some(paired),
        interrupt: interrupts::beside(&trace)?,
        // The costs are those of the fastest state.
        read_ns: (trace.manifest.read_ns()).map(|read| scaled(&read, fastest.ratio())),
        ..calibration
    })
}

#[cfg(test)]
mod tests;
