//! How spans treat work that is still in progress at their edges, against fenced readings in the
//! same run.

use serde_json::Value;

use super::{compile, interval, ns_per_tick, record, report_json};
use crate::run::Scratch;

/// Kinds of work of benches/recorder/edges.c.
const WORKS: [&str; 7] = [
    "50 dependent pairs",
    "200 dependent pairs",
    "16 dependent misses",
    "64 dependent misses",
    "hash look-up",
    "binary search",
    "4 independent misses",
];
/// Index for spans around nothing.
const NOTHING: usize = WORKS.len();
/// Places of the work.
const PLACES: [&str; 4] = ["warm", "warm, behind misses", "cold", "cold, behind misses"];
const WARM: usize = 0;
/// Kinds of readings that a report distinguishes, in the order of their events.
const WAYS: [&str; 3] = ["plain", "fast", "ordered"];
/// Further fenced readings of the same work, which show the effect of chance and of the code's
/// place.
const AGAIN: &str = "fenced again";
/// Number of spans of each cell in a run.
const EACH: &str = "6000";
/// Allowed error of a stated mean: a share of the truth, and ns in addition.
const SHARE: f64 = 0.03;
const BESIDE_NS: f64 = 2.0;

/// Counts of the cells of one way to measure.
#[derive(Clone, Copy, Default)]
struct Cells {
    all: u32,
    /// Number of cells whose mean is within the allowed error.
    near: u32,
    /// Number of cells whose interval holds the truth.
    held: u32,
}

impl Cells {
    /// Adds a cell; returns its text.
    fn take(&mut self, stated: Stated, truth: f64) -> String {
        let off = stated.mean - truth;
        let is_near = off.abs() <= SHARE * truth + BESIDE_NS;
        self.all += 1;
        self.near += u32::from(is_near);
        self.held += u32::from((stated.lo..=stated.hi).contains(&truth));
        format!("{off:>11.1}{}", if is_near { ' ' } else { '!' })
    }
}

/// A mean and its confidence interval, ns.
#[derive(Clone, Copy)]
struct Stated {
    mean: f64,
    lo: f64,
    hi: f64,
}

impl Stated {
    fn from_report(report: &Value, event: usize) -> Result<Self, String> {
        let mean = &interval(report, &format!("event {event}"))?["mean"];
        let bound = |at: usize, unknown: f64| mean["interval"][at].as_f64().unwrap_or(unknown);
        Ok(Self {
            mean: mean["value"].as_f64().ok_or("no mean")?,
            lo: bound(0, f64::NEG_INFINITY),
            hi: bound(1, f64::INFINITY),
        })
    }
}

pub fn measure(runs: usize) -> Result<(), String> {
    let scratch = Scratch::new("edges")?;
    let program = compile(&scratch, "edges")?;
    let trace = scratch.path("t.ut");
    let (mut culled, mut as_it_comes) = (
        [Cells::default(); WAYS.len()],
        [Cells::default(); WAYS.len()],
    );
    let mut again = Cells::default();
    let mut loops = Vec::new();
    for run in 1..=runs {
        let said = record(&trace, &[], &[&program, EACH, &run.to_string()])?;
        let report = report_json(&trace, &["--cull", "ratio:30"])?;
        let whole = report_json(&trace, &[])?;
        let ns_per_tick = ns_per_tick(&trace)?;
        let (cells, independent) = read(&said)?;
        loops.extend(independent);
        if run == 1 {
            println!(
                "\nmeans of spans less the truth, ns (fenced readings in the same run, less what two \
                 of them show of nothing; of both without what is over 30 times the least); ! more than 3 % + 2 ns off"
            );
            println!(
                "{:<24}{:<22}{:>10}{:>12}{:>12}{:>12}{AGAIN:>12}",
                "work", "where", "truth", WAYS[0], WAYS[1], WAYS[2]
            );
        }
        for (work, place, ticks, again_ticks) in cells {
            let truth = ticks * ns_per_tick;
            let mut line = format!("{:<24}{:<22}{truth:>10.1}", WORKS[work], PLACES[place]);
            for way in 0..WAYS.len() {
                let event = 100 * way + 10 * place + work + 1;
                line += &culled[way].take(Stated::from_report(&report, event)?, truth);
                as_it_comes[way].take(Stated::from_report(&whole, event)?, truth);
            }
            let mean = again_ticks * ns_per_tick;
            let other = Stated {
                mean,
                lo: mean,
                hi: mean,
            };
            line += &again.take(other, truth);
            if run == 1 {
                println!("{line}");
            }
        }
    }
    println!();
    let share = |cells: u32, of: &Cells| 100.0 * f64::from(cells) / f64::from(of.all);
    for (what, of) in [("", culled), (", with all samples", as_it_comes)] {
        for (way, cells) in WAYS.iter().zip(&of) {
            println!(
                "{:<28}{} of {} means within 3 % + 2 ns of the truth ({:.1} %), {} intervals hold it ({:.1} %)",
                format!("{way}{what}"),
                cells.near,
                cells.all,
                share(cells.near, cells),
                cells.held,
                share(cells.held, cells)
            );
        }
    }
    println!(
        "{AGAIN:<28}{} of {}: what chance and the place of code allow; the target of plain and ordered spans is 95 %",
        again.near, again.all
    );
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

/// Work and place; ticks of fenced readings less those around nothing, and the same of the further
/// fenced readings; then loops without points, with fast and with plain spans, ns.
type Cell = (usize, usize, f64, f64);
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
            "work" => {
                let place = (number(1)? as usize, number(2)? as usize);
                let both = (number(3)?, number(4)?);
                match place {
                    (NOTHING, WARM) => nothing = f64::midpoint(both.0, both.1),
                    (NOTHING, _) => {}
                    (work, place) => cells.push((work, place, both.0, both.1)),
                }
            }
            "independent" => loops.push([number(1)?, number(2)?, number(3)?]),
            _ => return Err(format!("edges.c said {line:?}")),
        }
    }
    for (_, _, truth, again) in &mut cells {
        *truth -= nothing;
        *again -= nothing;
    }
    Ok((cells, loops))
}
