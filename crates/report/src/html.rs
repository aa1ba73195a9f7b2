//! The report as one HTML file that needs no network and opens from disk.
//!
//! Tables and sentences are written here, so that they are there without a
//! script, can be searched, copied and printed. The document itself is embedded as
//! JSON; the script inside the page draws the histograms from it, sorts, filters
//! and switches the theme. A content security policy in the page forbids it to
//! load anything.
//!
//! Event names come from the measured program and are not trusted: whatever is
//! written between tags goes through `escape::Text`, the JSON through
//! `escape::json`.

mod details;
mod escape;
mod evidence;
pub mod fleet;
mod frame;
pub mod interference;
mod plot;
pub mod reproduce;
mod summary;
pub mod survey;
mod tables;

use core::fmt::Write;

use crate::document::Report;
use crate::{remarks, terminal};
use escape::Text;

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");

/// Nothing is loaded from anywhere; styles and the script are those in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// Intervals above which the page offers to filter them by name.
const FILTER_ABOVE: usize = 12;

/// The whole page.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut page = String::with_capacity(200_000);
    write_page(&mut page, report).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, report: &Report) -> core::fmt::Result {
    head(page, report)?;
    summary::write(page, report)?;
    if !report.intervals.is_empty() {
        filter(page, report)?;
        tables::estimates(page, report)?;
        details::write(page, report)?;
        tables::taken_out(page, report)?;
        evidence::table(page, report)?;
    }
    tables::losses(page, report)?;
    tables::clock(page, report)?;
    if !report.frequencies.is_empty() {
        tables::frequencies(page, report)?;
    }
    summary::notes(page, report)?;
    summary::methods(page, report)?;
    foot(page, report)
}

fn head(page: &mut String, report: &Report) -> core::fmt::Result {
    let command = report.trace.command.join(" ");
    let title = match command.is_empty() {
        true => "trace".to_owned(),
        false => command,
    };
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>Undertick: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<div class=\"title\"><h1>Undertick report</h1>\
         <button type=\"button\" id=\"theme\" hidden>Theme: automatic</button></div>\n\
         <p class=\"recorded\">{}</p>\n",
        Text(&title),
        Text(&remarks::recorded(&report.trace)),
    )?;
    let has_intervals = !report.intervals.is_empty();
    let has_evidence = (report.intervals.iter()).any(|i| !remarks::fell_into(i).is_empty());
    let sections = [
        ("summary", "Summary", true),
        ("intervals", "Intervals", has_intervals),
        ("distributions", "Distributions", has_intervals),
        ("taken-out", "Taken out", has_intervals),
        ("evidence", "Evidence", has_evidence),
        ("losses", "Losses", true),
        ("clock", "Clock", true),
        ("frequencies", "Frequencies", !report.frequencies.is_empty()),
        ("methods", "Methods", true),
    ];
    page.push_str("<nav aria-label=\"Sections\">");
    for (id, name, _) in sections.iter().filter(|section| section.2) {
        write!(page, "<a href=\"#{id}\">{name}</a>")?;
    }
    page.push_str("</nav>\n</header>\n<main>\n");
    Ok(())
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

fn foot(page: &mut String, report: &Report) -> core::fmt::Result {
    let document = serde_json::to_string(report).unwrap_or_else(|_| "null".to_owned());
    let plain = terminal::Options {
        histograms: report.intervals.len(),
        ..terminal::Options::default()
    };
    write!(
        page,
        "<noscript><p>The distributions are drawn by a script, which this browser does not \
         run. As text:</p>\n<pre>{}</pre></noscript>\n</main>\n\
         <footer><p>Undertick report, document version {}. The whole document is in this file, \
         as JSON, in the element <code>report</code>.</p></footer>\n\
         <script type=\"application/json\" id=\"report\">{}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escape::Lines(&terminal::render(report, plain)),
        report.schema_version,
        escape::json(&document),
    )
}
