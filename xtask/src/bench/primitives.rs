//! Do two runs of `undertick primitives` agree, and are locks shorter than the clock's step
//! measured correctly in place?

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{compile, interval, record, report_json, undertick};
use crate::run::{Scratch, output};
use crate::statistics::median;

/// Number of pairs of runs: the lock's truth and its measurement in place.
const PAIRS: usize = 15;

/// Figures with their confidence intervals, by name and unit.
pub(super) type Intervals = BTreeMap<String, (f64, [f64; 2])>;

/// Compares two runs this many minutes apart, and measures locks.
pub fn measure(minutes: u64) -> Result<(), String> {
    locks()?;
    if minutes == 0 {
        return Ok(()); // only the locks
    }
    let (first, took) = run(&[])?;
    println!(
        "\ntwo runs of undertick primitives, {minutes} minutes apart; the first took {took:.1} s (target 60 s)"
    );
    std::thread::sleep(Duration::from_secs(60 * minutes));
    let (second, _) = run(&[])?;
    agreement(&intervals(&first), &intervals(&second));
    Ok(())
}

fn run(options: &[&str]) -> Result<(Value, f64), String> {
    let begun = Instant::now();
    let mut command = Command::new(undertick());
    command.args(["primitives", "--json"]).args(options);
    let text = output(command)?;
    let report = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    Ok((report, begun.elapsed().as_secs_f64()))
}

/// The value and the bounds of an estimate that has both.
pub(super) fn estimate(e: &Value) -> Option<(f64, [f64; 2])> {
    let bound = |i: usize| e["interval"][i].as_f64();
    Some((e["value"].as_f64()?, [bound(0)?, bound(1)?]))
}

/// Every figure that states what it includes, and every slope.
fn intervals(report: &Value) -> Intervals {
    let list = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    let figures = list("intervals").into_iter().filter_map(|i| {
        let repeated = &i["repeated"];
        if repeated["includes"].as_str()?.is_empty() {
            return None;
        }
        let name = format!(
            "{} {} {}, ns",
            repeated["script"], i["name"], repeated["parameters"]
        );
        Some((name, estimate(&repeated["typical"])?))
    });
    let slopes = list("lines").into_iter().filter_map(|line| {
        let name = format!("slope {} {}, ns", line["name"], line["parameters"]);
        Some((name, estimate(&line["slope"])?))
    });
    figures.chain(slopes).collect()
}

/// Prints how many figures of two runs agree, and those that do not.
pub(super) fn agreement(first: &Intervals, second: &Intervals) {
    let (mut all, mut agree) = (0, 0);
    let mut apart: Vec<String> = Vec::new();
    for (name, (value, [lo, hi])) in first {
        let Some((other, [other_lo, other_hi])) = second.get(name) else {
            continue;
        };
        all += 1;
        if lo <= other_hi && other_lo <= hi {
            agree += 1;
        } else {
            apart.push(format!(
                "  {name}: {value:.2} [{lo:.2}, {hi:.2}] then {other:.2} [{other_lo:.2}, {other_hi:.2}] ({:+.1} %)",
                100.0 * (other / value - 1.0)
            ));
        }
    }
    println!(
        "{agree} of {all} intervals (95 %) overlap: {:.1} % (target 85 %); those that do not:",
        100.0 * f64::from(agree) / f64::from(all.max(1))
    );
    apart.iter().for_each(|line| println!("{line}"));
}

/// Measures an uncontended mutex in place against long loops.
fn locks() -> Result<(), String> {
    let scratch = Scratch::new("locks")?;
    let program = compile(&scratch, "locks")?;
    let trace = scratch.path("locks.ut");
    let (mut loops, mut place) = (vec![Vec::new(); 4], Vec::new());
    let mut step = Vec::new();
    for _ in 0..PAIRS {
        let text = record(&trace, &[], &[&program, "1"])?;
        let figures: Vec<f64> = text
            .split_whitespace()
            .filter_map(|w| w.parse().ok())
            .collect();
        if figures.len() != loops.len() {
            return Err(format!("four numbers, not {text:?}"));
        }
        for (list, figure) in loops.iter_mut().zip(figures) {
            list.push(figure);
        }
        let report = report_json(&trace, &["--cull", "ratio:4"])?;
        let mean = interval(&report, "event 1")?["mean"]["value"].as_f64();
        place.push(mean.ok_or("no mean of event 1")?);
        let (report, _) = run(&["--only", "locks"])?;
        let both = (report["intervals"].as_array().into_iter().flatten())
            .find(|i| {
                i["name"] == "lock and unlock" && i["repeated"]["parameters"]["kind"] == "pthread"
            })
            .and_then(|i| i["repeated"]["typical"]["value"].as_f64());
        step.push(both.ok_or("no lock in the report")?);
    }
    // A span without a surrounding step takes as long as between fences: its readings are
    // serialised. A step is compared with the null step, which hides as much of the loop as the
    // step does. Its truth is therefore what the pair adds to the loop.
    for (what, found, truth, of) in [
        (
            "by its recorded section",
            &place,
            &loops[2],
            "between fences in a long loop",
        ),
        (
            "as a step of primitives",
            &step,
            &loops[0],
            "by what it adds to a long loop of recorded sections",
        ),
    ] {
        let off: Vec<f64> = found.iter().zip(truth).map(|(f, t)| f - t).collect();
        let within = (off.iter().zip(truth)).filter(|(o, t)| o.abs() <= (0.1 * **t).max(1.0));
        println!(
            "\nan uncontended lock and unlock (pthread) {what}: {:.2} ns; {of}: {:.2} ns; off {:+.2} ns, within 1 ns or \
             10 % in {} of {PAIRS}",
            median(found),
            median(truth),
            median(&off),
            within.count(),
        );
    }
    println!(
        "in a tight loop {:.2} ns, beside a chain of multiplications {:.2} ns; medians of {PAIRS} runs",
        median(&loops[1]),
        median(&loops[3])
    );
    Ok(())
}
