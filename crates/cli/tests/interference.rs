//! `undertick interference` on the current machine: figures are consistent, a process that never
//! gives the CPU away is found, and messages say what is missing. The accuracy of the figures is
//! tested in `meter` on a simulated machine, and measured by `cargo xtask bench interference`.

mod support;

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use support::{copy_program, refused, said, undertick};

fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_undertick")
}

#[track_caller]
fn document(command: &mut Command) -> Value {
    let output = command.output().expect("it runs");
    let (status, text) = said(&output);
    assert_eq!(status, 0, "{text}");
    support::document("interference", &output)
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Returns the bounds of an estimate, around its value.
#[track_caller]
fn interval(estimate: &Value) -> (f64, f64) {
    let (lo, hi) = (
        number(&estimate["interval"][0]),
        number(&estimate["interval"][1]),
    );
    let value = number(&estimate["value"]);
    assert!(lo <= value && value <= hi, "{estimate}");
    assert!(number(&estimate["n"]) > 0.0 && !estimate["unit"].as_str().unwrap().is_empty());
    (lo, hi)
}

fn warned(document: &Value, code: &str) -> bool {
    let warnings = document["warnings"].as_array().unwrap();
    warnings.iter().any(|w| w["code"] == code)
}

#[test]
fn figures_fit_together() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let before = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let found = document(
        Command::new(binary())
            .args([
                "interference",
                "--for",
                "3s",
                "--json",
                "--activity",
                "0.3",
                "--html",
            ])
            .arg(&page),
    );
    assert_eq!(found["schema_version"], 1);
    let probe = &found["probe"];
    let one_cpu = std::thread::available_parallelism().is_ok_and(|n| n.get() == 1);
    assert_eq!(warned(&found, "one_cpu"), one_cpu, "{}", found["warnings"]);
    let bursts = number(&probe["bursts"]);
    assert!((10.0..=75.0).contains(&bursts), "{probe}");
    let begun = number(&probe["begun_unix_s"]) - before.as_secs_f64();
    assert!((0.0..60.0).contains(&begun), "{begun}");
    assert!(number(&probe["seconds"]) <= 3.5, "{probe}");
    interval(&probe["clean_rate"]);
    let peaks = found["peaks"].as_array().unwrap();
    assert_eq!(
        (peaks[0]["cause"].as_str(), number(&peaks[0]["rate"])),
        (Some("clean"), 1.0)
    );
    for peak in peaks {
        interval(&peak["slowdown"]);
        let (lo, hi) = interval(&peak["time_share"]);
        assert!(lo >= 0.0 && hi <= 1.0, "{peak}");
        let product = number(&peak["rate"]) * number(&peak["slowdown"]["value"]);
        assert!((product - 1.0).abs() < 1e-6, "{peak}");
    }
    // Shares refer to all of the time: the baseline has what the disturbances leave.
    let others = |of: &str| -> f64 {
        (peaks[1..].iter().filter(|p| p["of"] == of))
            .map(|p| number(&p["time_share"]["value"]))
            .sum()
    };
    let left = (1.0 - others("samples")) * (1.0 - others("bursts")) - others("activity");
    let clean = number(&peaks[0]["time_share"]["value"]);
    assert!((clean - left.max(0.0)).abs() < 1e-6, "{clean} of {left}");
    let losses = found["losses"].as_array().unwrap();
    let parts: f64 = losses.iter().map(|l| number(&l["share"]["value"])).sum();
    assert!((parts - number(&found["mean_loss"]["value"])).abs() < 1e-9);
    interval(&found["mean_loss"]);
    let histogram = &found["histogram"];
    let list = |name: &str| histogram[name].as_array().unwrap().clone();
    let counts = list("counts");
    assert_eq!(
        (list("edges").len(), list("seconds").len()),
        (counts.len() + 1, counts.len())
    );
    let counted: f64 = counts.iter().map(number).sum();
    assert!(counted > 0.0 && counted <= number(&probe["samples"]));
    // Without disturbers there are no predictions.
    let predictions = found["predictions"].as_array().map_or(0, Vec::len);
    assert_eq!(predictions, peaks.len() - 1);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<h2>Peaks</h2>") && page.contains("</html>"));
}

