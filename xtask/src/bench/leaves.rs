//! How narrow are the intervals of states, and do they hold what a fresh set of runs of the same program
//! gives?

use std::collections::BTreeMap;

use serde_json::Value;

use super::programs::{self, Program, record};
use super::reruns::{OF_A_SET, report_of};
use super::{interval, report_json, sqlite};
use crate::run::{Scratch, root};
use crate::sources::ZSTD;
use crate::unedited;

/// Paths with fewer calls in a run are not looked at.
const CALLS: f64 = 10_000.0;
/// The widest half-width that is wanted, as a share of the median.
const NARROW: f64 = 0.03;

/// A median of a state, or of a path without states, and its interval, ns.
struct Leaf {
    median: f64,
    interval: [f64; 2],
}

/// The leaves of one report by what they are.
type Leaves = BTreeMap<String, Leaf>;

/// What came of the leaves of some programs.
#[derive(Default)]
struct Counted {
    leaves: usize,
    narrow: usize,
    /// The same of single runs.
    of_runs: usize,
    narrow_of_runs: usize,
    /// Pairs of sets that both have the leaf.
    pairs: usize,
    held: usize,
    /// Leaves that another set does not have.
    alone: usize,
    /// Runs of other sets that have the leaf.
    reruns: usize,
    held_of_reruns: usize,
    /// By how much medians of another set differ, as a share.
    apart: Vec<f64>,
}

pub fn measure(runs: usize) -> Result<(), String> {
    let scratch = Scratch::new("leaves")?;
    println!(
        "{runs} runs of each program in turn, in sets of {OF_A_SET} that follow each other; states of paths with \
         {CALLS} calls in a run or more, or the path itself where it has none; not states by time, which \
         are of one run"
    );
    let mut cells = Vec::new();
    for program in chosen(&scratch)? {
        let set = scratch.path(program.name);
        std::fs::create_dir(&set).map_err(|e| format!("{set}: {e}"))?;
        cells.push((program, set));
    }
    for run in 1..=runs {
        for (program, set) in &cells {
            record(program, &[], &[], &format!("{set}/{run:04}.ut"))?;
        }
        eprintln!("run {run} of {runs}");
    }
    let mut all = Counted::default();
    for (program, set) in &cells {
        let names: Vec<String> = (1..=runs).map(|run| format!("{run:04}.ut")).collect();
        let of_runs: Vec<Leaves> = (names.iter())
            .map(|name| Ok(leaves(&report_json(&format!("{set}/{name}"), &[])?, 1.0)))
            .collect::<Result<_, String>>()?;
        let of_sets: Vec<Leaves> = (names.chunks_exact(OF_A_SET).enumerate())
            .map(|(number, chosen)| Ok(leaves(&report_of(set, number, chosen)?, OF_A_SET as f64)))
            .collect::<Result<_, String>>()?;
        let mut counted = Counted::default();
        counted.add(&of_sets, &of_runs);
        counted.say(program.name);
        all.merge(counted);
    }
    all.say("all");
    println!("targets: half-widths of 3 % or less; 90 % of the medians of fresh sets");
    Ok(())
}

/// The demo, SQLite by its own benchmark, zstd by its own, and a service in Rust.
fn chosen(scratch: &Scratch) -> Result<Vec<Program>, String> {
    let zlib = unedited::zlib()?;
    let input = scratch.path("input");
    unedited::input(&zlib, &input, 8)?;
    let zstd = programs::instrumented(&ZSTD, "zstd-release", "programs/zstd")?;
    // Not the running file, which building may have replaced.
    let xtask = root().join("target/release/xtask");
    let xtask = xtask.to_string_lossy().into_owned();
    let undertick = super::undertick();
    let sqlite = sqlite::benchmark(scratch)?;
    let one = |name, functions: &str, command: &[&str]| Program {
        name,
        options: match functions {
            "" => vec![],
            filter => vec!["--functions".to_owned(), filter.to_owned()],
        },
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        roots: &[],
    };
    Ok(vec![
        one("demo", "", &[&undertick, "__demo-workload"]),
        one(
            "sqlite",
            "^sqlite3_step$|^sqlite3_exec$|^sqlite3BtreeInsert$|^sqlite3VdbeSorterWrite$",
            &[&sqlite, "--memdb", "--size", "40"],
        ),
        one(
            "zstd",
            "^ZSTD_compressBlock_|^ZSTD_entropyCompressSeqStore|^HUF_compress|^ZSTD_decompressBlock",
            &[&zstd, "-q", "-b1", "-i2", &input],
        ),
        one("service", "", &[&xtask, "__rust-service", "300000"]),
    ])
}

/// The names of a path, outermost first.
fn path_name(paths: &[Value], path: &Value) -> String {
    let name = path["name"].as_str().unwrap_or_default();
    match path["parent"]
        .as_u64()
        .and_then(|of| paths.get(of as usize))
    {
        Some(parent) => format!("{}/{name}", path_name(paths, parent)),
        None => name.to_owned(),
    }
}

