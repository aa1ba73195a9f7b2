//! Costs of each kind of reading, and of one sample.

use undertick_estimate::Cost;
use undertick_format::manifest::{Calibration, SpanCost};
use undertick_units::Estimate;

use super::POINT;
use super::pair_correction::PairCorrection;
use crate::reading::{ENDS, Ends, Inner, Recorded};
use crate::sample::Sample;

/// Costs per sample: exact in nanoseconds for sums, in fixed-point ticks for single samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct CostTable {
    /// Costs by [`Ends`], ns.
    pub(super) spans: [Cost; ENDS],
    pub(super) inner: InnerCosts,
    pub(super) sparse: SparseExcess,
    /// Costs by [`Ends`], without inner readings, whole ticks.
    pub(super) bare: [i64; ENDS],
    fixed: [i64; ENDS],
    fixed_inner: FixedInner,
    pub(super) ns_per_tick: f64,
    /// Whether the two calibrations contradict each other, by [`Ends`].
    pub(crate) disagree: [bool; ENDS],
    /// What is subtracted instead from samples with pairs of readings.
    pub(crate) pair_correction: Option<PairCorrection>,
    /// By [`Ends`]: spans of this much work or more, ns, have the cost measured beside known
    /// doses, whatever a span around nothing costs.
    pub(super) worked: [Option<(f64, Cost)>; ENDS],
    /// Cost of a reading in the program over its cost when this was measured.
    pub(crate) read_ratio: Option<f64>,
}

/// What a record inside a sample adds to it, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InnerCosts {
    pub(super) span: Cost,
    pub(super) event: Cost,
    pub(super) ordered: Cost,
    /// Cost of an execution of a sampled span, recorded or not.
    pub(super) counted: Cost,
    /// Additional cost of a record of one.
    pub(super) sampled: Cost,
    /// Cost of a point that is switched off.
    pub(super) off: Cost,
    /// Cost of a serialised one that is off. Every second is an end, which still reads the clock.
    pub(super) off_ordered: Cost,
}

/// Excess of the upper bound of a record's cost far from other records over that in loops, ns. It is
/// also applied to functions and sampled spans, for which it was not measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SparseExcess {
    event: f64,
    span: f64,
    ordered: f64,
}

/// Records this close to each other, ns, have the costs of [`InnerCosts`]: the steps in which these
/// are measured take some tens of nanoseconds, with a record 100 at most.
const CLOSE_NS: f64 = 100.0;
/// Records this far from each other, ns, may cost as much as [`SparseExcess`] say: this is less than
/// the shortest step in which that is measured, so that the bound is not narrow too long.
const FAR_NS: f64 = 400.0;

impl InnerCosts {
    /// The costs with the upper bounds that hold where a record comes every `spacing_ns`. The values
    /// stay: how records are spaced inside a sample is not known, only how many there are.
    pub(super) fn spaced(self, sparse: &SparseExcess, spacing_ns: f64) -> Self {
        let far = ((spacing_ns - CLOSE_NS) / (FAR_NS - CLOSE_NS)).clamp(0.0, 1.0);
        let raised = |cost: Cost, by: f64| Cost {
            above: cost.above + far * by,
            ..cost
        };
        Self {
            span: raised(self.span, sparse.span),
            event: raised(self.event, sparse.event),
            ordered: raised(self.ordered, sparse.ordered),
            counted: raised(self.counted, sparse.event),
            sampled: raised(self.sampled, sparse.span),
            ..self
        }
    }
}

/// As [`InnerCosts`], in fixed point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FixedInner {
    span: i64,
    event: i64,
    ordered: i64,
    sampled: i64,
}

impl FixedInner {
    #[inline]
    fn cost(&self, inner: Inner, ordered: u32) -> i64 {
        self.span * i64::from(inner.spans())
            + self.event * i64::from(inner.events())
            + self.ordered * i64::from(ordered)
    }

