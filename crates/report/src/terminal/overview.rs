//! The first screen: where the time went, why it varies, and how sure that is.

mod tree;

use undertick_document::{Report, figures, without_impossible};

use crate::findings;
use crate::remarks;
use crate::text::{clean, columns, shorten, wrap};

/// Most rows of its table.
const MOST_ROWS: usize = 14;

/// Columns for the program; one with longer arguments goes without them.
const PROGRAM_COLUMNS: usize = 22;

/// Which spans an overview lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spans {
    /// By path: each below the one around it.
    Tree,
    /// By name.
    Flat,
}

/// The first screen of a report, within `columns`. Ends with a line break.
#[must_use]
pub fn overview(report: &Report, spans: Spans, columns: usize) -> String {
    let report = &without_impossible(report.clone());
    let columns = columns.max(super::FEWEST_COLUMNS);
    let mut lines = vec![wrap(&heading(report), columns, 2), String::new()];
    let table = tree::table(report, spans, MOST_ROWS, columns);
    if table.is_empty() {
        let nothing = "Nothing in the trace has a start and an end.";
        lines.push(wrap(nothing, columns, 2));
    }
    lines.extend(table);
    lines.extend(others(report, spans).map(|others| wrap(&others, columns, 2)));
    let findings = findings::findings(report);
    lines.extend((!findings.is_empty()).then(String::new));
    lines.extend(findings.iter().map(|finding| wrap(finding, columns, 2)));
    lines.push(wrap(&sureness(report), columns, 2));
    lines.push(wrap(&more(report), columns, 2));
    let mut screen = lines.join("\n").replace('\u{a0}', " ");
    screen.push('\n');
    screen
}

/// What was recorded, in a sentence.
fn heading(report: &Report) -> String {
    let trace = &report.trace;
    let program = match &trace.command[..] {
        [] => "a trace".to_owned(),
        [program, arguments @ ..] => {
            let name = program.rsplit('/').next().unwrap_or(program);
            let whole = [&[name.to_owned()], arguments].concat().join(" ");
            match columns(&whole) {
                ..=PROGRAM_COLUMNS => whole,
                _ => name.to_owned(),
            }
        }
    };
    let mut parts = Vec::new();
    if let Some(runs) = report.runs {
        parts.push(remarks::number_of(runs, "run"));
    }
    if let Some(ns) = trace.events_span_ns {
        parts.push(figures::duration(ns));
    }
    let threads = remarks::number_of(trace.threads, "thread");
    parts.push(match trace.processes {
        0 | 1 => threads,
        n => format!("{threads} in {}", remarks::number_of(n, "process")),
    });
    if let Some(share) = share_in_spans(report) {
        parts.push(format!("{} in spans", figures::per_cent(share)));
    }
    parts.push(format!("{} events", figures::three_digits(trace.events)));
    parts.push(match trace.lost {
        0 => "none lost".to_owned(),
        lost => format!("{} LOST", figures::short_count(lost)),
    });
    parts.push(format!(
        "clock {} {}",
        clean(&trace.clock.name),
        figures::duration(trace.clock.granularity_ns)
    ));
    format!(
        "{}: {}",
        shorten(&clean(&program), PROGRAM_COLUMNS),
        parts.join(", ")
    )
}

/// The time of the outermost spans, of that of all threads; `None` where either is unknown.
fn share_in_spans(report: &Report) -> Option<f64> {
    let threads = report.trace.events_span_ns? * report.trace.threads as f64;
    let spans = findings::whole_ns(report)?;
    (spans <= threads).then(|| spans / threads)
}

/// Intervals that have no place in a tree, and how often events came.
fn others(report: &Report, spans: Spans) -> Option<String> {
    let has_tree = spans == Spans::Tree && !report.paths.is_empty();
    let apart = (report.intervals.iter())
        .filter(|interval| has_tree && !interval.kind.is_span())
        .count();
    let mut parts: Vec<String> = (report.frequencies.iter())
        .filter(|events| {
            !report
                .intervals
                .iter()
                .any(|interval| interval.name == events.name)
        })
        .filter_map(|events| {
            let rate = figures::figure(events.per_second.as_ref()?).value_and_unit();
            Some(format!("{} {rate}", shorten(&clean(&events.name), 40)))
        })
        .take(3)
        .collect();
    if apart > 0 {
        let others = remarks::number_of(apart as u64, "interval");
        parts.push(format!("{others} between single events: --flat"));
    }
    (!parts.is_empty()).then(|| format!("events: {}", parts.join(", ")))
}

/// Which question the figures answer.
fn sureness(report: &Report) -> String {
    let within = (report.paths.iter())
        .filter(|path| path.parent.is_none())
        .filter_map(|path| path.total.as_ref())
        .fold((0.0, 0.0), |(sum, half), total| {
            let own = total.interval.half_width().unwrap_or(0.0);
            (sum + total.value, half + own)
        });
    let exact = match within {
        (sum, half) if sum > 0.0 && half > 0.01 * sum => {
            format!("within {}", figures::per_cent(half / sum))
        }
        (sum, _) if sum > 0.0 => "within 1 %".to_owned(),
        _ => "as its clock showed it".to_owned(),
    };
    let another = match report.runs {
        Some(runs) if runs > 1 => "what a repetition gives, with intervals: --full".to_owned(),
        _ => "another run may differ by more: record --runs 5 shows by how much".to_owned(),
    };
    format!("Of this recording, {exact}; {another}.")
}

/// Where more is.
fn more(report: &Report) -> String {
    let hidden = match report.warnings.len() {
        0 => String::new(),
        1 => " (1 warning)".to_owned(),
        n => format!(" ({n} warnings)"),
    };
    format!("More: --full{hidden}, --flat, --html FILE, --json, --spans")
}
