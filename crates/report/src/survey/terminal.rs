//! A survey on a terminal: a table for each group.

use undertick_document::figures;
use undertick_units::Estimate;

use super::{Host, Metric, Survey};
use crate::first_screen::{FirstScreen, Group};
use crate::remarks::{number_of, unix_date};
use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::{clean, wrap};

/// Minimum number of columns that the tables fit in.
const FEWEST_COLUMNS: usize = 60;
/// Maximum number of CPUs with one line each; with more, only the slowest and the fastest are
/// shown.
const MOST_CPUS: usize = 8;

/// The survey as text in at most `columns` columns. Ends with a line break.
#[must_use]
pub fn render(survey: &Survey, columns: usize) -> String {
    let columns = columns.max(FEWEST_COLUMNS);
    let mut parts = vec![wrap(&heading(survey), columns, 2)];
    for (group, title) in survey.groups() {
        parts.push(table(title, &shown(survey, group), columns));
    }
    parts.push(wrap(&legend(survey), columns, 0));
    let missing = survey.missing.iter().map(|missing| {
        let line = format!(
            "not measured: {}: {}",
            clean(&missing.id),
            clean(&missing.why)
        );
        wrap(&line, columns, 2)
    });
    let warnings = (survey.warnings.iter())
        .map(|warning| wrap(&format!("warning: {}", clean(&warning.text)), columns, 2));
    let end: Vec<String> = missing.chain(warnings).collect();
    if !end.is_empty() {
        parts.push(end.join("\n"));
    }
    parts.join("\n\n").replace('\u{a0}', " ") + "\n"
}

/// The survey on one screen: as many figures of each group as fit.
#[must_use]
pub fn first_screen(survey: &Survey, columns: usize) -> String {
    let figures =
        |metric: &Metric| format!("{} {}", clean(&metric.name), figure(&metric.estimate).0);
    let groups = survey.groups().into_iter().map(|(group, title)| Group {
        title: clean(title),
        figures: shown(survey, group).into_iter().map(figures).collect(),
    });
    let missing = survey.missing.iter().map(|missing| {
        format!(
            "not measured: {}: {}",
            clean(&missing.id),
            clean(&missing.why)
        )
    });
    let warnings = survey.warnings.iter().map(|warning| clean(&warning.text));
    FirstScreen {
        heading: vec![heading(survey)],
        table: String::new(),
        groups: groups.collect(),
        notes: warnings.chain(missing).collect(),
        more: "--full (every figure with its interval)  --json (for compare)  --html FILE",
    }
    .text(columns.max(FEWEST_COLUMNS))
}

fn heading(survey: &Survey) -> String {
    format!(
        "Survey of {}, {}, {:.0} s{}",
        machine(&survey.host),
        unix_date((survey.begun_unix_s * 1e9) as i64),
        survey.took_s,
        if survey.interrupted {
            "; interrupted: what was complete by then"
        } else {
            ""
        }
    )
}

/// The machine in a few words.
pub(crate) fn machine(host: &Host) -> String {
    let or = |text: &str, other: &str| match text.is_empty() {
        true => other.to_owned(),
        false => clean(text),
    };
    let mut parts = vec![
        number_of(u64::from(host.cpus), "CPU"),
        or(&host.cpu_model, "CPU model not known"),
    ];
    parts.extend(host.memory_bytes.map(memory));
    // A trace records neither memory nor hypervisor.
    parts.extend(match (&host.hypervisor, host.memory_bytes) {
        (Some(name), _) => Some(format!("a guest of {}", clean(name))),
        (None, Some(_)) => Some("no hypervisor seen".to_owned()),
        (None, None) => None,
    });
    parts.push(format!("Linux {}", clean(&host.kernel)));
    if !host.clock.is_empty() {
        parts.push(format!("clock {}", clean(&host.clock)));
    }
    if !host.tool_version.is_empty() {
        parts.push(format!("Undertick {}", clean(&host.tool_version)));
    }
    format!(
        "{} ({})",
        or(&host.name, "a host without a name"),
        parts.join(", ")
    )
}

fn memory(bytes: u64) -> String {
    let gib = bytes as f64 / (1_u64 << 30) as f64;
    match gib {
        gib if gib >= 10.0 => format!("{gib:.0} GiB"),
        gib => format!("{gib:.1} GiB"),
    }
}

/// The metrics of a group that get a row; those of single CPUs do not all get one.
fn shown<'a>(survey: &'a Survey, group: &'a str) -> Vec<&'a Metric> {
    let all: Vec<&Metric> = survey.group(group).collect();
    let of_cpus = all.iter().filter(|m| m.cpu.is_some()).count();
    if of_cpus <= MOST_CPUS {
        return all;
    }
    all.into_iter().filter(|m| m.cpu.is_none()).collect()
}

/// A row for each metric.
pub(crate) fn columns<'a>(metrics: &[&Metric]) -> Columns<'a, &'a Metric> {
    let columns = Columns::<&Metric>::new()
        .column("what", |m| Cell::About(&m.name, (&m.includes).into()))
        .words()
        .column("figure", |m| Cell::Figure(figure(&m.estimate).0))
        .column("interval", |m| Cell::text(figure(&m.estimate).1))
        .column("n", |m| Cell::text(figures::short_count(m.estimate.n)));
    if metrics.iter().all(|m| m.once_a_second.is_none()) {
        return columns;
    }
    columns
        .column("once a s", |m| {
            (m.once_a_second.as_ref()).map_or(Cell::Absent, |tail| Cell::Duration(tail.value))
        })
        .on_page("once a second")
}

fn table(title: &str, metrics: &[&Metric], room: usize) -> String {
    let table = draw(&columns(metrics), metrics.iter().copied(), room);
    format!("{}\n{table}", clean(title))
}

fn legend(survey: &Survey) -> String {
    format!(
        "[lo, hi]: {} interval from the scatter between repetitions, each in processes of its own. What a \
         figure includes is in --html and --json. once a s: what is exceeded once a second on average.",
        figures::per_cent(survey.confidence)
    )
}

/// A figure and its interval as text: a unit that [`figures`] does not know is appended.
pub(crate) fn figure(estimate: &Estimate) -> (String, String) {
    let figure = figures::figure(estimate);
    let value = match estimate.unit.as_str() {
        "ns" | "1/s" | "1" | "" => figure.value_and_unit(),
        "1e-6" => format!("{}\u{a0}ppm", figure.value),
        other => format!("{}\u{a0}{}", figure.value, clean(other)),
    };
    (value, figure.interval())
}
