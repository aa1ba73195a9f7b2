//! One report of several recordings.
//!
//! **Question.** A program was recorded several times: what would a repetition give? [`combine`] makes
//! the report of several runs; [`pooled`] is shared with `undertick-experiment`, which combines repetitions.
//!
//! **Method.** All samples of a run share conditions: where its memory lies, how fast its core
//! runs. So each run is one number for each figure. The figure of the set is the median of these
//! numbers ([`median_of_runs`]), because one run in twenty may be disturbed by other work of the
//! machine. The figure's interval holds that of a repetition, which is a set of the same number of
//! fresh runs. That interval is widened by what the cost of recording and the clock's step leave uncertain
//! in every run alike. Counts and times are sums; distributions hold the samples of all runs.
//!
//! **Caveats.** A single further run scatters more. Two runs give a very wide interval, five a
//! useful one. Totals are of all runs, so a total over its count is not the figure `mean`.

mod paths;
pub mod pooled;
mod warnings;

use std::collections::BTreeMap;

use undertick_document::{
    Alternative, Compensation, FrequencyReport, Histogram, IntervalKind, IntervalReport, Report,
    RunFigures, Sampled, Scope, ShareOf, Slowed, TraceSummary, Unexplained, slowdown_of_program,
    without_impossible,
};
pub use undertick_estimate::MOST_RUNS;
use undertick_estimate::median_of_runs;
use undertick_units::{Estimate, Interval};

use warnings::{close, far_off, missing, notes, warnings, within_ns};

/// One of several recordings, analysed.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name, unique in its set.
    pub name: String,
    /// The report of its analysis.
    pub report: Report,
}

/// Returns one report of all runs, with intervals of this confidence level; `None` without a run.
#[must_use]
pub fn combine(runs: &[Run], level: f64) -> Option<Report> {
    let first = runs.first()?;
    let mut report = first.report.clone();
    report.settings.scope = Scope::Repetition;
    report.settings.confidence = level;
    report.runs = Some(runs.len() as u64);
    report.runs_within_ns = within_ns(runs);
    report.trace = trace(runs);
    report.intervals = (names(runs, |report| &report.intervals, interval_key).iter())
        .filter_map(|key| interval(runs, key, level))
        .collect();
    if report.settings.table.is_none() {
        (report.intervals).sort_by(|a, b| b.cmp_total(a).then(a.name.cmp(&b.name)));
    }
    report.paths = paths::paths(runs);
    report.frequencies = (names(runs, |report| &report.frequencies, |f| f.name.clone()).iter())
        .filter_map(|name| frequency(runs, name, level))
        .collect();
    report.trace.perturbation = slowdown_of_program(&report.intervals);
    report.warnings = warnings(runs);
    report.warnings.extend(close(runs));
    report.warnings.extend(far_off(&report.intervals, level));
    Some(without_impossible(report))
}

/// Identifies an interval: one name may have several kinds.
type Key = (String, IntervalKind);

fn interval_key(interval: &IntervalReport) -> Key {
    (interval.name.clone(), interval.kind)
}

/// The keys of all runs in the order in which they first come.
fn names<T, K: PartialEq>(
    runs: &[Run],
    of: impl Fn(&Report) -> &Vec<T>,
    key: impl Fn(&T) -> K,
) -> Vec<K> {
    let mut found: Vec<K> = Vec::new();
    for item in runs.iter().flat_map(|run| of(&run.report)) {
        let key = key(item);
        if !found.contains(&key) {
            found.push(key);
        }
    }
    found
}

