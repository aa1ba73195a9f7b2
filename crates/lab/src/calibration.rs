//! The cost of recording, by known doses of work.

pub mod functions;
mod interrupts;
pub mod kept;
mod paired;
mod sampled;
mod samples;

use std::ffi::{OsString, c_int};
use std::fmt;
use std::time::SystemTime;

use tempfile::TempDir;
use undertick_clock::{Choice, facts::Facts};
use undertick_trace::TraceError;
use undertick_trace::functions::Functions;
use undertick_trace::kernel::Wanted;
use undertick_trace::manifest::{Calibration, SpanCost};
use undertick_trace::read::Trace;
use undertick_trace::record::{Request, record};
use undertick_trace::session::Settings;
use undertick_units::{Estimate, Interval};

use samples::Samples;

unsafe extern "C" {
    fn undertick_calibration_workload(passes: u32, of_functions: c_int) -> u64;
}

/// Event numbers of `calibration.c`.
const CHAIN: u32 = 1;
/// Pairs of multiply and add in the chain.
const CHAIN_PAIRS: f64 = 100.0 * 200.0;
const DOSES: [(u32, f64); 4] = [(1, 3.0), (2, 20.0), (3, 50.0), (4, 200.0)];

/// One kind of section in both kinds of loop; these events are around nothing,
/// and [`DOSES`] count from them.
#[derive(Clone, Copy)]
struct Sections {
    regular: u32,
    random: u32,
}

const PLAIN: Sections = Sections {
    regular: 60,
    random: 10,
};
const ORDERED: Sections = Sections {
    regular: 70,
    random: 20,
};
const PAIRED: Sections = Sections {
    regular: 80,
    random: 50,
};
/// Plain and ordered spans around work that has no known dose: these and the two after.
const PLAIN_WORK: u32 = 31;
const ORDERED_WORK: u32 = 35;
const WORKS: u32 = 3;
/// Ordered spans around this many steps of one kind of work: with nothing in each step, an
/// event, a plain and an ordered span; then those of the next kind.
const STEPS: u32 = 100;
const STEPS_EACH: f64 = 16.0;
const STEP_KINDS: u32 = 7;
const VARIANTS: u32 = 4;
/// The same around this many steps of one kind, one span after the other.
const FLOODS: u32 = 130;
const FLOOD_STEPS: f64 = 128.0;

/// Passes of the workload, each one sample of every regular section, and of one in four that is
/// sampled; in random order there are a fourth of that. About 200 ms.
pub const PASSES: u32 = 6_000;
/// Of a look whether costs that were measured before still hold: a tenth of that.
const PASSES_OF_A_LOOK: u32 = 640;

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

/// The program that [`measure`] records, or [`functions::measure`]: call it when the command
/// line says so, with the passes that it says, or [`PASSES`].
// Inline, so that a library that has a workload of its own is not linked with this one's
// C, which is compiled for programs and cannot be part of a library.
#[inline]
pub fn workload(passes: u32, of_functions: bool) {
    // SAFETY: no arguments but numbers; it touches only its own tables.
    std::hint::black_box(unsafe {
        undertick_calibration_workload(passes, c_int::from(of_functions))
    });
}

/// Runs of the workload.
const RUNS: usize = 4;
/// Of these the least disturbed gives the figures, and others widen them. A neighbour that
/// comes in makes the intervals of its run wide (seen here: 3 ns instead of 0.2), never narrow.
const LEAST_DISTURBED: usize = 2;
/// A run whose intervals are this many times wider says nothing of the others.
const COMPARABLE: f64 = 2.0;
/// Runs before it is given up on a machine that is too busy.
const MOST_RUNS: u32 = 6;

