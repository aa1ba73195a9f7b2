//! The cost subtracted from a set of samples, and its uncertainty.

use serde::{Deserialize, Serialize};
use undertick_document::Slowed;
use undertick_estimate::Cost;

use super::POINT;
use super::pair_correction::DRIFT_ERROR;
use super::table::{CostTable, InnerCosts, Taken};
use crate::reading::{ENDS, Ends, Inner};
use crate::sample::Sample;

/// Mean cost of the points inside the samples of an interval, measured by switching them
/// (`record --perturbation`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPlace {
    /// Mean over all samples, including those during which they were off, ns.
    pub(crate) cost: Cost,
    /// Number of switched points inside, mean over all samples likewise.
    pub(crate) points: f64,
    /// Share of the samples during which points were on.
    pub(crate) on: f64,
}

impl InPlace {
    /// Makes it from the measured slow-down; `share` of the samples began while points were on.
    pub(crate) fn from_slowed(slowed: &Slowed, share: f64) -> Option<Self> {
        // Without points inside, or for the kernel's events, it is another cost.
        slowed.per_point.as_ref()?;
        (share > 0.0).then(|| Self {
            cost: Cost::from_estimate(&slowed.by).times(share),
            points: slowed.points * share,
            on: share,
        })
    }
}

/// The cost subtracted from a set of samples.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Costs {
    /// Samples from which the constant was subtracted, by [`Ends`].
    pub(crate) samples: [u64; ENDS],
    pub(crate) inner_spans: u64,
    pub(crate) inner_events: u64,
    pub(crate) inner_ordered: u64,
    /// Executions of sampled spans inside, recorded or not, and records of them.
    pub(crate) inner_counted: u64,
    inner_sampled: u64,
    /// Those of `samples` that hold inner readings, and what was subtracted from them, whole
    /// ticks.
    filled: [u64; ENDS],
    rounded: i128,
    /// Samples whose own pairs gave the cost, by [`Ends`]; what was to be subtracted from them,
    /// fixed point.
    pub(crate) by_pairs: [u64; ENDS],
    told: i128,
    /// Samples whose pairs are used, and the sums of their first and of their last pairs, ticks.
    believed: u64,
    pairs: [u64; 2],
}

