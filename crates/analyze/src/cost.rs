//! What the recording itself adds to a span, from the manifest's calibration.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use undertick_estimate::Cost;
use undertick_report::document::Slowed;
use undertick_trace::functions::FIRST_EVENT;
use undertick_trace::manifest::{Calibration, Name, Ring, SpanCost};
use undertick_units::Estimate;

use crate::beside::{Beside, DRIFT_ERROR};
use crate::tally::Sample;

/// Fixed point of costs: 2^-16 tick, far below any clock's step.
const POINT: u32 = 16;

/// How the clock was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As plain spans do: it waits for what came before, as far as the trace's recorder
    /// knew that.
    Plain,
    /// By an event or a fast span: it waits for nothing.
    Unordered,
    /// Serialised.
    Ordered,
}

/// What the plain spans of a trace are: a function that the compiler's hooks record costs more
/// than a span of the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// The program's own.
    ByHand,
    /// Functions.
    Functions,
    /// Of both kinds: which one it is of a sample is not asked.
    Both,
}

impl Recorded {
    /// What the names of a trace and its rings tell. Functions are recorded into rings of their
    /// own, so a thread with two has spans of both kinds, named or not.
    pub(crate) fn by(names: &[Name], rings: &[Ring]) -> Self {
        let is_function = |name: &&Name| name.pid.is_none() && name.event >= FIRST_EVENT;
        let mut threads = HashSet::new();
        let is_twice = |ring: &Ring| !threads.insert((ring.pid, ring.tid));
        match names.iter().filter(is_function).count() {
            0 => Self::ByHand,
            functions if functions < names.len() || rings.iter().any(is_twice) => Self::Both,
            _ => Self::Functions,
        }
    }
}

/// How the two ends of a sample were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Plain = 0,
    Mixed = 1,
    Ordered = 2,
    Unordered = 3,
    /// Plain readings of a sampled span: choosing whether it is recorded takes time inside it.
    Sampled = 4,
}

/// How many [`Ends`] there are.
pub(crate) const ENDS: usize = 5;

impl Ends {
    pub(crate) fn of(start: Reading, end: Reading) -> Self {
        match (start, end) {
            (Reading::Plain, Reading::Plain) => Self::Plain,
            (Reading::Ordered, Reading::Ordered) => Self::Ordered,
            (Reading::Unordered, Reading::Unordered) => Self::Unordered,
            _ => Self::Mixed,
        }
    }
}

/// Records inside something, serialised ones apart: those of plain spans in the low half,
/// events in the high half. Both counts wrap, and a difference of two of them is right as
/// long as it has no more than 2^32 of either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inner(u64);

impl Inner {
    pub(crate) const NONE: Self = Self(0);
    /// A begin, an end or a next of a plain span.
    pub(crate) const SPAN: Self = Self(1);
    /// An event, or an end of a fast span.
    pub(crate) const EVENT: Self = Self(1 << 32);

    /// [`Self::EVENT`] for 1, [`Self::SPAN`] for 0; without a branch.
    #[inline]
    pub(crate) fn of(is_event: u8) -> Self {
        Self(1 << (is_event * 32))
    }

    #[inline]
    pub(crate) fn and(self, more: Self) -> Self {
        Self(self.0.wrapping_add(more.0))
    }

    /// Those from then to now.
    #[inline]
    pub(crate) fn since(self, then: Self) -> Self {
        Self(self.0.wrapping_sub(then.0))
    }

    pub(crate) fn spans(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn events(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn records(self) -> u64 {
        u64::from(self.spans()) + u64::from(self.events())
    }
}

/// Costs per sample: exact in nanoseconds for sums, in fixed-point ticks for
/// single samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct CostTable {
    /// By [`Ends`], ns.
    spans: [Cost; ENDS],
    inner: InnerCosts,
    /// By [`Ends`], without inner readings, whole ticks.
    bare: [i64; ENDS],
    fixed: [i64; ENDS],
    fixed_inner: FixedInner,
    ns_per_tick: f64,
    /// By [`Ends`]: the two calibrations contradict each other.
    pub(crate) disagree: [bool; ENDS],
    /// What samples with pairs of readings have subtracted instead.
    pub(crate) beside: Option<Beside>,
    /// By [`Ends`]: spans of this much work or more, ns, have the cost beside known doses,
    /// whatever a span around nothing costs.
    worked: [Option<(f64, Cost)>; ENDS],
}

/// What a record inside a sample adds to it, ns.
#[derive(Clone, Copy, Debug, Default)]
struct InnerCosts {
    span: Cost,
    event: Cost,
    ordered: Cost,
    /// An execution of a sampled span, recorded or not.
    counted: Cost,
    /// A record of one, beside that.
    sampled: Cost,
}

/// The same, fixed point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FixedInner {
    span: i64,
    event: i64,
    ordered: i64,
    sampled: i64,
}

