//! Criterion.rs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use undertick_format::input::{self, Kind};

use super::{How, Said, middles};

pub(super) const LIST: &[&str] = &["--bench", "--list"];
/// The fewest samples that it takes.
const SAMPLES: u32 = 10;
/// Its own intervals are not used, so few resamples suffice; fewer make it warn.
const RESAMPLES: u32 = 1001;
/// Share of the time in which it warms up and finds how many iterations fit.
const WARM_UP: f64 = 0.25;
/// Directories in each other that are looked into: a group, a function, a parameter and `new`.
const DEPTH: u32 = 8;

pub(super) fn arguments(how: &How<'_>) -> Vec<OsString> {
    let seconds = |time: Duration| format!("{:.4}", time.as_secs_f64().max(0.001));
    let mut arguments = vec![
        "--bench".to_owned(),
        "--noplot".to_owned(),
        "--warm-up-time".to_owned(),
        seconds(how.each.mul_f64(WARM_UP)),
        "--measurement-time".to_owned(),
        seconds(how.each),
        "--sample-size".to_owned(),
        SAMPLES.to_string(),
        "--nresamples".to_owned(),
        RESAMPLES.to_string(),
    ];
    if let Some(name) = how.only {
        arguments.extend(["--exact".to_owned(), name.to_owned()]);
    }
    arguments.into_iter().map(OsString::from).collect()
}

/// `benchmark.json`.
#[derive(Deserialize)]
struct About {
    full_id: String,
}

/// `sample.json`: iterations, and the time of all together, ns.
#[derive(Deserialize)]
struct Sample {
    iters: Vec<f64>,
    times: Vec<f64>,
}

/// Reads what it left in its directory.
pub(super) fn read(home: &Path) -> Result<Said, String> {
    let mut found = Vec::new();
    find(home, DEPTH, &mut found);
    found.sort();
    let mut measured = Vec::new();
    for dir in found {
        let about: About = parsed(&dir.join("benchmark.json"))?;
        let sample: Sample = parsed(&dir.join("sample.json"))?;
        let each = sample.iters.iter().zip(&sample.times);
        measured.extend(
            (each.filter(|(iterations, _)| **iterations > 0.0)).map(|(&iterations, &ns)| {
                (about.full_id.clone(), ns / iterations, iterations as u64)
            }),
        );
    }
    Ok(Said {
        benchmarks: middles(measured),
        ..Said::default()
    })
}

/// Finds the directories with results of this process.
fn find(dir: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let path = entry.path();
        if is_dir && entry.file_name() == "new" && path.join("sample.json").is_file() {
            found.push(path);
        } else if is_dir {
            find(&path, depth, found);
        }
    }
}

fn parsed<T: for<'a> Deserialize<'a>>(file: &Path) -> Result<T, String> {
    let text = input::text(file, Kind::DOCUMENT).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| {
        format!(
            "{}: unexpected form of Criterion's file: {e}; is its version 0.3 or later?",
            file.display()
        )
    })
}