/// Measures what recording costs, and with the kernel's events what an interrupt takes beside
/// what they tell. `workload_command` must end up in [`workload`], in a process of its own.
///
/// # Errors
/// It could not be recorded, or too little of it was undisturbed.
pub fn measure(
    workload_command: &[OsString],
    choice: &Choice,
    facts: &Facts,
    kernel: Wanted,
) -> Result<Calibration, NotCalibrated> {
    let mut interrupt = None;
    let run = |number: u32| {
        // Asking the kernel takes longer than the run: once.
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

/// The least disturbed of some runs, by how uncertain they are, and others that widen it. `run`
/// is given a run's number; another run may do where one failed, but not after an error of its
/// own.
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

/// What a look at the costs of before says of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// They hold: with intervals that hold what the look found.
    Holds(Box<Calibration>),
    /// They do not; what was found in their place.
    Changed(Box<Calibration>),
    /// It cannot be told: the machine is too busy.
    Unknown,
}

/// Looks whether recording still costs what it did: by a run a tenth as long, without the
/// kernel's events, and by another one where that contradicts: for some milliseconds a
/// neighbour makes readings a nanosecond dearer (2 of 40 looks here).
#[must_use]
pub fn look_again(
    before: &Calibration,
    workload_command: &[OsString],
    choice: &Choice,
    facts: &Facts,
) -> Look {
    let mut command = workload_command.to_vec();
    command.push(PASSES_OF_A_LOOK.to_string().into());
    let look = || measure_once(&command, choice, facts, Wanted::Off);
    of_looks(before, look)
}

/// As [`look_again`], by what looks find.
fn of_looks(before: &Calibration, look: impl Fn() -> Result<Calibration, NotCalibrated>) -> Look {
    let Ok(first) = look() else {
        return Look::Unknown;
    };
    let said = compared(before, &first);
    let Look::Changed(first) = said else {
        return said;
    };
    let Ok(second) = look() else {
        return Look::Unknown;
    };
    match compared(before, &second) {
        Look::Holds(mut both) => {
            // What was found once for a moment may have been so during the recording.
            hold_values(&mut both, &first);
            Look::Holds(both)
        }
        said => said,
    }
}

/// Means of spans around nothing that are known no better than this, ns, half-width: the
/// machine is too busy.
const BUSY_NS: f64 = 1.5;
/// How many of its half-widths a look must be away to tell that a cost has changed: of
/// thirteen figures one is by chance in some hundred looks.
const FAR: f64 = 2.0;
/// Share by which costs move within seconds, on a machine that is loaded for a while (18.5 to
/// 19.9 ns here): that widens intervals, and no more.
const MOVES: f64 = 0.1;
/// A look that knows a figure this many times worse than it is known says nothing of it.
const VAGUE: f64 = 2.0;

/// Whether a busy machine has blurred all of it.
fn is_blurred(calibration: &Calibration) -> bool {
    let empty = [&calibration.plain.empty_ns, &calibration.ordered.empty_ns];
    empty.iter().any(|mean| half(mean) > BUSY_NS)
}

fn half(figure: &Estimate) -> f64 {
    figure.interval.half_width().unwrap_or(f64::INFINITY)
}

/// What another measurement says of the costs of before: a look, or a whole one, which is
/// asked where looks contradict.
#[must_use]
pub fn compared(before: &Calibration, look: &Calibration) -> Look {
    if is_blurred(look) {
        return Look::Unknown;
    }
    let mut both = before.clone();
    let contradicts = |(figure, look): &(&mut Estimate, &Estimate)| {
        let far = FAR * half(look) + MOVES * figure.value.abs();
        let Interval { lo, hi } = figure.interval;
        lo.is_some_and(|lo| look.value < lo - far) || hi.is_some_and(|hi| look.value > hi + far)
    };
    if known(&mut both, look).any(|pair| contradicts(&pair)) {
        return Look::Changed(Box::new(look.clone()));
    }
    hold_values(&mut both, look);
    Look::Holds(Box::new(both))
}

/// Figures of which the look says something.
fn known<'a>(
    of: &'a mut Calibration,
    look: &'a Calibration,
) -> impl Iterator<Item = (&'a mut Estimate, &'a Estimate)> {
    let says = |(figure, look): &(&mut Estimate, &Estimate)| {
        half(look) <= BUSY_NS.max(VAGUE * half(figure))
    };
    both_figures(of, look).into_iter().filter(says)
}

/// Makes intervals hold the values that the look found.
fn hold_values(of: &mut Calibration, look: &Calibration) {
    for (figure, look) in known(of, look) {
        let Interval { lo, hi } = figure.interval;
        figure.interval = Interval {
            lo: lo.map(|lo| lo.min(look.value)),
            hi: hi.map(|hi| hi.max(look.value)),
        };
    }
}

