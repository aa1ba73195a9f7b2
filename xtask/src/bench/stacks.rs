//! What `record --stacks` takes from a program, and from the recorder.

use std::process::{Command, Stdio};

use super::programs::{Program, programs};
use super::{compile, undertick};
use crate::run::Scratch;
use crate::statistics::{median, median_interval};

/// Pairs of recordings with and without samples.
const PAIRS: usize = 15;
/// Programs that do the same work each time: a compressor, and two threads that hand work on.
const WANTED: [&str; 2] = ["zstd", "queue"];

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("stacks")?;
    let cpu_time = compile(&scratch, "cpu_time")?;
    println!(
        "\nCPU time of a program recorded with --stacks 1ms over that without, {PAIRS} pairs in turn \
         [95 %]; CPU time of the recorder beside it"
    );
    for program in programs(&scratch)? {
        if WANTED.contains(&program.name) {
            one(&program, &cpu_time, &scratch)?;
        }
    }
    Ok(())
}

fn one(program: &Program, cpu_time: &str, scratch: &Scratch) -> Result<(), String> {
    let mut ratios = Vec::new();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let mut found = [0.0; 2];
        for half in 0..2 {
            let is_sampled = (pair + half) % 2 == 1;
            let (program_s, recorder_s) = recorded(program, is_sampled, cpu_time, scratch)?;
            found[usize::from(is_sampled)] = program_s;
            match is_sampled {
                true => with.push(recorder_s),
                false => without.push(recorder_s),
            }
        }
        ratios.push(found[1] / found[0]);
    }
    let (lo, hi) = median_interval(&ratios);
    println!(
        "{}: {:.3} [{lo:.3}, {hi:.3}]; recorder {:.2} s, {:.2} s with samples",
        program.name,
        median(&ratios),
        median(&without),
        median(&with)
    );
    Ok(())
}

/// CPU time of the program and of the recorder without it, s.
fn recorded(
    program: &Program,
    is_sampled: bool,
    cpu_time: &str,
    scratch: &Scratch,
) -> Result<(f64, f64), String> {
    let (trace, of_program, of_all) = (
        scratch.path("stacks.ut"),
        scratch.path("program"),
        scratch.path("all"),
    );
    let _ = std::fs::remove_dir_all(&trace);
    let sampling: &[&str] = if is_sampled {
        &["--stacks", "1ms"]
    } else {
        &[]
    };
    let status = Command::new(cpu_time)
        .args([
            &of_all,
            &undertick(),
            "record",
            "--no-calibration",
            "-o",
            &trace,
        ])
        .args(sampling)
        .args(["--", cpu_time, &of_program])
        .args(&program.command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|e| format!("{cpu_time}: {e}"))?;
    if !status.success() {
        return Err(format!("{}: {status}", program.name));
    }
    let (of_program, of_all) = (
        super::programs::seconds(&of_program)?,
        super::programs::seconds(&of_all)?,
    );
    Ok((of_program, of_all - of_program))
}
