//! The cost of a sampled span as a ratio to a full one, block by block in one run; and the cost of
//! the header's other calls against an earlier header.

use std::hint::black_box;
use std::time::Instant;

use super::recorder::blocks;
use super::{compile, record};
use crate::run::{Scratch, command, output, root};
use crate::statistics::{median, median_interval};

const ROUNDS: &str = "200";
const SPANS: &str = "50000";
/// Number of runs of each header, in alternation.
const PAIRS: usize = 40;

/// Measures all of it; `before` is a commit whose header the other calls are compared with.
pub fn measure(before: Option<&str>) -> Result<(), String> {
    let scratch = Scratch::new("sampled")?;
    let c = compile(&scratch, "sampled")?;
    // Not current_exe: the build above may have replaced it.
    let rust = root()
        .join("target/release/xtask")
        .to_string_lossy()
        .into_owned();
    let trace = scratch.path("s.ut");
    println!(
        "\nprice of a sampled span at 1 in 16, ratio to a full one; median over blocks of {SPANS} [95 %]"
    );
    println!(
        "{:<6}{:<26}{:>8}{:>26}{:>9}",
        "", "what", "ns", "ratio", "target"
    );
    for (language, program) in [
        ("C", vec![c.as_str()]),
        ("Rust", vec![rust.as_str(), "__rust-sampled"]),
    ] {
        let mut words = program;
        words.extend([ROUNDS, SPANS]);
        let options = ["--no-calibration", "--kernel", "off"];
        print(language, &record(&trace, &options, &words)?);
        let without = blocks(&output(command(&words))?);
        let cost = |what: &str| median(&without[what]) - median(&without["empty"]);
        println!(
            "{language:<6}{:<26}{:>8.2}{:>26}{:>9}",
            "no session, each call",
            cost("sampled") / 2.0,
            "",
            "<= 1 ns"
        );
    }
    match before {
        Some(commit) => unchanged(&scratch, commit),
        None => Ok(()),
    }
}

/// Prints the figures less the cost of an empty loop.
fn print(language: &str, text: &str) {
    let blocks = blocks(text);
    let net = |what: &str| -> Vec<f64> {
        let pairs = blocks[what].iter().zip(&blocks["empty"]);
        pairs.map(|(block, empty)| block - empty).collect()
    };
    let full = net("full");
    for (what, shown, target) in [
        ("full", "full", ""),
        ("sampled", "sampled, 1 in 16", "0.10"),
        ("skipped", "sampled, 1 in 65535", ""),
        ("every", "sampled, each recorded", ""),
    ] {
        let own = net(what);
        let ratios: Vec<f64> = own.iter().zip(&full).map(|(a, b)| a / b).collect();
        let (lo, hi) = median_interval(&ratios);
        let ratio = format!("{:.4} [{lo:.4}, {hi:.4}]", median(&ratios));
        println!(
            "{language:<6}{shown:<26}{:>8.2}{ratio:>26}{target:>9}",
            median(&own)
        );
    }
}

/// Runs the blocks of `bench recorder` with this header and with an earlier one, in turn.
fn unchanged(scratch: &Scratch, commit: &str) -> Result<(), String> {
    let header = output(command(&[
        "git",
        "show",
        &format!("{commit}:include/undertick.h"),
    ]))?;
    let dir = scratch.path("before");
    std::fs::create_dir_all(&dir).map_err(|e| format!("{dir}: {e}"))?;
    std::fs::write(format!("{dir}/undertick.h"), header).map_err(|e| format!("{dir}: {e}"))?;
    let now = compile(scratch, "recorder")?;
    let old = scratch.path("recorder-before");
    let source = "benches/recorder/recorder.c";
    output(command(&[
        "cc", "-O2", "-I", &dir, "-pthread", source, "-o", &old,
    ]))?;
    let trace = scratch.path("u.ut");
    let mut ratios = std::collections::BTreeMap::<&str, Vec<f64>>::new();
    for _ in 0..PAIRS {
        let run = |program: &str| {
            let words = [program, "1", "100", SPANS];
            let options = ["--no-calibration", "--kernel", "off"];
            record(&trace, &options, &words).map(|text| blocks(&text))
        };
        let (before, after) = (run(&old)?, run(&now)?);
        for what in ["event", "begin_end", "next"] {
            // Each cost is divided by the floor of its run, which drifts with the machine.
            let cost = |run: &std::collections::BTreeMap<String, Vec<f64>>| {
                median(&run[what]) / median(&run["floor"])
            };
            ratios
                .entry(what)
                .or_default()
                .push(cost(&after) / cost(&before));
        }
    }
    println!(
        "\nthe other calls, ratio to those of {commit}'s header; median over {PAIRS} pairs of runs"
    );
    for (what, ratios) in ratios {
        let (lo, hi) = median_interval(&ratios);
        let ratio = format!("{:.4} [{lo:.4}, {hi:.4}]", median(&ratios));
        println!("{:<6}{what:<26}{:>8}{ratio:>26}{:>9}", "C", "", "<= 1.02");
    }
    Ok(())
}

/// Runs the blocks of benches/recorder/sampled.c through the Rust crate.
pub fn rust_program(rounds: &str, n: &str) -> Result<(), String> {
    let number = |text: &str| text.parse::<u32>().map_err(|e| e.to_string());
    let (rounds, n) = (number(rounds)?, number(n)?);
    undertick::sample_rate(10, 65_535);
    undertick::sample_rate(11, 1);
    full(n);
    for _ in 0..rounds {
        for (what, block) in [
            ("full", full as fn(u32)),
            ("sampled", sampled::<9>),
            ("skipped", sampled::<10>),
            ("every", sampled::<11>),
            ("empty", empty),
        ] {
            let start = Instant::now();
            block(n);
            let ns = start.elapsed().as_nanos() as f64 / f64::from(n);
            println!("{what} 0 {ns:.4} {n}");
        }
    }
    Ok(())
}

#[inline(never)]
fn full(n: u32) {
    for _ in 0..n {
        undertick::begin(8);
        undertick::end(8);
    }
}

#[inline(never)]
fn sampled<const EVENT: u16>(n: u32) {
    for _ in 0..n {
        undertick::begin_sampled(EVENT);
        undertick::end_sampled(EVENT);
    }
}

#[inline(never)]
fn empty(n: u32) {
    (0..n).for_each(|i| {
        black_box(i);
    });
}
