//! `undertick snapshot` and `undertick record --resume`, as a user runs them.

use crate::support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::{compile, refused, said, undertick};

/// Writes until it is told to end: events 1 with payloads 0, 1, 2, ...
const WRITER: &str = r#"
#include "undertick.h"
#include <signal.h>
#include <unistd.h>
static volatile sig_atomic_t over, others;
static void on_end(int s) { over = s; }
static void on_other(int s) { others += s; }
int main(void) {
    uint32_t i = 0;
    signal(SIGTERM, on_end);
    signal(SIGRTMIN, on_other);
    ut_name(1, "tick");
    while (!over) {
        int n;
        for (n = 0; n < 100; n++) ut_event(1, i++);
        usleep(1000);
    }
    return others ? 5 : 0;
}
"#;

fn recorder(program: &Path, trace: &Path, overflow: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args([
            "record",
            "--no-calibration",
            "--kernel",
            "off",
            "--ring",
            "256KiB",
        ])
        .args(["--overflow", overflow, "-o"])
        .arg(trace)
        .arg("--")
        .arg(program)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it does not come to that");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the process number of the program `path`, which is no child of this process.
fn pid_of(path: &Path) -> i32 {
    let mut found = None;
    wait_until(|| pids().any(|pid| is(pid, path)));
    for pid in pids().filter(|pid| is(*pid, path)) {
        found = Some(pid);
    }
    found.unwrap()
}

fn pids() -> impl Iterator<Item = i32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn is(pid: i32, path: &Path) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == path)
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: to a process that this test has started.
    unsafe { libc::kill(pid, signal) };
}

/// Returns the payloads of the events, from the output of `export`.
fn payloads(trace: &Path) -> Vec<u64> {
    let csv = trace.with_extension("csv");
    let output = undertick(&[
        "export",
        trace.to_str().unwrap(),
        "--to",
        "csv",
        csv.to_str().unwrap(),
    ]);
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    let text = std::fs::read_to_string(csv).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = header.iter().position(|name| *name == "payload").unwrap();
    lines
        .map(|line| line.split(',').nth(column).unwrap().parse().unwrap())
        .collect()
}

fn without_a_hole(payloads: &[u64]) -> bool {
    payloads.is_sorted_by(|a, b| a + 1 == *b)
}

#[test]
fn snapshots_by_trace_recorder_program_and_signal() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "writer", WRITER, &["-D_GNU_SOURCE"]);
    let program = program.canonicalize().unwrap();
    let trace = dir.path().join("flight.ut");
    let mut child = recorder(&program, &trace, "overwrite");
    let writer = pid_of(&program);
    let names = [
        trace.to_str().unwrap().to_owned(),
        child.id().to_string(),
        writer.to_string(),
    ];
    let (mut last, mut taken) = (None, 0);
    for name in &names {
        // The program may not have begun, or may be kept from its CPU.
        wait_until(|| {
            taken += 1;
            let out = dir.path().join(format!("now-{taken}.ut"));
            let output = undertick(&["snapshot", name, "-o", out.to_str().unwrap()]);
            let (status, text) = said(&output);
            assert_eq!(status, 0, "{name}: {text}");
            let seen = payloads(&out);
            assert!(without_a_hole(&seen), "{name}");
            let before = std::mem::replace(&mut last, seen.last().copied());
            last > before
        });
    }
    signal(child.id() as i32, libc::SIGRTMIN());
    let numbered = dir.path().join("flight-1.ut");
    let is_complete = || {
        let manifest = std::fs::read_to_string(numbered.join("manifest.json"));
        manifest.is_ok_and(|text| text.contains("\"complete\""))
    };
    wait_until(is_complete);
    assert!(without_a_hole(&payloads(&numbered)));
    let again = undertick(&["snapshot", &names[0], "-o", numbered.to_str().unwrap()]);
    refused(&again, 2, &["flight-1.ut", "exists already"]);
    signal(writer, libc::SIGTERM);
    let status = child.wait().unwrap();
    assert_eq!(
        status.code(),
        Some(0),
        "the program got the recorder's signal"
    );
    assert!(without_a_hole(&payloads(&trace)));
    refused(
        &undertick(&["snapshot", &names[0]]),
        2,
        &["flight.ut", "undertick report"],
    );
    refused(
        &undertick(&["snapshot", "1"]),
        2,
        &["neither a recorder nor a program"],
    );
}

#[test]
fn a_recording_goes_on_after_its_recorder_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "writer", WRITER, &["-D_GNU_SOURCE"]);
    let program = program.canonicalize().unwrap();
    let trace = dir.path().join("run.ut");
    let mut killed = recorder(&program, &trace, "grow");
    let writer = pid_of(&program);
    let resume = ["record", "--resume", trace.to_str().unwrap()];
    let raw_bytes = || std::fs::metadata(trace.join("raw.utb")).map_or(0, |about| about.len());
    wait_until(|| raw_bytes() > 0);
    refused(&undertick(&resume), 1, &["its recorder is still running"]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let mut goes_on = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(resume)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let before = raw_bytes();
    wait_until(|| raw_bytes() > before);
    signal(writer, libc::SIGTERM);
    assert_eq!(goes_on.wait().unwrap().code(), Some(0));
    let seen = payloads(&trace);
    assert!(seen[0] == 0 && without_a_hole(&seen));
    assert!(seen.len() > 1000, "{}", seen.len());
    refused(&undertick(&resume), 2, &["run.ut", "nothing to go on with"]);
}
