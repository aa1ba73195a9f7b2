//! pytest-benchmark.

use std::ffi::OsString;
use std::path::Path;

use serde::Deserialize;
use undertick_format::input::{self, Kind};

use super::{How, Said, middles};

pub(super) fn arguments(how: &How<'_>, out: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "-v".to_owned(),
        // All are run, whatever fails.
        "--maxfail=0".to_owned(),
        "--benchmark-only".to_owned(),
        "--benchmark-warmup=off".to_owned(),
        "--benchmark-min-rounds=5".to_owned(),
        format!("--benchmark-max-time={:.4}", how.each.as_secs_f64()),
    ]
    .map(OsString::from)
    .into();
    let mut file = OsString::from("--benchmark-json=");
    file.push(out);
    arguments.push(file);
    arguments
}

#[derive(Deserialize)]
struct Output {
    benchmarks: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    fullname: String,
    stats: Stats,
}

/// Times in seconds.
#[derive(Deserialize)]
struct Stats {
    median: f64,
    #[serde(default)]
    rounds: u64,
    #[serde(default)]
    iterations: u64,
}

pub(super) fn read(file: &Path) -> Result<Said, String> {
    let text = input::text(file, Kind::DOCUMENT).map_err(|e| e.to_string())?;
    of_text(&text)
}

fn of_text(text: &str) -> Result<Said, String> {
    let output: Output = serde_json::from_str(text)
        .map_err(|e| format!("unexpected form of pytest-benchmark's JSON: {e}; is something else writing to its file?"))?;
    let measured = output.benchmarks.into_iter().map(|entry| {
        let n = entry
            .stats
            .rounds
            .saturating_mul(entry.stats.iterations.max(1));
        (entry.fullname, entry.stats.median * 1e9, n)
    });
    Ok(Said {
        benchmarks: middles(measured),
        ..Said::default()
    })
}

#[cfg(test)]
#[path = "pytest/tests.rs"]
mod tests;
