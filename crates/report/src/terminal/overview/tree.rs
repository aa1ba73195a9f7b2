//! The table of an overview: spans by path or by name, the longest first.

use undertick_document::{IntervalReport, PathReport, Report, figures};
use undertick_units::Estimate;

use super::Spans;
use crate::findings::{at_least, at_most, path_label};
use crate::text::{clean, columns as width, shorten};

/// Fewest columns for a name.
const NAME_COLUMNS: usize = 20;
/// Share of the whole below which a row is not worth its line.
const LEAST_SHARE: f64 = 0.001;

/// A row: a span, and its figures in the order of [`HEADINGS`].
struct Row {
    label: String,
    cells: Vec<String>,
}

/// The headings of the figures, and their rank where not all find room.
const HEADINGS: [(&str, u8); 8] = [
    ("share", 3),
    ("total", 1),
    ("self", 5),
    ("calls", 0),
    ("mean", 2),
    ("p50", 4),
    ("p99", 6),
    ("max", 7),
];

/// The lines of the table; none without a row.
pub(super) fn table(report: &Report, spans: Spans, most: usize, columns: usize) -> Vec<String> {
    let (rows, left_out) = match spans {
        Spans::Tree if !report.paths.is_empty() => of_paths(report, most),
        _ => of_intervals(report, most),
    };
    if rows.is_empty() {
        return Vec::new();
    }
    let mut lines = drawn(&rows, columns);
    if left_out > 0 {
        lines.push(format!("... and {left_out} shorter"));
    }
    lines
}

/// Rows by path, and the number of paths that have none.
fn of_paths(report: &Report, most: usize) -> (Vec<Row>, usize) {
    let paths = &report.paths;
    let is_shown = shown(paths, most);
    // Whether no later path that is shown has the same one around it.
    let mut is_last = vec![true; paths.len()];
    let mut later = vec![false; paths.len() + 1];
    for at in (0..paths.len()).filter(|&at| is_shown[at]).rev() {
        let around = paths[at].parent.map_or(0, |outer| outer as usize + 1);
        is_last[at] = !std::mem::replace(&mut later[around], true);
    }
    let rows = (0..paths.len())
        .filter(|&at| is_shown[at])
        .map(|at| {
            let mut branch = String::new();
            let mut here = at;
            while let Some(outer) = paths[here].parent {
                let part = match (branch.is_empty(), is_last[here]) {
                    (true, true) => "`- ",
                    (true, false) => "|- ",
                    (false, true) => "   ",
                    (false, false) => "|  ",
                };
                branch.insert_str(0, part);
                here = outer as usize;
            }
            row_of_path(&paths[at], report.most_self_ns(at), &branch)
        })
        .collect();
    (rows, is_shown.iter().filter(|shown| !**shown).count())
}

/// The longest paths, each with those around it.
fn shown(paths: &[PathReport], most: usize) -> Vec<bool> {
    let total = |at: usize| paths[at].total.as_ref().map_or(0.0, |total| total.value);
    let mut longest: Vec<usize> = (0..paths.len()).collect();
    longest.sort_by(|&a, &b| total(b).total_cmp(&total(a)).then(a.cmp(&b)));
    let mut is_shown = vec![false; paths.len()];
    let mut n = 0;
    for at in longest {
        // A path is as long as each of those inside it, so those around it are shown already.
        let outer = paths[at].parent.map(|outer| outer as usize);
        let has_place = outer.is_none_or(|outer| outer < at && is_shown[outer]);
        let is_worth_it = paths[at].share.unwrap_or(0.0) >= LEAST_SHARE || n == 0;
        if n < most && has_place && is_worth_it {
            is_shown[at] = true;
            n += 1;
        }
    }
    is_shown
}

