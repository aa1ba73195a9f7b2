//! Where benchmarks changed, and whether the newest version differs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use undertick_estimate::fleet::adjusted;
use undertick_estimate::{ChangeOptions, Grouped, change_points, newest};
use undertick_report::history::{
    BenchmarkHistory, History, HistoryChange, HistoryPoint, KIND, NewestVerdict, NewestVersion,
    SCHEMA_VERSION,
};
use undertick_units::{Estimate, Interval};

use crate::store::Row;

/// What is called a change.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Level of the confidence intervals.
    pub level: f64,
    /// Chance of a change where there is none, for each stretch of a benchmark.
    pub alpha: f64,
    /// Share of false ones among the benchmarks whose newest version is called slower or faster.
    pub false_share: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: 0.95,
            alpha: ChangeOptions::default().alpha,
            false_share: 0.05,
        }
    }
}

/// Fewest measurements before the newest version that can judge it.
const FEWEST_BEFORE: usize = 5;

/// One measurement of a benchmark.
#[derive(Clone, Debug)]
struct Measurement {
    unix_s: f64,
    version: String,
    machine: String,
    /// Mean of the logarithms of the processes' times, ns.
    ln_ns: f64,
    processes: u64,
}

/// Analyses the rows of a history, which come in the order of versions.
#[must_use]
pub fn analyze(dir: &Path, rows: &[Row], options: &Options) -> History {
    let machines: Vec<&str> = distinct(rows.iter().map(|row| &*row.machine));
    let versions = distinct(rows.iter().map(|row| &*row.version)).len();
    let mut benchmarks: Vec<BenchmarkHistory> = measurements(rows)
        .into_iter()
        .map(|((suite, name), of)| benchmark(suite, name, &of, &machines, options))
        .collect();
    adjust(&mut benchmarks, options.false_share);
    History {
        schema_version: SCHEMA_VERSION,
        kind: KIND.to_owned(),
        directory: dir.display().to_string(),
        versions: versions as u64,
        machines: machines.len() as u64,
        level: options.level,
        false_share: options.false_share,
        benchmarks,
    }
}

fn distinct<'a>(of: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    of.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The measurements of each benchmark, in the order of the rows: one for each version, machine and
/// time.
fn measurements(rows: &[Row]) -> BTreeMap<(String, String), Vec<Measurement>> {
    let mut all: BTreeMap<(String, String), Vec<Measurement>> = BTreeMap::new();
    for row in rows
        .iter()
        .filter(|row| row.time_ns > 0.0 && row.time_ns.is_finite())
    {
        let of = all
            .entry((row.suite.clone(), row.benchmark.clone()))
            .or_default();
        let ln_ns = row.time_ns.ln();
        let is_same = |of: &&mut Measurement| {
            of.unix_s.total_cmp(&row.unix_s).is_eq()
                && of.version == row.version
                && of.machine == row.machine
        };
        // Rows of one time lie next to each other.
        match of
            .iter_mut()
            .rev()
            .take_while(|of| of.unix_s >= row.unix_s)
            .find(is_same)
        {
            Some(of) => {
                of.processes += 1;
                of.ln_ns += (ln_ns - of.ln_ns) / of.processes as f64;
            }
            None => of.push(Measurement {
                unix_s: row.unix_s,
                version: row.version.clone(),
                machine: row.machine.clone(),
                ln_ns,
                processes: 1,
            }),
        }
    }
    all
}

