//! A library that is loaded and unloaded many times leaves no more behind than one that is loaded a
//! few times, recorded or not, and no event is lost.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{alone, program, rows, run, settings};
use undertick_record::Overflow;

const MIB: u64 = 1 << 20;

fn cycles() -> PathBuf {
    program("cycles.c", &["-D_GNU_SOURCE"])
}

fn c_library() -> PathBuf {
    program("plugin.c", &["-shared", "-fPIC"])
}

/// Returns the example `plugin`, which Cargo builds with the tests.
fn rust_library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let built = here.parent().and_then(Path::parent).unwrap();
    let library = built.join("examples/libplugin.so");
    assert!(
        library.exists(),
        "{}: not there (cargo build --release -p undertick-record --example plugin)",
        library.display()
    );
    library
}

/// Returns mappings and KiB of virtual memory after a tenth of the cycles, and at the end.
fn said(text: &str) -> [(u64, u64); 2] {
    let mut lines = text.lines().map(|line| {
        let (mappings, kib) = line.split_once(' ').expect("two numbers");
        (mappings.parse().unwrap(), kib.parse().unwrap())
    });
    [
        lines.next().expect("a line"),
        lines.next().expect("two lines"),
    ]
}

fn assert_bounded([early, late]: [(u64, u64); 2], most_kib: u64) {
    assert!(late.0 <= early.0 + 4, "{early:?} {late:?} mappings");
    assert!(late.1 <= early.1 + 1024, "{early:?} {late:?} KiB");
    assert!(late.1 < most_kib, "{late:?} KiB");
}

fn check_unrecorded(libraries: [&Path; 2], n: &str) {
    let output = Command::new(cycles())
        .arg(libraries[0])
        .args([n, "3"])
        .arg(libraries[1])
        .env_remove("UNDERTICK_SESSION")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors} {}", output.status);
    assert_bounded(said(&text), 512 << 10);
}

/// With three mappings each, the cycles exceed the mappings that a process may have (65530).
#[test]
fn thirty_thousand_cycles_that_nobody_records() {
    let _alone = alone();
    let library = c_library();
    check_unrecorded([&library, &library], "30000");
}

#[test]
fn cycles_of_rust_and_of_c_that_nobody_records() {
    let _alone = alone();
    check_unrecorded([&rust_library(), &c_library()], "2000");
}

/// Two threads in each of 300 cycles: each has its ring, and all recorded events are there.
fn check_recorded(libraries: [&Path; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let (trace, out) = (dir.path().join("c.ut"), dir.path().join("out"));
    let cycles = cycles();
    let command = [
        "sh",
        "-c",
        "out=$1; shift; exec \"$@\" >\"$out\"",
        "sh",
        out.to_str().unwrap(),
        cycles.to_str().unwrap(),
        libraries[0].to_str().unwrap(),
        "300",
        "20",
        libraries[1].to_str().unwrap(),
    ];
    let manifest = run(&trace, &command, settings(Overflow::Grow, MIB, None)).unwrap();
    assert_eq!(manifest.exit.unwrap().status, Some(0));
    let (_, rows) = rows(&trace);
    let points = rows.iter().filter(|row| row.event == 1).count();
    assert_eq!(
        (points, manifest.lost),
        (300 * 2 * 20, 0),
        "{:?}",
        manifest.warnings
    );
    let executions: u64 = manifest.sampled.iter().map(|s| s.executions).sum();
    assert_eq!(executions, 300 * 2 * 20);
    assert_eq!(manifest.rings.len(), 600);
    // One ring, mapped at its largest size, not 300 rings.
    assert_bounded(said(&std::fs::read_to_string(&out).unwrap()), 4 << 20);
}

#[test]
fn cycles_that_are_recorded() {
    let _alone = alone();
    let library = c_library();
    check_recorded([&library, &library]);
}

#[test]
fn cycles_of_rust_that_are_recorded() {
    let _alone = alone();
    let library = rust_library();
    check_recorded([&library, &library]);
}

#[test]
fn cycles_of_rust_and_of_c_that_are_recorded() {
    let _alone = alone();
    check_recorded([&rust_library(), &c_library()]);
}
