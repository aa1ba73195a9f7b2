//! `undertick run`: scripts performed on this machine.

mod support;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{refused, said, undertick};

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

/// An exported row of the trace: ticks, thread, event, payload.
type Row = (i64, String, u32, u32);

/// Returns the stages of a trace, in the order of time; rows of other kinds are left out.
fn stages(dir: &Path) -> Vec<Row> {
    let csv = dir.join("rows.csv");
    let _ = fs::remove_file(&csv);
    let trace = paths(dir).1;
    let words = [
        "export",
        trace.to_str().unwrap(),
        "--to",
        "csv",
        csv.to_str().unwrap(),
    ];
    assert_eq!(said(&undertick(&words)).0, 0);
    let text = fs::read_to_string(&csv).unwrap();
    let mut rows: Vec<Row> = (text.lines())
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|words| words[7] == "next")
        .map(|words| {
            let number = |i: usize| words[i].parse().unwrap();
            (
                words[1].parse().unwrap(),
                words[4].to_owned(),
                number(9),
                number(words.len() - 1),
            )
        })
        .collect();
    rows.sort();
    rows
}

/// Returns the event of a script's process whose name has that end, in one repetition.
fn event(dir: &Path, repetition: usize, name: &str) -> u32 {
    let text = fs::read_to_string(paths(dir).1.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let wanted = format!("script #{repetition} {name}");
    (manifest["names"].as_array().unwrap().iter())
        .find(|n| n["name"] == wanted.as_str())
        .and_then(|n| n["event"].as_u64())
        .unwrap_or_else(|| panic!("no event named {wanted}")) as u32
}

/// Returns the ticks from each entry into a stage to its end.
fn durations(rows: &[Row], stage: u32) -> Vec<f64> {
    let mut entered: HashMap<&str, i64> = HashMap::new();
    let mut all = Vec::new();
    for (ts, thread, from, to) in rows {
        if *from == stage
            && let Some(since) = entered.remove(thread.as_str())
        {
            all.push((ts - since) as f64);
        }
        if *to == stage {
            entered.insert(thread, *ts);
        }
    }
    all
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean with the rule for null steps: samples over four times the smallest are dropped, where a
/// smallest below one step of the clock counts as one step.
fn mean_of_quick(values: &[f64], step: f64) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let least = least.max(step);
    mean(
        &values
            .iter()
            .copied()
            .filter(|v| *v <= 4.0 * least)
            .collect::<Vec<_>>(),
    )
}

/// Compares the report's figures with those computed here from the exported rows.
#[test]
fn figures_are_those_of_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let report = report(&run(dir.path(), PING_PONG, &["--json"]));
    let clock = &report["trace"]["clock"];
    let ns_per_tick = clock["ns_per_tick"].as_f64().unwrap();
    let step = clock["granularity_ticks"].as_f64().unwrap();
    let rows = stages(dir.path());
    for repetition in 1..=6 {
        let stage = |name: &str| durations(&rows, event(dir.path(), repetition, name));
        let nulls = ["client.null before", "client.null after"];
        let nulls = nulls.map(|name| mean_of_quick(&stage(name), step));
        let null = mean(&nulls);
        let check = |process: &str, name: &str, ticks: &[f64], nulls: f64| {
            let found =
                &interval(&report, process, name)["repeated"]["repetitions"][repetition - 1];
            let wanted = (mean(ticks) - nulls * null) * ns_per_tick;
            let given = found["mean_ns"].as_f64().unwrap();
            assert!(
                (given - wanted).abs() < 1e-6 * wanted.abs() + 0.01,
                "{name}: {given} {wanted}"
            );
            assert_eq!(found["count"], ticks.len(), "{name}");
            assert_eq!(found["repetition"], repetition);
        };
        let (send, receive) = (stage("client.send there"), stage("client.receive back"));
        assert_eq!(send.len(), 200);
        check("client", "send there", &send, 1.0);
        check("client", "receive back", &receive, 1.0);
        let passes: Vec<f64> = send.iter().zip(&receive).map(|(a, b)| a + b).collect();
        check("client", "round trip", &passes, 2.0);
        // The k-th entry into the client's send belongs to the k-th end of the server's receive.
        let (from, to) = ("client.send there", "server.receive there");
        let (from, to) = (
            event(dir.path(), repetition, from),
            event(dir.path(), repetition, to),
        );
        let entries = rows.iter().filter(|r| r.3 == from).map(|r| r.0);
        let ends = rows.iter().filter(|r| r.2 == to).map(|r| r.0);
        let one_way: Vec<f64> = entries.zip(ends).map(|(a, b)| (b - a) as f64).collect();
        check("", "one way", &one_way, 1.0);
        assert!(one_way.iter().all(|ticks| *ticks > 0.0));
    }
    let trip = interval(&report, "client", "round trip");
    assert_eq!(trip["repeated"]["includes"], "there and back");
    assert_eq!(trip["repeated"]["repetitions"].as_array().unwrap().len(), 6);
    assert_eq!(trip["count"], 1200);
    let figure = &trip["repeated"]["typical"];
    let (lo, hi) = (
        figure["interval"][0].as_f64(),
        figure["interval"][1].as_f64(),
    );
    assert!(
        lo <= figure["value"].as_f64() && figure["value"].as_f64() <= hi,
        "{figure}"
    );
    assert!(
        interval(&report, "client", "(zero check)")["repeated"]["typical"]["value"].is_number()
    );
}

