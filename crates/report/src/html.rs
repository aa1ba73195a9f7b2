//! The report as one HTML file that needs no network and opens from disk.
//!
//! Tables and sentences are written here, so that they need no script and can be searched, copied
//! and printed. The document itself is embedded as JSON, with the timeline beside it. The script
//! inside the page (`web/`) draws from them, sorts, filters and switches the theme. A content
//! security policy in the page forbids it to load anything.
//!
//! Event names come from the measured program and are not trusted. Whatever is written between tags
//! goes through `escape::Text`, the JSON through `escape::json`.

pub mod compare;
mod details;
pub mod fleet;
mod frame;
mod functions;
pub mod history;
pub mod interference;
mod interposed;
mod plot;
pub mod reproduce;
mod slowest;
mod states;
mod summary;
pub mod survey;
mod tables;
mod tasks;
mod timeline;
mod tree;

use core::fmt::Write;
use undertick_document::explanation::Explanation;
use undertick_document::timeline::Timeline;
use undertick_document::{Report, without_impossible};

use crate::escape::{self, Text};
use crate::{remarks, terminal};

const STYLE: &str = include_str!("../assets/page.css");
/// The page's script, bundled from `web/` by `build.rs`; empty if that had no Node.js.
const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js"));

/// Nothing is loaded from elsewhere; only the styles and the script in the page apply.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// Above this number of intervals the page offers a filter by name.
const FILTER_ABOVE: usize = 12;

/// What a page may show in addition to the report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// One second of the trace.
    pub timeline: Option<&'a Timeline>,
    /// Why the slowest calls were slow.
    pub explanation: Option<&'a Explanation>,
    /// The trace's name, as commands accept it.
    pub trace: Option<&'a str>,
}

/// The whole page of a report, without additions.
#[must_use]
pub fn render(report: &Report) -> String {
    render_beside(report, &Beside::default())
}

/// The whole page.
#[must_use]
pub fn render_beside(report: &Report, beside: &Beside<'_>) -> String {
    let report = without_impossible(report.clone());
    let mut page = String::with_capacity(400_000);
    write_page(&mut page, &report, beside).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, report: &Report, beside: &Beside<'_>) -> core::fmt::Result {
    head(page, report, beside)?;
    summary::write(page, report)?;
    if !report.paths.is_empty() {
        tree::write(page, report)?;
    }
    if let Some(found) = &report.tasks {
        tasks::write(page, found)?;
    }
    if let Some(stacks) = &report.stacks {
        functions::write(page, report, stacks)?;
    }
    if let Some(locks) = &report.locks {
        interposed::locks(page, report, locks)?;
    }
    if let Some(allocations) = &report.allocations {
        interposed::allocations(page, report, allocations)?;
    }
    if let Some(explanation) = slowest(beside) {
        slowest::write(page, explanation)?;
    }
    if !report.intervals.is_empty() {
        filter(page, report)?;
        tables::estimates(page, report)?;
        details::write(page, report)?;
        tables::times(page, report)?;
        tables::dropped_and_subtracted(page, report)?;
        tables::evidence(page, report)?;
    }
    if let Some(timeline) = beside.timeline {
        timeline::write(page, timeline)?;
    }
    if let Some(trace) = beside.trace {
        timeline::elsewhere(page, trace)?;
    }
    tables::perturbation(page, report)?;
    tables::losses(page, report)?;
    tables::clock(page, report)?;
    if !report.frequencies.is_empty() {
        tables::frequencies(page, report)?;
    }
    summary::notes(page, report)?;
    summary::methods(page, report)?;
    foot(page, report, beside)
}

fn head(page: &mut String, report: &Report, beside: &Beside<'_>) -> core::fmt::Result {
    let command = report.trace.command.join(" ");
    let title = match command.is_empty() {
        true => "trace".to_owned(),
        false => command,
    };
    frame::begin(page, &title, &[])?;
    write!(
        page,
        "<div class=\"title\"><h1>Undertick report</h1>\
         <span><button type=\"button\" id=\"help\" hidden>Keys</button> \
         <button type=\"button\" id=\"theme\" hidden>Theme: automatic</button></span></div>\n\
         <p class=\"recorded\">{}</p>\n",
        Text(&remarks::recorded(report)),
    )?;
    let has_intervals = !report.intervals.is_empty();
    let has_times = (report.intervals.iter()).any(|i| remarks::times(i).is_some());
    let has_evidence = (report.intervals.iter()).any(|i| !remarks::fell_into(i).is_empty());
    let sections = [
        ("summary", "Summary", true),
        ("tree", "Call tree", !report.paths.is_empty()),
        ("functions", "Functions", report.stacks.is_some()),
        ("locks", "Locks", report.locks.is_some()),
        ("allocations", "Allocations", report.allocations.is_some()),
        ("slowest", "Slowest calls", slowest(beside).is_some()),
        ("intervals", "Intervals", has_intervals),
        ("distributions", "Distributions", has_intervals),
        ("times", "Time", has_times),
        ("taken-out", "Before and after", has_intervals),
        ("evidence", "Evidence", has_evidence),
        ("timeline-section", "Timeline", beside.timeline.is_some()),
        ("elsewhere", "Whole trace", beside.trace.is_some()),
        ("perturbation", "Perturbation", true),
        ("losses", "Losses", true),
        ("clock", "Clock", true),
        ("frequencies", "Frequencies", !report.frequencies.is_empty()),
        ("methods", "Methods", true),
    ];
    frame::nav(page, &sections)
}