fn benchmark(
    suite: String,
    name: String,
    of: &[Measurement],
    machines: &[&str],
    options: &Options,
) -> BenchmarkHistory {
    let values: Vec<Grouped> = of
        .iter()
        .map(|of| Grouped {
            group: machines.binary_search(&&*of.machine).unwrap_or(usize::MAX),
            value: of.ln_ns,
        })
        .collect();
    let wanted = ChangeOptions {
        level: options.level,
        alpha: options.alpha,
        ..ChangeOptions::default()
    };
    let changes = change_points(&values, &wanted);
    let starts: Vec<usize> = std::iter::once(0)
        .chain(changes.iter().map(|c| c.at))
        .collect();
    let version = |at: usize| of[at.min(of.len() - 1)].version.clone();
    BenchmarkHistory {
        suite,
        name,
        points: points(of, &values, &starts),
        newest: judged(of, &values, &wanted),
        changes: (changes.iter())
            .map(|change| HistoryChange {
                at: change.at as u64,
                version: version(change.at),
                before: version(change.at - 1),
                within: change.within.map(version),
                ratio: ratio(
                    change.difference,
                    change.interval,
                    of.len(),
                    options.level,
                    "mean logarithm after the change less before it",
                ),
                p: change.p,
            })
            .collect(),
    }
}

/// The measurements with the level of their stretch.
fn points(of: &[Measurement], values: &[Grouped], starts: &[usize]) -> Vec<HistoryPoint> {
    let mut levels: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
    let stretch = |at: usize| starts.partition_point(|&start| start <= at);
    for (at, value) in values.iter().enumerate() {
        let (sum, n) = levels.entry((stretch(at), value.group)).or_default();
        *sum += value.value;
        *n += 1.0;
    }
    let point = |(at, (of, value)): (usize, (&Measurement, &Grouped))| {
        let (sum, n) = levels[&(stretch(at), value.group)];
        HistoryPoint {
            unix_s: of.unix_s,
            version: of.version.clone(),
            machine: of.machine.clone(),
            time_ns: of.ln_ns.exp(),
            processes: of.processes,
            level_ns: (sum / n).exp(),
        }
    };
    of.iter().zip(values).enumerate().map(point).collect()
}

/// The newest version against those before it since the last change, in which it has no part.
fn judged(of: &[Measurement], values: &[Grouped], wanted: &ChangeOptions) -> Option<NewestVersion> {
    let last = &of.last()?.version;
    let n = of.iter().rev().take_while(|of| of.version == *last).count();
    let before = values.len() - n;
    let start = change_points(&values[..before], wanted)
        .last()
        .map_or(0, |change| change.at);
    if before - start < FEWEST_BEFORE {
        return None;
    }
    let found = newest(&values[start..], n, wanted.level)?;
    let p = (2.0 * found.p_above.min(1.0 - found.p_above)).clamp(0.0, 1.0);
    Some(NewestVersion {
        version: last.clone(),
        ratio: ratio(
            found.difference,
            found.interval,
            values.len() - start,
            wanted.level,
            "mean logarithm of the newest version less that of those before it",
        ),
        p,
        adjusted_p: p,
        verdict: NewestVerdict::NoChangeFound,
    })
}

/// Adjusts the chances for the number of benchmarks, and gives the verdicts.
fn adjust(benchmarks: &mut [BenchmarkHistory], false_share: f64) {
    let mut judged: Vec<&mut NewestVersion> = benchmarks
        .iter_mut()
        .filter_map(|of| of.newest.as_mut())
        .collect();
    let chances: Vec<f64> = judged.iter().map(|of| of.p).collect();
    for (of, adjusted_p) in judged.iter_mut().zip(adjusted(&chances)) {
        of.adjusted_p = adjusted_p;
        of.verdict = match of.ratio.value {
            _ if adjusted_p > false_share => NewestVerdict::NoChangeFound,
            ratio if ratio > 1.0 => NewestVerdict::Slower,
            _ => NewestVerdict::Faster,
        };
    }
}

/// A ratio from a difference of logarithms.
fn ratio(difference: f64, interval: [f64; 2], n: usize, level: f64, method: &str) -> Estimate {
    Estimate {
        value: difference.exp(),
        interval: Interval::new(interval[0].exp(), interval[1].exp()),
        level,
        unit: "1".to_owned(),
        method: method.to_owned(),
        n: n as u64,
        n_effective: n as f64,
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
