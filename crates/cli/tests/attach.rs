//! `undertick record --pid`, as a separate process.

use crate::support;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use support::{compile, copy_program, document, refused, said, undertick};

const NOBODY: u32 = 65_534;

/// The program that executes commands and reports what it wrote.
struct Program {
    child: Child,
    said: BufReader<ChildStdout>,
    pid: i32,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let pid = child.id() as i32;
        let mut program = Self { child, said, pid };
        // Asks the program for its number, because another process may have started it.
        program.pid = program.tell("main 1")[0].0;
        program
    }

    /// Sends a command; returns thread, event and count of what it wrote.
    fn tell(&mut self, command: &str) -> Vec<(i32, i32, u64)> {
        writeln!(self.child.stdin.as_mut().unwrap(), "{command}").unwrap();
        let mut all = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended");
            if line == "done\n" {
                return all;
            }
            let words: Vec<i64> = line
                .split_whitespace()
                .map(|n| n.parse().unwrap())
                .collect();
            all.push((words[0] as i32, words[1] as i32, words[2] as u64));
        }
    }

    fn pid(&self) -> String {
        self.pid.to_string()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn source(dir: &Path) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/programs/attach.c");
    let text = std::fs::read_to_string(path).unwrap();
    Command::new(compile(dir, "attach", &text, &[]))
}

/// Starts a recorder that attaches to `program`, and waits until the points are on.
fn recorder(program: &mut Program, trace: &Path, options: &[&str]) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args([
            "record",
            "--no-calibration",
            "--kernel",
            "off",
            "--pid",
            &program.pid(),
            "-o",
        ])
        .arg(trace)
        .args(options)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A killed recorder leaves the points on, so wait until they belong to this one.
    while !trace.join("manifest.json").exists() {
        if child.try_wait().unwrap().is_some() {
            panic!("it ended: {:?}", said(&child.wait_with_output().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    program.tell("on 0");
    child
}

fn stop(recorder: Child) -> (i32, String) {
    // SAFETY: to our own child.
    unsafe { libc::kill(recorder.id() as i32, libc::SIGINT) };
    said(&recorder.wait_with_output().unwrap())
}

/// Counts the events of that number in the output of `export`.
fn events(trace: &Path, event: &str) -> usize {
    let csv = trace.with_extension(format!("{event}.csv"));
    let exported = undertick(&[
        "export",
        trace.to_str().unwrap(),
        "--to",
        "csv",
        csv.to_str().unwrap(),
    ]);
    assert_eq!(said(&exported).0, 0, "{}", said(&exported).1);
    let text = std::fs::read_to_string(csv).unwrap();
    let mut lines = text.lines();
    let column = (lines.next().unwrap().split(',')).position(|name| name == "event");
    lines
        .filter(|line| line.split(',').nth(column.unwrap()) == Some(event))
        .count()
}

fn sessions_of(recorder: u32) -> usize {
    let part = format!("-{recorder}-");
    let all = std::fs::read_dir("/dev/shm").unwrap().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().contains(&part))
        .count()
}

/// With kernel events, of which the kernel takes longer to let go than the recorder runs.
#[test]
fn the_next_recorder_may_come_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program::start(&mut source(dir.path()));
    for round in 0..4 {
        let trace = dir.path().join(format!("{round}.ut"));
        let recorded = undertick(&[
            "record",
            "--no-calibration",
            "--pid",
            &program.pid(),
            "--for",
            "20ms",
            "-o",
            trace.to_str().unwrap(),
        ]);
        assert_eq!(said(&recorded).0, 0, "{round}: {}", said(&recorded).1);
    }
}

#[test]
fn ctrl_c_ends_the_recording_and_not_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::start(&mut source(dir.path()));
    for round in 0..2 {
        let trace = dir.path().join(format!("{round}.ut"));
        let recorder = recorder(&mut program, &trace, &[]);
        let id = recorder.id();
        program.tell("events 1000");
        let (status, text) = stop(recorder);
        assert_eq!(status, 0, "{text}");
        assert!(text.contains("3000 events of 3 threads"), "{text}");
        assert_eq!((events(&trace, "1"), sessions_of(id)), (3000, 0));
        program.tell("events 10"); // not recorded
    }
    // The recording ends with its time; the trace has the program's name.
    let output = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args([
            "record",
            "--no-calibration",
            "--pid",
            &program.pid(),
            "--for",
            "50ms",
        ])
        .current_dir(&dir)
        .output()
        .unwrap();
    let (status, text) = said(&output);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("in attach.ut"), "{text}");
    assert!(dir.path().join("attach.ut/manifest.json").exists());
    program.tell("quit 0");
    assert!(program.child.wait().unwrap().success());
}

