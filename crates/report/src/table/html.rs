//! Tables of a page.

use core::fmt::{Result, Write};

use undertick_document::IntervalReport;
use undertick_document::figures::{self, Figure, figure};
use undertick_units::Estimate;

use super::{Cell, Columns};
use crate::html::escape::Text;

/// A table that the page's script sorts by any of its columns.
pub(crate) fn sortable<'a, R: Clone>(
    page: &mut String,
    columns: &Columns<'a, R>,
    rows: impl IntoIterator<Item = R>,
) -> Result {
    sortable_with(page, columns, rows, None)
}

/// A sortable table; where `bars` are given, a last column has them, with its own heading.
pub(crate) fn sortable_with<'a, R: Clone>(
    page: &mut String,
    columns: &Columns<'a, R>,
    rows: impl IntoIterator<Item = R>,
    bars: Option<(String, &dyn Fn(R) -> String)>,
) -> Result {
    page.push_str("<div class=\"wide\"><table class=\"figures sortable\">\n<thead><tr>");
    for (heading, _) in columns.shown_on_page() {
        write!(
            page,
            "<th scope=\"col\"><span class=\"sort\">{}</span></th>",
            Text(heading)
        )?;
    }
    if let Some((heading, _)) = &bars {
        write!(page, "<th scope=\"col\" class=\"bars\">{heading}</th>")?;
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        write_row(page, columns, &row, true)?;
        if let Some((_, bars)) = &bars {
            write!(page, "<td class=\"bars\">{}</td>", bars(row))?;
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
    Ok(())
}

/// A row without its end. Its first cell is its heading.
fn write_row<R: Clone>(
    page: &mut String,
    columns: &Columns<'_, R>,
    row: &R,
    sorts: bool,
) -> Result {
    for (index, (heading, column)) in columns.shown_on_page().enumerate() {
        let cell = (column.cell)(row.clone());
        let content = content(&cell);
        if index == 0 {
            page.push_str("<tr");
            if let Cell::Interval(number, _) = cell {
                write!(page, " data-interval=\"{number}\"")?;
            }
            page.push_str("><th scope=\"row\"");
            if sorts {
                write!(page, " data-label=\"{}\"", Text(heading))?;
            }
            write!(page, ">{content}</th>")?;
            continue;
        }
        write!(page, "<td data-label=\"{}\"", Text(heading))?;
        // A cell without a number sorts last.
        if let Some(number) = number(&cell).filter(|n| sorts && n.is_finite()) {
            write!(page, " data-sort=\"{number}\"")?;
        }
        write!(page, ">{content}</td>")?;
    }
    Ok(())
}

/// The number that a cell sorts by.
fn number(cell: &Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Number(n, _) | Cell::Duration(n) | Cell::Part(_, n) => Some(*n),
        Cell::Count(n) => Some(*n as f64),
        Cell::Estimate(estimate) => Some(estimate.value),
        Cell::ShareOf(part) => part.share.as_ref().map(|share| share.value),
        _ => None,
    }
}

/// A cell as markup.
fn content(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Nothing => "–".to_owned(),
        Cell::Interval(number, interval) => format!(
            "<a class=\"name\" href=\"#i{number}\">{}</a>{}",
            Text(name_or_blank(&interval.name)),
            belongs(interval)
        ),
        Cell::Name(name) => span("name", name_or_blank(name)),
        Cell::Text(text) => Text(text).to_string(),
        Cell::Figure(text) => Text(&with_micro(text)).to_string(),
        Cell::Number(_, text) => Text(text).to_string(),
        Cell::Lines(lines) => Text(&lines.join(", ")).to_string(),
        Cell::Count(n) => figures::count(*n),
        Cell::Duration(ns) => duration(*ns),
        Cell::Part(n, share) => format!(
            "{} {}<span class=\"share\"><i style=\"width:{:.2}%\"></i></span>",
            figures::short_count(*n),
            span("within", &figures::per_cent(*share)),
            (share * 100.0).clamp(0.0, 100.0)
        ),
        Cell::Estimate(of) => estimate(Some(of)),
        Cell::ShareOf(part) => format!(
            "{} of {}",
            estimate(part.share.as_ref()),
            span("name", name_or_blank(&part.of))
        ),
    }
}

fn span(class: &str, text: &str) -> String {
    format!("<span class=\"{class}\">{}</span>", Text(text))
}

/// A figure's text as the page shows it, with a proper micro sign.
pub(crate) fn with_micro(text: &str) -> String {
    text.replace("\u{a0}us", "\u{a0}µs")
}

/// A duration without an interval, as text.
pub(crate) fn duration(ns: f64) -> String {
    with_micro(&figures::duration(ns))
}

/// A value with its interval, or a dash.
pub(crate) fn estimate(estimate: Option<&Estimate>) -> String {
    estimate.map_or("–".to_owned(), |estimate| within(&figure(estimate)))
}

fn within(figure: &Figure) -> String {
    let value = with_micro(&figure.value_and_unit());
    format!("{} {}", Text(&value), span("within", &figure.interval()))
}

/// Where an interval of an experiment belongs; several may have the same name.
pub(crate) fn belongs(interval: &IntervalReport) -> String {
    let text = interval.repeated.as_ref().map(crate::experiment::belongs);
    text.map_or(String::new(), |text| format!("<br>{}", span("hint", &text)))
}

/// A name, or a blank for an empty one, which would leave a link without text.
pub(crate) fn name_or_blank(name: &str) -> &str {
    match name.trim().is_empty() {
        true => "(no name)",
        false => name,
    }
}
