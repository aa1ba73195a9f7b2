//! Reproduces *Hardware-Assisted Multiprocessor Performance Measurements*: the cost of the
//! recorder, clocks, locks, fork and shared memory, on this machine.

use undertick_document::Report;
use undertick_report::reproduce::{Reproduction, Table};
use undertick_units::Estimate;

mod board;
mod conclusions;
mod contended;
mod five;
mod loops;
mod memory;
mod summaries;

pub use contended::{Contended, contended};
use undertick_experiment::primitives;

use super::Run;
use super::compared::{
    Figures, ItemDescription, NOT_PERFORMED, Published, cell, item, published, shown, times,
};
use super::tables::words;

/// The scripts to perform without kernel evidence.
#[must_use]
pub fn scripts(run: Run, cpus: &[usize]) -> Vec<(String, String)> {
    let groups = ["recorder", "clocks", "locks", "calls"].map(str::to_owned);
    let mut all = primitives::scripts(&groups, cpus).unwrap_or_default();
    for (_, text) in &mut all {
        *text = text.replace("readers = [1, 2, 4]", "readers = [1]");
    }
    let own = [
        ("loop", include_str!("scripts/loop.toml")),
        ("fork-published", include_str!("scripts/fork.toml")),
        ("fork-nothing", include_str!("scripts/nothing.toml")),
        ("memory-published", include_str!("scripts/memory.toml")),
    ];
    all.extend(own.map(|(name, text)| (name.to_owned(), text.to_owned())));
    with_repetitions(all, run)
}

/// The scripts to perform with kernel evidence: locks for which several processes contend.
#[must_use]
pub fn contended_scripts(run: Run, cpus: &[usize]) -> Vec<(String, String)> {
    with_repetitions(contended::scripts(cpus), run)
}

fn with_repetitions(all: Vec<(String, String)>, run: Run) -> Vec<(String, String)> {
    let repetitions = match run {
        Run::Full => 6,
        // As many runs as Tables 2a and 2b have.
        Run::Quick => 5,
    };
    (all.into_iter())
        .map(|(name, text)| (name, format!("repetitions = {repetitions}\n{text}")))
        .collect()
}

/// Compares the published figures with those of a report of [`scripts`] and one of
/// [`contended_scripts`], and the intervals between events in loops.
#[must_use]
pub fn reproduction(
    report: &Report,
    locks: &Report,
    contended: &[Contended],
    loops: &Report,
) -> Reproduction {
    let mut found = Reproduction::new(
        "trams",
        "Mink, Draper, Roberts, Carpenter, Hardware-Assisted Multiprocessor Performance Measurements, NBSIR \
                87-3585, 1987",
    );
    let figures = Figures(report);
    loops::loops(&mut found, loops);
    single(&mut found, figures);
    five::wanted_by_five(&mut found, Figures(locks), contended);
    board::lock(&mut found);
    summaries::summaries(&mut found, figures);
    memory::fork(&mut found, figures);
    found
        .findings
        .extend(conclusions::conclusions(&found.items, contended));
    found
}

/// A figure that comes from one step of one script.
struct Single {
    id: &'static str,
    what: &'static str,
    published: Published,
    script: &'static str,
    with: Option<(&'static str, &'static str)>,
    name: &'static str,
    /// Number of operations in one step.
    of: f64,
    note: &'static str,
}

impl Single {
    /// Parses a line of `singles.txt`.
    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.splitn(9, '|').map(str::trim);
        let mut next = || fields.next();
        Some(Self {
            id: next()?,
            what: next()?,
            published: published(next()?.parse().ok()?, next()?),
            script: next()?,
            with: next()?.split_once('='),
            name: next()?,
            of: next()?.parse().ok()?,
            note: next()?,
        })
    }
}

/// Returns all such figures.
fn singles() -> impl Iterator<Item = Single> {
    let lines = include_str!("trams/singles.txt").lines();
    let rows = lines.filter(|line| !line.starts_with('#'));
    rows.map(|line| Single::parse(line).expect("every line has its fields"))
}

fn single(found: &mut Reproduction, figures: Figures<'_>) {
    let mut rows = Vec::new();
    for single in singles() {
        let measured = figures
            .named(single.script, single.with.as_slice(), single.name)
            .and_then(|interval| {
                let of = match single.id.rsplit('/').next() {
                    Some("mean") => interval.mean.clone(),
                    Some("median") => interval.median.clone(),
                    _ => None,
                };
                // A median of few steps of the clock is not given; the figure to quote is.
                of.or_else(|| Some(interval.repeated.as_ref()?.typical.clone()))
            })
            .map(|e| undertick_estimate::scaled(e, 1.0 / single.of, "ns"));
        let description = ItemDescription {
            id: format!("trams/{}", single.id),
            quantity: single.what.to_owned(),
            unit: "us",
            published: Some(single.published),
            formula: None,
            note: single.note.to_owned(),
        };
        let item = item(description, measured.as_ref(), NOT_PERFORMED);
        rows.push(vec![
            single.what.to_owned(),
            single.published.printed.to_owned(),
            cell(shown(&item, measured.as_ref())),
            interval(shown(&item, measured.as_ref())),
            times(item.ratio),
        ]);
        found.items.push(item);
    }
    let turn = figures
        .typical("loop", &[], "10 000 turns of a loop")
        .map(|e| undertick_estimate::scaled(e.clone(), 1e-4, "ns"));
    let description = ItemDescription {
        id: "trams/loop".to_owned(),
        quantity: "a turn of a loop".to_owned(),
        unit: "us",
        published: None,
        formula: None,
        note: "not published by itself; here a ten thousandth of 10 000 turns, each a dependent multiply-add, because \
               a turn alone is shorter than a step of the clock"
            .to_owned(),
    };
    let item = item(description, turn.as_ref(), NOT_PERFORMED);
    rows.push(vec![
        item.quantity.clone(),
        "–".to_owned(),
        cell(turn.as_ref()),
        interval(turn.as_ref()),
        times(item.ratio),
    ]);
    found.items.push(item);
    found.tables.push(Table {
        title: "Recorder, a turn of a loop, clocks, locks".to_owned(),
        text: vec!["Locks spin and are free. times: published over measured.".to_owned()],
        columns: words(&["quantity", "published, us", "here", "interval", "times"]),
        rows,
    });
}

fn interval(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(
        || "–".to_owned(),
        |e| {
            let figure = undertick_document::figures::figure(e);
            format!("{} {}", figure.interval(), figure.unit)
        },
    )
}

#[cfg(test)]
#[path = "trams_tests.rs"]
mod tests;