#[test]
fn a_killed_recorder_leaves_a_program_that_can_be_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::start(&mut source(dir.path()));
    for round in 0..3 {
        let trace = dir.path().join(format!("killed-{round}.ut"));
        let mut killed = recorder(
            &mut program,
            &trace,
            &["--budget", "4MiB", "--ring", "256KiB"],
        );
        let id = killed.id();
        program.tell("events 1000");
        program.tell("spans 1000");
        killed.kill().unwrap();
        killed.wait().unwrap();
        // More events than there is room for.
        program.tell("events 1000000");
        program.tell("fork 1000");
        program.tell("thread 1000");
        program.tell("spans 1000");
        assert_eq!(sessions_of(id), 1);
        let trace = dir.path().join(format!("after-{round}.ut"));
        let output = recorder(&mut program, &trace, &[]);
        assert_eq!(sessions_of(id), 0, "what the killed one left");
        program.tell("events 2000");
        program.tell("spans 300");
        let (status, text) = stop(output);
        assert_eq!(status, 0, "{text}");
        assert!(text.contains(", 0 lost"), "{text}");
        assert_eq!((events(&trace, "1"), events(&trace, "5")), (6000, 900));
    }
    program.tell("quit 0");
    assert!(program.child.wait().unwrap().success());
}

#[test]
fn a_program_in_a_session_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let program = source(dir.path()).get_program().to_owned();
    let mut command = Command::new(env!("CARGO_BIN_EXE_undertick"));
    let trace = dir.path().join("started.ut");
    command.args(["record", "--no-calibration", "--kernel", "off", "-o"]);
    command.arg(&trace).arg("--").arg(program);
    let mut program = Program::start(&mut command);
    let output = undertick(&["record", "--pid", &program.pid(), "--for", "1s"]);
    refused(&output, 2, &["was started by `undertick record`"]);
    program.tell("main 99");
    program.tell("quit 0");
    program.child.wait().unwrap();
    assert_eq!(events(&trace, "2"), 100);
}

#[test]
fn users() {
    let dir = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    // SAFETY: only returns a number.
    if unsafe { libc::getuid() } != 0 {
        println!("skipped: only root can be two users");
        return;
    }
    std::fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    // Root attaches to a program of the user nobody.
    let mut program = Program::start(source(dir.path()).uid(NOBODY).gid(NOBODY));
    let trace = dir.path().join("root.ut");
    let by_root = recorder(&mut program, &trace, &[]);
    program.tell("events 500");
    program.tell("fork 5");
    let (status, text) = stop(by_root);
    assert_eq!(status, 0, "{text}");
    assert_eq!((events(&trace, "1"), events(&trace, "2")), (1505, 5));
    // The user nobody attaches to it, too; the program is copied to where nobody can run it.
    let copy = dir.path().join("undertick");
    copy_program(Path::new(env!("CARGO_BIN_EXE_undertick")), &copy);
    let as_nobody = |pid: &str, name: &str| {
        let mut command = Command::new(&copy);
        command.args(["record", "--no-calibration", "--pid", pid, "-o"]);
        command.arg(dir.path().join(name)).uid(NOBODY).gid(NOBODY);
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let by_nobody = as_nobody(&program.pid(), "nobody.ut");
    program.tell("on 0");
    program.tell("events 700");
    let (status, text) = stop(by_nobody);
    assert_eq!(status, 0, "{text}");
    assert_eq!(events(&dir.path().join("nobody.ut"), "1"), 2100);
    // Nobody may not attach to a program of root, nor to one that was root's.
    let mut of_root = Program::start(&mut source(dir.path()));
    for user in [None, Some(NOBODY)] {
        if let Some(user) = user {
            of_root.tell(&format!("user {user}"));
        }
        let output = as_nobody(&of_root.pid(), "no.ut")
            .wait_with_output()
            .unwrap();
        refused(&output, 2, &["not yours to record", "as root"]);
    }
    // The program has changed its user; root can still record it.
    let trace = dir.path().join("changed.ut");
    let by_root = recorder(&mut of_root, &trace, &[]);
    of_root.tell("main 40");
    let (status, text) = stop(by_root);
    assert_eq!(status, 0, "{text}");
    assert_eq!(events(&trace, "2"), 40, "{text}");
}

#[test]
fn rates_can_be_changed_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::start(&mut source(dir.path()));
    let trace = dir.path().join("t.ut");
    let recorder = recorder(&mut program, &trace, &["--sample", "60000"]);
    program.tell("spans 100");
    let changed = undertick(&["sample", trace.to_str().unwrap(), "sampled=1", "1"]);
    assert_eq!(said(&changed).0, 0, "{}", said(&changed).1);
    // The rate arrives within a tenth of a second, and holds from the next recorded span on: at the
    // latest after the longest gap.
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(400) {
        program.tell("spans 10");
    }
    program.tell("spans 120000");
    program.tell("spans 5000");
    let (status, text) = stop(recorder);
    assert_eq!(status, 0, "{text}");
    let begins_and_ends = events(&trace, "3");
    assert!(begins_and_ends >= 2 * 3 * 5000, "{begins_and_ends}: {text}");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let own = std::process::id().to_string();
    for (arguments, words) in [
        (
            &["record", "--pid", "1", "--", "true"][..],
            &["cannot be used with"][..],
        ),
        (&["record", "--for", "1s", "--", "true"], &["--pid"]),
        (&["record", "--pid", "0"], &["--pid"]),
        (&["record", "--pid", "x"], &["--pid"]),
        (
            &["record", "--pid", &own, "--for", "10"],
            &["500ms, 10s or 2m"],
        ),
        (
            &["record", "--pid", &own],
            &["not linked with the recorder", "undertick.h"],
        ),
        (&["record"], &["PROGRAM"]),
    ] {
        refused(&undertick(arguments), 2, words);
    }
    let dir = tempfile::tempdir().unwrap();
    let program = Program::start(&mut source(dir.path()));
    let output = undertick(&[
        "record",
        "--pid",
        &program.pid(),
        "--overflow",
        "block",
        "--no-calibration",
    ]);
    refused(&output, 2, &["--overflow block"]);
}

