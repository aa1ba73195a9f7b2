//! Reproduces *Timing test of New Traffic Controller*: the cost of each primitive of the scheduler
//! in its own script, on this kernel.

use undertick_document::Report;
use undertick_format::read::Trace;
use undertick_report::reproduce::{Reproduction, Table, Verdict};

mod conclusions;
mod quantities;
mod quantum;
mod share;

use undertick_experiment::{Experiment, ExperimentError, Performed, primitives};
use undertick_meter::traffic::{RunOut, Turn, run_outs, turns};
use undertick_units::Estimate;

use super::Run;
use super::compared::{Figures, ItemDescription, cell, item, shown, times, together};
use super::tables::words;
use super::verdict::by_formula;
use quantities::{A_WAITER, NOTIFIES, NOTIFY, QUANTITIES, WAKES};
use share::ShareOf;

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
        shorter(include_str!("scripts/traffic-controller.toml")),
    )];
    if cpus.len() > 1 {
        all.push((
            TWO_CPUS.to_owned(),
            shorter(include_str!("scripts/traffic-two-cpus.toml")),
        ));
    }
    let groups = ["wake", "notify", "events", "calls", "yield"].map(str::to_owned);
    let groups = primitives::scripts(&groups, cpus).unwrap_or_default();
    let both = format!("policy = [{ORDERED:?}, {DEFAULT:?}]");
    all.extend(groups.into_iter().map(|(name, text)| {
        let text = (text.replace("passes = 150", "passes = 60"))
            .replace(&format!("policy = [{ORDERED:?}]"), &both);
        (name, format!("repetitions = {repetitions}\n{text}"))
    }));
    all.extend(quantum::scripts(repetitions));
    all
}

/// The policies with which a process that wakes another keeps its CPU, as in the memo.
const ORDERED: &str = "fifo else batch";
/// The system's default policy.
const DEFAULT: &str = "other";

/// One placement of the script's processes.
struct Placement {
    id: &'static str,
    script: &'static str,
    /// The scheduling policies, as the parameter of the script; `None` where it has none.
    policy: Option<&'static str>,
    /// The placement as the primitives name it.
    place: &'static str,
    title: &'static str,
}

const PLACEMENTS: [Placement; 2] = [
    Placement {
        id: "same-cpu",
        script: ONE_CPU,
        policy: Some(ORDERED),
        place: "same cpu as A",
        title: "The script on one CPU, in the published order: the waker keeps the CPU",
    },
    Placement {
        id: "other-cpu",
        script: TWO_CPUS,
        policy: None,
        place: "other cpu than A",
        title: "The script on two CPUs",
    },
];

/// The script on one CPU with the system's policy, under which a process that is woken may preempt
/// its waker.
const BY_DEFAULT: Placement = Placement {
    policy: Some(DEFAULT),
    ..PLACEMENTS[0]
};

/// The measurements on this machine.
#[derive(Clone, Copy)]
struct Here<'a> {
    figures: Figures<'a>,
    turns: &'a [Turned],
    run_outs: &'a [RanOut],
}

impl Placement {
    /// The parameters of the script.
    fn with<'a>(&self, backend: &'a str) -> Vec<(&'static str, &'a str)> {
        let policy = self.policy.map(|policy| ("policy", policy));
        policy.into_iter().chain([("backend", backend)]).collect()
    }
}

/// Duration of a step by which process ran next, with the script and the backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Turned {
    /// Name of the script.
    pub script: String,
    /// The backend of wakeup and block.
    pub backend: String,
    /// The scheduling policies; empty where the script has none.
    pub policy: String,
    /// The step.
    pub turn: Turn,
}

/// A quantum that ran out, with the script.
#[derive(Clone, Debug, PartialEq)]
pub struct RanOut {
    /// Name of the script.
    pub script: String,
    /// What it cost.
    pub run_out: RunOut,
}

/// What [`reproduction`] uses beside the report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Orders {
    /// Durations of steps by which process ran next.
    pub turns: Vec<Turned>,
    /// Quanta that ran out.
    pub run_outs: Vec<RanOut>,
}

