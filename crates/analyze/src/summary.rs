//! From tallies to the report document.

use std::collections::BTreeMap;

use undertick_estimate::slow::Lock;
use undertick_estimate::{
    Bin, Cost, Sample, Series, proportion_exact, rate, ratio_of_sums, scaled, shifted,
    spread_over_time,
};
use undertick_report::document::{
    Alternative, ClockSummary, Compensation, Culled, Evidence, FrequencyReport, Histogram,
    HostSummary, IntervalKind, IntervalReport, OfThisRun, Reads, Report, SCHEMA_VERSION, Scope,
    Settings, ShareOf, Slowed, TakenOff, TraceSummary, Unexplained, without_impossible,
};
use undertick_report::figures;
use undertick_trace::manifest::{Descheduled, Manifest};
use undertick_units::{Estimate, Interval};

use crate::cost::{Costs, InPlace};
use crate::engine::Engine;
use crate::evidence::{Cause, UNEXPLAINED_RATIO};
use crate::matching::RowCounts;
use crate::options::{Compensate, Options};
use crate::part::RingAccount;
use crate::perturbation::{by_total, of_the_program};
use crate::tally::{Dropping, MOST_DROPPED, Parent, Tally};
use crate::warnings::{FEW_STEPS, Facts, warnings};

/// Said of an interval whose cost is uncertain by more than chance.
const DISPUTED: &str = "the cost of an empty span and the cost beside known work disagree: the interval is widened to hold both";

/// Share of what was read that points inside may cost and nobody needs to know.
const MUCH_INSIDE: f64 = 0.05;

/// Share of the mean above which no interval is given for what the clock leaves open.
const MOST_IN_STEP: f64 = 0.05;

/// Quantiles of the report beside the median: key and value.
const SHOWN: [(&str, f64); 3] = [("0.9", 0.9), ("0.99", 0.99), ("0.999", 0.999)];

/// What the report is made of, beside the engine.
pub(crate) struct Summary {
    pub(crate) manifest: Manifest,
    pub(crate) options: Options,
    pub(crate) has_table: bool,
    pub(crate) rings: Vec<RingAccount>,
    pub(crate) rows: RowCounts,
    pub(crate) span: Option<(i64, i64)>,
}

/// Estimates of one treatment of the samples of an interval.
pub(crate) struct Figures {
    pub(crate) sample: Sample,
    /// Added to every figure: what rounding costs to ticks left over.
    pub(crate) residue: f64,
    cost: Cost,
    /// It is how long something took, less a cost: not below 0, whatever the cost was.
    is_time: bool,
    /// How far its mean may be off because the program keeps step with the clock, ticks.
    in_step: Option<f64>,
}

impl Summary {
    pub(crate) fn report(&self, mut engine: Engine) -> Report {
        let shares: Vec<Option<ShareOf>> = (0..engine.tallies.len())
            .map(|i| self.share(&engine, i))
            .collect();
        let mut tallies = std::mem::take(&mut engine.tallies);
        let mut slowed: Vec<Option<Slowed>> = (0..tallies.len() as u32)
            .map(|place| {
                (engine.perturbation.as_mut()?).slowed(place, self.options.confidence, self.ns())
            })
            .collect();
        let mut intervals: Vec<IntervalReport> = (tallies.iter_mut().zip(shares))
            .zip(&mut slowed)
            .map(|((tally, share), slowed)| {
                let in_place = slowed.as_ref().and_then(InPlace::of);
                IntervalReport {
                    slowed: slowed.take(),
                    ..self.interval(&engine, tally, share, in_place)
                }
            })
            .collect();
        if !self.has_table {
            intervals.retain(|i| i.count + i.unmatched + i.culled.count > 0);
            intervals.sort_by(|a, b| by_total(b, a).then(a.name.cmp(&b.name)));
        }
        let mut frequencies = self.frequencies(&engine, &tallies);
        if !self.has_table {
            frequencies.sort_by(|a, b| b.count.cmp(&a.count).then(a.name.cmp(&b.name)));
        }
        let facts = Facts {
            manifest: &self.manifest,
            options: &self.options,
            rows: self.rows,
            kernel_lost: engine.evidence.lost,
            by_evidence: engine.dropping == Some(Dropping::Evidence),
            pushed_out: engine.pushed_out,
            crowded: engine.crowded,
            unknown: tallies.iter().map(|t| t.unknown).sum(),
            disagree: (intervals.iter()).any(|i| i.notes.iter().any(|note| note == DISPUTED)),
            least_below_step: (tallies.iter())
                .filter(|t| t.least.is_some_and(|l| l <= 0))
                .map(|t| t.name.clone())
                .collect(),
        };
        let warnings = warnings(&facts, &intervals);
        without_impossible(Report {
            schema_version: SCHEMA_VERSION,
            settings: Settings {
                confidence: self.options.confidence,
                cull: self.options.cull.to_string(),
                compensate: self.options.compensate.to_string(),
                table: self.options.table.as_ref().map(|t| t.file.clone()),
                scope: Scope::ThisRun,
            },
            runs: None,
            runs_within_ns: None,
            trace: TraceSummary {
                perturbation: of_the_program(&intervals),
                ..self.trace()
            },
            intervals,
            frequencies,
            lines: Vec::new(),
            passes: Vec::new(),
            warnings,
        })
    }

