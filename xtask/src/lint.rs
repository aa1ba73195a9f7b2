//! Lints: format, clippy, documentation, levels of crates, dependency cycles of modules,
//! lengths of files, other targets.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::run::{self, command, exists, line, output};
use crate::test::AARCH64;
use crate::{cycles, levels, page};

/// Runs all lints; counts those that could not be run here.
pub fn all(skipped: &mut u64) -> Result<(), String> {
    run::run(command(&["cargo", "fmt", "--all", "--check"]))?;
    no_test_left_out()?;
    // The release profile, as for everything else, so that the heavy crates are compiled only once.
    run::run(line(
        "cargo clippy --release --workspace --all-targets --locked -- -D warnings",
        &[],
    ))?;
    let mut doc = line("cargo doc --release --workspace --no-deps --locked", &[]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    run::run(doc)?;
    let metadata = metadata()?;
    levels::check(&metadata)?;
    cycles::check()?;
    short_files()?;
    page::licences()?;
    compiled_once()?;
    if !exists(&["rustup", "target", "add", AARCH64]) {
        println!("skipped: the {AARCH64} target cannot be installed here");
        *skipped += 1;
        return Ok(());
    }
    let mut check = vec![
        "cargo",
        "check",
        "--release",
        "--locked",
        "--target",
        AARCH64,
    ];
    for package in [
        "undertick-units",
        "undertick-clock",
        "undertick-ring",
        "undertick",
        "undertick-estimate",
    ] {
        check.extend(["-p", package]);
    }
    run::run(command(&check))
}

/// Checks that every file of tests beside an `all.rs` is a module of it, or a program in the manifest:
/// others would never be compiled.
fn no_test_left_out() -> Result<(), String> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let listed = output(command(&["git", "ls-files", "crates/*/tests/*"]))?;
    let files: Vec<&Path> = listed.lines().map(Path::new).collect();
    let mut left_out = BTreeSet::new();
    for all in files.iter().filter(|file| file.ends_with("tests/all.rs")) {
        let tests = all.parent().unwrap_or(all);
        let modules = read(&run::root().join(all))?;
        let manifest = read(&run::root().join(tests).with_file_name("Cargo.toml"))?;
        for file in files.iter().filter(|file| file.starts_with(tests)) {
            let within = file.strip_prefix(tests).unwrap_or(file);
            let is_root = within.parent() == Some(Path::new("")) && *file != *all;
            let name = match within.extension().is_some_and(|of| of == "rs") && is_root {
                true => within.file_stem(),
                false if within.ends_with("mod.rs") => within.iter().next(),
                false => None,
            };
            let Some(name) = name.and_then(|name| name.to_str()) else {
                continue;
            };
            let is_module = modules.lines().any(|line| line == format!("mod {name};"));
            if !is_module && !manifest.contains(&format!("name = \"{name}\"")) {
                left_out.insert(format!("{}: no `mod {name};` in all.rs", file.display()));
            }
        }
    }
    match left_out.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "tests that are never compiled:\n  {}",
            Vec::from_iter(left_out).join("\n  ")
        )),
    }
}

/// Checks that no file is too long to be read at once. What programs include is one file.
fn short_files() -> Result<(), String> {
    const MOST_LINES: usize = 500;
    let kinds = [
        "*.rs", "*.c", "*.cpp", "*.h", "*.hpp", "*.go", "*.py", "*.ts", "*.sv",
    ];
    let listed = output(command(&[&["git", "ls-files"][..], &kinds].concat()))?;
    let mut long = Vec::new();
    for name in listed
        .lines()
        .filter(|name| !name.ends_with("include/undertick.h"))
    {
        // A file that was removed is listed until the next commit.
        let lines =
            std::fs::read_to_string(run::root().join(name)).map_or(0, |text| text.lines().count());
        if lines > MOST_LINES {
            long.push(format!("{name}: {lines} lines"));
        }
    }
    match long[..] {
        [] => Ok(()),
        _ => Err(format!(
            "files of over {MOST_LINES} lines; divide them by subject:\n  {}",
            long.join("\n  ")
        )),
    }
}

/// What cargo knows of all packages of the lock file.
pub fn metadata() -> Result<Value, String> {
    let words = ["cargo", "metadata", "--format-version", "1", "--locked"];
    serde_json::from_str(&output(command(&words))?).map_err(|e| e.to_string())
}

/// Checks that the wheel requests the same features as the workspace's tests. A crate is compiled
/// again for each set of features, and so are all crates that depend on it.
fn compiled_once() -> Result<(), String> {
    let crates = |of: &[&str]| -> Result<BTreeSet<String>, String> {
        let words = [
            "cargo", "tree", "--locked", "--prefix", "none", "-f", "{p} {f}",
        ];
        let tree = output(command(&[&words[..], of].concat()))?;
        // A star marks a crate that was already listed.
        let lines = tree
            .lines()
            .map(|line| line.trim_end_matches(" (*)").to_owned());
        Ok(lines.collect())
    };
    let wheel = crates(&["-p", "undertick-python", "-e", "normal,build"])?;
    let tests = crates(&["--workspace", "-e", "all"])?;
    let other: Vec<&str> = wheel.difference(&tests).map(String::as_str).collect();
    if other.is_empty() {
        return Ok(());
    }
    Err(format!(
        "compiled twice, as the tests want other features than the wheel (python/Cargo.toml): {}",
        other.join(", ")
    ))
}
