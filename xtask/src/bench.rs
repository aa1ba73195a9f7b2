//! Benchmarks: figures, never tests. Each prints its target beside the figure and does not fail on
//! a noisy machine.

pub mod beside_benchmarks;
pub mod beside_recorders;
pub mod cmstar;
pub mod cold;
pub mod compare;
pub mod coverage;
pub mod drop;
pub mod edges;
pub mod evidence;
pub mod functions;
pub mod gate;
pub mod growth_drawn;
pub mod hog;
pub mod impossible;
pub mod in_place;
pub mod interference;
pub mod interposed;
mod kernel;
pub mod leaves;
pub mod live;
mod longest;
pub mod loss;
pub mod nested;
mod otlp;
pub mod peers;
mod peers_of_registries;
pub mod perturbation;
pub mod primitives;
pub mod programs;
pub mod python;
pub mod recorder;
pub mod report;
pub mod reruns;
pub mod sampled;
pub mod service;
pub mod slow;
mod sqlite;
pub mod stacks;
pub mod states;
pub mod survey;
pub mod tasks;
pub mod threads;
mod triggers;
pub mod truth;
pub mod wake;

use std::process::Command;

use serde_json::Value;

use crate::run::{self, Scratch, command, line, output, root};

/// Builds and runs one benchmark, or all.
pub fn run(which: &[&str]) -> Result<(), String> {
    run::build_workspace()?;
    match which {
        ["recorder"] => recorder::measure(),
        ["threads"] => threads::measure(),
        ["tasks"] => tasks::measure(),
        ["cold"] => cold::measure(15),
        ["cold", rounds] => cold::measure(repetitions(rounds)?),
        ["longest"] => longest::measure(10),
        ["longest", rounds] => longest::measure(repetitions(rounds)?),
        ["live"] => live::measure(),
        ["loss"] => loss::measure(10),
        ["drop"] => drop::measure(20),
        ["drop", pairs] => drop::measure(repetitions(pairs)?),
        ["report"] => report::measure(),
        ["kernel"] => kernel::measure(100_000_000, 5),
        ["kernel", events] => kernel::measure(repetitions(events)? as u64, 5),
        ["growth"] => kernel::growth(500_000_000),
        ["growth", most] => kernel::growth(repetitions(most)? as u64),
        ["truth"] => truth::measure(),
        ["nested", kinds @ ..] => nested::measure(kinds),
        ["stacks"] => stacks::measure(),
        ["otlp"] => otlp::measure(15),
        ["otlp", rounds] => otlp::measure(repetitions(rounds)?),
        ["edges"] => edges::measure(8),
        ["edges", runs] => edges::measure(repetitions(runs)?),
        ["gate"] => gate::measure(20, "60s"),
        ["gate", suites, time] => gate::measure(repetitions(suites)?, time),
        ["hog"] => hog::measure(),
        ["evidence"] => evidence::measure(),
        ["leaves"] => leaves::measure(20),
        ["leaves", runs] => leaves::measure(repetitions(runs)?),
        ["states"] => states::measure(20),
        ["states", runs] => states::measure(repetitions(runs)?),
        ["triggers", "kills"] => triggers::kill(),
        ["triggers"] => triggers::measure(20),
        ["triggers", pairs] => triggers::measure(repetitions(pairs)?),
        ["wake"] => wake::measure(),
        ["perturbation"] => perturbation::measure(22),
        ["perturbation", runs] => perturbation::measure(repetitions(runs)?),
        ["primitives"] => primitives::measure(10),
        ["primitives", minutes] => primitives::measure(repetitions(minutes)? as u64),
        ["peers"] => peers::measure(),
        ["beside-recorders"] => beside_recorders::measure(),
        ["beside-benchmarks"] => beside_benchmarks::measure(),
        ["interference"] => interference::measure(20, &interference::KINDS),
        ["interference", runs] => interference::measure(repetitions(runs)?, &interference::KINDS),
        ["interference", runs, kind] if interference::KINDS.contains(kind) => {
            interference::measure(repetitions(runs)?, &[kind])
        }
        ["survey"] => survey::measure(10),
        ["survey", minutes] => survey::measure(repetitions(minutes)? as u64),
        ["slow"] => slow::measure(),
        ["sampled"] => sampled::measure(None),
        ["sampled", before] => sampled::measure(Some(before)),
        ["python"] => python::measure(200),
        ["python", rounds] => python::measure(repetitions(rounds)?),
        ["functions"] => functions::measure(),
        ["interposed"] => interposed::measure(),
        ["compare"] => compare::measure(20),
        ["compare", times] => compare::measure(repetitions(times)?),
        ["programs"] => programs::measure(),
        ["impossible"] => impossible::measure(50),
        ["impossible", recordings] => impossible::measure(repetitions(recordings)?),
        ["reruns"] => reruns::measure(20),
        ["reruns", runs] => reruns::measure(repetitions(runs)?),
        ["coverage"] => coverage::measure(),
        ["cmstar"] => cmstar::measure(10),
        ["cmstar", rounds] => cmstar::measure(repetitions(rounds)?),
        ["in_place"] => in_place::measure(200),
        ["in_place", runs] => in_place::measure(repetitions(runs)?),
        ["all"] => {
            recorder::measure()?;
            loss::measure(10)?;
            truth::measure()?;
            hog::measure()?;
            evidence::measure()?;
            wake::measure()?;
            in_place::measure(20)?;
            perturbation::measure(2)?;
            report::measure()
        }
        _ => Err(
            "which one? recorder, threads, tasks, cold, longest, live, loss, drop, report, kernel, growth, truth, nested, edges, gate, hog, evidence, wake, perturbation, primitives, peers, interference, survey, beside-recorders, beside-benchmarks, in_place, slow, sampled, functions, python, compare, programs, impossible, reruns, leaves, states, coverage, triggers, stacks, interposed, otlp, cmstar or all"
                .to_owned(),
        ),
    }
}