fn trace(runs: &[Run]) -> TraceSummary {
    let traces: Vec<&TraceSummary> = runs.iter().map(|run| &run.report.trace).collect();
    let sum = |of: fn(&TraceSummary) -> u64| traces.iter().map(|t| of(t)).sum();
    let most = |of: fn(&TraceSummary) -> u64| traces.iter().map(|t| of(t)).max().unwrap_or(0);
    let mut lost_by = BTreeMap::new();
    for (cause, n) in traces.iter().flat_map(|t| &t.lost_by) {
        *lost_by.entry(cause.clone()).or_insert(0) += n;
    }
    TraceSummary {
        events: sum(|t| t.events),
        lost: sum(|t| t.lost),
        threads: most(|t| t.threads),
        written: sum(|t| t.written),
        received: sum(|t| t.received),
        lost_by,
        processes: most(|t| t.processes),
        duration_ns: traces.iter().map(|t| t.duration_ns).sum(),
        events_span_ns: traces.iter().map(|t| t.events_span_ns).sum(),
        ..traces[0].clone()
    }
}

/// One interval in those runs that have it.
struct OfRuns<'a> {
    of: Vec<(&'a str, &'a IntervalReport)>,
    level: f64,
}

impl<'a> OfRuns<'a> {
    fn each(&self) -> impl Iterator<Item = &'a IntervalReport> + Clone + '_ {
        self.of.iter().map(|(_, interval)| *interval)
    }

