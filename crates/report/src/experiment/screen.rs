//! The first screen of `undertick run` and of `undertick primitives`.

use std::collections::BTreeSet;

use undertick_document::figures::{self, figure};
use undertick_document::{IntervalReport, Repeated, Report};

use super::{FEWEST_COLUMNS, lines, modes, setting, title};
use crate::first_screen::{FirstScreen, Group};
use crate::remarks::number_of;
use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::clean;

/// The most steps in the table.
const STEPS: usize = 22;

/// An experiment on one screen: each step over all settings.
#[must_use]
pub fn first_screen(report: &Report, columns: usize) -> String {
    let columns = columns.max(FEWEST_COLUMNS);
    let steps = steps(report);
    let mut table = draw(&columns_of_steps(), steps.iter().take(STEPS), columns);
    match steps.len().saturating_sub(STEPS) {
        0 => {}
        n => table.push_str(&format!("\nand {n} more")),
    }
    let slopes = lines(&report.lines, columns);
    if report.lines.len() <= 6 {
        table = format!("{table}\n\n{slopes}");
    }
    FirstScreen {
        heading: vec![heading(report)],
        table,
        groups: Vec::new(),
        notes: notes(report),
        more: "--full (every setting, modes, what the columns mean)  --json  --html FILE",
    }
    .text(columns)
}

/// All primitives on one screen: each over all its settings.
#[must_use]
pub fn primitives_first_screen(report: &Report, columns: usize) -> String {
    let named = |interval: &&IntervalReport| {
        let repeated = interval.repeated.as_ref();
        repeated.is_some_and(|repeated| !repeated.includes.is_empty())
    };
    let all: Vec<&IntervalReport> = report.intervals.iter().filter(named).collect();
    let mut groups: Vec<(&str, Vec<Step<'_>>)> = Vec::new();
    for interval in all {
        let Some(repeated) = &interval.repeated else {
            continue;
        };
        let at = match groups
            .iter()
            .position(|(script, _)| *script == repeated.script)
        {
            Some(at) => at,
            None => {
                groups.push((&repeated.script, Vec::new()));
                groups.len() - 1
            }
        };
        add(&mut groups[at].1, interval, repeated, |step| {
            step.name == interval.name
        });
    }
    let groups = groups.iter().map(|(script, steps)| Group {
        title: clean(script),
        figures: (steps.iter())
            .map(|step| format!("{} {}", clean(step.name), step.range()))
            .collect(),
    });
    FirstScreen {
        heading: vec![heading(report)],
        table: String::new(),
        groups: groups.collect(),
        notes: report.warnings.iter().map(|w| clean(&w.text)).collect(),
        more: "--full (each setting with its interval, what it includes, slopes)  --only GROUP  --json",
    }
    .text(columns.max(FEWEST_COLUMNS))
}

/// A step over all settings that have it.
struct Step<'a> {
    process: &'a str,
    number: Option<u32>,
    name: &'a str,
    least: &'a Repeated,
    most: &'a Repeated,
    count: u64,
    settings: usize,
}

impl Step<'_> {
    /// Its figure, or the least and the largest over the settings.
    fn range(&self) -> String {
        let [least, most] = [self.least, self.most].map(|of| figure(&of.typical));
        let (least, most) = (least.value_and_unit(), most.value_and_unit());
        if least == most {
            return least;
        }
        // Of one unit, it is written once.
        match (least.split_once('\u{a0}'), most.split_once('\u{a0}')) {
            (Some((value, one)), Some((_, other))) if one == other => format!("{value}..{most}"),
            _ => format!("{least}..{most}"),
        }
    }

    /// The interval of the figure, of one setting alone.
    fn interval(&self) -> String {
        match self.settings {
            1 => figure(&self.least.typical).interval(),
            _ => String::new(),
        }
    }

    /// The parameters in which the least and the largest differ.
    fn places(&self) -> String {
        let of = |these: &Repeated, others: &Repeated| -> String {
            let differing = these
                .parameters
                .iter()
                .filter(|(name, value)| others.parameters.get(*name) != Some(*value));
            let words = differing.map(|(name, value)| format!("{} {}", clean(name), clean(value)));
            words.collect::<Vec<_>>().join(", ")
        };
        let (least, most) = (of(self.least, self.most), of(self.most, self.least));
        match least == most {
            true => String::new(),
            false => format!("{least} .. {most}"),
        }
    }
}

