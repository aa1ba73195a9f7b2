//! Tests of Go.

use std::ffi::OsString;

use super::{How, Said, escaped, middles};

pub(super) const LIST: &[&str] = &["-test.list=.*"];
/// Number of times that each benchmark is measured in a process, each time for a part of the time.
const REPETITIONS: u32 = 3;
const PREFIX: &str = "Benchmark";

pub(super) fn arguments(how: &How<'_>) -> Vec<OsString> {
    let only = how
        .only
        .map_or(".".to_owned(), |name| format!("^{}$", escaped(name)));
    let each = how.each / REPETITIONS;
    [
        "-test.run=^$".to_owned(),
        format!("-test.bench={only}"),
        format!("-test.benchtime={}ns", each.as_nanos().max(1)),
        format!("-test.count={REPETITIONS}"),
    ]
    .map(OsString::from)
    .into()
}

/// The benchmarks among the names that a test program lists.
pub(super) fn listed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let benchmarks = lines.filter(|line| line.starts_with(PREFIX) && !line.contains(' '));
    benchmarks.map(str::to_owned).collect()
}

/// A name without the number of CPUs that follows it.
pub(super) fn without_cpus(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((name, cpus)) if !cpus.is_empty() && cpus.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => name,
    }
}

/// Reads lines like `BenchmarkSort/8-4   1000   1234 ns/op   0 B/op`. What a benchmark prints may stand
/// between its name and its figures.
pub(super) fn read(text: &str) -> Result<Said, String> {
    let (mut measured, mut failed) = (Vec::new(), Vec::new());
    let mut name: Option<&str> = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(first) = words.first().filter(|word| word.starts_with(PREFIX)) {
            name = Some(first);
        }
        if let Some(at) = line.find("--- FAIL: ") {
            let rest = &line[at + "--- FAIL: ".len()..];
            let failing = rest.split_whitespace().next().unwrap_or_default();
            failed.push((failing.to_owned(), "it failed (--- FAIL)".to_owned()));
        }
        let Some(at) = words.iter().position(|word| *word == "ns/op") else {
            continue;
        };
        let number = |back: usize| words.get(at.checked_sub(back)?);
        let ns: Option<f64> = number(1).and_then(|word| word.parse().ok());
        let iterations: Option<u64> = number(2).and_then(|word| word.parse().ok());
        if let (Some(name), Some(ns), Some(iterations)) = (name, ns, iterations) {
            measured.push((name.to_owned(), ns, iterations));
        }
    }
    failed.dedup();
    Ok(Said {
        benchmarks: middles(measured),
        failed,
        ..Said::default()
    })
}
