//! Google Benchmark.

use std::ffi::OsString;
use std::path::Path;

use serde::Deserialize;
use undertick_format::input::{self, Kind};

use super::{How, Said, escaped, middles};

pub(super) const LIST: &[&str] = &["--benchmark_list_tests=true"];
/// Number of times that each benchmark is measured in a process, each time for a part of the time.
const REPETITIONS: u32 = 3;

pub(super) fn arguments(how: &How<'_>, out: &Path) -> Vec<OsString> {
    // Versions before 1.8 know seconds without a unit alone, and later ones still do.
    let seconds = how.each.as_secs_f64() / f64::from(REPETITIONS);
    let mut arguments = vec![
        format!("--benchmark_min_time={seconds:.4}"),
        format!("--benchmark_repetitions={REPETITIONS}"),
        "--benchmark_out_format=json".to_owned(),
        "--benchmark_color=false".to_owned(),
    ];
    if let Some(name) = how.only {
        arguments.push(format!("--benchmark_filter=^{}$", escaped(name)));
    }
    let mut all: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
    let mut file = OsString::from("--benchmark_out=");
    file.push(out);
    all.push(file);
    all
}

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    benchmarks: Vec<Entry>,
}

/// What the reporter of JSON writes of one repetition, or of all.
#[derive(Deserialize)]
struct Entry {
    name: String,
    run_name: Option<String>,
    run_type: Option<String>,
    #[serde(default)]
    iterations: u64,
    real_time: Option<f64>,
    time_unit: Option<String>,
    #[serde(default)]
    error_occurred: bool,
    #[serde(default)]
    error_message: String,
}

pub(super) fn read(file: &Path) -> Result<Said, String> {
    let text = input::text(file, Kind::DOCUMENT).map_err(|e| e.to_string())?;
    of_text(&text)
}

fn of_text(text: &str) -> Result<Said, String> {
    let output: Output = serde_json::from_str(&with_numbers(text))
        .map_err(|e| format!("unexpected form of Google Benchmark's JSON: {e}; is something else writing to its file?"))?;
    let mut failed: Vec<(String, String)> = Vec::new();
    let mut measured = Vec::new();
    for entry in output.benchmarks {
        let is_aggregate = entry.run_type.as_deref() == Some("aggregate");
        if is_aggregate {
            continue;
        }
        let name = entry.run_name.unwrap_or(entry.name);
        if entry.error_occurred {
            if !failed.iter().any(|(other, _)| *other == name) {
                failed.push((name, entry.error_message));
            }
            continue;
        }
        let unit_ns = match entry.time_unit.as_deref() {
            Some("us") => 1e3,
            Some("ms") => 1e6,
            Some("s") => 1e9,
            _ => 1.0,
        };
        if let Some(time) = entry.real_time {
            measured.push((name, time * unit_ns, entry.iterations));
        }
    }
    Ok(Said {
        benchmarks: middles(measured),
        failed,
        ..Said::default()
    })
}

/// The text with `null` for what is no number in JSON: counters may be `NaN` or `Infinity`.
fn with_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut is_string) = (text, false);
    while let Some(c) = rest.chars().next() {
        let word = ["-Infinity", "Infinity", "NaN", "-nan", "nan", "-inf", "inf"]
            .into_iter()
            .find(|word| !is_string && rest.starts_with(word));
        if let Some(word) = word {
            out.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        let length = match c {
            '\\' if is_string => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            c => c.len_utf8(),
        };
        is_string ^= c == '"';
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
#[path = "google/tests.rs"]
mod tests;
