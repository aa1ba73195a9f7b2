//! Combines repetitions: one figure per interval and setting, whose confidence interval includes
//! the scatter between repetitions.

use std::collections::{BTreeMap, HashMap};

use undertick_combine::pooled;
use undertick_document::{
    Compensation, Histogram, IntervalReport, Repeated, RepetitionFigure, Report, SampleStatistics,
    Scope, Warning, without_impossible,
};
use undertick_estimate::Numbers;
use undertick_units::{Estimate, Interval};

use super::Experiment;
use super::analysis::{Analysed, passes};
use super::exceeded::exceeded_once_in;
use super::lines::lines;
use super::machine::{Ended, Performed, Repetition};
use super::numbering::{Cell, Mark};
use crate::script::{Placement, Plan, Timed};

/// A median below this many steps of the clock is known to a step only; the mean of many samples is
/// known better.
const FEWEST_STEPS: f64 = 20.0;

/// Warnings about the trace, not about the intervals of single repetitions.
const OF_THE_TRACE: [&str; 8] = [
    "lost_events",
    "messages_after_loss",
    "bad_rows",
    "kernel_lost",
    "clock_stepped_back",
    "clock_goes_back",
    "clock_differs_by_cpu",
    "trace",
];

/// An interval of an experiment.
struct Sought<'a> {
    name: String,
    process: &'a str,
    step: Option<u32>,
    includes: &'a str,
    timed: Timed,
    of: Box<dyn Fn(&'a Analysed, Cell) -> Option<&'a IntervalReport> + 'a>,
    /// The process whose null step is taken off.
    null_of: usize,
    /// Number of null steps to take off: one for each step.
    nulls: usize,
}

/// Returns the report of an experiment: for each setting every timed step, every interval of the
/// script, the whole pass, and the zero check.
pub(crate) fn combine(
    experiment: &Experiment,
    performed: &Performed,
    analysed: &Analysed,
    level: f64,
) -> Report {
    let mut report = analysed.report.clone();
    report.intervals = Vec::new();
    report.frequencies = Vec::new();
    let mut figures = HashMap::new();
    report.settings.table = None;
    report.trace.command = experiment.names().map(str::to_owned).collect();
    report.settings.compensate = "null step".to_owned();
    report.settings.scope = Scope::Repetition;
    report
        .warnings
        .retain(|w| OF_THE_TRACE.contains(&w.code.as_str()));
    for (index, (setting, _)) in experiment.settings().enumerate() {
        let done: Vec<&Repetition> = (performed.repetitions.iter())
            .filter(|r| r.setting == index && r.ended == Ended::Done)
            .collect();
        report
            .warnings
            .extend(warnings(experiment, performed, index));
        if done.is_empty() {
            continue;
        }
        let info = SettingInfo {
            script: experiment.script_of(index).to_owned(),
            title: experiment.title_of(index).to_owned(),
            parameters: setting.parameters.clone(),
            placement: placement(&setting.plan, &done),
        };
        for sought in sought(&setting.plan) {
            let Some(interval) = put_together(&sought, &info, &done, analysed, level) else {
                continue;
            };
            figures.insert((index, sought.timed), report.intervals.len());
            report.intervals.push(interval);
        }
        for (p, process) in setting
            .plan
            .processes
            .iter()
            .enumerate()
            .filter(|(_, p)| p.measured)
        {
            report
                .intervals
                .extend(zero_check(p, &process.name, &info, &done, analysed, level));
        }
    }
    report.lines = lines(experiment, &figures, &report.intervals, level);
    without_impossible(report)
}

/// Properties that all intervals of a setting have in common.
struct SettingInfo {
    script: String,
    title: String,
    parameters: Vec<(String, String)>,
    placement: String,
}

impl SettingInfo {
    /// An interval of this setting with this mean as its typical figure.
    fn repeated(&self, typical: Estimate) -> Repeated {
        Repeated {
            script: self.script.clone(),
            title: self.title.clone(),
            parameters: self.parameters.iter().cloned().collect(),
            placement: self.placement.clone(),
            process: String::new(),
            step: None,
            includes: String::new(),
            typical,
            typical_is: "mean".to_owned(),
            largest_per_second: None,
            largest_per_minute: None,
            repetitions: Vec::new(),
        }
    }
}

