//! The cost of the Python package's calls, against the clock that Python programs read.

use serde_json::Value;

use crate::python;
use crate::run::{output, root};
use crate::statistics::{median, median_interval};

/// What is compared: the call, its reference, and the ratio it must not exceed.
const COMPARED: [(&str, &str, Option<f64>); 4] = [
    ("span", "two", Some(1.6)),
    ("event", "one", Some(1.3)),
    ("payload", "one", None),
    ("next", "one", None),
];

/// Measures the ratios within each of `rounds` rounds; prints their median and its interval.
pub fn measure(rounds: usize) -> Result<(), String> {
    let python = python::interpreter().ok_or("no Python with the packages of its tests here")?;
    python::install(&python, false)?;
    let script = root().join("benches/python/points.py");
    let mut command = python::away(&python, &[]);
    command.arg(script).arg(rounds.to_string());
    let said = output(command)?;
    println!(
        "ratios of {rounds} rounds in turn: median [95 % interval]; one, two: calls of time.perf_counter_ns()"
    );
    for line in said.lines() {
        let found: Value = serde_json::from_str(line).map_err(|e| format!("{line}: {e}"))?;
        println!("\n{}", found["state"].as_str().unwrap_or_default());
        if let Some(lost) = found["lost"].as_u64() {
            println!("  events lost: {lost}");
        }
        for (call, beside, target) in COMPARED {
            let (a, b) = (numbers(&found, call), numbers(&found, beside));
            let ratios: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a / b).collect();
            let (low, high) = median_interval(&ratios);
            let target = target.map_or(String::new(), |t| format!("   target {t}"));
            println!(
                "  {call:8} / {beside}: {:.3} [{low:.3}, {high:.3}]{target}   ({:.1} ns / {:.1} ns; the loop alone {:.1} ns)",
                median(&ratios),
                median(&a),
                median(&b),
                median(&numbers(&found, "pass")),
            );
        }
    }
    Ok(())
}

fn numbers(found: &Value, name: &str) -> Vec<f64> {
    let values = found["ns"][name].as_array();
    values.map_or_else(Vec::new, |values| {
        values.iter().filter_map(Value::as_f64).collect()
    })
}
