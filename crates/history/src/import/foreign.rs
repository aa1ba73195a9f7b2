//! The forms of other tools.

use std::path::Path;

use serde_json::Value;
use undertick_format::input::{self, Kind};

use super::Measured;
use crate::HistoryError;

/// Google Benchmark: `context` and `benchmarks`, each repetition an entry, with its unit.
pub(super) fn google(value: &Value) -> Option<Measured> {
    let context = value["context"].as_object()?;
    let mut figures = Vec::new();
    for of in value["benchmarks"].as_array()? {
        if of["run_type"] == "aggregate" || of["error_occurred"] == true {
            continue;
        }
        let by = match of["time_unit"].as_str().unwrap_or("ns") {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => continue,
        };
        let name = of["run_name"].as_str().or(of["name"].as_str())?;
        let repetition = of["repetition_index"].as_i64().unwrap_or(0);
        let time = of["real_time"].as_f64()?;
        figures.push((name.to_owned(), i32::try_from(repetition).ok()?, time * by));
    }
    let text = |name: &str| Some(context.get(name)?.as_str()?.to_owned());
    Some(Measured {
        machine: text("host_name"),
        suite: text("executable").map(|program| super::suite(&program)),
        figures,
        ..Measured::default()
    })
}

/// pytest-benchmark: `machine_info`, `commit_info` and `benchmarks`, times in seconds.
pub(super) fn pytest(value: &Value) -> Option<Measured> {
    let machine = value["machine_info"].as_object()?;
    let mut figures = Vec::new();
    for of in value["benchmarks"].as_array()? {
        let name = of["fullname"].as_str().or(of["name"].as_str())?;
        let stats = &of["stats"];
        let time = stats["median"].as_f64().or(stats["mean"].as_f64())?;
        figures.push((name.to_owned(), 0, time * 1e9));
    }
    let commit = value["commit_info"]["id"].as_str();
    Some(Measured {
        machine: machine
            .get("node")
            .and_then(Value::as_str)
            .map(str::to_owned),
        suite: Some("pytest".to_owned()),
        version: commit.filter(|id| *id != "unknown").map(str::to_owned),
        figures,
        ..Measured::default()
    })
}

/// hyperfine: `results`, each command with the times of its runs in seconds.
pub(super) fn hyperfine(value: &Value) -> Option<Measured> {
    let mut figures = Vec::new();
    for of in value["results"].as_array()? {
        let name = of["command"].as_str()?;
        let times = of["times"].as_array().map_or(&[][..], Vec::as_slice);
        let each = times.iter().filter_map(Value::as_f64);
        figures.extend((0..).zip(each).map(|(i, s)| (name.to_owned(), i, s * 1e9)));
        if times.is_empty() {
            figures.push((name.to_owned(), 0, of["mean"].as_f64()? * 1e9));
        }
    }
    Some(Measured {
        suite: Some("hyperfine".to_owned()),
        figures,
        ..Measured::default()
    })
}

/// Criterion.rs: the name and the mean, ns, in a directory `new`; `None` if it has none.
pub(super) fn criterion(dir: &Path) -> Result<Option<(String, f64)>, HistoryError> {
    let (about, estimates) = (dir.join("benchmark.json"), dir.join("estimates.json"));
    if !about.is_file() || !estimates.is_file() {
        return Ok(None);
    }
    let read = |path: &Path| -> Result<Value, HistoryError> {
        let text =
            input::text(path, Kind::ABOUT).map_err(|e| HistoryError::Usage(e.to_string()))?;
        serde_json::from_str(&text).map_err(|e| HistoryError::file(path, e))
    };
    let (about, estimates) = (read(&about)?, read(&estimates)?);
    let mean = estimates["mean"]["point_estimate"].as_f64();
    Ok(about["full_id"].as_str().map(str::to_owned).zip(mean))
}
