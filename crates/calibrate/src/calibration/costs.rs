//! Computes the cost of recording from the samples of the workload.

use undertick_format::manifest::{Calibration, SpanCost, SparseCost};
use undertick_units::{Estimate, Interval};

use super::chains::Chains;
use super::fastest::Fastest;
use super::samples::{AGAIN, REGULAR_PLAIN, Samples};
use super::{NotCalibrated, half};

/// Offset from the event of the span around nothing, as in `calibration.c`, and pairs of
/// instructions of a dose.
pub(super) const DOSES: [(u32, f64); 4] = [(1, 3.0), (2, 20.0), (3, 50.0), (4, 200.0)];

/// Pairs of instructions in the sections that are cold: so few that their own code is hardly fetched.
const COLD_PAIRS: f64 = 3.0;

/// One kind of span in the regular and the random loop. The events named here are around nothing;
/// [`DOSES`] count from them.
#[derive(Clone, Copy)]
pub(super) struct Sections {
    pub(super) regular: u32,
    pub(super) random: u32,
    /// Around [`COLD_PAIRS`] after work that has pushed the code of points out of the nearest caches.
    pub(super) cold: Option<u32>,
    /// Each is executed twice.
    pub(super) is_repeated: bool,
    /// Core cycles by which the instructions beside such a span shift its cost, or what it is beyond
    /// its pairs.
    pub(super) surroundings_cycles: f64,
}

impl Sections {
    /// All its events.
    pub(super) fn events(self) -> Vec<u32> {
        let doses = 0..=DOSES.len() as u32;
        let first: Vec<u32> = ([self.regular, self.random].iter())
            .flat_map(|first| doses.clone().map(move |at| first + at))
            .collect();
        let again = first.iter().map(|event| event + AGAIN);
        (first.iter().copied())
            .chain(again)
            .chain(self.cold)
            .collect()
    }

    /// What is added to the event of a span around a dose whose code is in the nearest caches.
    pub(super) const fn again(self) -> u32 {
        if self.is_repeated { AGAIN } else { 0 }
    }
}

/// Whether the spans of an event hold nothing or a dose, and are executed twice.
pub(super) fn are_repeated(event: u32) -> bool {
    let is_of = |first: u32| (first..=first + DOSES.len() as u32).contains(&event);
    ([PLAIN, ORDERED, PAIRED].iter())
        .any(|sections| is_of(sections.regular) || is_of(sections.random))
}

/// On an AMD guest it was one cycle (four programs, inlined or not: 29.2..29.8 ns at 0.35 ns a
/// cycle).
pub(super) const SURROUNDINGS_CYCLES: f64 = 1.0;

const PLAIN: Sections = Sections {
    regular: REGULAR_PLAIN,
    random: 10,
    cold: Some(270),
    is_repeated: true,
    surroundings_cycles: SURROUNDINGS_CYCLES,
};
const ORDERED: Sections = Sections {
    regular: 70,
    random: 20,
    cold: Some(271),
    is_repeated: true,
    surroundings_cycles: SURROUNDINGS_CYCLES,
};
pub(super) const PAIRED: Sections = Sections {
    regular: 80,
    random: 50,
    cold: None,
    is_repeated: true,
    // On an Intel guest whose core is shared: a standard deviation of 0.8 ns between processes, at 0.4
    // ns a cycle.
    surroundings_cycles: 2.0,
};
/// Plain and ordered spans around work without a known dose: this event and the next two.
const PLAIN_WORK: u32 = 31;
const ORDERED_WORK: u32 = 35;
const WORKS: u32 = 3;
/// The same behind loads that nothing waits for: such a reading waits for them, and the work that
/// follows begins before it has been taken. On an AMD Zen 3 guest that made a span cost 2 to 12 ns
/// instead of 12 to 20.
const PLAIN_BEHIND: u32 = 250;
const ORDERED_BEHIND: u32 = 260;
const BEHINDS: u32 = 4;
/// Ordered spans around this many steps of one kind of work. Each step contains nothing, an event,
/// a plain span, or an ordered span. The numbers of the next kind follow.
pub(super) const STEPS: u32 = 100;
pub(super) const STEPS_EACH: f64 = 16.0;
pub(super) const STEP_KINDS: u32 = 7;
pub(super) const VARIANTS: u32 = 4;
/// The same around this many steps of one kind, with the spans one after the other.
const FLOODS: u32 = 130;
pub(super) const FLOOD_STEPS: f64 = 128.0;
/// Ordered spans around as many steps of each kind. Each step contains nothing, a disabled event,
/// or a disabled span.
const OFF_STEPS: u32 = 200;
const OFF_VARIANTS: u32 = 3;
/// As [`STEPS`], around a few steps of kinds of work that take about a microsecond.
const SPARSE_STEPS: u32 = 230;
const SPARSE_STEPS_EACH: f64 = 4.0;
const SPARSE_KINDS: u32 = 3;

