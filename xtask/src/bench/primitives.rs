//! Do two runs of `undertick primitives` agree, and are locks below the clock's step
//! measured rightly in their place?

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{compile, undertick};
use crate::run::{Scratch, command, output};
use crate::statistics::median;

/// Pairs of runs of the lock's truth and of its measurement in place.
const PAIRS: usize = 15;

/// An interval by what it is of.
type Intervals = BTreeMap<String, (f64, [f64; 2])>;

/// Two runs so many minutes apart, and locks.
pub fn measure(minutes: u64) -> Result<(), String> {
    locks()?;
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

/// Every figure that says what it includes, and every slope.
fn intervals(report: &Value) -> Intervals {
    let estimate = |e: &Value| {
        let bound = |i: usize| e["interval"][i].as_f64();
        Some((e["value"].as_f64()?, [bound(0)?, bound(1)?]))
    };
    let list = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    let figures = list("intervals").into_iter().filter_map(|i| {
        let repeated = &i["repeated"];
        if repeated["includes"].as_str()?.is_empty() {
            return None;
        }
        let name = format!(
            "{} {} {}",
            repeated["script"], i["name"], repeated["parameters"]
        );
        Some((name, estimate(&repeated["typical"])?))
    });
    let slopes = list("lines").into_iter().filter_map(|line| {
        let name = format!("slope {} {}", line["name"], line["parameters"]);
        Some((name, estimate(&line["slope"])?))
    });
    figures.chain(slopes).collect()
}

fn agreement(first: &Intervals, second: &Intervals) {
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
                "  {name}: {value:.1} [{lo:.1}, {hi:.1}] then {other:.1} [{other_lo:.1}, {other_hi:.1}] ns ({:+.1} %)",
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

/// An uncontended mutex in its place against long loops, in turn.
fn locks() -> Result<(), String> {
    let scratch = Scratch::new("locks")?;
    let program = compile(&scratch, "locks")?;
    let (mut tight, mut fenced, mut place) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let text = output(command(&[&program]))?;
        let mut words = text.split_whitespace().map(|w| w.parse::<f64>().ok());
        let mut next = || words.next().flatten().ok_or("two numbers");
        tight.push(next()?);
        fenced.push(next()?);
        let (report, _) = run(&["--only", "locks"])?;
        let both = (report["intervals"].as_array().into_iter().flatten())
            .find(|i| {
                i["name"] == "lock and unlock" && i["repeated"]["parameters"]["kind"] == "pthread"
            })
            .and_then(|i| i["repeated"]["typical"]["value"].as_f64());
        place.push(both.ok_or("no lock in the report")?);
    }
    let off: Vec<f64> = place.iter().zip(&fenced).map(|(p, f)| p - f).collect();
    println!(
        "\nan uncontended lock and unlock (pthread): {:.2} ns in place; {:.2} ns in a long loop of pairs between \
         fences, {:.2} ns in a tight one; in place less fenced {:.2} ns (target 1 ns or 10 %), medians of {PAIRS} pairs",
        median(&place),
        median(&fenced),
        median(&tight),
        median(&off)
    );
    Ok(())
}
