//! The page of `undertick reproduce`: the tables of the terminal, followed by every single figure.

use core::fmt::Write;

use undertick_units::Estimate;

use super::frame;
use super::plot::{PLOT_STYLE, plot};
use crate::escape::Text;
use crate::reproduce::{Item, Reproduction, Table, Verdict};
use crate::table::html::plain;
use crate::table::{Cell, Columns};

const OWN_STYLE: &str = ".figures td.words { white-space: normal; text-align: left; }\n\
     .figures td.words:last-child { min-width: 12rem; }\n\
     .figures th.words { text-align: left; }\n";

/// The whole page.
#[must_use]
pub fn render(found: &Reproduction) -> String {
    let mut page = String::with_capacity(100_000);
    write_page(&mut page, found).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, found: &Reproduction) -> core::fmt::Result {
    let title = format!("{} reproduced", found.source);
    frame::begin(page, &title, &[OWN_STYLE, PLOT_STYLE])?;
    write!(
        page,
        "<h1>Reproduced: {}</h1>\n<p class=\"recorded\">{}</p>\n",
        Text(&found.source),
        Text(&found.title),
    )?;
    page.push_str("<nav aria-label=\"Sections\">");
    let list = found.list();
    let tables = || list.iter().chain(&found.tables).enumerate();
    for (index, table) in tables() {
        write!(page, "<a href=\"#t{index}\">{}</a>", Text(&table.title))?;
    }
    for (index, figure) in found.plots.iter().enumerate() {
        write!(page, "<a href=\"#f{index}\">{}</a>", Text(&figure.title))?;
    }
    page.push_str("<a href=\"#items\">Every figure</a></nav>\n</header>\n<main>\n");
    if !found.findings.is_empty() {
        page.push_str("<ul class=\"summary\">\n");
        for finding in &found.findings {
            writeln!(page, "<li>{}</li>", Text(finding))?;
        }
        page.push_str("</ul>\n");
    }
    for (index, table) in tables() {
        section(page, index, table)?;
    }
    for (index, figure) in found.plots.iter().enumerate() {
        plot(page, &format!("f{index}"), figure)?;
    }
    items(page, &found.items)?;
    let document = serde_json::to_string(found).unwrap_or_else(|_| "null".to_owned());
    frame::foot(page, found.schema_version, &document)
}

fn section(page: &mut String, index: usize, table: &Table) -> core::fmt::Result {
    write!(
        page,
        "<section id=\"t{index}\">\n<h2>{}</h2>\n",
        Text(&table.title)
    )?;
    for text in &table.text {
        writeln!(page, "<p class=\"hint\">{}</p>", Text(text))?;
    }
    plain(page, &table.shown(), &table.rows)?;
    writeln!(page, "</section>")
}

fn items(page: &mut String, items: &[Item]) -> core::fmt::Result {
    page.push_str(
        "<section id=\"items\">\n<h2>Every figure</h2>\n<p class=\"hint\">As in the JSON document. \
         In brackets: the interval.</p>\n",
    );
    let mut columns = Columns::<&Item>::new()
        .page("figure", |item| {
            let unit = match item.unit.as_str() {
                "1" => String::new(),
                unit => format!(", {unit}"),
            };
            Cell::Beside(item.id.clone(), format!("{}{unit}", item.quantity))
        })
        .page("published", |item| number_or_none(item.published))
        .page("formula", |item| number_or_none(item.formula))
        .page("simulated", |item| estimate(item.simulated.as_ref()))
        .page("measured", |item| estimate(item.measured.as_ref()));
    if items.iter().any(|item| item.ratio.is_some()) {
        columns = columns.page("published/measured", |item| number_or_none(item.ratio));
    }
    if items.iter().any(|item| item.verdict.is_some()) {
        columns = columns
            .page("verdict", |item| {
                Cell::text(item.verdict.map_or("", Verdict::words))
            })
            .words();
    }
    let columns = columns.page("note", |item| Cell::text(&item.note)).words();
    plain(page, &columns, items)?;
    writeln!(page, "</section>")
}

fn number_or_none<'a>(value: Option<f64>) -> Cell<'a> {
    value.map_or(Cell::Nothing, |value| Cell::text(number(value)))
}

fn estimate(estimate: Option<&Estimate>) -> Cell<'_> {
    let Some(Estimate {
        value, interval, ..
    }) = estimate
    else {
        return Cell::Nothing;
    };
    let bound = |b: Option<f64>| b.map_or_else(|| "?".to_owned(), number);
    match (interval.lo, interval.hi) {
        (None, None) => Cell::text(number(*value)),
        (lo, hi) => Cell::Beside(number(*value), format!("[{}, {}]", bound(lo), bound(hi))),
    }
}

/// A number to five significant digits; whole numbers without decimals.
fn number(value: f64) -> String {
    if value == value.round() && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let digits = (4 - value.abs().log10().floor() as i32).clamp(0, 8);
    format!("{value:.*}", digits as usize)
}
