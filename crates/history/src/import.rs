//! Reads benchmark figures that Undertick and other tools have written.

mod foreign;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use undertick_format::input::{self, Kind};
use undertick_report::benchmarks::{self, BenchmarkRuns, Benchmarks};

use crate::HistoryError;

/// Deepest directory of Criterion.rs that is searched.
const DEEPEST: usize = 12;

/// What a file says of a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The machine, where the file says it.
    pub machine: Option<String>,
    /// The version, where the file says it.
    pub version: Option<String>,
    /// The program, where the file says it.
    pub suite: Option<String>,
    /// The files of a directory say different machines, of which the first is above.
    pub has_machines: bool,
    /// The same of versions.
    pub has_versions: bool,
    /// Benchmark, number of the process or repetition, and time of an iteration, ns.
    pub figures: Vec<(String, i32, f64)>,
}

/// The forms that are read, for messages.
pub const FORMS: &str = "the JSON of undertick bench --json, the directory of undertick bench -o, the JSON \
     of Google Benchmark (--benchmark_out), pytest-benchmark (--benchmark-json) or hyperfine \
     (--export-json), or the directory target/criterion";

/// Reads a file or a directory of measurements.
///
/// # Errors
/// It cannot be read, or is in none of [`FORMS`].
pub fn read(path: &Path) -> Result<Measured, HistoryError> {
    let measured = match path.is_dir() {
        true => read_directory(path)?,
        false => read_file(path)?,
    };
    let mut measured = measured;
    measured
        .figures
        .retain(|(_, _, ns)| ns.is_finite() && *ns > 0.0);
    match measured.figures.is_empty() {
        true => Err(HistoryError::file(
            path,
            format!("no benchmark with a time is in it; it is to be {FORMS}"),
        )),
        false => Ok(measured),
    }
}

fn read_file(path: &Path) -> Result<Measured, HistoryError> {
    let text = input::text(path, Kind::ABOUT).map_err(|e| HistoryError::Usage(e.to_string()))?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|e| HistoryError::file(path, format!("no JSON: {e}")))?;
    of_document(&value)
        .ok_or_else(|| HistoryError::file(path, format!("of an unknown form; it is to be {FORMS}")))
}

/// Reads the forms of one document.
fn of_document(value: &Value) -> Option<Measured> {
    match value["kind"].as_str() {
        Some(benchmarks::KIND) => of_process(&serde_json::from_value(value.clone()).ok()?, 0),
        Some(benchmarks::KIND_OF_RUNS) => {
            let runs: BenchmarkRuns = serde_json::from_value(value.clone()).ok()?;
            Some(Measured {
                machine: Some(runs.host.name.clone()),
                suite: runs.command.first().map(|program| suite(program)),
                figures: (runs.benchmarks.iter())
                    .map(|of| (of.name.clone(), 0, of.mean.value))
                    .collect(),
                ..Measured::default()
            })
        }
        _ => foreign::google(value)
            .or_else(|| foreign::pytest(value))
            .or_else(|| foreign::hyperfine(value)),
    }
}

fn of_process(document: &Benchmarks, number: i32) -> Option<Measured> {
    Some(Measured {
        machine: Some(document.host.name.clone()),
        suite: document.command.first().map(|program| suite(program)),
        figures: (document.benchmarks.iter())
            .map(|of| (of.name.clone(), number, of.time_ns))
            .collect(),
        ..Measured::default()
    })
}

/// The name of a program without its directory, and without the number that Cargo puts behind it.
fn suite(program: &str) -> String {
    let name = Path::new(program).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    match name.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            name.to_owned()
        }
        _ => name.into_owned(),
    }
}

/// A directory of documents of processes, or Criterion's.
fn read_directory(dir: &Path) -> Result<Measured, HistoryError> {
    let mut documents: Vec<PathBuf> = (fs::read_dir(dir)
        .map_err(|e| HistoryError::file(dir, e))?)
    .flatten()
    .map(|entry| entry.path())
    .filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    })
    .collect();
    documents.sort_unstable();
    if documents.is_empty() {
        return criterion(dir);
    }
    let mut all = Measured::default();
    for (number, path) in documents.iter().enumerate() {
        let of_one = read_file(path)?;
        let number = i32::try_from(number).unwrap_or(i32::MAX);
        let figures = of_one.figures.into_iter();
        all.figures.extend(figures.map(|(name, repetition, ns)| {
            (
                name,
                number.saturating_mul(1000).saturating_add(repetition),
                ns,
            )
        }));
        let differ = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
        all.has_machines |= differ(&all.machine, &of_one.machine);
        all.has_versions |= differ(&all.version, &of_one.version);
        all.machine = all.machine.or(of_one.machine);
        all.suite = all.suite.or(of_one.suite);
        all.version = all.version.or(of_one.version);
    }
    Ok(all)
}

/// The estimates of Criterion.rs: in each directory `new` the mean and the full name.
fn criterion(dir: &Path) -> Result<Measured, HistoryError> {
    let mut figures = Vec::new();
    let mut waiting = vec![(dir.to_owned(), 0)];
    while let Some((at, depth)) = waiting.pop() {
        let entries = fs::read_dir(&at).map_err(|e| HistoryError::file(&at, e))?;
        for entry in entries.flatten() {
            // A link is not followed: it may lead round in a circle.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || depth >= DEEPEST {
                continue;
            }
            let path = entry.path();
            // A benchmark may be called "new", too.
            let found = match entry.file_name() == "new" {
                true => foreign::criterion(&path)?,
                false => None,
            };
            match found {
                Some(figure) => figures.push(figure),
                None => waiting.push((path, depth + 1)),
            }
        }
    }
    figures.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Measured {
        figures: (figures.into_iter())
            .map(|(name, ns)| (name, 0, ns))
            .collect(),
        ..Measured::default()
    })
}

#[cfg(test)]
mod tests;
