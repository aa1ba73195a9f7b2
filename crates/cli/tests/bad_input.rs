//! Bad input and full disks: a clear error, the right exit status, never a panic, and no file is
//! overwritten.

use crate::support;

use std::fs;
use std::path::Path;

use support::{PROGRAM, SmallDisk, compile, refused, said, trace, undertick};

#[test]
fn what_is_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.ut");
    refused(
        &undertick(&["report", missing.to_str().unwrap()]),
        2,
        &["missing.ut", "no such trace"],
    );
    let empty = dir.path().to_str().unwrap();
    refused(&undertick(&["report", empty]), 2, &["manifest.json"]);
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    refused(
        &undertick(&["report", file.to_str().unwrap()]),
        2,
        &["not a trace"],
    );
    refused(&undertick(&["report"]), 2, &["NAME.ut"]);
    refused(&undertick(&["reprot"]), 2, &["report"]);
}

#[test]
fn options_that_make_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    for (option, value) in [
        ("--cull", "sometimes"),
        ("--compensate", "magic"),
        ("--confidence", "1.5"),
        ("--confidence", "x"),
    ] {
        refused(
            &undertick(&["report", &trace, option, value]),
            2,
            &[value.trim_end_matches(".5")],
        );
    }
    refused(
        &undertick(&["report", &trace, "--cull", "kernel"]),
        2,
        &["kernel"],
    );
    refused(
        &undertick(&["report", &trace, "--html", "/nowhere/page.html"]),
        1,
        &["/nowhere/page.html"],
    );
}

#[test]
fn a_table_that_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let table = dir.path().join("table.toml");
    let path = table.to_str().unwrap().to_owned();
    for (text, words) in [
        (
            "[[interval]]\nname = \"a\"\nstart = \"pars\"\nend = \"parse\"\n",
            &["table.toml", "pars", "parse"][..],
        ),
        (
            "[[interval]]\nname = \"a\"\nstrat = 1\nend = 2\n",
            &["table.toml", "strat"],
        ),
        ("[[interval]\n", &["table.toml"]),
    ] {
        fs::write(&table, text).unwrap();
        refused(&undertick(&["report", &trace, "--table", &path]), 2, words);
    }
    refused(
        &undertick(&["report", &trace, "--table", "/nowhere.toml"]),
        2,
        &["/nowhere.toml"],
    );
}

fn scramble(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn a_damaged_manifest() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let path = Path::new(&trace).join("manifest.json");
    let sound = fs::read(&path).unwrap();
    let mut state = 1;
    for _ in 0..40 {
        let cut = scramble(&mut state) as usize % (sound.len() - 1);
        fs::write(&path, &sound[..cut]).unwrap();
        refused(&undertick(&["report", &trace]), 2, &["manifest.json"]);
    }
    for _ in 0..150 {
        let mut bad = sound.clone();
        let at = scramble(&mut state) as usize % bad.len();
        bad[at] ^= 1 << (scramble(&mut state) % 8);
        fs::write(&path, &bad).unwrap();
        // A digit may have become another one: the result is a report or a refusal.
        let (code, text) = said(&undertick(&["report", &trace, "--json"]));
        assert!(
            (code == 0 || code == 2 || code == 1) && !text.contains("panicked"),
            "{code} {text}"
        );
    }
    let newer = String::from_utf8(sound.clone()).unwrap().replacen(
        "\"schema_version\": 1",
        "\"schema_version\": 2",
        1,
    );
    fs::write(&path, newer).unwrap();
    refused(&undertick(&["report", &trace]), 2, &["version 2"]);
    let outside = String::from_utf8(sound)
        .unwrap()
        .replace("events.parquet", "../events.parquet");
    fs::write(&path, outside).unwrap();
    refused(&undertick(&["report", &trace]), 2, &["not a file name"]);
}

#[test]
fn a_damaged_event_file() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let path = Path::new(&trace).join("events.parquet");
    let sound = fs::read(&path).unwrap();
    let mut state = 9;
    for _ in 0..25 {
        let cut = scramble(&mut state) as usize % (sound.len() - 1);
        fs::write(&path, &sound[..cut]).unwrap();
        refused(
            &undertick(&["report", &trace]),
            2,
            &["events.parquet", "restore"],
        );
    }
    for _ in 0..75 {
        let mut bad = sound.clone();
        let at = scramble(&mut state) as usize % bad.len();
        bad[at] ^= 1 << (scramble(&mut state) % 8);
        fs::write(&path, &bad).unwrap();
        refused(
            &undertick(&["report", &trace]),
            2,
            &["events.parquet", "restore"],
        );
    }
    fs::remove_file(&path).unwrap();
    refused(&undertick(&["report", &trace]), 2, &["events.parquet"]);
    assert!(
        fs::read_dir(&trace).unwrap().count() == 1,
        "nothing was written into it"
    );
}