impl FixedInner {
    #[inline]
    fn of(&self, inner: Inner, ordered: u32) -> i64 {
        self.span * i64::from(inner.spans())
            + self.event * i64::from(inner.events())
            + self.ordered * i64::from(ordered)
    }

    /// Of all records inside a sample. What counting sampled spans costs is not known of one
    /// sample: a record stands for executions that may lie before it ([`Costs::counting`]).
    #[inline]
    fn inside(&self, sample: &Sample) -> i64 {
        self.of(sample.inner, sample.inner_ordered)
            .saturating_add(self.sampled * i64::from(sample.sampling.records))
    }
}

/// What one sample has subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// To the nearest tick.
    pub(crate) ticks: i64,
    /// If its own pairs told.
    pub(crate) beside: Option<Told>,
}

/// What the pairs of one sample told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// Cost of the sample's two ends, fixed point.
    own: i64,
    /// Both pairs, ticks, if both are believed: what was hit by something else
    /// says nothing of the readings' cost.
    pairs: Option<[u32; 2]>,
}

impl CostTable {
    /// One constant a reading: the mean of all pairs of its kind.
    pub(crate) fn long_term(plain: Cost, ordered: Cost, ns_per_tick: f64) -> Self {
        let inner = InnerCosts {
            span: plain,
            event: plain,
            ordered,
            counted: choosing(plain),
            sampled: plain,
        };
        let sampled = plain.and(choosing(plain));
        Self::of_costs([plain, ordered, plain, sampled], inner, ns_per_tick)
    }

    fn of_costs(spans: [Cost; 4], inner: InnerCosts, ns_per_tick: f64) -> Self {
        let [plain, ordered, unordered, sampled] = spans;
        // One end of each: half of both.
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
            ns_per_tick,
            disagree: [false; ENDS],
            beside: None,
            worked: [None; ENDS],
        }
    }

    /// `recorded`: what the plain spans of the trace are.
    pub(crate) fn new(calibration: &Calibration, recorded: Recorded, ns_per_tick: f64) -> Self {
        // Older recorders read the clock without waiting at plain spans, too.
        let waits = calibration.inner_span_ns.is_some();
        let by_hand = span_cost(&calibration.plain, waits);
        let (ordered, ordered_disagrees) = span_cost(&calibration.ordered, true);
        let cost = |estimate: &Estimate| not_below_0(Cost::of(estimate));
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
            // Whatever work a span holds: one cost for all, so that what is subtracted is the
            // middle of the bounds.
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
        };
        // Between two readings that wait for nothing lies one record.
        let unordered = if waits { event } else { plain };
        let worked_sampled = match found {
            Some(sampled) => worked(&sampled.span),
            None => worked_plain.map(|(least, cost)| (least, cost.and(choosing(inner_by_hand)))),
        };
        Self {
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

    /// For a table without constants.
    pub(crate) fn set_ns_per_tick(&mut self, ns_per_tick: f64) {
        self.ns_per_tick = ns_per_tick;
    }

    /// What to subtract from one sample.
    #[inline]
    pub(crate) fn of(&self, sample: &Sample) -> Taken {
        if sample.pairs != [0; 2]
            && let Some(beside) = &self.beside
        {
            return self.beside(sample, beside);
        }
        Taken {
            ticks: self.ticks(sample),
            beside: None,
        }
    }

    #[inline(never)]
    fn beside(&self, sample: &Sample, beside: &Beside) -> Taken {
        let [t1, t4] = sample.pairs.map(f64::from);
        // 2^40: as other costs, far beyond any pair that is not an accident.
        let most = (1_i64 << 40) as f64;
        let own = (beside.correction.cost(t1, t4) * f64::from(1 << POINT)).clamp(-most, most);
        let own = own.round() as i64;
        let both = own.saturating_add(self.fixed_inner.inside(sample));
        Taken {
            ticks: both.saturating_add(1 << (POINT - 1)) >> POINT,
            beside: Some(Told {
                own,
                pairs: [t1, t4]
                    .iter()
                    .all(|&t| beside.correction.held(t) == t)
                    .then_some(sample.pairs),
            }),
        }
    }

    /// Of samples between such ends with no serialised readings inside.
    pub(crate) fn plain_ones(&self, ends: Ends) -> PlainCosts {
        PlainCosts {
            fixed: self.fixed[ends as usize],
            inner: self.fixed_inner,
        }
    }

    /// Cost of one sample to the nearest tick.
    #[inline]
    fn ticks(&self, sample: &Sample) -> i64 {
        let ends = sample.ends as usize;
        if !sample.holds_records() {
            return self.bare[ends];
        }
        let cost = self.fixed[ends].saturating_add(self.fixed_inner.inside(sample));
        cost.saturating_add(1 << (POINT - 1)) >> POINT
    }
}