    pub(crate) fn ns(&self) -> f64 {
        self.manifest.clock.ns_per_tick()
    }

    pub(crate) fn granularity(&self) -> f64 {
        self.manifest.clock.granularity_ticks
    }

    fn compensates(&self) -> bool {
        match self.options.compensate {
            Compensate::None => false,
            Compensate::Auto => self.manifest.calibration.is_some(),
            _ => true,
        }
    }

    fn trace(&self) -> TraceSummary {
        let m = &self.manifest;
        let distinct = |ids: &mut dyn Iterator<Item = (i32, i32)>| {
            ids.collect::<std::collections::BTreeSet<_>>().len() as u64
        };
        let sum = |of: fn(&undertick_trace::manifest::Ring) -> u64| m.rings.iter().map(of).sum();
        let (dropped, overwritten): (u64, u64) = (sum(|r| r.dropped), sum(|r| r.overwritten));
        let lost_by = [("dropped", dropped), ("overwritten", overwritten)];
        TraceSummary {
            events: self.rows.events,
            lost: m.lost,
            threads: distinct(&mut self.rings.iter().map(|r| (r.pid, r.tid))),
            clock: ClockSummary {
                name: m.clock.name.clone(),
                ns_per_tick: self.ns(),
                granularity_ticks: m.clock.granularity_ticks,
                granularity_ns: m.clock.granularity_ticks * self.ns(),
                read_cost_ns_median: m.clock.read_cost_ns_median,
                rate_source: m.clock.rate_source.clone(),
                rate_error_ppb: m.clock.rate_error_ppb,
            },
            perturbation: None,
            written: sum(|r| r.written),
            received: sum(|r| r.received),
            lost_by: lost_by
                .iter()
                .filter(|(_, n)| *n > 0)
                .map(|&(cause, n)| (cause.to_owned(), n))
                .collect(),
            processes: distinct(&mut self.rings.iter().map(|r| (r.pid, 0))),
            command: m.command.clone(),
            host: HostSummary {
                name: m.host.name.clone(),
                kernel: m.host.kernel.clone(),
                arch: m.host.arch.clone(),
                cpus: m.host.cpus,
                cpu_model: m.host.cpu_model.clone(),
            },
            started_unix_ns: m.started_unix_ns,
            duration_ns: m.duration_ns,
            events_span_ns: self.span.map(|s| span_ticks(s) * self.ns()),
            descheduled: match m.descheduled {
                Descheduled::AnyDeschedule => "any_deschedule",
                Descheduled::PreemptionOnly => "preemption_only",
                Descheduled::Unavailable => "unavailable",
            }
            .into(),
        }
    }

