//! The functions that the time of spans went to, on the page.

use core::fmt::{Result, Write};

use undertick_document::{PathStacks, Report, Stacks};

use super::tree::Icicle;
use crate::escape::Text;
use crate::stacks;
use crate::table::html::{plain, with_micro};
use crate::table::{Cell, Columns};

/// Most rows; the document in the page has all of them.
const MOST_ROWS: usize = 100;
/// Columns of the sentence above the drawing, which the page breaks itself.
const NO_BREAKS: usize = usize::MAX;
const CHOICES: &str = "<label>Widths <select id=\"functions-widths\"><option value=\"on_cpu\">time on a \
    CPU</option><option value=\"waited\">time waited</option></select></label>";
const KEY: &str = "<p class=\"hint\">Spans, and below them the functions in which their threads were \
    sampled. Each bar is as wide as its samples or its time waited. Outer functions with 98 % or more \
    of a span are not drawn, except the innermost of them. A click zooms, another one goes back.</p>\n";

/// A row: the path's name, its samples, and its largest functions.
type Row<'a> = (&'a str, &'a PathStacks, &'a [String]);

pub(super) fn write(page: &mut String, report: &Report, found: &Stacks) -> Result {
    page.push_str("<section id=\"functions\">\n<h2>Functions</h2>\n");
    let summary = stacks::summary(found, NO_BREAKS);
    writeln!(page, "<p>{}</p>", Text(&with_micro(summary.trim())))?;
    Icicle {
        id: "functions-tree",
        label: "Functions by span; the table below has the largest functions of each span",
        controls: CHOICES,
        key: KEY,
    }
    .write(page)?;
    let rows: Vec<(String, &PathStacks, Vec<String>)> = (stacks::by_time(report, found)
        .into_iter())
    .map(|(name, of)| (name, of, stacks::named(found, of)))
    .collect();
    let shown = rows.iter().take(MOST_ROWS);
    plain(
        page,
        &columns(found),
        shown.map(|(name, of, named)| (name.as_str(), *of, named.as_slice())),
    )?;
    super::tree::left_out(page, rows.len().saturating_sub(MOST_ROWS))?;
    writeln!(page, "</section>")
}

fn columns<'a>(found: &'a Stacks) -> Columns<'a, Row<'a>> {
    let all = found.on_cpu.max(1) as f64;
    Columns::new()
        .page("path", |(name, ..): Row<'a>| Cell::Name(name))
        .page("CPU samples, share of all", move |(_, of, _)| {
            Cell::Part(of.on_cpu, of.on_cpu as f64 / all)
        })
        .page("waits", |(_, of, _)| match of.waits {
            0 => Cell::Absent,
            waits => Cell::Count(waits),
        })
        .page("time waited", |(_, of, _)| {
            Cell::duration((of.waits > 0).then_some(of.waited_ns))
        })
        .page("innermost functions", |(_, _, named)| {
            Cell::Lines(named.to_vec())
        })
        .words()
}