    /// Cost of all records inside a sample. The cost of counting sampled spans is unknown for one
    /// sample: a record stands for executions that may lie before it ([`Costs::counting`]).
    #[inline]
    fn inside(&self, sample: &Sample) -> i64 {
        self.cost(sample.inner, sample.inner_ordered)
            .saturating_add(self.sampled * i64::from(sample.sampling.records))
    }
}

/// What is subtracted from one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Cost to the nearest tick.
    pub(crate) ticks: i64,
    /// Cost from its own pairs, if they gave it.
    pub(crate) pair_cost: Option<PairCost>,
}

/// The cost of one sample according to its pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairCost {
    /// Cost of the sample's two ends, fixed point.
    pub(super) own: i64,
    /// Both pairs, ticks, if both are used: a pair that was disturbed says nothing of the
    /// readings' cost.
    pub(super) pairs: Option<[u32; 2]>,
}

impl CostTable {
    /// Makes a table with one constant for each reading: the mean of all pairs of its kind.
    pub(crate) fn long_term(plain: Cost, ordered: Cost, ns_per_tick: f64) -> Self {
        let inner = InnerCosts {
            span: plain,
            event: plain,
            ordered,
            counted: choosing(plain),
            sampled: plain,
            off: Cost::default(),
            off_ordered: Cost::default(),
        };
        let sampled = plain.and(choosing(plain));
        Self::of_costs([plain, ordered, plain, sampled], inner, ns_per_tick)
    }

    fn of_costs(spans: [Cost; 4], inner: InnerCosts, ns_per_tick: f64) -> Self {
        let [plain, ordered, unordered, sampled] = spans;
        // One end of each kind: half of both.
        let mixed = plain.times(0.5).and(ordered.times(0.5));
        let spans = [plain, mixed, ordered, unordered, sampled];
        // Bounds that keep 2^32 inner readings inside 64 bits: a cost of 2^13
        // ticks per inner reading is beyond any clock.
        let fixed = |c: Cost, most: i64| {
            let fixed = (c.value / ns_per_tick * f64::from(1 << POINT)).round() as i64;
            fixed.clamp(-most, most)
        };
        let fixed_spans = spans.map(|c| fixed(c, 1 << 40));
        Self {
            bare: fixed_spans.map(|f| (f + (1 << (POINT - 1))) >> POINT),
            fixed: fixed_spans,
            fixed_inner: FixedInner {
                span: fixed(inner.span, 1 << 29),
                event: fixed(inner.event, 1 << 29),
                ordered: fixed(inner.ordered, 1 << 29),
                sampled: fixed(inner.sampled, 1 << 29),
            },
            spans,
            inner,
            sparse: SparseExcess::default(),
            ns_per_tick,
            disagree: [false; ENDS],
            pair_correction: None,
            worked: [None; ENDS],
            read_ratio: None,
        }
    }

