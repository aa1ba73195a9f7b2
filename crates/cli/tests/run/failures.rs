//! Scripts that end in a deadlock, cannot be performed, fail, or are interrupted.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::{document, refused, said, undertick};
use super::{PING_PONG, interval, paths, run};

/// Each process waits for the other.
const DEADLOCK: &str = "
passes = 10
repetitions = 1
timeout = \"1s\"
[channel.there]
kind = \"pipe\"
[channel.back]
kind = \"pipe\"
[[process]]
name = \"A\"
[[process.step]]
receive = \"back\"
[[process.step]]
send = \"there\"
[[process]]
name = \"B\"
[[process.step]]
receive = \"there\"
[[process.step]]
send = \"back\"
";

#[test]
fn a_deadlock_ends_and_is_placed() {
    let dir = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let output = run(dir.path(), DEADLOCK, &[]);
    assert!(begun.elapsed() < Duration::from_secs(120));
    let place = "A is in step 1 (receive back, line 12) of pass 1; B is in step 1 (receive there, line 18) of pass 1";
    let (code, text) = said(&output);
    assert_eq!(code, 1, "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["timed out", place, "raise `timeout`"] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}

#[test]
fn what_cannot_be_performed_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let one = "repetitions = 2\n[[process]]\nname = \"A\"\nplace = \"cpu 4000\"\n[[process.step]]\nnull = true\n";
    refused(
        &run(dir.path(), one, &[]),
        1,
        &["CPU 4000", "CPUs that can be used here"],
    );
    refused(
        &run(
            dir.path(),
            "passes = \"many\"\n[[process]]\nname = \"A\"\n[[process.step]]\nnull = true\n",
            &[],
        ),
        2,
        &["script.toml:1:10"],
    );
    refused(
        &run(dir.path(), one, &["--machine", "moon"]),
        2,
        &["moon", "here"],
    );
    refused(&run(dir.path(), one, &["--cull", "some"]), 2, &["--cull"]);
    refused(&undertick(&["run", "/no/such.toml"]), 2, &["/no/such.toml"]);
    let exists = dir.path().join("exists.ut");
    fs::create_dir(&exists).unwrap();
    let file = paths(dir.path()).0;
    let words = [
        "run",
        file.to_str().unwrap(),
        "-o",
        exists.to_str().unwrap(),
    ];
    refused(&undertick(&words), 2, &["exists already"]);
}

/// A failure in a process fails the repetition, with the reason.
#[test]
fn a_process_that_fails_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let script = "passes = 2\nrepetitions = 1\n[region.r]\nbytes = \"64GiB\"\n[[process]]\nname = \"A\"\n\
        [[process.step]]\ntouch = \"r\"\n";
    refused(
        &run(dir.path(), script, &[]),
        1,
        &["region", "repetition 1"],
    );
}

/// Runs `undertick run` on the script, and interrupts it after that time.
fn interrupted(dir: &Path, script: &str, after: Duration) -> Output {
    let (file, trace) = paths(dir);
    fs::write(&file, script).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args([
            "run",
            file.to_str().unwrap(),
            "-o",
            trace.to_str().unwrap(),
            "--json",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("it does not begin", || trace.join("manifest.json").exists());
    std::thread::sleep(after);
    // SAFETY: a signal to our own child.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    wait_for("it does not stop", || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap()
}

fn wait_for(what_else: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what_else}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupt_keeps_what_was_done() {
    let script = "passes = 5\nrepetitions = 1000\nwarm_up = 0\n[[process]]\nname = \"A\"\n[[process.step]]\nsleep = \"5ms\"\n";
    // On a busy machine the first repetition takes longer.
    for seconds in [2, 4, 8, 16, 32] {
        let dir = tempfile::tempdir().unwrap();
        let output = interrupted(dir.path(), script, Duration::from_secs(seconds));
        let (code, text) = said(&output);
        assert_eq!(code, 130, "{text}");
        if output.stdout.is_empty() {
            assert!(
                text.contains("interrupted before a repetition was over"),
                "{text}"
            );
            continue;
        }
        let report: Value = document("report", &output);
        let sleep = interval(&report, "A", "sleep");
        // The kernel guarantees at least that long on any machine.
        assert!(sleep["min"].as_f64().unwrap() > 4.9e6, "{sleep}");
        assert!(paths(dir.path()).1.join("manifest.json").exists());
        return;
    }
    panic!("no repetition in 32 s");
}

/// With one CPU: the other one is reported as missing, and the rest is measured.
#[test]
fn one_cpu_is_enough_for_what_needs_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (file, trace) = paths(dir.path());
    let script = PING_PONG
        .replace(
            "repetitions = 6",
            "repetitions = 2\n[sweep]\nplace = [\"same cpu as client\", \"other cpu than client\"]",
        )
        .replace("place = \"same cpu as client\"", "place = \"$place\"");
    fs::write(&file, script).unwrap();
    let output = Command::new("taskset")
        .args(["-c", "0", env!("CARGO_BIN_EXE_undertick"), "run"])
        .args([file.to_str().unwrap(), "-o", trace.to_str().unwrap()])
        .output()
        .expect("taskset");
    refused(
        &output,
        1,
        &["there is only one that can be used", "round trip"],
    );
}
