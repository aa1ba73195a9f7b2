//! `undertick record --trigger`, as a user runs it.

use crate::support;

use support::{compile, document, refused, said, undertick};

/// A hundred quick requests, and one of 30 ms.
const PROGRAM: &str = r#"
#include "undertick.h"
#include <time.h>
int main(void) {
    struct timespec t = {0, 30000000};
    ut_name(7, "request");
    for (int i = 0; i < 100; i++) {
        ut_begin(7);
        ut_end(7);
    }
    ut_begin(7);
    nanosleep(&t, 0);
    ut_end(7);
    return 0;
}
"#;

#[test]
fn a_slow_request_makes_a_snapshot_that_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "server", PROGRAM, &[]);
    let trace = dir.path().join("flight.ut");
    let recorded = undertick(&[
        "record",
        "--no-calibration",
        "--overflow",
        "overwrite",
        "--trigger",
        "request > 20ms",
        "--keep",
        "1s..0s",
        "-o",
        trace.to_str().unwrap(),
        "--",
        program.to_str().unwrap(),
    ]);
    let (status, text) = said(&recorded);
    assert_eq!(status, 0, "{text}");
    let snapshot = dir.path().join("flight-1.ut");
    let snapshot = snapshot.to_str().unwrap();
    let told = format!("undertick: snapshot in {snapshot}: ");
    let told = text.lines().find_map(|line| line.strip_prefix(&told));
    let took = (told.unwrap_or_else(|| panic!("{text}")).split(',').next()).unwrap();
    // It slept for 30 ms; a busy machine may wake it later.
    let (number, unit) = (took.strip_prefix("request took ").unwrap())
        .split_once(char::is_whitespace)
        .unwrap();
    let number: f64 = number.parse().unwrap();
    assert!(unit == "s" || (unit == "ms" && number >= 30.0), "{text}");
    let (status, text) = said(&undertick(&["report", snapshot]));
    assert_eq!(status, 0, "{text}");
    let line = text.lines().find(|line| line.contains("Kept because"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains(took), "{line}");
    let report = document("report", &undertick(&["report", snapshot, "--json"]));
    let reasons = report["trace"]["kept_because"].as_array().unwrap();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    let reason = reasons[0].as_str().unwrap();
    assert!(reason.ends_with("(rule: request > 20ms)"), "{reason}");
    // The recording itself was made for no reason.
    let report = document(
        "report",
        &undertick(&["report", trace.to_str().unwrap(), "--json"]),
    );
    assert_eq!(report["trace"].get("kept_because"), None);
}

#[test]
fn what_is_no_rule_is_refused_at_its_place() {
    let with = |words: &[&str]| undertick(&[&["record"], words, &["--", "true"]].concat());
    let flight = ["--overflow", "overwrite"];
    let wrong = [&flight[..], &["--trigger", "request > 5 parsecs"]].concat();
    let output = with(&wrong);
    refused(&output, 2, &["a unit is expected here"]);
    let text = said(&output).1;
    let mut lines = text
        .lines()
        .skip_while(|line| *line != "request > 5 parsecs");
    assert_eq!(lines.nth(1).unwrap().find('^'), Some(12), "{text}");
    refused(
        &with(&["--trigger", "request > 5ms"]),
        2,
        &["add --overflow overwrite"],
    );
    let without_rule = [&flight[..], &["--keep-total", "1GiB"]].concat();
    refused(&with(&without_rule), 2, &["--trigger"]);
    let with_runs = [&flight[..], &["--trigger", "lost > 0", "--runs", "2"]].concat();
    refused(&with(&with_runs), 2, &["leave out --runs"]);
    let no_time = [&flight[..], &["--trigger", "lost > 0", "--keep", "2s"]].concat();
    refused(&with(&no_time), 2, &["2s..0.5s"]);
}