/// The cost before a program ran and after it, in one: where they differ the intervals hold
/// both.
#[must_use]
pub fn before_and_after(before: &Calibration, after: &Calibration) -> Calibration {
    let mut both = before.clone();
    hold_both(&mut both, after);
    both
}

/// A record takes at least no time, and not more than this many pairs of readings.
const MOST_PAIRS: f64 = 3.0;

/// Refuses what cannot be: a busy machine, or a machine that is moved while this is measured,
/// can make any figure of differences.
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
    let sampled = (c.sampled.iter()).flat_map(|sampled| {
        sampled::costs(sampled)
            .into_iter()
            .map(|(what, cost)| (what, cost, plain))
    });
    for (what, cost, pair) in figures.into_iter().chain(inner_span).chain(sampled) {
        believe(what, cost, pair)?;
    }
    Ok(())
}

/// Refuses a cost that cannot be; `pair` is what two readings with nothing between take, ns.
fn believe(what: &str, cost: &Estimate, pair: f64) -> Result<(), NotCalibrated> {
    let most = MOST_PAIRS * pair;
    if (0.0..=most).contains(&cost.value) {
        return Ok(());
    }
    Err(NotCalibrated(format!(
        "{what} came out at {:.1} ns, and two readings with nothing between at {pair:.1} ns: \
         it costs more than nothing and less than {MOST_PAIRS} such pairs",
        cost.value
    )))
}

/// What is measured directly, of both: figures of the same.
fn both_figures<'a>(
    a: &'a mut Calibration,
    b: &'a Calibration,
) -> Vec<(&'a mut Estimate, &'a Estimate)> {
    let mut figures = Vec::new();
    for (a, b) in [(&mut a.plain, &b.plain), (&mut a.ordered, &b.ordered)] {
        figures.push((&mut a.empty_ns, &b.empty_ns));
        figures.push((&mut a.dosed_ns, &b.dosed_ns));
    }
    figures.push((&mut a.inner_event_ns, &b.inner_event_ns));
    figures.push((&mut a.inner_ordered_ns, &b.inner_ordered_ns));
    if let (Some(a), Some(b)) = (&mut a.inner_span_ns, &b.inner_span_ns) {
        figures.push((a, b));
    }
    if let (Some(a), Some(b)) = (&mut a.functions, &b.functions) {
        figures.extend(functions::figures(a, b));
    }
    if let (Some(a), Some(b)) = (&mut a.sampled, &b.sampled) {
        figures.extend(sampled::figures(a, b));
    }
    if let (Some(a), Some(b)) = (&mut a.paired, &b.paired) {
        figures.push((&mut a.span.dosed_ns, &b.span.dosed_ns));
        figures.push((&mut a.pairs_bias_ns, &b.pairs_bias_ns));
    }
    figures
}

/// The intervals of `a` made to hold those of `b` too: what runs a moment apart
/// disagree about is not known better than that.
fn hold_both(a: &mut Calibration, b: &Calibration) {
    both_figures(a, b).into_iter().for_each(|(a, b)| hold(a, b));
    if let (Some(a), Some(b)) = (&mut a.paired, &b.paired) {
        // The constant belongs to its own run's shares.
        let drift = (b.span.dosed_ns.value - a.span.dosed_ns.value).abs();
        let bound = |b: Option<f64>, by: f64| b.map(|b| b + by);
        a.constant_ns.interval = Interval {
            lo: bound(a.constant_ns.interval.lo, -drift),
            hi: bound(a.constant_ns.interval.hi, drift),
        };
    }
}

/// The interval of `a` made to hold that of `b` too.
fn hold(a: &mut Estimate, b: &Estimate) {
    let (x, y) = (a.interval, b.interval);
    a.interval = Interval {
        lo: x.lo.zip(y.lo).map(|(x, y)| x.min(y)),
        hi: x.hi.zip(y.hi).map(|(x, y)| x.max(y)),
    };
}

