//! Sentences that the terminal and the page share: what was recorded, how it was processed, and the
//! caveats.

use std::collections::BTreeSet;

use undertick_document::figures::{self, figure};
use undertick_document::{
    ClockSummary, IntervalReport, Mode, Reads, Report, Sampled, Scope, TraceSummary,
};

use crate::text::clean;

/// A count with its noun: `1 thread`, `2 threads`; `processes` has its own plural.
pub(crate) fn number_of(n: u64, what: &str) -> String {
    let plural = match (n, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {what}{plural}", figures::count(n))
}

/// Ticks of a clock's step as text; the step need not be a whole number.
pub(crate) fn ticks(step: f64) -> String {
    let whole = step.round();
    if (step - whole).abs() < 0.005 {
        return number_of(whole as u64, "tick");
    }
    format!("{step:.2} ticks")
}

/// Parts per billion as text, in a suitable unit.
pub(crate) fn parts(ppb: f64) -> String {
    if ppb.is_finite() && ppb < 1e3 {
        format!("{ppb:.0} ppb")
    } else {
        format!("{:.1} ppm", ppb / 1e3)
    }
}

/// The source of a clock's rate, to follow the word "rate".
pub(crate) fn rate_source(source: &str) -> String {
    match source {
        "measured" => "measured against CLOCK_MONOTONIC_RAW".to_owned(),
        "definition" => "by definition".to_owned(),
        other => format!("from {}", clean(other)),
    }
}

/// The question that the confidence intervals answer, to follow "95 % interval".
pub(crate) fn scope(report: &Report) -> String {
    match (report.settings.scope, report.runs) {
        (Scope::ThisRun, _) => {
            "of this run, from what its own blocks differ by: another run may lie outside, which \
             record --runs 5 shows"
                .to_owned()
        }
        (Scope::Repetition, Some(runs)) => {
            let runs = number_of(runs, "run");
            match report.runs_within_ns {
                Some(within) => format!(
                    "of a repetition at about this time, from what {runs} within {} differ by: hours \
                     or days may differ by more",
                    figures::duration(within as f64)
                ),
                None => format!("of a repetition, from what {runs} differ by"),
            }
        }
        (Scope::Repetition, None) => "of a repetition, from what repetitions differ by".to_owned(),
    }
}

/// The recorded command, its start, its length and the machine.
pub(crate) fn recorded(report: &Report) -> String {
    let trace = &report.trace;
    let what = match report.runs {
        None => "Trace".to_owned(),
        Some(runs) => number_of(runs, "run"),
    };
    let command = match trace.command.is_empty() {
        true => what,
        false => format!("{what} of {}", clean(&trace.command.join(" "))),
    };
    let length = trace
        .duration_ns
        .map_or("not ended".to_owned(), |ns| figures::duration(ns as f64));
    let host = &trace.host;
    let date = match trace.started_unix_ns {
        0 => "date not known".to_owned(),
        ns => unix_date(ns),
    };
    // The trace was recorded by another tool.
    if host.cpus == 0 {
        return format!("{command}, {date}, {length}, on a machine that is not known");
    }
    format!(
        "{command}, {date}, {length}, on {} ({}, {}, {}, Linux {})",
        clean(&host.name),
        number_of(u64::from(host.cpus), "CPU"),
        clean(&host.cpu_model),
        clean(&host.arch),
        clean(&host.kernel),
    )
}

/// Cost of one reading of the clock; 0 where another tool read the clock.
pub(crate) fn read_cost(clock: &ClockSummary) -> String {
    match clock.read_cost_ns_median {
        0.0 => "not known".to_owned(),
        ns => figures::duration(ns),
    }
}

/// Level, table, culling, compensation.
pub(crate) fn treatment(report: &Report) -> String {
    let settings = &report.settings;
    let table = settings
        .table
        .as_deref()
        .map_or("no table".to_owned(), |t| format!("table {}", clean(t)));
    format!(
        "Figures: {} intervals, {table}, cull {}{}, compensate {}",
        figures::per_cent(settings.confidence),
        clean(&settings.cull),
        decided_by(report),
        clean(&settings.compensate),
    )
}

/// How a sample is known to have been disturbed, where the setting does not already say so.
fn decided_by(report: &Report) -> String {
    if report.settings.cull != "auto" {
        return String::new();
    }
    // Only a trace with kernel events can tell what they leave unexplained.
    let by_kernel = report.intervals.iter().any(|i| i.unexplained.is_some());
    match by_kernel {
        true => " (kernel events)".to_owned(),
        false => format!(" ({})", descheduled_means(&report.trace.descheduled)),
    }
}

/// Meaning of the descheduled flag of a record in this trace.
fn descheduled_means(meaning: &str) -> String {
    match meaning {
        "any_deschedule" => "flag: thread left the CPU, also to block".to_owned(),
        "preemption_only" => "flag: thread was pushed off the CPU".to_owned(),
        "unavailable" => "no descheduled flag on this machine".to_owned(),
        other => clean(other),
    }
}

/// By how much measuring slowed the program.
pub(crate) fn perturbation(trace: &TraceSummary) -> String {
    trace.perturbation.as_ref().map_or(
        "Perturbation: not measured in this recording".to_owned(),
        |estimate| {
            let figure = figure(estimate);
            format!(
                "Perturbation: recording slowed the program by {} {}, {}, n = {}",
                figure.value_and_unit(),
                figure.interval(),
                clean(&estimate.method),
                figures::count(estimate.n)
            )
        },
    )
}

/// The methods behind the figures of a report, each once: mean, then quantiles.
pub(crate) fn methods(report: &Report) -> (String, String) {
    let named = |methods: BTreeSet<&str>| {
        let names: Vec<String> = methods.into_iter().map(clean).collect();
        match names.is_empty() {
            true => "no samples".to_owned(),
            false => names.join("; "),
        }
    };
    let intervals = &report.intervals;
    let means = intervals.iter().filter_map(|i| i.mean.as_ref());
    let quantiles = intervals
        .iter()
        .flat_map(|i| i.median.iter().chain(i.quantiles.values()));
    (
        named(means.map(|e| e.method.as_str()).collect()),
        named(quantiles.map(|e| e.method.as_str()).collect()),
    )
}

/// Why samples of an interval were dropped, with a count for each cause where there is more than
/// one; and the time that was taken off other samples.
pub(crate) fn causes(interval: &IntervalReport) -> Vec<String> {
    let by = interval.culled.by.iter().filter(|(_, n)| **n > 0);
    let is_single = by.clone().count() == 1;
    by.map(|(cause, n)| match is_single {
        true => clean(cause),
        false => format!("{} {}", clean(cause), figures::short_count(*n)),
    })
    .chain(time_off(interval))
    .collect()
}

/// The time of disturbances that was taken off samples; `None` if no remaining sample had time
/// taken off.
fn time_off(interval: &IntervalReport) -> Option<String> {
    let off = interval.taken_off;
    (off.count > 0).then(|| {
        format!(
            "{} off {}",
            figures::duration(off.time_ns),
            figures::short_count(off.count)
        )
    })
}

/// Whether the figures exclude samples or time.
pub(crate) fn is_cleaned(interval: &IntervalReport) -> bool {
    interval.culled.count > 0 || interval.taken_off.count > 0
}

/// How the time of an interval's samples divides: total, on CPU, off CPU, taken off.
pub(crate) fn times(interval: &IntervalReport) -> Option<[f64; 4]> {
    let (on, off) = interval.on_cpu_ns.zip(interval.off_cpu_ns)?;
    Some([interval.total_ns?, on, off, interval.taken_off.time_ns])
}

/// Explanation of the parts that [`times`] returns.
pub(crate) const TIMES_LEGEND: &str = "Of all samples. Off CPU: the thread waited, slept or \
     yielded. Taken off: others or interrupts had its CPU, which is in no figure.";

/// A cause recorded in an interval's samples, or that no cause is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fell {
    /// The cause in the report's words, made harmless.
    pub what: String,
    /// Number of samples.
    pub count: u64,
    /// Their share, 0..=1.
    pub share: f64,
    /// The confidence interval of the share, where it has one.
    pub share_within: Option<(f64, f64)>,
    /// Time that it took from the samples, ns, where it took any.
    pub time_ns: Option<f64>,
    /// Whether the time was taken off or the samples were dropped for it.
    pub culled: bool,
}

