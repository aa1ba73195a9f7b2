//! Finds out which tool a benchmark program was written for.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use undertick_format::input;
use undertick_report::benchmarks::Harness;

/// Texts that programs built with a tool contain; Criterion's come before those of `#[bench]`.
const TRACES: [(&[u8], Harness); 5] = [
    (b"benchmark_min_time", Harness::Google),
    (b"libbenchmark.so", Harness::Google),
    (b"CRITERION_HOME", Harness::Criterion),
    (b"test.benchtime", Harness::Go),
    (b"RUST_TEST_THREADS", Harness::Libtest),
];
/// Bytes that are searched at a time.
const PART: usize = 1 << 20;

/// The tool that the program of a command was written for.
pub(super) fn harness(command: &[OsString]) -> Result<Harness, String> {
    let program = command.first().cloned().unwrap_or_default();
    let shown = program.to_string_lossy();
    if is_pytest(command) {
        return Ok(Harness::Pytest);
    }
    let Some(path) = found(Path::new(&program)) else {
        return Err(format!(
            "{shown}: no such program; build it, or give its path"
        ));
    };
    let file = input::open(&path).map_err(|e| e.to_string())?;
    search(file).ok_or_else(|| {
        format!(
            "{shown}: the tool that it was written for is not recognized; give --harness google, criterion, go, pytest or \
             libtest, or --harness command to time the whole program"
        )
    })
}

/// Whether it is pytest, by itself or as a module.
fn is_pytest(command: &[OsString]) -> bool {
    let words: Vec<String> = (command.iter())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let name = |word: &str| {
        let name = Path::new(word).file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let Some(program) = words.first().map(|word| name(word)) else {
        return false;
    };
    let as_module = words
        .windows(2)
        .any(|two| two[0] == "-m" && two[1] == "pytest");
    ["pytest", "py.test", "pytest-3"].contains(&program.as_str())
        || (program.starts_with("python") && as_module)
}

/// Where a program lies.
pub(crate) fn found(program: &Path) -> Option<PathBuf> {
    if program.components().count() != 1 || program.is_absolute() {
        return program.exists().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|dir| dir.join(program));
    places.find(|place| place.is_file())
}

/// The first tool, in the order of [`TRACES`], whose text is in the file.
fn search(mut file: File) -> Option<Harness> {
    let longest = TRACES.iter().map(|(text, _)| text.len()).max().unwrap_or(1);
    let mut seen = [false; TRACES.len()];
    let mut part = vec![0; PART + longest];
    let mut kept = 0;
    loop {
        let n = file.read(&mut part[kept..]).ok()?;
        if n == 0 {
            break;
        }
        let here = &part[..kept + n];
        for (seen, (text, _)) in seen.iter_mut().zip(&TRACES) {
            *seen = *seen || memchr::memmem::find(here, text).is_some();
        }
        // A text may lie across two parts.
        let end = kept + n;
        let from = end.saturating_sub(longest - 1);
        part.copy_within(from..end, 0);
        kept = end - from;
    }
    let first = seen.iter().zip(&TRACES).find(|(seen, _)| **seen);
    first.map(|(_, (_, harness))| *harness)
}

#[cfg(test)]
#[path = "recognize/tests.rs"]
mod tests;