/// How uncertain a calibration is, all figures together, ns.
fn width(calibration: &Calibration) -> f64 {
    let c = calibration;
    let sampled = (c.sampled.iter()).flat_map(|sampled| [&sampled.counted_ns, &sampled.record_ns]);
    [
        &c.ordered.dosed_ns,
        &c.ordered.empty_ns,
        &c.plain.empty_ns,
        &c.inner_ordered_ns,
    ]
    .into_iter()
    .chain(sampled)
    .map(half)
    .sum()
}

/// The workload recorded, in a directory that is there as long as the first value.
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
        perturbation: None,
        functions,
    };
    let trace = request.trace.clone();
    record(request, |_| {})?;
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
    let samples = Samples::of(&trace)?;
    let (calibration, paired_cost) = from_samples(&samples)?;
    let pair_ns = of_chain(&samples)?;
    let paired = paired::measure(&samples, PAIRED, &pair_ns, &paired_cost)?;
    Ok(Calibration {
        sampled: Some(sampled::measure(&samples, &pair_ns)?),
        paired: Some(paired),
        interrupt: interrupts::beside(&trace)?,
        ..calibration
    })
}

/// The costs that a constant can state, and that of spans with pairs.
fn from_samples(samples: &Samples) -> Result<(Calibration, SpanCost), NotCalibrated> {
    let mean = |event: u32| samples.mean(event);
    let pair = of_chain(samples)?;
    let ordered = span_cost(samples, ORDERED, &pair)?;
    let plain = {
        // What an ordered span shows of the same work, less what it costs.
        let works = (0..WORKS)
            .map(|kind| {
                let more = difference(&mean(PLAIN_WORK + kind)?, &mean(ORDERED_WORK + kind)?);
                Ok(sum(&more, &ordered.dosed_ns))
            })
            .collect::<Result<Vec<_>, NotCalibrated>>()?;
        let [regular, random] = dosed(samples, PLAIN, &pair)?;
        let first = least_dose(&regular);
        let others: Vec<Estimate> = random[first..].iter().chain(&works).cloned().collect();
        SpanCost {
            dosed_ns: in_any_surroundings(together(&regular[first..], &others), &pair),
            least_dose_ns: Some(DOSES[first].1 * pair.value),
            ..span_cost(samples, PLAIN, &pair)?
        }
    };
    // The same steps with some records in each, less those with none. By medians, which a
    // busy machine does not move: beside 16 steps one of the clock's is little. At full speed
    // by means: there a record is dear now and then, where a segment ends.
    let inner = |variant: u32, records: f64| {
        let mut kinds = (0..STEP_KINDS)
            .map(|kind| {
                let of = |variant: u32| samples.median(STEPS + kind * VARIANTS + variant);
                let more = difference(&of(variant)?, &of(0)?);
                Ok(scaled(&more, 1.0 / (STEPS_EACH * records)))
            })
            .collect::<Result<Vec<_>, NotCalibrated>>()?;
        let flood = difference(&mean(FLOODS + variant)?, &mean(FLOODS)?);
        kinds.push(scaled(&flood, 1.0 / (FLOOD_STEPS * records)));
        Ok::<_, NotCalibrated>(hull(&kinds))
    };
    let calibration = Calibration {
        inner_event_ns: inner(1, 1.0)?,
        inner_span_ns: Some(inner(2, 2.0)?),
        inner_ordered_ns: inner(3, 2.0)?,
        plain,
        ordered,
        functions: None,
        sampled: None,
        paired: None,
        interrupt: None,
        measured_unix_ns: None,
    };
    Ok((calibration, span_cost(samples, PAIRED, &pair)?))
}

/// What sections around known doses show beyond those, in the regular order and in the random
/// one.
fn dosed(
    samples: &Samples,
    sections: Sections,
    pair: &Estimate,
) -> Result<[Vec<Estimate>; 2], NotCalibrated> {
    let doses = |base: u32| {
        (DOSES.iter())
            .map(|&(offset, pairs)| {
                let section = samples.mean(base + offset)?;
                Ok(less_work(&section, pair, pairs))
            })
            .collect::<Result<Vec<_>, NotCalibrated>>()
    };
    Ok([doses(sections.regular)?, doses(sections.random)?])
}

