//! Do two surveys of one machine agree, and how long does one take?

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::primitives::{Intervals, agreement, estimate};
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
    agreement(&metrics(&first), &metrics(&second));
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

fn metrics(survey: &Value) -> Intervals {
    let all = survey["metrics"].as_array().into_iter().flatten();
    all.filter_map(|metric| {
        let figure = &metric["estimate"];
        let name = format!("{}, {}", metric["id"], figure["unit"]);
        Some((name, estimate(figure)?))
    })
    .collect()
}
