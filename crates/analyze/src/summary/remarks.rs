//! The remarks on an interval in the report, and the counts behind them.

use undertick_document::{Evidence, IntervalKind, Reads, Unexplained, figures};
use undertick_estimate::slow::Lock;
use undertick_estimate::{Bin, Sample, proportion_exact};
use undertick_evidence::{Cause, UNEXPLAINED_RATIO};
use undertick_units::Estimate;

use super::{DISPUTED, Figures, Summary};
use crate::match_context::MatchContext;
use crate::options::Compensate;
use crate::tally::{Dropping, MOST_DROPPED, Tally};

/// Largest share of the durations as read that points inside may cost without a remark.
const MUCH_INSIDE: f64 = 0.05;

impl Summary {
    /// Whether its samples, as read, are locked to the clock.
    pub(super) fn lock(&self, tally: &Tally, read: &Sample) -> Option<Lock> {
        let moments = read.moments();
        (tally.begins).lock(self.granularity(), moments.mean()?, moments.n())
    }

    /// The remark on such a lock.
    pub(super) fn in_step(&self, lock: Lock) -> String {
        let step_ns = self.granularity() * self.ns();
        let steps = format!("{} steps of {}", lock.ticks, shown_ns(step_ns));
        let how_often = match lock.cycles {
            1 => format!("every {steps}"),
            times => format!("{times} times in {steps}"),
        };
        format!(
            "it keeps step with the clock: it begins {how_often}, so always at the same places \
             within a step, and the mean may be off by up to {} however many there are",
            shown_ns(lock.may_be_off_steps() * step_ns),
        )
    }

    /// How its ends were read.
    pub(super) fn reads(&self, tally: &Tally) -> Reads {
        // Before there was a cost of spans inside, plain spans waited for nothing.
        let waits = (self.manifest.calibration.as_ref()).is_none_or(|c| c.inner_span_ns.is_some());
        match tally.kept_costs.and(&tally.culled_costs).by_ends() {
            [0, 0, o, 0, 0] if o > 0 => Reads::Ordered,
            // An event has no work for which it could wait.
            [0, 0, 0, u, 0] if u > 0 && tally.kind != IntervalKind::Period => Reads::Unordered,
            [p, 0, 0, 0, s] if p + s > 0 && !waits => Reads::Unordered,
            [_, 0, 0, 0, _] | [0, 0, 0, _, 0] => Reads::Plain,
            _ => Reads::Mixed,
        }
    }

    pub(super) fn evidence(
        &self,
        context: &MatchContext,
        tally: &Tally,
        matched: u64,
    ) -> Vec<Evidence> {
        let culling = context.dropping == Some(Dropping::Evidence);
        (Cause::ALL.into_iter().zip(&tally.evidence))
            .filter(|(_, fallen)| fallen.samples > 0)
            .map(|(cause, fallen)| Evidence {
                cause: cause.name().to_owned(),
                count: fallen.samples,
                share: fallen.samples as f64 / matched.max(1) as f64,
                time_ns: fallen.ticks as f64 * self.ns(),
                culled: culling && cause.disturbs(),
            })
            .collect()
    }

    /// Counts samples far above the smallest, even without the time of all known disturbances.
    /// Dropped ones count too: a long sample is disturbed more often, so slow ones would be too
    /// rare among the kept ones. `None` where nothing is known.
    pub(super) fn unexplained(
        &self,
        context: &MatchContext,
        tally: &Tally,
        kept: &Figures,
    ) -> Option<Unexplained> {
        let moments = kept.sample.moments();
        let least = moments.min()?;
        if !context.evidence.is_there() || tally.kind == IntervalKind::Message {
            return None;
        }
        let limit = UNEXPLAINED_RATIO * (least as f64).max(self.granularity().max(1.0));
        let over = |bins: &[Bin], cost: f64| -> u64 {
            (bins.iter().filter(|bin| bin.middle() - cost > limit))
                .map(|bin| bin.count)
                .sum()
        };
        // Samples with a cause in them are stored as read.
        let cost = kept.cost.value / self.ns();
        let all = over(kept.sample.distribution().bins(), 0.0);
        let not_hit = all.saturating_sub(over(&tally.flagged.bins(), cost));
        let count = not_hit + over(&tally.own.bins(), cost);
        let matched = moments.n() + tally.culled();
        Some(Unexplained {
            ratio: UNEXPLAINED_RATIO,
            without_evidence: not_hit,
            count,
            share: proportion_exact(count, matched, self.options.confidence)?,
        })
    }

