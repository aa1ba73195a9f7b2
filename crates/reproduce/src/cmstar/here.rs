//! The same experiments on this machine.

use undertick_calibrate::zero_test::Outcome;
use undertick_document::Report;
use undertick_estimate::scaled;
use undertick_report::reproduce::{Item, Reproduction, Table};
use undertick_units::Estimate;

use super::super::compared::Figures;
use super::published::{CALL_US_PER_WORD, LATENCY_US, SPEED_RANGE, ZERO_TESTS};
use super::stated;
use crate::Run;

/// The script of [`rpc_scripts`].
const RPC: &str = "rpc";

/// Messages and remote calls as a script for this machine.
#[must_use]
pub fn rpc_scripts(run: Run) -> Vec<(String, String)> {
    let text = include_str!("../../../../experiments/rpc.toml");
    let text = match run {
        Run::Full => text.to_owned(),
        Run::Quick => (text.replace("repetitions = 8", "repetitions = 3"))
            .replace("seconds = 0.1", "seconds = 0.02")
            .replace("\"0..200 by 50\"", "[0, 100, 200]"),
    };
    vec![(RPC.to_owned(), text)]
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
/// and the report of [`rpc_scripts`].
pub fn with_measured(
    found: &mut Reproduction,
    cpus: Option<Estimate>,
    zeros: &[(String, Outcome)],
    rpc: Option<&Report>,
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
    if let Some(report) = rpc {
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

fn messages(found: &mut Reproduction, report: &Report) {
    let figures = Figures(report);
    let mut rows = Vec::new();
    for (index, published) in LATENCY_US.iter().enumerate() {
        let pairs = (index + 1).to_string();
        let with = [("pairs", pairs.as_str()), ("words", "0")];
        let us = |e: &Estimate| scaled(e.clone(), 1e-3, "us");
        let latency = figures.typical(RPC, &with, "latency").map(us);
        let slope = slope(report, &pairs);
        rows.push(vec![
            pairs.clone(),
            published.to_string(),
            latency.as_ref().map_or_else(|| "–".to_owned(), stated),
            CALL_US_PER_WORD.to_string(),
            slope.as_ref().map_or_else(|| "–".to_owned(), stated),
        ]);
        for (id, quantity, unit, published, measured) in [
            (
                format!("here/latency/{pairs}"),
                format!("latency of a message, this machine, {pairs} pairs, no words"),
                "us",
                *published,
                latency,
            ),
            (
                format!("here/call-slope/{pairs}"),
                format!(
                    "a remote call takes so much more for each word, this machine, {pairs} pairs"
                ),
                "us",
                CALL_US_PER_WORD,
                slope,
            ),
        ] {
            let ratio = measured.as_ref().map(|m| published / m.value);
            found.items.push(Item {
                id,
                quantity,
                unit: unit.to_owned(),
                published: Some(published),
                measured,
                ratio,
                note: "Unix sockets, words of 8 bytes".to_owned(),
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

/// The line of the remote call's time through the settings with this many pairs.
fn slope(report: &Report, pairs: &str) -> Option<Estimate> {
    let points: Vec<(f64, f64)> = (report.intervals.iter())
        .filter(|i| i.name == "rpc")
        .filter_map(|i| {
            let repeated = i.repeated.as_ref()?;
            let parameter = |name: &str| repeated.parameters.get(name).map(String::as_str);
            let words = parameter("words")?.parse().ok()?;
            (parameter("pairs") == Some(pairs)).then_some((words, repeated.typical.value / 1e3))
        })
        .collect();
    let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    let mut slope = undertick_estimate::line(&x, &y, report.settings.confidence)?.slope;
    "us".clone_into(&mut slope.unit);
    Some(slope)
}
