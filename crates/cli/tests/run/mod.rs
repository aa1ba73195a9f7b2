//! `undertick run`: scripts performed on this machine.

mod failures;
mod figures;
use crate::support;
mod wakeups;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use support::{copy_program, document, refused, said, undertick};
use undertick_report::experiment::primitives_first_screen;

/// Runs a script with these arguments, with its trace in the same directory.
fn run(dir: &Path, script: &str, arguments: &[&str]) -> Output {
    let (file, trace) = paths(dir);
    fs::write(&file, script).unwrap();
    let _ = fs::remove_dir_all(&trace);
    let words = ["run", file.to_str().unwrap(), "-o", trace.to_str().unwrap()];
    undertick(&[&words[..], arguments].concat())
}

fn paths(dir: &Path) -> (PathBuf, PathBuf) {
    (dir.join("script.toml"), dir.join("script.ut"))
}

fn report(output: &Output) -> Value {
    let (code, text) = said(output);
    assert_eq!(code, 0, "{text}");
    document("report", output)
}

fn interval<'a>(report: &'a Value, process: &str, name: &str) -> &'a Value {
    (report["intervals"].as_array().unwrap().iter())
        .find(|i| i["name"] == name && i["repeated"]["process"] == process)
        .unwrap_or_else(|| panic!("no {process}.{name} in {report}"))
}

/// Client and server on one CPU, over shared memory.
const PING_PONG: &str = "
passes = 200
repetitions = 6
[channel.there]
kind = \"futex\"
[channel.back]
kind = \"futex\"
[[process]]
name = \"client\"
pass = \"round trip\"
includes = \"there and back\"
[[process.step]]
send = \"there\"
[[process.step]]
receive = \"back\"
[[process]]
name = \"server\"
start = \"blocked\"
place = \"same cpu as client\"
[[process.step]]
send = \"back\"
[[process.step]]
receive = \"there\"
[[interval]]
name = \"one way\"
from = \"client.send\"
to = \"server.receive\"
";

/// A sweep, replicas, a thread, injection, a process in the background.
#[test]
fn a_script_with_everything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let script = "
        seconds = 0.01
        repetitions = 2
        [sweep]
        n = \"1..2\"
        kind = [\"spin\", \"pthread\"]
        [lock.m]
        kind = \"$kind\"
        [[process]]
        name = \"A\"
        replicas = \"$n\"
        every = \"200us\"
        after = \"1ms\"
        [[process.step]]
        lock = \"m\"
        [[process.step]]
        access = 10
        timed = false
        [[process.step]]
        unlock = \"m\"
        [[process]]
        name = \"T\"
        as = \"thread\"
        [[process.step]]
        read = \"monotonic\"
        [[process]]
        name = \"load\"
        background = true
        [[process.step]]
        work = \"10us\"
        ";
    let report = report(&run(dir.path(), script, &["--json"]));
    let locks: Vec<&Value> = (report["intervals"].as_array().unwrap().iter())
        .filter(|i| i["name"] == "lock m")
        .collect();
    assert_eq!(locks.len(), 4);
    for (lock, n) in locks.iter().zip(["1", "1", "2", "2"]) {
        assert_eq!(lock["repeated"]["parameters"]["n"], n);
        // Twice 10 ms with a pass each 200 us give at least 16 passes, dropped ones included.
        let count = lock["count"].as_u64().unwrap() + lock["culled"]["count"].as_u64().unwrap();
        assert!((32..=200).contains(&count), "{lock}");
    }
    interval(&report, "T", "read monotonic");
    // The result as a table, too.
    let (code, text) = said(&run(dir.path(), script, &["--full"]));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("script, kind = spin, n = 2"), "{text}");
}

/// An unprivileged user gets the same figures.
#[test]
fn no_right_is_needed() {
    use std::os::unix::fs::PermissionsExt as _;
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can become somebody else");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, trace) = paths(dir.path());
    fs::write(&file, PING_PONG).unwrap();
    let program = dir.path().join("undertick");
    copy_program(Path::new(env!("CARGO_BIN_EXE_undertick")), &program);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args([program.to_str().unwrap(), "run", file.to_str().unwrap()])
        .args(["-o", trace.to_str().unwrap(), "--json"])
        .output()
        .expect("setpriv");
    let report = report(&output);
    assert_eq!(interval(&report, "client", "round trip")["count"], 1200);
}

#[test]
fn primitives_are_listed_shown_and_measured() {
    let (code, list) = said(&undertick(&["primitives", "--list"]));
    assert_eq!(code, 0);
    assert!(list.lines().any(|name| name == "messages"), "{list}");
    refused(
        &undertick(&["primitives", "--only", "message"]),
        2,
        &["did you mean", "messages"],
    );
    let (code, shown) = said(&undertick(&["primitives", "--show", "--only", "notify"]));
    assert_eq!(code, 0);
    assert!(shown.contains("notify = 1"), "{shown}");
    let report = report(&undertick(&[
        "primitives",
        "--only",
        "calls,notify",
        "--json",
    ]));
    let named: Vec<&Value> = (report["intervals"].as_array().unwrap().iter())
        .filter(|i| i["repeated"]["includes"] != "")
        .collect();
    assert!(named.iter().any(|i| i["name"] == "call getppid"));
    assert_eq!(named.iter().filter(|i| i["name"] == "notify").count(), 20);
    let lines = report["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["points"], 5);
    assert_eq!(lines[0]["name"], "notify, a waiter");
    // Each primitive once, over all its settings.
    let screen = primitives_first_screen(&serde_json::from_value(report.clone()).unwrap(), 100);
    assert!(screen.lines().count() <= 40, "{screen}");
    assert_eq!(screen.matches("call getppid ").count(), 1, "{screen}");
    let notify = screen.split("notify ").last().unwrap();
    assert!(notify.lines().next().unwrap().contains(".."), "{screen}");
}

/// In virtual time the figures are the same each time: three numbers of pairs and five of words.
#[test]
fn an_experiment_on_one_screen() {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../experiments/cmstar-messages.toml")
        .to_str()
        .unwrap()
        .to_owned();
    let dir = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let trace = dir.path().join(format!("{}.ut", more.len()));
        let words = [
            "run",
            &script,
            "--machine",
            "cmstar",
            "-o",
            trace.to_str().unwrap(),
        ];
        let output = undertick(&[&words[..], more].concat());
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let screen = run(&[]);
    assert!(screen.lines().count() <= 40, "{screen}");
    assert!(
        screen.starts_with("cmstar-messages: 15 settings, 4 repetitions, "),
        "{screen}"
    );
    let latency = screen
        .lines()
        .find(|line| line.contains("latency"))
        .unwrap();
    // The least is that of one pair, the largest that of three, without words.
    assert!(
        latency.contains("6.93..9.29 ms") && latency.contains("pairs 1 .. each 0,"),
        "{latency}"
    );
    assert!(screen.contains("call, a word of each"), "{screen}");
    assert!(screen.contains("--full"), "{screen}");
    let full = run(&["--full"]);
    assert!(
        full.lines().count() > 150 && full.contains("pairs = 2"),
        "{full}"
    );
}
