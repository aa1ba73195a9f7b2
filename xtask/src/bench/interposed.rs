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

/// CPU time of a command, s, and what it printed.
fn timed(words: &[&str], of: &str, cpu_time: &str) -> Result<(f64, String), String> {
    let printed = output(command(&[&[cpu_time, of], words].concat()))?;
    Ok((super::programs::seconds(of)?, printed))
}

fn beside_heaptrack(scratch: &Scratch) -> Result<(), String> {
    if !exists(&["heaptrack", "--version"]) || !exists(&["sqlite3", "--version"]) {
        println!("skipped: heaptrack or sqlite3 is not here (Debian has both under these names)");
        return Ok(());
    }
    let cpu_time = compile(scratch, "cpu_time")?;
    let (trace, data, of) = (
        scratch.path("sqlite.ut"),
        scratch.path("heaptrack"),
        scratch.path("seconds"),
    );
    let program = ["sqlite3", ":memory:", QUERY];
    let undertick = super::undertick();
    let quiet = ["--no-calibration", "--kernel", "off", "--with", "malloc"];
    let (mut alone, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        alone.push(timed(&program, &of, &cpu_time)?.0);
        let _ = std::fs::remove_dir_all(&trace);
        let recorder = [&[undertick.as_str(), "record", "-o", &trace], &quiet[..]].concat();
        ours.push(timed(&[&recorder[..], &["--"], &program].concat(), &of, &cpu_time)?.0);
        let tracker = ["heaptrack", "-o", &data];
        theirs.push(timed(&[&tracker[..], &program].concat(), &of, &cpu_time)?.0);
    }
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
    println!(
        "sqlite3: {counted} allocations, by heaptrack {theirs_counted} (its library makes one itself, the pool of \
         libstdc++); CPU time {:.3} s, recorder and program with --with malloc {:.3} s, with heaptrack {:.3} s",
        median(&alone),
        median(&ours),
        median(&theirs)
    );
    Ok(())
}
