//! Reproduces *Timing test of New Traffic Controller*: the cost of each primitive of the scheduler
//! in its own script, on this kernel.

use undertick_document::Report;
use undertick_format::read::Trace;
use undertick_report::reproduce::{Reproduction, Table};

mod conclusions;
mod quantities;

use undertick_experiment::{Experiment, ExperimentError, Performed, primitives};
use undertick_meter::traffic::{Turn, turns};

use super::Run;
use super::compared::{Figures, ItemDescription, NOT_PERFORMED, cell, item, published, times};
use super::tables::words;
use quantities::{A_WAITER, NOTIFY, QUANTITIES};

/// The backends that wakeup, block and events can use.
const BACKENDS: [&str; 4] = ["futex", "eventfd", "pipe", "condvar"];
/// The shipped scripts, by their names in the report.
const ONE_CPU: &str = "traffic-one-cpu";
const TWO_CPUS: &str = "traffic-two-cpus";

/// The scripts to perform, shortened so that all together take about 15 s.
#[must_use]
pub fn scripts(run: Run, cpus: &[usize]) -> Vec<(String, String)> {
    let (passes, repetitions) = match run {
        Run::Full => (250, 6),
        Run::Quick => (60, 4),
    };
    let shorter = |text: &str| {
        text.replace("passes = 1000", &format!("passes = {passes}"))
            .replace("warm_up = 100", "warm_up = 20")
            .replace("repetitions = 8", &format!("repetitions = {repetitions}"))
    };
    let mut all = vec![(
        ONE_CPU.to_owned(),
        shorter(include_str!("../../../experiments/traffic-controller.toml")),
    )];
    if cpus.len() > 1 {
        all.push((
            TWO_CPUS.to_owned(),
            shorter(include_str!("../../../experiments/traffic-two-cpus.toml")),
        ));
    }
    let groups = ["wake", "notify", "events", "calls", "yield", "quantum"].map(str::to_owned);
    let groups = primitives::scripts(&groups, cpus).unwrap_or_default();
    all.extend(groups.into_iter().map(|(name, text)| {
        let text = text.replace("passes = 150", "passes = 60");
        (name, format!("repetitions = {repetitions}\n{text}"))
    }));
    all
}

/// One placement of the script's processes.
struct Placement {
    id: &'static str,
    script: &'static str,
    /// The placement as the primitives name it.
    place: &'static str,
    title: &'static str,
}

const PLACEMENTS: [Placement; 2] = [
    Placement {
        id: "same-cpu",
        script: ONE_CPU,
        place: "same cpu as A",
        title: "The script on one CPU, as published",
    },
    Placement {
        id: "other-cpu",
        script: TWO_CPUS,
        place: "other cpu than A",
        title: "The script on two CPUs",
    },
];

/// The measurements on this machine.
#[derive(Clone, Copy)]
struct Here<'a> {
    figures: Figures<'a>,
    turns: &'a [Turned],
}

/// Duration of a step by which process ran next, with the script and the backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Turned {
    /// Name of the script.
    pub script: String,
    /// The backend of wakeup and block.
    pub backend: String,
    /// The step.
    pub turn: Turn,
}

/// The turns of the traffic scripts, from the trace of [`scripts`].
///
/// # Errors
/// The trace cannot be read.
pub fn turned(
    experiment: &Experiment,
    performed: &Performed,
    trace: &Trace,
    level: f64,
) -> Result<Vec<Turned>, ExperimentError> {
    let turns = turns(experiment, performed, trace, level)?;
    Ok((turns.into_iter())
        .map(|turn| {
            let parameters = &experiment.setting(turn.setting).parameters;
            let backend = parameters.iter().find(|(name, _)| name == "backend");
            Turned {
                script: experiment.script_of(turn.setting).to_owned(),
                backend: backend.map_or_else(String::new, |(_, value)| value.clone()),
                turn,
            }
        })
        .collect())
}

fn of_steps<'a>(
    turns: &'a [Turned],
    script: &'a str,
    backend: &'a str,
    steps: &'a [(&'a str, u32)],
) -> impl Iterator<Item = &'a Turn> {
    (turns.iter())
        .filter(move |t| t.script == script && t.backend == backend)
        .map(|t| &t.turn)
        .filter(|turn| steps.contains(&(turn.process.as_str(), turn.number)))
}

/// Compares the published figures with those of a report of [`scripts`] and its turns.
#[must_use]
pub fn reproduction(report: &Report, turns: &[Turned]) -> Reproduction {
    let figures = Figures(report);
    let here = Here { figures, turns };
    let mut found = Reproduction {
        schema_version: 1,
        source: "traffic".to_owned(),
        title: "Rappaport, Spier, Timing test of New Traffic Controller".to_owned(),
        items: Vec::new(),
        tables: Vec::new(),
        plots: Vec::new(),
        findings: Vec::new(),
        interrupted: false,
    };
    let placements = PLACEMENTS
        .iter()
        .filter(|p| figures.intervals(p.script, &[]).next().is_some());
    for placement in placements {
        add_placement(&mut found, here, placement);
    }
    notify(&mut found, figures);
    quantum(&mut found, figures);
    if !PLACEMENTS
        .iter()
        .any(|p| p.id == "other-cpu" && figures.intervals(p.script, &[]).next().is_some())
    {
        found.findings.push(
            "The script was performed on one CPU only: there is no second one here.".to_owned(),
        );
    }
    found
        .findings
        .extend(conclusions::conclusions(&found.items, report, turns));
    found
}

