//! `undertick survey`, `compare` and `survey --fleet`, end to end: the document has its promised
//! contents, and no figure is compared with a value.

mod support;

use std::collections::HashSet;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use support::{copy_program, document, refused, said, undertick};
use undertick_report::survey::first_screen;

/// One survey runs at a time, because it takes all CPUs.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asserts that every metric has an interval around it, n, a unit and words, that ids are unique,
/// and that missing figures have a reason.
fn keeps_its_promises(survey: &Value) -> HashSet<String> {
    assert_eq!(
        (&survey["schema_version"], &survey["kind"]),
        (&json!(1), &json!("survey"))
    );
    assert!(survey["took_s"].as_f64().unwrap() > 1.0);
    assert!(survey["begun_unix_s"].as_f64().unwrap() > 1.7e9);
    for key in ["name", "kernel", "clock", "tool_version"] {
        assert!(!survey["host"][key].as_str().unwrap().is_empty(), "{key}");
    }
    assert!(survey["host"]["cpus"].as_u64().unwrap() >= 1);
    let mut ids = HashSet::new();
    for metric in survey["metrics"].as_array().unwrap() {
        let e = &metric["estimate"];
        let (value, lo, hi) = (
            e["value"].as_f64().unwrap(),
            e["interval"][0]
                .as_f64()
                .unwrap_or_else(|| panic!("{metric}")),
            e["interval"][1]
                .as_f64()
                .unwrap_or_else(|| panic!("{metric}")),
        );
        assert!(lo <= value && value <= hi, "{metric}");
        assert!(e["n"].as_u64().unwrap() >= 1, "{metric}");
        for text in [
            &e["unit"],
            &e["method"],
            &metric["name"],
            &metric["group"],
            &metric["includes"],
        ] {
            assert!(!text.as_str().unwrap().is_empty(), "{metric}");
        }
        let id = metric["id"].as_str().unwrap().to_owned();
        assert!(!id.contains(['{', ' ']), "{id}");
        assert!(ids.insert(id.clone()), "{id} twice");
    }
    for missing in survey["missing"].as_array().unwrap() {
        assert!(!missing["why"].as_str().unwrap().is_empty(), "{missing}");
        assert!(!ids.contains(missing["id"].as_str().unwrap()), "{missing}");
    }
    ids
}

fn missing<'a>(survey: &'a Value, id: &str) -> Option<&'a str> {
    let all = survey["missing"].as_array().unwrap();
    let of = all.iter().find(|m| m["id"] == id)?;
    of["why"].as_str()
}

/// One run serves all checks, because it takes some seconds.
#[test]
fn a_survey_its_page_and_its_comparison() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let output = undertick(&[
        "survey",
        "--quick",
        "--json",
        "--html",
        page.to_str().unwrap(),
    ]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let survey = document("survey", &output);
    let ids = keeps_its_promises(&survey);
    for id in [
        "clock.step",
        "clock.read.monotonic",
        "call.getppid",
        "switch.yield",
        "wake.futex.round_trip.same_cpu",
        "lock.pthread.alone",
        "pipe.round_trip.same_cpu",
        "child.fork",
        "fork.per_mib",
        "fault.private.page",
        "record.event",
    ] {
        assert!(ids.contains(id) || missing(&survey, id).is_some(), "{id}");
        assert!(ids.contains(id), "{id}: {:?}", missing(&survey, id));
    }
    // A machine that is too busy for the meter reports it.
    match missing(&survey, "interference.*") {
        Some(why) => assert!(why.starts_with("not measured: "), "{why}"),
        None => assert!(ids.contains("interference.mean_loss")),
    }
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("getppid") && text.contains("System calls and switching"));
    assert!(
        !text.contains("://") && text.len() < 500_000,
        "it loads nothing"
    );
    let screen = first_screen(&serde_json::from_value(survey.clone()).unwrap(), 100);
    assert!(screen.lines().count() <= 40, "{screen}");
    for group in ["Clocks", "System calls", "Locks", "Messages", "Recording"] {
        assert!(
            screen.lines().any(|line| line.starts_with(group)),
            "{group}: {screen}"
        );
    }
    let file = dir.path().join("a.json");
    std::fs::write(&file, &output.stdout).unwrap();
    itself(file.to_str().unwrap(), ids.len());
    altered(dir.path(), &survey);
    fleet(dir.path(), &survey);
}

