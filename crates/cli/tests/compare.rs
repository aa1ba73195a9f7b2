//! `undertick compare` as a user runs it: two programs in turn, sets of runs, traces.

use crate::support;

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use support::{compile, refused, said, undertick};

/// 200 spans of a number of steps.
const PROGRAM: &str = r#"
#include "undertick.h"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    unsigned long steps = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000, i, k, x = 1;
    ut_name(1, "work");
    ut_name(2, "rest");
    printf("%lu steps\n", steps);
    for (i = 0; i < 200; i++) {
        ut_begin(1);
        for (k = 0; k < steps; k++) {
            x = x * 6364136223846793005ul + 1442695040888963407ul;
            __asm__ volatile("" : "+r"(x));
        }
        ut_next(1, 2);
        for (k = 0; k < 5000; k++) __asm__ volatile("" : "+r"(x));
        ut_end(2);
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
"#;

fn document(output: &Output) -> Value {
    support::document("compare", output)
}

fn row<'a>(found: &'a Value, id: &str) -> &'a Value {
    let rows = found["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == id);
    row.unwrap_or_else(|| panic!("no {id} in {found}"))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A program that takes twenty times as long is found slower in eight rounds. The gate shows it by
/// the exit status; the recordings are stored and, as rounds, give the same result. The factor is
/// large because a machine may be taken away for longer than a run takes.
#[test]
fn two_programs_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "a program", PROGRAM, &[]);
    let command = |steps: &str| format!("'{}' {steps}", program.display());
    let (kept, summary) = (dir.path().join("kept"), dir.path().join("summary.md"));
    let junit = dir.path().join("verdicts.xml");
    std::fs::write(&summary, "before\n").unwrap();
    let output = undertick(&[
        "compare",
        "--runs",
        "8",
        "--kernel",
        "off",
        "--gate",
        "0.5",
        "-o",
        text(&kept),
        &format!("--markdown={}", text(&summary)),
        "--junit",
        text(&junit),
        "--json",
        &command("5000"),
        &command("100000"),
    ]);
    assert_eq!(said(&output).0, 3, "{:?}", said(&output));
    let found = document(&output);
    assert_eq!(found["paired"], true);
    assert_eq!(
        (&found["a"]["runs"], &found["b"]["runs"]),
        (&8.into(), &8.into())
    );
    let work = row(&found, "work");
    assert_eq!(work["verdict"], "slower", "{work}");
    assert!(
        work["ratio"]["interval"][0].as_f64().unwrap() > 1.5,
        "{work}"
    );
    let too_slow = found["gate"]["too_slow"].as_array().unwrap();
    assert!(too_slow.contains(&"work".into()), "{too_slow:?}");

    // The summary is appended, as GitHub requires.
    let summary = std::fs::read_to_string(&summary).unwrap();
    assert!(summary.starts_with("before\n###"), "{summary}");
    assert!(summary.contains("| work |") && summary.contains("**Surely slower by more than 50 %"));
    let junit = std::fs::read_to_string(&junit).unwrap();
    assert!(
        junit.contains("name=\"work\"") && junit.contains("<failure type=\"slower\""),
        "{junit}"
    );
    // The programs' output lies beside the traces, not in the command's output.
    let printed = std::fs::read_to_string(kept.join("b/0003.out")).unwrap();
    assert_eq!(printed, "100000 steps\n");

    again(&kept, &found);
    as_sets(dir.path(), &kept);
    as_single_traces(dir.path(), &kept);
}

/// Both spans are outermost, and only the first takes longer. Totals have no upper bound here, and
/// with them the order of the two: the machine may be taken away in either.
fn call_trees(found: &Value, page: &str) {
    let paths = found["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{paths:?}");
    assert!(paths.iter().all(|path| path["parent"].is_null()));
    for path in paths {
        assert!((path["a"]["calls"] == 200.0) && (path["b"]["calls"] == 200.0));
    }
    assert!(paths.iter().any(|path| path["name"] == "rest"), "{paths:?}");
    let work = paths.iter().find(|path| path["name"] == "work").unwrap();
    // Half of the runs have at least the typical call, half of their calls at least their median.
    let number = |side: &str, figure: &str| work[side][figure].as_f64().unwrap();
    for side in ["a", "b"] {
        assert!(
            number(side, "total_ns") > 0.2 * 200.0 * number(side, "call_ns"),
            "{work}"
        );
    }
    assert!(number("b", "call_ns") > 1.5 * number("a", "call_ns"));
    assert_eq!(work["verdict"], "slower");
    assert_eq!(work["ratio"], row(found, "work")["ratio"]);
    assert!(page.contains("Undertick comparison") && page.contains("id=\"icicle\""));
    assert!(!page.contains("://"), "the page loads nothing");
}

/// The stored runs give the same figures.
fn again(kept: &Path, before: &Value) {
    let (a, b) = (kept.join("a"), kept.join("b"));
    let page = kept.join("changes.html");
    let output = undertick(&[
        "compare",
        text(&a),
        text(&b),
        "--json",
        "--html",
        text(&page),
    ]);
    assert_eq!(said(&output).0, 0);
    let found = document(&output);
    call_trees(&found, &std::fs::read_to_string(page).unwrap());
    assert_eq!(found["paired"], true);
    assert_eq!(row(&found, "work")["ratio"], row(before, "work")["ratio"]);
    refused(
        &undertick(&["compare", text(kept), text(&b)]),
        2,
        &["both programs", "/a with", "/b"],
    );
    let (code, shown) = said(&undertick(&["compare", text(&a), text(&b)]));
    assert!(code == 0 && shown.contains("rounds"), "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() <= 110),
        "{shown}"
    );
}

