//! Spans of known length under benchmark tools, alone in a tight loop, against Undertick in the
//! middle of 2 us of other work. All run in turn, with the truth before and after.

use std::collections::BTreeMap;

use serde_json::Value;

use super::peers_of_registries::{bench, compile, installed, version_of_crate, version_of_package};
use super::{interval, record, report_json};
use crate::run::{Scratch, command, output};
use crate::statistics::{median, median_interval};

const ROUNDS: usize = 11;
/// Pairs of dependent instructions in a span.
const DOSES: [u32; 4] = [5, 20, 50, 200];

/// A tool's figure for each span, ns.
type Said = BTreeMap<String, f64>;
/// The confidence interval of each figure, ns.
type Bounds = BTreeMap<String, (f64, f64)>;

pub fn measure() -> Result<(), String> {
    installed(&["libbenchmark-dev"])?;
    let scratch = Scratch::new("doses")?;
    let truth = compile(&scratch, "truth.c", &[])?;
    let place = compile(&scratch, "place.c", &[])?;
    let google = compile(&scratch, "google-benchmark.cpp", &["-lbenchmark"])?;
    let [criterion, zenbench] = [bench("doses_criterion")?, bench("doses_zenbench")?];
    let home = scratch.path("criterion");
    let trace = scratch.path("place.ut");
    let mut ratios: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    let mut held = BTreeMap::new();
    for _ in 0..ROUNDS {
        let before = pair_ns(&truth)?;
        let (ours, intervals) = in_place(&trace, &place)?;
        let said = [
            ("Undertick".to_owned(), ours),
            (
                format!(
                    "Google Benchmark {}",
                    version_of_package("libbenchmark-dev")?
                ),
                of_google(&google)?,
            ),
            (
                format!("Criterion {}", version_of_crate("criterion")?),
                of_criterion(&criterion, &home)?,
            ),
            (
                format!("zenbench {}", version_of_crate("zenbench")?),
                of_zenbench(&zenbench, &scratch)?,
            ),
        ];
        let pair = (before + pair_ns(&truth)?) / 2.0;
        for (tool, said) in said {
            for (section, ns) in said {
                let dose: f64 = dose(&section)?;
                let key = (tool.clone(), section);
                ratios.entry(key).or_default().push(ns / (dose * pair));
            }
        }
        for (section, (lo, hi)) in intervals {
            let true_ns = dose(&section)? * pair;
            *held.entry(section).or_insert(0) += usize::from(lo <= true_ns && true_ns <= hi);
        }
    }
    print(&ratios);
    println!("95 % intervals of Undertick that hold the truth, of {ROUNDS}: {held:?}");
    Ok(())
}

fn dose(section: &str) -> Result<f64, String> {
    let number = section.rsplit('_').next().and_then(|n| n.parse().ok());
    number.ok_or_else(|| format!("{section}: no dose"))
}

/// Duration of a pair, ns of the CPU's time.
fn pair_ns(truth: &str) -> Result<f64, String> {
    let said = output(command(&[truth]))?;
    said.trim().parse().map_err(|e| format!("{said:?}: {e}"))
}

/// Undertick's means, with their confidence intervals.
fn in_place(trace: &str, program: &str) -> Result<(Said, Bounds), String> {
    record(trace, &[], &[program])?;
    let report = report_json(trace, &[])?;
    let (mut means, mut intervals) = (Said::new(), BTreeMap::new());
    for dose in DOSES {
        let name = format!("within_{dose}");
        let mean = &interval(&report, &name)?["mean"];
        means.insert(name.clone(), number(&mean["value"], &name)?);
        let bound = |n: usize| number(&mean["interval"][n], &name);
        if let (Ok(lo), Ok(hi)) = (bound(0), bound(1)) {
            intervals.insert(name, (lo, hi));
        }
    }
    Ok((means, intervals))
}

fn of_google(program: &str) -> Result<Said, String> {
    let words = ["--benchmark_format=json", "--benchmark_min_time=0.1"];
    let said = json(&output(command(&[&[program], &words[..]].concat()))?)?;
    let all = said["benchmarks"].as_array().into_iter().flatten();
    let named = all.map(|one| {
        let name = one["name"].as_str().unwrap_or("").split('/').next();
        let name = name.unwrap_or("").to_owned();
        Ok((name.clone(), number(&one["real_time"], &name)?))
    });
    named.collect()
}

fn of_criterion(program: &str, home: &str) -> Result<Said, String> {
    let words = [
        "--bench",
        "--noplot",
        "--warm-up-time",
        "0.2",
        "--measurement-time",
        "0.5",
    ];
    let mut run = command(&[&[program], &words[..]].concat());
    run.env("CRITERION_HOME", home);
    output(run)?;
    let names = DOSES
        .iter()
        .flat_map(|d| [format!("alone_{d}"), format!("within_{d}")]);
    let named = names.map(|name| {
        let path = format!("{home}/{name}/new/estimates.json");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        let estimates = json(&text)?;
        // The slope where there is one, as it is what the tool's report states.
        let slope = number(&estimates["slope"]["point_estimate"], &name);
        let said = slope.or_else(|_| number(&estimates["mean"]["point_estimate"], &name))?;
        Ok((name, said))
    });
    named.collect()
}

fn of_zenbench(program: &str, scratch: &Scratch) -> Result<Said, String> {
    let mut run = command(&[program, "--bench", "--no-busy-gate"]);
    // The tool stores its results in its working directory.
    run.env("ZENBENCH_FORMAT", "json").current_dir(&scratch.0);
    let said = json(&output(run)?)?;
    let all = said["comparisons"].as_array().into_iter().flatten();
    let named = all.map(|group| {
        let name = group["group_name"].as_str().unwrap_or("").to_owned();
        let mean = &group["benchmarks"][0]["summary"]["mean"];
        Ok((name.clone(), number(mean, &name)?))
    });
    named.collect()
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn number(value: &Value, of: &str) -> Result<f64, String> {
    value
        .as_f64()
        .ok_or_else(|| format!("{of}: no number: {value}"))
}

fn print(ratios: &BTreeMap<(String, String), Vec<f64>>) {
    println!("\nstated over true, medians of {ROUNDS} rounds [95 %]");
    println!("| tool | where | 5 pairs | 20 | 50 | 200 |\n|---|---|---|---|---|---|");
    let mut tools: Vec<&String> = ratios.keys().map(|(tool, _)| tool).collect();
    tools.dedup();
    for tool in tools {
        for place in ["alone", "within"] {
            let cells = DOSES.map(|dose| {
                let key = (tool.clone(), format!("{place}_{dose}"));
                ratios.get(&key).map_or_else(String::new, |found| {
                    let (lo, hi) = median_interval(found);
                    format!("{:.2} [{lo:.2}, {hi:.2}]", median(found))
                })
            });
            println!("| {tool} | {place} | {} |", cells.join(" | "));
        }
    }
}