/// A survey does not differ from itself.
fn itself(file: &str, n: usize) {
    let output = undertick(&["compare", file, file, "--json"]);
    assert_eq!(said(&output).0, 0);
    let found = document("compare", &output);
    assert_eq!(found["summary"]["compared"], n);
    assert_eq!(found["summary"]["differ"], 0);
    assert!(
        found["rows"]
            .as_array()
            .unwrap()
            .iter()
            .all(|r| r["ratio"].is_null() || r["ratio"]["value"] == 1.0)
    );
    let (code, text) = said(&undertick(&["compare", file, file]));
    assert!(
        code == 0 && text.contains("known to differ") && text.contains("same document"),
        "{text}"
    );
    assert!(text.lines().count() <= 40, "{text}");
    assert!(
        text.contains("cannot be told") && text.contains("--full"),
        "{text}"
    );
    let (code, full) = said(&undertick(&["compare", file, file, "--full"]));
    assert!(code == 0 && full.contains("sched_yield"), "{full}");
    assert!(full.lines().count() > 80, "{full}");
}

/// Gives the figure an interval of one in a hundred, so that the result for twenty times as much
/// does not depend on how quiet this machine was.
fn known_well(metric: &mut Value, times: f64) {
    let value = metric["estimate"]["value"].as_f64().unwrap() * times;
    metric["estimate"]["value"] = json!(value);
    metric["estimate"]["interval"] = json!([value * 0.99, value * 1.01]);
}

/// One figure twenty times as large, and one missing: both are named.
fn altered(dir: &Path, survey: &Value) {
    let (mut survey, mut other) = (survey.clone(), survey.clone());
    let metrics = other["metrics"].as_array_mut().unwrap();
    metrics.retain(|m| m["id"] != "call.getcpu");
    for (metrics, times) in [
        (survey["metrics"].as_array_mut().unwrap(), 1.0),
        (metrics, 20.0),
    ] {
        let mut all = metrics.iter_mut();
        known_well(all.find(|m| m["id"] == "call.getppid").unwrap(), times);
    }
    let (a, b) = (dir.join("a.json"), dir.join("b.json"));
    std::fs::write(&a, survey.to_string()).unwrap();
    std::fs::write(&b, other.to_string()).unwrap();
    let output = undertick(&[
        "compare",
        a.to_str().unwrap(),
        b.to_str().unwrap(),
        "--json",
    ]);
    let found = document("compare", &output);
    assert_eq!(found["summary"]["differ"], 1, "{}", found["summary"]);
    assert_eq!(found["only_in_a"], json!(["call.getcpu"]));
    let row = found["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["id"] == "call.getppid")
        .unwrap();
    assert_eq!(row["verdict"], "slower");
    assert!((row["ratio"]["value"].as_f64().unwrap() - 20.0).abs() < 1e-9);
    let (_, text) = said(&undertick(&[
        "compare",
        a.to_str().unwrap(),
        b.to_str().unwrap(),
    ]));
    assert!(
        text.contains("What differs")
            && text.contains("slower, 20.0 times")
            && text.contains("Only in A: call.getcpu"),
        "{text}"
    );
}

/// Twelve copies, one with slow clock reads, and one torn file.
fn fleet(dir: &Path, survey: &Value) {
    let now = dir.join("fleet");
    std::fs::create_dir(&now).unwrap();
    for i in 0..12 {
        let mut host = survey.clone();
        host["host"]["name"] = json!(format!("n{i}"));
        let times = if i == 7 { 20.0 } else { 1.0 };
        for m in host["metrics"].as_array_mut().unwrap() {
            if m["group"] == "reading" {
                known_well(m, times);
            }
        }
        std::fs::write(now.join(format!("n{i}.json")), host.to_string()).unwrap();
    }
    std::fs::write(now.join("torn.json"), "{\"schema_version\": 1, ").unwrap();
    let (now, page) = (now.to_str().unwrap(), dir.join("fleet.html"));
    let output = undertick(&[
        "survey",
        "--fleet",
        now,
        "--against",
        now,
        "--json",
        "--html",
        page.to_str().unwrap(),
    ]);
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    let found = document("fleet", &output);
    assert_eq!(
        (&found["kind"], &found["outliers"][0]["host"]),
        (&json!("fleet"), &json!("n7"))
    );
    assert_eq!(found["outliers"].as_array().unwrap().len(), 1);
    assert_eq!(found["drift"]["hosts"], 12);
    assert!(
        found["unreadable"][0]["why"]
            .as_str()
            .unwrap()
            .contains("torn")
    );
    assert!(std::fs::read_to_string(&page).unwrap().contains("n7"));
    let (code, text) = said(&undertick(&["survey", "--fleet", now]));
    assert!(
        code == 0 && text.contains("Out of the ordinary") && text.contains("n7: "),
        "{text}"
    );
}

/// On one CPU, without privilege and without evidence of the kernel: a message for each missing
/// figure.
#[test]
#[ignore = "long: cargo xtask test --all"]
fn on_one_cpu_without_rights() {
    let _alone = alone();
    // SAFETY: asks for the calling process's own id.
    let is_root = unsafe { libc::geteuid() } == 0;
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_undertick"));
    command
        .args(["survey", "--quick", "--json"])
        .env("TMPDIR", dir.path())
        .current_dir(dir.path());
    if is_root {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        // Nobody may not read the build directory, so the program is copied.
        let program = dir.path().join("undertick");
        copy_program(Path::new(env!("CARGO_BIN_EXE_undertick")), &program);
        let mut other = Command::new(&program);
        other
            .args(["survey", "--quick", "--json"])
            .env("TMPDIR", dir.path())
            .current_dir(dir.path());
        other.uid(65_534).gid(65_534);
        command = other;
    } else {
        println!("skipped: not root, so rights were not given up; it runs with those it has");
    }
    // SAFETY: one system call on the child's own mask, with a live local.
    unsafe {
        command.pre_exec(|| {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut one);
            let first = (0..1024)
                .find(|cpu| libc::CPU_ISSET(*cpu, &one))
                .unwrap_or(0);
            libc::CPU_ZERO(&mut one);
            libc::CPU_SET(first, &mut one);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const one);
            Ok(())
        });
    }
    let output = command.output().unwrap();
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    let survey = document("survey", &output);
    let ids = keeps_its_promises(&survey);
    assert_eq!(survey["host"]["cpus"], 1);
    assert!(
        ids.contains("pipe.round_trip.same_cpu") && ids.contains("wake.futex.one_way.same_cpu")
    );
    for (id, word) in [
        ("pipe.round_trip.other_cpu", "only one"),
        ("speed.spread", "one CPU"),
        ("clock.apart", "one CPU"),
    ] {
        let why = missing(&survey, id).unwrap_or_else(|| panic!("{id} is not missing"));
        assert!(why.contains(word), "{id}: {why}");
    }
}

