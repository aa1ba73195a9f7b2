//! Estimates of one treatment of the samples of an interval, in nanoseconds.

use undertick_document::{Alternative, Compensation, Histogram, OfThisRun};
use undertick_estimate::{scaled, shifted};
use undertick_units::{Estimate, Interval};

use super::{DISPUTED, Figures, SHOWN, Summary};
use crate::cost::InPlace;
use crate::match_context::MatchContext;
use crate::options::Compensate;
use crate::tally::Tally;

/// No interval is given if the clock leaves more than this share of the mean uncertain.
const MOST_IN_STEP: f64 = 0.05;

/// Least change of the cost of a reading that is reported.
const WORTH_SAYING: f64 = 0.05;

impl Summary {
    /// As [`Self::mean`], if one sampling rate applies to all.
    pub(super) fn mean_by_rate(&self, tally: &Tally, figures: &Figures) -> Option<Estimate> {
        let (level, step) = (self.options.confidence, self.granularity());
        match tally.strata.mean(&figures.sample, level, step) {
            Some(mean) => Some(self.finished_mean(allowing_for_step(mean, figures), figures)),
            None => self.mean(figures),
        }
    }

    /// The alternative estimates, with a histogram where it differs from the figures'.
    pub(super) fn alternative(&self, figures: &Figures, differs: bool) -> Alternative {
        Alternative {
            count: figures.sample.moments().n(),
            mean: self.mean(figures),
            median: self.quantile(figures, 0.5),
            histogram: differs.then(|| self.histogram(figures)),
        }
    }

    /// Estimates for the samples of this run, with what the clock and the cost of recording leave
    /// uncertain.
    pub(super) fn of_this_run(&self, figures: &Figures) -> Option<OfThisRun> {
        let (level, step) = (self.options.confidence, self.granularity());
        let mut mean = figures.sample.own_mean(level, step)?;
        if let Some(off) = figures.in_step {
            mean.interval = wider(mean.interval, off);
        }
        let quantile = |p| {
            let own = figures.sample.own_quantile(p, step)?;
            Some(self.finished(own, figures))
        };
        Some(OfThisRun {
            mean: Some(self.finished_mean(mean, figures)),
            median: quantile(0.5),
            quantiles: (SHOWN.iter())
                .filter_map(|&(key, p)| Some((key.to_owned(), quantile(p)?)))
                .collect(),
        })
    }

    pub(super) fn mean(&self, figures: &Figures) -> Option<Estimate> {
        let mean = figures
            .sample
            .mean(self.options.confidence, self.granularity())?;
        Some(self.finished_mean(allowing_for_step(mean, figures), figures))
    }

    pub(super) fn quantile(&self, figures: &Figures, p: f64) -> Option<Estimate> {
        let level = self.options.confidence;
        let quantile = figures.sample.quantile(p, level, self.granularity())?;
        Some(self.finished(quantile, figures))
    }

    /// Converts to nanoseconds, subtracts the rest of the cost, and adds its uncertainty.
    pub(crate) fn finished(&self, ticks: Estimate, figures: &Figures) -> Estimate {
        let mut estimate = scaled(shifted(ticks, figures.residue), self.ns(), "ns");
        figures.cost.widen(&mut estimate);
        if figures.is_time {
            estimate.interval.hi = estimate.interval.hi.map(|hi| hi.max(0.0));
        }
        estimate
    }

    /// As [`Self::finished`] for a mean, which is not below 0, whatever the cost is.
    pub(super) fn finished_mean(&self, ticks: Estimate, figures: &Figures) -> Estimate {
        let mut mean = self.finished(ticks, figures);
        if figures.is_time {
            mean.interval.lo = mean.interval.lo.map(|lo| lo.max(0.0));
            if mean.value < 0.0 {
                mean.value = 0.0;
                mean.notes
                    .push("the cost of recording it is all that was read".to_owned());
            }
        }
        mean
    }