/// Path of the program under test.
fn undertick() -> String {
    root()
        .join("target/release/undertick")
        .to_string_lossy()
        .into_owned()
}

/// Compiles a program of `benches/recorder`.
fn compile(scratch: &Scratch, name: &str) -> Result<String, String> {
    compile_with(scratch, name, &[])
}

fn repetitions(word: &str) -> Result<usize, String> {
    word.parse()
        .map_err(|_| format!("{word}: how many recordings?"))
}

/// Compiles as [`compile`], with more options.
fn compile_with(scratch: &Scratch, name: &str, options: &[String]) -> Result<String, String> {
    compile_as(scratch, name, name, options)
}

/// Compiles as [`compile_with`], under another name.
fn compile_as(
    scratch: &Scratch,
    name: &str,
    out: &str,
    options: &[String],
) -> Result<String, String> {
    let out = scratch.path(out);
    let source = format!("benches/recorder/{name}.c");
    let mut words = vec!["cc", "-O2", "-Iinclude", "-pthread", &source, "-o", &out];
    words.extend(options.iter().map(String::as_str));
    output(command(&words))?;
    Ok(out)
}

/// Records a program; returns its standard output.
fn record(trace: &str, options: &[&str], program: &[&str]) -> Result<String, String> {
    let _ = std::fs::remove_dir_all(trace);
    let undertick = undertick();
    let mut words = vec![undertick.as_str(), "record", "-o", trace];
    words.extend(options);
    words.push("--");
    words.extend(program);
    output(command(&words))
}

/// Returns the output of `undertick report --json`.
fn report_json(trace: &str, options: &[&str]) -> Result<Value, String> {
    let mut command = Command::new(undertick());
    command.args(["report", trace, "--json"]).args(options);
    serde_json::from_str(&output(command)?).map_err(|e| e.to_string())
}

/// The path of a trace's rows as CSV, and their text.
fn csv(trace: &str) -> Result<(String, String), String> {
    let path = format!("{trace}.csv");
    output(line(
        "{} export {} --to csv {}",
        &[&undertick(), trace, &path],
    ))?;
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    Ok((path, text))
}

fn manifest(trace: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(format!("{trace}/manifest.json"))
        .map_err(|e| format!("{trace}: {e}"))?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}

/// Nanoseconds per tick of the trace's clock.
fn ns_per_tick(trace: &str) -> Result<f64, String> {
    let clock = &manifest(trace)?["clock"];
    let number = |key: &str| clock[key].as_f64().ok_or("no rate of the clock");
    Ok(1e9 * number("ticks_per_second_denominator")? / number("ticks_per_second_numerator")?)
}

/// All intervals of a report.
fn intervals(report: &Value) -> &[Value] {
    report["intervals"].as_array().map_or(&[], Vec::as_slice)
}

fn interval<'a>(report: &'a Value, name: &str) -> Result<&'a Value, String> {
    intervals(report)
        .iter()
        .find(|interval| interval["name"] == name)
        .ok_or_else(|| format!("no interval {name}"))
}