/// Ctrl-C gives the complete figures, with the status of an interruption.
#[test]
fn interrupted() {
    let _alone = alone();
    let interrupted_after = |seconds| {
        let child = Command::new(env!("CARGO_BIN_EXE_undertick"))
            .args(["survey", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(seconds));
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
        let output = child.wait_with_output().unwrap();
        assert_eq!(said(&output).0, 130, "{}", said(&output).1);
        let survey = document("survey", &output);
        assert_eq!(survey["interrupted"], true);
        let ids = keeps_its_promises(&survey);
        (ids.contains("clock.step"), survey)
    };
    // The clocks take about three seconds, and longer on a busy machine.
    let mut found = [6, 12, 24, 48].into_iter().map(interrupted_after);
    let (_, survey) = found.find(|(has_clocks, _)| *has_clocks).unwrap();
    let why = missing(&survey, "interference.*").unwrap();
    assert!(why.contains("interrupted"), "{why}");
}

#[test]
fn wrong_usage_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let torn = write("torn.json", "{\"schema_version\": 1, \"kind\": \"survey\"");
    let text = write("text.json", "Survey of node1");
    let at = dir.path().to_str().unwrap();
    let a = write("none.json", "{}");
    refused(
        &undertick(&["compare", &torn, &torn]),
        2,
        &["torn.json", "line 1", "torn", "again"],
    );
    refused(
        &undertick(&["compare", &text, &a]),
        2,
        &["text.json", "no JSON"],
    );
    refused(
        &undertick(&["compare", at, &a]),
        2,
        &["a directory", "report"],
    );
    refused(
        &undertick(&["compare", "/nowhere.json", &a]),
        2,
        &["/nowhere.json", "No such file"],
    );
    refused(
        &undertick(&["survey", "--fleet", at]),
        2,
        &["none of 3", "survey --json"],
    );
    refused(
        &undertick(&["survey", "--fleet", "/nowhere"]),
        2,
        &["/nowhere"],
    );
    refused(&undertick(&["survey", "--against", at]), 2, &["--fleet"]);
    refused(
        &undertick(&["survey", "--confidence", "2"]),
        2,
        &["between 0 and 1"],
    );
}
