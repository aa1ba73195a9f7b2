//! Makes the report document from tallies.

mod estimates;
mod paths;
mod remarks;

use std::collections::BTreeMap;

use undertick_document::{
    ClockSummary, Compensation, Culled, FrequencyReport, HostSummary, IntervalKind, IntervalReport,
    Report, SCHEMA_VERSION, SampleStatistics, Scope, Settings, ShareOf, Slowed, TakenOff,
    TraceSummary, slowdown_of_program, without_impossible,
};
use undertick_estimate::{Cost, Sample, Series, rate, ratio_of_sums, scaled, spread_over_time};
use undertick_evidence::Cause;
use undertick_format::manifest::{Descheduled, Manifest};
use undertick_format::tasks::TaskEvent;
use undertick_units::Estimate;

use crate::cells::Family;
use crate::cost::{Costs, InPlace};
use crate::match_context::MatchContext;
use crate::matching::RowCounts;
use crate::options::{Compensate, Options};
use crate::roles::Roles;
use crate::shard::RingAccount;
use crate::tally::{Dropping, Parent, Tally};
use crate::warnings::{FEW_STEPS, Facts, warnings};

/// The note for an interval whose cost is uncertain by more than chance.
const DISPUTED: &str = "the cost of an empty span and the cost beside known work disagree: the interval is widened to hold both";

/// Quantiles of the report beside the median: key and value.
const SHOWN: [(&str, f64); 3] = [("0.9", 0.9), ("0.99", 0.99), ("0.999", 0.999)];

/// The input of the report, in addition to the match context.
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
    /// Correction of every figure for the rounding of costs to ticks.
    pub(crate) residue: f64,
    cost: Cost,
    /// Whether it is a duration less a cost: not below 0, whatever the cost was.
    is_time: bool,
    /// How far its mean may be wrong because the program keeps step with the clock, ticks.
    in_step: Option<f64>,
}

/// Whether an interval is the time from one record about tasks to the next: of any two tasks.
fn is_of_task(interval: &IntervalReport) -> bool {
    interval.kind == IntervalKind::Period
        && (interval.name.strip_suffix(Family::Period.suffix()))
            .is_some_and(|event| TaskEvent::split(event).is_some())
}

