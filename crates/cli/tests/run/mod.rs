//! `undertick run`: scripts performed on this machine.

mod failures;
mod figures;
use crate::support;
mod wakeups;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use support::{copy_program, refused, said, undertick};

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
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {text}"))
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
    let (code, text) = said(&run(dir.path(), script, &[]));
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
}
