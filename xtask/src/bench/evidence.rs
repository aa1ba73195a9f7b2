//! Samples dropped by the kernel's evidence, against the rule that drops them by their length:
//! spans of 20 us with a hog on the same CPU, and a slow path in the program itself.

use serde_json::Value;

use super::{compile, interval, record, report_json};
use crate::run::Scratch;

const SPANS: u32 = 1_000_000;
/// Number of spans in a thousand that really take eight times as long.
const SLOW: u32 = 10;

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("evidence")?;
    let program = compile(&scratch, "preempted")?;
    println!("\n{SPANS} spans of 20 us on a CPU with a hog");
    for slow in [0, SLOW] {
        let trace = scratch.path(&format!("slow-{slow}.ut"));
        let count = scratch.path("slow.txt");
        let (spans, per_mille) = (SPANS.to_string(), slow.to_string());
        let command = [program.as_str(), &spans, "1", &per_mille, &count];
        record(&trace, &["--no-calibration", "--kernel", "on"], &command)?;
        let truly_slow: u64 = (std::fs::read_to_string(&count).map_err(|e| e.to_string())?)
            .parse()
            .map_err(|e| format!("{count}: {e}"))?;
        once(&trace, truly_slow)?;
    }
    Ok(())
}

fn once(trace: &str, truly_slow: u64) -> Result<(), String> {
    let number = |value: &Value| value.as_f64().ok_or("a figure is missing");
    let by_evidence = report_json(trace, &["--cull", "kernel"])?;
    let by_ratio = report_json(trace, &["--cull", "ratio:4"])?;
    let kernel = interval(&by_evidence, "event 1")?;
    let ratio = interval(&by_ratio, "event 1")?;
    let over = number(&ratio["culled"]["by"]["ratio"]).unwrap_or(0.0);
    let slow = &kernel["unexplained"];
    let (unexplained, share) = (number(&slow["count"])?, &slow["share"]);
    let without = number(&slow["without_evidence"])?;
    let mean = |of: &Value| -> Result<String, String> {
        let figure = |v: &Value| v.as_f64().ok_or("a figure is missing");
        let (mean, bounds) = (figure(&of["mean"]["value"])?, &of["mean"]["interval"]);
        let (lo, hi) = (figure(&bounds[0])?, figure(&bounds[1])?);
        Ok(format!("{:.1} [{:.1}, {:.1}] ns", mean, lo, hi))
    };
    println!("  {truly_slow} of them eight times as long:");
    // Truly slow samples without a disturbance have no evidence, and need none.
    println!(
        "    over four times the least: {over}; with evidence {} = {:.2} %{}",
        over - without,
        100.0 * (over - without) / over.max(1.0),
        if truly_slow == 0 {
            " (target: 95 %)"
        } else {
            ""
        }
    );
    println!(
        "    slow without what hit them: {unexplained} = {:.4} % [{:.4}, {:.4}] of {SPANS}; truth {:.4} %",
        100.0 * number(&share["value"])?,
        100.0 * number(&share["interval"][0])?,
        100.0 * number(&share["interval"][1])?,
        100.0 * truly_slow as f64 / f64::from(SPANS)
    );
    for what in kernel["evidence"].as_array().ok_or("no evidence")? {
        println!(
            "    {}: {} spans, {:.3} s, {}",
            what["cause"].as_str().unwrap_or("?"),
            what["count"],
            number(&what["time_ns"])? / 1e9,
            if what["culled"] == true {
                "left out"
            } else {
                "kept"
            }
        );
    }
    println!(
        "    mean by evidence: {}, {} left out",
        mean(kernel)?,
        kernel["culled"]["count"]
    );
    println!(
        "    mean by ratio:4:  {}, {} left out",
        mean(ratio)?,
        ratio["culled"]["count"]
    );
    println!(
        "    mean of all:      {} ns",
        kernel["before_culling"]["mean"]["value"]
    );
    Ok(())
}