/// What choosing whether a sampled span is recorded may cost where that was not measured: no more
/// than a record.
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
pub(crate) struct PlainCosts {
    fixed: i64,
    inner: FixedInner,
}

impl PlainCosts {
    pub(crate) const NONE: Self = Self {
        fixed: 0,
        inner: FixedInner {
            span: 0,
            event: 0,
            ordered: 0,
            sampled: 0,
        },
    };

    /// Whether what is inside changes nothing.
    pub(crate) fn are_constant(self) -> bool {
        self.inner.span == 0 && self.inner.event == 0
    }

    /// Of one with so many others inside, to the nearest tick.
    #[inline]
    pub(crate) fn of(self, inside: Inner) -> i64 {
        (self.fixed + self.inner.of(inside, 0) + (1 << (POINT - 1))) >> POINT
    }
}

/// The cost found with known doses of work. Where the empty span contradicts it
/// beyond both intervals the bounds hold both, rather than a wrong constant.
/// What the value is then depends on the readings: those that wait keep work
/// and reading apart whatever the work is, so the doses are right and only a
/// span around nothing differs; a reading that waits for nothing overlaps with work by as
/// much as the work allows (a dependent chain most, nothing at all least), so a
/// program's own code lies anywhere between, and the middle is taken.
pub(crate) fn span_cost(span: &SpanCost, waits: bool) -> (Cost, bool) {
    let cost = |estimate: &Estimate| not_below_0(Cost::of(estimate));
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

/// What the points inside cost the samples of an interval on average, measured by switching
/// them (`record --perturbation`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPlace {
    /// Of all samples, also those during which they were off, ns.
    pub(crate) cost: Cost,
    /// Points inside that were switched, of all samples likewise.
    pub(crate) points: f64,
    /// Share of the samples during which points were on.
    pub(crate) on: f64,
}

impl InPlace {
    pub(crate) fn of(slowed: &Slowed) -> Option<Self> {
        let [on, off] = slowed.samples.map(|n| n as f64);
        // Without points inside, or of the kernel's events, it is another cost.
        slowed.per_point.as_ref()?;
        let share = on / (on + off);
        (share > 0.0).then(|| Self {
            cost: Cost::of(&slowed.by).times(share),
            points: slowed.points * share,
            on: share,
        })
    }
}

/// The same cost, of which no bound is below 0: recording takes time.
fn not_below_0(cost: Cost) -> Cost {
    Cost {
        below: cost.below.min(cost.value.max(0.0)),
        ..cost
    }
}

/// What was subtracted from a set of samples.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Costs {
    /// Samples by [`Ends`] that the constant was subtracted from.
    pub(crate) samples: [u64; ENDS],
    pub(crate) inner_spans: u64,
    pub(crate) inner_events: u64,
    pub(crate) inner_ordered: u64,
    /// Executions of sampled spans, recorded or not, and records of them.
    pub(crate) inner_counted: u64,
    inner_sampled: u64,
    /// Those of `samples` that hold inner readings, and what was subtracted
    /// from them, whole ticks.
    filled: [u64; ENDS],
    rounded: i128,
    /// Samples by [`Ends`] whose own pairs told the cost; what was to be
    /// subtracted from them, fixed point.
    pub(crate) by_pairs: [u64; ENDS],
    told: i128,
    /// Those whose pairs are believed, and the sums of the first and of the last
    /// pairs, ticks.
    believed: u64,
    pairs: [u64; 2],
}

impl Costs {
    #[inline]
    pub(crate) fn add(&mut self, sample: &Sample, taken: Taken) {
        self.inner_counted = self.inner_counted.saturating_add(sample.sampling.inside);
        if let Some(told) = taken.beside {
            self.by_pairs[sample.ends as usize] += 1;
            if let Some(pairs) = told.pairs {
                self.believed += 1;
                for (sum, ticks) in self.pairs.iter_mut().zip(pairs) {
                    *sum += u64::from(ticks);
                }
            }
            self.told += i128::from(told.own);
            self.rounded += i128::from(taken.ticks);
        } else {
            self.samples[sample.ends as usize] += 1;
            if sample.holds_records() {
                self.filled[sample.ends as usize] += 1;
                self.rounded += i128::from(taken.ticks);
            }
        }
        if sample.holds_records() {
            self.inner_spans += u64::from(sample.inner.spans());
            self.inner_events += u64::from(sample.inner.events());
            self.inner_ordered += u64::from(sample.inner_ordered);
            self.inner_sampled += u64::from(sample.sampling.records);
        }
    }

