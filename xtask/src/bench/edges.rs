//! What spans say of work that is still under way at their edges, against fenced readings in
//! the same run.

use super::{compile, interval, ns_per_tick, record, report_json};
use crate::run::Scratch;

/// Works of benches/recorder/edges.c.
const WORKS: [&str; 7] = [
    "50 dependent pairs",
    "200 dependent pairs",
    "16 dependent misses",
    "64 dependent misses",
    "hash look-up",
    "binary search",
    "4 independent misses",
];
/// Places of it.
const PLACES: [&str; 4] = ["warm", "warm, behind misses", "cold", "cold, behind misses"];
/// Ways of it that a report tells of, in the order of their events.
const WAYS: [&str; 3] = ["plain", "fast", "ordered"];
/// Spans of each cell in a run.
const EACH: &str = "1500";
/// What a stated mean may be off: a share of the truth, and ns beside it.
const SHARE: f64 = 0.03;
const BESIDE_NS: f64 = 2.0;

/// Cells within what is allowed, and all, by way.
#[derive(Default)]
struct Within([(u32, u32); WAYS.len()]);

pub fn measure(runs: usize) -> Result<(), String> {
    let scratch = Scratch::new("edges")?;
    let program = compile(&scratch, "edges")?;
    let trace = scratch.path("t.ut");
    let mut within = Within::default();
    let mut loops = Vec::new();
    for run in 1..=runs {
        let said = record(&trace, &[], &[&program, EACH, &run.to_string()])?;
        let report = report_json(&trace, &[])?;
        let ns_per_tick = ns_per_tick(&trace)?;
        let (cells, independent) = read(&said)?;
        loops.extend(independent);
        if run == 1 {
            println!(
                "\nmeans of spans less the truth, ns (fenced readings in the same run, less what two \
                 of them show of nothing); ! more than 3 % + 2 ns off"
            );
            println!(
                "{:<24}{:<22}{:>10}{:>12}{:>12}{:>12}",
                "work", "where", "truth", WAYS[0], WAYS[1], WAYS[2]
            );
        }
        for (work, place, ticks) in cells {
            let truth = ticks * ns_per_tick;
            let mut line = format!("{:<24}{:<22}{truth:>10.1}", WORKS[work], PLACES[place]);
            for way in 0..WAYS.len() {
                let event = 100 * way + 10 * place + work + 1;
                let stated = interval(&report, &format!("event {event}"))?["mean"]["value"]
                    .as_f64()
                    .ok_or("no mean")?;
                let off = stated - truth;
                let is_within = off.abs() <= SHARE * truth + BESIDE_NS;
                within.0[way].0 += u32::from(is_within);
                within.0[way].1 += 1;
                line += &format!("{off:>11.1}{}", if is_within { ' ' } else { '!' });
            }
            if run == 1 {
                println!("{line}");
            }
        }
    }
    println!();
    for (way, (inside, all)) in WAYS.iter().zip(within.0) {
        println!(
            "{way:<8} {inside} of {all} means within 3 % + 2 ns of the truth ({:.1} %; target of plain \
             and ordered spans 95 %)",
            100.0 * f64::from(inside) / f64::from(all)
        );
    }
    let median = |of: fn(&[f64; 3]) -> f64| {
        let mut all: Vec<f64> = loops.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    println!(
        "a loop of independent misses takes {:.1} ns each without points, with fast spans {:.2} times \
         and with plain ones {:.2} times as long (median of {} pairs)",
        median(|&[none, ..]| none),
        median(|&[none, fast, _]| fast / none),
        median(|&[none, _, plain]| plain / none),
        loops.len()
    );
    Ok(())
}

/// Work, place and ticks of fenced readings less those around nothing; loops without points,
/// with fast and with plain spans, ns.
type Cell = (usize, usize, f64);
fn read(said: &str) -> Result<(Vec<Cell>, Vec<[f64; 3]>), String> {
    let (mut cells, mut loops, mut nothing) = (Vec::new(), Vec::new(), f64::NAN);
    for line in said.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| -> Result<f64, String> {
            words
                .get(at)
                .and_then(|word| word.parse().ok())
                .ok_or_else(|| format!("edges.c said {line:?}"))
        };
        match words[0] {
            "nothing" => nothing = number(1)?,
            "work" => {
                let place = (number(1)? as usize, number(2)? as usize);
                cells.push((place.0, place.1, number(4)? - nothing));
            }
            "independent" => loops.push([number(1)?, number(2)?, number(3)?]),
            _ => return Err(format!("edges.c said {line:?}")),
        }
    }
    Ok((cells, loops))
}