    /// Makes a table from a calibration; `recorded` says what the plain spans of the trace are.
    pub(crate) fn new(calibration: &Calibration, recorded: Recorded, ns_per_tick: f64) -> Self {
        // Older recorders read the clock without waiting at plain spans, too.
        let waits = calibration.inner_span_ns.is_some();
        let by_hand = span_cost(&calibration.plain, waits);
        let (ordered, ordered_disagrees) = span_cost(&calibration.ordered, true);
        let cost = |estimate: &Estimate| not_below_0(Cost::from_estimate(estimate));
        let event = cost(&calibration.inner_event_ns);
        let inner_by_hand = calibration.inner_span_ns.as_ref().map_or(event, cost);
        let worked =
            |span: &SpanCost| (span.least_dose_ns).map(|least| (least, cost(&span.dosed_ns)));
        let worked_by_hand = worked(&calibration.plain).filter(|_| waits);
        let functions = calibration.functions.as_ref().map(|functions| {
            let inner = cost(&functions.inner_ns);
            (
                span_cost(&functions.span, true),
                worked(&functions.span),
                inner,
            )
        });
        let ((plain, plain_disagrees), worked_plain, inner_span) = match (functions, recorded) {
            (Some(functions), Recorded::Functions) => functions,
            // One cost for all spans, whatever work they hold, so that the middle of the bounds
            // is subtracted.
            (Some((ends, _, inner)), Recorded::Both) => (
                (by_hand.0.or(ends.0), by_hand.1 || ends.1),
                None,
                inner_by_hand.or(inner),
            ),
            (None, _) | (_, Recorded::ByHand) => (by_hand, worked_by_hand, inner_by_hand),
        };
        let found = calibration.sampled.as_ref();
        let (sampled, sampled_disagrees) = found.map_or_else(
            || (plain.and(choosing(inner_by_hand)), plain_disagrees),
            |s| span_cost(&s.span, true),
        );
        let inner = InnerCosts {
            span: inner_span,
            event,
            ordered: cost(&calibration.inner_ordered_ns),
            counted: found.map_or_else(|| choosing(event), |s| cost(&s.counted_ns)),
            sampled: found.map_or(inner_by_hand, |s| cost(&s.record_ns)),
            off: (calibration.inner_off_ns.as_ref()).map_or_else(Cost::default, cost),
            off_ordered: (calibration.inner_off_ns.as_ref())
                .map_or_else(Cost::default, |_| half_of_a_reading(&calibration.ordered)),
        };
        let sparse = calibration.sparse.as_ref().map(|sparse| {
            let beyond = |far: &Estimate, close: Cost| {
                let (far, most) = (cost(far), close.value + close.above);
                (far.value + far.above - most).max(0.0)
            };
            SparseExcess {
                event: beyond(&sparse.event_ns, event),
                span: beyond(&sparse.span_ns, inner_by_hand),
                ordered: beyond(&sparse.ordered_ns, inner.ordered),
            }
        });
        // One record lies between two readings that wait for nothing.
        let unordered = if waits { event } else { plain };
        let worked_sampled = match found {
            Some(sampled) => worked(&sampled.span),
            None => worked_plain.map(|(least, cost)| (least, cost.and(choosing(inner_by_hand)))),
        };
        Self {
            sparse: sparse.unwrap_or_default(),
            worked: [
                worked_plain,
                None,
                worked(&calibration.ordered),
                None,
                worked_sampled,
            ],
            disagree: [
                plain_disagrees,
                plain_disagrees || ordered_disagrees,
                ordered_disagrees,
                plain_disagrees && !waits,
                sampled_disagrees,
            ],
            ..Self::of_costs([plain, ordered, unordered, sampled], inner, ns_per_tick)
        }
    }

    /// Costs of sections by [`Ends`], ns, without what lies inside.
    pub(crate) fn span_costs(&self) -> [Cost; ENDS] {
        self.spans
    }

    /// Sets the tick of a table without constants.
    pub(crate) fn set_ns_per_tick(&mut self, ns_per_tick: f64) {
        self.ns_per_tick = ns_per_tick;
    }

    /// Returns what to subtract from one sample.
    #[inline]
    pub(crate) fn subtracted_from(&self, sample: &Sample) -> Taken {
        if sample.pairs != [0; 2]
            && let Some(pair_correction) = &self.pair_correction
        {
            return self.subtracted_by_pairs(sample, pair_correction);
        }
        Taken {
            ticks: self.ticks(sample),
            pair_cost: None,
        }
    }

    #[inline(never)]
    fn subtracted_by_pairs(&self, sample: &Sample, pair_correction: &PairCorrection) -> Taken {
        let [t1, t4] = sample.pairs.map(f64::from);
        // 2^40: as for other costs, far above any valid pair.
        let most = (1_i64 << 40) as f64;
        let own =
            (pair_correction.correction.cost(t1, t4) * f64::from(1 << POINT)).clamp(-most, most);
        let own = own.round() as i64;
        let both = own.saturating_add(self.fixed_inner.inside(sample));
        Taken {
            ticks: both.saturating_add(1 << (POINT - 1)) >> POINT,
            pair_cost: Some(PairCost {
                own,
                pairs: [t1, t4]
                    .iter()
                    .all(|&t| pair_correction.correction.held(t) == t)
                    .then_some(sample.pairs),
            }),
        }
    }

