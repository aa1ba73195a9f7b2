//! The package for Java: its jar is built by its script, and its tests record with the program. They run again on a
//! JDK with virtual threads, if the usual one has none.

use std::path::PathBuf;
use std::process::Command;

use super::{Count, ended};
use crate::run::{command, exists, output, root, run_lines};

/// The first version of Java that has virtual threads.
const VIRTUAL_THREADS: u32 = 21;

pub(super) fn all(count: &mut Count) {
    if let Some(why) = missing() {
        return count.skip(&format!("{why}: the package for Java is not tested"));
    }
    tests(count, java());
    if version(&output(command(&["javac", "-version"])).unwrap_or_default()) >= VIRTUAL_THREADS {
        return;
    }
    match newest() {
        Some((number, home)) if number >= VIRTUAL_THREADS => {
            let mut command = java();
            command.env("JAVA_HOME", home);
            tests(count, command);
        }
        _ => count.skip("no JDK of 21 or later here: spans of virtual threads are not tested"),
    }
}

/// Runs only the tests of the package for Java; its recordings use the existing build.
pub fn java_alone() -> Result<(), String> {
    let mut count = Count::default();
    all(&mut count);
    ended(&count)
}

/// What the tests need and is not here.
fn missing() -> Option<&'static str> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Some("no recorder for this processor");
    }
    let Ok(said) = output(command(&["javac", "-version"])) else {
        return Some("no JDK here");
    };
    if version(&said) < 17 {
        return Some("the JDK here is older than 17");
    }
    (!exists(&["cc", "--version"])).then_some("no C compiler here")
}

/// The command that builds the jar and runs its tests.
fn java() -> Command {
    let mut command = command(&["java/test.sh"]);
    command.env_remove("JAVA_HOME");
    command.env("UNDERTICK_BINARY", root().join("target/release/undertick"));
    command
}

/// The first number of a version such as `javac 17.0.15` or `JAVA_VERSION="25"`; 0: there is none.
fn version(text: &str) -> u32 {
    let digits = text.split(|c: char| !c.is_ascii_digit());
    let mut numbers = digits.filter_map(|number| number.parse().ok());
    numbers.next().unwrap_or(0)
}

/// The newest of the JDKs where Debian and others have them, with its version.
fn newest() -> Option<(u32, PathBuf)> {
    let homes = std::fs::read_dir("/usr/lib/jvm").ok()?;
    let with_version = |home: PathBuf| {
        let release = std::fs::read_to_string(home.join("release")).ok()?;
        let line = (release.lines()).find(|line| line.starts_with("JAVA_VERSION="))?;
        home.join("bin/javac")
            .exists()
            .then(|| (version(line), home))
    };
    homes
        .filter_map(|home| with_version(home.ok()?.path()))
        .max()
}

/// Runs the tests and adds up their counts, which are in the last line.
fn tests(count: &mut Count, command: Command) {
    let mut numbers = [0; 4];
    let mut failures = Vec::new();
    let result = run_lines(command, |line| {
        for (at, word) in [" passed", " failed", " skipped"].into_iter().enumerate() {
            let counted = line
                .split(word)
                .next()
                .filter(|before| before.len() < line.len());
            let number = counted.and_then(|before| before.rsplit(' ').next()?.parse::<u64>().ok());
            numbers[at] += number.unwrap_or(0);
        }
        if line.starts_with("FAILED: ") {
            failures.push(line.to_owned());
        }
        !line.starts_with("ok ")
    });
    count.add(numbers, failures, result);
}
