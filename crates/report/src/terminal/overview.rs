//! The first screen: where the time went, why it varies, and how sure that is.

mod tree;

use undertick_document::{Report, Tasks, figures, without_impossible};

use crate::findings;
use crate::remarks;
use crate::table::terminal::draw;
use crate::text::{clean, columns, shorten, wrap};

/// Most rows of its table.
const MOST_ROWS: usize = 14;
/// Rows that it has even beside tasks.
const FEWEST_ROWS: usize = 6;

/// Columns from which the table of tasks has all columns.
const WIDE: usize = 90;
/// Most names of tasks.
const MOST_TASKS: usize = 4;

/// Lines of the screen, as far as the fewest findings leave that much.
const LINES: usize = 25;
const FEWEST_FINDINGS: usize = 3;

/// Columns for the program; one with longer arguments goes without them.
const PROGRAM_COLUMNS: usize = 22;

/// Which spans an overview lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spans {
    /// By path: each below the one around it.
    Tree,
    /// By name.
    Flat,
}

/// What a paragraph is, by which a terminal distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Heading,
    /// A heading that says that events were lost.
    Alert,
    Text,
    /// What is not an answer: the titles of the table, and the last lines.
    Aside,
}

/// The first screen of a report.
#[derive(Clone, Debug)]
pub struct Screen(Vec<(Role, String)>);

impl Screen {
    /// The text, which ends with a line break.
    #[must_use]
    pub fn plain(&self) -> String {
        self.written(|_, line| line.to_owned())
    }

    /// The text for a terminal that understands the escape sequences of ECMA-48 (SGR).
    #[must_use]
    pub fn coloured(&self) -> String {
        self.written(|role, line| {
            let style = match role {
                Role::Heading => "1",
                Role::Alert => "1;31",
                Role::Aside => "2",
                Role::Text => return line.to_owned(),
            };
            match line.is_empty() {
                true => String::new(),
                false => format!("\u{1b}[{style}m{line}\u{1b}[0m"),
            }
        })
    }

    /// The lines as `style` writes them. Before that, nothing in them is an escape sequence.
    fn written(&self, style: impl Fn(Role, &str) -> String) -> String {
        let mut screen = String::new();
        for (role, paragraph) in &self.0 {
            let paragraph = paragraph.replace('\u{a0}', " ");
            for line in undertick_text::clean_lines(&paragraph).split('\n') {
                screen.push_str(&style(*role, line));
                screen.push('\n');
            }
        }
        screen
    }
}

/// The first screen of a report, within `columns`.
#[must_use]
pub fn overview(report: &Report, spans: Spans, columns: usize) -> Screen {
    let report = &without_impossible(report.clone());
    let columns = columns.max(super::FEWEST_COLUMNS);
    let wrapped = |text: &str| wrap(text, columns, 2);
    let first = match report.trace.lost {
        0 => Role::Heading,
        _ => Role::Alert,
    };
    let mut screen = vec![
        (first, wrapped(&heading(report))),
        (Role::Text, String::new()),
    ];
    let tasks = (report.tasks.as_ref()).map_or_else(Vec::new, |all| tasks(all, columns));
    let rows = MOST_ROWS.saturating_sub(tasks.len()).max(FEWEST_ROWS);
    let mut table = tree::table(report, spans, rows, columns).into_iter();
    match table.next() {
        Some(titles) => screen.push((Role::Aside, titles)),
        None if report.tasks.is_some() => {}
        None => screen.push((
            Role::Text,
            wrapped("Nothing in the trace has a start and an end."),
        )),
    }
    screen.extend(table.map(|row| (Role::Text, row)));
    screen.extend(tasks);
    screen.extend(others(report, spans).map(|others| (Role::Text, wrapped(&others))));
    let findings = findings::findings(report);
    let mut findings: Vec<String> = findings.iter().map(|finding| wrapped(finding)).collect();
    let end = [sureness(report), more(report)].map(|text| wrapped(&text));
    let lines = |text: &str| text.split('\n').count();
    let mut used: usize = screen.iter().map(|(_, text)| lines(text)).sum();
    used += 1 + findings
        .iter()
        .chain(&end)
        .map(|text| lines(text))
        .sum::<usize>();
    // The first ones weigh most.
    while used > LINES && findings.len() > FEWEST_FINDINGS {
        used -= findings.pop().map_or(0, |finding| lines(&finding));
    }
    screen.extend((!findings.is_empty()).then(|| (Role::Text, String::new())));
    screen.extend(findings.into_iter().map(|finding| (Role::Text, finding)));
    screen.extend(end.map(|text| (Role::Aside, text)));
    Screen(screen)
}

