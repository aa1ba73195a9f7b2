//! By how much the measuring points slowed the program, where that was measured.

use core::fmt::{Result, Write};
use undertick_document::{IntervalReport, Report, Slowed, figures};

use super::escape::Text;
use super::tables::{cell, estimate, headings_of, name_cell, shown};
use crate::remarks;

const HEADINGS: [&str; 7] = [
    "interval",
    "slowed by",
    "share",
    "per point",
    "points inside",
    "samples with them",
    "and without",
];

pub(super) fn write(page: &mut String, report: &Report) -> Result {
    writeln!(
        page,
        "<section id=\"perturbation\">\n<h2>Perturbation</h2>\n<p>{}.</p>",
        Text(&shown(&remarks::perturbation(&report.trace)))
    )?;
    let slowed = |i: &IntervalReport| i.slowed.is_some();
    if report.intervals.iter().any(slowed) {
        page.push_str(
            "<p class=\"hint\">What lies inside was switched off and on at random while the program \
             ran. Nothing of this is subtracted.</p>\n<div class=\"wide\"><table class=\"figures sortable\">\n<thead><tr>",
        );
        headings_of(page, HEADINGS)?;
        page.push_str("</tr></thead>\n<tbody>\n");
        for (index, interval) in report.intervals.iter().enumerate() {
            if let Some(slowed) = &interval.slowed {
                row(page, index, interval, slowed)?;
            }
        }
        page.push_str("</tbody>\n</table></div>\n");
    }
    page.push_str("</section>\n");
    Ok(())
}

fn row(page: &mut String, index: usize, interval: &IntervalReport, slowed: &Slowed) -> Result {
    write!(page, "<tr data-interval=\"{index}\">")?;
    name_cell(page, interval, index)?;
    for (label, e) in [
        ("slowed by", Some(&slowed.by)),
        ("share", Some(&slowed.share)),
        ("per point", slowed.per_point.as_ref()),
    ] {
        cell(page, label, e.map(|e| e.value), estimate(e))?;
    }
    let points = Text(&format!("{:.1} {}", slowed.points, slowed.what)).to_string();
    cell(page, "points inside", Some(slowed.points), points)?;
    let [with, without] = slowed.samples;
    for (label, n) in [("samples with them", with), ("and without", without)] {
        cell(page, label, Some(n as f64), figures::count(n))?;
    }
    page.push_str("</tr>\n");
    Ok(())
}
