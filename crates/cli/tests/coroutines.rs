//! `undertick_coroutine.hpp`: coroutines of C++20 on two threads, of which the program knows how many polls
//! there were and how long it worked in them.

use crate::support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{document, said, undertick};

const PROGRAM: &str = include_str!("programs/coroutines.cpp");

/// Compiles the program; `None`: this compiler is not here, or has no coroutines.
fn compiled(dir: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let source = dir.join("coroutines.cpp");
    std::fs::write(&source, PROGRAM).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");
    let program = dir.join("coroutines");
    let output = Command::new(compiler)
        .args([
            "-std=c++20",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-pthread",
        ])
        .args(options)
        .args(["-I", include])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    let Ok(output) = output else {
        println!("skipped: no {compiler} here");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("undertick_coroutine.hpp needs coroutines") || text.contains("-std=c++20") {
        println!("skipped: this {compiler} has no C++20 coroutines");
        return None;
    }
    assert!(output.status.success(), "{text}");
    Some(program)
}

/// Records the program; the trace, and the polls and ns of work that it printed.
fn recorded(dir: &Path, program: &Path, amount: [&str; 2]) -> (String, u64, f64) {
    let trace = dir.join("t.ut").to_str().unwrap().to_owned();
    let program = program.to_str().unwrap();
    let first = [
        "record",
        "--no-calibration",
        "--kernel",
        "off",
        "-o",
        &trace,
        "--",
    ];
    let output = undertick(&[&first[..], &[program], &amount].concat());
    let (_, text) = said(&output);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(" 0 lost"), "{text}");
    assert!(!text.contains("ThreadSanitizer"), "{text}");
    let (polls, inside) = printed.trim().split_once(' ').expect("two numbers");
    (trace, polls.parse().unwrap(), inside.parse().unwrap())
}

fn row<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rows = report["tasks"]["rows"].as_array().expect("rows");
    let found = rows.iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("no tasks {name}: {rows:?}"))
}

fn counts(row: &Value) -> [u64; 4] {
    ["tasks", "done", "cancelled", "polls"].map(|of| row[of].as_u64().expect("a count"))
}

#[test]
fn coroutines_are_tasks() {
    for compiler in ["g++", "clang++"] {
        let dir = tempfile::tempdir().unwrap();
        let Some(program) = compiled(dir.path(), compiler, &[]) else {
            continue;
        };
        let (trace, polls, inside) = recorded(dir.path(), &program, ["200", "10"]);
        let report = document("report", &undertick(&["tasks", &trace, "--json"]));
        let request = row(&report, "request");
        assert_eq!(counts(request), [200, 200, 0, polls]);
        // The program woke each before it was resumed.
        let wakes = ["wakes", "unwoken_polls"].map(|of| request[of].as_u64().unwrap());
        assert_eq!(wakes, [polls - 200, 0]);
        let total = |part: &str| request[part]["total_ns"].as_f64().unwrap();
        // Work lies in polls; both clocks move in steps and differ in rate a little.
        let slack = 3e-4 * inside + 20.0 * polls as f64;
        assert!(
            total("busy") >= inside - slack,
            "{} of {inside}",
            total("busy")
        );
        let parts: f64 = ["busy", "idle", "queued"].map(total).iter().sum();
        assert!((parts - total("lifetime")).abs() <= 1e-9 * parts);
        assert_eq!(counts(row(&report, "dropped")), [5, 0, 5, 5]);
        // An await that is ready is no pause; one that resumes at once, or fails, is.
        assert_eq!(counts(row(&report, "odd")), [1, 1, 0, 3]);
    }
}

#[test]
fn threads_do_not_race_for_a_coroutine() {
    let dir = tempfile::tempdir().unwrap();
    let sanitized = compiled(dir.path(), "g++", &["-g", "-fsanitize=thread"]);
    let Some(program) = sanitized else {
        return;
    };
    let (trace, polls, _) = recorded(dir.path(), &program, ["3", "2000"]);
    // Where the sanitizer's memory lies, there is no table of the numbers of names; the events are there.
    let report = document("report", &undertick(&["report", &trace, "--json"]));
    let events = report["trace"]["events"].as_u64().unwrap();
    assert!(events > 3 * polls, "{events} events of {polls} polls");
}
