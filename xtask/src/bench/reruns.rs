//! Do confidence intervals hold the figures of other runs? Programs of Undertick and of other
//! projects are run repeatedly, free and on one CPU.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::programs::{programs, record};
use super::{interval, intervals, report_json};
use crate::run::Scratch;

/// Number of runs in a set whose report is used.
pub(super) const OF_A_SET: usize = 5;

/// Counts of intervals that hold a figure of runs they do not come from.
#[derive(Default)]
struct Held {
    of_sets: [u64; 3],
    sets: [u64; 3],
    of_runs: u64,
    runs: u64,
    unknown: u64,
}

/// Figures that are examined.
const FIGURES: [&str; 3] = ["mean", "median", "p99"];

pub fn measure(runs: usize) -> Result<(), String> {
    let scratch = Scratch::new("reruns")?;
    println!(
        "{runs} runs of each program, free and on one CPU, in turn, so that runs of one lie about \
         as far apart as `record --runs` lets them; sets of {OF_A_SET} runs that follow each other"
    );
    let mut cells = Vec::new();
    for program in programs(&scratch)? {
        for is_pinned in [false, true] {
            let set = scratch.path(&format!("{}-{is_pinned}", program.name));
            std::fs::create_dir(&set).map_err(|e| format!("{set}: {e}"))?;
            cells.push((program.clone(), is_pinned, set));
        }
    }
    let begun = Instant::now();
    for run in 1..=runs {
        for (program, is_pinned, set) in &cells {
            let around: &[&str] = match is_pinned {
                true => &["taskset", "-c", "1"],
                false => &[],
            };
            record(program, around, &[], &format!("{set}/{run:04}.ut"))?;
        }
    }
    let apart_s = begun.elapsed().as_secs_f64() / runs as f64;
    println!("runs of one program began {apart_s:.0} s apart");
    let mut all = Held::default();
    for (program, is_pinned, set) in &cells {
        let held = held(set, runs)?;
        let what = if *is_pinned { "on one CPU" } else { "free" };
        say(&format!("{} {what}", program.name), &held);
        all.add(&held);
    }
    say("all", &all);
    println!(
        "targets: sets 90..98 %; single runs' medians 80 %, not given, or called of this run (all are)"
    );
    Ok(())
}

impl Held {
    /// Counts the intervals of a set that hold the figures of another set.
    fn add_sets(&mut self, own: &Value, fresh: &Value) {
        for interval in with_figures(own) {
            let Some(again) = of_name(fresh, &interval["name"]) else {
                continue;
            };
            for (i, figure) in FIGURES.iter().enumerate() {
                let (Some(own), Some(again)) =
                    (figure_of(interval, figure), figure_of(again, figure))
                else {
                    continue;
                };
                if let Some(holds) = again["value"].as_f64().and_then(|value| holds(own, value)) {
                    self.sets[i] += 1;
                    self.of_sets[i] += u64::from(holds);
                }
            }
        }
    }

    fn add(&mut self, other: &Self) {
        for i in 0..FIGURES.len() {
            self.of_sets[i] += other.of_sets[i];
            self.sets[i] += other.sets[i];
        }
        self.of_runs += other.of_runs;
        self.runs += other.runs;
        self.unknown += other.unknown;
    }
}

fn say(what: &str, held: &Held) {
    let share = |held: u64, of: u64| 100.0 * held as f64 / of.max(1) as f64;
    let of_sets: Vec<String> = (FIGURES.iter().zip(held.of_sets).zip(held.sets))
        .map(|((figure, held), of)| format!("{figure} {:.1} % of {of}", share(held, of)))
        .collect();
    println!(
        "{what}: a set's intervals hold another set's {}; a run's interval another run's median {:.1} % of {}, {} not given",
        of_sets.join(", "),
        share(held.of_runs, held.runs),
        held.runs,
        held.unknown
    );
}

/// Compares each set of runs with each other set, and each run with the next.
fn held(set: &str, runs: usize) -> Result<Held, String> {
    let names: Vec<String> = (1..=runs).map(|run| format!("{run:04}.ut")).collect();
    let reports: Vec<Value> = (names.iter())
        .map(|name| report_json(&format!("{set}/{name}"), &[]))
        .collect::<Result<_, _>>()?;
    let sets: Vec<Value> = (names.chunks_exact(OF_A_SET).enumerate())
        .map(|(number, chosen)| report_of(set, number, chosen))
        .collect::<Result<_, _>>()?;
    let mut held = Held::default();
    for (number, own) in sets.iter().enumerate() {
        let fresh = sets[..number].iter().chain(&sets[number + 1..]);
        for fresh in fresh {
            held.add_sets(own, fresh);
        }
    }
    for pair in reports.windows(2) {
        for interval in with_figures(&pair[0]) {
            let next = of_name(&pair[1], &interval["name"]).and_then(|i| figure_of(i, "median"));
            let (Some(own), Some(next)) = (figure_of(interval, "median"), next) else {
                continue;
            };
            match next["value"].as_f64().and_then(|value| holds(own, value)) {
                Some(holds) => {
                    held.runs += 1;
                    held.of_runs += u64::from(holds);
                }
                None => held.unknown += 1,
            }
        }
    }
    Ok(held)
}

/// The report of some of the runs of a set.
pub(super) fn report_of(set: &str, number: usize, runs: &[String]) -> Result<Value, String> {
    let part = format!("{set}/part-{number}");
    std::fs::create_dir(&part).map_err(|e| format!("{part}: {e}"))?;
    for run in runs {
        symlink(Path::new(set).join(run), Path::new(&part).join(run))
            .map_err(|e| format!("{part}/{run}: {e}"))?;
    }
    report_json(&part, &[])
}

/// Spans with enough samples to have figures.
fn with_figures(report: &Value) -> impl Iterator<Item = &Value> {
    (intervals(report).iter()).filter(|i| i["count"].as_u64().unwrap_or(0) >= 100)
}

fn of_name<'a>(report: &'a Value, name: &Value) -> Option<&'a Value> {
    interval(report, name.as_str()?).ok()
}

fn figure_of<'a>(interval: &'a Value, figure: &str) -> Option<&'a Value> {
    let found = match figure {
        "p99" => &interval["quantiles"]["0.99"],
        other => &interval[other],
    };
    found.is_object().then_some(found)
}

/// Whether the interval holds a value; `None` where a bound is missing.
fn holds(estimate: &Value, value: f64) -> Option<bool> {
    let (lo, hi) = (
        estimate["interval"][0].as_f64()?,
        estimate["interval"][1].as_f64()?,
    );
    Some((lo..=hi).contains(&value))
}