impl Costs {
    #[inline]
    pub(crate) fn add(&mut self, sample: &Sample, taken: Taken) {
        self.inner_counted = self.inner_counted.saturating_add(sample.sampling.inside);
        if let Some(pair_cost) = taken.pair_cost {
            self.by_pairs[sample.ends as usize] += 1;
            if let Some(pairs) = pair_cost.pairs {
                self.believed += 1;
                for (sum, ticks) in self.pairs.iter_mut().zip(pairs) {
                    *sum += u64::from(ticks);
                }
            }
            self.told += i128::from(pair_cost.own);
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

    /// As [`Self::add`], for `n` samples between such ends. `inside` is the number of records
    /// that each held, none of them serialised; `rounded` ticks were subtracted from those that
    /// held any.
    pub(crate) fn add_fast_samples(&mut self, ends: Ends, inside: &[Inner], rounded: i64) {
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

    /// Samples by [`Ends`], with either source of their cost.
    pub(crate) fn by_ends(&self) -> [u64; ENDS] {
        std::array::from_fn(|i| self.samples[i] + self.by_pairs[i])
    }

    /// As [`Self::mean`], for samples whose mean is `mean_ns` after the subtraction. The
    /// disagreement with spans around nothing does not concern spans that hold work.
    ///
    /// A measurement in place replaces the calibration's cost of the records inside.
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
        if let Some(pair_correction) = &mut table.pair_correction
            && let Some((least, error)) = pair_correction.small
            && mean_ns < least
        {
            pair_correction.error = error;
        }
        let inner = self.inner_for(&table, mean_ns, in_place);
        self.ends(&table).and(inner)
    }

    /// As [`Self::inner`], for samples whose mean is `mean_ns`: records far from each other may
    /// cost more.
    pub(crate) fn inner_for(
        &self,
        table: &CostTable,
        mean_ns: f64,
        in_place: Option<InPlace>,
    ) -> Cost {
        let counted = self.inner_counted as f64 / self.n().max(1) as f64;
        let records = self.inner_records() + counted;
        if records == 0.0 {
            return Cost::default();
        }
        let inner = table.inner.spaced(&table.sparse, mean_ns / records);
        self.inner_by(&inner, in_place)
    }

    /// Mean number of records inside.
    pub(crate) fn inner_records(&self) -> f64 {
        let records =
            self.inner_spans + self.inner_events + self.inner_ordered + self.inner_sampled;
        records as f64 / self.n().max(1) as f64
    }

    /// Mean cost per sample of the records inside, ns.
    pub(crate) fn inner(&self, table: &CostTable, in_place: Option<InPlace>) -> Cost {
        self.inner_by(&table.inner, in_place)
    }

    /// As [`Self::inner`], with these costs.
    fn inner_by(&self, each: &InnerCosts, in_place: Option<InPlace>) -> Cost {
        let n = self.n().max(1) as f64;
        let calibrated = [
            (each.span, self.inner_spans),
            (each.event, self.inner_events),
            (each.ordered, self.inner_ordered),
            (each.sampled, self.inner_sampled),
        ];
        // Missing records leave no uncertainty.
        let calibrated = (calibrated.into_iter())
            .filter(|&(_, count)| count > 0)
            .map(|(cost, count)| cost.times(count as f64 / n))
            .fold(Cost::default(), Cost::and);
        let records = self.inner_records();
        let recorded = match in_place {
            Some(found) if records > 0.0 => {
                // The records inside that were not switched have their calibrated cost.
                let switched = (found.points / records).min(1.0);
                // Points that are off have a cost, too. All samples hold as many points as those
                // during which they were on, so the measured cost is too small by that.
                let points = found.points / found.on;
                let ordered = self.inner_ordered as f64 / self.n().max(1) as f64 / records;
                let off = (each.off.times(points * (1.0 - ordered)))
                    .and(each.off_ordered.times(points * ordered));
                (calibrated.times(1.0 - switched)).and(found.cost).and(off)
            }
            _ => calibrated,
        };
        // Executions are counted while points are switched off, too, but records report only
        // those that were counted while they were on.
        let on = in_place.map_or(1.0, |found| found.on);
        recorded.and(self.counting(each).times(1.0 / on))
    }

    /// Mean cost per sample of counting the sampled spans inside that records report, ns.
    fn counting(&self, each: &InnerCosts) -> Cost {
        match self.inner_counted {
            0 => Cost::default(),
            counted => (each.counted).times(counted as f64 / self.n().max(1) as f64),
        }
    }

    /// Whether the cost subtracted from samples of `mean_ns` is one about which the two
    /// calibrations contradict each other.
    pub(crate) fn is_disputed(&self, table: &CostTable, mean_ns: f64) -> bool {
        let small = table
            .pair_correction
            .and_then(|pair_correction| pair_correction.small);
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
    pub(super) fn ends(&self, table: &CostTable) -> Cost {
        let n = self.n().max(1) as f64;
        let spans = (table.spans.iter().zip(self.samples))
            .filter(|&(_, count)| count > 0)
            .map(|(cost, count)| cost.times(count as f64 / n));
        let told = self.told as f64 / f64::from(1 << POINT) * table.ns_per_tick / n;
        let with_pairs = self.by_pairs.iter().sum::<u64>() as f64;
        let share = with_pairs / n;
        let (drift, error) = match table.pair_correction.filter(|_| with_pairs > 0.0) {
            Some(pair_correction) => {
                let (drift, whole) = if self.believed > 0 {
                    let means = self.pairs.map(|sum| sum as f64 / self.believed as f64);
                    pair_correction.drift(means)
                } else {
                    (0.0, 0.0)
                };
                let drift = drift * table.ns_per_tick;
                let unsure = DRIFT_ERROR * whole.abs() * table.ns_per_tick;
                let left = pair_correction.left_open(told / share, &self.by_pairs);
                let error = Cost {
                    below: left.below + unsure,
                    above: left.above + unsure,
                    ..left
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

    /// Rounding error of single samples, ticks per sample: positive if too little was subtracted.
    /// It is added to what was subtracted.
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