/// Runs the traffic controller's script for `passes` passes: every wakeup and notify arrives, and
/// the steps add up to the pass.
fn traffic(dir: &Path, backend: &str, place: &str, passes: u64) {
    let script = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/traffic-controller.toml"),
    )
    .unwrap();
    let at = |text: &str, line: &str| -> String {
        (text.lines())
            .map(|l| {
                if l.starts_with(line.split(' ').next().unwrap()) {
                    line
                } else {
                    l
                }
            })
            .collect::<Vec<_>>()
            .join("\n")
    };
    let script = at(&script, &format!("passes = {passes}"));
    let script = at(&script, "repetitions = 1");
    let script = at(&script, "timeout = \"120s\"\nsettle = \"0us\"");
    let script = script
        .replace(
            "backend = [\"futex\", \"eventfd\", \"pipe\", \"condvar\"]",
            &format!("backend = [{backend:?}]"),
        )
        .replace("same cpu as A", place)
        .replace("\"cpu 0\"", "\"any\"");
    let report = report(&run(dir, &script, &["--json"]));
    let mut steps = HashMap::from([("A", 0.0), ("B", 0.0)]);
    let mut passes_ns = HashMap::new();
    for interval in report["intervals"].as_array().unwrap() {
        let repeated = &interval["repeated"];
        let process = repeated["process"].as_str().unwrap();
        let Some(figure) = repeated["repetitions"].get(0) else {
            continue;
        };
        let mean_ns = figure["mean_ns"].as_f64().unwrap();
        let count = figure["count"].as_u64().unwrap();
        match process {
            "" => {}
            _ if interval["name"] == "(pass)" => {
                passes_ns.insert(process, mean_ns);
            }
            _ => *steps.get_mut(process).unwrap() += mean_ns,
        }
        // B's last pass ends in a block without a wakeup.
        let least = if process == "A" { passes } else { passes - 1 };
        assert!(
            (least..=passes).contains(&count),
            "{backend} {place}: {interval}"
        );
    }
    // A's pass has an untimed step in it; B's are all timed. B lacks only its last block.
    let (sum, whole) = (steps["B"], passes_ns["B"]);
    let most = 0.02 * whole;
    assert!(
        (sum - whole).abs() < most,
        "{backend} {place}: {sum} of {whole} ns"
    );
}

#[test]
fn a_hundred_thousand_passes_lose_no_wakeup() {
    let dir = tempfile::tempdir().unwrap();
    for backend in ["futex", "eventfd", "pipe", "condvar"] {
        traffic(dir.path(), backend, "same cpu as A", 100_000);
    }
}

#[test]
fn two_cpus_lose_no_wakeup() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("skipped: one CPU only");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for backend in ["futex", "eventfd", "pipe", "condvar"] {
        traffic(dir.path(), backend, "other cpu than A", 5000);
    }
}

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
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let sleep = interval(&report, "A", "sleep");
        // The kernel guarantees at least that long on any machine.
        assert!(sleep["min"].as_f64().unwrap() > 4.9e6, "{sleep}");
        assert!(paths(dir.path()).1.join("manifest.json").exists());
        return;
    }
    panic!("no repetition in 32 s");
}

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
    fs::copy(env!("CARGO_BIN_EXE_undertick"), &program).unwrap();
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