/// `most_self_ns`: what the self time is at most, where only that is known.
fn row_of_path(path: &PathReport, most_self_ns: Option<f64>, branch: &str) -> Row {
    let half = (path.total.as_ref())
        .and_then(|total| total.interval.half_width())
        .unwrap_or(0.0);
    let sum = |ns: Option<f64>| ns.map(|ns| figures::duration_within(ns, half));
    let each =
        |ns: Option<f64>| ns.map(|ns| figures::duration_within(ns, half / path.outer_calls()));
    let recursive = match path.recursive_calls {
        0 => "",
        _ => " (recursive)",
    };
    let calls = path.threads.is_none().then_some(path.calls);
    // More happened while its points were off.
    let recorded = |figure: Option<String>| match path.is_switched {
        true => figure.map(|figure| at_least(&figure)),
        false => figure,
    };
    row(
        format!("{branch}{}{recursive}", path_label(path)),
        [
            path.share.map(figures::per_cent),
            recorded(sum(path.total.as_ref().map(|total| total.value))),
            sum(path.self_ns).or_else(|| most_self_ns.map(at_most)),
            recorded(calls.map(figures::short_count)),
            each(path.mean_ns()),
            each(path.median_ns),
            each(path.p99_ns),
            each(path.max_ns),
        ],
    )
}

/// Rows by name, and the number of names that have none.
fn of_intervals(report: &Report, most: usize) -> (Vec<Row>, usize) {
    let intervals = &report.intervals;
    let rows = intervals.iter().take(most).map(row_of_interval).collect();
    (rows, intervals.len().saturating_sub(most))
}

fn row_of_interval(interval: &IntervalReport) -> Row {
    let own = interval.of_this_run.as_ref();
    let figure = |own: Option<&Estimate>, other: Option<&Estimate>| {
        Some(figures::figure(own.or(other)?).value_and_unit())
    };
    row(
        clean(&interval.name),
        [
            None,
            interval.total_ns.map(figures::duration),
            None,
            Some(figures::short_count(
                interval.count.saturating_add(interval.culled.count),
            )),
            figure(
                own.and_then(|own| own.mean.as_ref()),
                interval.mean.as_ref(),
            ),
            figure(
                own.and_then(|own| own.median.as_ref()),
                interval.median.as_ref(),
            ),
            figure(
                own.and_then(|own| own.quantiles.get("0.99")),
                interval.quantiles.get("0.99"),
            ),
            interval.statistics.max.map(figures::duration),
        ],
    )
}

fn row(label: String, cells: [Option<String>; HEADINGS.len()]) -> Row {
    let cells = cells
        .into_iter()
        .map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
    Row {
        label,
        cells: cells.collect(),
    }
}

/// The rows below their headings, without the figures that no row has, and without the least
/// important ones where there is no room.
fn drawn(rows: &[Row], columns: usize) -> Vec<String> {
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|at| {
            let cells = rows.iter().map(|row| width(&row.cells[at]));
            cells.max().unwrap_or(0).max(HEADINGS[at].0.len())
        })
        .collect();
    let longest = rows.iter().map(|row| width(&row.label)).max().unwrap_or(0);
    let mut shown: Vec<usize> = (0..HEADINGS.len())
        .filter(|&at| rows.iter().any(|row| row.cells[at] != "-"))
        .collect();
    let taken = |shown: &[usize]| shown.iter().map(|&at| widths[at] + 2).sum::<usize>();
    while taken(&shown) + longest.min(NAME_COLUMNS) > columns {
        let Some(least) = (0..shown.len()).max_by_key(|&i| HEADINGS[shown[i]].1) else {
            break;
        };
        shown.remove(least);
    }
    let room = columns.saturating_sub(taken(&shown)).max(1);
    let name_width = longest.max("span".len()).min(room);
    let line = |label: &str, cell: &dyn Fn(usize) -> String| {
        let mut line = shorten(label, name_width);
        line.push_str(&" ".repeat(name_width.saturating_sub(width(&line))));
        for &at in &shown {
            let cell = cell(at);
            line.push_str(&" ".repeat(2 + widths[at].saturating_sub(width(&cell))));
            line.push_str(&cell);
        }
        line.trim_end().to_owned()
    };
    let heading = line("span", &|at| HEADINGS[at].0.to_owned());
    std::iter::once(heading)
        .chain((rows.iter()).map(|row| line(&row.label, &|at| row.cells[at].clone())))
        .collect()
}
