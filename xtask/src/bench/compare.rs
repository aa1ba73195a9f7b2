//! Does `undertick compare` find a slow-down of 2 % of a span of 20 us within 10 s of measuring on
//! this machine, and how often does it call equal programs different?

use serde_json::Value;

use super::{compile, interval, record, report_json, undertick};
use crate::run::{Scratch, command, output};
use crate::statistics::median;

/// Target duration of the span, ns.
const WANTED_NS: f64 = 20_000.0;
/// Number of spans in a run: 20 ms, so that a run is short compared with drifts.
const SECTIONS: &str = "1000";
/// Number of steps in the run that measures the duration of a step.
const STEPS: u32 = 10_000;
const TIME: &str = "10s";

pub fn measure(repetitions: usize) -> Result<(), String> {
    let scratch = Scratch::new("compare")?;
    let program = compile(&scratch, "section")?;
    let steps = steps(&scratch, &program)?;
    let slower = (f64::from(steps) * 1.02).round() as u32;
    println!(
        "\ncompare --for {TIME} of a section of {WANTED_NS:.0} ns ({steps} steps), {repetitions} times each"
    );
    for (what, steps_of_b, target) in [
        ("2 % slower", slower, "called slower: >= 90 %"),
        (
            "the same program",
            steps,
            "called different: <= 5 %, in so few by chance 0..=4 of 20",
        ),
    ] {
        let mut found = Vec::new();
        for _ in 0..repetitions {
            found.push(once(&program, steps, steps_of_b)?);
        }
        print(what, target, &found);
    }
    Ok(())
}

/// The number of steps with the target duration.
fn steps(scratch: &Scratch, program: &str) -> Result<u32, String> {
    let trace = scratch.path("steps.ut");
    record(&trace, &[], &[program, &STEPS.to_string(), SECTIONS])?;
    let report = report_json(&trace, &[])?;
    let ns = interval(&report, "section")?["median"]["value"].as_f64();
    let ns = ns.ok_or("no median of the section")?;
    Ok((WANTED_NS / ns * f64::from(STEPS)).round() as u32)
}

/// The result of one comparison.
struct ComparisonResult {
    verdict: String,
    ratio: f64,
    lo: f64,
    hi: f64,
    rounds: f64,
}

fn once(program: &str, steps_of_a: u32, steps_of_b: u32) -> Result<ComparisonResult, String> {
    let words = |steps: u32| format!("{program} {steps} {SECTIONS}");
    let (a, b) = (words(steps_of_a), words(steps_of_b));
    let undertick = undertick();
    let options = ["compare", "--for", TIME, "--json", "--only", "section"];
    let mut words = vec![undertick.as_str()];
    words.extend(options);
    words.extend([a.as_str(), b.as_str()]);
    let found: Value =
        serde_json::from_str(&output(command(&words))?).map_err(|e| e.to_string())?;
    let row = &found["rows"][0];
    let number = |value: &Value| value.as_f64().ok_or(format!("no figure in {row}"));
    let ratio = &row["ratio"];
    Ok(ComparisonResult {
        verdict: row["verdict"].as_str().ok_or("no verdict")?.to_owned(),
        ratio: number(&ratio["value"])?,
        lo: number(&ratio["interval"][0])?,
        hi: number(&ratio["interval"][1])?,
        rounds: number(&found["a"]["runs"])?,
    })
}

fn print(what: &str, target: &str, found: &[ComparisonResult]) {
    let of = |value: fn(&ComparisonResult) -> f64| found.iter().map(value).collect::<Vec<f64>>();
    let called = |words: &[&str]| {
        let is_one = |f: &&ComparisonResult| words.contains(&f.verdict.as_str());
        found.iter().filter(is_one).count()
    };
    println!(
        "  {what}: called slower {}, faster {}, alike {} of {} (target: {target}); B/A {:.4}, half-width {:.4}, \
         rounds {:.0} (medians)",
        called(&["slower"]),
        called(&["faster"]),
        called(&["alike"]),
        found.len(),
        median(&of(|f| f.ratio)),
        median(&of(|f| (f.hi - f.lo) / 2.0)),
        median(&of(|f| f.rounds)),
    );
}