/// What explains the slowest calls, if there are some.
fn slowest<'a>(beside: &Beside<'a>) -> Option<&'a Explanation> {
    beside.explanation.filter(|found| !found.paths.is_empty())
}

fn filter(page: &mut String, report: &Report) -> core::fmt::Result {
    if report.intervals.len() > FILTER_ABOVE {
        writeln!(
            page,
            "<p class=\"filter\" id=\"filter\" hidden><label>Show intervals whose name contains \
             <input type=\"search\" id=\"filter-text\" autocomplete=\"off\"></label> \
             <output id=\"filter-count\">{}</output></p>",
            report.intervals.len()
        )?;
    }
    Ok(())
}

/// Keys that the script handles, and what each does.
const KEYS: [(&str, &str); 9] = [
    ("?", "this list"),
    ("t", "theme: automatic, dark, light"),
    ("/", "filter the intervals by name; Escape ends it"),
    (
        "Tab, Enter",
        "from one thing to the next; a heading of a table sorts",
    ),
    (
        "Up, Down",
        "in a table: from row to row; Enter goes to the distribution",
    ),
    (
        "Left, Right",
        "in a distribution: from bin to bin; with Shift they select",
    ),
    (
        "Home, End",
        "in a distribution: first and last bin; Escape ends a selection",
    ),
    (
        "arrows, Enter",
        "in a tree of bars: from bar to bar; Enter zooms, Escape shows all",
    ),
    (
        "+ - 0 Enter",
        "in the timeline: nearer, further, all, slowest span; Left and Right move",
    ),
];

fn keys(page: &mut String) -> core::fmt::Result {
    page.push_str("<dialog id=\"keys\" aria-label=\"Keys\"><h2>Keys</h2><dl class=\"facts\">\n");
    for (key, does) in KEYS {
        writeln!(page, "<dt>{}</dt><dd>{}</dd>", Text(key), Text(does))?;
    }
    page.push_str("</dl><button type=\"button\">Close</button></dialog>\n");
    Ok(())
}

/// Maximum number of distributions written as text: each adds a kilobyte to the page.
const MOST_AS_TEXT: usize = 40;

/// The distributions as text, without drawings.
fn as_text(page: &mut String, report: &Report) -> core::fmt::Result {
    let shown = report.intervals.len().min(MOST_AS_TEXT);
    let plain = terminal::Options {
        histograms: shown,
        ..terminal::Options::default()
    };
    let (before, why, after) = match SCRIPT.is_empty() {
        true => (
            "<section>",
            "This page was made by a build without Node.js, so it has no script, and no \
             drawings. As text:",
            "</section>",
        ),
        false => (
            "<noscript>",
            "The distributions are drawn by a script, which this browser does not run. As \
             text:",
            "</noscript>",
        ),
    };
    let of = match report.intervals.len() {
        all if all > shown => format!(" (the first {shown} of {all})"),
        _ => String::new(),
    };
    writeln!(
        page,
        "{before}<p>{why}{of}</p>\n<pre>{}</pre>{after}",
        escape::Lines(&terminal::render(report, plain))
    )
}

fn foot(page: &mut String, report: &Report, beside: &Beside<'_>) -> core::fmt::Result {
    let document = serde_json::to_string(report).unwrap_or_else(|_| "null".to_owned());
    as_text(page, report)?;
    keys(page)?;
    let title = ("Undertick report", "report");
    frame::document(page, title, report.schema_version, &document)?;
    if let Some(timeline) = beside.timeline {
        let json = serde_json::to_string(timeline).unwrap_or_else(|_| "null".to_owned());
        writeln!(
            page,
            "<script type=\"application/json\" id=\"timeline\">{}</script>",
            escape::json(&json)
        )?;
    }
    write!(page, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
}
