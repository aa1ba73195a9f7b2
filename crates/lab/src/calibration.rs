//! The cost of recording, by known doses of work.

mod paired;

use std::ffi::OsString;
use std::fmt;

use undertick_analyze::{Compensate, Cull, Options, analyze};
use undertick_clock::{Choice, facts::Facts};
use undertick_report::document::{IntervalReport, Report};
use undertick_trace::TraceError;
use undertick_trace::manifest::{Calibration, SpanCost};
use undertick_trace::read::Trace;
use undertick_trace::record::{Request, record};
use undertick_trace::session::Settings;
use undertick_units::{Estimate, Interval};

unsafe extern "C" {
    fn undertick_calibration_workload(passes: u32) -> u64;
}

/// Event numbers of `calibration.c`.
const CHAIN: &str = "event 1";
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
const PLAIN_INNER: &str = "event 30";
const ORDERED_INNER: &str = "event 31";

/// Passes of the workload, each one sample of every regular section; in random
/// order there are a fourth of that. About 250 ms.
pub const PASSES: u32 = 10_000;

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
// Inline, so that a library that has a workload of its own is not linked with this one's
// C, which is compiled for programs and cannot be part of a library.
#[inline]
pub fn workload() {
    // SAFETY: no arguments but a number; it touches only its own table.
    std::hint::black_box(unsafe { undertick_calibration_workload(PASSES) });
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
        settings: Settings::growing(choice.clock),
        choice: *choice,
        facts: facts.clone(),
        calibration: None,
        names: Vec::new(),
        kernel: undertick_trace::kernel::Wanted::Off,
        perturbation: None,
        functions: None,
    };
    let trace = request.trace.clone();
    record(request, |_| {})?;
    let trace = Trace::open(&trace)?;
    // Nothing is subtracted: what is left over is the very figure wanted. The
    // ratio rule takes out interrupts, which the flag does not tell of; a
    // section's cost does not reach four times the least.
    let options = Options {
        cull: Cull::Ratio(4.0),
        compensate: Compensate::None,
        ..Options::default()
    };
    let report = analyze(&trace, options, |_| {}).map_err(|e| NotCalibrated(e.to_string()))?;
    let calibration = from_report(&report)?;
    let pair_ns = of_chain(&report)?;
    let paired = paired::measure(&trace, PAIRED, &pair_ns, &calibration.1)?;
    Ok(Calibration {
        paired: Some(paired),
        ..calibration.0
    })
}

/// The costs that a constant can state, and that of spans with pairs.
fn from_report(report: &Report) -> Result<(Calibration, SpanCost), NotCalibrated> {
    let mean = |name: &str| figure(report, name, |interval| &interval.mean);
    let pair = of_chain(report)?;
    let doses = |base: u32| {
        (DOSES.iter())
            .map(|&(offset, pairs)| {
                let section = mean(&format!("event {}", base + offset))?;
                Ok(less_work(&section, &pair, pairs))
            })
            .collect::<Result<Vec<_>, NotCalibrated>>()
    };
    let span_cost = |sections: Sections| -> Result<SpanCost, NotCalibrated> {
        let empty = |base: u32| mean(&format!("event {base}"));
        let dosed = together(&doses(sections.regular)?, &doses(sections.random)?);
        let empty = Estimate {
            method: "mean of sections around nothing".to_owned(),
            ..together(&[empty(sections.regular)?], &[empty(sections.random)?])
        };
        Ok(SpanCost {
            empty_ns: empty,
            dosed_ns: in_any_surroundings(dosed, &pair),
            least_dose_ns: Some(DOSES[0].1 * pair.value),
        })
    };
    let (plain, ordered) = (span_cost(PLAIN)?, span_cost(ORDERED)?);
    // Two halves of 50 pairs, a record (or two) between, and the cost of a
    // section, of those in random order like these: what remains is the inner
    // record's.
    let inner = |name: &str, sections: Sections, records: f64| {
        let with_inner = less_work(&mean(name)?, &pair, 100.0);
        let section = together(&doses(sections.random)?, &[]);
        let left = difference(&with_inner, &section);
        Ok::<_, NotCalibrated>(scaled(&left, 1.0 / records))
    };
    let calibration = Calibration {
        inner_event_ns: inner(PLAIN_INNER, PLAIN, 1.0)?,
        inner_ordered_ns: inner(ORDERED_INNER, ORDERED, 2.0)?,
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
        .ok_or_else(|| too_few(name))
}

fn too_few(name: &str) -> NotCalibrated {
    NotCalibrated(format!("too few undisturbed samples of {name}"))
}

/// One pair of instructions of a dose, ns. From the chains' median: at 20 us
/// one chain in ten can be hit by something that the ratio rule does not see,
/// and a step of the clock is 0.05 % of it.
fn of_chain(report: &Report) -> Result<Estimate, NotCalibrated> {
    let chains = (report.intervals.iter()).find(|interval| interval.name == CHAIN);
    let chain = chains.and_then(|chains| {
        let most = chains.quantiles.get("0.9")?.value;
        Some(typical(chains.median.clone()?, chains.min?, most))
    });
    let chain = chain.ok_or_else(|| too_few(CHAIN))?;
    Ok(scaled(&chain, 1.0 / CHAIN_PAIRS))
}

/// The median of chains with its interval, which cannot be told where the speed of the core
/// stays now here, now there: the chains count as a handful then. What they cost meanwhile is
/// between the fastest of them and what one in ten exceeds all the same.
fn typical(median: Estimate, least: f64, most: f64) -> Estimate {
    let interval = match median.interval.half_width() {
        Some(_) => median.interval,
        None => Interval::new(least, most),
    };
    Estimate { interval, ..median }
}

/// Share of a dose by which its price may be wrong: what slows the core for a
/// moment moves a section's mean and leaves the chains' median.
const PRICE_ERROR: f64 = 0.001;

/// A section's mean less its dose, whose price the chain tells.
fn less_work(section: &Estimate, pair: &Estimate, pairs: f64) -> Estimate {
    let work = scaled(pair, pairs);
    let half = work.interval.half_width().unwrap_or(f64::INFINITY);
    let half = half.hypot(PRICE_ERROR * work.value);
    let interval = Interval::new(work.value - half, work.value + half);
    difference(section, &Estimate { interval, ..work })
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

    /// A price that drifts is known to what the chains span, one that does not as before.
    #[test]
    fn a_core_whose_speed_drifts_has_a_price_too() {
        let steady = typical(ns(50.0, 0.3), 49.0, 58.0);
        assert_eq!(
            (steady.interval.lo, steady.interval.hi),
            (Some(49.7), Some(50.3))
        );
        let unknown = Interval {
            lo: Some(49.7),
            hi: None,
        };
        let drifting = Estimate {
            interval: unknown,
            ..ns(50.0, 0.3)
        };
        let price = typical(drifting, 49.0, 58.0);
        assert!((price.value - 50.0).abs() < 1e-12);
        assert_eq!(
            (price.interval.lo, price.interval.hi),
            (Some(49.0), Some(58.0))
        );
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