    /// The remark that the points inside are a large part of what was read.
    pub(super) fn much_inside(
        &self,
        context: &MatchContext,
        tally: &Tally,
        kept: &Figures,
    ) -> Option<String> {
        let costs = &tally.kept_costs;
        let mean_ns = (kept.sample.moments().mean()? + kept.residue) * self.ns();
        let inner = costs.inner_for(&context.costs, mean_ns, None);
        let read = mean_ns + kept.cost.value;
        let counted = costs.inner_counted as f64 / costs.n().max(1) as f64;
        let counted = match counted {
            n if n < 0.05 => String::new(),
            n => format!(" and counting {n:.1} sampled spans"),
        };
        (inner.value > MUCH_INSIDE * read).then(|| {
            format!(
                "{:.1} records inside it{counted} cost {:.0} ns [{:.0}, {:.0}] of the {:.0} ns that \
                 were read, by code of other kinds: record --perturbation measures it in place",
                costs.inner_records(),
                inner.value,
                inner.value - inner.below,
                inner.value + inner.above,
                read
            )
        })
    }

    /// The remark that dropping disturbed samples changes the mean by more than its interval: a
    /// long sample is disturbed more often than a short one.
    pub(super) fn favours_short(&self, tally: &Tally, kept: &Figures) -> Option<String> {
        let (own, dropped) = tally.culled_own;
        let moments = kept.sample.moments();
        let mean = moments.mean()?;
        let by_samples = kept
            .sample
            .mean(self.options.confidence, self.granularity())?;
        let half_ns = self.finished_mean(by_samples, kept).interval.half_width()?;
        let with = (moments.sum() as f64 + own as f64) / (moments.n() + dropped) as f64;
        let change_ns = (with - mean) * self.ns();
        (dropped > 0 && change_ns.abs() > half_ns).then(|| {
            format!(
                "the {dropped} samples dropped took {} on average without what hit them: with \
                 them the mean would be {}",
                shown_ns(own as f64 / dropped as f64 * self.ns()),
                shown_ns(((with + kept.residue) * self.ns()).max(0.0))
            )
        })
    }

    /// The remark that disturbances affected so large a share of the samples that the figures
    /// depend on the treatment: both are given.
    pub(super) fn much_disturbed(
        &self,
        tally: &Tally,
        before: &Figures,
        matched: u64,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let touched = tally.taken_off.samples;
        let share = |n: u64| n as f64 / matched.max(1) as f64;
        if share(touched) > MOST_DROPPED {
            let figure = |e: Option<Estimate>| e.map_or("?".into(), |e| shown_ns(e.value));
            notes.push(format!(
                "{touched} of {matched} samples ({:.0} %) were disturbed, for {} in all, which was \
                 taken off; with it the mean would be {} and the median {}",
                100.0 * share(touched),
                shown_ns(tally.taken_off.ticks as f64 * self.ns()),
                figure(self.mean(before)),
                figure(self.quantile(before, 0.5)),
            ));
        }
        if tally.readmitted > 0 {
            notes.push(format!(
                "{} of {matched} samples ({:.0} %) were disturbed for a time that is not known \
                 well enough; they stay in the figures, because without them too many would be \
                 missing",
                tally.readmitted,
                100.0 * share(tally.readmitted),
            ));
        }
        notes
    }

    pub(super) fn notes(
        &self,
        context: &MatchContext,
        tally: &Tally,
        kept: &Figures,
        compensated: bool,
        in_place: bool,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        if tally.is_switched {
            notes.push(format!(
                "its points were switched off and on (--perturbation): count and rate are of the \
                 time they were on; {} starts and {} ends have no other side",
                tally.unmatched_starts, tally.unmatched_ends
            ));
        }
        match tally.kind {
            IntervalKind::Pair => {
                notes.push("two readings are the cost itself: nothing subtracted".into());
            }
            IntervalKind::Message => notes.push(
                "start and end lie in different threads: no cost subtracted, not dropped by the \
                 descheduled flag; the figures assume that all CPUs' clocks agree"
                    .into(),
            ),
            _ => {}
        }
        if compensated && self.disputed(context, tally, kept) {
            notes.push(DISPUTED.into());
        }
        if self.reads(tally) == Reads::Unordered {
            notes.push(
                "edges not ordered: its readings wait for nothing, so work that is still under \
                 way at its end is not in it, and earlier work may be"
                    .into(),
            );
        }
        let costs = &tally.kept_costs;
        let without = costs.samples.iter().sum::<u64>();
        let wants_pairs = matches!(
            self.options.compensate,
            Compensate::Pairs | Compensate::Sampler
        );
        if tally.is_compensated() && wants_pairs && without > 0 {
            notes.push(format!(
                "{without} samples have no pair of readings beside them: nothing subtracted"
            ));
        }
        if compensated && !in_place {
            notes.extend(self.much_inside(context, tally, kept));
        }
        notes.extend(self.favours_short(tally, kept));
        if tally.outside > 0 {
            notes.push(format!(
                "{} more lay outside the enclosing interval",
                tally.outside
            ));
        }
        if tally.negative > 0 {
            notes.push(format!("{} ended before they began", tally.negative));
        }
        notes
    }
}

/// Formats a time as the report shows it, with plain spaces.
fn shown_ns(ns: f64) -> String {
    figures::duration(ns).replace('\u{a0}', " ")
}
