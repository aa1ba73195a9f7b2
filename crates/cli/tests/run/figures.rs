//! The report's figures, compared with those that are computed here from the exported rows.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::support::{document, said, undertick};
use super::{PING_PONG, interval, paths, report, run};

/// An exported row of the trace: ticks, thread, event, payload.
type Row = (i64, String, u32, u32);

/// Returns the stages of a trace, in the order of time; rows of other kinds are left out.
fn stages(dir: &Path) -> Vec<Row> {
    let csv = dir.join("rows.csv");
    let _ = fs::remove_file(&csv);
    let trace = paths(dir).1;
    let words = [
        "export",
        trace.to_str().unwrap(),
        "--to",
        "csv",
        csv.to_str().unwrap(),
    ];
    assert_eq!(said(&undertick(&words)).0, 0);
    let text = fs::read_to_string(&csv).unwrap();
    let mut rows: Vec<Row> = (text.lines())
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|words| words[7] == "next")
        .map(|words| {
            let number = |i: usize| words[i].parse().unwrap();
            (
                words[1].parse().unwrap(),
                words[4].to_owned(),
                number(9),
                number(words.len() - 1),
            )
        })
        .collect();
    rows.sort();
    rows
}

/// Returns the event of a script's process whose name has that end, in one repetition.
fn event(dir: &Path, repetition: usize, name: &str) -> u32 {
    let text = fs::read(paths(dir).1.join("manifest.json")).unwrap();
    let manifest = document("manifest", &*text);
    let wanted = format!("script #{repetition} {name}");
    (manifest["names"].as_array().unwrap().iter())
        .find(|n| n["name"] == wanted.as_str())
        .and_then(|n| n["event"].as_u64())
        .unwrap_or_else(|| panic!("no event named {wanted}")) as u32
}

/// Returns the ticks from each entry into a stage to its end.
fn durations(rows: &[Row], stage: u32) -> Vec<f64> {
    let mut entered: HashMap<&str, i64> = HashMap::new();
    let mut all = Vec::new();
    for (ts, thread, from, to) in rows {
        if *from == stage
            && let Some(since) = entered.remove(thread.as_str())
        {
            all.push((ts - since) as f64);
        }
        if *to == stage {
            entered.insert(thread, *ts);
        }
    }
    all
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean with the rule for null steps: samples over four times the smallest are dropped, where a
/// smallest below one step of the clock counts as one step.
fn mean_of_quick(values: &[f64], step: f64) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let least = least.max(step);
    mean(
        &values
            .iter()
            .copied()
            .filter(|v| *v <= 4.0 * least)
            .collect::<Vec<_>>(),
    )
}

/// Compares the report's figures with those computed here from the exported rows.
#[test]
fn figures_are_those_of_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let report = report(&run(dir.path(), PING_PONG, &["--json"]));
    let clock = &report["trace"]["clock"];
    let ns_per_tick = clock["ns_per_tick"].as_f64().unwrap();
    let step = clock["granularity_ticks"].as_f64().unwrap();
    let rows = stages(dir.path());
    for repetition in 1..=6 {
        let stage = |name: &str| durations(&rows, event(dir.path(), repetition, name));
        let nulls = ["client.null before", "client.null after"];
        let nulls = nulls.map(|name| mean_of_quick(&stage(name), step));
        let null = mean(&nulls);
        let check = |process: &str, name: &str, ticks: &[f64], nulls: f64| {
            let found =
                &interval(&report, process, name)["repeated"]["repetitions"][repetition - 1];
            let wanted = (mean(ticks) - nulls * null) * ns_per_tick;
            let given = found["mean_ns"].as_f64().unwrap();
            assert!(
                (given - wanted).abs() < 1e-6 * wanted.abs() + 0.01,
                "{name}: {given} {wanted}"
            );
            assert_eq!(found["count"], ticks.len(), "{name}");
            assert_eq!(found["repetition"], repetition);
        };
        let (send, receive) = (stage("client.send there"), stage("client.receive back"));
        assert_eq!(send.len(), 200);
        check("client", "send there", &send, 1.0);
        check("client", "receive back", &receive, 1.0);
        let passes: Vec<f64> = send.iter().zip(&receive).map(|(a, b)| a + b).collect();
        check("client", "round trip", &passes, 2.0);
        // The k-th entry into the client's send belongs to the k-th end of the server's receive.
        let (from, to) = ("client.send there", "server.receive there");
        let (from, to) = (
            event(dir.path(), repetition, from),
            event(dir.path(), repetition, to),
        );
        let entries = rows.iter().filter(|r| r.3 == from).map(|r| r.0);
        let ends = rows.iter().filter(|r| r.2 == to).map(|r| r.0);
        let one_way: Vec<f64> = entries.zip(ends).map(|(a, b)| (b - a) as f64).collect();
        check("", "one way", &one_way, 1.0);
        assert!(one_way.iter().all(|ticks| *ticks > 0.0));
    }
    let trip = interval(&report, "client", "round trip");
    assert_eq!(trip["repeated"]["includes"], "there and back");
    assert_eq!(trip["repeated"]["repetitions"].as_array().unwrap().len(), 6);
    assert_eq!(trip["count"], 1200);
    let figure = &trip["repeated"]["typical"];
    let (lo, hi) = (
        figure["interval"][0].as_f64(),
        figure["interval"][1].as_f64(),
    );
    assert!(
        lo <= figure["value"].as_f64() && figure["value"].as_f64() <= hi,
        "{figure}"
    );
    assert!(
        interval(&report, "client", "(zero check)")["repeated"]["typical"]["value"].is_number()
    );
}