    /// Costs of samples between such ends with no serialised readings inside.
    pub(crate) fn fast_path_costs(&self, ends: Ends) -> FastPathCosts {
        FastPathCosts {
            fixed: self.fixed[ends as usize],
            inner: self.fixed_inner,
        }
    }

    /// Cost of one sample to the nearest tick.
    #[inline]
    pub(super) fn ticks(&self, sample: &Sample) -> i64 {
        let ends = sample.ends as usize;
        if !sample.holds_records() {
            return self.bare[ends];
        }
        let cost = self.fixed[ends].saturating_add(self.fixed_inner.inside(sample));
        cost.saturating_add(1 << (POINT - 1)) >> POINT
    }
}

/// Bound on the cost of choosing whether a sampled span is recorded, where it was not measured:
/// at most that of a record.
fn choosing(record: Cost) -> Cost {
    Cost {
        value: 0.0,
        below: 0.0,
        above: record.value + record.above,
        systematic: true,
    }
}

/// Costs of samples without serialised readings, fixed point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastPathCosts {
    fixed: i64,
    inner: FixedInner,
}

impl FastPathCosts {
    pub(crate) const NONE: Self = Self {
        fixed: 0,
        inner: FixedInner {
            span: 0,
            event: 0,
            ordered: 0,
            sampled: 0,
        },
    };

    /// Whether records inside change nothing.
    pub(crate) fn are_constant(self) -> bool {
        self.inner.span == 0 && self.inner.event == 0
    }

    /// Cost of a sample with these records inside, to the nearest tick.
    #[inline]
    pub(crate) fn cost(self, inside: Inner) -> i64 {
        (self.fixed + self.inner.cost(inside, 0) + (1 << (POINT - 1))) >> POINT
    }
}

/// The cost measured with known doses of work. Where the empty span contradicts it beyond both
/// intervals, the bounds hold both, rather than a wrong constant. The value then depends on the
/// readings. Readings that wait keep work and reading apart, whatever the work is, so the doses
/// are right and only a span around nothing differs. A reading that waits for nothing overlaps
/// with work by as much as the work allows: a dependent chain most, an empty span least. So a
/// program's own code lies anywhere between, and the middle is taken.
pub(crate) fn span_cost(span: &SpanCost, waits: bool) -> (Cost, bool) {
    let cost = |estimate: &Estimate| not_below_0(Cost::from_estimate(estimate));
    let (dosed, empty) = (cost(&span.dosed_ns), cost(&span.empty_ns));
    let (dosed_lo, dosed_hi) = (dosed.value - dosed.below, dosed.value + dosed.above);
    let (empty_lo, empty_hi) = (empty.value - empty.below, empty.value + empty.above);
    if dosed_lo <= empty_hi && empty_lo <= dosed_hi {
        return (dosed, false);
    }
    let (lo, hi) = (dosed_lo.min(empty_lo), dosed_hi.max(empty_hi));
    let value = if waits { dosed.value } else { (lo + hi) / 2.0 };
    let hull = Cost {
        value,
        below: value - lo,
        above: hi - value,
        systematic: true,
    };
    (hull, true)
}

/// About one reading lies between a begin and an end around nothing. The path of an end that is
/// off is longer by an unmeasured time.
fn half_of_a_reading(ordered: &SpanCost) -> Cost {
    let reading = ordered.empty_ns.value.max(0.0);
    Cost {
        value: reading / 2.0,
        below: reading / 4.0,
        above: reading / 2.0,
        systematic: true,
    }
}

/// The same cost with no bound below 0: recording takes time.
fn not_below_0(cost: Cost) -> Cost {
    Cost {
        below: cost.below.min(cost.value.max(0.0)),
        ..cost
    }
}
