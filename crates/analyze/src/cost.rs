//! What the recording itself adds to a span, from the manifest's calibration.

use serde::{Deserialize, Serialize};
use undertick_estimate::Cost;
use undertick_trace::manifest::{Calibration, SpanCost};

use crate::beside::{Beside, DRIFT_ERROR};
use crate::tally::Sample;

/// Fixed point of costs: 2^-16 tick, far below any clock's step.
const POINT: u32 = 16;

/// How the two ends of a sample were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Plain = 0,
    Mixed = 1,
    Ordered = 2,
}

impl Ends {
    pub(crate) fn of(start_ordered: bool, end_ordered: bool) -> Self {
        match (start_ordered, end_ordered) {
            (false, false) => Self::Plain,
            (true, true) => Self::Ordered,
            _ => Self::Mixed,
        }
    }
}

/// Costs per sample: exact in nanoseconds for sums, in fixed-point ticks for
/// single samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct CostTable {
    /// By [`Ends`], ns.
    spans: [Cost; 3],
    inner_plain: Cost,
    inner_ordered: Cost,
    /// By [`Ends`], without inner readings, whole ticks.
    bare: [i64; 3],
    fixed: [i64; 3],
    fixed_plain: i64,
    fixed_ordered: i64,
    ns_per_tick: f64,
    /// By [`Ends`]: the two calibrations contradict each other.
    pub(crate) disagree: [bool; 3],
    /// What samples with pairs of readings have subtracted instead.
    pub(crate) beside: Option<Beside>,
    /// Serialised spans of this much work or more, ns, have the cost beside
    /// known doses, whatever a span around nothing costs.
    worked: Option<(f64, Cost)>,
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
    /// Cost, fixed point.
    fixed: i64,
    /// Both pairs, ticks, if both are believed: what was hit by something else
    /// says nothing of the readings' cost.
    pairs: Option<[u32; 2]>,
}

impl CostTable {
    /// One constant a reading: the mean of all pairs of its kind.
    pub(crate) fn long_term(plain: Cost, ordered: Cost, ns_per_tick: f64) -> Self {
        Self::of_costs([plain, ordered], [plain, ordered], ns_per_tick)
    }

    fn of_costs(spans: [Cost; 2], inner: [Cost; 2], ns_per_tick: f64) -> Self {
        let [plain, ordered] = spans;
        // One end of each: half of both.
        let spans = [plain, plain.times(0.5).and(ordered.times(0.5)), ordered];
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
            fixed_plain: fixed(inner[0], 1 << 29),
            fixed_ordered: fixed(inner[1], 1 << 29),
            spans,
            inner_plain: inner[0],
            inner_ordered: inner[1],
            ns_per_tick,
            disagree: [false; 3],
            beside: None,
            worked: None,
        }
    }

    pub(crate) fn new(calibration: &Calibration, ns_per_tick: f64) -> Self {
        let (plain, plain_disagrees) = span_cost(&calibration.plain, false);
        let (ordered, ordered_disagrees) = span_cost(&calibration.ordered, true);
        let inner = [&calibration.inner_event_ns, &calibration.inner_ordered_ns].map(Cost::of);
        let least = calibration.ordered.least_dose_ns;
        Self {
            worked: least.map(|least| (least, Cost::of(&calibration.ordered.dosed_ns))),
            disagree: [
                plain_disagrees,
                plain_disagrees || ordered_disagrees,
                ordered_disagrees,
            ],
            ..Self::of_costs([plain, ordered], inner, ns_per_tick)
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
            ticks: self.ticks(sample.ends, sample.inner_plain, sample.inner_ordered),
            beside: None,
        }
    }

    #[inline(never)]
    fn beside(&self, sample: &Sample, beside: &Beside) -> Taken {
        let [t1, t4] = sample.pairs.map(f64::from);
        // 2^40: as other costs, far beyond any pair that is not an accident.
        let most = (1_i64 << 40) as f64;
        let own = (beside.correction.cost(t1, t4) * f64::from(1 << POINT)).clamp(-most, most);
        let fixed = own.round() as i64 + self.inner(sample.inner_plain, sample.inner_ordered);
        Taken {
            ticks: (fixed + (1 << (POINT - 1))) >> POINT,
            beside: Some(Told {
                fixed,
                pairs: [t1, t4]
                    .iter()
                    .all(|&t| beside.correction.held(t) == t)
                    .then_some(sample.pairs),
            }),
        }
    }

    fn inner(&self, plain: u32, ordered: u32) -> i64 {
        self.fixed_plain * i64::from(plain) + self.fixed_ordered * i64::from(ordered)
    }

    /// Of samples between plain readings with nothing but plain readings inside.
    pub(crate) fn plain_ones(&self) -> PlainCosts {
        PlainCosts {
            fixed: self.fixed[Ends::Plain as usize],
            inner: self.fixed_plain,
        }
    }

    /// Cost of one sample to the nearest tick.
    #[inline]
    fn ticks(&self, ends: Ends, inner_plain: u32, inner_ordered: u32) -> i64 {
        if inner_plain | inner_ordered == 0 {
            return self.bare[ends as usize];
        }
        let cost = self.fixed[ends as usize] + self.inner(inner_plain, inner_ordered);
        (cost + (1 << (POINT - 1))) >> POINT
    }
}

