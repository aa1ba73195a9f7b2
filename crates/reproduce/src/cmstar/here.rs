//! The same experiments on this machine.

use undertick_calibrate::zero_test::Outcome;
use undertick_document::Report;
use undertick_estimate::scaled;
use undertick_report::reproduce::{Item, Reproduction, Table};
use undertick_units::Estimate;

use super::super::compared::{Figures, ratio};
use super::published::{CALL_US_PER_WORD, LATENCY_US, SPEED_RANGE, ZERO_TESTS};
use super::stated;
use crate::Run;

/// The scripts of [`scripts_here`].
const RPC: &str = "rpc";
const READERS: &str = "readers";

/// The scripts for this machine: messages and remote calls, and readings of its clock by one CPU and by
/// two.
#[must_use]
pub fn scripts_here(run: Run) -> Vec<(String, String)> {
    let text = include_str!("../scripts/rpc.toml");
    let text = match run {
        Run::Full => text.to_owned(),
        Run::Quick => (text.replace("repetitions = 8", "repetitions = 5"))
            .replace("seconds = 0.1", "seconds = 0.02")
            .replace("\"0..200 by 50\"", "[0, 100, 200]"),
    };
    let readers = include_str!("../scripts/readers.toml");
    vec![
        (RPC.to_owned(), text),
        (READERS.to_owned(), readers.to_owned()),
    ]
}

/// Number of visits to each CPU, about 3 ms each.
const VISITS: usize = 12;

/// How much faster the fastest CPU of this machine is than the slowest, relative; `None` with one
/// CPU, or without a counter as a reference for speeds.
#[must_use]
pub fn spread_of_cpus(level: f64) -> Option<Estimate> {
    undertick_meter::survey::spread_of_cpus(VISITS, level)
}

/// Adds what was measured on this machine: the CPUs' speeds, zero tests by the load beside them,
/// and the report of [`scripts_here`].
pub fn with_measured(
    found: &mut Reproduction,
    cpus: Option<Estimate>,
    zeros: &[(String, Outcome)],
    here: Option<&Report>,
) {
    found.items.push(Item {
        id: "here/cpu-speeds".to_owned(),
        quantity: "fastest CPU over slowest, less 1, this machine".to_owned(),
        unit: "1".to_owned(),
        published: Some(SPEED_RANGE),
        measured: cpus,
        note: "published: 34 Cms within 4.6 %".to_owned(),
        ..Item::default()
    });
    let rows: Vec<Vec<String>> = (zeros.iter())
        .flat_map(|(load, outcome)| zero_rows(found, load, outcome))
        .collect();
    if !rows.is_empty() {
        let published: Vec<String> = ZERO_TESTS.iter().map(|t| t.k.to_string()).collect();
        found.tables.push(Table {
            title: "Zero tests on this machine".to_owned(),
            text: vec![format!(
                "Nothing is measured with the CPU's counter, by the same methods; ns, not us. Published k on Cm*: {}.",
                published.join(", ")
            )],
            columns: ["load", "method", "mean of nothing, ns", "k", "remark"]
                .map(str::to_owned)
                .into(),
            rows,
        });
    }
    if let Some(report) = here {
        readings(found, report);
        messages(found, report);
    }
}

fn zero_rows(found: &mut Reproduction, load: &str, outcome: &Outcome) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for method in &outcome.methods {
        let Some(nothing) = method.doses.first() else {
            continue;
        };
        let chosen = if method.name == outcome.chosen {
            "chosen"
        } else {
            ""
        };
        for (figure, quantity, estimate) in [
            (
                "mean",
                "mean of nothing after correction",
                Some(&nothing.bias),
            ),
            ("k", "improvement factor", method.k.as_ref()),
        ] {
            found.items.push(Item {
                id: format!("here/zero/{load}/{}/{figure}", method.name),
                quantity: format!("{quantity}, this machine, load: {load}, {}", method.name),
                unit: if figure == "k" { "1" } else { "ns" }.to_owned(),
                measured: estimate.cloned(),
                note: chosen.to_owned(),
                ..Item::default()
            });
        }
        rows.push(vec![
            load.to_owned(),
            method.name.to_owned(),
            stated(&nothing.bias),
            method.k.as_ref().map_or_else(|| "–".to_owned(), stated),
            chosen.to_owned(),
        ]);
    }
    rows
}

/// A reading of this machine's clock, which every CPU has: it takes no longer where two CPUs read.
fn readings(found: &mut Reproduction, report: &Report) {
    for readers in ["1", "2"] {
        let measured = Figures(report).typical(READERS, &[("readers", readers)], "read counter");
        found.items.push(Item {
            id: format!("here/reading/{readers}"),
            quantity: format!("a reading of the clock, this machine, {readers} CPUs read"),
            unit: "ns".to_owned(),
            measured: measured.cloned(),
            ..Item::default()
        });
    }
}

fn messages(found: &mut Reproduction, report: &Report) {
    let figures = Figures(report);
    let mut rows = Vec::new();
    for (index, published) in LATENCY_US.iter().enumerate() {
        let pairs = (index + 1).to_string();
        let with = [("pairs", pairs.as_str()), ("words", "0")];
        let us = |e: &Estimate| scaled(e.clone(), 1e-3, "us");
        let latency = figures.typical(RPC, &with, "latency").map(us);
        let slope = slope(report, &pairs);
        // The paper prints it for one pair.
        let a_word = (index == 0).then_some(CALL_US_PER_WORD);
        rows.push(vec![
            pairs.clone(),
            published.to_string(),
            latency.as_ref().map_or_else(|| "–".to_owned(), stated),
            a_word.map_or_else(|| "–".to_owned(), |us| us.to_string()),
            slope.as_ref().map_or_else(|| "–".to_owned(), stated),
        ]);
        for (id, quantity, unit, published, measured) in [
            (
                format!("here/latency/{pairs}"),
                format!("latency of a message, this machine, {pairs} pairs, no words"),
                "us",
                Some(*published),
                latency,
            ),
            (
                format!("here/call-slope/{pairs}"),
                format!("what a word adds to a remote call, this machine, {pairs} pairs"),
                "us",
                a_word,
                slope,
            ),
        ] {
            let ratio = ratio(published, measured.as_ref());
            let is_missing = measured.is_none();
            found.items.push(Item {
                id,
                quantity,
                unit: unit.to_owned(),
                published,
                measured,
                ratio,
                note: match is_missing {
                    true => "not measured: too few repetitions".to_owned(),
                    false => "Unix sockets, words of 8 bytes".to_owned(),
                },
                ..Item::default()
            });
        }
    }
    found.tables.push(Table {
        title: "Messages and remote calls on this machine".to_owned(),
        text: vec![
            "experiments/rpc.toml: Unix sockets, words of 8 bytes, processes wherever the scheduler puts them."
                .to_owned(),
        ],
        columns: [
            "pairs",
            "published latency, us",
            "latency here, us",
            "published, us a word",
            "here, us a word",
        ]
        .map(str::to_owned)
        .into(),
        rows,
    });
}

/// What a word adds to a remote call of this many pairs, us. Both sides access as many words.
fn slope(report: &Report, pairs: &str) -> Option<Estimate> {
    let line = Figures(report).line(RPC, &[("pairs", pairs)])?;
    Some(scaled(line.slope.clone(), 1e-3 / 2.0, "us"))
}