/// What was recorded, in a sentence.
fn heading(report: &Report) -> String {
    let trace = &report.trace;
    let program = match &trace.command[..] {
        [] => "a trace".to_owned(),
        [program, arguments @ ..] => {
            let name = program.rsplit('/').next().unwrap_or(program);
            let whole = [&[name.to_owned()], arguments].concat().join(" ");
            match columns(&whole) {
                ..=PROGRAM_COLUMNS => whole,
                _ => name.to_owned(),
            }
        }
    };
    let mut parts = Vec::new();
    if let Some(runs) = report.runs {
        parts.push(remarks::number_of(runs, "run"));
    }
    if let Some(ns) = trace.events_span_ns {
        parts.push(figures::duration(ns));
    }
    let threads = remarks::number_of(trace.threads, "thread");
    parts.push(match trace.processes {
        0 | 1 => threads,
        n => format!("{threads} in {}", remarks::number_of(n, "process")),
    });
    if let Some(share) = share_in_spans(report) {
        parts.push(format!("{} in spans", figures::per_cent(share)));
    }
    parts.push(format!("{} events", figures::three_digits(trace.events)));
    parts.push(match trace.lost {
        0 => "none lost".to_owned(),
        lost => format!("{} LOST", figures::short_count(lost)),
    });
    parts.push(format!(
        "clock {} {}",
        clean(&trace.clock.name),
        figures::duration(trace.clock.granularity_ns)
    ));
    format!(
        "{}: {}",
        shorten(&clean(&program), PROGRAM_COLUMNS),
        parts.join(", ")
    )
}

/// The time of the outermost spans, of that of all threads; `None` where either is unknown.
fn share_in_spans(report: &Report) -> Option<f64> {
    let threads = report.trace.events_span_ns? * report.trace.threads as f64;
    let spans = findings::whole_ns(report)?;
    (spans <= threads).then(|| spans / threads)
}

/// The tasks by name, the longest total lifetime first.
fn tasks(tasks: &Tasks, columns: usize) -> Vec<(Role, String)> {
    let shown = tasks.rows.iter().take(MOST_TASKS);
    let table = match columns {
        ..WIDE => draw(&crate::tasks::lives(columns / 4), shown, columns),
        _ => draw(&crate::tasks::columns(), shown, columns),
    };
    let mut lines: Vec<(Role, String)> = (table.lines())
        .map(|line| (Role::Text, line.to_owned()))
        .collect();
    match tasks.rows.len().saturating_sub(MOST_TASKS) {
        0 => {}
        more => lines.push((
            Role::Aside,
            format!(
                "and {}: undertick tasks",
                remarks::number_of(more as u64, "more name")
            ),
        )),
    }
    lines.insert(0, (Role::Text, String::new()));
    lines
}

/// Intervals that have no place in a tree, and how often events came.
fn others(report: &Report, spans: Spans) -> Option<String> {
    let is_of_task = |name: &str| (report.tasks.iter()).any(|tasks| tasks.have_event(name));
    let has_tree = spans == Spans::Tree && !report.paths.is_empty();
    let apart = (report.intervals.iter())
        .filter(|interval| has_tree && !interval.kind.is_span())
        .count();
    let mut parts: Vec<String> = (report.frequencies.iter())
        .filter(|events| {
            !report
                .intervals
                .iter()
                .any(|interval| interval.name == events.name)
        })
        .filter(|events| !is_of_task(&events.name))
        .filter_map(|events| {
            let rate = figures::figure(events.per_second.as_ref()?).value_and_unit();
            Some(format!("{} {rate}", shorten(&clean(&events.name), 40)))
        })
        .take(3)
        .collect();
    if apart > 0 {
        let others = remarks::number_of(apart as u64, "interval");
        parts.push(format!("{others} between single events: --flat"));
    }
    (!parts.is_empty()).then(|| format!("events: {}", parts.join(", ")))
}

/// Which question the figures answer.
fn sureness(report: &Report) -> String {
    let within = (report.paths.iter())
        .filter(|path| path.parent.is_none())
        .filter_map(|path| path.total.as_ref())
        .fold((0.0, 0.0), |(sum, half), total| {
            let own = total.interval.half_width().unwrap_or(0.0);
            (sum + total.value, half + own)
        });
    let exact = match within {
        (sum, half) if sum > 0.0 && half >= sum => "with totals whose intervals reach 0".to_owned(),
        (sum, half) if sum > 0.0 && half > 0.01 * sum => {
            format!("within {}", figures::per_cent(half / sum))
        }
        (sum, _) if sum > 0.0 => "within 1 %".to_owned(),
        _ => "as its clock showed it".to_owned(),
    };
    let another = match report.runs {
        Some(runs) if runs > 1 => "what a repetition gives, with intervals: --full".to_owned(),
        _ => "another run may differ by more: record --runs 5 shows by how much".to_owned(),
    };
    format!("Of this recording, {exact}; {another}.")
}

/// Where more is.
fn more(report: &Report) -> String {
    let hidden = match report.warnings.len() {
        0 => String::new(),
        1 => " (1 warning)".to_owned(),
        n => format!(" ({n} warnings)"),
    };
    format!(
        "More: --full{hidden}, --flat, --html FILE, --json, --spans; slow calls: undertick explain"
    )
}
