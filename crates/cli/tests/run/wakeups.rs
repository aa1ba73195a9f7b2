//! The traffic controller's script: no wakeup is lost, on one CPU and on two.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::{report, run};

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
        // Under the default policy the order changes from one wakeup to the next.
        .replace("[\"fifo else batch\", \"other\"]", "[\"other\"]")
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
#[ignore = "long: cargo xtask test --all"]
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
