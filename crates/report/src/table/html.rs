//! Tables of a page.

use core::fmt::{Result, Write};

use undertick_document::IntervalReport;
use undertick_document::figures::{self, figure};
use undertick_units::Estimate;

use super::{Cell, Columns};
use crate::escape::Text;

/// A table that the page's script sorts by any of its columns.
pub(crate) fn sortable<R: Clone>(
    page: &mut String,
    columns: &Columns<'_, R>,
    rows: impl IntoIterator<Item = R>,
) -> Result {
    write(page, columns, rows, true, None)
}

/// A table that nothing sorts.
pub(crate) fn plain<R: Clone>(
    page: &mut String,
    columns: &Columns<'_, R>,
    rows: impl IntoIterator<Item = R>,
) -> Result {
    write(page, columns, rows, false, None)
}

/// The markup of a last column that is no figure: its heading, and what a row has there.
pub(crate) type Bars<'b, R> = (String, &'b dyn Fn(&R) -> String);

/// A table, sortable or not, with or without bars.
pub(crate) fn write<R: Clone>(
    page: &mut String,
    columns: &Columns<'_, R>,
    rows: impl IntoIterator<Item = R>,
    sorts: bool,
    bars: Option<Bars<'_, R>>,
) -> Result {
    let (sortable, end) = if sorts { (" sortable", "\n") } else { ("", "") };
    // Where a table is wider than the page, keys scroll the part that has them; buttons of headings
    // are such parts.
    let keys = match sorts {
        true => "",
        false => " tabindex=\"0\" role=\"group\" aria-label=\"Table\"",
    };
    write!(
        page,
        "<div class=\"wide\"{keys}><table class=\"figures{sortable}\">\n<thead><tr>"
    )?;
    for (heading, column) in columns.shown_on_page() {
        let heading = Text(heading);
        match (sorts, column.is_words) {
            (true, _) => write!(
                page,
                "<th scope=\"col\"><span class=\"sort\">{heading}</span></th>"
            ),
            (false, true) => write!(page, "<th scope=\"col\" class=\"words\">{heading}</th>"),
            (false, false) => write!(page, "<th scope=\"col\">{heading}</th>"),
        }?;
    }
    if let Some((heading, _)) = &bars {
        write!(page, "<th scope=\"col\" class=\"bars\">{heading}</th>")?;
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        write_row(page, columns, &row, sorts)?;
        if let Some((_, bars)) = &bars {
            write!(page, "<td class=\"bars\">{}</td>", bars(&row))?;
        }
        page.push_str("</tr>\n");
    }
    writeln!(page, "</tbody>{end}</table></div>")
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
            match cell {
                Cell::Interval(number, _) => write!(page, "<tr data-interval=\"{number}\">")?,
                _ => page.push_str("<tr>"),
            }
            match sorts {
                true => write!(
                    page,
                    "<th scope=\"row\" data-label=\"{}\">{content}</th>",
                    Text(heading)
                )?,
                false => write!(page, "<th scope=\"row\">{content}</th>")?,
            }
            continue;
        }
        let (label, class) = match (&cell, column.is_words) {
            _ if sorts => (heading, ""),
            (Cell::Drawing(_), _) => ("", " class=\"plot\""),
            (Cell::Notable(_), true) => (heading, " class=\"words bad\""),
            (Cell::Notable(_), false) => (heading, " class=\"bad\""),
            (_, true) => (heading, " class=\"words\""),
            (_, false) => (heading, ""),
        };
        write!(page, "<td data-label=\"{}\"{class}", Text(label))?;
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
        Cell::Nothing | Cell::Absent => "–".to_owned(),
        Cell::Interval(number, interval) => format!(
            "<a class=\"name\" href=\"#i{number}\">{}</a>{}",
            Text(name_or_blank(&interval.name)),
            belongs(interval)
        ),
        Cell::Name(name) => span("name", name_or_blank(name)),
        Cell::About(what, includes) if includes.is_empty() => span("name", what),
        Cell::About(what, includes) => span("name", what) + &span("includes", includes),
        Cell::Text(text) => Text(text).to_string(),
        Cell::Figure(text) => Text(&with_micro(text)).to_string(),
        Cell::Notable(text) | Cell::Number(_, text) => Text(text).to_string(),
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
        Cell::Beside(text, more) => format!("{} {}", Text(text), span("within", more)),
        Cell::ShareOf(part) => format!(
            "{} of {}",
            estimate(part.share.as_ref()),
            span("name", name_or_blank(&part.of))
        ),
        Cell::Drawing(svg) => svg.clone(),
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
    estimate.map_or("–".to_owned(), |estimate| {
        let figure = figure(estimate);
        let value = with_micro(&figure.value_and_unit());
        format!("{} {}", Text(&value), span("within", &figure.interval()))
    })
}

/// Where an interval of an experiment belongs; several may have the same name.
pub(crate) fn belongs(interval: &IntervalReport) -> String {
    let text = interval.repeated.as_ref().map(crate::repeated::belongs);
    text.map_or(String::new(), |text| format!("<br>{}", span("hint", &text)))
}

/// A name, or a blank for an empty one, which would leave a link without text.
pub(crate) fn name_or_blank(name: &str) -> &str {
    match name.trim().is_empty() {
        true => "(no name)",
        false => name,
    }
}