fn span_cost(
    samples: &Samples,
    sections: Sections,
    pair: &Estimate,
) -> Result<SpanCost, NotCalibrated> {
    let [regular, random] = dosed(samples, sections, pair)?;
    let mean = |event: u32| samples.mean(event);
    let empty = Estimate {
        method: "mean of sections around nothing".to_owned(),
        ..together(&[mean(sections.regular)?], &[mean(sections.random)?])
    };
    Ok(SpanCost {
        empty_ns: empty,
        dosed_ns: in_any_surroundings(together(&regular, &random), pair),
        least_dose_ns: Some(DOSES[0].1 * pair.value),
    })
}

/// Doses that may differ by this and be told to cost the same, ns.
const SAME_NS: f64 = 1.0;

/// The first of the doses from which on all cost the same: the core does a part of a short
/// one beside the reading before it.
fn least_dose(doses: &[Estimate]) -> usize {
    let last = doses.last().map_or(0.0, |dose| dose.value);
    let differs = |dose: &Estimate| (dose.value - last).abs() > SAME_NS;
    doses.iter().rposition(differs).map_or(0, |at| at + 1)
}

/// Costs in different code, of which a program's own may be any: their middle, with bounds
/// that hold all. A point takes time, so no bound is below 0. How well each is known widens the
/// bounds and does not move the middle.
fn hull(kinds: &[Estimate]) -> Estimate {
    let least = |of: &dyn Fn(&Estimate) -> f64| kinds.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: &dyn Fn(&Estimate) -> f64| kinds.iter().map(of).fold(0.0, f64::max);
    let value = |kind: &Estimate| kind.value;
    let lo = least(&|kind| kind.value - half(kind)).max(0.0);
    let hi = most(&|kind| kind.value + half(kind));
    Estimate {
        value: f64::midpoint(least(&value).max(0.0), most(&value)),
        interval: Interval::new(lo, hi),
        method: format!("middle of {} kinds of code", kinds.len()),
        n: kinds.iter().map(|kind| kind.n).sum(),
        n_effective: kinds.iter().map(|kind| kind.n_effective).sum(),
        ..kinds[0].clone()
    }
}

/// One pair of instructions of a dose, ns. From the chains' median: at 20 us
/// one chain in ten can be hit by something that the limit of samples does not see,
/// and a step of the clock is 0.05 % of it.
fn of_chain(samples: &Samples) -> Result<Estimate, NotCalibrated> {
    Ok(scaled(&samples.median(CHAIN)?, 1.0 / CHAIN_PAIRS))
}

/// Share of a dose by which its price may be wrong: what slows the core for a
/// moment moves a span's mean and leaves the chains' median.
const PRICE_ERROR: f64 = 0.001;