/// The costs that a constant can state.
pub(super) fn from_samples(
    samples: &Samples,
    chains: &Chains,
    fastest: &Fastest,
) -> Result<Calibration, NotCalibrated> {
    let pair = &chains.pair_ns;
    let ordered = span_cost(&fastest.only(samples, &ORDERED.events()), ORDERED, chains)?;
    let plain = {
        // The duration of the same work in an ordered span, less the cost of that span.
        let around = (0..WORKS).map(|kind| (PLAIN_WORK + kind, ORDERED_WORK + kind));
        let behind = (0..BEHINDS).map(|kind| (PLAIN_BEHIND + kind, ORDERED_BEHIND + kind));
        let works = around
            .chain(behind)
            .map(|(plain, in_order)| {
                let more = samples.mean_added((plain, 0), (in_order, 0))?;
                Ok(sum(&more, &ordered.dosed_ns))
            })
            .collect::<Result<Vec<_>, NotCalibrated>>()?;
        let only_fast = &fastest.only(samples, &PLAIN.events());
        let fast = Dosed::measure(only_fast, PLAIN, chains)?;
        let first = least_dose(&fast.regular);
        // A program may find the core in any state.
        let at_any_time = Dosed::measure(samples, PLAIN, chains)?.regular;
        let others = [&fast.others(first)[..], &at_any_time[first..], &works].concat();
        SpanCost {
            dosed_ns: in_any_surroundings(
                together(&fast.regular[first..], &others),
                pair,
                SURROUNDINGS_CYCLES,
            ),
            least_dose_ns: Some(DOSES[first].1 * pair.value),
            ..span_cost(only_fast, PLAIN, chains)?
        }
    };
    // The same steps with some records in each, less those without in the same pass. By medians,
    // which a busy machine does not move: over 16 steps, one step of the clock matters little. At
    // full speed by means, because a record there is sometimes expensive at the end of a segment.
    let stepped = |base: u32, kinds: u32, variant: u32, records: f64| {
        (0..kinds)
            .map(|kind| {
                let steps = |variant: u32| (base + kind * VARIANTS + variant, 0);
                let more = samples.median_added(steps(variant), steps(0))?;
                Ok(scaled(&more, 1.0 / records))
            })
            .collect::<Result<Vec<_>, NotCalibrated>>()
    };
    let inner = |variant: u32, records: f64| {
        let mut kinds = stepped(STEPS, STEP_KINDS, variant, STEPS_EACH * records)?;
        let flood = samples.mean_added((FLOODS + variant, 0), (FLOODS, 0))?;
        kinds.push(scaled(&flood, 1.0 / (FLOOD_STEPS * records)));
        Ok::<_, NotCalibrated>(hull(&kinds))
    };
    let sparse = |variant: u32, records: f64| {
        let records = SPARSE_STEPS_EACH * records;
        let kinds = stepped(SPARSE_STEPS, SPARSE_KINDS, variant, records)?;
        Ok::<_, NotCalibrated>(hull(&kinds))
    };
    // A disabled point takes less than a step of the clock, so it is measured over many of them.
    let mut off = Vec::new();
    for kind in 0..STEP_KINDS {
        let steps = |variant: u32| (OFF_STEPS + kind * OFF_VARIANTS + variant, 0);
        for (variant, points) in [(1, 1.0), (2, 2.0)] {
            let more = samples.median_added(steps(variant), steps(0))?;
            off.push(scaled(&more, 1.0 / (FLOOD_STEPS * points)));
        }
    }
    Ok(Calibration {
        inner_off_ns: Some(hull(&off)),
        inner_event_ns: inner(1, 1.0)?,
        inner_span_ns: Some(inner(2, 2.0)?),
        inner_ordered_ns: inner(3, 2.0)?,
        sparse: Some(SparseCost {
            event_ns: sparse(1, 1.0)?,
            span_ns: sparse(2, 2.0)?,
            ordered_ns: sparse(3, 2.0)?,
        }),
        plain,
        ordered,
        functions: None,
        sampled: None,
        paired: None,
        interrupt: None,
        read_ns: None,
        measured_unix_ns: None,
    })
}

