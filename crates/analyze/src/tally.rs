//! The data of one interval while the events pass.

mod improvement;
mod many;
mod merging;

use serde::{Deserialize, Serialize};
use undertick_document::IntervalKind;
use undertick_estimate::slow::Begins;
use undertick_estimate::{Series, SignedHistogram};
use undertick_evidence::{CAUSES, Cause, SampleCauses};

use crate::cells::Family;
use crate::clocks::Doubt;
use crate::cost::{CostTable, Costs, Taken};
use crate::sample::Sample;
use crate::strata::Strata;
use crate::tree;
use improvement::Improvement;

/// Samples that were dropped; they are readmitted if they are many.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Dropped {
    /// Compensated, without the known time of their disturbances.
    own: Series,
    /// As read: nothing subtracted.
    as_read: Series,
    /// As [`Tally::flagged`].
    flagged: SignedHistogram,
}

/// Share of the samples above which dropping would hide what is measured: then all stay.
pub(crate) const MOST_DROPPED: f64 = 0.1;

/// The rule by which samples are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropping {
    Nothing,
    Descheduled,
    /// By the kernel's evidence, where the time of a disturbance cannot be taken off.
    Evidence,
    /// Over the limit that the first pass set.
    OverLimit,
}

/// The effect of one cause on an interval's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fallen {
    /// Number of samples that it was in.
    pub(crate) samples: u64,
    /// Time that it took of them, ticks.
    pub(crate) ticks: i128,
}

/// The interval in which the samples lay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Parent {
    Unseen,
    One(u32),
    /// None, or different ones.
    Various,
}

/// The data of one interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) name: String,
    /// The kind of its event; `None` if a table defines it.
    pub(crate) family: Option<Family>,
    pub(crate) kind: IntervalKind,
    pub(crate) unmatched_starts: u64,
    pub(crate) unmatched_ends: u64,
    pub(crate) unmatched_by_loss: u64,
    /// Matched, but not inside the interval that the table names.
    pub(crate) outside: u64,
    pub(crate) negative: u64,
    pub(crate) unknown: u64,
    pub(crate) culled_descheduled: u64,
    pub(crate) culled_ratio: u64,
    /// Number of dropped samples by [`undertick_evidence::Cause`].
    pub(crate) culled_evidence: [u64; CAUSES],
    pub(crate) evidence: [Fallen; CAUSES],
    /// Kept samples with a cause in them, as read but without the time of their disturbances.
    pub(crate) flagged: SignedHistogram,
    /// All samples with a cause in them, less the time that it took.
    pub(crate) own: SignedHistogram,
    /// Sum of these over the samples dropped on the kernel's evidence, and their number.
    pub(crate) culled_own: (i128, u64),
    /// Sum of all dropped samples, for any reason, compensated and without the known time of
    /// their disturbances, ticks.
    pub(crate) dropped_sum: i128,
    /// Time that disturbances took of all samples, which is in no figure, ticks; and the number
    /// of kept samples from which it was taken off.
    pub(crate) taken_off: Fallen,
    /// Samples that were dropped at first, and readmitted because they were too many.
    pub(crate) readmitted: u64,
    dropped: Option<Box<Dropped>>,
    /// Smallest sample of the first pass.
    pub(crate) least: Option<i64>,
    /// Samples above this are dropped in the second pass.
    pub(crate) limit: i64,
    pub(crate) kept: Series,
    /// Times at which its samples began.
    pub(crate) begins: Begins,
    pub(crate) kept_costs: Costs,
    pub(crate) culled_costs: Costs,
    pub(crate) improvement: Improvement,
    /// Every matched sample, with the time of its disturbances; absent while none was dropped or
    /// disturbed.
    all: Option<Box<Series>>,
    /// Kept samples as read; absent while the cost was constant.
    uncompensated: Option<Box<Series>>,
    /// The constant cost so far, ticks.
    cost: Option<i64>,
    pub(crate) parent: Parent,
    /// Whether points at its begin or end were switched off and on.
    pub(crate) is_switched: bool,
    pub(crate) strata: Strata,
    /// The uncertainty that the clocks of several hosts add.
    pub(crate) doubt: Doubt,
    /// Row of durations per slice.
    pub(crate) row: u32,
}

impl Tally {
    pub(crate) fn new(name: String, family: Option<Family>, kind: IntervalKind, row: u32) -> Self {
        Self {
            name,
            family,
            kind,
            unmatched_starts: 0,
            unmatched_ends: 0,
            unmatched_by_loss: 0,
            outside: 0,
            negative: 0,
            unknown: 0,
            culled_descheduled: 0,
            culled_ratio: 0,
            culled_evidence: [0; CAUSES],
            evidence: [Fallen::default(); CAUSES],
            flagged: SignedHistogram::new(),
            own: SignedHistogram::new(),
            culled_own: (0, 0),
            dropped_sum: 0,
            taken_off: Fallen::default(),
            readmitted: 0,
            dropped: None,
            least: None,
            limit: i64::MAX,
            kept: Series::new(),
            begins: Begins::default(),
            kept_costs: Costs::default(),
            culled_costs: Costs::default(),
            improvement: Improvement::default(),
            all: None,
            uncompensated: None,
            cost: None,
            parent: Parent::Unseen,
            is_switched: false,
            strata: Strata::default(),
            doubt: Doubt::default(),
            row,
        }
    }