/// The orders of stamps of the traffic scripts, from the trace of [`scripts`].
///
/// # Errors
/// The trace cannot be read.
pub fn orders(
    experiment: &Experiment,
    performed: &Performed,
    trace: &Trace,
    level: f64,
) -> Result<Orders, ExperimentError> {
    let turned = |turn: Turn| {
        let parameters = &experiment.setting(turn.setting).parameters;
        let value = |wanted: &str| {
            let found = parameters.iter().find(|(name, _)| name == wanted);
            found.map_or_else(String::new, |(_, value)| value.clone())
        };
        Turned {
            script: experiment.script_of(turn.setting).to_owned(),
            backend: value("backend"),
            policy: value("policy"),
            turn,
        }
    };
    let ran_out = |run_out: RunOut| RanOut {
        script: experiment.script_of(run_out.setting).to_owned(),
        run_out,
    };
    let turns = turns(experiment, performed, trace, level)?;
    let run_outs = run_outs(experiment, performed, trace, level)?;
    Ok(Orders {
        turns: turns.into_iter().map(turned).collect(),
        run_outs: run_outs.into_iter().map(ran_out).collect(),
    })
}

fn of_steps<'a>(
    turns: &'a [Turned],
    placement: &'a Placement,
    backend: &'a str,
    steps: &'a [(&'a str, u32)],
) -> impl Iterator<Item = &'a Turn> {
    (turns.iter())
        .filter(move |t| t.script == placement.script && t.backend == backend)
        .filter(move |t| placement.policy.is_none_or(|policy| t.policy == policy))
        .map(|t| &t.turn)
        .filter(|turn| steps.contains(&(turn.process.as_str(), turn.number)))
}