    fn interval(
        &self,
        engine: &Engine,
        tally: &mut Tally,
        share_of: Option<ShareOf>,
        in_place: Option<InPlace>,
    ) -> IntervalReport {
        tally.settle();
        let compensated = tally.is_compensated() && self.compensates();
        let (counts, sums) = engine.slices.kept(tally.row);
        let over_time = spread_over_time(&counts, &sums);
        let is_forward = tally.negative == 0;
        let figures = |series: Series, costs: &Costs, compensated: bool, in_step: Option<f64>| {
            let mut sample = series.sample();
            if let Some(over_time) = over_time {
                sample.allow_for_time(over_time);
            }
            let (mut residue, mut cost) = (0.0, Cost::default());
            if compensated {
                let inner = |in_place| costs.inner(&engine.costs, in_place).value;
                residue =
                    -costs.residue(&engine.costs) - (inner(in_place) - inner(None)) / self.ns();
                let mean = (sample.moments().mean().unwrap_or(0.0) + residue) * self.ns();
                cost = costs.mean_for(&engine.costs, mean, in_place);
            }
            Figures {
                sample,
                residue,
                cost,
                is_time: compensated && is_forward,
                in_step,
            }
        };
        let mut uncompensated = figures(tally.as_read(), &tally.kept_costs, false, None);
        let median_steps = (uncompensated
            .sample
            .quantile(0.5, self.options.confidence, 0.0))
        .filter(|_| self.granularity() > 0.0)
        .map(|m| m.value / self.granularity());
        let locked = (median_steps.filter(|steps| steps.abs() < FEW_STEPS))
            .and_then(|_| self.lock(tally, &uncompensated.sample));
        let in_step = locked.map(|lock| lock.may_be_off_steps() * self.granularity());
        uncompensated.in_step = in_step;
        let worse = self.surely_worse(engine, tally).filter(|_| compensated);
        let left_over = match &worse {
            Some(_) => tally.subtract_their_mean(),
            None => 0.0,
        };
        let before = tally.take_all().map(|all| {
            let costs = tally.kept_costs.and(&tally.culled_costs);
            figures(all, &costs, compensated, in_step)
        });
        let mut kept = figures(
            std::mem::take(&mut tally.kept),
            &tally.kept_costs,
            compensated,
            in_step,
        );
        kept.residue -= left_over;
        let before = before.as_ref().unwrap_or(&kept);
        let moments = kept.sample.moments();
        let (n, culled) = (moments.n(), tally.culled());
        // Dropped samples are time that passed, too.
        let sum = (moments.sum() + tally.dropped_sum) as f64;
        let total_ns = match (sum + kept.residue * (n + culled) as f64) * self.ns() {
            total if kept.is_time => total.max(0.0),
            total => total,
        };
        let off_cpu_ns = self.off_cpu(engine, tally, total_ns);
        let in_ns = |ticks: Option<i64>| ticks.map(|t| (t as f64 + kept.residue) * self.ns());
        let by_cause = (Cause::ALL.iter().zip(tally.culled_evidence)).map(|(c, n)| (c.name(), n));
        let by = [
            ("descheduled", tally.culled_descheduled),
            ("ratio", tally.culled_ratio),
        ]
        .into_iter()
        .chain(by_cause);
        // A switch takes the other side of some: the note tells.
        let unmatched = if tally.is_switched {
            [0, 0]
        } else {
            [tally.unmatched_starts, tally.unmatched_ends]
        };
        let mut report = IntervalReport {
            name: tally.name.clone(),
            count: n,
            unmatched: unmatched.iter().sum(),
            culled: Culled {
                count: culled,
                share: culled as f64 / (n + culled).max(1) as f64,
                by: (by.filter(|(_, n)| *n > 0))
                    .map(|(cause, n)| (cause.to_owned(), n))
                    .collect(),
            },
            evidence: self.evidence(engine, tally, n + culled),
            unexplained: self.unexplained(engine, tally, &kept),
            mean: self.mean_by_rate(tally, &kept),
            median: self.quantile(&kept, 0.5),
            quantiles: SHOWN
                .iter()
                .filter_map(|&(key, p)| Some((key.to_owned(), self.quantile(&kept, p)?)))
                .collect::<BTreeMap<_, _>>(),
            min: in_ns(moments.min()),
            max: in_ns(moments.max()),
            sd: moments.sd().map(|sd| sd * self.ns()),
            compensation: match &worse {
                None => self.compensation(engine, tally, &kept, compensated, in_place),
                Some(_) => Compensation {
                    method: "long-term".into(),
                    k: None,
                    ..self.compensation(engine, tally, &kept, compensated, in_place)
                },
            },
            // Of executions that were not recorded nothing is a fact.
            of_this_run: (tally.strata.is_unused())
                .then(|| self.of_this_run(&kept))
                .flatten(),
            by_run: Vec::new(),
            histogram: self.histogram(&kept),
            modes: self.modes(&kept),
            kind: tally.kind,
            reads: self.reads(tally),
            unmatched_starts: unmatched[0],
            unmatched_ends: unmatched[1],
            unmatched_by_loss: tally.unmatched_by_loss.min(unmatched[0]),
            negative: tally.negative,
            before_culling: self.alternative(before, culled + tally.taken_off.samples > 0),
            uncompensated: self.alternative(&uncompensated, compensated),
            share_of,
            total_ns: Some(total_ns),
            on_cpu_ns: off_cpu_ns.map(|off| total_ns - off),
            off_cpu_ns,
            taken_off: TakenOff {
                count: tally.taken_off.samples,
                time_ns: tally.taken_off.ticks as f64 * self.ns(),
            },
            granularity_ns: self.granularity() * self.ns(),
            median_steps,
            notes: (self
                .notes(engine, tally, &kept, compensated, in_place.is_some())
                .into_iter())
            .chain(self.much_disturbed(tally, before, n + culled))
            .chain(locked.map(|lock| self.in_step(lock)))
            .chain(worse.map(|(method, k)| {
                format!(
                    "{method} would make it scatter more (variance times {:.2}), so the mean of what \
                     it subtracts is subtracted from each sample instead",
                    1.0 / k.value
                )
            }))
            .collect(),
            sampled: None,
            slowed: None,
            repeated: None,
            across_hosts: None,
        };
        if report.compensation.k.is_none() {
            // The same bins, shifted by the one cost.
            report.uncompensated.histogram = None;
        }
        tally.strata.tell(&mut report);
        tally.doubt.tell(&mut report, self.ns());
        report
    }

