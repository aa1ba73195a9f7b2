//! Are the program's readings and the kernel's events consistent? Two threads wake each other:
//! stamp before the wake <= waking <= switch-in <= stamp after.

use std::collections::HashMap;

use super::{compile, record, report_json};
use crate::run::Scratch;
use crate::statistics::median;

const ROUNDS: &str = "50000";
/// Number of rounds that measure the cost of recording the kernel's events.
const MORE_ROUNDS: &str = "400000";
/// The event before a wake, and the event of the thread that it woke.
const WAKES: [(i64, i64); 2] = [(1, 2), (3, 4)];

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("wake")?;
    let program = compile(&scratch, "wake")?;
    println!("\ntwo threads that wake each other {ROUNDS} times each");
    for (place, what) in [
        ("one", "on one CPU"),
        ("busy", "on two busy CPUs"),
        ("idle", "on two idle CPUs"),
    ] {
        let trace = scratch.path(&format!("{place}.ut"));
        let recording = ["--no-calibration", "--kernel", "on"];
        record(&trace, &recording, &[&program, place, ROUNDS])?;
        println!("  {what}: {}", lined_up(&trace)?);
    }
    println!(
        "a round of two wakes and four switches, with the kernel's trace switched off and on at \
         random (report, 95 %)"
    );
    for (place, what) in [("one", "on one CPU"), ("busy", "on two busy CPUs")] {
        let trace = scratch.path(&format!("{place}-cost.ut"));
        let recording = ["--no-calibration", "--perturbation", "kernel"];
        record(&trace, &recording, &[&program, place, MORE_ROUNDS])?;
        println!("  {what}: {}", slowed(&trace)?);
    }
    Ok(())
}

/// By how much recording the kernel's events slows a round, as text.
fn slowed(trace: &str) -> Result<String, String> {
    let report = report_json(trace, &[])?;
    let round = (report["intervals"].as_array().into_iter().flatten())
        .find(|interval| interval["name"] == "event 5")
        .ok_or("no rounds in the report")?;
    let figure = |of: &serde_json::Value, by: f64| {
        let number = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN) * by;
        format!(
            "{:.1} [{:.1}, {:.1}]",
            number(&of["value"]),
            number(&of["interval"][0]),
            number(&of["interval"][1])
        )
    };
    let slowed = &round["slowed"];
    Ok(format!(
        "slowed by {} ns, {} %",
        figure(&slowed["by"], 1.0),
        figure(&slowed["share"], 100.0)
    ))
}

/// The columns of a row that are used here.
#[derive(Clone, Copy)]
struct Row {
    ticks: i64,
    ns: i64,
    tid: i64,
}

/// Rows of one kind, by thread, in order of time.
type ByThread = HashMap<i64, Vec<Row>>;

#[derive(Default)]
struct Rows {
    /// The program's rows, by event.
    stamps: HashMap<i64, Vec<Row>>,
    waking: ByThread,
    switch_in: ByThread,
    /// Switches out to wait, without those of preempted threads.
    sleep: ByThread,
}

fn read(trace: &str) -> Result<Rows, String> {
    let (csv, text) = super::csv(trace)?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().ok_or("an empty export")?.split(',').collect();
    let place = |name: &str| {
        let found = header.iter().position(|column| *column == name);
        found.ok_or_else(|| format!("{csv}: no column {name}"))
    };
    let [ns, ticks, tid, mode, kind, event, payload] = [
        place("unix_ns")?,
        place("ticks")?,
        place("tid")?,
        place("mode")?,
        place("kind")?,
        place("event")?,
        place("payload")?,
    ];
    let mut rows = Rows::default();
    for line in lines {
        let words: Vec<&str> = line.split(',').collect();
        let number = |at: usize| {
            words[at]
                .parse::<i64>()
                .map_err(|_| format!("{csv}: {line}"))
        };
        let row = Row {
            ticks: number(ticks)?,
            ns: number(ns)?,
            tid: number(tid)?,
        };
        let of = match (words[mode], words[kind]) {
            ("user", _) => rows.stamps.entry(number(event)?).or_default(),
            (_, "waking") => rows.waking.entry(row.tid).or_default(),
            (_, "switch_in") => rows.switch_in.entry(row.tid).or_default(),
            (_, "switch_out") if number(payload)? == 0 => rows.sleep.entry(row.tid).or_default(),
            _ => continue,
        };
        of.push(row);
    }
    Ok(rows)
}

/// The rows of a thread from `from` to `to`, ticks.
fn between(rows: &ByThread, tid: i64, from: i64, to: i64) -> &[Row] {
    let all = rows.get(&tid).map_or(&[][..], |rows| rows);
    let first = all.partition_point(|row| row.ticks < from);
    let end = all.partition_point(|row| row.ticks <= to);
    &all[first..end.max(first)]
}

fn lined_up(trace: &str) -> Result<String, String> {
    let rows = read(trace)?;
    let (mut slept, mut whole, mut violated, mut missing) = (0, 0, 0, 0);
    let (mut by_program, mut by_kernel) = (Vec::new(), Vec::new());
    let (mut way_in, mut way_out) = (Vec::new(), Vec::new());
    for (before, after) in WAKES {
        let stamps = |event: i64| rows.stamps.get(&event).map_or(&[][..], |rows| rows);
        for (i, (wake, woken)) in stamps(before).iter().zip(stamps(after)).enumerate() {
            // Everything since this thread's last wakeup lies in this round.
            let since = match i {
                0 => wake.ticks,
                _ => stamps(after)[i - 1].ticks,
            };
            let tid = woken.tid;
            if between(&rows.sleep, tid, since, woken.ticks).is_empty() {
                continue; // it was woken before it slept
            }
            slept += 1;
            let waking = between(&rows.waking, tid, since, woken.ticks).last();
            let switch_in = between(&rows.switch_in, tid, since, woken.ticks).last();
            let (Some(waking), Some(switch_in)) = (waking, switch_in) else {
                missing += 1;
                continue;
            };
            let times = [wake.ticks, waking.ticks, switch_in.ticks, woken.ticks];
            if times.is_sorted() {
                whole += 1;
                by_program.push((woken.ns - wake.ns) as f64);
                by_kernel.push((switch_in.ns - waking.ns) as f64);
                way_in.push((waking.ns - wake.ns) as f64);
                way_out.push((woken.ns - switch_in.ns) as f64);
            } else {
                violated += 1;
            }
        }
    }
    if whole == 0 {
        return Ok(format!(
            "{slept} slept, {missing} without their kernel rows, {violated} out of order"
        ));
    }
    let (program, kernel) = (median(&by_program) / 1e3, median(&by_kernel) / 1e3);
    Ok(format!(
        "{slept} slept; {whole} in order, {violated} out of order (target: under 1 in 10 000), {missing} without their \
         kernel rows; wake to run {program:.2} us by the program's stamps, {kernel:.2} us from waking to switch-in by the \
         kernel (medians; target: within 1 us); of the difference {:.2} us are the waker's way from its stamp into the \
         kernel and {:.2} us the other's way out to its stamp",
        median(&way_in) / 1e3,
        median(&way_out) / 1e3
    ))
}
