//! The page's table of the causes recorded in samples.

use core::fmt::{Result, Write};
use undertick_document::{IntervalReport, Report, figures};

use super::escape::Text;
use super::tables::{cell, duration, headings_of, name_cell};
use crate::remarks::{self, Fell};

const HEADINGS: [&str; 6] = [
    "interval",
    "what",
    "samples",
    "share",
    "took",
    "so they were",
];

/// The causes in samples according to the kernel's own events; empty if there are no such events.
pub(super) fn table(page: &mut String, report: &Report) -> Result {
    let fell: Vec<(usize, &IntervalReport, Vec<Fell>)> = (report.intervals.iter().enumerate())
        .map(|(index, interval)| (index, interval, remarks::fell_into(interval)))
        .filter(|(_, _, fell)| !fell.is_empty())
        .collect();
    if fell.is_empty() {
        return Ok(());
    }
    page.push_str(
        "<section id=\"evidence\">\n<h2>Evidence</h2>\n<p class=\"hint\">What the kernel's own \
         events say fell into samples. Only what is not the program's own doing is left out.</p>\n\
         <div class=\"wide\"><table class=\"figures sortable\">\n<thead><tr>",
    );
    headings_of(page, HEADINGS)?;
    page.push_str("</tr></thead>\n<tbody>\n");
    for (index, interval, fell) in fell {
        for fell in fell {
            write!(page, "<tr data-interval=\"{index}\">")?;
            name_cell(page, interval, index)?;
            cell(page, "what", None, Text(&fell.what))?;
            let count = figures::short_count(fell.count);
            cell(page, "samples", Some(fell.count as f64), count)?;
            cell(page, "share", Some(fell.share), Text(&fell.shares()))?;
            let took = fell.time_ns.map_or("–".to_owned(), duration);
            cell(page, "took", fell.time_ns, took)?;
            cell(page, "so they were", None, fell.treatment())?;
            page.push_str("</tr>\n");
        }
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
    Ok(())
}