    /// As [`Self::add`], of `n` samples between such ends: `inside` are how many each held
    /// of others, none of them serialised, and from those that held any `rounded` ticks were
    /// subtracted.
    pub(crate) fn add_plain(&mut self, ends: Ends, inside: &[Inner], rounded: i64) {
        let filled = inside.iter().map(|&i| u64::from(i != Inner::NONE));
        self.samples[ends as usize] += inside.len() as u64;
        self.filled[ends as usize] += filled.sum::<u64>();
        self.inner_spans += inside.iter().map(|i| u64::from(i.spans())).sum::<u64>();
        self.inner_events += inside.iter().map(|i| u64::from(i.events())).sum::<u64>();
        self.rounded += i128::from(rounded);
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            samples: std::array::from_fn(|i| self.samples[i] + other.samples[i]),
            inner_spans: self.inner_spans + other.inner_spans,
            inner_events: self.inner_events + other.inner_events,
            inner_ordered: self.inner_ordered + other.inner_ordered,
            inner_counted: self.inner_counted.saturating_add(other.inner_counted),
            inner_sampled: self.inner_sampled + other.inner_sampled,
            filled: std::array::from_fn(|i| self.filled[i] + other.filled[i]),
            rounded: self.rounded + other.rounded,
            by_pairs: std::array::from_fn(|i| self.by_pairs[i] + other.by_pairs[i]),
            told: self.told + other.told,
            believed: self.believed + other.believed,
            pairs: std::array::from_fn(|i| self.pairs[i] + other.pairs[i]),
        }
    }

    pub(crate) fn n(&self) -> u64 {
        self.samples.iter().chain(&self.by_pairs).sum()
    }

    /// Samples by [`Ends`], however their cost was found.
    pub(crate) fn by_ends(&self) -> [u64; ENDS] {
        std::array::from_fn(|i| self.samples[i] + self.by_pairs[i])
    }

    /// As [`Self::mean`], of samples that come out at `mean_ns` when it is
    /// subtracted: the disagreement with spans around nothing does not concern
    /// spans that hold work.
    ///
    /// What was measured in place replaces what the calibration says of the records inside.
    pub(crate) fn mean_for(
        &self,
        table: &CostTable,
        mean_ns: f64,
        in_place: Option<InPlace>,
    ) -> Cost {
        let mut table = table.clone();
        for (span, worked) in table.spans.iter_mut().zip(table.worked) {
            if let Some((least, dosed)) = worked
                && mean_ns >= least
            {
                *span = dosed;
            }
        }
        if let Some(beside) = &mut table.beside
            && let Some((least, error)) = beside.small
            && mean_ns < least
        {
            beside.error = error;
        }
        let inner = self.inner(&table, in_place);
        self.ends(&table).and(inner)
    }

    /// Records inside on average.
    pub(crate) fn inner_records(&self) -> f64 {
        let records =
            self.inner_spans + self.inner_events + self.inner_ordered + self.inner_sampled;
        records as f64 / self.n().max(1) as f64
    }

    /// Mean cost per sample of the records inside, ns.
    pub(crate) fn inner(&self, table: &CostTable, in_place: Option<InPlace>) -> Cost {
        let n = self.n().max(1) as f64;
        let calibrated = [
            (table.inner.span, self.inner_spans),
            (table.inner.event, self.inner_events),
            (table.inner.ordered, self.inner_ordered),
            (table.inner.sampled, self.inner_sampled),
        ];
        // What is not there leaves nothing open.
        let calibrated = (calibrated.into_iter())
            .filter(|&(_, count)| count > 0)
            .map(|(each, count)| each.times(count as f64 / n))
            .fold(Cost::default(), Cost::and);
        let records = self.inner_records();
        let recorded = match in_place {
            Some(found) if records > 0.0 => {
                // Of the records inside, those that were not switched cost what they cost.
                let switched = (found.points / records).min(1.0);
                calibrated.times(1.0 - switched).and(found.cost)
            }
            _ => calibrated,
        };
        // Executions are counted while points are switched off, too, and records tell of those
        // alone that were counted while they were on.
        let on = in_place.map_or(1.0, |found| found.on);
        recorded.and(self.counting(table).times(1.0 / on))
    }

    /// Mean cost per sample of counting the sampled spans inside that records tell of, ns.
    fn counting(&self, table: &CostTable) -> Cost {
        match self.inner_counted {
            0 => Cost::default(),
            counted => (table.inner.counted).times(counted as f64 / self.n().max(1) as f64),
        }
    }

    /// Whether the cost subtracted from samples of `mean_ns` is one about which
    /// the two calibrations contradict each other.
    pub(crate) fn is_disputed(&self, table: &CostTable, mean_ns: f64) -> bool {
        let small = table.beside.and_then(|beside| beside.small);
        if self.by_pairs.iter().any(|&n| n > 0) && small.is_some_and(|(least, _)| mean_ns < least) {
            return true;
        }
        (0..ENDS).any(|e| {
            let settled = table.worked[e].is_some_and(|(least, _)| mean_ns >= least);
            table.disagree[e] && self.samples[e] > 0 && !settled
        })
    }

    /// Mean cost per sample, ns, inner records included.
    pub(crate) fn mean(&self, table: &CostTable) -> Cost {
        self.ends(table).and(self.inner(table, None))
    }

    /// Mean cost per sample of its two readings, ns.
    fn ends(&self, table: &CostTable) -> Cost {
        let n = self.n().max(1) as f64;
        let spans = (table.spans.iter().zip(self.samples))
            .filter(|&(_, count)| count > 0)
            .map(|(cost, count)| cost.times(count as f64 / n));
        let told = self.told as f64 / f64::from(1 << POINT) * table.ns_per_tick / n;
        let with_pairs = self.by_pairs.iter().sum::<u64>() as f64;
        let share = with_pairs / n;
        let (drift, error) = match table.beside.filter(|_| with_pairs > 0.0) {
            Some(beside) => {
                let drift = if self.believed > 0 {
                    let means = self.pairs.map(|sum| sum as f64 / self.believed as f64);
                    beside.drift(means) * table.ns_per_tick
                } else {
                    0.0
                };
                let unsure = DRIFT_ERROR * drift.abs();
                let error = Cost {
                    below: beside.error.below + unsure,
                    above: beside.error.above + unsure,
                    ..beside.error
                };
                (drift, error.times(share))
            }
            None => (0.0, Cost::default()),
        };
        spans
            .chain([Cost {
                value: told + drift * share,
                ..error
            }])
            .fold(Cost::default(), Cost::and)
    }

    /// What rounding single samples to ticks took too little (positive) or too
    /// much, ticks per sample: added to what was subtracted.
    pub(crate) fn residue(&self, table: &CostTable) -> f64 {
        if self.n() == 0 || table.ns_per_tick == 0.0 {
            return 0.0;
        }
        let bare: i128 = (0..ENDS)
            .map(|e| i128::from(self.samples[e] - self.filled[e]) * i128::from(table.bare[e]))
            .sum();
        let subtracted = (self.rounded + bare) as f64 / self.n() as f64;
        self.mean(table).value / table.ns_per_tick - subtracted
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::slice;

    use undertick_trace::manifest::{FunctionCost, SampledCost};
    use undertick_units::Interval;

    use super::*;

    pub(crate) fn estimate(value: f64, lo: f64, hi: f64) -> Estimate {
        Estimate {
            value,
            interval: Interval::new(lo, hi),
            level: 0.95,
            unit: "ns".into(),
            method: "test".into(),
            n: 100,
            n_effective: 100.0,
            notes: vec![],
        }
    }

    fn sample(ends: Ends, inner_spans: u32, pairs: [u32; 2]) -> Sample {
        Sample {
            ticks: 500,
            start: 0,
            ends,
            pairs,
            inner: spans(inner_spans),
            inner_ordered: 0,
            hit: false,
            unknown: false,
            sampling: crate::sampled::Sampling::default(),
        }
    }

    fn holding(ends: Ends, inner: Inner, inner_ordered: u32) -> Sample {
        Sample {
            inner,
            inner_ordered,
            ..sample(ends, 0, [0; 2])
        }
    }

    fn spans(n: u32) -> Inner {
        (0..n).fold(Inner::NONE, |inner, _| inner.and(Inner::SPAN))
    }

    fn calibration() -> Calibration {
        Calibration {
            inner_span_ns: None,
            plain: SpanCost {
                empty_ns: estimate(20.0, 19.0, 21.0),
                dosed_ns: estimate(10.0, 9.0, 12.0),
                least_dose_ns: None,
            },
            ordered: SpanCost {
                empty_ns: estimate(30.0, 29.0, 31.0),
                dosed_ns: estimate(30.5, 30.0, 31.0),
                least_dose_ns: None,
            },
            inner_event_ns: estimate(8.0, 7.0, 9.0),
            inner_ordered_ns: estimate(16.0, 15.0, 17.0),
            functions: None,
            sampled: None,
            paired: None,
            interrupt: None,
            measured_unix_ns: None,
        }
    }

    /// Half of 75 and 80 is 77.5 ticks, one inner record 20: 97.5, of which 98
    /// are subtracted; a sample without pairs has the constant's 76.25.
    #[test]
    fn pairs_tell_the_cost_of_their_sample() {
        let mut t = CostTable::new(&calibration(), Recorded::ByHand, 0.4);
        t.beside = Some(Beside::published("pairs", None));
        let with = sample(Ends::Ordered, 1, [75, 80]);
        let without = sample(Ends::Ordered, 0, [0; 2]);
        assert_eq!(t.of(&with).ticks, 98);
        assert_eq!(t.of(&without).ticks, 76);
        let mut costs = Costs::default();
        costs.add(&with, t.of(&with));
        assert!((costs.mean(&t).value - 97.5 * 0.4).abs() < 1e-12);
        assert!((costs.residue(&t) + 0.5).abs() < 1e-12);
        // The pairs tell nothing of the record inside: 7 to 9 ns.
        let (all, ends) = (costs.mean(&t), costs.ends(&t));
        assert!(
            (all.above - ends.above - 1.0).abs() < 1e-12,
            "{all:?} {ends:?}"
        );
        assert_eq!(costs.inner_records(), 1.0);
        costs.add(&without, t.of(&without));
        assert!((costs.mean(&t).value - (97.5 * 0.4 + 30.5) / 2.0).abs() < 1e-12);
        // (97.5 + 76.25) / 2 less (98 + 76) / 2.
        assert!((costs.residue(&t) + 0.125).abs() < 1e-12);
        assert_eq!((costs.n(), costs.by_ends()), (2, [0, 0, 2, 0, 0]));
    }

    /// One reading each: 20 ticks plain, 50 ordered, 35 mixed.
    #[test]
    fn long_term_is_one_constant_a_reading() {
        let cost = |value| Cost {
            value,
            ..Cost::default()
        };
        let t = CostTable::long_term(cost(8.0), cost(20.0), 0.4);
        assert_eq!(t.of(&sample(Ends::Plain, 0, [0; 2])).ticks, 20);
        assert_eq!(t.of(&sample(Ends::Ordered, 0, [0; 2])).ticks, 50);
        assert_eq!(t.of(&sample(Ends::Mixed, 2, [0; 2])).ticks, 75);
    }

    /// Plain: 9..12 against 19..21 disagree: 15 with 9..21. Ordered: agree.
    #[test]
    fn contradiction_takes_the_hull() {
        let t = CostTable::new(&calibration(), Recorded::ByHand, 0.4);
        assert_eq!(t.disagree, [true, true, false, true, true]);
        assert_eq!(t.spans[0].value, 15.0);
        assert_eq!((t.spans[0].below, t.spans[0].above), (6.0, 6.0));
        assert!(t.spans[0].systematic && !t.spans[2].systematic);
        assert_eq!((t.spans[2].below, t.spans[2].above), (0.5, 0.5));
    }

    /// Ordered 36 +- 0.2 empty, 33 +- 0.2 dosed: 33 with 32.8..36.2.
    #[test]
    fn serialised_readings_keep_the_dosed_cost() {
        let mut c = calibration();
        c.ordered = SpanCost {
            empty_ns: estimate(36.0, 35.8, 36.2),
            dosed_ns: estimate(33.0, 32.8, 33.2),
            least_dose_ns: None,
        };
        let t = CostTable::new(&c, Recorded::ByHand, 0.4);
        assert!(t.disagree[2]);
        let ordered = t.spans[2];
        assert_eq!(ordered.value, 33.0);
        assert!((ordered.below - 0.2).abs() < 1e-9 && (ordered.above - 3.2).abs() < 1e-9);
    }

    /// As above with a least dose of 5 ns: from there on the empty span's 36.2
    /// does not count any more.
    #[test]
    fn spans_of_work_have_the_dosed_cost() {
        let mut c = calibration();
        c.ordered = SpanCost {
            empty_ns: estimate(36.0, 35.8, 36.2),
            dosed_ns: estimate(33.0, 32.8, 33.2),
            least_dose_ns: Some(5.0),
        };
        let t = CostTable::new(&c, Recorded::ByHand, 0.4);
        let mut costs = Costs::default();
        let one = sample(Ends::Ordered, 0, [0; 2]);
        costs.add(&one, t.of(&one));
        assert!((costs.mean_for(&t, 4.9, None).above - 3.2).abs() < 1e-9);
        assert!((costs.mean_for(&t, 5.0, None).above - 0.2).abs() < 1e-9);
        assert_eq!(costs.mean_for(&t, 5.0, None).value, 33.0);
        assert!(costs.is_disputed(&t, 4.9) && !costs.is_disputed(&t, 5.0));
        let plain = sample(Ends::Plain, 0, [0; 2]);
        costs.add(&plain, t.of(&plain));
        assert!(costs.is_disputed(&t, 5.0), "plain readings stay disputed");
    }

    /// 15 ns = 37.5 ticks; 30.5 ns = 76.25; mixed 56.875; 8 ns = 20; 16 ns = 40.
    #[test]
    fn ticks_by_hand() {
        let t = CostTable::new(&calibration(), Recorded::ByHand, 0.4);
        assert_eq!(t.ticks(&sample(Ends::Plain, 0, [0; 2])), 38);
        assert_eq!(t.ticks(&holding(Ends::Plain, spans(3), 1)), 138); // 137.5
        assert_eq!(t.ticks(&holding(Ends::Plain, spans(4), 1)), 158); // 157.5
        assert_eq!(t.ticks(&sample(Ends::Ordered, 0, [0; 2])), 76);
        assert_eq!(t.ticks(&sample(Ends::Mixed, 0, [0; 2])), 57);
        let mut costs = Costs::default();
        let mut add = |inner| {
            let sample = sample(Ends::Ordered, inner, [0; 2]);
            costs.add(&sample, t.of(&sample));
        };
        add(0);
        add(2);
        // Mean 30.5 + 8 ns = 96.25 ticks; 96 were subtracted.
        assert_eq!(costs.mean(&t).value, 38.5);
        assert!((costs.residue(&t) - 0.25).abs() < 1e-12);
    }

    /// Two records inside, 16 ns by the calibration. Measured in place by switching one of
    /// them, with 300 of 400 samples on: 20 [18, 24] ns when on are 15 [13.5, 18] of all, and
    /// the one that was not switched 8 [7, 9] by half. 1.5 points a sample when on.
    #[test]
    fn what_was_measured_in_place_is_subtracted() {
        let t = CostTable::new(&calibration(), Recorded::ByHand, 0.4);
        let mut costs = Costs::default();
        let one = sample(Ends::Ordered, 2, [0; 2]);
        costs.add(&one, t.of(&one));
        assert_eq!(costs.mean_for(&t, 500.0, None).value, 30.5 + 16.0);
        let slowed = Slowed {
            what: "points".into(),
            by: estimate(20.0, 18.0, 24.0),
            share: estimate(0.1, 0.0, 0.2),
            per_point: Some(estimate(15.0, 13.5, 18.0)),
            points: 4.0 / 3.0,
            samples: [300, 100],
            long: [0, 0],
        };
        let in_place = InPlace::of(&slowed);
        let cost = costs.mean_for(&t, 500.0, in_place);
        assert!((cost.value - (30.5 + 15.0 + 8.0)).abs() < 1e-9, "{cost:?}");
        assert!((cost.below - (0.5 + 1.5 + 1.0)).abs() < 1e-9, "{cost:?}");
        assert!((cost.above - (0.5 + 3.0 + 1.0)).abs() < 1e-9, "{cost:?}");
        let kernel = Slowed {
            per_point: None,
            ..slowed
        };
        assert!(InPlace::of(&kernel).is_none());
    }

    /// Ten executions of 2 [1, 3] ns that records tell of, with points on during half of the
    /// samples: twenty in truth. Without points that were switched they are ten.
    #[test]
    fn sampled_spans_are_counted_while_points_are_off() {
        let mut c = calibration();
        c.sampled = Some(SampledCost {
            span: c.plain.clone(),
            counted_ns: estimate(2.0, 1.0, 3.0),
            record_ns: estimate(9.0, 8.0, 11.0),
        });
        let t = CostTable::new(&c, Recorded::ByHand, 0.4);
        let mut one = sample(Ends::Ordered, 0, [0; 2]);
        one.sampling.inside = 10;
        let mut costs = Costs::default();
        costs.add(&one, t.of(&one));
        let counting = |in_place| {
            let cost = costs.inner(&t, in_place);
            [cost.value, cost.value - cost.below, cost.value + cost.above]
        };
        assert_eq!(counting(None), [20.0, 10.0, 30.0]);
        let in_place = InPlace {
            cost: Cost::default(),
            points: 0.0,
            on: 0.5,
        };
        assert_eq!(counting(Some(in_place)), [40.0, 20.0, 60.0]);
        // Nothing of it in the sample, all of it in the mean: 30.5 ns of its own and 20.
        assert_eq!(t.of(&one).ticks, 76);
        assert!((costs.residue(&t) - (50.5 / 0.4 - 76.0)).abs() < 1e-9);
    }

    /// Spans wait: 12 ns a record of theirs is 30 ticks, 8 ns an event 20; between two
    /// readings that wait for nothing lies one event.
    #[test]
    fn records_of_spans_and_events_cost_what_each_costs() {
        let c = Calibration {
            inner_span_ns: Some(estimate(12.0, 11.0, 14.0)),
            ..calibration()
        };
        let t = CostTable::new(&c, Recorded::ByHand, 0.4);
        let inside = spans(2)
            .and(Inner::EVENT)
            .and(Inner::EVENT)
            .and(Inner::EVENT);
        assert_eq!(
            (inside.spans(), inside.events(), inside.records()),
            (2, 3, 5)
        );
        assert_eq!(t.ticks(&sample(Ends::Unordered, 0, [0; 2])), 20);
        assert_eq!(
            t.ticks(&holding(Ends::Unordered, inside, 0)),
            20 + 2 * 30 + 3 * 20
        );
        // Plain spans wait, so their doses are right: 10 ns, 25 ticks.
        assert_eq!(
            t.ticks(&holding(Ends::Plain, inside, 0)),
            25 + 2 * 30 + 3 * 20
        );
        assert_eq!(t.plain_ones(Ends::Unordered).of(inside), 140);
        // Counts that wrap.
        let then = Inner(u64::MAX - 1);
        assert_eq!(then.and(inside).since(then), inside);
    }

    /// A function's span costs 25 to 27 ns around work and 12 to 20 a record inside another
    /// span, one by hand 9 to 12 and 11 to 14. Where the trace has functions alone the former
    /// is subtracted, where it has both what holds both, and without functions the latter.
    #[test]
    fn functions_cost_what_their_hooks_take() {
        let functions = FunctionCost {
            span: SpanCost {
                empty_ns: estimate(25.0, 24.0, 26.0),
                dosed_ns: estimate(26.0, 25.0, 27.0),
                least_dose_ns: Some(3.0),
            },
            inner_ns: estimate(16.0, 12.0, 20.0),
        };
        let mut plain = calibration().plain;
        plain.empty_ns = plain.dosed_ns.clone();
        plain.least_dose_ns = Some(5.0);
        let c = Calibration {
            functions: Some(functions),
            inner_span_ns: Some(estimate(12.0, 11.0, 14.0)),
            plain,
            ..calibration()
        };
        // A span around work, and two records inside.
        let found = |recorded: Recorded| {
            let t = CostTable::new(&c, recorded, 0.4);
            let mut costs = Costs::default();
            let sample = sample(Ends::Plain, 2, [0; 2]);
            costs.add(&sample, t.of(&sample));
            let cost = costs.mean_for(&t, 100.0, None);
            [cost.value, cost.value - cost.below, cost.value + cost.above]
        };
        let near = |found: [f64; 3], expected: [f64; 3]| {
            let far = |(a, b): (f64, f64)| (a - b).abs() > 1e-9;
            assert!(!found.into_iter().zip(expected).any(far), "{found:?}");
        };
        let by_hand = [10.0 + 24.0, 9.0 + 22.0, 12.0 + 28.0];
        near(found(Recorded::ByHand), by_hand);
        near(
            found(Recorded::Functions),
            [26.0 + 32.0, 25.0 + 24.0, 27.0 + 40.0],
        );
        // Middles of 9 to 27 and of 11 to 20; that is what is subtracted, too.
        near(
            found(Recorded::Both),
            [18.0 + 31.0, 9.0 + 22.0, 27.0 + 40.0],
        );
        let both = CostTable::new(&c, Recorded::Both, 0.4);
        let empty = sample(Ends::Plain, 0, [0; 2]);
        assert_eq!(both.of(&empty).ticks, 45);
        let unmeasured = CostTable::new(&calibration(), Recorded::Functions, 0.4);
        assert_eq!(unmeasured.of(&sample(Ends::Plain, 0, [0; 2])).ticks, 38);
    }

    /// Functions have numbers and rings of their own, and names that hold for all processes.
    #[test]
    fn names_and_rings_tell_what_is_recorded() {
        let name = |event: u16, pid: Option<i32>| Name {
            pid,
            event,
            name: "a".to_owned(),
        };
        let ring = |tid: i32| Ring {
            ring: tid,
            pid: 7,
            tid,
            written: 1,
            received: 1,
            dropped: 0,
            overwritten: 0,
            spans_wait: None,
        };
        let rings = [ring(7), ring(8)];
        let of = |names: &[Name]| Recorded::by(names, &rings);
        let (function, span) = (name(FIRST_EVENT, None), name(1, Some(7)));
        assert_eq!(of(&[]), Recorded::ByHand);
        assert_eq!(of(slice::from_ref(&span)), Recorded::ByHand);
        let functions = slice::from_ref(&function);
        assert_eq!(of(functions), Recorded::Functions);
        assert_eq!(of(&[function.clone(), span]), Recorded::Both);
        assert_eq!(of(&[name(FIRST_EVENT, Some(7))]), Recorded::ByHand);
        // Spans by hand that have no name.
        let rings = [ring(7), ring(8), ring(7)];
        assert_eq!(Recorded::by(functions, &rings), Recorded::Both);
    }
}