impl Fell {
    /// The share and its confidence interval as text.
    pub(crate) fn shares(&self) -> String {
        let share = figures::per_cent(self.share);
        match self.share_within {
            Some((lo, hi)) => {
                let lo = figures::per_cent(lo);
                format!("{share} [{lo}, {}]", figures::per_cent(hi))
            }
            None => share,
        }
    }

    /// How the samples were treated.
    pub(crate) fn treatment(&self) -> &'static str {
        match self.culled {
            true => "taken off",
            false => "kept",
        }
    }
}

/// The causes recorded in the samples of an interval, and the slow samples without evidence.
pub(crate) fn fell_into(interval: &IntervalReport) -> Vec<Fell> {
    let by_cause = interval.evidence.iter().map(|e| Fell {
        what: clean(&e.cause),
        count: e.count,
        share: e.share,
        share_within: None,
        time_ns: Some(e.time_ns).filter(|ns| *ns != 0.0),
        culled: e.culled,
    });
    let unexplained = interval.unexplained.iter().filter(|u| u.count > 0);
    by_cause
        .chain(unexplained.map(|u| Fell {
            what: format!(
                "over {} times the minimum without a known disturbance; {} without any evidence",
                u.ratio,
                figures::short_count(u.without_evidence)
            ),
            count: u.count,
            share: u.share.value,
            share_within: u.share.interval.lo.zip(u.share.interval.hi),
            time_ns: None,
            culled: false,
        }))
        .collect()
}

