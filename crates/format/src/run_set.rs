//! Directories with several runs of one program: each run is a `NAME.ut` in it.

use std::io;
use std::path::{Path, PathBuf};

use crate::files::MANIFEST_FILE;

/// Whether this is a trace, complete or not, or is named like one.
#[must_use]
pub fn is_trace(path: &Path) -> bool {
    path.is_dir()
        && (path.join(MANIFEST_FILE).exists() || path.extension().is_some_and(|e| e == "ut"))
}

/// Returns the traces in a directory, sorted by name. `None` if the path is a trace or not a
/// directory, or if the directory has none.
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

/// The name of a run: its trace's name without the ending.
#[must_use]
pub fn run_name(trace: &Path) -> String {
    let stem = trace.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
