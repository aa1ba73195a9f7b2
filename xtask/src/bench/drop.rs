//! The cost for a program whose ring is full, against the same program whose ring never is.

use super::{compile, manifest, record};
use crate::run::Scratch;
use crate::statistics::{median, median_interval};

const BLOCKS: &str = "60";
const EVENTS: &str = "50000";

/// Steps of work before each event: none, and as many as in spans of typical programs.
const WORK: [&str; 3] = ["0", "100", "1000"];

/// Options for a ring that never fills: it may grow to far more than is written before the
/// collector drains it. A ring of two segments with a stopped collector is nearly always full.
const NEVER_FULL: [&str; 3] = ["--no-calibration", "--overflow", "grow"];
const FULL: [&str; 5] = ["--no-calibration", "--overflow", "drop", "--ring", "256KiB"];

pub fn measure(pairs: usize) -> Result<(), String> {
    let scratch = Scratch::new("drop")?;
    let program = compile(&scratch, "drop")?;
    let trace = scratch.path("d.ut");
    println!(
        "\na full ring in drop mode beside one that never fills; median of {pairs} pairs in turn [95 %]"
    );
    for steps in WORK {
        let of_run = |options: &[&str], full: &[&str]| -> Result<(f64, f64), String> {
            let words = [&[&program, BLOCKS, EVENTS, steps][..], full].concat();
            let said = record(&trace, options, &words)?;
            let blocks: Vec<f64> = said.lines().filter_map(|line| line.parse().ok()).collect();
            let manifest = manifest(&trace)?;
            let number = |name: &str| manifest[name].as_u64().unwrap_or(0) as f64;
            let lost = number("lost") / (number("lost") + number("events"));
            Ok((median(&blocks), lost))
        };
        let (mut ratios, mut ns, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..pairs {
            // The order alternates, so that a machine that slows down favours neither.
            let (full, never) = if pair % 2 == 0 {
                let full = of_run(&FULL, &["full"])?;
                (full, of_run(&NEVER_FULL, &[])?)
            } else {
                let never = of_run(&NEVER_FULL, &[])?;
                (of_run(&FULL, &["full"])?, never)
            };
            if never.1 > 0.0 {
                return Err(
                    "the ring that was never to fill lost events: the machine is too busy"
                        .to_owned(),
                );
            }
            ratios.push(full.0 / never.0);
            ns.push(never.0);
            lost.push(full.1);
        }
        let (low, high) = median_interval(&ratios);
        println!(
            "  {steps:>4} steps of work, {:>7.1} ns/event: {:.4} [{low:.4}, {high:.4}], {:.0} % of the events dropped (target: at most 1.02)",
            median(&ns),
            median(&ratios),
            100.0 * median(&lost)
        );
    }
    Ok(())
}