    /// A figure between runs, with the uncertainty that every run shares. `own` is the figure as
    /// a fact of its run, which includes the clock's step and the cost.
    fn figure(
        &self,
        of: impl Fn(&'a IntervalReport) -> Option<&'a Estimate>,
        own: impl Fn(&'a IntervalReport) -> Option<&'a Estimate>,
    ) -> Option<Estimate> {
        let mut figure = between(self.each().filter_map(of), self.level)?;
        let open: Vec<(f64, f64)> = (self.each())
            .filter_map(|i| match own(i) {
                Some(own) => Some(arms(own)),
                // A cost higher than assumed makes the figure lower.
                None => (i.compensation.cost.as_ref()).map(|cost| {
                    let (below, above) = arms(cost);
                    (above, below)
                }),
            })
            .collect();
        let n = open.len().max(1) as f64;
        let below = open.iter().map(|(below, _)| below).sum::<f64>() / n;
        let above = open.iter().map(|(_, above)| above).sum::<f64>() / n;
        figure.interval.lo = figure.interval.lo.map(|lo| lo - below);
        figure.interval.hi = figure.interval.hi.map(|hi| hi + above);
        Some(figure)
    }

    fn alternative(
        &self,
        of: fn(&IntervalReport) -> &Alternative,
        compensated: bool,
    ) -> Alternative {
        // Nothing was subtracted, or it is as uncertain as that of all samples.
        let figure = |of: &dyn Fn(&'a IntervalReport) -> Option<&'a Estimate>| match compensated {
            true => self.figure(of, |_| None),
            false => between(self.each().filter_map(of), self.level),
        };
        let histograms: Option<Vec<&Histogram>> =
            self.each().map(|i| of(i).histogram.as_ref()).collect();
        Alternative {
            count: self.each().map(|i| of(i).count).sum(),
            mean: figure(&|i| of(i).mean.as_ref()),
            median: figure(&|i| of(i).median.as_ref()),
            histogram: histograms
                .map(|all| pooled::histogram(&all, self.of[0].1.granularity_ns, 0.0)),
        }
    }

    fn compensation(&self) -> Compensation {
        let costs: Vec<&Estimate> = (self.each())
            .filter_map(|interval| interval.compensation.cost.as_ref())
            .collect();
        let bound = |of: fn(&Interval) -> Option<f64>, choose: fn(f64, f64) -> f64| {
            let all: Option<Vec<f64>> = costs.iter().map(|cost| of(&cost.interval)).collect();
            all?.into_iter().reduce(choose)
        };
        let n = costs.len() as f64;
        let inner: Option<Vec<f64>> = self.each().map(|i| i.compensation.inner_records).collect();
        Compensation {
            method: self.of[0].1.compensation.method.clone(),
            cost: costs.first().map(|first| Estimate {
                value: costs.iter().map(|cost| cost.value).sum::<f64>() / n,
                // Each run was calibrated separately: the truth lies between them.
                interval: Interval {
                    lo: bound(|i| i.lo, f64::min),
                    hi: bound(|i| i.hi, f64::max),
                },
                n: costs.iter().map(|cost| cost.n).sum(),
                n_effective: n,
                ..(*first).clone()
            }),
            k: None,
            inner_records: inner.map(|all| all.iter().sum::<f64>() / all.len() as f64),
        }
    }

    fn by_run(&self) -> Vec<RunFigures> {
        let value = |e: &Option<Estimate>| e.as_ref().map(|e| e.value);
        (self.of.iter())
            .map(|(run, interval)| RunFigures {
                run: (*run).to_owned(),
                count: interval.count,
                total_ns: interval.total_ns,
                mean_ns: value(&interval.mean),
                median_ns: value(&interval.median),
                quantiles_ns: (interval.quantiles.iter())
                    .map(|(key, quantile)| (key.clone(), quantile.value))
                    .collect(),
            })
            .collect()
    }

    fn share_of(&self) -> Option<ShareOf> {
        let first = self.each().find_map(|i| i.share_of.as_ref())?;
        let shares = (self.each()).filter_map(|i| {
            i.share_of
                .as_ref()
                .filter(|s| s.of == first.of)?
                .share
                .as_ref()
        });
        Some(ShareOf {
            of: first.of.clone(),
            share: between(shares, self.level),
        })
    }

    fn unexplained(&self) -> Option<Unexplained> {
        let all: Option<Vec<&Unexplained>> = self.each().map(|i| i.unexplained.as_ref()).collect();
        let all = all?;
        Some(Unexplained {
            ratio: all.first()?.ratio,
            without_evidence: all.iter().map(|u| u.without_evidence).sum(),
            count: all.iter().map(|u| u.count).sum(),
            share: between(all.iter().map(|u| &u.share), self.level)?,
        })
    }

    fn sampled(&self) -> Option<Sampled> {
        let all: Option<Vec<&Sampled>> = self.each().map(|i| i.sampled.as_ref()).collect();
        let all = all?;
        let first = all.first()?;
        let totals: Option<Vec<&Estimate>> = all.iter().map(|s| s.total.as_ref()).collect();
        let added = |totals: Vec<&Estimate>| {
            let bound = |of: fn(&Interval) -> Option<f64>| -> Option<f64> {
                totals.iter().map(|total| of(&total.interval)).sum()
            };
            Estimate {
                value: totals.iter().map(|total| total.value).sum(),
                interval: Interval {
                    lo: bound(|i| i.lo),
                    hi: bound(|i| i.hi),
                },
                n: totals.iter().map(|total| total.n).sum(),
                n_effective: totals.iter().map(|total| total.n_effective).sum(),
                ..totals[0].clone()
            }
        };
        Some(Sampled {
            executions: all.iter().map(|s| s.executions).sum(),
            recorded: all.iter().map(|s| s.recorded).sum(),
            rate: first
                .rate
                .filter(|rate| all.iter().all(|s| s.rate == Some(*rate))),
            total: totals.map(added),
        })
    }

    fn slowed(&self) -> Option<Slowed> {
        let all: Vec<&Slowed> = self.each().filter_map(|i| i.slowed.as_ref()).collect();
        let first = all.first()?;
        let sum = |of: fn(&Slowed) -> [u64; 2]| {
            all.iter()
                .fold([0, 0], |[a, b], s| [a + of(s)[0], b + of(s)[1]])
        };
        Some(Slowed {
            what: first.what.clone(),
            by: between(all.iter().map(|s| &s.by), self.level)?,
            share: between(all.iter().map(|s| &s.share), self.level)?,
            per_point: between(all.iter().filter_map(|s| s.per_point.as_ref()), self.level),
            points: all.iter().map(|s| s.points).sum::<f64>() / all.len() as f64,
            samples: sum(|s| s.samples),
            long: sum(|s| s.long),
        })
    }
}

fn interval<'a>(runs: &'a [Run], key: &Key, level: f64) -> Option<IntervalReport> {
    let of_runs = OfRuns {
        of: (runs.iter())
            .filter_map(|run| {
                let mut all = run.report.intervals.iter();
                let own = all.find(|i| i.name == key.0 && i.kind == key.1)?;
                Some((run.name.as_str(), own))
            })
            .collect(),
        level,
    };
    let (_, first) = *of_runs.of.first()?;
    let all: Vec<&IntervalReport> = of_runs.each().collect();
    let histograms: Vec<&Histogram> = all.iter().map(|i| &i.histogram).collect();
    let histogram = pooled::histogram(&histograms, first.granularity_ns, 0.0);
    let n_effective = (all.iter().filter_map(|i| i.mean.as_ref()))
        .map(|mean| mean.n_effective)
        .sum();
    let modes = pooled::modes(
        &histogram,
        &histograms,
        0.0,
        n_effective,
        first.granularity_ns,
        level,
    );
    let statistics: Vec<(&IntervalReport, f64)> = all.iter().map(|i| (*i, 0.0)).collect();
    let notes = (notes(&of_runs.of, |interval| &interval.notes, runs.len()).into_iter())
        .chain(missing(&of_runs, runs.len()));
    Some(IntervalReport {
        unexplained: of_runs.unexplained(),
        mean: of_runs.figure(
            |i| i.mean.as_ref(),
            |i| i.of_this_run.as_ref()?.mean.as_ref(),
        ),
        median: of_runs.figure(
            |i| i.median.as_ref(),
            |i| i.of_this_run.as_ref()?.median.as_ref(),
        ),
        quantiles: (first.quantiles.keys())
            .filter_map(|key| {
                let own = |i: &'a IntervalReport| i.of_this_run.as_ref()?.quantiles.get(key);
                let figure = of_runs.figure(|i| i.quantiles.get(key), own)?;
                Some((key.clone(), figure))
            })
            .collect(),
        statistics: pooled::statistics(&statistics),
        compensation: of_runs.compensation(),
        by_run: of_runs.by_run(),
        histogram,
        modes,
        before_culling: of_runs.alternative(|i| &i.before_culling, true),
        uncompensated: of_runs.alternative(|i| &i.uncompensated, false),
        share_of: of_runs.share_of(),
        notes: notes.collect(),
        sampled: of_runs.sampled(),
        slowed: of_runs.slowed(),
        ..pooled::summed(&all)?
    })
}

fn frequency(runs: &[Run], name: &str, level: f64) -> Option<FrequencyReport> {
    let of: Vec<&FrequencyReport> = (runs.iter())
        .filter_map(|run| run.report.frequencies.iter().find(|f| f.name == name))
        .collect();
    let first = *of.first()?;
    let shares = (of.iter()).filter_map(|f| f.share_of.as_ref()?.share.as_ref());
    Some(FrequencyReport {
        name: first.name.clone(),
        per_second: between(of.iter().filter_map(|f| f.per_second.as_ref()), level),
        share_of: first.share_of.as_ref().map(|share_of| ShareOf {
            of: share_of.of.clone(),
            share: between(shares, level),
        }),
        count: of.iter().map(|f| f.count).sum(),
    })
}

/// The median of a figure over runs, with the interval of what the same number of fresh runs
/// give; without bounds for one run. `None` without runs.
fn between<'a>(figures: impl Iterator<Item = &'a Estimate>, level: f64) -> Option<Estimate> {
    let figures: Vec<&Estimate> = figures.collect();
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    let median = median_of_runs(&values, level)?;
    Some(Estimate {
        unit: figures.first()?.unit.clone(),
        n: figures.iter().map(|figure| figure.n).sum(),
        ..median
    })
}

/// Distances from an estimate to its lower and to its upper bound; 0 where there is none.
fn arms(of: &Estimate) -> (f64, f64) {
    let interval = &of.interval;
    (
        interval.lo.map_or(0.0, |lo| of.value - lo),
        interval.hi.map_or(0.0, |hi| hi - of.value),
    )
}