/// Compares the published figures with those of a report of [`scripts`] and its turns.
#[must_use]
pub fn reproduction(report: &Report, orders: &Orders) -> Reproduction {
    let figures = Figures(report);
    let here = Here {
        figures,
        turns: &orders.turns,
        run_outs: &orders.run_outs,
    };
    let mut found = Reproduction::new(
        "traffic",
        "Rappaport, Spier, Timing test of New Traffic Controller",
    );
    let placements = PLACEMENTS
        .iter()
        .filter(|p| figures.intervals(p.script, &[]).next().is_some());
    for placement in placements {
        add_placement(&mut found, here, placement);
    }
    regimes(&mut found, here);
    notify(&mut found, figures);
    quantum::add(&mut found, here);
    if !PLACEMENTS
        .iter()
        .any(|p| p.id == "other-cpu" && figures.intervals(p.script, &[]).next().is_some())
    {
        found.findings.push(
            "The script was performed on one CPU only: there is no second one here.".to_owned(),
        );
    }
    found.findings.extend(conclusions::conclusions(
        &found.items,
        report,
        &orders.turns,
    ));
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
                .map_or_else(|| "–".to_owned(), |(us, _)| format!("{us:.0}")),
        );
        for backend in BACKENDS {
            let measured = quantity.source.measured(here, placement, backend);
            let share = quantity.source.share(here, placement, backend);
            let notes = [quantity.note.to_owned()].into_iter();
            let notes = notes.chain(share.map(ShareOf::words));
            let description = ItemDescription {
                id: format!("traffic/{}/{backend}/{}", quantity.id, placement.id),
                quantity: format!("{}, {backend}, {}", quantity.what, placement.id),
                unit: "us",
                published: quantity.published,
                formula: quantity.formula.map(|(us, _)| us),
                note: notes
                    .filter(|note| !note.is_empty())
                    .collect::<Vec<_>>()
                    .join("; "),
            };
            let missing = missing(here.figures, placement.script, &placement.with(backend));
            let item = item(description, measured.as_ref(), &missing);
            let half_digit = quantity.formula.map_or(0.0, |(_, half_digit)| half_digit);
            let item = by_formula(item, half_digit, Verdict::Differs);
            row.push(cell(shown(&item, measured.as_ref())));
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

/// What happens by default: the waker keeps its CPU, or the process that it wakes runs first.
fn regimes(found: &mut Reproduction, here: Here<'_>) {
    let mut rows = Vec::new();
    for (id, what, steps) in [
        ("wakeup", "wake another process", WAKES),
        ("notify-one", "notify one that waits", NOTIFIES),
    ] {
        for backend in BACKENDS {
            let of = || of_steps(here.turns, &BY_DEFAULT, backend, steps);
            let Some(share) = ShareOf::of(of()) else {
                continue;
            };
            let mut row = vec![what.to_owned(), backend.to_owned()];
            let kept: Vec<&Estimate> = of().filter_map(|turn| turn.kept.as_ref()).collect();
            let given: Vec<&Estimate> = of().filter_map(|turn| turn.given.as_ref()).collect();
            for (kind, words, share, each) in [
                ("keeps", "the waker keeps its CPU", share, kept),
                (
                    "preempted",
                    "the one that is woken runs first",
                    share.others(),
                    given,
                ),
            ] {
                let measured = together(&each);
                let description = ItemDescription {
                    id: format!("traffic/{id}/{backend}/default/{kind}"),
                    quantity: format!("{what}, {backend}, by default, where {words}"),
                    unit: "us",
                    published: None,
                    formula: None,
                    note: share.words(),
                };
                let missing = missing(here.figures, ONE_CPU, &BY_DEFAULT.with(backend));
                let item = item(description, measured.as_ref(), &missing);
                row.extend([
                    format!("{:.1} %", share.percent()),
                    cell(shown(&item, measured.as_ref())),
                ]);
                found.items.push(item);
            }
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return;
    }
    let columns = [
        "step",
        "backend",
        "keeps the CPU",
        "takes",
        "is preempted",
        "takes, with the switch",
    ];
    found.tables.push(Table {
        title: "The script on one CPU with the default policy: which process runs after a wakeup".to_owned(),
        text: vec![
            "Wakeups of a process that waits; those with the run of another process in them are counted beside. Where it runs before its waker goes on, the time of the wakeup \
             lasts until it runs and contains the switch."
                .to_owned(),
        ],
        columns: words(&columns),
        rows,
    });
}

/// The cost of notify against the number of waiters.
fn notify(found: &mut Reproduction, figures: Figures<'_>) {
    let mut rows = Vec::new();
    for (policy, suffix) in [(ORDERED, ""), (DEFAULT, "/default")] {
        for backend in BACKENDS {
            let with = [("policy", policy), ("backend", backend)];
            let line = figures.line("notify", &with);
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
            let is_published = policy == ORDERED;
            let mut row = vec![policy.to_owned(), backend.to_owned()];
            for (id, what, published, measured) in parts {
                let description = ItemDescription {
                    id: format!("traffic/notify/{id}/{backend}{suffix}"),
                    quantity: format!("{what}, {backend}, same-cpu, policy {policy}"),
                    unit: "us",
                    published: is_published.then_some(published),
                    formula: None,
                    note: match is_published {
                        true => "a line through 1 to 16 that wait".to_owned(),
                        false => "a line through 1 to 16 that wait; what is woken may run within the notify".to_owned(),
                    },
                };
                let item = item(description, measured, &missing(figures, "notify", &with));
                row.extend([cell(shown(&item, measured)), times(item.ratio)]);
                found.items.push(item);
            }
            row.push(line.map_or_else(|| "–".to_owned(), fits));
            rows.push(row);
        }
    }
    found.tables.push(Table {
        title: "Notify against those that wait".to_owned(),
        text: vec![
            "Published: 200 us and 100 us for each process that waits. Here: a line through 1 to 16 that wait, all on \
             one CPU. With the default policy what is woken may run before the notify is done, and its time is then \
             in it."
                .to_owned(),
        ],
        columns: words(&["policy", "backend", "at 0", "times", "a waiter", "times", "a line?"]),
        rows,
    });
}

/// Why a script gave no figure with these parameters: what the report says of it, or that it had
/// too few values.
fn missing(figures: Figures<'_>, script: &str, with: &[(&str, &str)]) -> String {
    let is_its = |text: &str| {
        let has = |(name, value): &(&str, &str)| text.contains(&format!(" {name}={value}"));
        text.starts_with(script) && with.iter().all(has)
    };
    let warnings = figures
        .0
        .warnings
        .iter()
        .filter(|w| w.code != "policy_refused");
    match warnings.map(|w| w.text.as_str()).find(|text| is_its(text)) {
        Some(text) => format!("not measured: {text}"),
        None => "not measured: no repetition has five values of this kind".to_owned(),
    }
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

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod tests;
