//! Tests of the header under strict compilers and for another CPU.

use super::Count;
use crate::run::{Scratch, command, exists, line, root, run};

pub(super) const AARCH64_CC: &str = "aarch64-linux-gnu-gcc";

/// Compiles `undertick.h` with the compilers and languages that it supports.
pub(super) fn compilers(count: &mut Count) {
    let Ok(scratch) = Scratch::new("header") else {
        return count.skip("no temporary directory for the header's tests");
    };
    let program = root().join("crates/record/tests/programs/writer.c");
    let cpp = scratch.path("writer.cpp");
    let minimal = "#include \"undertick.h\"\nint main() { undertick::span s(1); ut_name(1, \"x\"); ut_event64(2, 3); return ut_enabled(); }\n";
    if let Err(error) = std::fs::write(&cpp, minimal) {
        return count.step(Err(error.to_string()));
    }
    let warnings = [
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wshadow",
        "-Wconversion",
        "-Werror",
        "-DUNDERTICK_OWN_WARNINGS",
        "-O2",
        "-pthread",
        "-Iinclude",
    ];
    for (compiler, standard, source) in [
        ("gcc", "-std=c11", program.to_str().unwrap_or_default()),
        ("gcc", "-std=gnu17", program.to_str().unwrap_or_default()),
        ("g++", "-std=c++17", cpp.as_str()),
        ("g++", "-std=c++20", cpp.as_str()),
        ("clang", "-std=c11", program.to_str().unwrap_or_default()),
        ("clang++", "-std=c++17", cpp.as_str()),
    ] {
        if !exists(&[compiler, "--version"]) {
            count.skip(&format!("no {compiler} here"));
            continue;
        }
        for extra in [
            &["-fPIC"][..],
            &["-DUNDERTICK_DISABLE"][..],
            &["-finstrument-functions"][..],
        ] {
            let out = scratch.path("program");
            let mut words = vec![compiler, standard];
            words.extend(warnings);
            words.extend(extra);
            words.extend([source, "-o", out.as_str(), "-ldl"]);
            count.step(run(command(&words)));
        }
    }
}

/// Compiles with the strictest warnings as errors: the header must cause none, whatever a program
/// uses of it.
pub(super) fn strict(count: &mut Count) {
    const USES: &str = "#include \"undertick.h\"\nint main(void) { ut_name(1, \"x\"); ut_thread_name(\"y\"); ut_event(1, 2); \
        ut_event64(1, 2); ut_begin(1); ut_next(1, 2); ut_end(2); ut_begin_ordered(1); ut_end_ordered(1); \
        ut_begin_sampled(3); ut_end_sampled(3); ut_pair(4); return ut_enabled(); }\n";
    const GCC: &str = "-Wall -Wextra -Wpedantic -Wcast-qual -Wcast-align -Wshadow -Wstrict-aliasing=1 -Wswitch-enum \
        -Wundef -Wpointer-arith -Wvla -Wformat=2 -Winit-self -Wfloat-equal -Wwrite-strings -Wredundant-decls \
        -Wmissing-declarations -Wconversion -Wsign-conversion -Wunused -Winline -Wpadded -Wcast-align=strict";
    const GCC_C: &str = "-Wmissing-prototypes -Wstrict-prototypes -Wc++-compat -Wdeclaration-after-statement -Wnested-externs";
    const GCC_CPP: &str =
        "-Wold-style-cast -Wuseless-cast -Wzero-as-null-pointer-constant -Weffc++";
    let Ok(scratch) = Scratch::new("strict") else {
        return count.skip("no temporary directory for the header's tests");
    };
    for (compiler, standard, name, flags) in [
        ("gcc", "-std=c11", "uses.c", [GCC, GCC_C]),
        ("g++", "-std=c++17", "uses.cpp", [GCC, GCC_CPP]),
        ("clang", "-std=c11", "uses.c", ["-Weverything", ""]),
        ("clang++", "-std=c++17", "uses.cpp", ["-Weverything", ""]),
    ] {
        let source = scratch.path(name);
        if let Err(error) = std::fs::write(&source, USES) {
            return count.step(Err(error.to_string()));
        }
        if !exists(&[compiler, "--version"]) {
            count.skip(&format!("no {compiler} here"));
            continue;
        }
        for build in ["-DNDEBUG", "-DUNDERTICK_DISABLE", "-DUNDERTICK_CARD=0x1000"] {
            let out = scratch.path("uses.o");
            let mut words = vec![compiler, standard, "-O2", "-Werror", "-Iinclude", build];
            words.extend(flags.iter().flat_map(|flags| flags.split_whitespace()));
            words.extend(["-c", source.as_str(), "-o", out.as_str()]);
            count.step(run(command(&words)));
        }
    }
}

/// Tests the header on aarch64: compiled, and recorded under an emulator. The emulator's counter is
/// not this machine's, so the recording refuses it; with the system's clock everything is recorded.
pub(super) fn aarch64(count: &mut Count) {
    if !exists(&[AARCH64_CC, "--version"]) || !exists(&["qemu-aarch64", "--version"]) {
        return count.skip("no aarch64 compiler and emulator here");
    }
    count.step(aarch64_counted());
    count.step(aarch64_forked());
    count.step(aarch64_crates());
}

/// Runs the tests of the crates that a recorded program links, for aarch64 under the emulator.
fn aarch64_crates() -> Result<(), String> {
    let mut tests = line(
        "cargo test --release --locked --quiet --target aarch64-unknown-linux-gnu \
         -p undertick-units -p undertick-ring -p undertick-clock -p undertick",
        &[],
    );
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", AARCH64_CC);
    let emulator = "qemu-aarch64 -L /usr/aarch64-linux-gnu";
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", emulator);
    run(tests)
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
    record.args([
        "-o",
        trace,
        "--",
        "qemu-aarch64",
        "-L",
        "/usr/aarch64-linux-gnu",
    ]);
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