/// Costs of samples between plain readings, fixed point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainCosts {
    fixed: i64,
    inner: i64,
}

impl PlainCosts {
    pub(crate) const NONE: Self = Self { fixed: 0, inner: 0 };

    /// Whether what is inside changes nothing.
    pub(crate) fn are_constant(self) -> bool {
        self.inner == 0
    }

    /// Of one with so many others inside, to the nearest tick.
    #[inline]
    pub(crate) fn of(self, inside: u32) -> i64 {
        (self.fixed + self.inner * i64::from(inside) + (1 << (POINT - 1))) >> POINT
    }
}

/// The cost found with known doses of work. Where the empty span contradicts it
/// beyond both intervals the bounds hold both, rather than a wrong constant.
/// What the value is then depends on the readings: serialised ones keep work
/// and reading apart whatever the work is, so the doses are right and only a
/// span around nothing differs; a plain reading overlaps with work by as much
/// as the work allows (a dependent chain most, nothing at all least), so a
/// program's own code lies anywhere between, and the middle is taken.
pub(crate) fn span_cost(span: &SpanCost, ordered: bool) -> (Cost, bool) {
    let (dosed, empty) = (Cost::of(&span.dosed_ns), Cost::of(&span.empty_ns));
    let (dosed_lo, dosed_hi) = (dosed.value - dosed.below, dosed.value + dosed.above);
    let (empty_lo, empty_hi) = (empty.value - empty.below, empty.value + empty.above);
    if dosed_lo <= empty_hi && empty_lo <= dosed_hi {
        return (dosed, false);
    }
    let (lo, hi) = (dosed_lo.min(empty_lo), dosed_hi.max(empty_hi));
    let value = if ordered {
        dosed.value
    } else {
        (lo + hi) / 2.0
    };
    let hull = Cost {
        value,
        below: value - lo,
        above: hi - value,
        systematic: true,
    };
    (hull, true)
}

/// What was subtracted from a set of samples.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Costs {
    /// Samples by [`Ends`] that the constant was subtracted from.
    pub(crate) samples: [u64; 3],
    pub(crate) inner_plain: u64,
    pub(crate) inner_ordered: u64,
    /// Those of `samples` that hold inner readings, and what was subtracted
    /// from them, whole ticks.
    filled: [u64; 3],
    rounded: i128,
    /// Samples by [`Ends`] whose own pairs told the cost; what was to be
    /// subtracted from them, fixed point.
    pub(crate) by_pairs: [u64; 3],
    told: i128,
    /// Those whose pairs are believed, and the sums of the first and of the last
    /// pairs, ticks.
    believed: u64,
    pairs: [u64; 2],
}