    /// Resets everything but the name and the limit, for the second pass.
    pub(crate) fn restart(&mut self, limit: i64) {
        *self = Self {
            limit,
            least: self.least,
            is_switched: self.is_switched,
            ..Self::new(
                std::mem::take(&mut self.name),
                self.family,
                self.kind,
                self.row,
            )
        };
    }

    /// Whether its samples are compensated: not readings of two threads, and not pairs, which are
    /// the cost themselves.
    pub(crate) fn is_compensated(&self) -> bool {
        !matches!(self.kind, IntervalKind::Pair | IntervalKind::Message)
    }

    /// Whether a slow-down by points inside it can be measured.
    pub(crate) fn can_be_slowed(&self) -> bool {
        self.is_compensated() && !self.is_switched
    }

    /// Takes a sample in the first of two passes: only the smallest is stored.
    pub(crate) fn scan(&mut self, sample: &Sample) {
        self.least = Some(self.least.map_or(sample.ticks, |l| l.min(sample.ticks)));
    }

    /// Announces that the next samples are from another thread.
    pub(crate) fn next_thread(&mut self) {
        self.kept.next_thread();
        self.begins.next_chain();
        if let Some(all) = &mut self.all {
            all.next_thread();
        }
        if let Some(raw) = &mut self.uncompensated {
            raw.next_thread();
        }
        if let Some(dropped) = &mut self.dropped {
            dropped.own.next_thread();
            dropped.as_read.next_thread();
        }
        self.strata.next_thread();
    }

    /// The kept samples so far, for a node of the tree.
    pub(crate) fn samples(&self) -> tree::Samples {
        self.kept.coarse_histogram()
    }

    /// Adds a sample with its causes; returns it compensated and without its disturbances, and
    /// whether it was kept.
    #[inline]
    pub(crate) fn add(
        &mut self,
        sample: &Sample,
        found: &SampleCauses,
        costs: &CostTable,
        dropping: Dropping,
    ) -> (i64, bool) {
        let taken = if self.is_compensated() {
            costs.subtracted_from(sample)
        } else {
            Taken {
                ticks: 0,
                pair_cost: None,
            }
        };
        self.begins.push(sample.start);
        let cost = taken.ticks;
        let off = match dropping {
            Dropping::Evidence => found.by_others(),
            _ => 0,
        };
        let read = sample.ticks.saturating_sub(off);
        let value = read.saturating_sub(cost);
        if sample.ticks < 0 || sample.unknown {
            self.negative += u64::from(sample.ticks < 0);
            self.unknown += u64::from(sample.unknown);
        }
        if !found.is_empty() {
            self.note(found, sample.ticks);
        }
        let dropped = match dropping {
            Dropping::Nothing => false,
            Dropping::Descheduled => sample.hit && self.kind != IntervalKind::Message,
            // A flag that no row explains is still believed.
            Dropping::Evidence => {
                found.dropped_for().is_some()
                    || (sample.hit && !found.was_off() && self.kind != IntervalKind::Message)
            }
            Dropping::OverLimit => sample.ticks > self.limit,
        };
        self.strata
            .add(sample.sampling, (!dropped).then_some(value), &self.kept);
        if dropped {
            self.drop_sample(sample, found, (value, off), taken, dropping);
            return (value, false);
        }
        if !found.is_empty() {
            self.flagged.record(read);
        }
        if off > 0 {
            self.take_off(off);
            self.taken_off.samples += 1;
        }
        if self.cost != Some(cost) && self.uncompensated.is_none() {
            self.change_cost(cost);
        }
        self.kept_costs.add(sample, taken);
        if taken.pair_cost.is_some() {
            self.improvement.add(read, value);
        }
        self.kept.push(value);
        if let Some(all) = &mut self.all {
            all.push(value.saturating_add(off));
        }
        if let Some(raw) = &mut self.uncompensated {
            raw.push(read);
        }
        (value, true)
    }

    /// Notes that disturbances took `off` ticks of the next sample.
    #[inline(never)]
    fn take_off(&mut self, off: i64) {
        self.taken_off.ticks += i128::from(off);
        let kept = &self.kept;
        (self.all).get_or_insert_with(|| Box::new(kept.clone()));
    }

