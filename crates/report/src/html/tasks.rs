//! Tasks, on the page.

use core::fmt::{Result, Write};

use undertick_document::{TaskReport, Tasks};

use crate::escape::Text;
use crate::table::html::{plain, with_micro};
use crate::tasks::{columns, life_columns, summary};

/// Most rows; the document in the page has all of them.
const MOST_ROWS: usize = 100;
/// Most names whose longest lives are shown.
const MOST_NAMES: usize = 10;

pub(super) fn write(page: &mut String, tasks: &Tasks) -> Result {
    let summary = with_micro(&summary(tasks));
    writeln!(
        page,
        "<section id=\"tasks\">\n<h2>Tasks</h2>\n<p>{}</p>",
        Text(&summary)
    )?;
    plain(page, &columns(), tasks.rows.iter().take(MOST_ROWS))?;
    super::tree::left_out(page, tasks.rows.len().saturating_sub(MOST_ROWS))?;
    let listed = |row: &&TaskReport| !row.longest.is_empty();
    for row in tasks.rows.iter().filter(listed).take(MOST_NAMES) {
        writeln!(
            page,
            "<details>\n<summary>The longest lives of {}</summary>",
            Text(&crate::text::clean(&row.name))
        )?;
        plain(page, &life_columns(), row.longest.iter())?;
        writeln!(page, "</details>")?;
    }
    writeln!(page, "</section>")
}
