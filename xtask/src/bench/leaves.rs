//! How narrow are the intervals of states, and do they hold what other runs of the same program give?

use std::collections::BTreeMap;

use serde_json::Value;

use super::programs::{Program, programs, record};
use super::{interval, report_json};
use crate::run::Scratch;

/// Paths with fewer calls are not looked at.
const CALLS: f64 = 10_000.0;
/// The widest half-width that is wanted, as a share of the median.
const NARROW: f64 = 0.03;

/// A state's median and its interval, ns.
struct Leaf {
    median: f64,
    interval: [f64; 2],
}

/// The leaves of one run by what they are.
type Leaves = BTreeMap<String, Leaf>;

/// Leaves of all runs of some programs.
#[derive(Default)]
struct Counted {
    leaves: usize,
    narrow: usize,
    /// Pairs of runs that follow each other, and both have the state.
    pairs: usize,
    held: usize,
    /// States that the next run does not have.
    alone: usize,
    /// By how much medians of the next run differ, as a share.
    apart: Vec<f64>,
    /// The same of whole spans, for comparison.
    spans: Vec<f64>,
}

pub fn measure(runs: usize) -> Result<(), String> {
    let scratch = Scratch::new("leaves")?;
    println!(
        "{runs} runs of each program in turn; states of paths with {CALLS} calls or more, but for states by \
         time, which are of one run"
    );
    let programs = programs(&scratch)?;
    let mut found: Vec<Vec<(Leaves, Value)>> = programs.iter().map(|_| Vec::new()).collect();
    for run in 1..=runs {
        for (program, found) in programs.iter().zip(&mut found) {
            found.push(one(program, &scratch.path("t.ut"))?);
        }
        eprintln!("run {run} of {runs}");
    }
    let mut all = Counted::default();
    for (program, runs) in programs.iter().zip(&found) {
        let mut counted = Counted::default();
        counted.add(runs);
        counted.say(program.name);
        all.merge(counted);
    }
    all.say("all");
    println!("targets: half-widths of 3 % or less; 90 % of the medians of other runs");
    Ok(())
}

fn one(program: &Program, trace: &str) -> Result<(Leaves, Value), String> {
    record(program, &[], &[], trace)?;
    let report = report_json(trace, &[])?;
    Ok((leaves(&report), report))
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

fn leaves(report: &Value) -> Leaves {
    let empty = Vec::new();
    let paths = report["paths"].as_array().unwrap_or(&empty);
    let mut leaves = Leaves::new();
    for of in report["states"].as_array().unwrap_or(&empty) {
        let Some(path) = of["path"].as_u64().and_then(|of| paths.get(of as usize)) else {
            continue;
        };
        if path["calls"].as_f64().is_none_or(|calls| calls < CALLS) {
            continue;
        }
        for state in of["states"].as_array().unwrap_or(&empty) {
            let conditions = state["conditions"].as_array().unwrap_or(&empty);
            if conditions.iter().any(|one| one["fact"] == "time") {
                continue;
            }
            if let Some(leaf) = leaf(&state["median"]) {
                let mut what: Vec<String> = conditions.iter().map(condition).collect();
                what.sort();
                let name = format!("{} {}", path_name(paths, path), what.join(", "));
                leaves.insert(name, leaf);
            }
        }
    }
    leaves
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
    fn add(&mut self, runs: &[(Leaves, Value)]) {
        for leaf in runs.iter().flat_map(|(leaves, _)| leaves.values()) {
            let half = (leaf.interval[1] - leaf.interval[0]) / 2.0;
            self.leaves += 1;
            self.narrow += usize::from(half <= NARROW * leaf.median);
        }
        for pair in runs.windows(2) {
            let [(own, before), (next, after)] = pair else {
                continue;
            };
            for (name, leaf) in own {
                let Some(again) = next.get(name) else {
                    self.alone += 1;
                    continue;
                };
                let [low, high] = leaf.interval;
                self.pairs += 1;
                self.held += usize::from((low..=high).contains(&again.median));
                self.apart.push((again.median / leaf.median - 1.0).abs());
            }
            self.spans.extend(spans_apart(before, after));
        }
    }

    fn merge(&mut self, other: Self) {
        self.leaves += other.leaves;
        self.narrow += other.narrow;
        self.pairs += other.pairs;
        self.held += other.held;
        self.alone += other.alone;
        self.apart.extend(other.apart);
        self.spans.extend(other.spans);
    }

    fn say(&mut self, what: &str) {
        let share = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        let spans = format!("of whole spans, {}", apart(&mut self.spans));
        if self.leaves == 0 {
            return println!("{what}: no states of paths with as many calls; {spans}");
        }
        println!(
            "{what}: {:.1} % of {} half-widths <= 3 %; {:.1} % of {} medians of the next run held, {} states not \
             there; of states, {}; {spans}",
            share(self.narrow, self.leaves),
            self.leaves,
            share(self.held, self.pairs),
            self.pairs,
            self.alone,
            apart(&mut self.apart),
        );
    }
}

/// By how much the medians of spans with enough calls differ between two runs, as shares.
fn spans_apart(before: &Value, after: &Value) -> Vec<f64> {
    let of = |report: &Value, name: &str| interval(report, name).ok()?["median"]["value"].as_f64();
    let names = (super::intervals(before).iter())
        .filter(|one| one["count"].as_f64().is_some_and(|count| count >= CALLS))
        .filter_map(|one| one["name"].as_str());
    names
        .filter_map(|name| Some((of(after, name)? / of(before, name)? - 1.0).abs()))
        .filter(|apart| apart.is_finite())
        .collect()
}

/// By how much medians differ from one run to the next, in the middle.
fn apart(shares: &mut [f64]) -> String {
    shares.sort_by(f64::total_cmp);
    match shares.get(shares.len() / 2) {
        Some(middle) => format!("medians of runs apart by {:.1} %", 100.0 * middle),
        None => "no medians of two runs".to_owned(),
    }
}
