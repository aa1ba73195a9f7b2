//! The cost of a call that is instrumented by the compiler, and of the same call under uftrace, in
//! turn in one run.

use super::recorder::blocks;
use super::{record, undertick};
use crate::run::{Scratch, command, exists, line, output};
use crate::statistics::{median, median_interval};
use crate::unedited;

/// Number of runs of each, in alternation.
const PAIRS: usize = 15;
const ROUNDS: &str = "20";
const CALLS: &str = "50000";

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("functions")?;
    let has_uftrace = exists(&["uftrace", "--version"]) || {
        let _ = output(command(&["apt-get", "install", "-y", "-qq", "uftrace"]));
        exists(&["uftrace", "--version"])
    };
    if !has_uftrace {
        println!("skipped: no uftrace here, so nothing is compared with it");
    }
    blocks_of_calls(&scratch, has_uftrace)?;
    match unedited::zlib() {
        Ok(source) => real_program(&scratch, &source, has_uftrace),
        Err(why) => {
            println!("skipped: {why}");
            Ok(())
        }
    }
}

/// Measures a loop of calls of a small function, less the same loop without hooks.
fn blocks_of_calls(scratch: &Scratch, has_uftrace: bool) -> Result<(), String> {
    let program = scratch.path("calls");
    let source = "benches/functions/calls.c";
    output(line(
        "cc -O2 -finstrument-functions {} -o {}",
        &[source, &program],
    ))?;
    let (trace, dir) = (scratch.path("c.ut"), scratch.path("calls.uftrace"));
    let words = [program.as_str(), ROUNDS, CALLS];
    let cost = |text: &str, what: &str| {
        let blocks = blocks(text);
        median(&blocks[what]) - median(&blocks["bare"])
    };
    let whats = ["leaf", "nested", "skipped"];
    let mut ours = [const { Vec::new() }; 3];
    let (mut theirs, mut idle) = (ours.clone(), ours.clone());
    for _ in 0..PAIRS {
        let options = [
            "--no-calibration",
            "--kernel",
            "off",
            "--functions",
            "^(leaf|outer)$",
        ];
        let text = record(&trace, &options, &words)?;
        let none = output(command(&words))?;
        let other = if has_uftrace {
            uftrace(&dir, &["-F", "leaf", "-F", "outer"], &words)?
        } else {
            String::new()
        };
        for (i, what) in whats.iter().enumerate() {
            ours[i].push(cost(&text, what));
            idle[i].push(cost(&none, what));
            if has_uftrace {
                theirs[i].push(cost(&other, what));
            }
        }
    }
    println!("\na call, with its hooks; median of {PAIRS} runs in turn [95 %]");
    println!(
        "{:<28}{:>22}{:>12}{:>26}{:>8}",
        "what", "ns", "uftrace ns", "ratio to uftrace", "target"
    );
    for (i, (shown, target)) in [
        ("recorded", "< 0.5"),
        ("recorded, nested", "< 0.5"),
        ("left out by the filter", ""),
    ]
    .iter()
    .enumerate()
    {
        row(shown, &ours[i], &theirs[i], target);
    }
    row("no session", &idle[0], &[], "");
    Ok(())
}

fn row(what: &str, ours: &[f64], theirs: &[f64], target: &str) {
    let shown = |values: &[f64], digits: usize| {
        let (lo, hi) = median_interval(values);
        format!("{:.digits$} [{lo:.digits$}, {hi:.digits$}]", median(values))
    };
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    let (other, ratio) = if ratios.is_empty() {
        (String::new(), String::new())
    } else {
        (format!("{:.1}", median(theirs)), shown(&ratios, 3))
    };
    println!(
        "{what:<28}{:>22}{other:>12}{ratio:>26}{target:>8}",
        shown(ours, 1)
    );
}

/// Runs a program under uftrace, without the calls into libraries, which Undertick does not record
/// either.
fn uftrace(dir: &str, options: &[&str], program: &[&str]) -> Result<String, String> {
    let _ = std::fs::remove_dir_all(dir);
    let mut words = vec!["uftrace", "record", "--force", "--no-libcall", "-d", dir];
    words.extend(options);
    words.extend(program);
    output(command(&words))
}

/// Measures minigzip: the additional CPU time under a recorder, per call.
fn real_program(scratch: &Scratch, source: &str, has_uftrace: bool) -> Result<(), String> {
    println!("\nminigzip, unedited: {}", unedited::counts_agree()?);
    let (file, out) = (scratch.path("input"), scratch.path("input.gz"));
    unedited::input(source, &file, 100)?;
    let program = unedited::minigzip(
        source,
        &scratch.path("hooks"),
        &["-O2", "-finstrument-functions"],
    )?;
    let script = format!("TIMEFORMAT='%U %S'; {{ time '{program}' < '{file}' > '{out}'; }} 2>&1");
    let words = ["bash", "-c", &script];
    let (trace, dir) = (scratch.path("m.ut"), scratch.path("m.uftrace"));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut calls = 0.0;
    for _ in 0..PAIRS {
        let options = ["--no-calibration", "--kernel", "off", "--functions", "."];
        let recorded = seconds(&record(&trace, &options, &words)?)?;
        let none = seconds(&output(command(&words))?)?;
        if calls == 0.0 {
            let manifest = super::manifest(&trace)?;
            calls = manifest["events"].as_f64().unwrap_or(f64::NAN) / 2.0;
        }
        ours.push((recorded - none) * 1e9 / calls);
        if has_uftrace {
            let other = seconds(&uftrace(&dir, &[], &words)?)?;
            theirs.push((other - none) * 1e9 / calls);
        }
    }
    println!(
        "{:.1} million calls; CPU time beyond that without a recorder ({})",
        calls / 1e6,
        undertick()
    );
    row("minigzip, a call", &ours, &theirs, "< 0.5");
    Ok(())
}

/// User and system time in the output of bash, s.
fn seconds(text: &str) -> Result<f64, String> {
    let numbers = text
        .split_whitespace()
        .filter_map(|word| word.parse::<f64>().ok());
    let numbers: Vec<f64> = numbers.collect();
    match numbers[..] {
        [user, system] => Ok(user + system),
        _ => Err(format!("not two times: {text}")),
    }
}
