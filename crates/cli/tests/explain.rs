//! `undertick explain`, on a program that is delayed in known ways.

use crate::support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{compile, document, refused, said, trace, undertick};

const DELAYS: &str = include_str!("programs/delays.c");
/// Delays of each kind that the program marks, and the share of them that must get the right cause.
const EACH: usize = 100;
const RIGHT: f64 = 0.95;
/// Sizes from which a request is large.
const LARGE: u32 = 950;

/// The kinds as the program numbers them from 1 on, with the first part of the excess and the
/// beginning of what it is about.
const KINDS: [(&str, &str, &str); 12] = [
    ("sleep", "waited", "an interrupt"),
    ("lock", "waited", "holder ("),
    ("other program", "preempted", "hog ("),
    ("own thread", "own_thread", "own hog ("),
    ("queued", "queued", ""),
    ("faults", "fault", ""),
    ("slow child", "child", "lookup"),
    ("more children", "child", "flush"),
    ("spin", "unexplained", ""),
    ("pipe", "waited", "hog ("),
    ("stopped", "stopped", "hog ("),
    // One request in twenty, by the size that it carries.
    ("large", "state", ""),
];

/// Records the program with its hog beside it; `None`, with the reason printed, where that cannot be.
fn recorded(dir: &Path) -> Option<String> {
    let program = compile(dir, "delays", DELAYS, &[]);
    let hog = dir.join("hog");
    support::copy_program(&program, &hog);
    let pipe = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (ask, answer) = (pipe("ask"), pipe("answer"));
    let made = Command::new("mkfifo").args([&ask, &answer]).status();
    assert!(made.expect("mkfifo").success());
    let mut hog = Command::new(&hog)
        .args(["serve", &ask, &answer])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the hog runs");
    std::thread::sleep(std::time::Duration::from_millis(50));
    if let Some(status) = hog.try_wait().unwrap() {
        assert_eq!(status.code(), Some(77));
        println!("skipped: no right to run urgent programs here (SCHED_FIFO)");
        return None;
    }
    let trace = pipe("t.ut");
    let program = program.to_str().unwrap();
    let output = undertick(&[
        "record",
        "--no-calibration",
        "-o",
        &trace,
        "--",
        program,
        &ask,
        &answer,
        &EACH.to_string(),
    ]);
    let _ = hog.kill();
    let _ = hog.wait();
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    let manifest = std::fs::read_to_string(dir.join("t.ut/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let sources = manifest["kernel"]["sources"].as_array();
    let has_tracefs =
        (sources.into_iter().flatten()).any(|of| of["name"] == "tracefs" && of["used"] == true);
    if !has_tracefs {
        println!("skipped: no tracefs here, which shows the waking and the preempting thread");
        return None;
    }
    Some(trace)
}

/// When each delayed request began, ticks, with its kind; and when the first event was.
fn marked(dir: &Path, trace: &str) -> (Vec<(i64, usize)>, i64) {
    let csv = dir.join("t.csv");
    let output = undertick(&["export", trace, "--to", "csv", csv.to_str().unwrap()]);
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    let (mut marked, mut first, mut mark) = (Vec::new(), i64::MAX, 0);
    let mut began = 0;
    for line in std::fs::read_to_string(csv).unwrap().lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if cells[6] != "user" {
            continue;
        }
        let ticks: i64 = cells[1].parse().unwrap();
        first = first.min(ticks);
        match (cells[7], cells[10]) {
            ("event" | "instant", "mark") => mark = cells[11].parse().unwrap(),
            ("begin", "request") if mark > 0 => marked.push((ticks, mark)),
            ("begin", "request") => began = ticks,
            ("event" | "instant", "size")
                if mark == 0 && cells[11].parse::<u32>().unwrap() >= LARGE =>
            {
                marked.push((began, KINDS.len()));
            }
            _ => {}
        }
    }
    (marked, first)
}

#[test]
fn delays_of_a_live_program_are_attributed_to_what_caused_them() {
    let dir = tempfile::tempdir().unwrap();
    let Some(trace) = recorded(dir.path()) else {
        return;
    };
    let (marked, first) = marked(dir.path(), &trace);
    assert!(marked.len() > KINDS.len() * EACH, "{}", marked.len());
    let slowest = (marked.len() + 2000).to_string();
    let output = undertick(&[
        "explain",
        &trace,
        "request",
        "--slowest",
        &slowest,
        "--json",
    ]);
    let found: serde_json::Value = document("explain", &output);
    let manifest = std::fs::read_to_string(dir.path().join("t.ut/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let number = |name: &str| manifest["clock"][name].as_f64().unwrap();
    let ns_per_tick =
        1e9 * number("ticks_per_second_denominator") / number("ticks_per_second_numerator");
    let calls: BTreeMap<i64, &serde_json::Value> = (found["paths"][0]["slowest"].as_array())
        .unwrap()
        .iter()
        .map(|call| {
            let ticks = call["start_ns"].as_f64().unwrap() / ns_per_tick;
            (ticks.round() as i64 + first, call)
        })
        .collect();
    let mut right = [(0_u32, 0_usize); KINDS.len()];
    let mut others = Vec::new();
    for (ticks, kind) in marked {
        let (name, cause, of) = KINDS[kind - 1];
        let call = calls.range(ticks - 2..=ticks + 2).next();
        let call = call
            .unwrap_or_else(|| panic!("{name} at {ticks} is not among the slowest"))
            .1;
        let parts = call["parts"].as_array().unwrap();
        let sum: f64 = parts.iter().map(|part| part["ns"].as_f64().unwrap()).sum();
        let excess = call["excess_ns"].as_f64().unwrap();
        assert!((sum - excess).abs() <= 1e-6 * excess, "{call:#}");
        let about = parts[0]["of"].as_str().unwrap_or("");
        right[kind - 1].1 += 1;
        if parts[0]["cause"] == cause && about.starts_with(of) {
            right[kind - 1].0 += 1;
        } else {
            others.push(format!("{name}: {} {}", parts[0], parts[1]));
        }
    }
    println!("otherwise: {others:#?}");
    for ((name, ..), (right, of)) in KINDS.iter().zip(right) {
        println!("{name}: {right} of {of}");
    }
    for ((name, ..), (right, of)) in KINDS.into_iter().zip(right) {
        assert!(
            of >= EACH && f64::from(right) >= RIGHT * of as f64,
            "{name}"
        );
    }
}

#[test]
fn a_path_is_found_by_its_names_and_others_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let explain = |path: &str| undertick(&["explain", &trace, path]);
    let (status, whole) = said(&explain("request, \"quoted\"/parse"));
    assert_eq!(status, 0, "{whole}");
    assert!(whole.contains("parse: 1\u{a0}000 calls."), "{whole}");
    assert!(whole.contains("no kernel events"), "{whole}");
    // The last name alone is clear here.
    assert_eq!(said(&explain("parse")), (0, whole));
    refused(
        &explain("pars"),
        2,
        &["no path \"pars\"", "request, \"quoted\"/parse"],
    );
    let none = undertick(&["explain", &trace, "--slowest", "0"]);
    refused(&none, 2, &["--slowest 0"]);
    // Without a path, all of them with a line each.
    let (status, text) = said(&undertick(&["explain", &trace]));
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("Single calls: undertick explain "), "{text}");
    assert!(text.lines().count() < 12, "{text}");
}