/// The leaves of a report whose counts are sums of `runs` runs.
fn leaves(report: &Value, runs: f64) -> Leaves {
    let empty = Vec::new();
    let paths = report["paths"].as_array().unwrap_or(&empty);
    let mut with_states = Vec::new();
    let mut leaves = Leaves::new();
    for of in report["states"].as_array().unwrap_or(&empty) {
        let number = of["path"].as_u64().map(|number| number as usize);
        let Some((number, path)) = number.and_then(|number| Some((number, paths.get(number)?)))
        else {
            continue;
        };
        let states = of["states"].as_array().unwrap_or(&empty);
        if states.is_empty() {
            continue;
        }
        with_states.push(number);
        if !is_called(path, runs) {
            continue;
        }
        for state in states {
            let conditions = state["conditions"].as_array().unwrap_or(&empty);
            if conditions.iter().any(|one| one["fact"] == "time") {
                continue;
            }
            if let Some(leaf) = leaf(&state["median"]) {
                let mut what: Vec<String> = conditions.iter().map(condition).collect();
                what.sort();
                let name = path_name(paths, path);
                leaves.insert(format!("{name} {}", what.join(", ")), leaf);
            }
        }
    }
    for (number, path) in paths.iter().enumerate() {
        if !is_called(path, runs) || with_states.contains(&number) {
            continue;
        }
        // The figures of a name are those of the path where there is only one.
        let same = paths.iter().filter(|other| other["name"] == path["name"]);
        let name = path["name"].as_str().unwrap_or_default();
        if let (1, Ok(figures)) = (same.count(), interval(report, name)) {
            leaves.extend(leaf(&figures["median"]).map(|leaf| (path_name(paths, path), leaf)));
        }
    }
    leaves
}

fn is_called(path: &Value, runs: f64) -> bool {
    path["calls"]
        .as_f64()
        .is_some_and(|calls| calls >= CALLS * runs)
}

fn leaf(median: &Value) -> Option<Leaf> {
    Some(Leaf {
        median: median["value"].as_f64()?,
        interval: [
            median["interval"][0].as_f64()?,
            median["interval"][1].as_f64()?,
        ],
    })
}

/// A condition by its sides: where exactly a number is cut differs between runs.
fn condition(one: &Value) -> String {
    let bound = |of: &'static str| if one[of].is_null() { "" } else { of };
    format!(
        "{} {} {} {} {}{}",
        one["fact"],
        one["of"],
        one["is"],
        one["among"],
        bound("from"),
        bound("below")
    )
}

impl Counted {
    fn add(&mut self, sets: &[Leaves], runs: &[Leaves]) {
        (self.leaves, self.narrow) = widths(sets);
        (self.of_runs, self.narrow_of_runs) = widths(runs);
        for (number, own) in sets.iter().enumerate() {
            let fresh = sets[..number].iter().chain(&sets[number + 1..]);
            let medians = |of: &Leaves, name: &str| of.get(name).map(|leaf| leaf.median);
            for fresh in fresh {
                for (name, leaf) in own {
                    let Some(again) = medians(fresh, name) else {
                        self.alone += 1;
                        continue;
                    };
                    self.pairs += 1;
                    self.held += usize::from(leaf.holds(again));
                    self.apart.push((again / leaf.median - 1.0).abs());
                }
            }
            for (_, run) in (runs.iter().enumerate()).filter(|(run, _)| run / OF_A_SET != number) {
                for (name, leaf) in own {
                    if let Some(again) = medians(run, name) {
                        self.reruns += 1;
                        self.held_of_reruns += usize::from(leaf.holds(again));
                    }
                }
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.leaves += other.leaves;
        self.narrow += other.narrow;
        self.of_runs += other.of_runs;
        self.narrow_of_runs += other.narrow_of_runs;
        self.pairs += other.pairs;
        self.held += other.held;
        self.alone += other.alone;
        self.reruns += other.reruns;
        self.held_of_reruns += other.held_of_reruns;
        self.apart.extend(other.apart);
    }

    fn say(&mut self, what: &str) {
        let share = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        println!(
            "{what}: half-widths of sets <= 3 %: {:.1} % of {} leaves, of single runs {:.1} % of {}; medians of fresh \
             sets held: {:.1} % of {}, {} leaves not there; of single runs of other sets: {:.1} % of {}; {}",
            share(self.narrow, self.leaves),
            self.leaves,
            share(self.narrow_of_runs, self.of_runs),
            self.of_runs,
            share(self.held, self.pairs),
            self.pairs,
            self.alone,
            share(self.held_of_reruns, self.reruns),
            self.reruns,
            apart(&mut self.apart),
        );
    }
}

impl Leaf {
    fn holds(&self, median: f64) -> bool {
        let [low, high] = self.interval;
        (low..=high).contains(&median)
    }
}

/// The numbers of leaves, and of those with a narrow interval.
fn widths(all: &[Leaves]) -> (usize, usize) {
    let leaves = || all.iter().flat_map(|leaves| leaves.values());
    let is_narrow = |leaf: &&Leaf| {
        let half = (leaf.interval[1] - leaf.interval[0]) / 2.0;
        half <= NARROW * leaf.median
    };
    (leaves().count(), leaves().filter(is_narrow).count())
}

/// By how much medians differ from one set to another, in the middle.
fn apart(shares: &mut [f64]) -> String {
    shares.sort_by(f64::total_cmp);
    match shares.get(shares.len() / 2) {
        Some(middle) => format!("medians of sets apart by {:.1} %", 100.0 * middle),
        None => "no medians of two sets".to_owned(),
    }
}
