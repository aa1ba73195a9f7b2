//! Spans of 5, 20, 50 and 200 ns inside a running program, all at once, on a clock that moves 10 ns
//! at a time. Is each figure right, and does its confidence interval hold the truth as often as it
//! states?

use std::process::{Child, Stdio};

use super::{compile_with, interval, record, report_json};
use crate::run::{Scratch, command};
use crate::statistics::{median, quantile};

/// Events of benches/recorder/in_place.c, and the target duration of each, ns.
const SECTIONS: [(&str, f64); 4] = [
    ("event 10", 5.0),
    ("event 11", 20.0),
    ("event 12", 50.0),
    ("event 13", 200.0),
];
const CHAIN_PAIRS: f64 = 10_000.0;
/// Iterations of the loop in one repetition: about 0.1 s.
const TURNS: &str = "50000";

/// The load beside the program on CPU 0, and the allowed error: ns, share.
const SCENES: [(&str, Option<[&str; 2]>, f64, f64); 3] = [
    ("quiet", None, 0.5, 0.02),
    (
        "memory-hungry neighbour on the other CPU",
        Some(["memory", "1"]),
        1.0,
        0.03,
    ),
    ("CPU hog on the same CPU", Some(["spin", "0"]), 1.0, 0.03),
];

pub fn measure(repetitions: usize) -> Result<(), String> {
    let scratch = Scratch::new("in-place")?;
    let pairs = pairs(&scratch)?;
    let program = compile_with(&scratch, "in_place", &defines(pairs))?;
    let neighbour = compile_with(&scratch, "neighbour", &[])?;
    println!(
        "\nordered sections of {pairs:?} pairs of instructions at once; truth by the chain in the same recording"
    );
    for (scene, beside, ns, share) in SCENES {
        let _beside = beside
            .map(|arguments| start(&neighbour, &arguments))
            .transpose()?;
        let mut found = vec![Vec::new(); SECTIONS.len()];
        for _ in 0..repetitions {
            let trace = scratch.path("t.ut");
            record(&trace, &[], &[&program, TURNS])?;
            once(&trace, &pairs, &mut found)?;
        }
        println!("{scene}, {repetitions} recordings:");
        for ((name, _), repetitions) in SECTIONS.iter().zip(&found) {
            print(name, repetitions, ns, share);
        }
    }
    Ok(())
}

/// One repetition of one span.
#[derive(Clone, Copy)]
struct Repetition {
    truth: f64,
    mean: f64,
    lo: f64,
    hi: f64,
}

/// Compiler options that define the number of instruction pairs in each span.
fn defines(pairs: [u32; SECTIONS.len()]) -> Vec<String> {
    (["A", "B", "C", "D"].iter().zip(pairs))
        .map(|(name, pairs)| format!("-D{name}={pairs}"))
        .collect()
}

/// The number of pairs with the target duration, from a first recording.
fn pairs(scratch: &Scratch) -> Result<[u32; SECTIONS.len()], String> {
    let program = compile_with(scratch, "in_place", &defines([5, 20, 50, 200]))?;
    let trace = scratch.path("price.ut");
    record(&trace, &["--no-calibration"], &[&program, TURNS])?;
    let report = report_json(&trace, &["--cull", "ratio:4"])?;
    let chain = &interval(&report, "event 1")?["median"]["value"];
    let price = chain.as_f64().ok_or("no price of the chain")? / CHAIN_PAIRS;
    Ok(SECTIONS.map(|(_, ns)| (ns / price).round() as u32))
}

fn once(
    trace: &str,
    pairs: &[u32; SECTIONS.len()],
    found: &mut [Vec<Repetition>],
) -> Result<(), String> {
    // The ratio rule in addition to the flag, which interrupts do not set.
    let report = report_json(trace, &["--cull", "ratio:4"])?;
    // The mean, as of the spans: the core's speed changes within a recording. Interrupts hit a chain
    // of 15 us more often, and take 4 us or more.
    let chains = report_json(trace, &["--cull", "ratio:1.25"])?;
    let chain = interval(&chains, "event 1")?["mean"]["value"]
        .as_f64()
        .ok_or("no price of the chain")?;
    for (((name, _), &pairs), found) in SECTIONS.iter().zip(pairs).zip(found) {
        // The truth is this recording's, so the interval is, too.
        let mean = &interval(&report, name)?["of_this_run"]["mean"];
        let bound = |at: usize| mean["interval"][at].as_f64().unwrap_or(f64::NAN);
        found.push(Repetition {
            truth: f64::from(pairs) * chain / CHAIN_PAIRS,
            mean: mean["value"].as_f64().ok_or("no mean")?,
            lo: bound(0),
            hi: bound(1),
        });
    }
    Ok(())
}

fn print(name: &str, found: &[Repetition], ns: f64, share: f64) {
    let of = |f: fn(&Repetition) -> f64| found.iter().map(f).collect::<Vec<f64>>();
    let off = of(|f| f.mean - f.truth);
    let within = (found.iter())
        .filter(|f| (f.mean - f.truth).abs() <= ns.max(share * f.truth))
        .count();
    let covered = (found.iter())
        .filter(|f| f.lo <= f.truth && f.truth <= f.hi)
        .count();
    let refused = found.iter().filter(|f| (f.hi - f.lo).is_nan()).count();
    println!(
        "  {name}: truth {:.2} ns; off {:+.2} ns (median; 5 % {:+.2}, 95 % {:+.2}); within max({ns} ns, {:.0} %): {within} of {n}; \
         95 % interval holds the truth: {covered} of {n}, {refused} refused (target {:.0}), half-width {:.2} ns (median)",
        median(&of(|f| f.truth)),
        median(&off),
        quantile(&off, 0.05),
        quantile(&off, 0.95),
        share * 100.0,
        0.9 * found.len() as f64,
        median(&of(|f| (f.hi - f.lo) / 2.0)),
        n = found.len(),
    );
}

/// A process that ends when this is dropped.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(neighbour: &str, arguments: &[&str]) -> Result<Beside, String> {
    let mut words = vec![neighbour];
    words.extend(arguments);
    let child = command(&words)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| format!("{neighbour}: {e}"))?;
    Ok(Beside(child))
}
