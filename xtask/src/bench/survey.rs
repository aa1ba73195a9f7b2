//! Do two surveys of one machine agree, and how long does one take?

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::undertick;
use crate::run::{Scratch, output};

/// Compares two surveys this many minutes apart.
pub fn measure(minutes: u64) -> Result<(), String> {
    let scratch = Scratch::new("survey")?;
    let first = survey(&scratch.path("a.json"))?;
    let took = |survey: &Value| survey["took_s"].as_f64().unwrap_or(f64::NAN);
    println!(
        "\ntwo surveys {minutes} minutes apart; the first took {:.1} s (target about 60 s)",
        took(&first)
    );
    std::thread::sleep(Duration::from_secs(60 * minutes));
    let second = survey(&scratch.path("b.json"))?;
    println!("the second took {:.1} s", took(&second));
    agreement(&first, &second);
    let mut compare = Command::new(undertick());
    compare.args([
        "compare",
        &scratch.path("a.json"),
        &scratch.path("b.json"),
        "--json",
    ]);
    let found: Value = serde_json::from_str(&output(compare)?).map_err(|e| e.to_string())?;
    println!("undertick compare: {}", found["summary"]);
    Ok(())
}

fn survey(file: &str) -> Result<Value, String> {
    let mut command = Command::new(undertick());
    command.args(["survey", "--json"]);
    let text = output(command)?;
    std::fs::write(file, &text).map_err(|e| format!("{file}: {e}"))?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}

fn agreement(first: &Value, second: &Value) {
    let metrics = |survey: &Value| survey["metrics"].as_array().cloned().unwrap_or_default();
    let others = metrics(second);
    let (mut all, mut agree) = (0, 0);
    let mut apart: Vec<String> = Vec::new();
    for metric in metrics(first) {
        let Some(other) = others.iter().find(|m| m["id"] == metric["id"]) else {
            continue;
        };
        let of = |m: &Value| {
            let e = &m["estimate"];
            let bound = |i: usize| e["interval"][i].as_f64();
            Some((e["value"].as_f64()?, bound(0)?, bound(1)?))
        };
        let (Some((value, lo, hi)), Some((other, other_lo, other_hi))) = (of(&metric), of(other))
        else {
            continue;
        };
        all += 1;
        if lo <= other_hi && other_lo <= hi {
            agree += 1;
        } else {
            apart.push(format!(
                "  {}: {value:.2} [{lo:.2}, {hi:.2}] then {other:.2} [{other_lo:.2}, {other_hi:.2}] {} ({:+.1} %)",
                metric["id"],
                metric["estimate"]["unit"],
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