impl Costs {
    #[inline]
    pub(crate) fn add(&mut self, sample: &Sample, taken: Taken) {
        if let Some(told) = taken.beside {
            self.by_pairs[sample.ends as usize] += 1;
            if let Some(pairs) = told.pairs {
                self.believed += 1;
                for (sum, ticks) in self.pairs.iter_mut().zip(pairs) {
                    *sum += u64::from(ticks);
                }
            }
            self.told += i128::from(told.fixed);
            self.rounded += i128::from(taken.ticks);
            return;
        }
        self.samples[sample.ends as usize] += 1;
        if sample.inner_plain | sample.inner_ordered != 0 {
            self.filled[sample.ends as usize] += 1;
            self.inner_plain += u64::from(sample.inner_plain);
            self.inner_ordered += u64::from(sample.inner_ordered);
            self.rounded += i128::from(taken.ticks);
        }
    }

    /// As [`Self::add`], of samples between plain readings: of `n`, `filled` held `inside`
    /// others, and from these `rounded` ticks were subtracted.
    pub(crate) fn add_plain(&mut self, n: u64, filled: u64, inside: u64, rounded: i64) {
        self.samples[Ends::Plain as usize] += n;
        self.filled[Ends::Plain as usize] += filled;
        self.inner_plain += inside;
        self.rounded += i128::from(rounded);
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            samples: std::array::from_fn(|i| self.samples[i] + other.samples[i]),
            inner_plain: self.inner_plain + other.inner_plain,
            inner_ordered: self.inner_ordered + other.inner_ordered,
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
    pub(crate) fn by_ends(&self) -> [u64; 3] {
        std::array::from_fn(|i| self.samples[i] + self.by_pairs[i])
    }

    /// As [`Self::mean`], of samples that come out at `mean_ns` when it is
    /// subtracted: the disagreement with spans around nothing does not concern
    /// serialised spans that hold work.
    pub(crate) fn mean_for(&self, table: &CostTable, mean_ns: f64) -> Cost {
        let mut table = table.clone();
        if let Some((least, dosed)) = table.worked
            && mean_ns >= least
        {
            table.spans[Ends::Ordered as usize] = dosed;
        }
        if let Some(beside) = &mut table.beside
            && let Some((least, error)) = beside.small
            && mean_ns < least
        {
            beside.error = error;
        }
        self.mean(&table)
    }

    /// Whether the cost subtracted from samples of `mean_ns` is one about which
    /// the two calibrations contradict each other.
    pub(crate) fn is_disputed(&self, table: &CostTable, mean_ns: f64) -> bool {
        let settled = table.worked.is_some_and(|(least, _)| mean_ns >= least);
        let small = table.beside.and_then(|beside| beside.small);
        if self.by_pairs.iter().any(|&n| n > 0) && small.is_some_and(|(least, _)| mean_ns < least) {
            return true;
        }
        (0..3).any(|e| {
            let ordered = e == Ends::Ordered as usize;
            table.disagree[e] && self.samples[e] > 0 && !(ordered && settled)
        })
    }

    /// Mean cost per sample, ns, inner records included.
    pub(crate) fn mean(&self, table: &CostTable) -> Cost {
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
            .chain([
                table.inner_plain.times(self.inner_plain as f64 / n),
                table.inner_ordered.times(self.inner_ordered as f64 / n),
                Cost {
                    value: told + drift * share,
                    ..error
                },
            ])
            .fold(Cost::default(), Cost::and)
    }

    /// What rounding single samples to ticks took too little (positive) or too
    /// much, ticks per sample: added to what was subtracted.
    pub(crate) fn residue(&self, table: &CostTable) -> f64 {
        if self.n() == 0 || table.ns_per_tick == 0.0 {
            return 0.0;
        }
        let bare: i128 = (0..3)
            .map(|e| i128::from(self.samples[e] - self.filled[e]) * i128::from(table.bare[e]))
            .sum();
        let subtracted = (self.rounded + bare) as f64 / self.n() as f64;
        self.mean(table).value / table.ns_per_tick - subtracted
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use undertick_units::{Estimate, Interval};

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

    fn sample(ends: Ends, inner_plain: u32, pairs: [u32; 2]) -> Sample {
        Sample {
            ticks: 500,
            ends,
            pairs,
            inner_plain,
            inner_ordered: 0,
            hit: false,
            unknown: false,
            sampling: crate::sampled::Sampling::default(),
        }
    }

    fn calibration() -> Calibration {
        Calibration {
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
            paired: None,
        }
    }

    /// Half of 75 and 80 is 77.5 ticks, one inner record 20: 97.5, of which 98
    /// are subtracted; a sample without pairs has the constant's 76.25.
    #[test]
    fn pairs_tell_the_cost_of_their_sample() {
        let mut t = CostTable::new(&calibration(), 0.4);
        t.beside = Some(Beside::published("pairs", None));
        let with = sample(Ends::Ordered, 1, [75, 80]);
        let without = sample(Ends::Ordered, 0, [0; 2]);
        assert_eq!(t.of(&with).ticks, 98);
        assert_eq!(t.of(&without).ticks, 76);
        let mut costs = Costs::default();
        costs.add(&with, t.of(&with));
        assert_eq!(costs.mean(&t).value, 97.5 * 0.4);
        assert!((costs.residue(&t) + 0.5).abs() < 1e-12);
        costs.add(&without, t.of(&without));
        assert!((costs.mean(&t).value - (97.5 * 0.4 + 30.5) / 2.0).abs() < 1e-12);
        // (97.5 + 76.25) / 2 less (98 + 76) / 2.
        assert!((costs.residue(&t) + 0.125).abs() < 1e-12);
        assert_eq!((costs.n(), costs.by_ends()), (2, [0, 0, 2]));
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
        let t = CostTable::new(&calibration(), 0.4);
        assert_eq!(t.disagree, [true, true, false]);
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
        let t = CostTable::new(&c, 0.4);
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
        let t = CostTable::new(&c, 0.4);
        let mut costs = Costs::default();
        let one = sample(Ends::Ordered, 0, [0; 2]);
        costs.add(&one, t.of(&one));
        assert!((costs.mean_for(&t, 4.9).above - 3.2).abs() < 1e-9);
        assert!((costs.mean_for(&t, 5.0).above - 0.2).abs() < 1e-9);
        assert_eq!(costs.mean_for(&t, 5.0).value, 33.0);
        assert!(costs.is_disputed(&t, 4.9) && !costs.is_disputed(&t, 5.0));
        let plain = sample(Ends::Plain, 0, [0; 2]);
        costs.add(&plain, t.of(&plain));
        assert!(costs.is_disputed(&t, 5.0), "plain readings stay disputed");
    }

    /// 15 ns = 37.5 ticks; 30.5 ns = 76.25; mixed 56.875; 8 ns = 20; 16 ns = 40.
    #[test]
    fn ticks_by_hand() {
        let t = CostTable::new(&calibration(), 0.4);
        assert_eq!(t.ticks(Ends::Plain, 0, 0), 38);
        assert_eq!(t.ticks(Ends::Plain, 3, 1), 138); // 137.5
        assert_eq!(t.ticks(Ends::Plain, 4, 1), 158); // 157.5
        assert_eq!(t.ticks(Ends::Ordered, 0, 0), 76);
        assert_eq!(t.ticks(Ends::Mixed, 0, 0), 57);
        let mut costs = Costs::default();
        let mut add = |inner_plain| {
            let sample = sample(Ends::Ordered, inner_plain, [0; 2]);
            costs.add(&sample, t.of(&sample));
        };
        add(0);
        add(2);
        // Mean 30.5 + 8 ns = 96.25 ticks; 96 were subtracted.
        assert_eq!(costs.mean(&t).value, 38.5);
        assert!((costs.residue(&t) - 0.25).abs() < 1e-12);
    }
}
