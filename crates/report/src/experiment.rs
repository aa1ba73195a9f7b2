//! The report of an experiment on a terminal: a table for each setting.

mod screen;

use comfy_table::CellAlignment;
use undertick_document::figures::{self, figure};
use undertick_document::{IntervalReport, LineReport, Repeated, Report};

use crate::remarks;
use crate::repeated::{belongs, values};
use crate::table::terminal::new_table;
use crate::text::{clean, wrap};

pub use screen::{first_screen, primitives_first_screen};

/// Minimum number of columns that the tables fit in.
const FEWEST_COLUMNS: usize = 60;

/// Every setting, followed by the notes on its figures.
#[must_use]
pub fn render(report: &Report, columns: usize) -> String {
    let columns = columns.max(FEWEST_COLUMNS);
    let mut text = String::new();
    for these in (report.intervals).chunk_by(|a, b| setting(a) == setting(b)) {
        text.push_str(&one_setting(these, columns));
        text.push('\n');
    }
    text.push_str(&lines(&report.lines, columns));
    text.push_str(&end(report, columns));
    text.replace('\u{a0}', " ")
}

/// What the columns mean, and the caveats.
fn end(report: &Report, columns: usize) -> String {
    let legend = format!(
        "[lo, hi]: {} interval of the middle repetition, from the scatter between repetitions, each in \
         processes of its own. The null step is taken off every figure; (zero check): a null step less \
         another, 0 if stepping costs the same everywhere. n: samples in all repetitions. once a s: what is \
         exceeded once a second on average.",
        figures::per_cent(report.settings.confidence)
    );
    let mut text = wrap(&legend, columns, 0);
    text.push('\n');
    for warning in &report.warnings {
        text.push_str(&wrap(
            &format!("warning: {}", clean(&warning.text)),
            columns,
            2,
        ));
        text.push('\n');
    }
    text
}

/// What the intervals of one setting have in common: script and parameters.
fn setting(interval: &IntervalReport) -> Option<(&str, Vec<(&String, &String)>)> {
    let repeated = interval.repeated.as_ref()?;
    Some((&repeated.script, repeated.parameters.iter().collect()))
}

fn one_setting(intervals: &[IntervalReport], columns: usize) -> String {
    let mut table = new_table(columns);
    table.set_header([
        "process", "step", "what", "time", "interval", "of", "n", "runs", "once a s",
    ]);
    for interval in intervals {
        let Some(repeated) = &interval.repeated else {
            continue;
        };
        let typical = figure(&repeated.typical);
        table.add_row([
            clean(&repeated.process),
            repeated.step.map_or(String::new(), |n| n.to_string()),
            clean(&interval.name),
            typical.value_and_unit(),
            typical.interval(),
            repeated.typical_is.clone(),
            figures::short_count(interval.count),
            match repeated.repetitions.len() {
                0 => String::new(),
                n => n.to_string(),
            },
            (repeated.largest_per_second.as_ref())
                .map_or(String::new(), |largest| figures::duration(largest.value)),
        ]);
    }
    for column in [1, 3, 4, 6, 7, 8] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = intervals
        .first()
        .and_then(|i| i.repeated.as_ref())
        .map_or(String::new(), |repeated| wrap(&title(repeated), columns, 2));
    text.push('\n');
    text.push_str(&table.to_string());
    text.push('\n');
    for line in modes(intervals) {
        text.push_str(&wrap(&line, columns, 4));
        text.push('\n');
    }
    text
}

fn title(repeated: &Repeated) -> String {
    let values: Vec<String> = (repeated.parameters.iter())
        .map(|(name, value)| format!("{} = {}", clean(name), clean(value)))
        .collect();
    let values = match values.is_empty() {
        true => String::new(),
        false => format!(", {}", values.join(", ")),
    };
    format!(
        "{}{values} ({})",
        clean(&repeated.script),
        clean(&repeated.placement)
    )
}

/// Notes on the intervals with several modes, which one figure does not describe.
fn modes(intervals: &[IntervalReport]) -> Vec<String> {
    (intervals.iter())
        .filter_map(|interval| {
            let modes = remarks::modes(interval)?;
            let of = interval.repeated.as_ref().map_or(String::new(), belongs);
            Some(format!("  {} ({of}): {modes}", clean(&interval.name)))
        })
        .collect()
}

/// The table of the slopes.
fn lines(lines: &[LineReport], columns: usize) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut table = new_table(columns);
    table.set_header([
        "line",
        "with",
        "slope",
        "interval",
        "at 0",
        "points",
        "fits within",
    ]);
    for line in lines {
        let (slope, intercept) = (figure(&line.slope), figure(&line.intercept));
        table.add_row([
            clean(&line.name),
            values(&line.parameters),
            slope.value_and_unit(),
            slope.interval(),
            format!("{} {}", intercept.value_and_unit(), intercept.interval()),
            line.points.to_string(),
            fits(line),
        ]);
    }
    format!("{table}\n\n")
}

/// How far the points are from the line; "no line" if chance does not explain that.
fn fits(line: &LineReport) -> String {
    let (Some(p), Some(share)) = (line.lack_of_fit_p, line.worst_share) else {
        return String::new();
    };
    let within = figures::per_cent(share);
    match p < BENT {
        true => format!("{within}, bent (p {p:.1e})"),
        false => within,
    }
}

/// Below this probability of points as far from a line as these, they are not on a line.
const BENT: f64 = 0.01;

/// All primitives: a table for each group, what the figures include, and the slopes.
#[must_use]
pub fn primitives(report: &Report, columns: usize) -> String {
    let columns = columns.max(FEWEST_COLUMNS);
    let named: Vec<(&IntervalReport, &Repeated)> = (report.intervals.iter())
        .filter_map(|i| Some((i, i.repeated.as_ref().filter(|r| !r.includes.is_empty())?)))
        .collect();
    let mut text = String::new();
    for these in named.chunk_by(|(_, a), (_, b)| a.script == b.script) {
        text.push_str(&group(these, columns));
        text.push('\n');
    }
    text.push_str(&lines(&report.lines, columns));
    text.push_str(&end(report, columns));
    text.replace('\u{a0}', " ")
}

fn group(these: &[(&IntervalReport, &Repeated)], columns: usize) -> String {
    let mut table = new_table(columns);
    table.set_header(["what", "with", "time", "interval", "of", "n", "once a s"]);
    let mut includes: Vec<(&str, &str)> = Vec::new();
    for (interval, repeated) in these {
        let typical = figure(&repeated.typical);
        table.add_row([
            clean(&interval.name),
            values(&repeated.parameters),
            typical.value_and_unit(),
            typical.interval(),
            repeated.typical_is.clone(),
            figures::short_count(interval.count),
            (repeated.largest_per_second.as_ref())
                .map_or(String::new(), |largest| figures::duration(largest.value)),
        ]);
        if !includes.iter().any(|(name, _)| *name == interval.name) {
            includes.push((&interval.name, &repeated.includes));
        }
    }
    for column in [2, 3, 5, 6] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let title = these.first().map_or("", |(_, r)| r.title.as_str());
    let mut text = format!(
        "{} ({})\n{table}\n",
        clean(title),
        clean(&these[0].1.script)
    );
    for (name, what) in includes {
        let line = format!("  {}: {}", clean(name), clean(what));
        text.push_str(&wrap(&line, columns, 4));
        text.push('\n');
    }
    let intervals: Vec<IntervalReport> = these.iter().map(|(i, _)| (*i).clone()).collect();
    for line in modes(&intervals) {
        text.push_str(&wrap(&line, columns, 4));
        text.push('\n');
    }
    text
}
