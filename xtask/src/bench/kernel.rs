//! The cost of analysing a trace against DuckDB and Polars, on one CPU and on all, and the growth
//! of time and memory with events and threads.

use std::fmt::Write as _;
use std::time::Instant;

use super::growth_drawn::{self, Point};
use super::{compile, record, undertick};
use crate::run::{Scratch, command, output, root, run};
use crate::statistics::{median, median_interval};

/// Threads, kinds of spans, depths and points as in the measurements behind the targets.
const THREADS: &str = "16";

/// Time in seconds and peak memory in MiB of a command, whose output is discarded.
fn timed(words: &[&str]) -> Result<(f64, f64), String> {
    // A separate shell reports what its child took: `wait4` of the shell.
    const PEAK: &str = "\"$@\" >/dev/null & p=$!; m=0; while kill -0 $p 2>/dev/null; do \
         r=$(sed -n 's/VmHWM:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$p/status 2>/dev/null); \
         [ -n \"$r\" ] && m=$r; sleep 0.05; done; wait $p && echo $m";
    let mut all = vec!["sh", "-c", PEAK, "sh"];
    all.extend(words);
    let start = Instant::now();
    let peak_kib = output(command(&all))?;
    let seconds = start.elapsed().as_secs_f64();
    let kib: f64 = (peak_kib.trim().parse()).map_err(|e| format!("{peak_kib:?}: {e}"))?;
    Ok((seconds, kib / 1024.0))
}

/// Time and memory of one way to analyse, over the rounds.
#[derive(Default)]
struct Way {
    name: &'static str,
    words: Vec<String>,
    seconds: Vec<f64>,
    peak_mib: f64,
}

/// The ways run in turn, so that changes of the machine affect all of them.
pub fn measure(events: u64, rounds: usize) -> Result<(), String> {
    let scratch = Scratch::new("kernel")?;
    let shape = compile(&scratch, "shape")?;
    let trace = scratch.path("s.ut");
    let plain = ["--no-calibration", "--kernel", "off", "--overflow", "block"];
    record(&trace, &plain, &[&shape, THREADS, &events.to_string()])?;
    // The same events as Parquet, which the other engines read.
    let parquet = scratch.path("parquet.ut");
    run(command(&["cp", "-r", &trace, &parquet]))?;
    let undertick = undertick();
    run(command(&[&undertick, "record", "--finish", &parquet]))?;
    let mut ways = vec![
        Way {
            name: "report, one CPU",
            words: ["taskset", "-c", "0", &undertick, "report", &trace]
                .map(String::from)
                .into(),
            ..Way::default()
        },
        Way {
            name: "report, all CPUs",
            words: [&undertick, "report", &trace].map(String::from).into(),
            ..Way::default()
        },
        Way {
            name: "Parquet, one CPU",
            words: ["taskset", "-c", "0", &undertick, "report", &parquet]
                .map(String::from)
                .into(),
            ..Way::default()
        },
    ];
    match crate::python::interpreter() {
        None => println!("skipped: no Python environment for DuckDB and Polars"),
        Some(python) => {
            for (name, script) in [
                ("DuckDB, all CPUs", "duckdb_pairs.py"),
                ("Polars, all CPUs", "polars_pairs.py"),
            ] {
                let script = root().join("benches/engines").join(script);
                let script = script.to_string_lossy().into_owned();
                ways.push(Way {
                    name,
                    words: vec![python.clone(), script, parquet.clone()],
                    ..Way::default()
                });
            }
        }
    }
    for _ in 0..rounds {
        for way in &mut ways {
            let words: Vec<&str> = way.words.iter().map(String::as_str).collect();
            let (seconds, peak_mib) = timed(&words)?;
            way.seconds.push(seconds);
            way.peak_mib = way.peak_mib.max(peak_mib);
        }
    }
    println!(
        "\n{events} events of {THREADS} threads, spans three deep of 24 kinds; {rounds} rounds in turn\n  \
         targets: 30 M events/s on one CPU, 1.7 times that on two, ahead of the others, under 1024 MiB"
    );
    let one = ways[0].seconds.clone();
    for way in &ways {
        let ratios: Vec<f64> = one.iter().zip(&way.seconds).map(|(a, b)| a / b).collect();
        let (lo, hi) = median_interval(&ratios);
        println!(
            "  {:<18} {:7.2} s, {:6.1} M events/s, {:.2} [{lo:.2}, {hi:.2}] times one CPU's rate, peak {:.0} MiB",
            way.name,
            median(&way.seconds),
            events as f64 / median(&way.seconds) / 1e6,
            median(&ratios),
            way.peak_mib
        );
    }
    Ok(())
}

/// Numbers of events and threads of the growth study.
const SIZES: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 500_000_000];
const MANY: [u64; 4] = [1, 16, 256, 2000];

/// Measures time and memory of a report as events and threads grow; also prints lines for a
/// drawing.
pub fn growth(most: u64) -> Result<(), String> {
    let scratch = Scratch::new("growth")?;
    let shape = compile(&scratch, "shape")?;
    println!("\n`undertick report`, all CPUs: events, threads, seconds, ns an event, peak MiB");
    let mut lines = String::new();
    let mut points = Vec::new();
    let cases = (SIZES.iter().map(|&events| (events, 16)))
        .chain(MANY.iter().map(|&threads| (10_000_000, threads)));
    for (events, threads) in cases.filter(|&(events, _)| events <= most) {
        let trace = scratch.path("g.ut");
        let ring = if threads > 64 { "256KiB" } else { "8MiB" };
        let options = [
            "--no-calibration",
            "--kernel",
            "off",
            "--overflow",
            "block",
            "--ring",
            ring,
        ];
        record(
            &trace,
            &options,
            &[&shape, &threads.to_string(), &events.to_string()],
        )?;
        let (mut seconds, mut peak) = (Vec::new(), 0.0_f64);
        for _ in 0..3 {
            let (took, mib) = timed(&[&undertick(), "report", &trace])?;
            seconds.push(took);
            peak = peak.max(mib);
        }
        let took = median(&seconds);
        points.push(Point {
            events,
            threads,
            seconds: took,
            peak_mib: peak,
        });
        let _ = writeln!(
            lines,
            "{events},{threads},{took:.3},{:.2},{peak:.0}",
            took * 1e9 / events as f64
        );
    }
    print!("{lines}");
    let drawing = root().join("target/growth.svg");
    std::fs::write(&drawing, growth_drawn::svg(&points)).map_err(|e| e.to_string())?;
    println!("drawn in {}", drawing.display());
    Ok(())
}
