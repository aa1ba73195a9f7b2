//! Tests on aarch64, under an emulator: functions, no times.

use super::Count;
use super::platforms::has_target;
use crate::run::{Scratch, command, exists, line, output, root, run};

pub(super) const AARCH64_CC: &str = "aarch64-linux-gnu-gcc";
pub const AARCH64: &str = "aarch64-unknown-linux-gnu";
const EMULATOR: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// Tests on aarch64, under an emulator. The header: this machine's recorder refuses the emulator's counter,
/// which is another one; with the system's clock everything is recorded. The crates that programs link; and
/// the recorder itself, with the counter.
pub(super) fn all(count: &mut Count) {
    if !exists(&[AARCH64_CC, "--version"]) || !exists(&["qemu-aarch64", "--version"]) {
        return count.skip("no aarch64 compiler and emulator here");
    }
    count.step(aarch64_counted());
    count.step(aarch64_forked());
    if has_target(AARCH64, count) {
        count.step(emulated_crates());
        count.step(emulated_recorder());
    }
}

/// Compiles a C program for aarch64, under the given standard of C.
fn built_for_aarch64(source: &str, standard: &str, into: &Scratch) -> Result<String, String> {
    let program = into.path("program");
    run(line(
        "{} {} -Wall -Wextra -DUNDERTICK_OWN_WARNINGS -Wpedantic -Wconversion -Werror -O2 \
         -pthread -Iinclude {} -o {} -ldl",
        &[
            AARCH64_CC,
            standard,
            &format!("crates/record/tests/programs/{source}"),
            &program,
        ],
    ))?;
    Ok(program)
}

/// A command that records a program under the emulator.
fn record_emulated(trace: &str, program: &[&str]) -> std::process::Command {
    let undertick = root().join("target/release/undertick");
    let mut record = command(&[&undertick.to_string_lossy(), "record", "--no-calibration"]);
    record.args(["-o", trace, "--"]);
    record.args(EMULATOR.split(' '));
    record.args(program);
    record
}

fn manifest_of(trace: &str) -> Result<String, String> {
    std::fs::read_to_string(format!("{trace}/manifest.json")).map_err(|e| e.to_string())
}

/// Checks that the emulator's counter is refused, and that the system's clock records everything.
fn aarch64_counted() -> Result<(), String> {
    let scratch = Scratch::new("aarch64")?;
    let program = built_for_aarch64("writer.c", "-std=c11", &scratch)?;
    let command = [program.as_str(), "count", "100000"];
    let refused = record_emulated(&scratch.path("counter.ut"), &command)
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    if refused.status.success() || !text.contains("reads another clock") {
        return Err(format!("an emulated counter was believed: {text}"));
    }
    let trace = scratch.path("t.ut");
    let mut recorded = record_emulated(&trace, &command);
    recorded.env("UNDERTICK_CLOCK", "monotonic_raw");
    run(recorded)?;
    let manifest = manifest_of(&trace)?;
    if manifest.contains("\"events\": 100000,") && manifest.contains("\"lost\": 0,") {
        Ok(())
    } else {
        Err(format!("not 100000 events: {manifest}"))
    }
}

/// Checks that children of fork() and of a raw clone() have separate rings where no page is wiped.
fn aarch64_forked() -> Result<(), String> {
    let scratch = Scratch::new("aarch64-forks")?;
    let (program, trace) = (
        built_for_aarch64("forks.c", "-std=gnu11", &scratch)?,
        scratch.path("t.ut"),
    );
    let mut recorded = record_emulated(&trace, &[&program]);
    recorded.env("UNDERTICK_CLOCK", "monotonic_raw");
    run(recorded)?;
    let manifest: serde_json::Value =
        serde_json::from_str(&manifest_of(&trace)?).map_err(|e| e.to_string())?;
    let rings = manifest["rings"].as_array().map_or(0, Vec::len);
    let executions: u64 = (manifest["sampled"].as_array().into_iter().flatten())
        .filter_map(|of| of["executions"].as_u64())
        .sum();
    if (rings, executions, manifest["lost"].as_u64()) == (51, 51 * 100, Some(0)) {
        Ok(())
    } else {
        Err(format!(
            "not 51 rings, 5100 executions, none lost: {rings}, {executions}, {manifest}"
        ))
    }
}

/// A cargo command for aarch64, with the compiler of C for it and the emulator.
fn cargo_for_aarch64(words: &str) -> std::process::Command {
    let mut cargo = line(
        &format!("cargo {words} --locked --quiet --target {AARCH64}"),
        &[],
    );
    cargo.envs([
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", AARCH64_CC),
        ("CC_aarch64_unknown_linux_gnu", AARCH64_CC),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", EMULATOR),
        // What a debugger reads would take half of the time.
        ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ]);
    cargo
}

/// Runs the tests of the crates that a recorded program links.
fn emulated_crates() -> Result<(), String> {
    let crates = "-p undertick-units -p undertick-ring -p undertick-clock -p undertick";
    run(cargo_for_aarch64(&format!("test --release {crates}")))
}

/// Checks that an emulated recorder records an emulated program by the emulator's counter, and reports it.
fn emulated_recorder() -> Result<(), String> {
    run(cargo_for_aarch64("build -p undertick-cli"))?;
    let scratch = Scratch::new("aarch64-recorder")?;
    let program = built_for_aarch64("writer.c", "-std=c11", &scratch)?;
    let undertick = root().join("target").join(AARCH64).join("debug/undertick");
    let trace = scratch.path("t.ut");
    let emulated = |words: &[&str]| {
        let mut command = line(EMULATOR, &[]);
        command.arg(&undertick).args(words);
        command
    };
    let mut record = emulated(&["record", "--no-calibration", "-o", &trace, "--"]);
    record.args(EMULATOR.split(' '));
    record.args([&program, "count", "100000"]);
    run(record)?;
    let manifest: serde_json::Value =
        serde_json::from_str(&manifest_of(&trace)?).map_err(|e| e.to_string())?;
    let found = (
        &manifest["clock"]["name"],
        &manifest["events"],
        &manifest["lost"],
    );
    if found != (&"cntvct".into(), &100_000.into(), &0.into()) {
        return Err(format!("not 100000 events by cntvct, none lost: {found:?}"));
    }
    let report = output(emulated(&["report", &trace]))?;
    match report.contains("100 k events, none lost") {
        true => Ok(()),
        false => Err(report),
    }
}
