//! The cost of an event as a ratio to one clock reading and one 16-byte store into a mapped ring,
//! block by block in one run.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{compile, record};
use crate::run::{Scratch, command, output, root};
use crate::statistics::{median, median_interval};

const ROUNDS: &str = "200";
const EVENTS: &str = "50000";

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("recorder")?;
    let c = compile(&scratch, "recorder")?;
    // Not current_exe: the build above may have replaced it.
    let rust = root()
        .join("target/release/xtask")
        .to_string_lossy()
        .into_owned();
    let trace = scratch.path("r.ut");
    println!(
        "\nprice of recording, ratio to clock reading + 16-byte store; median over blocks of {EVENTS} [95 %]"
    );
    println!(
        "{:<6}{:>8}  {:<16}{:<10}{:>10}{:>22}{:>9}",
        "", "threads", "rings read", "what", "ns", "ratio", "target"
    );
    for (language, program) in [
        ("C", vec![c.as_str()]),
        ("Rust", vec![rust.as_str(), "__rust-recorder"]),
    ] {
        // The targets are for rings that are read at the end: a collector takes its share of the
        // CPUs, and at this rate (50 million records a second of each thread) it shows wherever
        // the scheduler puts it beside a thread. Its own price is the rows without a target.
        let at_the_end = ["--no-calibration", "--overflow", "overwrite"].as_slice();
        let while_it_runs = ["--no-calibration"].as_slice();
        for (threads, read, options, event, span) in [
            ("1", "at the end", at_the_end, "1.05", "1.08"),
            ("1", "while it runs", while_it_runs, "-", "-"),
            ("2", "at the end", at_the_end, "1.10", "1.08"),
            ("2", "while it runs", while_it_runs, "-", "-"),
        ] {
            let mut words = program.clone();
            words.extend([threads, ROUNDS, EVENTS]);
            let text = record(&trace, options, &words)?;
            print(
                (language, threads, read),
                &text,
                &[
                    ("event", "floor", event),
                    ("begin_end", "floor2", span),
                    ("next", "waiting", span),
                ],
            );
        }
        let mut words = program.clone();
        words.extend(["1", ROUNDS, EVENTS]);
        let text = output(command(&words))?;
        let blocks = blocks(&text);
        let cost = |what: &str| median(&blocks[what]) - median(&blocks["empty"]);
        println!(
            "{language:<6}{:>8}  {:<16}{:<10}{:>10.2}{:>22}{:>9}",
            1,
            "no session",
            "event",
            cost("event"),
            "",
            "<= 1 ns"
        );
    }
    Ok(())
}

/// Nanoseconds per unit of each block, by operation, in the order of rounds.
pub(super) fn blocks(text: &str) -> BTreeMap<String, Vec<f64>> {
    let mut blocks = BTreeMap::<String, Vec<f64>>::new();
    let mut lines: Vec<(&str, &str, f64)> = text
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            Some((*words.first()?, *words.get(1)?, words.get(2)?.parse().ok()?))
        })
        .collect();
    lines.sort_by_key(|line| line.1.to_owned()); // by thread; stable, so rounds stay in order
    for (what, _, ns) in lines {
        blocks.entry(what.to_owned()).or_default().push(ns);
    }
    blocks
}

fn print((language, threads, read): (&str, &str, &str), text: &str, wanted: &[(&str, &str, &str)]) {
    let blocks = blocks(text);
    for &(what, floor, target) in wanted {
        // Each block is divided by the floor of the same round, because drifts affect both.
        let ratios: Vec<f64> = blocks[what]
            .iter()
            .zip(&blocks[floor])
            .map(|(a, b)| a / b)
            .collect();
        let (lo, hi) = median_interval(&ratios);
        let ratio = format!("{:.3} [{lo:.3}, {hi:.3}]", median(&ratios));
        println!(
            "{language:<6}{threads:>8}  {read:<16}{what:<10}{:>10.2}{ratio:>22}{target:>9}",
            median(&blocks[what])
        );
    }
}

const FLOOR_SLOTS: usize = 65_536;