fn add<'a>(
    steps: &mut Vec<Step<'a>>,
    interval: &'a IntervalReport,
    repeated: &'a Repeated,
    is_it: impl Fn(&Step<'_>) -> bool,
) {
    let Some(step) = steps.iter_mut().find(|step| is_it(step)) else {
        steps.push(Step {
            process: &repeated.process,
            number: repeated.step,
            name: &interval.name,
            least: repeated,
            most: repeated,
            count: interval.count,
            settings: 1,
        });
        return;
    };
    step.count += interval.count;
    step.settings += 1;
    if repeated.typical.value < step.least.typical.value {
        step.least = repeated;
    }
    if repeated.typical.value > step.most.typical.value {
        step.most = repeated;
    }
}

/// Every step, pass and interval of the scripts, in their order.
fn steps(report: &Report) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for interval in &report.intervals {
        let Some(repeated) = &interval.repeated else {
            continue;
        };
        let key = (
            &repeated.script,
            &repeated.process,
            repeated.step,
            &interval.name,
        );
        add(&mut steps, interval, repeated, |step| {
            (&step.least.script, step.process, step.number, step.name)
                == (key.0, key.1.as_str(), key.2, key.3.as_str())
        });
    }
    steps
}

fn columns_of_steps<'a>() -> Columns<'a, &'a Step<'a>> {
    Columns::<&Step<'_>>::new()
        .column("process", |step| Cell::text(clean(step.process)))
        .words()
        .column("step", |step| {
            Cell::text(step.number.map_or_else(String::new, |n| n.to_string()))
        })
        .column("what", |step| Cell::Name(step.name))
        .words()
        .column("time", |step| Cell::text(step.range()))
        .column("interval", |step| Cell::text(step.interval()))
        .column("n", |step| Cell::text(figures::short_count(step.count)))
        .column("least .. most at", |step| Cell::text(step.places()))
        .words()
}

/// What was performed.
fn heading(report: &Report) -> String {
    let intervals = || report.intervals.iter().filter(|i| i.repeated.is_some());
    let scripts: BTreeSet<&str> = (intervals().filter_map(|i| i.repeated.as_ref()))
        .map(|repeated| repeated.script.as_str())
        .collect();
    let settings: BTreeSet<_> = intervals().filter_map(setting).collect();
    let repetitions = (intervals().filter_map(|i| i.repeated.as_ref()))
        .map(|repeated| repeated.repetitions.len())
        .max();
    let what = match (scripts.len(), settings.len(), intervals().next()) {
        (_, 1, Some(first)) => first.repeated.as_ref().map_or_else(String::new, title),
        (1, n, _) => format!(
            "{}: {}",
            scripts.iter().map(|s| clean(s)).collect::<String>(),
            number_of(n as u64, "setting")
        ),
        (scripts, settings, _) => format!(
            "{} in {}",
            number_of(settings as u64, "setting"),
            number_of(scripts as u64, "group")
        ),
    };
    format!(
        "{what}, {}, each in fresh processes; clock {}; intervals of {} from the scatter between repetitions",
        number_of(repetitions.unwrap_or(0) as u64, "repetition"),
        clean(&report.trace.clock.name),
        figures::per_cent(report.settings.confidence)
    )
}

/// Warnings first: what could not be performed as asked. Then the figures that have several modes.
fn notes(report: &Report) -> Vec<String> {
    let warnings = report.warnings.iter().map(|warning| clean(&warning.text));
    warnings
        .chain(
            modes(&report.intervals)
                .into_iter()
                .map(|line| line.trim().to_owned()),
        )
        .collect()
}
