//! Tables in Markdown, with GitHub's syntax.

use super::{Cell, Columns, terminal};
use crate::text::clean;

/// The lines of the table.
pub(crate) fn draw<R: Clone>(
    columns: &Columns<'_, R>,
    rows: impl IntoIterator<Item = R>,
) -> Vec<String> {
    let shown = || columns.shown_on_page();
    let rules = shown()
        .enumerate()
        .map(|(i, (_, c))| match i == 0 || c.is_words {
            true => "---|",
            false => "---:|",
        });
    let mut lines = vec![
        line(shown().map(|(heading, _)| text(heading))).replace("|  |", "| |"),
        format!("|{}", rules.collect::<String>()),
    ];
    lines.extend((rows.into_iter()).map(|row| {
        line(shown().map(|(_, column)| {
            let cell = (column.cell)(row.clone());
            let shown = text(&terminal::text(&cell));
            match cell {
                Cell::Notable(_) => format!("**{shown}**"),
                _ => shown,
            }
        }))
    }));
    lines
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("|{}", cells.map(|c| format!(" {c} |")).collect::<String>())
}

/// Text without meaning to Markdown: any special character is written as a number.
pub(crate) fn text(of: &str) -> String {
    let mut shown = String::new();
    for c in clean(of).chars() {
        match c {
            ' ' | '.' | ',' | '-' | '/' | '=' | '%' | '(' | ')' | ';' => shown.push(c),
            c if c.is_ascii_punctuation() => shown.push_str(&format!("&#{};", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}