/// Moved to other directories they are two sets; only chosen figures are compared.
fn as_sets(dir: &Path, kept: &Path) {
    let moved = dir.join("before");
    std::fs::rename(kept.join("a"), &moved).unwrap();
    let b = kept.join("b");
    let output = undertick(&["compare", text(&moved), text(&b), "--json", "--only", "wo*"]);
    let found = document(&output);
    assert_eq!(found["paired"], false);
    assert_eq!(found["rows"].as_array().unwrap().len(), 1);
    assert_eq!(row(&found, "work")["verdict"], "slower");
    let output = undertick(&[
        "compare",
        text(&b),
        text(&moved),
        "--gate",
        "0.5",
        "--markdown",
    ]);
    let (code, shown) = said(&output);
    assert!(
        code == 0 && shown.contains("Nothing is surely slower by more than 50 %."),
        "{shown}"
    );
    refused(
        &undertick(&["compare", text(&moved), text(&b), "--only", "nothing"]),
        2,
        &["no figure has a name like", "nothing"],
    );
    std::fs::rename(&moved, kept.join("a")).unwrap();
}

/// A trace of 200 spans of about `ns` nanoseconds, regardless of the machine.
fn sections(dir: &Path, name: &str, ns: usize) -> PathBuf {
    let section = |i: usize| {
        // The durations are spread, in no order.
        let long = ns + (i * 7919) % 200;
        format!(
            r#"{{"ph":"X","pid":1,"tid":1,"name":"work","ts":{},"dur":{:.3}}}"#,
            i * 100,
            long as f64 / 1e3
        )
    };
    let all: Vec<String> = (0..200).map(section).collect();
    let file = dir.join(format!("{name}.json"));
    std::fs::write(&file, format!("[{}]", all.join(",\n"))).unwrap();
    let trace = dir.join(format!("{name}.ut"));
    let output = undertick(&["import", text(&file), "-o", text(&trace)]);
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    trace
}

/// Two traces are compared, with the warning that each is one run; a trace and a set are not.
fn as_single_traces(dir: &Path, kept: &Path) {
    let (a, b) = (sections(dir, "short", 5000), sections(dir, "long", 15_000));
    let output = undertick(&["compare", text(&a), text(&b), "--json"]);
    let found = document(&output);
    assert_eq!(row(&found, "work")["verdict"], "slower");
    let warnings = found["warnings"].as_array().unwrap();
    let single = warnings
        .iter()
        .find(|w| w["code"] == "single_runs")
        .unwrap();
    assert!(
        single["text"].as_str().unwrap().contains("--runs"),
        "{single}"
    );
    // The report of a trace gives the same as the trace.
    let report = undertick(&["report", text(&a), "--json"]);
    let file = dir.join("report.json");
    std::fs::write(&file, &report.stdout).unwrap();
    let from_report = document(&undertick(&["compare", text(&file), text(&b), "--json"]));
    assert_eq!(row(&from_report, "work"), row(&found, "work"));
    refused(
        &undertick(&["compare", text(&a), text(&kept.join("b"))]),
        2,
        &["is one run", "--runs"],
    );
}

/// Runs within the given time, but at least two rounds.
#[test]
fn for_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "program", PROGRAM, &[]);
    let command = format!("{} 1000", text(&program));
    let runs = |time: &str| {
        let options = ["compare", "--for", time, "--kernel", "off", "--json"];
        let output = undertick(&[&options[..], &[&command, &command]].concat());
        document(&output)["a"]["runs"].as_u64().unwrap()
    };
    assert_eq!(runs("1ms"), 2);
    // A run takes longer on a busy machine.
    assert!(["3s", "12s", "48s"].into_iter().any(|time| runs(time) > 2));
}

/// A program that fails, records nothing or does not exist gives no figures, but the reason.
#[test]
fn programs_that_cannot_be_compared() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "program", PROGRAM, &[]);
    let good = format!("{} 100", text(&program));
    let compare =
        |a: &str, b: &str| undertick(&["compare", "--runs", "2", "--kernel", "off", a, b]);
    refused(
        &compare(&good, &format!("{} 100 7", text(&program))),
        1,
        &["B ended with status 7", "it printed last:\n100 steps"],
    );
    refused(
        &compare(&good, "sh -c 'kill -SEGV $$'"),
        1,
        &["B was ended by signal 11", "printed nothing"],
    );
    refused(
        &compare("echo 'not instrumented'", &good),
        2,
        &["A recorded no event", "undertick.h", "not instrumented"],
    );
    refused(&compare("/no/such/program", &good), 2, &["no such program"]);
    refused(&compare("./a 'b", &good), 2, &["a quote is not closed"]);
    refused(&compare("", &good), 2, &["empty"]);
}

#[test]
fn wrong_usage_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let empty: PathBuf = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let at = text(&empty);
    refused(
        &undertick(&["compare", at, at]),
        2,
        &["no trace", "NAME.ut", "--fleet"],
    );
    refused(
        &undertick(&["compare", "--runs", "1", "a", "b"]),
        2,
        &["--runs"],
    );
    refused(
        &undertick(&["compare", "--gate", "2%", "a", "b"]),
        2,
        &["0.02"],
    );
    refused(
        &undertick(&["compare", "--json", "--markdown", "a", "b"]),
        2,
        &["--markdown=FILE"],
    );
    refused(
        &undertick(&["compare", "--runs", "2", "-o", at, "a", "b"]),
        2,
        &["exists already"],
    );
    std::fs::write(empty.join("x.json"), "{").unwrap();
    refused(
        &undertick(&["compare", at, at]),
        2,
        &["a directory", "x.json", "move it away"],
    );
}
