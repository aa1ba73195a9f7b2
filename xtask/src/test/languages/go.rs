//! The Go package: its format, `go vet` for each system, its tests, under the race detector and on aarch64
//! under an emulator, too.

use std::process::Command;

use super::{Count, ended};
use crate::run::{Scratch, command, exists, output, root, run, run_lines};

const EMULATOR: &str = "qemu-aarch64";

pub(super) fn all(count: &mut Count) {
    if !exists(&["go", "version"]) {
        return count.skip("no Go here: the Go package is not tested");
    }
    if let Err(why) = output(go(&["list", "./..."])) {
        return count.skip(&format!("the Go package needs a later Go: {why}"));
    }
    count.step(formatted());
    count.step(licensed());
    for system in [
        "linux/amd64",
        "linux/arm64",
        "linux/riscv64",
        "windows/amd64",
        "darwin/arm64",
    ] {
        let mut vet = go(&["vet", "./..."]);
        let (name, processor) = system.split_once('/').unwrap_or((system, ""));
        vet.env("GOOS", name).env("GOARCH", processor);
        count.step(run(vet));
    }
    tests(count, go(&["test", "-count=1", "-v", "./..."]));
    match race_detector() {
        Ok(()) => tests(count, go(&["test", "-count=1", "-v", "-race", "./..."])),
        Err(why) => count.skip(&format!("the Go package without the race detector: {why}")),
    }
    if !exists(&[EMULATOR, "--version"]) {
        return count.skip("no emulator of aarch64 here: the Go package is not tested on it");
    }
    match built_for_aarch64() {
        Ok((_scratch, command)) => tests(count, command),
        Err(error) => count.step(Err(error)),
    }
}

/// Runs only the tests of the Go package; its recordings use the existing build.
pub fn go_alone() -> Result<(), String> {
    let mut count = Count::default();
    all(&mut count);
    ended(&count)
}

/// A command of the Go that is installed, in the module.
fn go(words: &[&str]) -> Command {
    inside("go", &[&["go"][..], words].concat())
}

/// A command in a directory of the module, with the program `undertick` for its tests.
fn inside(directory: &str, words: &[&str]) -> Command {
    let mut command = command(words);
    command.current_dir(root().join(directory));
    command.env("GOTOOLCHAIN", "local");
    command.env("UNDERTICK_BINARY", root().join("target/release/undertick"));
    command
}

fn formatted() -> Result<(), String> {
    let files = output(command(&["gofmt", "-l", "go"]))?;
    match files.trim() {
        "" => Ok(()),
        files => Err(format!("not as gofmt writes it: {files}")),
    }
}

/// The module is published without the directory above it, so it has copies of the licences.
fn licensed() -> Result<(), String> {
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let [ours, of_the_module] = [root().join(name), root().join("go").join(name)]
            .map(|path| std::fs::read(path).map_err(|error| format!("{name}: {error}")));
        if ours? != of_the_module? {
            return Err(format!("go/{name} differs from {name}"));
        }
    }
    Ok(())
}

/// The race detector is a library in C on most systems.
fn race_detector() -> Result<(), String> {
    let mut asked = go(&["env", "CGO_ENABLED"]);
    asked.env_remove("CGO_ENABLED");
    if output(asked)?.trim() != "1" || !exists(&["gcc", "--version"]) {
        return Err("no cgo or no gcc here".to_owned());
    }
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Ok(());
    }
    Err("it is not for this processor".to_owned())
}

/// Builds the tests for aarch64; returns the command that runs them under the emulator.
fn built_for_aarch64() -> Result<(Scratch, Command), String> {
    let scratch = Scratch::new("go")?;
    let program = scratch.path("ut.test");
    let mut build = go(&["test", "-c", "-o", &program, "./ut"]);
    build.env("GOARCH", "arm64").env("CGO_ENABLED", "0");
    run(build)?;
    let mut tests = inside("go/ut", &[EMULATOR, &program, "-test.v"]);
    tests.env("UNDERTICK_TEST_EMULATOR", EMULATOR);
    Ok((scratch, tests))
}

/// Runs a test command and adds up its counts; of tests within tests only the skipped ones count.
fn tests(count: &mut Count, command: Command) {
    let (mut numbers, mut failures) = ([0; 4], Vec::new());
    let ended = run_lines(command, |line| {
        for (at, word) in [(0, "--- PASS"), (1, "--- FAIL"), (2, "--- SKIP")] {
            let is_it = line.starts_with(word) || (at == 2 && line.trim_start().starts_with(word));
            numbers[at] += u64::from(is_it);
        }
        let is_text = !line.starts_with("=== ") && !line.trim_start().starts_with("--- ");
        if line.starts_with("--- FAIL") {
            failures.push(line.to_owned());
        }
        is_text || line.contains("--- FAIL")
    });
    count.add(numbers, failures, ended);
}