/// Runs the blocks of benches/recorder/recorder.c through the Rust crate.
pub fn rust_program(threads: &str, rounds: &str, n: &str) -> Result<(), String> {
    let number = |text: &str| text.parse::<u32>().map_err(|e| e.to_string());
    let (threads, rounds, n) = (number(threads)?, number(rounds)?, number(n)?);
    let barrier = Barrier::new(threads as usize);
    let lines = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let barrier = &barrier;
                    move || blocks_of_thread(thread, rounds, n, barrier)
                })
            })
            .collect();
        handles
            .into_iter()
            .filter_map(|handle| handle.join().ok())
            .collect::<Vec<String>>()
    });
    print!("{}", lines.concat());
    Ok(())
}

fn blocks_of_thread(thread: u32, rounds: u32, n: u32, barrier: &Barrier) -> String {
    let ring: Vec<AtomicU64> = (0..2 * FLOOR_SLOTS).map(|_| AtomicU64::new(1)).collect();
    let ring = ring.as_slice();
    let mut lines = String::new();
    event(ring, n);
    for _ in 0..rounds {
        barrier.wait();
        for (what, block) in [
            ("floor", floor as fn(&[AtomicU64], u32)),
            ("event", event),
            ("waiting", floor_waiting),
            ("floor2", floor_2),
            ("begin_end", begin_end),
            ("next", next),
            ("empty", empty),
        ] {
            let start = Instant::now();
            block(ring, n);
            let ns = start.elapsed().as_nanos() as f64 / f64::from(n);
            lines.push_str(&format!("{what} {thread} {ns:.4} {n}\n"));
        }
    }
    lines
}

#[inline(always)]
fn floor_store(ring: &[AtomicU64], i: u32, (ts, cpu): (u64, u32)) {
    let slot = 2 * (i as usize & (FLOOR_SLOTS - 1));
    ring[slot].store(ts, Ordering::Relaxed);
    let tail = u64::from(i) | 7 << 32 | u64::from(cpu) << 48;
    ring[slot + 1].store(tail, Ordering::Relaxed);
}

/// Reads the clock without waiting.
#[inline(always)]
fn plain() -> (u64, u32) {
    // SAFETY: RDTSC has no preconditions.
    #[cfg(target_arch = "x86_64")]
    let ts = unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    let ts = Instant::now().elapsed().as_nanos() as u64;
    (ts, 0)
}

/// Reads the clock after earlier instructions have been executed, with the CPU's number.
#[inline(always)]
fn waiting() -> (u64, u32) {
    #[cfg(target_arch = "x86_64")]
    {
        let mut cpu = 0;
        // SAFETY: RDTSCP is there on every x86-64 CPU with an invariant TSC.
        let ts = unsafe { core::arch::x86_64::__rdtscp(&raw mut cpu) };
        (ts, cpu)
    }
    #[cfg(not(target_arch = "x86_64"))]
    plain()
}

#[inline(never)]
fn floor(ring: &[AtomicU64], n: u32) {
    (0..n).for_each(|i| floor_store(ring, i, plain()));
}

#[inline(never)]
fn floor_waiting(ring: &[AtomicU64], n: u32) {
    (0..n).for_each(|i| floor_store(ring, i, waiting()));
}

#[inline(never)]
fn floor_2(ring: &[AtomicU64], n: u32) {
    for i in 0..n {
        floor_store(ring, 2 * i, waiting());
        floor_store(ring, 2 * i + 1, waiting());
    }
}

#[inline(never)]
fn event(_: &[AtomicU64], n: u32) {
    (0..n).for_each(|i| undertick::event!(7, i));
}

#[inline(never)]
fn begin_end(_: &[AtomicU64], n: u32) {
    for _ in 0..n {
        undertick::begin(8);
        undertick::end(8);
    }
}

#[inline(never)]
fn next(_: &[AtomicU64], n: u32) {
    (0..n).for_each(|_| undertick::next(9, 10));
}

#[inline(never)]
fn empty(_: &[AtomicU64], n: u32) {
    (0..n).for_each(|i| {
        black_box(i);
    });
}
