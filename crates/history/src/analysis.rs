//! Where benchmarks changed, and whether the newest version differs.
//!
//! The unit is the version: machines that measure the same version run the same program, so what is
//! particular to it (how the linker placed its functions, say) moves all of them. The value of a version
//! is the mean over its machines, and versions that the same machines measured have a mean of their own.

mod newest;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use undertick_estimate::{ChangeOptions, Grouped, change_points};
use undertick_report::history::{
    BenchmarkHistory, History, HistoryChange, HistoryPoint, KIND, SCHEMA_VERSION,
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
    /// Share by which the newest version may be slower.
    pub allow: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: 0.95,
            alpha: ChangeOptions::default().alpha,
            false_share: 0.05,
            allow: 0.0,
        }
    }
}

/// A benchmark in a version on a machine: all its processes.
#[derive(Clone, Debug)]
struct Measurement {
    unix_s: f64,
    /// Number of the version in the order of the history.
    version: usize,
    machine: usize,
    /// Mean of the logarithms of the processes' times, ns.
    ln_ns: f64,
    processes: u64,
}

/// The names of versions, in their order, and of machines.
struct Names<'a> {
    versions: Vec<&'a str>,
    machines: Vec<&'a str>,
}

/// Analyses the rows of a history, which come in the order of versions, for the benchmarks that are
/// wanted by name. The newest version is that of all.
#[must_use]
pub fn analyze(
    dir: &Path,
    rows: &[Row],
    is_wanted: impl Fn(&str) -> bool,
    options: &Options,
) -> History {
    let mut seen = BTreeSet::new();
    let versions = rows.iter().map(|row| &*row.version);
    let names = Names {
        // A version that is measured again stays where it was first.
        versions: versions.filter(|version| seen.insert(*version)).collect(),
        machines: (rows.iter().map(|row| &*row.machine))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
    };
    let wanted = rows.iter().filter(|row| is_wanted(&row.benchmark));
    let all: Vec<_> = measurements(wanted, &names).into_iter().collect();
    let mut benchmarks = in_threads(&all, |((suite, name), of)| {
        benchmark(suite, name, of, &names, options)
    });
    newest::adjust(&mut benchmarks, options);
    History {
        schema_version: SCHEMA_VERSION,
        kind: KIND.to_owned(),
        directory: dir.display().to_string(),
        versions: names.versions.len() as u64,
        machines: names.machines.len() as u64,
        newest: names.versions.last().map(|version| (*version).to_owned()),
        level: options.level,
        false_share: options.false_share,
        allow: options.allow,
        benchmarks,
    }
}

/// Applies a function to each, on all CPUs: permutations take time.
fn in_threads<T: Sync, U: Send>(all: &[T], apply: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = all.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = (all.chunks(each))
            .map(|part| scope.spawn(|| part.iter().map(&apply).collect::<Vec<U>>()))
            .collect();
        let joined = parts.into_iter().map(|part| part.join());
        joined
            .flat_map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The measurements of each benchmark, in the order of the versions.
fn measurements<'a>(
    rows: impl Iterator<Item = &'a Row>,
    names: &Names<'_>,
) -> BTreeMap<(String, String), Vec<Measurement>> {
    let numbers = |names: &[&str]| -> HashMap<String, usize> {
        let numbered = names.iter().enumerate();
        numbered
            .map(|(number, name)| ((*name).to_owned(), number))
            .collect()
    };
    let (versions, machines) = (numbers(&names.versions), numbers(&names.machines));
    let mut all: BTreeMap<(String, String), BTreeMap<(usize, usize), Measurement>> =
        BTreeMap::new();
    for row in rows.filter(|row| row.time_ns > 0.0 && row.time_ns.is_finite()) {
        let (version, machine) = (versions[&row.version], machines[&row.machine]);
        let of = all
            .entry((row.suite.clone(), row.benchmark.clone()))
            .or_default();
        let of = of.entry((version, machine)).or_insert_with(|| Measurement {
            unix_s: row.unix_s,
            version,
            machine,
            ln_ns: 0.0,
            processes: 0,
        });
        of.processes += 1;
        of.ln_ns += (row.time_ns.ln() - of.ln_ns) / of.processes as f64;
    }
    (all.into_iter())
        .map(|(name, of)| (name, of.into_values().collect()))
        .collect()
}

/// The measurements as one value for each version.
struct Versions {
    /// Number of the version of each value.
    versions: Vec<usize>,
    /// Values, grouped by the machines that measured them.
    values: Vec<Grouped>,
}

impl Versions {
    fn of_measurements(of: &[Measurement]) -> Self {
        let mut found = Self {
            versions: Vec::new(),
            values: Vec::new(),
        };
        let mut sets: HashMap<Vec<usize>, usize> = HashMap::new();
        for of_version in of.chunk_by(|a, b| a.version == b.version) {
            let machines = of_version.iter().map(|of| of.machine).collect();
            let next = sets.len();
            let group = *sets.entry(machines).or_insert(next);
            let sum: f64 = of_version.iter().map(|of| of.ln_ns).sum();
            found.versions.push(of_version[0].version);
            found.values.push(Grouped {
                group,
                value: sum / of_version.len() as f64,
            });
        }
        found
    }
}

fn benchmark(
    suite: &str,
    name: &str,
    of: &[Measurement],
    names: &Names<'_>,
    options: &Options,
) -> BenchmarkHistory {
    let by_version = Versions::of_measurements(of);
    let wanted = ChangeOptions {
        level: options.level,
        alpha: options.alpha,
        ..ChangeOptions::default()
    };
    let changes = change_points(&by_version.values, &wanted);
    let number = |at: usize| by_version.versions[at.min(by_version.versions.len() - 1)];
    let version = |at: usize| names.versions[number(at)].to_owned();
    let starts: Vec<usize> = changes.iter().map(|change| number(change.at)).collect();
    let (newest, not_judged) = newest::judge(of, &by_version, names, &wanted, options);
    BenchmarkHistory {
        suite: suite.to_owned(),
        name: name.to_owned(),
        points: points(of, &starts, names),
        newest,
        not_judged,
        changes: (changes.iter())
            .map(|change| HistoryChange {
                at: of.partition_point(|of| of.version < number(change.at)) as u64,
                version: version(change.at),
                before: version(change.at - 1),
                within: change.within.map(version),
                ratio: ratio(
                    change.difference,
                    change.interval,
                    by_version.values.len(),
                    options.level,
                    "mean logarithm of the versions after the change less that of those before it",
                ),
                p: change.p,
            })
            .collect(),
    }
}

/// The measurements with the level of their stretch; a stretch begins at each of these versions.
fn points(of: &[Measurement], starts: &[usize], names: &Names<'_>) -> Vec<HistoryPoint> {
    let key = |of: &Measurement| {
        let stretch = starts.partition_point(|&start| start <= of.version);
        (stretch, of.machine)
    };
    let mut levels: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
    for of in of {
        let (sum, n) = levels.entry(key(of)).or_default();
        *sum += of.ln_ns;
        *n += 1.0;
    }
    let point = |of: &Measurement| {
        let (sum, n) = levels[&key(of)];
        HistoryPoint {
            unix_s: of.unix_s,
            version: names.versions[of.version].to_owned(),
            machine: names.machines[of.machine].to_owned(),
            time_ns: of.ln_ns.exp(),
            processes: of.processes,
            level_ns: (sum / n).exp(),
        }
    };
    of.iter().map(point).collect()
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