#[test]
fn nothing_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    refused(
        &undertick(&["record", "-o", &trace, "--", "true"]),
        2,
        &["exists already"],
    );
    let file = dir.path().join("out.csv");
    fs::write(&file, "mine").unwrap();
    let output = undertick(&["export", &trace, "--to", "csv", file.to_str().unwrap()]);
    refused(&output, 2, &["exists already"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let other = dir.path().join("undertick.h");
    fs::write(&other, "mine too").unwrap();
    refused(
        &undertick(&["header", "--dir", dir.path().to_str().unwrap()]),
        2,
        &["another file"],
    );
    assert_eq!(fs::read_to_string(&other).unwrap(), "mine too");
}

#[test]
fn programs_that_cannot_be_started() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("x.ut");
    let name = trace.to_str().unwrap();
    refused(
        &undertick(&[
            "record",
            "--no-calibration",
            "-o",
            name,
            "--",
            "./no-such-program",
        ]),
        2,
        &["./no-such-program"],
    );
    let text = dir.path().join("text");
    fs::write(&text, "no program").unwrap();
    refused(
        &undertick(&[
            "record",
            "--no-calibration",
            "-o",
            name,
            "--",
            text.to_str().unwrap(),
        ]),
        2,
        &["not executable"],
    );
    assert!(!trace.exists());
    refused(&undertick(&["record", "-o", name]), 2, &["PROGRAM"]);
    refused(
        &undertick(&["record", "--ring", "12x", "-o", name, "--", "true"]),
        2,
        &["12x"],
    );
}

#[test]
fn a_shared_memory_that_is_too_small() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path(), "256k") else {
        return;
    };
    let program = compile(dir.path(), "program", PROGRAM, &[]);
    let trace = dir.path().join("x.ut");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args([
            "record",
            "--no-calibration",
            "-o",
            trace.to_str().unwrap(),
            "--",
            program.to_str().unwrap(),
        ])
        .env("UNDERTICK_DIR", &disk.0)
        .output()
        .unwrap();
    refused(&output, 1, &["small", "bytes free", "UNDERTICK_DIR"]);
    assert!(!trace.exists());
}

#[test]
fn a_shared_memory_that_fills_up_while_recording_harms_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path(), "1m") else {
        return;
    };
    // Eight threads want eight rings, and there is room for a few.
    let program = compile(
        dir.path(),
        "threads",
        r#"
#include "undertick.h"
static pthread_barrier_t barrier;
static void *run(void *n) {
    pthread_barrier_wait(&barrier);
    for (uint32_t i = 0; i < 100000; i++) ut_event(1, i);
    pthread_barrier_wait(&barrier);
    return n;
}
int main(void) {
    pthread_t id[8];
    pthread_barrier_init(&barrier, 0, 8);
    for (int i = 0; i < 8; i++) pthread_create(&id[i], 0, run, 0);
    for (int i = 0; i < 8; i++) pthread_join(id[i], 0);
    return 5;
}
"#,
        &[],
    );
    let trace = dir.path().join("x.ut");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args([
            "record",
            "--no-calibration",
            "--ring",
            "256KiB",
            "--budget",
            "768KiB",
            "-o",
            trace.to_str().unwrap(),
            "--",
        ])
        .arg(&program)
        .env("UNDERTICK_DIR", &disk.0)
        .output()
        .unwrap();
    // The status is the program's: the program was not affected.
    assert_eq!(said(&output).0, 5, "{}", said(&output).1);
    let manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(trace.join("manifest.json")).unwrap()).unwrap();
    let (events, lost) = (
        manifest["events"].as_u64().unwrap(),
        manifest["lost"].as_u64().unwrap(),
    );
    assert_eq!(events + lost, 800_000);
    assert!(lost > 0);
}

#[test]
fn a_disk_that_fills_up_while_recording() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path(), "1m") else {
        return;
    };
    let done = dir.path().join("done");
    let program = compile(
        dir.path(),
        "flood",
        r#"
#include "undertick.h"
#include <stdio.h>
int main(int argc, char **argv) {
    (void)argc;
    /* Payloads that do not compress. */
    uint32_t x = 1;
    for (uint32_t i = 0; i < 3000000; i++) { x = x * 1664525u + 1013904223u; ut_event(1, x); }
    FILE *f = fopen(argv[1], "w");
    return !f || fclose(f);
}
"#,
        &[],
    );
    let trace = disk.0.join("x.ut");
    let name = trace.to_str().unwrap();
    let output = undertick(&[
        "record",
        "--no-calibration",
        "-o",
        name,
        "--",
        program.to_str().unwrap(),
        done.to_str().unwrap(),
    ]);
    refused(&output, 1, &["free some space"]);
    assert!(done.exists(), "the program ran to its end");
    // Where there is room, the events recorded so far can be read.
    let moved = dir.path().join("moved.ut");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(&trace)
        .arg(&moved)
        .status()
        .unwrap();
    assert!(copied.success());
    let moved = moved.to_str().unwrap();
    let (code, text) = said(&undertick(&["record", "--finish", moved]));
    assert_eq!(code, 0, "{text}");
    let (code, text) = said(&undertick(&["report", moved, "--json"]));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("event 1"));
}
