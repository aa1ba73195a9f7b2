//! Directories with several runs of one program: `NAME.ut` in them, one for each run.

use std::io;
use std::path::{Path, PathBuf};

use crate::keep::MANIFEST_FILE;

/// Whether this is a trace, complete or not, or is named like one.
#[must_use]
pub fn is_trace(path: &Path) -> bool {
    path.is_dir()
        && (path.join(MANIFEST_FILE).exists() || path.extension().is_some_and(|e| e == "ut"))
}

/// The traces in a directory that is none itself, by name; `None` of everything else and
/// of a directory without any.
///
/// # Errors
/// The directory cannot be read.
pub fn traces_in(dir: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    if !dir.is_dir() || is_trace(dir) {
        return Ok(None);
    }
    let mut traces = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if is_trace(&path) {
            traces.push(path);
        }
    }
    traces.sort();
    Ok((!traces.is_empty()).then_some(traces))
}

/// The name of a run: that of its trace without the ending.
#[must_use]
pub fn run_name(trace: &Path) -> String {
    let stem = trace.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
