//! The table of the intervals, in as many columns as there is room for.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table};
use undertick_document::figures::{self, figure};
use undertick_units::Estimate;

use super::{Entry, Recent, State, per_second};
use crate::text::{clean, shorten};

/// Minimum width of a name, columns.
const NAME: u16 = 18;
/// Maximum width of a name until all figures are shown, columns.
const LONG_NAME: u16 = 40;
/// Width of an estimate with its interval below, columns.
const ESTIMATE: u16 = 16;

/// A column beside the name.
#[derive(Clone, Copy)]
struct Column {
    title: &'static str,
    width: u16,
    /// The text of the first line and of the second line.
    text: fn(&Entry, &Recent) -> [String; 2],
}

/// The columns in the order of the screen. Those of a lower rank take precedence where there is not
/// room for all.
const COLUMNS: [(u16, Column); 10] = [
    (
        0,
        Column {
            title: "per s",
            width: 9,
            text: |e, r| one(rate(e, r)),
        },
    ),
    (
        5,
        Column {
            title: "n",
            width: 11,
            text: |e, _| one(figures::short_count(e.interval.count)),
        },
    ),
    (
        0,
        Column {
            title: "mean",
            width: ESTIMATE,
            text: |e, _| two(e.interval.mean.as_ref()),
        },
    ),
    (
        1,
        Column {
            title: "median",
            width: ESTIMATE,
            text: |e, _| two(e.interval.median.as_ref()),
        },
    ),
    (
        3,
        Column {
            title: "90 %",
            width: ESTIMATE,
            text: |e, _| quantile(e, "0.9"),
        },
    ),
    (
        0,
        Column {
            title: "99 %",
            width: ESTIMATE,
            text: |e, _| quantile(e, "0.99"),
        },
    ),
    (
        4,
        Column {
            title: "99.9 %",
            width: ESTIMATE,
            text: |e, _| quantile(e, "0.999"),
        },
    ),
    (
        6,
        Column {
            title: "min",
            width: 9,
            text: |e, _| one(extreme(e.interval.statistics.min)),
        },
    ),
    (
        2,
        Column {
            title: "max",
            width: 9,
            text: |e, _| one(extreme(e.interval.statistics.max)),
        },
    ),
    (
        7,
        Column {
            title: "dropped",
            width: 8,
            text: |e, _| one(culled(e)),
        },
    ),
];

fn one(text: String) -> [String; 2] {
    [text, String::new()]
}

fn two(estimate: Option<&Estimate>) -> [String; 2] {
    estimate.map_or_else(
        || one("-".to_owned()),
        |estimate| {
            let figure = figure(estimate);
            [figure.value_and_unit(), figure.interval()]
        },
    )
}

fn quantile(entry: &Entry, of: &str) -> [String; 2] {
    two(entry.interval.quantiles.get(of))
}

fn extreme(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".to_owned(), figures::duration)
}

fn culled(entry: &Entry) -> String {
    match entry.interval.count + entry.interval.culled.count {
        0 => "-".to_owned(),
        _ => figures::per_cent(entry.interval.culled.share),
    }
}

/// Rate of occurrence. Where only a part was analysed or recorded, that part stands for the whole.
fn rate(entry: &Entry, recent: &Recent) -> String {
    let about = if recent.looked_share < 0.999 || entry.interval.sampled.is_some() {
        "~"
    } else {
        ""
    };
    let rate = per_second(entry.per_s);
    format!("{about}{}", rate.trim_end_matches("/s").trim_end())
}

/// The columns that fit, and the width that is left for the name.
fn that_fit(width: u16) -> (Vec<Column>, u16) {
    let up_to = |most: u16| {
        let with = COLUMNS.iter().filter(|(rank, _)| *rank <= most);
        let with: Vec<Column> = with.map(|(_, column)| *column).collect();
        let taken: u16 = with.iter().map(|column| column.width + 1).sum();
        (with, width.saturating_sub(taken))
    };
    // More figures also need longer names.
    (1..=7)
        .rev()
        .map(|most| (up_to(most), (NAME + 4 * (most - 1)).min(LONG_NAME)))
        .find(|((_, name), wanted)| name >= wanted)
        .map_or_else(|| up_to(0), |(fit, _)| fit)
}

pub(super) fn table(
    frame: &mut Frame<'_>,
    area: Rect,
    entries: &[&Entry],
    recent: &Recent,
    state: &State,
) {
    let (columns, name) = that_fit(area.width);
    let right = |text: String, width: u16| {
        Line::raw(shorten(&text.replace('\u{a0}', " "), usize::from(width))).right_aligned()
    };
    let level = figures::per_cent(recent.confidence).replace('\u{a0}', " ");
    let title = format!("span [{level}]");
    let titles = columns
        .iter()
        .map(|c| Cell::new(right(c.title.to_owned(), c.width)));
    let header = Row::new(std::iter::once(Cell::new(title)).chain(titles));
    let fit = usize::from(area.height.saturating_sub(1) / 2).max(1);
    let above = state.above.min(entries.len().saturating_sub(fit));
    let rows = entries.iter().skip(above).take(fit).map(|entry| {
        let title = clean(&entry.interval.name);
        let title = match entry.is_cut() {
            true => format!("†{}", shorten(&title, usize::from(name) - 1)),
            false => shorten(&title, usize::from(name)),
        };
        let figures = columns.iter().map(|column| {
            let lines = (column.text)(entry, recent).map(|text| right(text, column.width));
            let [value, interval] = lines;
            Cell::new(Text::from(vec![value, interval.style(Style::new().dim())]))
        });
        Row::new(std::iter::once(Cell::new(title.bold())).chain(figures)).height(2)
    });
    let widths = std::iter::once(Constraint::Length(name)).chain(
        columns
            .iter()
            .map(|column| Constraint::Length(column.width)),
    );
    let table = Table::new(rows, widths)
        .header(header.underlined())
        .column_spacing(1);
    frame.render_widget(table, area);
    let hidden = entries.len().saturating_sub(fit);
    if hidden > 0 {
        // If the header has room, the name's column shows which of all entries are visible.
        let (first, last, all) = (above + 1, above + fit, entries.len());
        let text = format!("{first}-{last} of {all} [{level}]");
        let place = Rect {
            width: name,
            height: 1,
            ..area
        };
        let text = shorten(&text, usize::from(name));
        frame.render_widget(Line::raw(text).underlined(), place);
    }
}