/// Number of samples, and of executions if not every execution was recorded.
pub(crate) fn count(interval: &IntervalReport) -> String {
    let n = figures::short_count(interval.count);
    match &interval.sampled {
        Some(sampled) => format!("{n}\nof {}", figures::short_count(sampled.executions)),
        None => n,
    }
}

/// How an interval was sampled, in words.
pub(crate) fn sampling(sampled: &Sampled) -> String {
    let rate = match sampled.rate {
        Some(rate) => format!("1 in {rate}"),
        None => "a rate that was changed".to_owned(),
    };
    format!(
        "{} of {} executions recorded, drawn at random ({rate})",
        figures::count(sampled.recorded),
        figures::count(sampled.executions)
    )
}

/// By how much the points inside an interval slow it, in words.
pub(crate) fn slowed(interval: &IntervalReport) -> Option<String> {
    let slowed = interval.slowed.as_ref()?;
    let words = |of: &undertick_units::Estimate| {
        let figure = figure(of);
        format!("{} {}", figure.value_and_unit(), figure.interval())
    };
    let each = (slowed.per_point.as_ref())
        .map_or(String::new(), |each| format!(", {} a point", words(each)));
    let what = match slowed.what.as_str() {
        "points" => format!("{:.1} points inside{each}", slowed.points),
        other => format!("{} that are recorded", clean(other)),
    };
    // A reading that waits for nothing overlaps with the adjacent points.
    let plain = match interval.reads {
        Reads::Ordered | Reads::Plain => "",
        Reads::Unordered | Reads::Mixed => {
            "; its edges are not ordered, so some nanoseconds of points may show outside it: \
              use begin and end"
        }
    };
    let subtracted = match interval.compensation.method.as_str() {
        "in place" => "subtracted",
        _ => "nothing subtracted",
    };
    Some(format!(
        "{} ({}) by {what}; {} samples with them on, {} with them off, \
         {} pairs of halves; {subtracted}{plain}",
        words(&slowed.by),
        words(&slowed.share),
        figures::count(slowed.samples[0]),
        figures::count(slowed.samples[1]),
        figures::count(slowed.by.n),
    ))
}

