//! Traces exported to other tools' formats and imported again: nothing that both formats can
//! express is lost.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use support::{document, refused, said, trace, undertick};

/// Spans as (name, start since the first row, length), ns, and instants as (name, time, payload),
/// from the CSV of a trace. They are matched here, with a stack for each ring.
type SpansAndInstants = (Vec<(String, i64, i64)>, Vec<(String, i64, i64)>);

fn found(trace: &str, csv: &Path) -> SpansAndInstants {
    let output = undertick(&["export", trace, "--to", "csv", csv.to_str().unwrap()]);
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    let text = fs::read_to_string(csv).unwrap();
    let (mut spans, mut points) = (Vec::new(), Vec::new());
    let mut open: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
    let mut first = None;
    // Names by event, for `next`, whose payload is the event that is entered.
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let rows: Vec<Vec<String>> = text.lines().skip(1).map(fields).collect();
    for row in &rows {
        names.insert(row[9].clone(), row[10].clone());
    }
    for row in &rows {
        let ns: i64 = row[0].parse().unwrap();
        let at = ns - *first.get_or_insert(ns);
        let stack = open.entry(row[2].clone()).or_default();
        let mut close = |spans: &mut Vec<_>| {
            let (name, start) = stack.pop().unwrap();
            assert_eq!(name, row[10]);
            spans.push((name, start, at - start));
        };
        match row[7].as_str() {
            "begin" => stack.push((row[10].clone(), at)),
            "end" => close(&mut spans),
            "next" => {
                close(&mut spans);
                stack.push((names[&row[11]].clone(), at));
            }
            "instant" => points.push((row[10].clone(), at, row[11].parse().unwrap())),
            other => panic!("{other}"),
        }
    }
    spans.sort();
    points.sort();
    (spans, points)
}

/// Returns the fields of a line of CSV, without quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().unwrap().push(other),
        }
    }
    fields
}

#[test]
fn what_was_exported_is_imported_again() {
    let dir = tempfile::tempdir().unwrap();
    let original = trace(dir.path());
    let (spans, points) = found(&original, &dir.path().join("original.csv"));
    assert_eq!((spans.len(), points.len()), (3000, 2000));
    for (format, ending) in [
        ("chrome", ""),
        ("perfetto", ""),
        ("otlp", ".jsonl"),
        ("otlp", ".pb"),
    ] {
        let at = |name: &str| {
            let path = dir.path().join(format!("{format}{ending}{name}"));
            path.to_str().unwrap().to_owned()
        };
        let (file, back) = (at(ending), at(".ut"));
        let output = undertick(&["export", &original, "--to", format, &file]);
        assert_eq!(said(&output).0, 0, "{}", said(&output).1);
        // The contents of a file show which tool wrote it.
        let output = undertick(&["import", &file, "-o", &back]);
        assert_eq!(said(&output).0, 0, "{}", said(&output).1);
        let mut again = found(&back, Path::new(&at(".csv")));
        // Identifiers that only OTLP has.
        (again.1).retain(|(name, _, _)| !name.starts_with("otel."));
        assert!(again.0 == spans, "{format}: spans differ");
        assert!(again.1 == points, "{format}: points differ");
        report(&back);
    }
}

/// Asserts the report of an import: counts, that nothing was subtracted, and what is not known.
fn report(trace: &str) {
    let text = said(&undertick(&["report", trace, "--full"])).1;
    assert!(text.contains("on a machine that is not known"), "{text}");
    assert!(text.contains("one reading not known"), "{text}");
    let output = undertick(&["report", trace, "--json"]);
    let report: serde_json::Value = document("report", &output);
    let intervals = report["intervals"].as_array().unwrap();
    for name in ["request, \"quoted\"", "parse"] {
        let of = intervals.iter().find(|i| i["name"] == name).unwrap();
        assert_eq!((&of["count"], &of["unmatched"]), (&1000.into(), &0.into()));
        assert_eq!(of["compensation"]["method"], "none");
    }
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("what its recording cost is not known"),
        "{warnings}"
    );
}