    pub(super) fn compensation(
        &self,
        context: &MatchContext,
        tally: &Tally,
        kept: &Figures,
        compensated: bool,
        in_place: Option<InPlace>,
    ) -> Compensation {
        let n = kept.sample.moments().n();
        if !compensated || n == 0 {
            return Compensation {
                method: "none".into(),
                cost: None,
                k: None,
                inner_records: None,
            };
        }
        let costs = &tally.kept_costs;
        let notes = self
            .disputed(context, tally, kept)
            .then(|| DISPUTED.to_owned());
        let by_pairs = costs.by_pairs.iter().sum::<u64>();
        let pair_correction = context.costs.pair_correction.filter(|_| by_pairs > 0);
        let (method, how) = match (pair_correction, self.options.compensate) {
            (Some(pair_correction), _) => (pair_correction.name, pair_correction.how()),
            (None, Compensate::LongTerm) => ("long-term", "mean of all pairs of readings"),
            (None, Compensate::Pairs | Compensate::Sampler) => ("none", "no pairs beside it"),
            (None, _) if in_place.is_some() => (
                "in place",
                "calibration by known doses of work; points inside as measured by switching them",
            ),
            (None, _) => ("calibrated", "calibration by known doses of work"),
        };
        let dearer = (context.costs.read_ratio)
            .filter(|ratio| pair_correction.is_none() && (ratio - 1.0).abs() > WORTH_SAYING)
            .map(|ratio| format!("; a reading took {ratio:.2} times as long as then"));
        Compensation {
            method: method.into(),
            cost: Some(Estimate {
                value: kept.cost.value,
                interval: Interval::new(
                    kept.cost.value - kept.cost.below,
                    kept.cost.value + kept.cost.above,
                ),
                level: self.options.confidence,
                unit: "ns".into(),
                method: how.to_owned() + dearer.as_deref().unwrap_or(""),
                n,
                n_effective: n as f64,
                notes: notes.into_iter().collect(),
            }),
            k: pair_correction.and_then(|_| tally.improvement.k(self.options.confidence)),
            inner_records: Some(costs.inner_records()),
        }
    }

    /// The method by pairs of readings and its k, if it makes these samples scatter more, at the
    /// requested level.
    pub(super) fn surely_worse(
        &self,
        context: &MatchContext,
        tally: &Tally,
    ) -> Option<(&'static str, Estimate)> {
        let pair_correction = (context.costs.pair_correction)
            .filter(|_| tally.kept_costs.by_pairs.iter().sum::<u64>() > 0)?;
        let k = tally.improvement.k(self.options.confidence)?;
        (k.interval.hi? < 1.0).then_some((pair_correction.name, k))
    }

    /// Whether the two calibrations contradict each other about these samples.
    pub(super) fn disputed(&self, context: &MatchContext, tally: &Tally, kept: &Figures) -> bool {
        let mean = kept.sample.moments().mean().unwrap_or(0.0) + kept.residue;
        (tally.kept_costs).is_disputed(&context.costs, mean * self.ns())
    }

    pub(super) fn histogram(&self, kept: &Figures) -> Histogram {
        let distribution = kept.sample.distribution();
        // Any value on a step will do; the smallest one is.
        let least = kept.sample.moments().min().unwrap_or(0);
        let origin = least as f64 % self.granularity().max(1.0);
        let drawn = distribution.drawn(self.granularity(), origin);
        Histogram {
            unit: "ns".into(),
            // A thousandth of a nanosecond is far below any tick, and needs half the digits.
            edges: (drawn.edges.iter())
                .map(|edge| ((edge + kept.residue) * self.ns() * 1e3).round() / 1e3)
                .collect(),
            counts: drawn.counts,
        }
    }
}

fn wider(interval: Interval, by: f64) -> Interval {
    Interval {
        lo: interval.lo.map(|lo| lo - by),
        hi: interval.hi.map(|hi| hi + by),
    }
}

/// A mean with its uncertainty from keeping step with the clock; without an interval where that
/// is large.
fn allowing_for_step(mean: Estimate, figures: &Figures) -> Estimate {
    let interval = match figures.in_step {
        None => return mean,
        Some(off) if off > MOST_IN_STEP * mean.value.abs() => Interval { lo: None, hi: None },
        Some(off) => wider(mean.interval, off),
    };
    Estimate { interval, ..mean }
}