fn add_placement(found: &mut Reproduction, here: Here<'_>, placement: &Placement) {
    let mut rows = Vec::new();
    for quantity in QUANTITIES {
        let printed = quantity.published.map_or("–", |p| p.printed);
        let mut row = vec![quantity.what.to_owned(), printed.to_owned()];
        row.push(
            quantity
                .formula
                .map_or_else(|| "–".to_owned(), |f| format!("{f:.0}")),
        );
        for backend in BACKENDS {
            let measured = quantity.source.measured(here, placement, backend);
            let description = ItemDescription {
                id: format!("traffic/{}/{backend}/{}", quantity.id, placement.id),
                quantity: format!("{}, {backend}, {}", quantity.what, placement.id),
                unit: "us",
                published: quantity.published,
                formula: quantity.formula,
                note: quantity.note.to_owned(),
            };
            let item = item(description, measured.as_ref(), NOT_PERFORMED);
            row.push(cell(measured.as_ref()));
            row.push(times(item.ratio));
            found.items.push(item);
        }
        rows.push(row);
    }
    let mut columns = words(&["quantity", "published, us", "by formula, us"]);
    for backend in BACKENDS {
        columns.extend([backend.to_owned(), "times".to_owned()]);
    }
    found.tables.push(Table {
        title: placement.title.to_owned(),
        text: vec![
            "times: published over measured, so many times faster it is here. By formula: the sum of the parts as \
             published. The null step is taken off."
                .to_owned(),
        ],
        columns,
        rows,
    });
}

/// The cost of notify against the number of waiters.
fn notify(found: &mut Reproduction, figures: Figures<'_>) {
    let mut rows = Vec::new();
    for backend in BACKENDS {
        let line = figures.line("notify", &[("backend", backend)]);
        let parts = [
            (
                "at-0",
                "notify, at 0 waiters",
                NOTIFY,
                line.map(|l| &l.intercept),
            ),
            (
                "a-waiter",
                "notify, for each that waits",
                A_WAITER,
                line.map(|l| &l.slope),
            ),
        ];
        let mut row = vec![backend.to_owned()];
        for (id, what, published, measured) in parts {
            let description = ItemDescription {
                id: format!("traffic/notify/{id}/{backend}"),
                quantity: format!("{what}, {backend}, same-cpu"),
                unit: "us",
                published: Some(published),
                formula: None,
                note: "a line through 1 to 16 that wait".to_owned(),
            };
            let item = item(description, measured, NOT_PERFORMED);
            row.extend([cell(measured), times(item.ratio)]);
            found.items.push(item);
        }
        row.push(line.map_or_else(|| "–".to_owned(), fits));
        rows.push(row);
    }
    found.tables.push(Table {
        title: "Notify against those that wait".to_owned(),
        text: vec![
            "Published: 200 us and 100 us for each process that waits. Here: a line through 1 to 16 that wait, all on \
             one CPU; what is woken may run before the notify is done, and its time is then in it."
                .to_owned(),
        ],
        columns: words(&["backend", "at 0", "times", "a waiter", "times", "a line?"]),
        rows,
    });
}

/// Probability below which the distances of points from a line mean that it is not straight.
const BENT: f64 = 0.01;
/// A bend below this share is negligible.
const SLIGHT: f64 = 0.1;

/// Says whether the points lie on a line.
fn fits(line: &undertick_document::LineReport) -> String {
    match (line.lack_of_fit_p, line.worst_share) {
        (Some(p), Some(share)) if p < BENT && share > SLIGHT => format!(
            "no: at {} it is {:.0} % off, p {p:.1e}",
            line.worst_at.unwrap_or(f64::NAN),
            share * 100.0
        ),
        (Some(p), Some(share)) => format!("yes, within {:.0} % (p {p:.2})", share * 100.0),
        _ => "not known".to_owned(),
    }
}

/// The quantum.
fn quantum(found: &mut Reproduction, figures: Figures<'_>) {
    let yielded = figures.typical("calls", &[], "call sched_yield");
    for (process, value) in [
        ("A", published(1454.0, "1454")),
        ("B", published(1511.0, "1511")),
    ] {
        let description = ItemDescription {
            id: format!("traffic/quantum/oneself/{process}"),
            quantity: format!("the quantum runs out, oneself as successor, {process}"),
            unit: "us",
            published: Some(value),
            formula: None,
            note: "here: sched_yield with nobody else; the scheduler is asked and chooses the same process again"
                .to_owned(),
        };
        found.items.push(item(description, yielded, NOT_PERFORMED));
    }
    let description = |id: &str, quantity: &str, note: &str| ItemDescription {
        id: format!("traffic/quantum/{id}"),
        quantity: quantity.to_owned(),
        unit: "us",
        published: None,
        formula: None,
        note: note.to_owned(),
    };
    let offered = figures.typical("yield", &[], "yield to another");
    found.items.push(item(
        description(
            "yield-another",
            "offer the CPU to another that takes it, and get it back",
            "two sched_yield, two switches; not published",
        ),
        offered,
        NOT_PERFORMED,
    ));
    let name = "until the quantum has run out and comes back";
    let ran_out = figures.typical("quantum", &[], name);
    found.items.push(item(
        description(
            "two-spinning",
            "a real quantum run-out between two that spin, until it comes back",
            "one quantum of its own and one of the other's: how long a quantum is, not what running out costs, so it \
             is not compared",
        ),
        ran_out,
        NOT_PERFORMED,
    ));
}

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod tests;
