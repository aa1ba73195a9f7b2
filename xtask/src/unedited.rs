//! Compares the calls of an unmodified real program with the counts of `gcov`: minigzip of Debian's
//! source package zlib, compiled with hooks.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::run::{Scratch, command, output, root};
use crate::sources;

/// Number of calls of each function.
pub type Calls = BTreeMap<String, u64>;

/// Path of the unpacked source. The error says why there is none.
pub fn zlib() -> Result<String, String> {
    sources::unpacked(&sources::ZLIB)
}

/// Compiles minigzip in a separate directory; returns the program's path.
pub fn minigzip(source: &str, dir: &str, options: &[&str]) -> Result<String, String> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{dir}: {e}"))?;
    let program = format!("{dir}/minigzip");
    let mut files: Vec<String> = std::fs::read_dir(source)
        .map_err(|e| format!("{source}: {e}"))?
        .filter_map(|entry| Some(entry.ok()?.path().to_string_lossy().into_owned()))
        .filter(|path| path.ends_with(".c"))
        .collect();
    files.push(format!("{source}/test/minigzip.c"));
    files.sort();
    let mut compile = command(&["cc", "-w", "-D_GNU_SOURCE", "-DHAVE_UNISTD_H", "-I", source]);
    compile
        .args(options)
        .args(files)
        .args(["-o", &program])
        .current_dir(dir);
    output(compile)?;
    Ok(program)
}

/// Writes the file to be compressed: the package's own C source, `times` over.
pub fn input(source: &str, path: &str, times: usize) -> Result<(), String> {
    let mut all = Vec::new();
    for name in [
        "deflate.c",
        "inflate.c",
        "trees.c",
        "ChangeLog",
        "zlib.3.pdf",
    ] {
        all.extend(std::fs::read(format!("{source}/{name}")).map_err(|e| format!("{name}: {e}"))?);
    }
    std::fs::write(path, all.repeat(times)).map_err(|e| format!("{path}: {e}"))
}

/// A shell command that compresses and decompresses the input.
fn both_ways(program: &str, input: &str, out: &str) -> String {
    format!("'{program}' < '{input}' > '{out}' && '{program}' -d < '{out}' | cmp - '{input}'")
}

/// Compares all counts; returns how many there were.
pub fn counts_agree() -> Result<String, String> {
    let source = zlib()?;
    let scratch = Scratch::new("unedited")?;
    let (file, out) = (scratch.path("input"), scratch.path("input.gz"));
    input(&source, &file, 2)?;
    let expected = {
        // Compile without optimisation, so that no function is inlined before it is counted.
        let dir = scratch.path("gcov");
        let program = minigzip(&source, &dir, &["-O0", "--coverage"])?;
        output(command(&["sh", "-c", &both_ways(&program, &file, &out)]))?;
        gcov(&dir)?
    };
    let program = minigzip(
        &source,
        &scratch.path("hooks"),
        &["-O2", "-finstrument-functions"],
    )?;
    let trace = scratch.path("t.ut");
    let undertick = root().join("target/release/undertick");
    let undertick = undertick.to_string_lossy();
    output(command(&[
        &undertick,
        "record",
        "--no-calibration",
        "-o",
        &trace,
        "--functions",
        ".",
        "--",
        "sh",
        "-c",
        &both_ways(&program, &file, &out),
    ]))?;
    let report = output(command(&[&undertick, "report", &trace, "--json"]))?;
    let found = calls(&serde_json::from_str(&report).map_err(|e| e.to_string())?)?;
    if found == expected {
        let all: u64 = expected.values().sum();
        return Ok(format!(
            "{all} calls of {} functions, each as gcov counts it",
            expected.len()
        ));
    }
    let differ: Vec<String> = expected
        .keys()
        .chain(found.keys())
        .filter(|name| expected.get(*name) != found.get(*name))
        .map(|name| {
            format!(
                "{name}: {:?}, gcov {:?}",
                found.get(name),
                expected.get(name)
            )
        })
        .collect();
    Err(format!("counts differ from gcov's: {}", differ.join("; ")))
}

/// The counts of gcov for the objects in a directory.
fn gcov(dir: &str) -> Result<Calls, String> {
    let script = "gcov --json-format --stdout *.gcda";
    let mut gcov = command(&["sh", "-c", script]);
    gcov.current_dir(dir);
    let text = output(gcov)?;
    let mut calls = Calls::new();
    for line in text.lines() {
        let document: Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
        for file in document["files"].as_array().into_iter().flatten() {
            for function in file["functions"].as_array().into_iter().flatten() {
                let name = function["name"].as_str().unwrap_or_default().to_owned();
                *calls.entry(name).or_default() +=
                    function["execution_count"].as_u64().unwrap_or(0);
            }
        }
    }
    calls.retain(|_, count| *count > 0);
    Ok(calls)
}

/// The numbers of complete calls in a report.
fn calls(report: &Value) -> Result<Calls, String> {
    let intervals = report["intervals"]
        .as_array()
        .ok_or("no intervals in the report")?;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let name = |interval: &Value| interval["name"].as_str().unwrap_or_default().to_owned();
    Ok(intervals
        .iter()
        .map(|i| (name(i), number(&i["count"]) + number(&i["culled"]["count"])))
        .collect())
}
