//! The call tree of the page, and what stands out.

use core::fmt::{Result, Write};

use undertick_document::{PathReport, Report, figures};

use super::states;
use crate::escape::Text;
use crate::findings::{self, at_most, path_label};
use crate::table::html::{plain, with_micro};
use crate::table::{Cell, Columns};

/// Most rows; the document in the page has all of them.
pub(super) const MOST_ROWS: usize = 400;
/// Deepest indentation.
const DEEPEST: usize = 24;

/// Where the script draws a tree as nested bars: the box, and what is around it.
pub(super) struct Icicle<'a> {
    pub(super) id: &'a str,
    /// What the tree is, as a screen reader says it.
    pub(super) label: &'a str,
    /// Controls before the bars.
    pub(super) controls: &'a str,
    /// What a bar is, and a key to the colours, after them.
    pub(super) key: &'a str,
}

/// What the bars of a call tree are.
pub(super) const OF_TIMES: &str = "<p class=\"hint\">Each bar is as wide as its total; what no bar below \
    covers is self time. A click zooms, another one goes back.</p>\n";

impl Icicle<'_> {
    pub(super) fn write(&self, page: &mut String) -> Result {
        let Self {
            id,
            label,
            controls,
            key,
        } = self;
        writeln!(
            page,
            "<div id=\"{id}\" class=\"icicle\" hidden>\n<p class=\"acts\">\
             <label>Find <input type=\"search\" id=\"{id}-find\" autocomplete=\"off\"></label>{controls}\
             <button type=\"button\" data-act=\"whole\">Whole tree</button> \
             <output id=\"{id}-found\"></output></p>\n\
             <div class=\"bars\" role=\"group\" aria-label=\"{label}. \
             Arrows move, Enter zooms, Escape shows all.\"></div>\n\
             <output class=\"readout\"></output>\n{key}</div>"
        )
    }
}

/// A name as far to the right as its path is deep.
pub(super) fn indented(name: &str, depth: u32) -> String {
    format!("{}{name}", "\u{2003}".repeat((depth as usize).min(DEEPEST)))
}

/// Says how many paths a table does not have.
pub(super) fn left_out(page: &mut String, paths: usize) -> Result {
    match paths {
        0 => Ok(()),
        paths => writeln!(
            page,
            "<p class=\"hint\">{} more are in the document.</p>",
            figures::count(paths as u64)
        ),
    }
}

/// A row: the indented name, its path, and its self time at most where only that is known.
type Row<'a> = (&'a str, &'a PathReport, Option<f64>);

pub(super) fn write(page: &mut String, report: &Report) -> Result {
    page.push_str("<section id=\"tree\">\n<h2>Call tree</h2>\n");
    let findings = findings::findings(report);
    if !findings.is_empty() {
        page.push_str("<ul class=\"summary\">\n");
        for finding in findings {
            writeln!(page, "<li>{}</li>", Text(&with_micro(&finding)))?;
        }
        page.push_str("</ul>\n");
    }
    states::write(page, report)?;
    page.push_str(
        "<p class=\"hint\">Of this recording: spans by the spans around them, in all threads of a name \
         together; self is the time in no span inside.</p>\n",
    );
    Icicle {
        id: "icicle",
        label: "Call tree; the table below says the same in numbers",
        controls: "",
        key: OF_TIMES,
    }
    .write(page)?;
    let shown = &report.paths[..report.paths.len().min(MOST_ROWS)];
    let names: Vec<String> = (shown.iter())
        .map(|path| indented(&path_label(path), path.depth))
        .collect();
    let rows = (names.iter().zip(shown).enumerate())
        .map(|(at, (name, path))| (name.as_str(), path, report.most_self_ns(at)));
    plain(page, &columns(), rows)?;
    left_out(page, report.paths.len() - shown.len())?;
    writeln!(page, "</section>")
}

fn columns<'a>() -> Columns<'a, Row<'a>> {
    Columns::new()
        .page("span", |(name, ..): Row<'a>| Cell::Name(name))
        .page("calls, share of the time", |(_, path, _)| {
            match path.threads {
                Some(_) => Cell::share(path.share.unwrap_or(0.0)),
                None => Cell::Part(path.calls, path.share.unwrap_or(0.0)),
            }
        })
        .page("total", |(_, path, _)| Cell::estimate(path.total.as_ref()))
        .page("self", |(_, path, most)| match most {
            Some(most) => Cell::Figure(with_micro(&at_most(most))),
            None => Cell::duration(path.self_ns),
        })
        .page("mean", |(_, path, _)| Cell::duration(path.mean_ns()))
        .page("median", |(_, path, _)| Cell::duration(path.median_ns))
        .page("p99", |(_, path, _)| Cell::duration(path.p99_ns))
        .page("max", |(_, path, _)| Cell::duration(path.max_ns))
}
