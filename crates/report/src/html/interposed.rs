//! What threads waited for and allocated, on the page.

use core::fmt::{Result, Write};

use undertick_document::{Allocations, Locks, Report};

use crate::escape::Text;
use crate::interposed::{allocation_columns, allocations_summary, lock_columns, locks_summary};
use crate::table::html::{plain, with_micro};

/// Most rows; the document in the page has all of them.
const MOST_ROWS: usize = 100;

pub(super) fn locks(page: &mut String, report: &Report, found: &Locks) -> Result {
    let summary = with_micro(&locks_summary(found));
    writeln!(
        page,
        "<section id=\"locks\">\n<h2>Locks</h2>\n<p>{}</p>",
        Text(&summary)
    )?;
    if !found.rows.is_empty() {
        let rows = found.rows.iter().take(MOST_ROWS);
        plain(page, &lock_columns(report), rows)?;
        super::tree::left_out(page, found.rows.len().saturating_sub(MOST_ROWS))?;
    }
    writeln!(page, "</section>")
}

pub(super) fn allocations(page: &mut String, report: &Report, found: &Allocations) -> Result {
    let summary = with_micro(&allocations_summary(found));
    writeln!(
        page,
        "<section id=\"allocations\">\n<h2>Allocations</h2>\n<p>{}</p>",
        Text(&summary)
    )?;
    if !found.paths.is_empty() {
        let rows = found.paths.iter().take(MOST_ROWS);
        plain(page, &allocation_columns(report, found), rows)?;
        super::tree::left_out(page, found.paths.len().saturating_sub(MOST_ROWS))?;
    }
    writeln!(page, "</section>")
}
