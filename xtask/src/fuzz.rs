//! The fuzz targets under libFuzzer, which is guided by coverage. CI runs only the test `fuzz` of
//! `crates/analyze` instead: compiling all crates again, for nightly, takes ten minutes of a CPU.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{command, exists, line, root, run};

/// CPU time for all targets together, s, unless given otherwise.
pub const SECONDS: u64 = 600;
/// Limits of a target: memory, MiB, and time for one input, s.
const MEMORY_MIB: u64 = 2048;
const LONGEST_SECONDS: u64 = 20;
const LONGEST_BYTES: u64 = 16 * 1024;

/// Runs every command on malicious trace directories for this much CPU time. CI runs the same test
/// for less.
///
/// # Errors
/// A command did harm, did not end, or used too much.
pub fn directories(seconds: u64) -> Result<(), String> {
    let mut test = line(
        "cargo test --release --locked --package undertick-cli --test all -- --nocapture \
         hostile_directories::",
        &[],
    );
    test.env("UNDERTICK_DIRECTORIES_SECONDS", seconds.to_string());
    let python = root().join("target/venv/bin/python");
    if exists(&[&python.to_string_lossy(), "-c", "import undertick, duckdb"]) {
        test.env("UNDERTICK_PYTHON", python);
    } else {
        println!("skipped: no Python package in target/venv (cargo xtask test): sql is not asked");
    }
    run(test)
}

/// Names of the targets, each a directory of seeds.
fn targets() -> Result<Vec<String>, String> {
    let seeds = root().join("fuzz/seeds");
    let entries = fs::read_dir(&seeds).map_err(|e| format!("{}: {e}", seeds.display()))?;
    let mut names: Vec<String> = (entries.flatten())
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// Builds all targets and gives each its share of the time; the error names the inputs found.
pub fn all(seconds: u64) -> Result<(), String> {
    if !exists(&["cargo", "+nightly", "--version"]) {
        println!(
            "skipped: no nightly toolchain (rustup toolchain install nightly): nothing is fuzzed"
        );
        return Ok(());
    }
    let target_dir = root().join("target/fuzz");
    let mut build = line("cargo +nightly build --release --locked --bins", &[]);
    build.current_dir(root().join("fuzz"));
    build.env("CARGO_TARGET_DIR", &target_dir);
    run(build)?;
    let targets = targets()?;
    let share = (seconds / targets.len().max(1) as u64).max(1);
    let mut found = Vec::new();
    for target in &targets {
        found.extend(one(target, share, &target_dir)?);
    }
    if found.is_empty() {
        println!("{} targets, {share} s each: nothing found", targets.len());
        return Ok(());
    }
    let list: Vec<String> = found
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Err(format!(
        "found, to be mended and then kept in fuzz/seeds: {}",
        list.join(", ")
    ))
}

/// Runs a target on its earlier useful inputs and on the seeds; returns the inputs that make it
/// fail.
fn one(target: &str, seconds: u64, target_dir: &Path) -> Result<Vec<PathBuf>, String> {
    let (corpus, failed) = (
        target_dir.join("corpus").join(target),
        target_dir.join("found").join(target),
    );
    let _ = fs::remove_dir_all(&failed);
    for dir in [&corpus, &failed] {
        fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let program = target_dir.join("release").join(target);
    let mut fuzzed = command(&[&program.to_string_lossy()]);
    fuzzed
        .args([
            // A separate process, so that the target continues after a failure.
            "-fork=1".to_owned(),
            "-ignore_crashes=1".to_owned(),
            "-ignore_ooms=1".to_owned(),
            "-ignore_timeouts=1".to_owned(),
            format!("-max_total_time={seconds}"),
            format!("-timeout={LONGEST_SECONDS}"),
            format!("-rss_limit_mb={MEMORY_MIB}"),
            format!("-max_len={LONGEST_BYTES}"),
            format!("-artifact_prefix={}/", failed.display()),
        ])
        .arg(&corpus)
        .arg(root().join("fuzz/seeds").join(target));
    run(fuzzed)?;
    let entries = fs::read_dir(&failed).map_err(|e| format!("{}: {e}", failed.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}
