//! Format, clippy, documentation, licences, other targets.

use crate::run::{self, command, exists};
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