    /// As [`Self::mean`], if one rate of sampling serves all.
    fn mean_by_rate(&self, tally: &Tally, figures: &Figures) -> Option<Estimate> {
        let (level, step) = (self.options.confidence, self.granularity());
        match tally.strata.mean(&figures.sample, level, step) {
            Some(mean) => Some(self.finished_mean(allowing_for_step(mean, figures), figures)),
            None => self.mean(figures),
        }
    }

    /// The lock of its samples, as they were read, to the clock.
    fn lock(&self, tally: &Tally, read: &Sample) -> Option<Lock> {
        let moments = read.moments();
        (tally.begins).lock(self.granularity(), moments.mean()?, moments.n())
    }

    /// What is said of such a lock.
    fn in_step(&self, lock: Lock) -> String {
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
    fn reads(&self, tally: &Tally) -> Reads {
        // Before there was a cost of spans inside, plain spans waited for nothing.
        let waits = (self.manifest.calibration.as_ref()).is_none_or(|c| c.inner_span_ns.is_some());
        match tally.kept_costs.and(&tally.culled_costs).by_ends() {
            [0, 0, o, 0, 0] if o > 0 => Reads::Ordered,
            // An event has no work of its own to wait for.
            [0, 0, 0, u, 0] if u > 0 && tally.kind != IntervalKind::Period => Reads::Unordered,
            [p, 0, 0, 0, s] if p + s > 0 && !waits => Reads::Unordered,
            [_, 0, 0, 0, _] | [0, 0, 0, _, 0] => Reads::Plain,
            _ => Reads::Mixed,
        }
    }

    fn evidence(&self, engine: &Engine, tally: &Tally, matched: u64) -> Vec<Evidence> {
        let culling = engine.dropping == Some(Dropping::Evidence);
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

    /// Time of the total that its thread was off the CPU, ns; `None` where nothing tells.
    fn off_cpu(&self, engine: &Engine, tally: &Tally, total_ns: f64) -> Option<f64> {
        if !engine.evidence.is_there()
            || tally.kind == IntervalKind::Message
            || !tally.strata.is_unused()
        {
            return None;
        }
        let ticks = |cause: Cause| tally.evidence[cause as usize].ticks;
        let still_in = match engine.dropping {
            Some(Dropping::Evidence) => 0,
            _ => ticks(Cause::Preempted) + ticks(Cause::Switched),
        };
        let own = ticks(Cause::Waited) + ticks(Cause::OwnThread);
        let off = (own + still_in) as f64 * self.ns();
        // What was subtracted for recording may be of that time.
        Some(off.min(total_ns.max(0.0)))
    }

    /// Samples far over the least even without the time of everything that is
    /// known to have hit them, dropped ones too: a long sample is hit more often,
    /// so among those kept alone slow ones would be too rare. `None` where nothing
    /// is known at all.
    fn unexplained(&self, engine: &Engine, tally: &Tally, kept: &Figures) -> Option<Unexplained> {
        let moments = kept.sample.moments();
        let least = moments.min()?;
        if !engine.evidence.is_there() || tally.kind == IntervalKind::Message {
            return None;
        }
        let limit = UNEXPLAINED_RATIO * (least as f64).max(self.granularity().max(1.0));
        let over = |bins: &[Bin], cost: f64| -> u64 {
            (bins.iter().filter(|bin| bin.middle() - cost > limit))
                .map(|bin| bin.count)
                .sum()
        };
        // Those that something fell into are as they were read.
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

    /// Said where the points inside are a good part of what was read.
    fn much_inside(&self, engine: &Engine, tally: &Tally, kept: &Figures) -> Option<String> {
        let costs = &tally.kept_costs;
        let inner = costs.inner(&engine.costs, None);
        let read = kept.sample.moments().mean()? + kept.residue;
        let read = read * self.ns() + kept.cost.value;
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

    /// Said where dropping what was hit changes the mean by more than its
    /// interval: a long sample is hit more often than a short one.
    fn favours_short(&self, tally: &Tally, kept: &Figures) -> Option<String> {
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

    /// Said where disturbances touched so many samples that the figures depend on what was
    /// done about them: both stand side by side.
    fn much_disturbed(&self, tally: &Tally, before: &Figures, matched: u64) -> Vec<String> {
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

    /// With its histogram where that differs from the figures'.
    fn alternative(&self, figures: &Figures, differs: bool) -> Alternative {
        Alternative {
            count: figures.sample.moments().n(),
            mean: self.mean(figures),
            median: self.quantile(figures, 0.5),
            histogram: differs.then(|| self.histogram(figures)),
        }
    }

    /// The samples themselves, with what the clock and the cost of recording leave open.
    fn of_this_run(&self, figures: &Figures) -> Option<OfThisRun> {
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

    fn mean(&self, figures: &Figures) -> Option<Estimate> {
        let mean = figures
            .sample
            .mean(self.options.confidence, self.granularity())?;
        Some(self.finished_mean(allowing_for_step(mean, figures), figures))
    }

    fn quantile(&self, figures: &Figures, p: f64) -> Option<Estimate> {
        let level = self.options.confidence;
        let quantile = figures.sample.quantile(p, level, self.granularity())?;
        Some(self.finished(quantile, figures))
    }

    /// In nanoseconds, with the rest of the cost off and its uncertainty in.
    pub(crate) fn finished(&self, ticks: Estimate, figures: &Figures) -> Estimate {
        let mut estimate = scaled(shifted(ticks, figures.residue), self.ns(), "ns");
        figures.cost.widen(&mut estimate);
        if figures.is_time {
            estimate.interval.hi = estimate.interval.hi.map(|hi| hi.max(0.0));
        }
        estimate
    }

    /// A mean, which no cost makes less than nothing.
    fn finished_mean(&self, ticks: Estimate, figures: &Figures) -> Estimate {
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

    fn compensation(
        &self,
        engine: &Engine,
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
            .disputed(engine, tally, kept)
            .then(|| DISPUTED.to_owned());
        let by_pairs = costs.by_pairs.iter().sum::<u64>();
        let beside = engine.costs.beside.filter(|_| by_pairs > 0);
        let (method, how) = match (beside, self.options.compensate) {
            (Some(beside), _) => (beside.name, beside.how()),
            (None, Compensate::LongTerm) => ("long-term", "mean of all pairs of readings"),
            (None, Compensate::Pairs | Compensate::Sampler) => ("none", "no pairs beside it"),
            (None, _) if in_place.is_some() => (
                "in place",
                "calibration by known doses of work; points inside as measured by switching them",
            ),
            (None, _) => ("calibrated", "calibration by known doses of work"),
        };
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
                method: how.into(),
                n,
                n_effective: n as f64,
                notes: notes.into_iter().collect(),
            }),
            k: beside.and_then(|_| tally.improvement.k(self.options.confidence)),
            inner_records: Some(costs.inner_records()),
        }
    }

    /// The method by pairs of readings and its k, where it makes these samples scatter more
    /// with the certainty that was asked for.
    fn surely_worse(&self, engine: &Engine, tally: &Tally) -> Option<(&'static str, Estimate)> {
        let beside =
            (engine.costs.beside).filter(|_| tally.kept_costs.by_pairs.iter().sum::<u64>() > 0)?;
        let k = tally.improvement.k(self.options.confidence)?;
        (k.interval.hi? < 1.0).then_some((beside.name, k))
    }

    /// Whether the two calibrations contradict each other about these samples.
    fn disputed(&self, engine: &Engine, tally: &Tally, kept: &Figures) -> bool {
        let mean = kept.sample.moments().mean().unwrap_or(0.0) + kept.residue;
        (tally.kept_costs).is_disputed(&engine.costs, mean * self.ns())
    }

    fn histogram(&self, kept: &Figures) -> Histogram {
        let distribution = kept.sample.distribution();
        // Any value on a step will do; the least one is.
        let least = kept.sample.moments().min().unwrap_or(0);
        let origin = least as f64 % self.granularity().max(1.0);
        let drawn = distribution.drawn(self.granularity(), origin);
        Histogram {
            unit: "ns".into(),
            // A thousandth of a nanosecond is far below any tick, and half the digits.
            edges: (drawn.edges.iter())
                .map(|edge| ((edge + kept.residue) * self.ns() * 1e3).round() / 1e3)
                .collect(),
            counts: drawn.counts,
        }
    }

    fn notes(
        &self,
        engine: &Engine,
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
                "start and end lie in different threads: no cost subtracted, not culled by the \
                 descheduled flag; the figures assume that all CPUs' clocks agree"
                    .into(),
            ),
            _ => {}
        }
        if compensated && self.disputed(engine, tally, kept) {
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
            notes.extend(self.much_inside(engine, tally, kept));
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

    /// Share of the one interval that all samples lay in. Culled samples count
    /// on both sides: time that passed, passed in both.
    fn share(&self, engine: &Engine, i: usize) -> Option<ShareOf> {
        let tally = &engine.tallies[i];
        let Parent::One(outer) = tally.parent else {
            return None;
        };
        let whole = engine
            .tallies
            .get(outer as usize)
            .filter(|_| outer as usize != i)?;
        let (part, all) = (
            engine.slices.durations(tally.row),
            engine.slices.durations(whole.row),
        );
        Some(ShareOf {
            of: whole.name.clone(),
            share: ratio_of_sums(&part, &all, self.options.confidence),
        })
    }

    fn frequencies(&self, engine: &Engine, tallies: &[Tally]) -> Vec<FrequencyReport> {
        let time = self.span.map_or(0.0, span_ticks);
        (engine.frequencies.iter())
            .map(|f| {
                let count = engine.slices.total(f.row) + f.untold;
                let slices = engine.slices.whole_counts(f.row);
                let per_tick = rate(&slices, count, time, self.options.confidence);
                FrequencyReport {
                    name: f.name.clone(),
                    per_second: per_tick.map(|e| scaled(e, 1e9 / self.ns(), "1/s")),
                    share_of: f.within.map(|outer| ShareOf {
                        of: tallies[outer as usize].name.clone(),
                        share: self.share_of_events(count, f.seen),
                    }),
                    count,
                }
            })
            .collect()
    }

    /// Share of events that lay inside; exact of this trace, so the interval
    /// is that of independent events (Wilson 1927), and says so.
    fn share_of_events(&self, inside: u64, seen: u64) -> Option<Estimate> {
        undertick_estimate::proportion(inside, seen, self.options.confidence)
    }
}

fn wider(interval: Interval, by: f64) -> Interval {
    Interval {
        lo: interval.lo.map(|lo| lo - by),
        hi: interval.hi.map(|hi| hi + by),
    }
}

/// A mean with what it may be off in step with the clock; without an interval where that is
/// much.
fn allowing_for_step(mean: Estimate, figures: &Figures) -> Estimate {
    let interval = match figures.in_step {
        None => return mean,
        Some(off) if off > MOST_IN_STEP * mean.value.abs() => Interval { lo: None, hi: None },
        Some(off) => wider(mean.interval, off),
    };
    Estimate { interval, ..mean }
}

fn span_ticks((lo, hi): (i64, i64)) -> f64 {
    (i128::from(hi) - i128::from(lo)) as f64
}

/// A time as the report shows it, with plain spaces.
fn shown_ns(ns: f64) -> String {
    figures::duration(ns).replace('\u{a0}', " ")
}
