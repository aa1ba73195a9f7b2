//! `undertick record --runs` and the report of a set of runs, as a user runs them.

use crate::support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{compile, document, refused, said, undertick};

/// 200 spans; then it ends with a status, or asks its recorder to stop and waits for that.
const PROGRAM: &str = r#"
#include "undertick.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    unsigned long i, k, x = 1;
    ut_name(1, "work");
    for (i = 0; i < 200; i++) {
        ut_begin(1);
        for (k = 0; k < 2000; k++) __asm__ volatile("" : "+r"(x));
        ut_end(1);
    }
    if (argc > 1 && argv[1][0] == 's') {
        kill(getppid(), SIGINT);
        for (;;) pause();
    }
    return argc > 1 ? atoi(argv[1]) : 0;
}
"#;

const QUICKLY: [&str; 8] = [
    "record",
    "--no-calibration",
    "--kernel",
    "off",
    "--runs",
    "3",
    "--apart",
    "0s",
];

fn program(dir: &Path) -> PathBuf {
    compile(dir, "program", PROGRAM, &[])
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn recorded(set: &Path, command: &[&str]) -> (i32, String) {
    let words = [&QUICKLY[..], &["-o", text(set), "--"], command].concat();
    said(&undertick(&words))
}

/// Three traces in a directory: their report is of a repetition, and has each run.
#[test]
fn runs_and_their_report() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path());
    let set = dir.path().join("three");
    let (status, errors) = recorded(&set, &[text(&program)]);
    assert_eq!(status, 0, "{errors}");
    assert!(errors.contains("3 runs in"), "{errors}");
    let page = dir.path().join("page.html");
    let output = undertick(&["report", text(&set), "--json", "--html", text(&page)]);
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    let found: Value = document("report", &output);
    assert_eq!(
        (&found["runs"], &found["settings"]["scope"]),
        (&3.into(), &"repetition".into())
    );
    let work = &found["intervals"][0];
    // On a busy machine some samples are disturbed, and dropped.
    let number = |value: &Value| value.as_u64().unwrap();
    let matched = number(&work["count"]) + number(&work["culled"]["count"]);
    assert_eq!((&work["name"], matched), (&"work".into(), 600));
    let mut means: Vec<f64> = (work["by_run"].as_array().unwrap().iter())
        .map(|run| run["mean_ns"].as_f64().unwrap())
        .collect();
    assert_eq!(means.len(), 3);
    let mean = work["mean"]["value"].as_f64().unwrap();
    means.sort_by(f64::total_cmp);
    assert!((mean / means[1] - 1.0).abs() < 1e-9);
    assert!(work["mean"]["interval"][1].as_f64().unwrap() >= mean);
    let (_, text_of_report) = said(&undertick(&["report", text(&set), "--full"]));
    for words in ["3 runs of", "from what 3 runs within"] {
        let joined = text_of_report
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(joined.contains(words), "{text_of_report}");
    }
    assert!(
        std::fs::read_to_string(&page)
            .unwrap()
            .contains("from what 3 runs within")
    );
    // The report of one of them is of its run only.
    let one = undertick(&["report", text(&set.join("0002.ut")), "--json"]);
    let one: Value = document("report", &one);
    assert_eq!(one["settings"]["scope"], "this_run");
    assert!(
        one["intervals"][0]["of_this_run"]["mean"]["value"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    // A set can be a side of a comparison.
    let output = undertick(&["compare", text(&set), text(&set), "--json"]);
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
}

/// Runs that failed or were interrupted are stored, but are no part of the report.
#[test]
fn a_run_that_fails_or_is_stopped_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path());
    let set = dir.path().join("failed");
    let (status, errors) = recorded(&set, &[text(&program), "7"]);
    assert_eq!(status, 7, "{errors}");
    assert!(
        set.join("failed/0001.ut/manifest.json").exists(),
        "{errors}"
    );
    assert!(!set.join("0001.ut").exists() && errors.contains("no run is complete"));
    let set = dir.path().join("stopped");
    let (status, errors) = recorded(&set, &[text(&program), "stop"]);
    assert_ne!(status, 0, "{errors}");
    assert!(
        set.join("interrupted/0001.ut/manifest.json").exists(),
        "{errors}"
    );
    let (status, errors) = said(&undertick(&[
        "report",
        text(&set.join("interrupted/0001.ut")),
    ]));
    assert_eq!(status, 0, "{errors}");
}

