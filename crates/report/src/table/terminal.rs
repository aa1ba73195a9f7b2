//! Tables in characters, within a number of columns.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use undertick_document::figures::{self, figure};

use super::{Cell, Columns};
use crate::text::{clean, columns, shorten};

/// Width of a name, columns; the rest goes to a second line, then is cut.
const NAME_COLUMNS: usize = 26;

/// The table as text in at most `room` columns: words are aligned to the left, figures to the right.
pub(crate) fn draw<R: Clone>(
    columns: &Columns<'_, R>,
    rows: impl IntoIterator<Item = R>,
    room: usize,
) -> String {
    let shown = || columns.shown_on_terminal();
    let mut table = new_table(room);
    table.set_header(shown().map(|(heading, _)| undertick_text::clean_lines(heading)));
    for row in rows {
        table.add_row(shown().map(|(_, column)| text(&(column.cell)(row.clone()))));
    }
    for (i, (drawn, (_, column))) in table.column_iter_mut().zip(shown()).enumerate() {
        drawn.set_padding((0, 2));
        if i > 0 && !column.is_words {
            drawn.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// A cell as text, with line breaks between its parts.
pub(super) fn text(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Nothing => "-".to_owned(),
        Cell::Absent | Cell::Drawing(_) => String::new(),
        Cell::Interval(_, interval) => name(&interval.name),
        Cell::Name(text) => name(text),
        Cell::About(text, _) => clean(text),
        Cell::Text(text) => clean(text),
        Cell::Figure(text) | Cell::Notable(text) => clean(text),
        Cell::Lines(lines) => lines
            .iter()
            .map(|l| clean(l))
            .collect::<Vec<_>>()
            .join("\n"),
        Cell::Number(_, text) => undertick_text::clean_lines(text).into_owned(),
        Cell::Count(n) | Cell::Part(n @ 0, _) => figures::short_count(*n),
        Cell::Duration(ns) => figures::duration(*ns),
        Cell::Part(n, share) => {
            format!(
                "{}\n{}",
                figures::short_count(*n),
                figures::per_cent(*share)
            )
        }
        Cell::Estimate(estimate) => {
            let figure = figure(estimate);
            format!("{}\n{}", figure.value_and_unit(), figure.interval())
        }
        Cell::Beside(text, more) => clean(&format!("{text} {more}")),
        Cell::ShareOf(part) => {
            let share =
                (part.share.as_ref()).map_or("-".to_owned(), |e| figure(e).value_and_unit());
            format!("{share} of {}", shorten(&clean(&part.of), NAME_COLUMNS))
        }
    }
}

/// A name on one line if it fits, else on two, else with its middle cut out.
fn name(name: &str) -> String {
    let name = shorten(&clean(name), 2 * NAME_COLUMNS - 1);
    if columns(&name) <= NAME_COLUMNS {
        return name;
    }
    let mut at = 0;
    for (next, c) in name.char_indices() {
        if columns(&name[..next + c.len_utf8()]) > NAME_COLUMNS {
            break;
        }
        at = next + c.len_utf8();
    }
    format!("{}\n{}", &name[..at], &name[at..])
}

/// An empty table without lines, in at most `columns` columns.
pub(crate) fn new_table(columns: usize) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(columns).unwrap_or(u16::MAX));
    table
}