/// A process that spins on a CPU until it is dropped.
struct Spin(Child);

impl Spin {
    fn on(cpu: &str) -> Self {
        let child = Command::new("taskset")
            .args(["-c", cpu, "sh", "-c", "while :; do :; done"])
            .spawn();
        Self(child.expect("taskset and sh"))
    }
}

impl Drop for Spin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// It takes half of the CPU, so each burst of 12 ms contains it.
#[test]
fn a_process_on_the_probes_cpu_is_found_on_one_cpu() {
    let _spin = Spin::on("0");
    let found = document(
        Command::new("taskset")
            .args(["-c", "0", binary(), "interference", "--for", "4s", "--json"])
            .env_remove("UNDERTICK_SESSION"),
    );
    assert_eq!(found["probe"]["cpu"], 0);
    assert!(warned(&found, "one_cpu"), "{}", found["warnings"]);
    let peaks = found["peaks"].as_array().unwrap();
    let taken = peaks.iter().find(|p| p["cause"] == "same-cpu-process");
    let known = found["probe"]["taken_off_by"] == "mark";
    if !known {
        println!("skipped: this kernel does not say when a thread loses its CPU");
        return;
    }
    let taken = taken.unwrap_or_else(|| panic!("{}", found["peaks"]));
    assert!(number(&taken["time_share"]["value"]) > 0.5, "{taken}");
    assert!(number(&taken["slowdown"]["value"]) > 1.2, "{taken}");
}

#[test]
fn no_right_is_needed() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: already without rights");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("undertick");
    copy_program(Path::new(binary()), &copy);
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let found = document(
        Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&copy)
            .args(["interference", "--for", "2s", "--json"])
            .env("HOME", "/")
            .current_dir("/"),
    );
    assert!(number(&found["probe"]["samples"]) > 0.0);
}