fn began_unix_ns(trace: &Path) -> i64 {
    let manifest = std::fs::read(trace.join("manifest.json")).unwrap();
    let manifest: Value = document("manifest", &*manifest);
    manifest["started_unix_ns"].as_i64().unwrap()
}

/// Runs begin at the given distance; if they lie close together, their report says so.
#[test]
fn runs_lie_apart() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path());
    let set = dir.path().join("two");
    let words = "record --no-calibration --kernel off --runs 2 --apart 2s -o";
    let words: Vec<&str> = words
        .split(' ')
        .chain([text(&set), "--", text(&program)])
        .collect();
    let before = std::time::SystemTime::now();
    let (status, errors) = said(&undertick(&words));
    assert_eq!(status, 0, "{errors}");
    let begins = ["0001.ut", "0002.ut"].map(|run| began_unix_ns(&set.join(run)));
    // On a busy machine the first run may begin late, so the second is compared with the command's
    // begin.
    let before = before.duration_since(std::time::UNIX_EPOCH).unwrap();
    let before = i64::try_from(before.as_nanos()).unwrap();
    assert!(begins[1] - before >= 2_000_000_000, "{begins:?} {before}");
    let report = undertick(&["report", text(&set), "--json"]);
    let report: Value = document("report", &report);
    let warnings = report["warnings"].as_array().unwrap();
    let is_close = warnings.iter().any(|w| w["code"] == "runs_close");
    assert_eq!(
        is_close,
        begins[1] - begins[0] < 10_000_000_000,
        "{warnings:?}"
    );
}

/// Ctrl-C while it waits for the next run leaves the finished ones.
#[test]
fn stopped_between_two_runs() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path());
    let set = dir.path().join("one");
    let words = "record --no-calibration --kernel off --runs 2 --apart 9h -o";
    let mut recorder = std::process::Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(words.split(' '))
        .args([text(&set), "--", text(&program)])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let manifest = set.join("0001.ut/manifest.json");
    let is_complete = || {
        let text = std::fs::read_to_string(&manifest).unwrap_or_default();
        text.contains("\"complete\"")
    };
    let wait = || std::thread::sleep(std::time::Duration::from_millis(20));
    while !is_complete() {
        wait();
    }
    // It may not be waiting yet, so the signal is repeated until it ends.
    let pid = i32::try_from(recorder.id()).unwrap();
    while recorder.try_wait().unwrap().is_none() {
        // SAFETY: a signal to a child that is not reaped.
        unsafe { libc::kill(pid, libc::SIGINT) };
        wait();
    }
    let output = recorder.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("1 run in"), "{errors}");
    assert_eq!(said(&undertick(&["report", text(&set)])).0, 0);
}

#[test]
fn wrong_usage_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path());
    let there = dir.path().join("there");
    std::fs::create_dir(&there).unwrap();
    let words = [&QUICKLY[..], &["-o", text(&there), "--", text(&program)]].concat();
    refused(
        &undertick(&words),
        2,
        &["cannot make the directory of the runs"],
    );
    let pid = std::process::id().to_string();
    let anew = undertick(&["record", "--runs", "2", "--pid", &pid]);
    refused(&anew, 2, &["--runs starts the program anew"]);
    let one = undertick(&["record", "--apart", "2s", "--", text(&program)]);
    refused(&one, 2, &["--runs"]);
    let none = undertick(&["record", "--runs", "0", "--", text(&program)]);
    refused(&none, 2, &["--runs"]);
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_ne!(said(&undertick(&["report", text(&empty)])).0, 0);
}