impl Summary {
    pub(crate) fn report(&self, mut context: MatchContext) -> Report {
        let shares: Vec<Option<ShareOf>> = (0..context.tallies.len())
            .map(|i| self.share(&context, i))
            .collect();
        let mut tallies = std::mem::take(&mut context.tallies);
        let mut slowed: Vec<Option<(Slowed, f64)>> = (0..tallies.len() as u32)
            .map(|place| {
                let found = context.perturbation.as_mut()?;
                let slowed = found.slowed(place, self.options.confidence, self.ns())?;
                Some((slowed, found.share_on(place)))
            })
            .collect();
        let mut intervals: Vec<IntervalReport> = (tallies.iter_mut().zip(shares))
            .zip(&mut slowed)
            .map(|((tally, share), slowed)| {
                let in_place = (slowed.as_ref()).and_then(|(by, on)| InPlace::from_slowed(by, *on));
                IntervalReport {
                    slowed: slowed.take().map(|(by, _)| by),
                    ..self.interval(&context, tally, share, in_place)
                }
            })
            .collect();
        let knows_switches = context.evidence.is_there();
        let is_switched: Vec<bool> = tallies.iter().map(|tally| tally.is_switched).collect();
        let source = paths::PathSource {
            tree: &context.tree,
            intervals: &intervals,
            is_switched: &is_switched,
            ns_per_tick: self.ns(),
            knows_switches,
        };
        let paths = paths::paths(&source, &self.roles(&context.roles));
        if !self.has_table {
            intervals.retain(|i| i.count + i.unmatched + i.culled.count > 0 && !is_of_task(i));
            intervals.sort_by(|a, b| b.cmp_total(a).then(a.name.cmp(&b.name)));
        }
        let mut frequencies = self.frequencies(&context, &tallies);
        if !self.has_table {
            frequencies.sort_by(|a, b| b.count.cmp(&a.count).then(a.name.cmp(&b.name)));
        }
        let facts = Facts {
            manifest: &self.manifest,
            options: &self.options,
            rows: self.rows,
            kernel_lost: context.evidence.lost,
            by_evidence: context.dropping == Some(Dropping::Evidence),
            pushed_out: context.pushed_out,
            crowded: context.crowded,
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
                perturbation: slowdown_of_program(&intervals),
                ..self.trace()
            },
            intervals,
            paths,
            stacks: None,
            locks: None,
            allocations: None,
            tasks: None,
            states: Vec::new(),
            frequencies,
            lines: Vec::new(),
            passes: Vec::new(),
            warnings,
        })
    }

    /// The name of each role, and the number of its threads.
    fn roles<'a>(&self, roles: &'a Roles) -> Vec<(&'a str, u32)> {
        let names = roles.names().iter().map(|name| (&**name, 0));
        let mut found: Vec<(&str, u32)> = names.collect();
        for ring in &self.rings {
            if let Some(role) = roles.role(ring.pid, ring.tid) {
                found[role as usize].1 += 1;
            }
        }
        found
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
        let sum = |of: fn(&undertick_format::manifest::Ring) -> u64| m.rings.iter().map(of).sum();
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
            kept_because: kept_because(m),
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
        context: &MatchContext,
        tally: &mut Tally,
        share_of: Option<ShareOf>,
        in_place: Option<InPlace>,
    ) -> IntervalReport {
        tally.settle();
        let compensated = tally.is_compensated() && self.compensates();
        let (counts, sums) = context.slices.kept(tally.row);
        let over_time = spread_over_time(&counts, &sums);
        let is_forward = tally.negative == 0;
        let figures = |series: Series, costs: &Costs, compensated: bool, in_step: Option<f64>| {
            let mut sample = series.sample();
            if let Some(over_time) = over_time {
                sample.allow_for_time(over_time);
            }
            let (mut residue, mut cost) = (0.0, Cost::default());
            if compensated {
                let inner = |in_place| costs.inner(&context.costs, in_place).value;
                residue =
                    -costs.residue(&context.costs) - (inner(in_place) - inner(None)) / self.ns();
                let mean = (sample.moments().mean().unwrap_or(0.0) + residue) * self.ns();
                cost = costs.mean_for(&context.costs, mean, in_place);
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
        let worse = self.surely_worse(context, tally).filter(|_| compensated);
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
        // Dropped samples are also time that passed.
        let sum = (moments.sum() + tally.dropped_sum) as f64;
        let total_ns = match (sum + kept.residue * (n + culled) as f64) * self.ns() {
            total if kept.is_time => total.max(0.0),
            total => total,
        };
        let off_cpu_ns = self.off_cpu(context, tally, total_ns);
        let by_cause = (Cause::ALL.iter().zip(tally.culled_evidence)).map(|(c, n)| (c.name(), n));
        let by = [
            ("descheduled", tally.culled_descheduled),
            ("ratio", tally.culled_ratio),
        ]
        .into_iter()
        .chain(by_cause);
        // A switch of points leaves some without the other side: a note says so.
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
            evidence: self.evidence(context, tally, n + culled),
            unexplained: self.unexplained(context, tally, &kept),
            mean: self.mean_by_rate(tally, &kept),
            median: self.quantile(&kept, 0.5),
            quantiles: SHOWN
                .iter()
                .filter_map(|&(key, p)| Some((key.to_owned(), self.quantile(&kept, p)?)))
                .collect::<BTreeMap<_, _>>(),
            statistics: statistics(&kept.sample, kept.residue, self.ns()),
            compensation: match &worse {
                None => self.compensation(context, tally, &kept, compensated, in_place),
                Some(_) => Compensation {
                    method: "long-term".into(),
                    k: None,
                    ..self.compensation(context, tally, &kept, compensated, in_place)
                },
            },
            // For executions that were not recorded nothing is known as a fact.
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
                .notes(context, tally, &kept, compensated, in_place.is_some())
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

    /// The part of the total during which its thread was off the CPU, ns; `None` where it is
    /// unknown.
    fn off_cpu(&self, context: &MatchContext, tally: &Tally, total_ns: f64) -> Option<f64> {
        if !context.evidence.is_there()
            || tally.kind == IntervalKind::Message
            || !tally.strata.is_unused()
        {
            return None;
        }
        let ticks = |cause: Cause| tally.evidence[cause as usize].ticks;
        let still_in = match context.dropping {
            Some(Dropping::Evidence) => 0,
            _ => ticks(Cause::Preempted) + ticks(Cause::Switched),
        };
        let own = ticks(Cause::Waited) + ticks(Cause::OwnThread);
        let off = (own + still_in) as f64 * self.ns();
        // The cost subtracted for recording may be part of that time.
        Some(off.min(total_ns.max(0.0)))
    }

    /// Share of the one interval that all samples lay in. Dropped samples count on both sides:
    /// time that passed, passed in both.
    fn share(&self, context: &MatchContext, i: usize) -> Option<ShareOf> {
        let tally = &context.tallies[i];
        let Parent::One(outer) = tally.parent else {
            return None;
        };
        let whole = context
            .tallies
            .get(outer as usize)
            .filter(|_| outer as usize != i)?;
        let (part, all) = (
            context.slices.durations(tally.row),
            context.slices.durations(whole.row),
        );
        Some(ShareOf {
            of: whole.name.clone(),
            share: ratio_of_sums(&part, &all, self.options.confidence),
        })
    }

    fn frequencies(&self, context: &MatchContext, tallies: &[Tally]) -> Vec<FrequencyReport> {
        let time = self.span.map_or(0.0, span_ticks);
        (context.frequencies.iter())
            .map(|f| {
                let count = context.slices.total(f.row) + f.untold;
                let slices = context.slices.whole_counts(f.row);
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

    /// Share of events that lay inside. It is exact for this trace, so the interval is that of
    /// independent events (Wilson 1927), and says so.
    fn share_of_events(&self, inside: u64, seen: u64) -> Option<Estimate> {
        undertick_estimate::proportion(inside, seen, self.options.confidence)
    }
}

/// Why the recorder made the snapshot, each reason with its thread.
fn kept_because(manifest: &Manifest) -> Vec<String> {
    let reason = |of: &undertick_format::manifest::Triggered| {
        let thread = match (of.pid, of.tid) {
            (Some(pid), Some(tid)) => format!(", in thread {tid} of process {pid}"),
            _ => String::new(),
        };
        format!("{}{thread} (rule: {})", of.text, of.rule)
    };
    let more = match manifest.triggered_more {
        0 => None,
        1 => Some("rules were met once more".to_owned()),
        n => Some(format!("rules were met {n} times more")),
    };
    manifest.triggered.iter().map(reason).chain(more).collect()
}

fn span_ticks((lo, hi): (i64, i64)) -> f64 {
    (i128::from(hi) - i128::from(lo)) as f64
}

/// The statistics of a sample of ticks; `residue` ticks are added to each duration.
fn statistics(sample: &Sample, residue: f64, ns_per_tick: f64) -> SampleStatistics {
    let moments = sample.moments();
    let in_ns = |ticks: Option<i64>| ticks.map(|t| (t as f64 + residue) * ns_per_tick);
    SampleStatistics {
        min: in_ns(moments.min()),
        max: in_ns(moments.max()),
        sd: moments.sd().map(|sd| sd * ns_per_tick),
    }
}