#[test]
fn every_mix_runs_and_an_earlier_run_is_compared_with() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("before.json");
    for mix in ["chain", "l3", "l2", "l1", "page", "arithmetic", "stream"] {
        let output = undertick(&["interference", "--for", "1s", "--mix", mix, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{mix}: {}", said(&output).1);
        std::fs::write(&file, &output.stdout).unwrap();
    }
    let path = file.to_str().unwrap();
    let found = document(Command::new(binary()).args([
        "interference",
        "--for",
        "1s",
        "--json",
        "--compare",
        path,
    ]));
    let compared = &found["compared"];
    assert_eq!(compared["with"], path);
    let difference = number(&compared["difference"]["value"]);
    let now_less_then =
        number(&found["mean_loss"]["value"]) - number(&compared["mean_loss"]["value"]);
    assert!((difference - now_less_then).abs() < 1e-9);
    assert!(number(&compared["speed_ratio"]["value"]) > 0.0);
}

#[test]
fn a_signal_gives_what_there_is() {
    let child = Command::new(binary())
        .args(["interference", "--for", "100s", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Bursts have been made when the probe has used CPU time for more than a few of them.
    let end = Instant::now() + Duration::from_secs(90);
    while cpu_seconds_of_probe(child.id()) < 0.3 {
        assert!(Instant::now() < end, "the probe does not run");
        std::thread::sleep(Duration::from_millis(50));
    }
    // SAFETY: a signal to our own child.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let found: Value = support::document("interference", &output);
    assert_eq!(found["interrupted"], true);
    assert!(number(&found["probe"]["bursts"]) >= 1.0);
}

/// Returns the CPU time of the probe that a meter has started; 0 before it has.
fn cpu_seconds_of_probe(meter: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{meter}/task"));
    let children: String = (tasks.into_iter().flatten().flatten())
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .collect();
    let of_probe = |pid: &str| {
        let read = |file| std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
        read("cmdline").filter(|words| words.contains("__probe"))?;
        let stat = read("stat")?;
        let after_name = stat.rsplit_once(") ")?.1;
        // User time in ticks of 10 ms.
        after_name.split(' ').nth(11)?.parse::<f64>().ok()
    };
    children
        .split_whitespace()
        .filter_map(of_probe)
        .sum::<f64>()
        / 100.0
}

#[test]
fn the_continuous_meter_says_a_line_an_interval() {
    let output = undertick(&[
        "interference",
        "--continuous",
        "--for",
        "5s",
        "--interval",
        "2s",
        "--every",
        "400ms",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = (text.lines())
        .map(|line| support::document("interference-line", line.as_bytes()))
        .collect();
    assert!((2..=4).contains(&lines.len()), "{text}");
    for line in &lines {
        assert_eq!(line["schema_version"], 1);
        assert!(number(&line["own_use"]) >= 0.0 && number(&line["seconds"]) > 0.0);
    }
    let bursts: f64 = lines.iter().map(|line| number(&line["bursts"])).sum();
    assert!((5.0..=14.0).contains(&bursts), "{text}");
    let output = undertick(&[
        "interference",
        "--continuous",
        "--for",
        "2s",
        "--interval",
        "1s",
    ]);
    let (status, text) = said(&output);
    assert!(
        status == 0 && text.contains("lost") && text.contains("own"),
        "{text}"
    );
}

/// The lines report no more CPU time than the kernel does: nothing counts twice, including the last
/// line, which comes after the probe has ended.
#[test]
#[expect(
    clippy::zombie_processes,
    reason = "wait4 waits, and says what was used"
)]
fn the_continuous_meter_counts_its_own_use_once() {
    let mut child = Command::new(binary())
        .args(["interference", "--continuous", "--for", "3s", "--json"])
        .args(["--interval", "1s", "--every", "400ms"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut text = String::new();
    let mut output = child.stdout.take().expect("piped");
    output.read_to_string(&mut text).unwrap();
    let mut used = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the child has not been waited for, and the kernel fills the live locals.
    let (waited, used) = unsafe {
        let pid = child.id() as libc::pid_t;
        let waited = libc::wait4(pid, std::ptr::null_mut(), 0, used.as_mut_ptr());
        (waited == pid, used.assume_init())
    };
    assert!(waited);
    let s = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    let used = s(used.ru_utime) + s(used.ru_stime);
    let said = |line: &str| {
        let line: Value = support::document("interference-line", line.as_bytes());
        number(&line["own_use"]) * number(&line["seconds"])
    };
    let each: Vec<f64> = text.lines().map(said).collect();
    let said: f64 = each.iter().sum();
    assert!(0.0 < said && said <= used, "{each:?} s of {used} s");
}

#[test]
fn wrong_usage_is_refused_with_the_mend() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("no.json");
    std::fs::write(&file, "{\"schema_version\": 1}").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, words) in [
        (&["--cpu", "4095"][..], &["--cpu 4095", "may use"][..]),
        (
            &["--burst", "50ms"],
            &["--burst 50ms", "shorter", "--every"],
        ),
        (&["--for", "10ms"], &["--for 10ms", "--every"]),
        (&["--activity", "2"], &["--activity", "between 0 and 1"]),
        (&["--mix", "memory"], &["memory", "stream", "chain"]),
        (&["--for", "5"], &["unit", "10s"]),
        (&["--compare", file], &["no.json", "interference --json"]),
        (&["--compare", "/nowhere.json"], &["/nowhere.json"]),
        (&["--confidence", "95"], &["--confidence", "0.95"]),
        (
            &["-o", dir.path().to_str().unwrap()],
            &["exists already", "-o"],
        ),
    ] {
        let all = [&["interference"], arguments].concat();
        refused(&undertick(&all), 2, words);
    }
}
