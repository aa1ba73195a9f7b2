//! Slow clocks, live: a 50 us activity in a 500 us loop on the TSC quantised to 1 ms, with the
//! unquantised TSC as the truth.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::run::{Scratch, root};
use crate::statistics::{median, quantile};

const REPETITIONS: u32 = 30;
const SECONDS: u32 = 10;
/// Half-width planned by (14) at 90 %: 5 % of 50 us.
const PLANNED_HALF_NS: f64 = 2500.0;

/// The figures of one run that are used here.
struct Run {
    value_ns: f64,
    truth_ns: f64,
    lo_ns: f64,
    hi_ns: f64,
    dropped: f64,
    cycles: f64,
    seconds: f64,
}

impl Run {
    fn error_ns(&self) -> f64 {
        self.value_ns - self.truth_ns
    }

    fn half_ns(&self) -> f64 {
        (self.hi_ns - self.lo_ns) / 2.0
    }

    fn covers(&self) -> bool {
        (self.lo_ns..=self.hi_ns).contains(&self.truth_ns)
    }
}

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("slow")?;
    let text = std::fs::read_to_string(root().join("experiments/slow-parts.toml"))
        .map_err(|e| e.to_string())?;
    let script = |seconds: f64| -> Result<String, String> {
        let path = scratch.path(&format!("parts-{seconds}.toml"));
        let changed = text.replace("seconds = 10.0", &format!("seconds = {seconds:?}"));
        std::fs::write(&path, changed).map_err(|e| e.to_string())?;
        Ok(path)
    };
    let full = script(f64::from(SECONDS))?;
    println!("\na 50 us activity in a 500 us loop, TSC quantised to 1 ms, 90 %");
    repeated(&full)?;
    println!("\nother estimators, 5 runs each");
    for (estimator, seconds) in [("counts", 10.0), ("stepped", 2.0)] {
        several(estimator, seconds, &script(seconds)?)?;
    }
    println!("\nedges, {REPETITIONS} runs each; (14) asks for 51.7 s of counting");
    for seconds in [0.5, 0.1] {
        edges(seconds, &script(seconds)?)?;
    }
    println!("\nwith a hog pinned to the same CPU, 10 s");
    hogged(&full)
}

fn repeated(script: &str) -> Result<(), String> {
    let mut runs = Vec::new();
    for _ in 0..REPETITIONS {
        runs.push(run(script, "auto", false)?);
    }
    let n = runs.len() as f64;
    let mean = runs.iter().map(Run::error_ns).sum::<f64>() / n;
    let squares: f64 = runs.iter().map(|r| (r.error_ns() - mean).powi(2)).sum();
    let sd = (squares / (n - 1.0)).sqrt();
    let covered = runs.iter().filter(|r| r.covers()).count();
    let half = runs.iter().map(Run::half_ns).sum::<f64>() / n;
    println!(
        "  {REPETITIONS} runs of {SECONDS} s: error {mean:+.0} ns, sd {sd:.0} ns, z {:+.2} (target: under 3); \
         covered {covered} (target: at least 24); half-width {half:.0} ns; dropped {:.1} % of {:.0} cycles",
        mean / (sd / n.sqrt()),
        100.0 * runs.iter().map(|r| r.dropped / r.cycles).sum::<f64>() / n,
        runs.iter().map(|r| r.cycles).sum::<f64>() / n,
    );
    Ok(())
}

fn several(estimator: &str, seconds: f64, script: &str) -> Result<(), String> {
    for _ in 0..5 {
        match run(script, estimator, false) {
            Ok(run) => println!(
                "  {estimator:<8} {seconds} s: {:.2} us, truth {:.2}, half-width {:.2} us in {:.2} s ({:.2} of (14)'s), {}",
                run.value_ns / 1e3,
                run.truth_ns / 1e3,
                run.half_ns() / 1e3,
                run.seconds,
                run.half_ns() / PLANNED_HALF_NS,
                if run.covers() { "covered" } else { "missed" }
            ),
            Err(why) => println!("  {estimator:<8} {seconds} s: {}", why.trim()),
        }
    }
    Ok(())
}

/// Measures by edges, in a hundredth of the time of (14) and less.
fn edges(seconds: f64, script: &str) -> Result<(), String> {
    let runs = (0..REPETITIONS)
        .map(|_| run(script, "edges", false))
        .collect::<Result<Vec<_>, _>>()?;
    let of = |f: fn(&Run) -> f64| runs.iter().map(f).collect::<Vec<f64>>();
    let halves = of(Run::half_ns);
    println!(
        "  {seconds} s: half-width {:.2} us (median; quartiles {:.2} to {:.2}; (14): {:.2}), error {:+.2} us (median; \
         quartiles {:+.2} to {:+.2}), covered {} of {REPETITIONS}",
        median(&halves) / 1e3,
        quantile(&halves, 0.25) / 1e3,
        quantile(&halves, 0.75) / 1e3,
        PLANNED_HALF_NS / 1e3,
        median(&of(Run::error_ns)) / 1e3,
        quantile(&of(Run::error_ns), 0.25) / 1e3,
        quantile(&of(Run::error_ns), 0.75) / 1e3,
        runs.iter().filter(|r| r.covers()).count(),
    );
    Ok(())
}

/// A hog that ends with the benchmark.
struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn hogged(script: &str) -> Result<(), String> {
    let hog = Command::new("taskset")
        .args(["-c", "0", "sh", "-c", "while :; do :; done"])
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| format!("taskset: {e}"))?;
    let _hog = Hog(hog);
    for estimator in ["stepped", "counts"] {
        match run(script, estimator, true) {
            Ok(run) => println!(
                "  {estimator:<8}: {:.2} us, truth of the kept cycles {:.2}, half-width {:.2} us, {:.0} of {:.0} cycles dropped",
                run.value_ns / 1e3,
                run.truth_ns / 1e3,
                run.half_ns() / 1e3,
                run.dropped,
                run.cycles
            ),
            Err(why) => println!("  {estimator:<8}: {}", why.trim()),
        }
    }
    Ok(())
}

fn run(script: &str, estimator: &str, pinned: bool) -> Result<Run, String> {
    let undertick = super::undertick();
    let mut words = if pinned {
        vec!["taskset", "-c", "0", undertick.as_str()]
    } else {
        vec![undertick.as_str()]
    };
    words.extend(["slow", "run", script, "--clock", "quantised:1ms"]);
    words.extend(["--estimator", estimator, "--confidence", "0.9", "--json"]);
    let output = Command::new(words[0])
        .args(&words[1..])
        .output()
        .map_err(|e| format!("{}: {e}", words[0]))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let document: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    let rows = document["activities"].as_array().ok_or("no activities")?;
    let row = (rows.iter())
        .find(|row| row["name"] == "small")
        .ok_or("no activity small")?;
    let figure = |value: &Value| value.as_f64().ok_or("a figure is missing");
    Ok(Run {
        value_ns: figure(&row["mean"]["value"])?,
        truth_ns: figure(&row["truth_ns"])?,
        lo_ns: figure(&row["mean"]["interval"][0])?,
        hi_ns: figure(&row["mean"]["interval"][1])?,
        dropped: figure(&document["dropped"])?,
        cycles: figure(&document["cycles"])?,
        seconds: figure(&document["seconds"])?,
    })
}