fn sought(plan: &Plan) -> Vec<Sought<'_>> {
    let mut all: Vec<Sought<'_>> = Vec::new();
    for (p, process) in plan
        .processes
        .iter()
        .enumerate()
        .filter(|(_, p)| p.measured)
    {
        for (s, step) in process.steps.iter().enumerate().filter(|(_, s)| s.timed) {
            all.push(Sought {
                name: step.name.clone(),
                process: &process.name,
                step: Some(step.number),
                includes: &step.includes,
                timed: Timed::Step {
                    process: p,
                    step: s,
                },
                of: Box::new(move |analysed, cell| analysed.section(cell, p, Mark::Step(s))),
                null_of: p,
                nulls: 1,
            });
        }
    }
    for (p, process) in passes(plan) {
        all.push(Sought {
            name: match process.pass.as_str() {
                "" => "(pass)".to_owned(),
                name => name.to_owned(),
            },
            process: &process.name,
            step: None,
            includes: &process.includes,
            timed: Timed::Pass(p),
            of: Box::new(move |analysed, cell| analysed.pass(cell, p)),
            null_of: p,
            nulls: process.steps.len() - process.loop_to,
        });
    }
    for (i, between) in plan.intervals.iter().enumerate() {
        all.push(Sought {
            name: between.name.clone(),
            process: "",
            step: None,
            includes: &between.includes,
            timed: Timed::Between(i),
            of: Box::new(move |analysed, cell| analysed.between(cell, i)),
            null_of: between.from.process,
            nulls: 1,
        });
    }
    all
}

/// One repetition of an interval, without its null step.
struct One<'a> {
    interval: &'a IntervalReport,
    null: Null,
    figure: RepetitionFigure,
}

fn put_together<'a>(
    sought: &Sought<'a>,
    info: &SettingInfo,
    done: &[&Repetition],
    analysed: &'a Analysed,
    level: f64,
) -> Option<IntervalReport> {
    let ones: Vec<One<'a>> = (done.iter())
        .filter_map(|r| {
            let cell = Cell {
                setting: r.setting,
                repetition: r.repetition,
            };
            let interval = (sought.of)(analysed, cell)?;
            let null = Null::for_process(analysed, cell, sought.null_of)?.times(sought.nulls);
            let less = |e: &Option<Estimate>| e.as_ref().map(|e| e.value - null.ns);
            let figure = RepetitionFigure {
                repetition: r.repetition + 1,
                mean_ns: less(&interval.mean)?,
                median_ns: less(&interval.median)?,
                min_ns: interval.statistics.min.map(|ns| ns - null.ns),
                max_ns: interval.statistics.max.map(|ns| ns - null.ns),
                sd_ns: interval.statistics.sd,
                count: interval.count,
                seconds: r.seconds,
                cpus: r.cpus.clone(),
            };
            Some(One {
                interval,
                null,
                figure,
            })
        })
        .collect();
    let first = ones.first()?;
    let of = |value: fn(&RepetitionFigure) -> f64| {
        Numbers::new(ones.iter().map(|o| value(&o.figure)).collect())
    };
    let n: u64 = ones.iter().map(|o| o.interval.count).sum();
    let unsure = Numbers::new(ones.iter().map(|o| o.null.unsure_ns).collect());
    let unsure_ns = unsure.quantile(0.5, level)?.value;
    let mean = widened(over(&of(|f| f.mean_ns), n, level)?, unsure_ns);
    let median = widened(over(&of(|f| f.median_ns), n, level)?, unsure_ns);
    let steps = first.interval.median_steps.unwrap_or(f64::INFINITY);
    let by_median = steps >= FEWEST_STEPS;
    let nulls = Numbers::new(ones.iter().map(|o| o.null.ns).collect());
    let subtracted = over(&nulls, n, level)?;
    let null_ns = nulls.quantile(0.5, level)?.value;
    let histograms: Vec<&Histogram> = ones.iter().map(|o| &o.interval.histogram).collect();
    let histogram = pooled::histogram(&histograms, first.interval.granularity_ns, null_ns);
    let seconds: f64 = ones.iter().map(|o| o.figure.seconds).sum();
    let once_in = |each: f64| exceeded_once_in(each, seconds, &histogram, level);
    let (once_a_second, once_a_minute) = (once_in(1.0), once_in(60.0));
    let each: Vec<&IntervalReport> = ones.iter().map(|o| o.interval).collect();
    let less_null: Vec<_> = (ones.iter().map(|o| (o.interval, o.null.ns))).collect();
    let mut notes = Vec::new();
    if !by_median {
        notes.push(format!(
            "the median is {steps:.1} steps of the clock, so it is known to a step only: the mean is the figure"
        ));
    }
    if ones.len() == 1 {
        notes.push("one repetition: what repetitions differ by is not in the interval".to_owned());
    }
    let n_effective = (each.iter().filter_map(|i| i.mean.as_ref()))
        .map(|mean| mean.n_effective)
        .sum();
    let modes = pooled::modes(
        &histogram,
        &histograms,
        null_ns,
        n_effective,
        first.interval.granularity_ns,
        level,
    );
    let summed = pooled::summed(&each)?;
    Some(IntervalReport {
        name: sought.name.clone(),
        mean: Some(mean.clone()),
        median: by_median.then(|| median.clone()),
        quantiles: quantiles(&ones, level),
        statistics: SampleStatistics {
            // The repetitions differ, which is in the confidence interval.
            sd: None,
            ..pooled::statistics(&less_null)
        },
        compensation: Compensation {
            method: "null step".to_owned(),
            cost: Some(subtracted),
            ..summed.compensation
        },
        histogram,
        modes,
        share_of: first.interval.share_of.clone(),
        median_steps: first.interval.median_steps,
        notes,
        repeated: Some(Repeated {
            process: sought.process.to_owned(),
            step: sought.step,
            includes: sought.includes.to_owned(),
            typical_is: if by_median { "median" } else { "mean" }.to_owned(),
            largest_per_second: once_a_second,
            largest_per_minute: once_a_minute,
            repetitions: ones.iter().map(|o| o.figure.clone()).collect(),
            ..info.repeated(if by_median { median } else { mean })
        }),
        ..summed
    })
}

