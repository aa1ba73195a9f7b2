//! Compensated means against counted work.

use super::{compile, interval, manifest, record, report_json};
use crate::run::Scratch;

/// Events of benches/recorder/truth.c, and the number of pairs in each.
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
    // The ratio rule in addition to the flag, which interrupts do not set.
    let report = report_json(&trace, &["--cull", "ratio:2"])?;
    let chain = interval(&report, "event 1")?;
    let price = |of: &str| {
        let ns = chain[of]["value"].as_f64().ok_or("no price of the chain")?;
        Ok::<f64, String>(ns / CHAIN_PAIRS)
    };
    // By the mean: occasional interrupts hit every span in proportion to its length, and the chain
    // likewise. By the median: undisturbed.
    let (mean_price, median_price) = (price("mean")?, price("median")?);
    let cost = &manifest(&trace)?["calibration"]["ordered"]["dosed_ns"];
    println!(
        "\nordered sections of counted work; truth by a chain of the same instructions in the same run"
    );
    println!(
        "  a pair takes {mean_price:.4} ns (mean), {median_price:.4} ns (median); subtracted: {:.2} ns {}",
        cost["value"].as_f64().unwrap_or(f64::NAN),
        cost["interval"]
    );
    println!(
        "{:>8}{:>13}{:>13}{:>10}{:>12}{:>8}{:>20}{:>9}",
        "n",
        "truth ns",
        "mean ns",
        "off ns",
        "allowed ns",
        "within",
        "off undisturbed ns",
        "culled"
    );
    for (name, pairs) in SECTIONS {
        let section = interval(&report, name)?;
        let truth = pairs * mean_price;
        let mean = section["mean"]["value"].as_f64().ok_or("no mean")?;
        let allowed = 1.0 + 0.01 * truth;
        let off = mean - truth;
        println!(
            "{:>8}{truth:>13.2}{mean:>13.2}{off:>10.2}{allowed:>12.2}{:>8}{:>20.2}{:>8.3}%",
            section["mean"]["n"],
            if off.abs() <= allowed { "yes" } else { "NO" },
            mean - pairs * median_price,
            section["culled"]["share"].as_f64().unwrap_or(0.0) * 100.0
        );
    }
    Ok(())
}