/// What spans show beyond the known doses that they are around, one entry for each dose.
struct Dosed {
    /// In regular order.
    regular: Vec<Estimate>,
    /// In random order.
    random: Vec<Estimate>,
    /// In both orders, where the code of points and dose may have left the nearest caches; empty where
    /// that is not told from the others.
    first: [Vec<Estimate>; 2],
    /// Where that code surely has.
    cold: Option<Estimate>,
}

impl Dosed {
    fn measure(
        samples: &Samples,
        sections: Sections,
        chains: &Chains,
    ) -> Result<Self, NotCalibrated> {
        let beyond = |event: u32, pairs: f64| chains.mean_beyond(samples, event, pairs, |s| s.tm);
        let doses = |base: u32| {
            (DOSES.iter())
                .map(|&(offset, pairs)| beyond(base + offset, pairs))
                .collect::<Result<Vec<_>, NotCalibrated>>()
        };
        let first = match sections.is_repeated {
            true => [doses(sections.regular)?, doses(sections.random)?],
            false => [Vec::new(), Vec::new()],
        };
        Ok(Self {
            regular: doses(sections.regular + sections.again())?,
            random: doses(sections.random + sections.again())?,
            first,
            cold: (sections.cold)
                .map(|event| beyond(event, COLD_PAIRS))
                .transpose()?,
        })
    }

    /// All costs but the regular ones, of the doses from an index on. Of those whose code has to be
    /// fetched the first dose alone: what a longer one takes for that is its own time.
    fn others(&self, from: usize) -> Vec<Estimate> {
        let first = self.first.iter().filter_map(|of| of.get(from));
        let random = &self.random[from..];
        (random.iter().chain(first).chain(&self.cold))
            .cloned()
            .collect()
    }
}

pub(super) fn span_cost(
    samples: &Samples,
    sections: Sections,
    chains: &Chains,
) -> Result<SpanCost, NotCalibrated> {
    let found = Dosed::measure(samples, sections, chains)?;
    let mean = |event: u32| samples.mean(event);
    let empty = Estimate {
        method: "mean of sections around nothing".to_owned(),
        ..together(
            &[mean(sections.regular + sections.again())?],
            &[mean(sections.random + sections.again())?],
        )
    };
    Ok(SpanCost {
        empty_ns: empty,
        dosed_ns: in_any_surroundings(
            together(&found.regular, &found.others(0)),
            &chains.pair_ns,
            sections.surroundings_cycles,
        ),
        least_dose_ns: Some(DOSES[0].1 * chains.pair_ns.value),
    })
}

/// Doses whose costs differ by no more than this count as equal, ns.
const SAME_NS: f64 = 1.0;

/// Index of the first dose from which on all costs are equal. For short doses the core executes a
/// part of the work in parallel with the reading before it. A difference that may be chance does
/// not count: where the core's frequency changes, the longest dose is the least certain.
pub(super) fn least_dose(doses: &[Estimate]) -> usize {
    let differs = |&at: &usize| {
        let (dose, later) = (&doses[at], weighted_mean(&doses[at + 1..]));
        (dose.value - later.0).abs() > SAME_NS + half(dose) + later.1
    };
    let shorter = 0..doses.len().saturating_sub(1);
    shorter.rev().find(differs).map_or(0, |at| at + 1)
}