/// The cost of stepping in a repetition.
#[derive(Clone, Copy)]
struct Null {
    /// The mean of the two null steps of a pass, ns.
    ns: f64,
    /// Half the difference between them: the cost of stepping at any other place is not known
    /// better than that.
    unsure_ns: f64,
}

impl Null {
    fn for_process(analysed: &Analysed, cell: Cell, process: usize) -> Option<Self> {
        let mean = |mark| Some(analysed.section(cell, process, mark)?.mean.as_ref()?.value);
        let (before, after) = (mean(Mark::NullBefore)?, mean(Mark::NullAfter)?);
        Some(Self {
            ns: (before + after) / 2.0,
            unsure_ns: (after - before).abs() / 2.0,
        })
    }

    /// The cost of this many steps.
    fn times(self, n: usize) -> Self {
        Self {
            ns: self.ns * n as f64,
            unsure_ns: self.unsure_ns * n as f64,
        }
    }
}

/// The interval widened at both ends.
fn widened(estimate: Estimate, by: f64) -> Estimate {
    let Interval { lo, hi } = estimate.interval;
    Estimate {
        interval: Interval {
            lo: lo.map(|lo| lo - by),
            hi: hi.map(|hi| hi + by),
        },
        ..estimate
    }
}

/// Returns the median of the repetitions, in the unit of their figures, by order statistics: a single
/// disturbed repetition hardly moves it or its interval. `None` without figures.
pub fn over(values: &Numbers, samples: u64, level: f64) -> Option<Estimate> {
    let mut estimate = values.quantile(0.5, level)?;
    let mut what = "median";
    if estimate.interval.lo.is_none() || estimate.interval.hi.is_none() {
        // Fewer than six have no order statistics for 95 %.
        estimate = values.mean(level)?;
        what = "mean";
    }
    estimate.unit = "ns".to_owned();
    estimate.method = format!("{what} of {} repetitions, {}", values.n(), estimate.method);
    estimate.n = samples;
    Some(estimate)
}

