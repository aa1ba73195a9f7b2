//! Reproduces *Hardware-Assisted Multiprocessor Performance Measurements*: the cost of the
//! recorder, clocks, locks, fork and shared memory, on this machine.

use undertick_document::Report;
use undertick_report::reproduce::{Reproduction, Table};
use undertick_units::Estimate;

mod conclusions;
mod five;
mod memory;

pub use five::{Contended, contended};
use undertick_experiment::primitives;

use super::Run;
use super::compared::{
    Figures, ItemDescription, NOT_PERFORMED, Published, cell, item, published, times,
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

/// The script to perform with kernel evidence: locks for which five processes contend.
#[must_use]
pub fn contended_scripts(run: Run) -> Vec<(String, String)> {
    let text = include_str!("scripts/contended.toml").to_owned();
    with_repetitions(vec![(five::CONTENDED.to_owned(), text)], run)
}

fn with_repetitions(all: Vec<(String, String)>, run: Run) -> Vec<(String, String)> {
    let repetitions = match run {
        Run::Full => 6,
        Run::Quick => 4,
    };
    (all.into_iter())
        .map(|(name, text)| (name, format!("repetitions = {repetitions}\n{text}")))
        .collect()
}

/// Compares the published figures with those of a report of [`scripts`] and one of
/// [`contended_scripts`].
#[must_use]
pub fn reproduction(report: &Report, locks: &Report, contended: &[Contended]) -> Reproduction {
    let mut found = Reproduction {
        schema_version: 1,
        source: "trams".to_owned(),
        title: "Mink, Draper, Roberts, Carpenter, Hardware-Assisted Multiprocessor Performance Measurements, NBSIR \
                87-3585, 1987"
            .to_owned(),
        items: Vec::new(),
        tables: Vec::new(),
        plots: Vec::new(),
        findings: Vec::new(),
        interrupted: false,
    };
    let figures = Figures(report);
    single(&mut found, figures);
    five::wanted_by_five(&mut found, Figures(locks), contended);
    memory::fork(&mut found, figures);
    memory::memory(&mut found, figures);
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
    with: &'static [(&'static str, &'static str)],
    name: &'static str,
    /// Number of operations in one step.
    of: f64,
    note: &'static str,
}

const SINGLES: &[Single] = &[
    Single {
        id: "record/constant",
        what: "record a constant",
        published: published(3.0, "3"),
        script: "recorder",
        with: &[],
        name: "record event",
        of: 1.0,
        note: "",
    },
    Single {
        id: "record/variable",
        what: "record a variable",
        published: published(3.5, "3..4"),
        script: "recorder",
        with: &[],
        name: "record event-variable",
        of: 1.0,
        note: "",
    },
    Single {
        id: "record/both",
        what: "record a constant and a variable",
        published: published(6.0, "6"),
        script: "recorder",
        with: &[],
        name: "record event64",
        of: 1.0,
        note: "here: an event with 64 bits, two records",
    },
    Single {
        id: "loop",
        what: "a turn of a loop",
        published: published(4.5, "7..11 with a write of 3..6: about 4.5"),
        script: "loop",
        with: &[],
        name: "10 000 turns of a loop",
        of: 10_000.0,
        note: "here: a ten thousandth of 10 000 turns, each a dependent multiply-add; a turn alone is shorter than a \
               step of the clock",
    },
    Single {
        id: "clock/gettimeofday/mean",
        what: "gettimeofday, mean",
        published: published(672.0, "672"),
        script: "clocks",
        with: &[("readers", "1")],
        name: "read gettimeofday",
        of: 1.0,
        note: "",
    },
    Single {
        id: "clock/gettimeofday/median",
        what: "gettimeofday, median",
        published: published(649.0, "649"),
        script: "clocks",
        with: &[("readers", "1")],
        name: "read gettimeofday",
        of: 1.0,
        note: "",
    },
    Single {
        id: "clock/getrusage/mean",
        what: "getrusage, mean",
        published: published(871.0, "871"),
        script: "clocks",
        with: &[("readers", "1")],
        name: "read getrusage",
        of: 1.0,
        note: "",
    },
    Single {
        id: "clock/getrusage/median",
        what: "getrusage, median",
        published: published(843.0, "843"),
        script: "clocks",
        with: &[("readers", "1")],
        name: "read getrusage",
        of: 1.0,
        note: "",
    },
    Single {
        id: "lock/alone",
        what: "lock, nobody else wants it",
        published: published(35.0, "41, 35 without the write"),
        script: "locks",
        with: &[("kind", "spin")],
        name: "lock",
        of: 1.0,
        note: "",
    },
    Single {
        id: "unlock/alone",
        what: "unlock, nobody else wants it",
        published: published(11.0, "16, 11 without the write"),
        script: "locks",
        with: &[("kind", "spin")],
        name: "unlock",
        of: 1.0,
        note: "",
    },
    Single {
        id: "lock-unlock/alone",
        what: "least synchronisation cost: lock and unlock",
        published: published(46.0, "46"),
        script: "locks",
        with: &[("kind", "spin")],
        name: "lock and unlock",
        of: 1.0,
        note: "",
    },
];

fn single(found: &mut Reproduction, figures: Figures<'_>) {
    let mut rows = Vec::new();
    for single in SINGLES {
        let measured = figures
            .named(single.script, single.with, single.name)
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
            cell(measured.as_ref()),
            interval(measured.as_ref()),
            times(item.ratio),
        ]);
        found.items.push(item);
    }
    found.tables.push(Table {
        title: "Recorder, loops, clocks, locks".to_owned(),
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