/// Spans with four points inside, until it is killed.
const LOOPING: &str = r#"
#include "undertick.h"
#include <stdio.h>
int main(void) {
    volatile uint32_t x = 0;
    puts("ready");
    fflush(stdout);
    for (;;) {
        int i, k;
        ut_begin_ordered(1);
        for (i = 0; i < 4; i++) {
            for (k = 0; k < 400; k++) x = x * 5 + 1;
            ut_event(2, (uint32_t)i);
        }
        ut_end_ordered(1);
    }
}
"#;

/// Points are switched in a program that was started without a session, and a later recorder finds
/// all of them on.
#[test]
fn points_are_switched_in_a_program_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(compile(dir.path(), "looping", LOOPING, &[]))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut said_by_it = BufReader::new(child.stdout.take().unwrap());
    said_by_it.read_line(&mut ready).unwrap();
    let pid = child.id().to_string();
    let record = |name: &str, options: &[&str]| {
        let trace = dir.path().join(name);
        let words = [
            "record",
            "--no-calibration",
            "--kernel",
            "off",
            "--pid",
            &pid,
            "--for",
            "2s",
            "-o",
        ];
        let output = undertick(&[&words[..], &[trace.to_str().unwrap()], options].concat());
        assert_eq!(said(&output).0, 0, "{}", said(&output).1);
        let output = undertick(&["report", trace.to_str().unwrap(), "--json"]);
        assert_eq!(said(&output).0, 0, "{}", said(&output).1);
        let report: serde_json::Value = document("report", &output);
        let section = report["intervals"].as_array().unwrap().iter();
        let section = section
            .into_iter()
            .find(|i| i["name"] == "event 1")
            .cloned();
        (report, section.unwrap())
    };
    let (_, switched) = record("switched.ut", &["--perturbation", "1"]);
    let slowed = &switched["slowed"];
    assert_eq!(slowed["what"], "points", "{switched}");
    for half in 0..2 {
        assert!(slowed["samples"][half].as_u64().unwrap() > 100, "{slowed}");
    }
    // There are four in each span, and a few less at the edges of a half.
    let points = slowed["points"].as_f64().unwrap();
    assert!((3.5..=4.5).contains(&points), "{slowed}");
    let (report, whole) = record("whole.ut", &[]);
    assert!(whole["slowed"].is_null());
    let count = |name: &str| {
        let found = report["frequencies"]
            .as_array()
            .unwrap()
            .iter()
            .find(|f| f["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {report}"))["count"]
            .as_u64()
            .unwrap()
    };
    let (sections, points) = (count("event 1"), count("event 2"));
    assert!(
        points.abs_diff(4 * sections) <= 8,
        "{sections} sections, {points} points"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}
