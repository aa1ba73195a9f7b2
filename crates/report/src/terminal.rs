//! The report on a terminal: plain text within a given number of columns.
//!
//! The order follows a reader's questions: what was recorded, how long things took, what was
//! dropped from the figures, how often events occurred, what the distributions look like, and what
//! the caveats are. Warnings come last because the end is what stays on the screen.

mod histogram;
mod overview;
mod tables;

use undertick_document::{ClockSummary, Report, TraceSummary, figures, without_impossible};

pub use overview::{Screen, Spans, overview};

use crate::findings;
use crate::remarks;
use crate::text::{clean, wrap};

/// Options of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of columns; 100 by default. The output needs at least 60, and 60 replace anything
    /// less.
    pub columns: usize,
    /// Number of histograms to print, for the first intervals; 6 by default.
    pub histograms: usize,
    /// Number of rows of the frequency table; 20 by default.
    pub frequencies: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            columns: 100,
            histograms: 6,
            frequencies: 20,
        }
    }
}

/// Minimum number of columns that the tables fit in.
const FEWEST_COLUMNS: usize = 60;

/// The whole report as text. Ends with a line break.
#[must_use]
pub fn render(report: &Report, options: Options) -> String {
    let report = &without_impossible(report.clone());
    let columns = options.columns.max(FEWEST_COLUMNS);
    let mut parts = vec![header(report, columns)];
    if report.intervals.is_empty() {
        parts.push("No intervals: nothing in the trace has a start and an end.".to_owned());
    } else {
        parts.push(tables::estimates(report, columns));
        parts.extend(tables::times(report, columns));
        parts.push(tables::dropped_and_subtracted(report, columns));
        parts.extend(tables::evidence(report, columns));
    }
    parts.extend(states(report, columns));
    parts.extend(slowed(report, columns));
    parts.extend(tables::shares(report, columns));
    if !report.frequencies.is_empty() {
        parts.push(tables::frequencies(report, columns, options.frequencies));
    }
    let drawn = report.intervals.iter().take(options.histograms);
    parts.extend(drawn.filter_map(|interval| histogram::render(interval, columns)));
    let left_out = report.intervals.len().saturating_sub(options.histograms);
    if left_out > 0 && options.histograms > 0 {
        parts.push(format!(
            "Histograms of {left_out} more intervals: --html FILE."
        ));
    }
    parts.extend(notes(report, columns));
    parts.extend(warnings(report, columns));
    let mut page = parts.join("\n\n").replace('\u{a0}', " ");
    page.push('\n');
    page
}

/// The histogram of one interval, with bars; `None` without samples.
#[must_use]
pub fn histogram(interval: &undertick_document::IntervalReport, columns: usize) -> Option<String> {
    histogram::render(interval, columns.max(FEWEST_COLUMNS)).map(|text| text.replace('\u{a0}', " "))
}

fn header(report: &Report, columns: usize) -> String {
    let trace = &report.trace;
    let lines = [
        remarks::recorded(report),
        completeness(trace),
        clock(&trace.clock),
        remarks::treatment(report),
        remarks::perturbation(trace),
    ];
    lines
        .iter()
        .map(|line| wrap(line, columns, 2))
        .collect::<Vec<_>>()
        .join("\n")
}

fn completeness(trace: &TraceSummary) -> String {
    let by: Vec<String> = trace
        .lost_by
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(cause, n)| format!("{} {}", figures::count(*n), clean(cause)))
        .collect();
    let lost = match (trace.lost, by.is_empty()) {
        (0, _) => "none lost".to_owned(),
        (n, true) => format!("{} lost", figures::count(n)),
        (n, false) => format!("{} lost ({})", figures::count(n), by.join(", ")),
    };
    format!(
        "Events: {} from {} in {}; {lost}",
        figures::count(trace.events),
        remarks::number_of(trace.threads, "thread"),
        remarks::number_of(trace.processes, "process"),
    )
}

fn clock(clock: &ClockSummary) -> String {
    format!(
        "Clock: {}, moves {} at a time ({}), one reading {} (median); rate {}, within {}",
        clean(&clock.name),
        remarks::ticks(clock.granularity_ticks),
        figures::duration(clock.granularity_ns),
        remarks::read_cost(clock),
        remarks::rate_source(&clock.rate_source),
        remarks::parts(clock.rate_error_ppb),
    )
}

/// What tells the short calls of paths from the long ones.
fn states(report: &Report, columns: usize) -> Option<String> {
    let lines = findings::states(report).into_iter();
    let lines: Vec<String> = lines.map(|(_, _, line)| wrap(&line, columns, 2)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// By how much the points inside intervals slow the enclosing intervals.
fn slowed(report: &Report, columns: usize) -> Option<String> {
    let lines: Vec<String> = (report.intervals.iter())
        .filter_map(|interval| {
            let slowed = remarks::slowed(interval)?;
            let line = format!("{}: slowed by {slowed}", clean(&interval.name));
            Some(wrap(&line, columns, 2))
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn notes(report: &Report, columns: usize) -> Option<String> {
    let notes = remarks::notes(report);
    if notes.is_empty() {
        return None;
    }
    let lines = notes
        .iter()
        .map(|note| wrap(&format!("* {}: {}", note.about(4), note.text), columns, 2));
    Some(format!("Notes\n{}", lines.collect::<Vec<_>>().join("\n")))
}

fn warnings(report: &Report, columns: usize) -> Option<String> {
    let lines: Vec<String> = report
        .warnings
        .iter()
        .map(|w| {
            let line = format!("! {} ({})", clean(&w.text), clean(&w.code));
            wrap(&line, columns, 2)
        })
        .collect();
    (!lines.is_empty()).then(|| format!("Warnings\n{}", lines.join("\n")))
}