fn quantiles(ones: &[One<'_>], level: f64) -> BTreeMap<String, Estimate> {
    let keys: Vec<&String> = ones
        .first()
        .map(|o| o.interval.quantiles.keys().collect())
        .unwrap_or_default();
    (keys.into_iter())
        .filter_map(|key| {
            let values: Vec<f64> = (ones.iter())
                .filter_map(|o| Some(o.interval.quantiles.get(key)?.value - o.null.ns))
                .collect();
            let n = ones.iter().map(|o| o.interval.count).sum();
            Some((key.clone(), over(&Numbers::new(values), n, level)?))
        })
        .collect()
}

/// The null step after the steps less the one before them: 0 if stepping costs the same everywhere.
fn zero_check(
    process: usize,
    name: &str,
    info: &SettingInfo,
    done: &[&Repetition],
    analysed: &Analysed,
    level: f64,
) -> Option<IntervalReport> {
    let cells = done.iter().map(|r| Cell {
        setting: r.setting,
        repetition: r.repetition,
    });
    let pairs: Vec<(&IntervalReport, f64)> = cells
        .filter_map(|cell| {
            let before = analysed.section(cell, process, Mark::NullBefore)?;
            let after = analysed.section(cell, process, Mark::NullAfter)?;
            Some((
                after,
                after.mean.as_ref()?.value - before.mean.as_ref()?.value,
            ))
        })
        .collect();
    let afters: Vec<&IntervalReport> = pairs.iter().map(|(after, _)| *after).collect();
    let values = Numbers::new(pairs.iter().map(|(_, difference)| *difference).collect());
    let summed = pooled::summed(&afters)?;
    let mean = over(&values, summed.count, level)?;
    Some(IntervalReport {
        name: "(zero check)".to_owned(),
        mean: Some(mean.clone()),
        evidence: Vec::new(),
        compensation: Compensation {
            method: "none".to_owned(),
            ..summed.compensation
        },
        notes: vec!["the null step after the steps of a pass less that before them: 0 if stepping costs the same everywhere".to_owned()],
        repeated: Some(Repeated {
            process: name.to_owned(),
            ..info.repeated(mean)
        }),
        ..summed
    })
}

/// Describes where the processes ran.
fn placement(plan: &Plan, done: &[&Repetition]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for repetition in done {
        let text = (plan.processes.iter().zip(&repetition.cpus))
            .map(|(process, cpu)| match cpu {
                Some(cpu) => format!("{} on CPU {cpu}", process.name),
                None => match &process.place {
                    Placement::Cpus(cpus) => format!("{} on CPUs {cpus:?}", process.name),
                    Placement::Cluster(n) => format!("{} in cluster {n}", process.name),
                    _ => format!("{} anywhere", process.name),
                },
            })
            .chain(repetition.policy_words())
            .collect::<Vec<_>>()
            .join(", ");
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join("; or ")
}

/// Warnings about a setting.
fn warnings(experiment: &Experiment, performed: &Performed, setting: usize) -> Vec<Warning> {
    let label = experiment.label(setting);
    let of: Vec<&Repetition> = performed
        .repetitions
        .iter()
        .filter(|r| r.setting == setting)
        .collect();
    let mut warnings: Vec<Warning> = Vec::new();
    if let Some((policy, why)) = of
        .iter()
        .find_map(|r| r.policy.as_ref().zip(r.refused.as_ref()))
    {
        warnings.push(Warning {
            code: "policy_refused".to_owned(),
            text: format!("{label}: performed with the scheduling policy {policy}, because {why}"),
        });
    }
    for repetition in &of {
        let number = repetition.repetition + 1;
        let (code, text) = match &repetition.ended {
            Ended::Done => continue,
            Ended::TimedOut(at) => (
                "timed_out",
                format!(
                    "{label}, repetition {number}: timed out: {at}; if that is no deadlock, raise `timeout`"
                ),
            ),
            Ended::Failed(why) => ("failed", format!("{label}, repetition {number}: {why}")),
            Ended::Lacking(what) => ("lacking", format!("{label}: not performed: {what}")),
        };
        warnings.push(Warning {
            code: code.to_owned(),
            text,
        });
    }
    warnings
}
