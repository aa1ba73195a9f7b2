//! The page of `undertick reproduce`: the tables of the terminal, followed by every single figure.

use core::fmt::Write;

use undertick_units::Estimate;

use super::escape::{self, Text};
use super::plot::{PLOT_STYLE, plot};
use super::{POLICY, STYLE};
use crate::reproduce::{Item, Reproduction, Table};

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
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>Undertick: {} reproduced</title>\n<style>\n{STYLE}{OWN_STYLE}{PLOT_STYLE}</style>\n</head>\n\
         <body>\n<header>\n<h1>Reproduced: {}</h1>\n<p class=\"recorded\">{}</p>\n",
        Text(&found.source),
        Text(&found.source),
        Text(&found.title),
    )?;
    page.push_str("<nav aria-label=\"Sections\">");
    for (index, table) in found.tables.iter().enumerate() {
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
    for (index, table) in found.tables.iter().enumerate() {
        section(page, index, table)?;
    }
    for (index, figure) in found.plots.iter().enumerate() {
        plot(page, &format!("f{index}"), figure)?;
    }
    items(page, &found.items)?;
    let document = serde_json::to_string(found).unwrap_or_else(|_| "null".to_owned());
    write!(
        page,
        "</main>\n<footer><p>Undertick, document version {}. The whole document is in this file, \
         as JSON, in the element <code>report</code>.</p></footer>\n\
         <script type=\"application/json\" id=\"report\">{}</script>\n</body>\n</html>\n",
        found.schema_version,
        escape::json(&document),
    )
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
    let words: Vec<bool> = (0..table.columns.len())
        .map(|c| table.is_words(c))
        .collect();
    let class = |column: usize| {
        if words.get(column) == Some(&true) {
            " class=\"words\""
        } else {
            ""
        }
    };
    page.push_str("<div class=\"wide\"><table class=\"figures\">\n<thead><tr>");
    for (column, heading) in table.columns.iter().enumerate() {
        write!(
            page,
            "<th scope=\"col\"{}>{}</th>",
            class(column),
            Text(heading)
        )?;
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        for (column, (cell, heading)) in row.iter().zip(&table.columns).enumerate() {
            if column == 0 {
                write!(page, "<th scope=\"row\">{}</th>", Text(cell))?;
                continue;
            }
            let (class, heading) = (class(column), Text(heading));
            write!(
                page,
                "<td data-label=\"{heading}\"{class}>{}</td>",
                Text(cell)
            )?;
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n</section>\n");
    Ok(())
}

fn items(page: &mut String, items: &[Item]) -> core::fmt::Result {
    page.push_str(
        "<section id=\"items\">\n<h2>Every figure</h2>\n<p class=\"hint\">As in the JSON document. \
         In brackets: the interval.</p>\n<div class=\"wide\"><table class=\"figures\">\n<thead><tr>",
    );
    let with_ratio = items.iter().any(|item| item.ratio.is_some());
    let ratio = with_ratio.then_some("published/measured");
    for heading in
        (["figure", "published", "formula", "simulated", "measured"].into_iter()).chain(ratio)
    {
        write!(page, "<th scope=\"col\">{heading}</th>")?;
    }
    page.push_str("<th scope=\"col\" class=\"words\">note</th></tr></thead>\n<tbody>\n");
    for item in items {
        write!(
            page,
            "<tr><th scope=\"row\">{} <span class=\"within\">{}{}</span></th>",
            Text(&item.id),
            Text(&item.quantity),
            unit(&item.unit)
        )?;
        for (label, value) in [("published", item.published), ("formula", item.formula)] {
            let cell = value.map_or_else(|| "–".to_owned(), number);
            write!(page, "<td data-label=\"{label}\">{cell}</td>")?;
        }
        for (label, value) in [("simulated", &item.simulated), ("measured", &item.measured)] {
            let cell = value.as_ref().map_or_else(|| "–".to_owned(), estimate);
            write!(page, "<td data-label=\"{label}\">{cell}</td>")?;
        }
        if let Some(label) = ratio {
            let cell = item.ratio.map_or_else(|| "–".to_owned(), number);
            write!(page, "<td data-label=\"{label}\">{cell}</td>")?;
        }
        writeln!(
            page,
            "<td data-label=\"note\" class=\"words\">{}</td></tr>",
            Text(&item.note)
        )?;
    }
    page.push_str("</tbody></table></div>\n</section>\n");
    Ok(())
}

fn unit(unit: &str) -> String {
    match unit {
        "1" => String::new(),
        unit => format!(", {}", Text(unit)),
    }
}

fn estimate(estimate: &Estimate) -> String {
    let bound = |b: Option<f64>| b.map_or_else(|| "?".to_owned(), number);
    let (lo, hi) = (estimate.interval.lo, estimate.interval.hi);
    let within = if lo.is_none() && hi.is_none() {
        String::new()
    } else {
        format!(
            " <span class=\"within\">[{}, {}]</span>",
            bound(lo),
            bound(hi)
        )
    };
    format!("{}{within}", number(estimate.value))
}

/// A number to five significant digits; whole numbers without decimals.
fn number(value: f64) -> String {
    if value == value.round() && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let digits = (4 - value.abs().log10().floor() as i32).clamp(0, 8);
    format!("{value:.*}", digits as usize)
}
