//! Format, clippy, documentation, licences, other targets.

use std::collections::BTreeSet;

use crate::run::{self, command, exists, output};
use crate::{licences, page};

const AARCH64: &str = "aarch64-unknown-linux-gnu";

/// All of it; counts what could not be run here.
pub fn all(skipped: &mut u64) -> Result<(), String> {
    run::run(command(&["cargo", "fmt", "--all", "--check"]))?;
    // Release, as everything: one copy of the heavy crates.
    run::run(command(&[
        "cargo",
        "clippy",
        "--release",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    let mut doc = command(&[
        "cargo",
        "doc",
        "--release",
        "--workspace",
        "--no-deps",
        "--locked",
    ]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    run::run(doc)?;
    licences::check()?;
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

/// Crates are compiled once more for each set of features that is asked of them, and all that
/// stands on them with them: the wheel must ask for no other than the tests of the workspace.
fn compiled_once() -> Result<(), String> {
    let crates = |of: &[&str]| -> Result<BTreeSet<String>, String> {
        let words = [
            "cargo", "tree", "--locked", "--prefix", "none", "-f", "{p} {f}",
        ];
        let tree = output(command(&[&words[..], of].concat()))?;
        // A star stands where a crate was listed before.
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