/// Mean and half-width of figures that should agree, weighted by how well each is known.
fn weighted_mean(figures: &[Estimate]) -> (f64, f64) {
    // A half-width of zero would give the other figures no weight.
    let weight = |figure: &Estimate| half(figure).max(1e-6).powi(-2);
    let weights: f64 = figures.iter().map(weight).sum();
    let weighted: f64 = figures.iter().map(|f| weight(f) * f.value).sum();
    (weighted / weights, weights.powf(-0.5))
}

/// The cost in any code, from the costs in some kinds, with bounds that contain all of them, since a
/// program's own code may behave as any. A point takes time, so no bound is below 0.
///
/// The value is the harmonic mean of the lowest upper bound and the highest lower bound. Between a
/// lowest and a highest cost, the harmonic mean has the smallest relative error in the kind where it
/// is most wrong, and that error is below 100 %: subtracting it leaves less error than subtracting
/// nothing, in each of these kinds. A poorly known cost widens the interval and hardly moves the
/// value, while the extremes of the values would be the worst measured ones.
pub(super) fn hull(kinds: &[Estimate]) -> Estimate {
    let lower = |kind: &Estimate| kind.value - half(kind);
    let upper = |kind: &Estimate| kind.value + half(kind);
    let least = |of: &dyn Fn(&Estimate) -> f64| kinds.iter().map(of).fold(f64::INFINITY, f64::min);
    let most =
        |of: &dyn Fn(&Estimate) -> f64| kinds.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    let (lowest, highest) = (least(&upper), most(&lower));
    let value = if lowest < highest {
        let (lowest, highest) = (lowest.max(0.0), highest.max(0.0));
        2.0 * lowest * highest / (lowest + highest).max(f64::MIN_POSITIVE)
    } else {
        // No two kinds surely differ: the middle of the bounds is in all of them.
        f64::midpoint(lowest, highest).max(0.0)
    };
    Estimate {
        value,
        interval: Interval::new(least(&lower).max(0.0), most(&upper).max(0.0)),
        method: format!("harmonic mean of {} kinds of code", kinds.len()),
        n: kinds.iter().map(|kind| kind.n).sum(),
        n_effective: kinds.iter().map(|kind| kind.n_effective).sum(),
        ..kinds[0].clone()
    }
}

pub(super) fn scaled(a: &Estimate, by: f64) -> Estimate {
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
    let value = a.value + b.value;
    let width = half(a).hypot(half(b));
    Estimate {
        value,
        interval: Interval::new(value - width, value + width),
        n: a.n.min(b.n),
        n_effective: a.n_effective.min(b.n_effective),
        notes: Vec::new(),
        ..a.clone()
    }
}

/// Latency of one multiplication and one addition, in core cycles.
const PAIR_CYCLES: f64 = 4.0;

/// Widens a cost by a number of core cycles, to hold in other code.
pub(super) fn in_any_surroundings(cost: Estimate, pair: &Estimate, cycles: f64) -> Estimate {
    let cycle = cycles * pair.value / PAIR_CYCLES;
    Estimate {
        interval: Interval {
            lo: cost.interval.lo.map(|lo| lo - cycle),
            hi: cost.interval.hi.map(|hi| hi + cycle),
        },
        ..cost
    }
}

/// Combines doses that should agree. The value is the mean of those in a regular loop, which
/// resembles code where short times matter. The interval reaches to all others, including those in
/// random order, as far as these are known. A cost that depends on the work or the surroundings
/// therefore widens the interval, and one that is poorly known does not.
pub(super) fn together(regular: &[Estimate], random: &[Estimate]) -> Estimate {
    let (value, its_half) = weighted_mean(regular);
    let others = || regular.iter().chain(random);
    Estimate {
        value,
        interval: Interval::new(
            others().fold(value - its_half, |lo, dose| lo.min(dose.value + half(dose))),
            others().fold(value + its_half, |hi, dose| hi.max(dose.value - half(dose))),
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
mod tests;
