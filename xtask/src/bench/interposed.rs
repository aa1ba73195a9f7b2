//! What `record --with locks,malloc` costs, and whether it counts what another tool counts.

use std::process::Command;

use super::{compile, output, record};
use crate::run::{Scratch, command, exists};
use crate::statistics::{median, median_interval};

const PAIRS: usize = 15;
/// What the program measures.
const OPERATIONS: [&str; 4] = [
    "malloc and free, one pair in a span",
    "malloc and free, 10 pairs in a span",
    "malloc and free, 1000 pairs in a span",
    "lock and unlock of a free mutex",
];
const QUERY: &str = "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where \
    i < 200000) insert into t select i, hex(i) from n; create index i on t(b); select count(*), sum(length(b)) \
    from t;";

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("interposed")?;
    price(&scratch)?;
    beside_heaptrack(&scratch)
}

/// Nanoseconds of each operation, in a program that was recorded like this.
fn operations(program: &str, options: &[&str], scratch: &Scratch) -> Result<Vec<f64>, String> {
    let quiet = ["--no-calibration", "--kernel", "off"];
    let trace = scratch.path("interposed.ut");
    let printed = record(&trace, &[&quiet, options].concat(), &[program])?;
    let figures = printed.split_whitespace().map(|word| {
        word.parse()
            .map_err(|_| format!("{program} printed {printed:?}"))
    });
    figures.collect()
}

fn price(scratch: &Scratch) -> Result<(), String> {
    let program = compile(scratch, "interposed")?;
    let mut differences: Vec<Vec<f64>> = vec![Vec::new(); OPERATIONS.len()];
    let mut without: Vec<Vec<f64>> = vec![Vec::new(); OPERATIONS.len()];
    for pair in 0..PAIRS {
        let (mut alone, mut with) = (Vec::new(), Vec::new());
        for half in 0..2 {
            match (pair + half) % 2 {
                0 => alone = operations(&program, &[], scratch)?,
                _ => with = operations(&program, &["--with", "locks,malloc"], scratch)?,
            }
        }
        for (at, (alone, with)) in alone.iter().zip(&with).enumerate() {
            differences[at].push(with - alone);
            without[at].push(*alone);
        }
    }
    println!("\nWhat record --with locks,malloc adds, ns, {PAIRS} pairs in turn [95 %]");
    for (at, what) in OPERATIONS.iter().enumerate() {
        let (lo, hi) = median_interval(&differences[at]);
        println!(
            "{what}: {:.2} [{lo:.2}, {hi:.2}] on top of {:.2}",
            median(&differences[at]),
            median(&without[at])
        );
    }
    Ok(())
}

/// CPU time of a program, s, that these words start.
fn cpu_s(words: &[&str], program: &[&str], of: &str, cpu_time: &str) -> Result<f64, String> {
    output(command(&[words, &[cpu_time, of], program].concat()))?;
    super::programs::seconds(of)
}

fn beside_heaptrack(scratch: &Scratch) -> Result<(), String> {
    if !exists(&["heaptrack", "--version"]) || !exists(&["sqlite3", "--version"]) {
        println!("skipped: heaptrack or sqlite3 is not here (Debian has both under these names)");
        return Ok(());
    }
    let cpu_time = compile(scratch, "cpu_time")?;
    let [trace, data, of] = ["sqlite.ut", "heaptrack", "seconds"].map(|name| scratch.path(name));
    let program = ["sqlite3", ":memory:", QUERY];
    let undertick = super::undertick();
    let recorder = [
        &undertick,
        "record",
        "--no-calibration",
        "--kernel",
        "off",
        "-o",
        &trace,
    ];
    let (mut alone, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        for half in 0..2 {
            let _ = std::fs::remove_dir_all(&trace);
            match (pair + half) % 2 {
                0 => {
                    let words = [&recorder[..], &["--"]].concat();
                    alone.push(cpu_s(&words, &program, &of, &cpu_time)?);
                }
                _ => {
                    let words = [&recorder[..], &["--with", "malloc", "--"]].concat();
                    ours.push(cpu_s(&words, &program, &of, &cpu_time)?);
                }
            }
        }
        // Its own preloaded library counts the program alone.
        let tracker = [&["heaptrack", "-o", &data], &program[..]].concat();
        theirs.push(cpu_s(&[], &tracker, &of, &cpu_time)?);
    }
    let _ = std::fs::remove_dir_all(&trace);
    output(command(
        &[&recorder[..], &["--with", "malloc", "--"], &program].concat(),
    ))?;
    let words = [undertick.as_str(), "allocations", &trace, "--json"];
    let document: serde_json::Value = serde_json::from_str(&output(command(&words))?)
        .map_err(|e| format!("undertick allocations: {e}"))?;
    let counted = &document["allocations"]["calls"];
    let files = std::fs::read_dir(scratch.path("")).map_err(|e| e.to_string())?;
    let file = (files.filter_map(Result::ok))
        .map(|file| file.path())
        .find(|path| path.to_string_lossy().contains("/heaptrack."))
        .ok_or("heaptrack left no file")?;
    let printed = Command::new("heaptrack_print").arg(&file).output();
    let printed = printed.map_err(|e| format!("heaptrack_print: {e}"))?;
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let theirs_counted = (printed.lines())
        .find_map(|line| line.strip_prefix("calls to allocation functions: "))
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap_or("?");
    let ratios: Vec<f64> = ours
        .iter()
        .zip(&alone)
        .map(|(ours, alone)| ours / alone)
        .collect();
    let (lo, hi) = median_interval(&ratios);
    let calls = counted.as_f64().ok_or("no count of allocations")?;
    println!(
        "sqlite3: {counted} allocations, by heaptrack {theirs_counted} (its library makes one itself, the pool of \
         libstdc++). CPU time of the program {:.3} s, with --with malloc {:.3} of it [{lo:.3}, {hi:.3}], which is \
         {:.1} ns an allocation and its free; with heaptrack {:.3} s",
        median(&alone),
        median(&ratios),
        (median(&ours) - median(&alone)) / calls * 1e9,
        median(&theirs)
    );
    Ok(())
}