    /// The cost subtracted from all samples so far, if it was the same, ticks.
    pub(crate) fn cost_so_far(&self) -> Option<i64> {
        self.cost
    }

    /// Whether samples as read are stored separately.
    pub(crate) fn has_uncompensated(&self) -> bool {
        self.uncompensated.is_some()
    }

    /// Stores these values as kept; `read` are the same samples as read, and `starts` their
    /// begins.
    pub(crate) fn keep(&mut self, values: &[i64], read: &[i64], starts: &[i64]) {
        self.kept.extend(values);
        self.begins.extend(starts);
        if let Some(all) = &mut self.all {
            all.extend(values);
        }
        if let Some(raw) = &mut self.uncompensated {
            raw.extend(read);
        }
    }

    #[inline(never)]
    fn note(&mut self, found: &SampleCauses, ticks: i64) {
        self.own.record(ticks.saturating_sub(found.taken()));
        for (cause, fallen) in Cause::ALL.into_iter().zip(&mut self.evidence) {
            if found.has(cause) {
                fallen.samples += 1;
                fallen.ticks += i128::from(found.ticks[cause as usize]);
            }
        }
    }

    #[inline(never)]
    fn drop_sample(
        &mut self,
        sample: &Sample,
        found: &SampleCauses,
        (value, off): (i64, i64),
        taken: Taken,
        dropping: Dropping,
    ) {
        match (dropping, found.dropped_for()) {
            (Dropping::OverLimit, _) => self.culled_ratio += 1,
            (Dropping::Evidence, Some(cause)) => {
                self.culled_evidence[cause as usize] += 1;
                self.culled_own.0 += i128::from(value);
                self.culled_own.1 += 1;
            }
            _ => self.culled_descheduled += 1,
        }
        self.take_off(off);
        self.dropped_sum += i128::from(value);
        if let Some(all) = &mut self.all {
            all.push(value.saturating_add(off));
        }
        if dropping != Dropping::OverLimit {
            let read = sample.ticks.saturating_sub(off);
            let dropped = self.dropped.get_or_insert_default();
            dropped.own.push(value);
            dropped.as_read.push(read);
            if !found.is_empty() {
                dropped.flagged.record(read);
            }
        }
        self.culled_costs.add(sample, taken);
    }

    #[cold]
    #[inline(never)]
    fn change_cost(&mut self, cost: i64) {
        if let Some(constant) = self.cost {
            // Until now the values as read were the kept ones, shifted by a constant.
            let kept = &self.kept;
            self.uncompensated
                .get_or_insert_with(|| Box::new(kept.clone().shifted(constant)));
        } else {
            self.cost = Some(cost);
        }
    }

    pub(crate) fn culled(&self) -> u64 {
        self.culled_descheduled + self.culled_ratio + self.culled_evidence.iter().sum::<u64>()
    }

    /// Called when all samples are in: if dropping would remove too many of them, none is
    /// dropped. The ratio rule's samples stay dropped, because that was requested.
    pub(crate) fn settle(&mut self) {
        let culled = self.culled();
        let too_many = culled as f64 > MOST_DROPPED * (self.kept.n() + culled) as f64;
        if !too_many || !self.strata.is_unused() {
            return;
        }
        let Some(dropped) = self.dropped.take() else {
            return;
        };
        let mut as_read = self.as_read();
        as_read.merge(dropped.as_read);
        self.uncompensated = Some(Box::new(as_read));
        self.kept.merge(dropped.own);
        self.flagged.merge(&dropped.flagged);
        self.kept_costs = self.kept_costs.and(&self.culled_costs);
        self.culled_costs = Costs::default();
        self.taken_off.samples += self.culled_evidence.iter().sum::<u64>();
        self.readmitted = culled;
        self.dropped_sum = 0;
        self.culled_own = (0, 0);
        self.culled_descheduled = 0;
        self.culled_evidence = [0; CAUSES];
    }

    /// Takes every matched sample, compensated; `None` if that is `kept`.
    pub(crate) fn take_all(&mut self) -> Option<Series> {
        self.all.take().map(|s| *s)
    }

    /// Subtracts the mean cost from each kept sample alike; returns the fraction of a tick that
    /// remains to be subtracted.
    pub(crate) fn subtract_their_mean(&mut self) -> f64 {
        let (kept, read) = (self.kept.clone().sample(), self.as_read());
        let mean = |sample: &undertick_estimate::Sample| sample.moments().mean().unwrap_or(0.0);
        let cost = mean(&read.clone().sample()) - mean(&kept);
        self.kept = read.shifted(-(cost.round() as i64));
        cost - cost.round()
    }

    /// The kept samples as read.
    pub(crate) fn as_read(&self) -> Series {
        match &self.uncompensated {
            Some(series) => Series::clone(series),
            None => self.kept.clone().shifted(self.cost.unwrap_or(0)),
        }
    }
}