#[test]
fn bad_imports_say_what_would_be_right() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("text"), "no trace of anybody\n").unwrap();
    let import = |file: &str| undertick(&["import", &at(file), "-o", &at("t.ut")]);
    refused(&import("text"), 2, &["text", "cannot tell", "--from"]);
    refused(&import("missing"), 2, &["missing", "is the name right?"]);
    fs::create_dir(at("t.ut")).unwrap();
    fs::write(at("json"), "[]").unwrap();
    refused(&import("json"), 2, &["t.ut", "exists already"]);
}

/// A CTF 2 trace where the reader is too old for it, and the text that a newer one would print of it.
#[test]
fn a_ctf_2_trace_is_refused_and_its_text_is_imported() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let line = |ns: u32, name: &str| {
        format!(
            "timestamp = 1795336773.{ns:09}, trace = vm/ust/64-bit, , trace:hostname = vm, trace:domain = ust, \
             name = {name}, stream.packet.context = {{ cpu_id = 1 }}, stream.event.context = {{ vpid = 7, vtid = 8 }}, \
             event.fields = {{ pieces = 5 }}\n"
        )
    };
    fs::write(
        at("text"),
        line(100, "shop:asked") + &line(350, "shop:sold"),
    )
    .unwrap();
    let words = ["import", "--from", "ctf", &at("text"), "-o", &at("t.ut")];
    assert_eq!(said(&undertick(&words)).0, 0);
    let (status, text) = said(&undertick(&["report", &at("t.ut")]));
    assert!(status == 0 && text.contains("shop:sold"), "{text}");

    fs::create_dir(at("ctf")).unwrap();
    fs::write(
        at("ctf/metadata"),
        "\u{1e}{\"type\":\"preamble\",\"version\":2}",
    )
    .unwrap();
    let version = std::process::Command::new("babeltrace2")
        .arg("--version")
        .output();
    match version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()) {
        Ok(version) if version.contains(" 2.0.") => {
            let output = undertick(&["import", &at("ctf"), "-o", &at("u.ut")]);
            refused(
                &output,
                2,
                &["CTF 2", "has 2.0.", "--from ctf", "--trace-format=ctf-1.8"],
            );
            assert!(!Path::new(&at("u.ut")).exists());
        }
        Ok(version) => println!("skipped: {version} reads CTF 2"),
        Err(error) => println!("skipped: no babeltrace2 here ({error})"),
    }
}

#[test]
fn intervals_for_other_tools_need_intervals() {
    let dir = tempfile::tempdir().unwrap();
    let original = trace(dir.path());
    let file = dir.path().join("out.json");
    let file = file.to_str().unwrap();
    let table = dir.path().join("table.toml");
    fs::write(
        &table,
        "[[interval]]\nname='a'\nstart='parse'\nend='parse'\n",
    )
    .unwrap();
    let table = table.to_str().unwrap();
    let wrong = ["export", &original, "--to", "csv", "--table", table, file];
    refused(&undertick(&wrong), 2, &["--table", "google-benchmark"]);
    let right = [
        "export",
        &original,
        "--to",
        "google-benchmark",
        "--table",
        table,
        file,
    ];
    assert_eq!(said(&undertick(&right)).0, 0);
    let page: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let of = |kind: &str| {
        let all = page["benchmarks"].as_array().unwrap().iter();
        all.filter(|b| b["run_type"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    let iterations: u64 = of("iteration")
        .iter()
        .map(|b| b["iterations"].as_u64().unwrap())
        .sum();
    assert!(
        iterations > 900 && iterations <= 1000,
        "all that were not culled: {iterations}"
    );
    assert_eq!(of("aggregate").len(), 3);
    refused(&undertick(&right), 2, &["exists already"]);
}
