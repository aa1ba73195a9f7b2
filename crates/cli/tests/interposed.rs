//! `undertick record --with`, `locks` and `allocations`, on programs that know what they waited for and
//! how much they allocated.

use crate::support;

use std::process::Command;

use serde_json::Value;
use support::{compile, document, refused, said, undertick};

const PROGRAM: &str = include_str!("programs/interposed.c");
const RULES: &str = include_str!("programs/lock_rules.c");

/// Records the program; the trace.
fn recorded(dir: &std::path::Path, options: &[&str], words: &[&str]) -> String {
    let program = compile(dir, "interposed", PROGRAM, &[]);
    let trace = dir.join("t.ut").to_str().unwrap().to_owned();
    let first = ["record", "--no-calibration", "-o", &trace];
    let program = ["--", program.to_str().unwrap()];
    let output = undertick(&[&first, options, &program, words].concat());
    let (_, text) = said(&output);
    assert!(text.contains(" 0 lost"), "{text}");
    trace
}

/// The names of a path of the report from the outermost on, or of a span that never ended.
fn names(report: &Value, path: &Value, still_open: &Value) -> String {
    let of = |at: &Value| &report["paths"][at.as_u64().expect("a path") as usize];
    let mut names = Vec::new();
    let mut path = path;
    while !path.is_null() {
        names.push(of(path)["name"].as_str().expect("a name"));
        path = &of(path)["parent"];
    }
    names.reverse();
    let open = still_open.as_array().into_iter().flatten();
    names.extend(open.map(|name| name.as_str().expect("a name")));
    names.join("/")
}

#[test]
fn waits_have_the_lock_the_span_and_the_holder() {
    let dir = tempfile::tempdir().unwrap();
    let trace = recorded(dir.path(), &["--with", "locks"], &["waits"]);
    let report = document("report", &undertick(&["locks", &trace, "--json"]));
    let rows = report["locks"]["rows"].as_array().expect("rows");
    let row = |kind: &str, within: &str| {
        let found = rows.iter().find(|row| {
            row["lock"]["kind"] == kind
                && names(&report, &row["path"], &row["still_open"]) == within
        });
        found.unwrap_or_else(|| panic!("no wait for a {kind} in {within}: {rows:?}"))
    };
    let by = |row: &Value| names(&report, &row["by_path"], &row["by_still_open"]);
    let expected = [
        (
            "mutex",
            "cache",
            "front/request/lookup",
            "other threads/commit",
            20,
        ),
        (
            "rw_lock_to_read",
            "table",
            "front/read",
            "other threads/update",
            1,
        ),
        ("condition", "filled", "front/take", "other threads/push", 1),
        (
            "semaphore",
            "pool+0x10",
            "front/acquire",
            "other threads/release",
            1,
        ),
    ];
    for (kind, name, within, held_in, n) in expected {
        let row = row(kind, within);
        assert_eq!(row["lock"]["name"], name, "{row}");
        assert_eq!((by(row).as_str(), row["n"].as_u64()), (held_in, Some(n)));
        // The holder went on when the other thread slept, and looks each 0.2 ms.
        let longest = row["longest_ns"].as_f64().expect("a time");
        assert!(longest > 10_000.0, "{row}");
    }
    assert_eq!(report["locks"]["still_waiting"], 0);
    // Waits are no spans.
    let paths = report["paths"].as_array().expect("paths");
    assert!(
        paths
            .iter()
            .all(|path| !path["name"].as_str().unwrap().contains("wait"))
    );
    assert_eq!(
        report["intervals"].as_array().unwrap().len(),
        9,
        "{report:#}"
    );

    let explained = undertick(&["explain", &trace, "lookup", "--slowest", "3", "--json"]);
    let explained = document("explain", &explained);
    let call = &explained["paths"][0]["slowest"][0];
    let wait = &call["waits"][0];
    assert_eq!(
        wait["by_in"],
        serde_json::json!(["other threads", "commit"])
    );
    let (waited, took) = (wait["waited_ns"].as_f64(), call["took_ns"].as_f64());
    assert!(waited.unwrap() > 0.5 * took.unwrap(), "{call}");

    let (status, text) = said(&undertick(&["explain", &trace, "lookup"]));
    assert_eq!(status, 0);
    assert!(
        text.contains("for mutex cache") && text.contains("held by thread"),
        "{text}"
    );
    let (_, text) = said(&undertick(&["locks", &trace, "lookup"]));
    assert!(
        text.contains("other threads/commit") && !text.contains("semaphore pool"),
        "{text}"
    );
    let (_, text) = said(&undertick(&["report", &trace]));
    assert!(text.contains("which was held in \"commit\""), "{text}");
}

#[test]
fn a_program_that_is_killed_while_it_waits_shows_for_what() {
    let dir = tempfile::tempdir().unwrap();
    let trace = recorded(dir.path(), &["--with", "locks"], &["stuck"]);
    let report = document("report", &undertick(&["locks", &trace, "--json"]));
    let row = &report["locks"]["rows"][0];
    assert_eq!(row["still_waiting"], 1);
    assert_eq!(row["still_open"], serde_json::json!(["request"]));
    assert_eq!(row["by_still_open"], serde_json::json!(["request"]));
    assert!(row["waited_ns"].as_f64().unwrap() > 0.5e9, "{row}");
}