/// A span's mean less its dose, whose price the chain tells.
fn less_work(span: &Estimate, pair: &Estimate, pairs: f64) -> Estimate {
    let work = scaled(pair, pairs);
    let half = work.interval.half_width().unwrap_or(f64::INFINITY);
    let half = half.hypot(PRICE_ERROR * work.value);
    let interval = Interval::new(work.value - half, work.value + half);
    difference(span, &Estimate { interval, ..work })
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

/// a + b of independent estimates: half-widths add in squares.
fn sum(a: &Estimate, b: &Estimate) -> Estimate {
    let negative = Estimate {
        value: -b.value,
        interval: Interval {
            lo: b.interval.hi.map(|hi| -hi),
            hi: b.interval.lo.map(|lo| -lo),
        },
        ..b.clone()
    };
    difference(a, &negative)
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

/// One figure for doses that should agree: the mean of those in a regular loop,
/// as where small times matter, and an interval that holds all values, also
/// those in random order, so that a cost which changes with the work or with the
/// surroundings shows.
fn together(regular: &[Estimate], random: &[Estimate]) -> Estimate {
    let weight = |dose: &Estimate| {
        let half = dose.interval.half_width().unwrap_or(f64::INFINITY);
        // A half-width of nothing would leave nothing to the others.
        half.max(1e-6).powi(-2)
    };
    let weights: f64 = regular.iter().map(weight).sum();
    let weighted: f64 = regular.iter().map(|d| weight(d) * d.value).sum();
    let (value, half) = (weighted / weights, weights.powf(-0.5));
    let values = || regular.iter().chain(random).map(|dose| dose.value);
    Estimate {
        value,
        interval: Interval::new(
            values().fold(value - half, f64::min),
            values().fold(value + half, f64::max),
        ),
        method: format!(
            "sections around {} known doses of work, less the work",
            regular.len()
        ),
        n: regular.iter().map(|dose| dose.n).sum(),
        n_effective: regular.iter().map(|dose| dose.n_effective).sum(),
        ..regular[0].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(value: f64, half: f64) -> Estimate {
        Estimate {
            value,
            interval: Interval::new(value - half, value + half),
            level: 0.95,
            unit: "ns".into(),
            method: "test".into(),
            n: 10,
            n_effective: 10.0,
            notes: vec![],
        }
    }

    /// 30 +- 1 and 31 +- 2 with weights of 1 and 1/4: 30.2 +- 0.894.
    #[test]
    fn a_regular_loop_tells_the_value_and_all_widen_it() {
        let regular = [ns(30.0, 1.0), ns(31.0, 2.0)];
        let alone = together(&regular, &[]);
        assert!((alone.value - 30.2).abs() < 1e-12);
        let (lo, hi) = (alone.interval.lo.unwrap(), alone.interval.hi.unwrap());
        assert!((lo - (30.2 - 0.8_f64.sqrt())).abs() < 1e-12, "{lo}");
        assert!((hi - (30.2 + 0.8_f64.sqrt())).abs() < 1e-12, "{hi}");
        assert_eq!(alone.n, 20);
        let wide = together(&regular, &[ns(35.0, 9.0), ns(28.0, 9.0)]);
        assert!((wide.value - 30.2).abs() < 1e-12);
        assert_eq!(
            (wide.interval.lo, wide.interval.hi),
            (Some(28.0), Some(35.0))
        );
    }

    /// Doses of 15, 12.2, 13.0 and 12.5 ns: the first one differs by more than a nanosecond
    /// from the last, those after it do not.
    #[test]
    fn the_least_dose_is_the_first_after_which_all_agree() {
        let doses = [ns(15.0, 0.1), ns(12.2, 0.1), ns(13.0, 0.1), ns(12.5, 0.1)];
        assert_eq!(least_dose(&doses), 1);
        assert_eq!(least_dose(&doses[1..]), 0);
        let last = [ns(15.0, 0.1), ns(12.0, 0.1), ns(14.0, 0.1)];
        assert_eq!(least_dose(&last), 2);
    }

    pub(super) fn calibration(plain: f64, event: f64) -> Calibration {
        let span = |value: f64, empty: f64| SpanCost {
            empty_ns: ns(empty, 0.1),
            dosed_ns: ns(value, 0.1),
            least_dose_ns: Some(5.0),
        };
        Calibration {
            plain: span(plain, 20.0),
            ordered: span(25.0, 26.0),
            inner_event_ns: ns(event, 1.0),
            inner_span_ns: Some(ns(18.0, 1.0)),
            inner_ordered_ns: ns(26.0, 1.0),
            functions: None,
            sampled: None,
            paired: None,
            interrupt: None,
            measured_unix_ns: None,
        }
    }

    /// Two readings with nothing between take 20 ns here: 0 to 60 ns are believed.
    #[test]
    fn a_cost_that_cannot_be_is_refused() {
        check(&calibration(12.0, 5.0)).unwrap();
        check(&calibration(0.0, 60.0)).unwrap();
        for (plain, event, what) in [
            (-0.1, 5.0, "a plain span came out at -0.1 ns"),
            (12.0, -40.6, "an event inside a span came out at -40.6 ns"),
            (12.0, 61.0, "an event inside a span came out at 61.0 ns"),
            (f64::NAN, 5.0, "a plain span came out at NaN"),
        ] {
            let error = check(&calibration(plain, event)).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    /// 12 +- 0.1 before and 14 +- 0.1 after: 11.9 to 14.1 with the first's value.
    #[test]
    fn what_differs_before_and_after_widens_the_interval() {
        let both = before_and_after(&calibration(12.0, 5.0), &calibration(14.0, 5.0));
        let dosed = &both.plain.dosed_ns;
        assert_eq!(dosed.value, 12.0);
        let (lo, hi) = (dosed.interval.lo.unwrap(), dosed.interval.hi.unwrap());
        assert!((lo - 11.9).abs() < 1e-12 && (hi - 14.1).abs() < 1e-12);
    }

    /// 12 +- 0.1 ns before. A look of 12.3 +- 0.2 agrees, and widens the interval to 12.3; of
    /// 13.8 +- 0.2, over a tenth away, it does not; of 20 +- 3 it says nothing of that figure,
    /// and one that does not know what a span around nothing takes says nothing of any.
    #[test]
    fn a_look_agrees_contradicts_or_says_nothing() {
        let before = calibration(12.0, 5.0);
        let look = |value: f64, half: f64| {
            let mut look = calibration(12.0, 5.0);
            look.plain.dosed_ns = ns(value, half);
            look
        };
        let held = |look: Calibration| match compared(&before, &look) {
            Look::Holds(both) => *both,
            other => panic!("{other:?}"),
        };
        let both = held(look(12.3, 0.2));
        let Interval { lo, hi } = both.plain.dosed_ns.interval;
        assert!((lo.unwrap() - 11.9).abs() < 1e-12 && (hi.unwrap() - 12.3).abs() < 1e-12);
        assert_eq!(both.plain.dosed_ns.value, 12.0);
        for other in [look(13.8, 0.2), look(10.2, 0.2)] {
            assert_eq!(compared(&before, &other), Look::Changed(Box::new(other)));
        }
        assert_eq!(held(look(20.0, 3.0)).plain.dosed_ns, before.plain.dosed_ns);
        let mut busy = calibration(12.0, 5.0);
        busy.ordered.empty_ns = ns(26.0, 1.6);
        assert_eq!(compared(&before, &busy), Look::Unknown);
    }

    /// A look of 14 contradicts 12 +- 0.1. If the next one finds 12.2, it was a moment, and the
    /// interval holds it; if that is 14 too, costs have changed; if it fails, nobody knows.
    #[test]
    fn one_look_that_contradicts_is_not_enough() {
        let before = calibration(12.0, 5.0);
        let looks = |second: Option<f64>| {
            let mut found = vec![second, Some(14.0)];
            let found = std::cell::RefCell::new(&mut found);
            of_looks(&before, || {
                let plain = found.borrow_mut().pop().flatten();
                let failed = || NotCalibrated("no run".to_owned());
                plain
                    .map(|plain| calibration(plain, 5.0))
                    .ok_or_else(failed)
            })
        };
        let Look::Holds(both) = looks(Some(12.2)) else {
            panic!("it holds");
        };
        assert_eq!(both.plain.dosed_ns.interval.hi, Some(14.0));
        assert!(matches!(looks(Some(14.1)), Look::Changed(_)));
        assert_eq!(looks(None), Look::Unknown);
    }

    /// -1 +- 0.5, 8 +- 1 and 3 +- 0.1: 0 to 9, and not below, with the middle of 0 and 8.
    #[test]
    fn a_point_costs_what_it_may_cost_in_any_code_and_never_less_than_nothing() {
        let all = hull(&[ns(-1.0, 0.5), ns(8.0, 1.0), ns(3.0, 0.1)]);
        assert_eq!(all.value, 4.0);
        assert_eq!((all.interval.lo, all.interval.hi), (Some(0.0), Some(9.0)));
        assert_eq!(all.n, 30);
    }

    /// 50 +- 0.3 less ten pairs of 2 +- 0.02: 30, and half-widths of 0.3, of 0.2
    /// and of a thousandth of 20 in squares.
    #[test]
    fn the_work_is_taken_off_with_its_error() {
        let left = less_work(&ns(50.0, 0.3), &ns(2.0, 0.02), 10.0);
        assert!((left.value - 30.0).abs() < 1e-12);
        let half = left.interval.half_width().unwrap();
        assert!(
            (half - (0.09_f64 + 0.04 + 0.0004).sqrt()).abs() < 1e-9,
            "{half}"
        );
    }
}
