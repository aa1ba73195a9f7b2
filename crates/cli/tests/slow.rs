//! `undertick slow`: plans compared with figures by hand; for live runs the tests check only
//! invariants.

use std::process::Command;

use crate::support;

use serde_json::Value;
use support::{document, refused, undertick};

const SCRIPT: &str = "cycles = 600\nwarm_up = 5\n\n[[step]]\nname = \"small\"\nwork = \"20us\"\n\n\
    [[step]]\ncall = \"getppid\"\n\n[[step]]\nname = \"rest\"\nwork = \"80us\"\n";

fn json(arguments: &[&str]) -> Value {
    let output = undertick(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    document("slow-plan", &output)
}

/// The refusals of runs that a busy machine preempted all the time.
const PREEMPTED: [&str; 2] = [
    "preempted all the time",
    "ended before enough undisturbed cycles",
];

/// The exit code and the document of a live run. A run that was preempted all the time is repeated;
/// `None`, with the reason printed, if all of them were.
fn live(arguments: &[&str]) -> Option<(i32, Value)> {
    for _ in 0..20 {
        let output = undertick(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code().expect("an exit code");
        if PREEMPTED.iter().any(|words| errors.contains(words)) {
            assert_eq!((code, output.stdout.len()), (1, 0), "{errors}");
            std::thread::sleep(std::time::Duration::from_millis(200));
            continue;
        }
        return Some((code, document("slow-run", &output)));
    }
    println!("skipped: this machine is too busy for a loop of {arguments:?}");
    None
}

fn script(dir: &tempfile::TempDir, text: &str) -> String {
    let path = dir.path().join("loop.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// By hand: (3.289707 / 0.1)^2 * 19 = 20 562.1 cycles, each 2.5 ms long.
#[test]
fn a_plan() {
    let words = "slow plan --duration 50us --tick 1ms --confidence 0.9 --precision 0.1";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.push("--json");
    let plan = json(&words);
    assert_eq!(plan["schema_version"], 1);
    assert_eq!(plan["cycles"], 20_563);
    assert_eq!(plan["seconds"], Value::Null);
    assert_eq!(plan["tick_over_duration"], 20.0);
    assert_eq!(
        (&plan["level"], &plan["precision"]),
        (&0.9.into(), &0.1.into())
    );

    words.extend(["--loop", "2.5ms"]);
    let plan = json(&words);
    assert!((plan["seconds"].as_f64().unwrap() - 51.4075).abs() < 1e-6);
    // 2.5 ms is 5:2; 0.118 of a tick more is a golden step.
    assert_eq!(plan["warnings"].as_array().unwrap().len(), 1);
    assert!((plan["proposed_delay_ns"].as_f64().unwrap() - 118_034.0).abs() < 1.0);
    assert!(8 * plan["stepped_cycles"].as_u64().unwrap() <= 20_563);
}

/// Asserts what must hold of any run on any machine.
#[test]
fn a_run_adds_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = script(&dir, SCRIPT);
    for estimator in ["stepped", "edges"] {
        let Some((code, run)) = live(&[
            "slow",
            "run",
            &path,
            "--clock",
            "quantised:200us",
            "--estimator",
            estimator,
            "--json",
        ]) else {
            return;
        };
        assert_eq!(code, 0, "{run}");
        assert_eq!(run["schema_version"], 1);
        assert_eq!(run["estimator"], estimator);
        let rows = run["activities"].as_array().unwrap();
        let names: Vec<&str> = rows.iter().map(|r| r["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["small", "2 getppid", "rest"]);
        assert!(run["dropped"].as_u64() <= run["cycles"].as_u64());
        for row in rows {
            let mean = &row["mean"];
            let (value, lo, hi) = (&mean["value"], &mean["interval"][0], &mean["interval"][1]);
            let (value, lo, hi) = (
                value.as_f64().unwrap(),
                lo.as_f64().unwrap(),
                hi.as_f64().unwrap(),
            );
            assert!(lo <= value.max(0.0) && value <= hi, "{row}");
            let error = row["error_ns"].as_f64().unwrap();
            assert!(
                (value - row["truth_ns"].as_f64().unwrap() - error).abs() < 1e-6,
                "{row}"
            );
        }
    }
}

/// On one CPU the clock's own share is taken off the means; truth and error are of the loop beside its
/// clock, so that they give the mean from which it was taken.
#[test]
fn a_clock_on_the_loops_cpu_is_taken_off() {
    if Command::new("taskset").arg("--version").output().is_err() {
        println!("skipped: no taskset here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = script(&dir, SCRIPT);
    let cpu = undertick_clock::cpus::allowed()[0].to_string();
    let run = |cpus: &[&str]| -> Value {
        let mut command = Command::new(if cpus.is_empty() {
            env!("CARGO_BIN_EXE_undertick")
        } else {
            "taskset"
        });
        if !cpus.is_empty() {
            command
                .args(["-c", &cpu])
                .arg(env!("CARGO_BIN_EXE_undertick"));
        }
        let words = "--clock adjustable:100us --estimator stepped --json";
        let output = (command.args(["slow", "run", &path]).args(words.split(' ')))
            .output()
            .unwrap();
        document("slow-run", &output)
    };
    let beside = run(&["one"]);
    let share = beside["clock_share"].as_f64().unwrap();
    assert!(share < 1.0 && share != 0.0, "{share}");
    for row in beside["activities"].as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        let with = number("truth_ns") + number("error_ns");
        let mean = row["mean"]["value"].as_f64().unwrap();
        // Both are 0 where no tick was counted.
        assert!(
            (mean - with * (1.0 - share.max(0.0))).abs() <= 1e-6 * with.abs(),
            "{share}: {row}"
        );
        if row["refused"].is_string() {
            continue;
        }
        let [lo, hi] = [0, 1].map(|bound| row["mean"]["interval"][bound].as_f64());
        assert!(lo <= Some(mean) && Some(mean) <= hi, "{row}");
    }
    let findings = beside["findings"].to_string();
    assert!(
        findings.contains("which is taken off the means"),
        "{findings}"
    );
    if undertick_clock::cpus::allowed().len() > 1 {
        // The clock has its own CPU.
        let apart = run(&[]);
        assert!(apart["clock_share"].is_null(), "{apart}");
        assert!(
            !apart["findings"]
                .to_string()
                .contains("taken off the means"),
            "{apart}"
        );
    }
}

#[test]
fn plain_counts_give_intervals_or_say_why_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = script(&dir, SCRIPT);
    let Some((code, run)) = live(&[
        "slow",
        "run",
        &path,
        "--clock",
        "quantised:200us",
        "--estimator",
        "counts",
        "--json",
    ]) else {
        return;
    };
    let rows = run["activities"].as_array().unwrap();
    let locked = rows.iter().any(|row| row["refused"].is_string());
    assert_eq!(code, i32::from(locked));
    for row in rows {
        let bounds = row["mean"]["interval"][0].is_number();
        assert_ne!(bounds, row["refused"].is_string(), "{row}");
    }
    let total: i64 = rows.iter().map(|row| row["ticks"].as_i64().unwrap()).sum();
    assert_eq!(Some(total), run["cycle"]["ticks"].as_i64());
}

#[test]
fn mistakes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = script(&dir, &SCRIPT.replace("getppid", "getpid"));
    let wrong = undertick(&["slow", "run", &path, "--clock", "quantised:1ms"]);
    refused(&wrong, 2, &["loop.toml:9:8", "getppid"]);
    let path = script(&dir, SCRIPT);
    let wrong = undertick(&["slow", "run", &path, "--clock", "sundial"]);
    refused(&wrong, 2, &["sundial", "quantised:TICK"]);
    let wrong = undertick(&[
        "slow",
        "run",
        &path,
        "--clock",
        "quantised:1ms",
        "--estimator",
        "guess",
    ]);
    refused(&wrong, 2, &["guess", "stepped"]);
    let wrong = undertick(&["slow", "run", "/nonexistent.toml", "--clock", "times"]);
    refused(&wrong, 2, &["/nonexistent.toml"]);
    let wrong = undertick(&["slow", "plan", "--duration", "50", "--tick", "1ms"]);
    refused(&wrong, 2, &["is no duration"]);
    let wrong = undertick(&[
        "slow",
        "plan",
        "--duration",
        "50us",
        "--tick",
        "1ms",
        "--precision",
        "0",
    ]);
    refused(&wrong, 2, &["--precision"]);
}

/// The loop that is locked on purpose runs unchanged, and its pace makes the cycle no shorter than
/// stated.
#[test]
fn a_pace_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let here = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../experiments/slow-locked.toml"
    );
    let text = std::fs::read_to_string(here).unwrap();
    let path = script(&dir, &text.replace("seconds = 5.0", "cycles = 400"));
    let Some((code, run)) = live(&[
        "slow",
        "run",
        &path,
        "--clock",
        "quantised:200us",
        "--estimator",
        "counts",
        "--json",
    ]) else {
        return;
    };
    assert!(code < 2);
    assert!(run["seconds"].as_f64().unwrap() >= 399.0 * 500e-6, "{run}");
    let wrong = script(&dir, &text.replace("pace = \"500us\"", "pace = \"often\""));
    let wrong = undertick(&["slow", "run", &wrong, "--clock", "quantised:1ms"]);
    refused(&wrong, 2, &["is no duration"]);
}
