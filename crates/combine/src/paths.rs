//! The paths of several runs: sums over all of them, and typical quantiles.

use std::collections::HashMap;

use undertick_document::{PathReport, Report};
use undertick_estimate::median_of_runs;
use undertick_units::{Estimate, Interval};

use super::Run;

/// The level of intervals that nothing shows.
const LEVEL: f64 = 0.95;

/// The names from the outermost span to the innermost.
type Names<'a> = Vec<&'a str>;

/// Combines the paths of all runs, ordered as those of one.
pub(super) fn paths(runs: &[Run]) -> Vec<PathReport> {
    let mut keys: Vec<Names<'_>> = Vec::new();
    let mut same: HashMap<Names<'_>, Vec<&PathReport>> = HashMap::new();
    // Roles are no way to tell paths apart where a run has none.
    let mut with_paths = runs.iter().filter(|run| !run.report.paths.is_empty());
    let with_roles = with_paths.all(|run| run.report.has_roles());
    for run in runs {
        for (key, path) in named(&run.report, with_roles) {
            let of_key = same.entry(key.clone()).or_default();
            if of_key.is_empty() {
                keys.push(key);
            }
            of_key.push(path);
        }
    }
    let combined: HashMap<&[&str], PathReport> = keys
        .iter()
        .map(|key| (&key[..], combined(&same[key])))
        .collect();
    let total = |key: &[&str]| (combined[key].total.as_ref()).map_or(0.0, |total| total.value);
    let whole: f64 = (keys.iter().filter(|key| key.len() == 1))
        .map(|key| total(key))
        .sum();
    // From the outermost on by the totals; the names decide between equal ones.
    let order = |key: &Names<'_>| -> Vec<(std::cmp::Reverse<u64>, String)> {
        (1..=key.len())
            .map(|n| {
                let total = total(&key[..n]).max(0.0).to_bits();
                (std::cmp::Reverse(total), key[n - 1].to_owned())
            })
            .collect()
    };
    let mut sorted: Vec<&Names<'_>> = keys.iter().collect();
    sorted.sort_by_cached_key(|key| order(key));
    let place: HashMap<&[&str], u32> = (sorted.iter().zip(0..))
        .map(|(key, at)| (&key[..], at))
        .collect();
    (sorted.iter())
        .map(|key| {
            let around = &key[..key.len() - 1];
            let path = combined[&key[..]].clone();
            PathReport {
                parent: place.get(around).copied(),
                depth: around.len() as u32,
                share: (path.total.as_ref())
                    .filter(|_| whole > 0.0)
                    .map(|total| total.value / whole),
                ..path
            }
        })
        .collect()
}

/// The paths of a run with their names, with roles or without.
fn named(report: &Report, with_roles: bool) -> Vec<(Names<'_>, &PathReport)> {
    let mut named: Vec<(Names<'_>, &PathReport)> = Vec::with_capacity(report.paths.len());
    for path in &report.paths {
        let around = path.parent.and_then(|at| named.get(at as usize));
        let mut names = around.map_or_else(Vec::new, |(names, _)| names.clone());
        if path.threads.is_none() || with_roles {
            names.push(&path.name);
        }
        named.push((names, path));
    }
    named.retain(|(names, _)| !names.is_empty());
    named
}

fn combined(of: &[&PathReport]) -> PathReport {
    let sum = |part: fn(&PathReport) -> Option<f64>| of.iter().map(|path| part(path)).sum();
    let typical = |part: fn(&PathReport) -> Option<f64>| {
        let all: Vec<f64> = of.iter().filter_map(|path| part(path)).collect();
        Some(median_of_runs(&all, LEVEL)?.value)
    };
    let bound = |part: fn(&Interval) -> Option<f64>| {
        of.iter()
            .map(|path| part(&path.total.as_ref()?.interval))
            .sum()
    };
    let value: Option<f64> = sum(|path| path.total.as_ref().map(|total| total.value));
    let total = of[0]
        .total
        .as_ref()
        .zip(value)
        .map(|(first, value)| Estimate {
            value,
            interval: Interval {
                lo: bound(|interval| interval.lo),
                hi: bound(|interval| interval.hi),
            },
            n: of
                .iter()
                .flat_map(|path| &path.total)
                .map(|total| total.n)
                .sum(),
            n_effective: of
                .iter()
                .flat_map(|path| &path.total)
                .map(|total| total.n_effective)
                .sum(),
            ..first.clone()
        });
    PathReport {
        name: of[0].name.clone(),
        threads: of[0].threads,
        parent: None,
        depth: of[0].depth,
        calls: of.iter().map(|path| path.calls).sum(),
        recursive_calls: of.iter().map(|path| path.recursive_calls).sum(),
        is_switched: of.iter().any(|path| path.is_switched),
        total,
        self_ns: sum(|path| path.self_ns),
        off_cpu_ns: sum(|path| path.off_cpu_ns),
        share: None,
        median_ns: typical(|path| path.median_ns),
        p99_ns: typical(|path| path.p99_ns),
        max_ns: of.iter().filter_map(|path| path.max_ns).reduce(f64::max),
    }
}
