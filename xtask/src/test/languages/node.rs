//! The package for Node.js: the addon is built as `npm install` does it, and its tests record with the program.

use std::process::Command;

use super::{Count, ended};
use crate::page;
use crate::run::{command, exists, output, root, run, run_lines};

pub(super) fn all(count: &mut Count) {
    if let Some(why) = missing() {
        return count.skip(&format!("{why}: the package for Node.js is not tested"));
    }
    count.step(same_version());
    let built = run(inside(&["node", "build.js"]));
    let is_built = built.is_ok();
    count.step(built);
    if is_built {
        tests(count, inside(&["npm", "test", "--silent"]));
    }
}

/// Runs only the tests of the package for Node.js; its recordings use the existing build.
pub fn node_alone() -> Result<(), String> {
    let mut count = Count::default();
    all(&mut count);
    ended(&count)
}

/// What the tests need and is not here.
fn missing() -> Option<&'static str> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Some("no recorder for this processor");
    }
    if !exists(&["node", "--version"]) || !exists(&["npm", "--version"]) {
        return Some("no Node.js or no npm here");
    }
    let major = "process.exit(Number(process.versions.node.split('.')[0]) >= 18 ? 0 : 1)";
    if !exists(&["node", "-e", major]) {
        return Some("Node.js here is older than 18");
    }
    let headers = "const { nodeHeader } = require('./node/build.js'); nodeHeader()";
    if !exists(&["node", "-e", headers]) {
        return Some("no headers of Node.js here (node_api.h)");
    }
    (!exists(&["cc", "--version"])).then_some("no C compiler here")
}

/// The package is released with the workspace.
fn same_version() -> Result<(), String> {
    let version = output(inside(&["node", "-p", "require('./package.json').version"]))?;
    let (theirs, ours) = (version.trim(), env!("CARGO_PKG_VERSION"));
    (theirs == ours).then_some(()).ok_or_else(|| {
        format!("node/package.json: its version is {theirs}, that of the workspace {ours}")
    })
}

/// A command in the package's directory, with the program `undertick` for its tests.
fn inside(words: &[&str]) -> Command {
    let mut command = command(words);
    command.current_dir(root().join("node"));
    command.env("UNDERTICK_BINARY", root().join("target/release/undertick"));
    command
}

/// Runs tests that report by TAP, and adds up their counts.
fn tests(count: &mut Count, command: Command) {
    let mut numbers = [0; 4];
    let mut failures = Vec::new();
    let result = run_lines(command, |line| {
        let (pass, fail, skip) = page::counted(line);
        for (number, more) in numbers.iter_mut().zip([pass, fail, skip]) {
            *number += more;
        }
        if line.starts_with("not ok ") {
            failures.push(line.to_owned());
        }
        let is_plain = [
            "ok ",
            "# Subtest",
            "  ---",
            "  ...",
            "  duration_ms",
            "  type:",
        ];
        line.contains("# SKIP") || !is_plain.iter().any(|start| line.starts_with(start))
    });
    count.add(numbers, failures, result);
}