/// The modes of an interval where there is more than one, in words.
pub(crate) fn modes(interval: &IntervalReport) -> Option<String> {
    let modes = &interval.modes;
    if modes.len() < 2 {
        return None;
    }
    let each: Vec<String> = modes
        .iter()
        .map(|mode| {
            let place = (mode.place.as_ref()).map_or_else(
                || figures::duration(mode.at),
                |place| figure(place).value_and_unit(),
            );
            let share = (mode.share_interval.as_ref()).map_or_else(
                || figures::per_cent(mode.share),
                |share| {
                    let share = figure(share);
                    format!("{} {}", share.value_and_unit(), share.interval())
                },
            );
            format!("{place} ({share})")
        })
        .collect();
    let end = match interval
        .mean
        .as_ref()
        .map(|mean| is_between(mean.value, modes))
    {
        Some(true) => ": the mean lies between them",
        _ => "",
    };
    Some(format!("{} modes: {}{end}", modes.len(), each.join(", ")))
}

/// Whether a mean describes none of the modes: it is further from the nearest mode than a tenth of
/// the way to the next.
fn is_between(mean: f64, modes: &[Mode]) -> bool {
    modes.windows(2).any(|pair| {
        let margin = (pair[1].at - pair[0].at) / 10.0;
        pair[0].at + margin < mean && mean < pair[1].at - margin
    })
}

/// A remark and the intervals that it applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Names of the intervals, harmless, in the document's order.
    pub names: Vec<String>,
    /// The text of the remark.
    pub text: String,
}

impl Note {
    /// The first names, and the number of further ones.
    pub(crate) fn about(&self, most: usize) -> String {
        let shown = self.names[..self.names.len().min(most)].join(", ");
        match self.names.len().saturating_sub(most) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }
}

/// The notes on all intervals and their figures; those with the same text are joined.
pub(crate) fn notes(report: &Report) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for interval in &report.intervals {
        let quantiles = interval
            .quantiles
            .iter()
            .map(|(q, e)| (quantile_name(q), Some(e)));
        let figures = [
            ("mean".to_owned(), interval.mean.as_ref()),
            ("median".to_owned(), interval.median.as_ref()),
        ];
        let by = interval.slowed.as_ref().map(|slowed| &slowed.by);
        let of_figures = figures
            .into_iter()
            .chain(quantiles)
            .chain([("slowed".to_owned(), by)])
            .flat_map(|(what, estimate)| {
                let notes = estimate.map_or(&[][..], |e| &e.notes[..]);
                notes
                    .iter()
                    .map(move |text| format!("{what}: {}", clean(text)))
            });
        let name = clean(&interval.name);
        for text in interval.notes.iter().map(|n| clean(n)).chain(of_figures) {
            match notes.iter_mut().find(|note| note.text == text) {
                Some(note) if note.names.last() != Some(&name) => note.names.push(name.clone()),
                Some(_) => {}
                None => notes.push(Note {
                    names: vec![name.clone()],
                    text,
                }),
            }
        }
    }
    notes
}

/// The short name of a quantile: `p99` for `0.99`, `p99.9` for `0.999`; the key itself if it is no
/// number.
pub(crate) fn quantile_name(key: &str) -> String {
    match key.parse::<f64>() {
        Ok(q) if q.is_finite() => format!("p{}", (q * 1e6).round() / 1e4),
        _ => clean(key),
    }
}

/// The date of a Unix time in nanoseconds, such as `2026-05-01 12:00:03 UTC`.
pub(crate) fn unix_date(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

/// Gregorian date of a day counted from 1970-01-01. Years are counted from March, so that the leap
/// day is the last of its year; 400 such years have 146 097 days.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let from_march_0 = days + 719_468;
    let era = from_march_0.div_euclid(146_097);
    let day_of_era = from_march_0.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests;
