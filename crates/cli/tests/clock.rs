//! `undertick clock` on any machine: several CPUs, one, a counter that may not be used, a time
//! namespace, no rights. The figures depend on the machine; their consistency must hold everywhere.

use std::process::{Command, Output};

use serde_json::Value;

fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_undertick")
}

fn output(command: &mut Command) -> Output {
    command.output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn document(command: &mut Command) -> Value {
    let out = output(command);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    crate::support::document("clock", &out)
}

fn clock<'a>(document: &'a Value, name: &str) -> &'a Value {
    let clocks = document["clocks"].as_array().unwrap();
    clocks
        .iter()
        .find(|c| c["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn usable(document: &Value) -> impl Iterator<Item = &Value> {
    document["clocks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["usable"] == true)
}

#[test]
fn every_clock_has_its_figures_and_they_fit_together() {
    let found = document(Command::new(binary()).args(["clock", "--json"]));
    assert_eq!(found["schema_version"], 1);
    let chosen = clock(&found, found["chosen"].as_str().unwrap());
    assert_eq!(chosen["usable"], true);
    for clock in usable(&found).filter(|c| !c["read_cost_ns"].is_null()) {
        let cost = &clock["read_cost_ns"];
        let [min, median, p99] = ["min", "median", "p99"].map(|q| cost[q].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= p99, "{clock}");
        let unit = clock["resolution_ns"].as_f64().unwrap();
        if let Some(step) = clock["granularity_ns"].as_f64() {
            assert!(step > 0.9 * unit, "{clock}");
        }
        assert_eq!(clock["width_bits"], 64);
        assert!(clock["wraps_after_s"].as_f64().unwrap() > 1e8, "{clock}");
        if clock["name"] == "monotonic_raw" {
            assert!(
                clock["rate_ppm"].is_null(),
                "it is what the others are compared with"
            );
        } else {
            let interval = &clock["rate_ppm"]["interval"];
            assert!(interval[0].as_f64() < interval[1].as_f64(), "{clock}");
        }
        for pair in clock["cpu_offset_ns"]["pairs"]
            .as_array()
            .into_iter()
            .flatten()
        {
            assert!(pair["exchanges"].as_u64() > Some(0), "{clock}");
        }
    }
    for lacking in found["clocks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["usable"] == false)
    {
        assert!(!lacking["why"].as_str().unwrap().is_empty(), "{lacking}");
    }
    for finer in ["rdpru_mperf", "rdpru_aperf", "rdpmc_cycles", "pmccntr"] {
        clock(&found, finer);
    }
    let tick = &found["tick_worth_having"];
    let (tick_ns, range_s) = (
        tick["tick_ns"].as_f64().unwrap(),
        tick["range_16_bits_s"].as_f64().unwrap(),
    );
    // 2^16 = 65536.
    assert!((range_s * 1e9 / tick_ns - 65_536.0).abs() < 1e-3, "{tick}");
}

#[test]
fn the_page_fits_and_says_which_clock_to_use() {
    let out = output(Command::new(binary()).arg("clock"));
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let shown = text(&out.stdout);
    assert!(
        shown.contains("Use ") && shown.contains("A tick worth having"),
        "{shown}"
    );
    assert!(
        shown.lines().all(|line| line.chars().count() <= 110),
        "{shown}"
    );
    // No clock's name is split over two lines.
    for name in ["monotonic_coarse", "monotonic_raw", "boottime"] {
        assert!(
            shown.lines().any(|line| line.starts_with(name)),
            "{name}: {shown}"
        );
    }
}

#[test]
fn with_one_cpu_nothing_is_compared_and_it_says_so() {
    let cpu = undertick_clock::cpus::allowed()[0].to_string();
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu, binary(), "clock", "--json"]);
    if Command::new("taskset").arg("--version").output().is_err() {
        println!("skipped: no taskset here");
        return;
    }
    let found = document(&mut command);
    assert_eq!(found["machine"]["cpus"], 1);
    for clock in usable(&found) {
        assert!(clock["cpu_offset_ns"].is_null(), "{clock}");
        assert!(clock["backward"]["across_threads"].is_null(), "{clock}");
    }
    let notes = found["notes"].to_string();
    assert!(notes.contains("One CPU only"), "{notes}");
}

#[test]
fn a_counter_that_is_not_invariant_is_not_used_and_the_reason_stands_there() {
    let found = document(
        Command::new(binary())
            .args(["clock", "--json"])
            .env(undertick_clock::MASK_INVARIANT_TSC_VARIABLE, "1"),
    );
    if cfg!(not(target_arch = "x86_64")) {
        println!("skipped: this CPU has no TSC");
        return;
    }
    assert_eq!(found["chosen"], "monotonic_raw");
    assert!(
        found["why"].as_str().unwrap().contains("invariant"),
        "{}",
        found["why"]
    );
    let tsc = clock(&found, "tsc");
    assert_eq!(tsc["usable"], false);
    assert!(tsc["why"].as_str().unwrap().contains("invariant"), "{tsc}");
    // Cycles are stated per tick of a counter, and no counter may be used here.
    assert!(found["core_speed"].is_null());
    assert_eq!(clock(&found, "monotonic_raw")["monotonic"], true);
}

#[test]
fn a_time_namespace_shifts_readings_not_rates() {
    let in_namespace = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--time", "--fork"]);
        command
            .args(["--monotonic", "1000", "--boottime", "2000"])
            .args(words);
        command
    };
    if !in_namespace(&["true"])
        .output()
        .is_ok_and(|out| out.status.success())
    {
        println!("skipped: no time namespace can be made here");
        return;
    }
    let found = document(&mut in_namespace(&[binary(), "clock", "--json"]));
    assert_eq!(found["machine"]["monotonic_shift_s"], 1000.0);
    // Time slept in suspend is boot time less monotonic time, each without its shift.
    assert!(
        found["machine"]["suspended_s"].as_f64().unwrap() < 999.0,
        "{}",
        found["machine"]
    );
    let notes = found["notes"].to_string();
    assert!(notes.contains("+1000.000 s"), "{notes}");
    for name in ["monotonic", "boottime"] {
        // Unix time is corrected by 500 ppm at most; a jump of 1000 s in a second or two would be a
        // billion.
        let rate = &clock(&found, name)["rate_ppm"]["interval"];
        assert!(
            rate[0].as_f64() < Some(500.0) && rate[1].as_f64() > Some(-500.0),
            "{name}: {rate}"
        );
    }
}

#[test]
fn a_user_without_rights_gets_the_audit_too() {
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "--no-new-privs",
    ]);
    let reachable = Command::new("setpriv")
        .args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            binary(),
            "--version",
        ])
        .output()
        .is_ok_and(|out| out.status.success());
    if !reachable {
        println!("skipped: cannot become another user who may run the program here");
        return;
    }
    let found = document(command.args([binary(), "clock", "--json"]));
    assert!(usable(&found).count() >= 5);
}

#[test]
fn a_level_that_is_none_is_refused() {
    let out = output(Command::new(binary()).args(["clock", "--confidence", "95"]));
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("0.95"), "{}", text(&out.stderr));
    assert!(out.stdout.is_empty());
}