#[test]
fn allocations_are_counted_by_span_to_the_last_one() {
    let dir = tempfile::tempdir().unwrap();
    for options in [
        &["--with", "malloc"][..],
        &["--with", "locks,malloc", "--parquet"],
    ] {
        let _ = std::fs::remove_dir_all(dir.path().join("t.ut"));
        let trace = recorded(dir.path(), options, &[]);
        let report = document("report", &undertick(&["allocations", &trace, "--json"]));
        let found = &report["allocations"];
        let of = |path: &str| {
            let rows = found["paths"].as_array().expect("paths");
            let row = rows
                .iter()
                .find(|row| names(&report, &row["path"], &row["still_open"]) == path);
            let row = row.unwrap_or_else(|| panic!("nothing in {path}: {found}"));
            ["calls", "bytes", "frees"].map(|field| row[field].as_u64().expect("a count"))
        };
        let large = 5 << 30;
        let in_parse = [
            50 * 7 + 3000 + 1,
            50 * 7 * 100 + 3000 + large,
            50 * 9 + 3000,
        ];
        let [calls, bytes, frees] = of("parse");
        // The large one may be refused: then there is nothing to free.
        assert_eq!([calls, bytes], in_parse[..2]);
        assert!(frees == in_parse[2] || frees == in_parse[2] + 1, "{frees}");
        assert_eq!(of("parse/tree"), [150, 50 * (3000 + 5000 + 640), 50]);
        assert_eq!(
            of("event 12"),
            [11, 110, 11],
            "a forked child tells no names"
        );
        assert_eq!(
            (&found["unplaced_calls"], &found["lost"]),
            (&0.into(), &0.into())
        );
        let (_, text) = said(&undertick(&["allocations", &trace, "parse"]));
        assert!(
            text.contains("parse, with the spans inside it: 3 501 allocations"),
            "{text}"
        );
    }
}

#[test]
fn the_libraries_leave_the_marks_of_the_scheduler_to_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let trace = recorded(dir.path(), &["--with", "locks,malloc"], &[]);
    let manifest = std::fs::read_to_string(format!("{trace}/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    if manifest["descheduled"] == "unavailable" {
        println!("skipped: no restartable sequences here");
        return;
    }
    let csv = dir.path().join("t.csv");
    let output = undertick(&["export", &trace, "--to", "csv", csv.to_str().unwrap()]);
    assert!(output.status.success(), "{}", said(&output).1);
    let rows = std::fs::read_to_string(csv).unwrap();
    let mut lines = rows.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().expect("headings");
    let at = |name: &str| {
        heads
            .iter()
            .position(|head| *head == name)
            .expect("a column")
    };
    let (flag, name) = (at("descheduled"), at("name"));
    let (of_libraries, of_program): (Vec<_>, Vec<_>) =
        lines.partition(|row| row[name].starts_with("allocations"));
    assert!(of_libraries.len() > 50 && of_program.len() > 200, "{rows}");
    assert!(of_libraries.iter().all(|row| row[flag] == "-1"));
    assert!(
        of_program
            .iter()
            .filter(|row| row[at("mode")] == "user")
            .all(|row| row[flag] != "-1")
    );
}

#[test]
fn the_c_library_answers_as_it_does_alone() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "rules", RULES, &["-fno-builtin"]);
    let program = program.to_str().unwrap();
    let alone = Command::new(program).output().expect("it runs");
    let trace = dir.path().join("t.ut").to_str().unwrap().to_owned();
    let words = [
        "record",
        "--no-calibration",
        "--with",
        "malloc,locks",
        "-o",
        &trace,
        "--",
        program,
    ];
    let recorded = undertick(&words);
    let lines =
        |output: &std::process::Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        alone.status.success() && recorded.status.success(),
        "{}",
        said(&recorded).1
    );
    assert_eq!(lines(&alone), lines(&recorded));
    assert!(lines(&alone).lines().count() > 45);
    // A wait that was cancelled has ended.
    let report = document("report", &undertick(&["locks", &trace, "--json"]));
    assert_eq!(report["locks"]["still_waiting"], 0);
}

#[test]
fn what_cannot_be_preloaded_is_refused_or_said() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "interposed", PROGRAM, &["-static"]);
    let trace = dir.path().join("t.ut").to_str().unwrap().to_owned();
    let program = program.to_str().unwrap();
    let output = undertick(&["record", "--with", "locks", "-o", &trace, "--", program]);
    refused(&output, 2, &["statically linked", "link it dynamically"]);
    assert!(!dir.path().join("t.ut").exists());
    let output = undertick(&["record", "--with", "lock", "--", program]);
    refused(&output, 2, &["'lock'", "locks, malloc"]);
    let output = undertick(&["record", "--with", "locks", "--pid", "1"]);
    refused(&output, 2, &["--pid"]);
    let plain = support::trace(dir.path());
    refused(
        &undertick(&["locks", &plain]),
        2,
        &["recorded without --with locks"],
    );
    refused(
        &undertick(&["allocations", &plain]),
        2,
        &["recorded without --with malloc"],
    );
}
