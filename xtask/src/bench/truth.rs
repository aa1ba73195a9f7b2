//! Compensated means against counted work.

use super::{compile, interval, manifest, record, report_json};
use crate::run::Scratch;

/// Events of benches/recorder/truth.c and the pairs in each.
const SECTIONS: [(&str, f64); 7] = [
    ("event 10", 15.0),
    ("event 11", 35.0),
    ("event 12", 150.0),
    ("event 13", 700.0),
    ("event 14", 35.0 * 200.0),
    ("event 15", 350.0 * 200.0),
    ("event 16", 3500.0 * 200.0),
];
const CHAIN_PAIRS: f64 = 20_000.0;

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("truth")?;
    let program = compile(&scratch, "truth")?;
    let trace = scratch.path("t.ut");
    record(&trace, &[], &[&program, "300000"])?;
    // The ratio rule besides the flag: interrupts do not set it.
    let report = report_json(&trace, &["--cull", "ratio:2"])?;
    let chain = interval(&report, "event 1")?;
    let price = chain["median"]["value"]
        .as_f64()
        .ok_or("no median of the chain")?
        / CHAIN_PAIRS;
    let cost = &manifest(&trace)?["calibration"]["ordered"];
    println!(
        "\nordered sections of counted work; truth by a chain of the same instructions in the same run"
    );
    println!(
        "  a pair takes {price:.4} ns; subtracted: {:.2} ns {}",
        cost["dosed_ns"]["value"], cost["dosed_ns"]["interval"]
    );
    println!(
        "{:>10}{:>12}{:>12}{:>10}{:>12}{:>9}{:>10}",
        "n", "truth ns", "mean ns", "off ns", "allowed ns", "within", "culled"
    );
    for (name, pairs) in SECTIONS {
        let section = interval(&report, name)?;
        let truth = pairs * price;
        let mean = section["mean"]["value"].as_f64().ok_or("no mean")?;
        let allowed = 1.0 + 0.01 * truth;
        let off = mean - truth;
        println!(
            "{:>10}{truth:>12.2}{mean:>12.2}{off:>10.2}{allowed:>12.2}{:>9}{:>9.3}%",
            section["mean"]["n"],
            if off.abs() <= allowed { "yes" } else { "NO" },
            section["culled"]["share"].as_f64().unwrap_or(0.0) * 100.0
        );
    }
    Ok(())
}
