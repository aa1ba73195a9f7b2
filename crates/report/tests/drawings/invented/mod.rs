//! Reports with invented figures: every shape that a real one may have.

#![allow(dead_code, reason = "each test file uses some of it")]

mod explanation;
mod hostile;
mod interposed;
mod stacks;
mod states;
mod tasks;
mod timeline;

use std::collections::BTreeMap;

use undertick_document::{
    Alternative, ClockSummary, Compensation, Culled, FrequencyReport, Histogram, HostSummary,
    IntervalKind, IntervalReport, Mode, PathReport, Reads, Report, SCHEMA_VERSION,
    SampleStatistics, Settings, ShareOf, Slowed, TakenOff, TraceSummary, Warning,
};
use undertick_units::{Estimate, Interval};

pub use explanation::explanation;
pub use hostile::{NASTY_NAMES, hostile_throughout, nasty};
pub use timeline::second;

pub fn estimate(value: f64, lo: Option<f64>, hi: Option<f64>, method: &str, n: u64) -> Estimate {
    Estimate {
        value,
        interval: Interval { lo, hi },
        level: 0.95,
        unit: "ns".to_owned(),
        method: method.to_owned(),
        n,
        n_effective: n as f64 * 0.7,
        notes: vec![],
    }
}

fn within(value: f64, relative: f64, method: &str, n: u64) -> Estimate {
    let half = value.abs() * relative;
    estimate(
        value,
        Some(value - half),
        Some(value + 1.3 * half),
        method,
        n,
    )
}

/// A distribution with one or two modes and a tail, as bins of eight per octave of steps of 10 ns,
/// as the analysis makes them.
fn histogram(at_ns: f64, n: u64, tail_to_ns: f64) -> Histogram {
    let mut edges = vec![(at_ns * 550.0).round() / 1e3];
    while edges[edges.len() - 1] < tail_to_ns {
        let last = edges[edges.len() - 1];
        edges.push(((last + (last / 8.0).max(10.0)) * 1e3).round() / 1e3);
    }
    let weight = |x: f64| {
        let hump = |centre: f64, width: f64| (-((x / centre).ln() / width).powi(2) / 2.0).exp();
        hump(at_ns, 0.08) + 0.25 * hump(at_ns * 2.1, 0.12) + 2e-4 * (at_ns / x)
    };
    let weights: Vec<f64> = edges
        .windows(2)
        .map(|e| weight((e[0] * e[1]).abs().sqrt()) * (e[1] / e[0]).ln())
        .collect();
    let sum: f64 = weights.iter().sum();
    Histogram {
        unit: "ns".to_owned(),
        counts: weights
            .iter()
            .map(|w| (w / sum * n as f64).round() as u64)
            .collect(),
        edges,
    }
}

/// Half of the samples at 12.5 us, half at 25 us.
pub fn two_modes() -> IntervalReport {
    let mode = |at: f64, share: f64| Mode {
        at,
        lo: at * 0.5,
        hi: at * 2.1,
        share,
        place: None,
        share_interval: Some(Estimate {
            unit: "1".to_owned(),
            ..estimate(
                share,
                Some(share - 0.01),
                Some(share + 0.01),
                "shares",
                1000,
            )
        }),
        valley: None,
    };
    IntervalReport {
        mean: Some(within(19_000.0, 0.01, "batch means", 1000)),
        modes: vec![mode(12_500.0, 0.52), mode(25_000.0, 0.48)],
        ..interval("two paths", 12_000.0, 1000)
    }
}

#[allow(clippy::needless_update, reason = "a new statistic is null here")]
pub fn interval(name: &str, median_ns: f64, n: u64) -> IntervalReport {
    let culled = n / 240;
    let max = median_ns * 900.0;
    let quantile = |q: f64, factor: f64| {
        (
            q.to_string(),
            within(median_ns * factor, 0.02, "order statistics", n),
        )
    };
    IntervalReport {
        name: name.to_owned(),
        count: n,
        unmatched: 0,
        culled: Culled {
            count: culled,
            share: culled as f64 / (n + culled) as f64,
            by: BTreeMap::from([("descheduled".to_owned(), culled)]),
        },
        mean: Some(within(median_ns * 1.13, 0.006, "batch means", n)),
        median: Some(within(median_ns, 0.003, "order statistics", n)),
        quantiles: BTreeMap::from([
            quantile(0.9, 1.9),
            quantile(0.99, 2.6),
            quantile(0.999, 31.0),
        ]),
        statistics: SampleStatistics {
            min: Some(median_ns * 0.8),
            max: Some(max),
            sd: Some(median_ns * 0.44),
            ..SampleStatistics::default()
        },
        compensation: Compensation {
            method: "calibrated".to_owned(),
            cost: Some(estimate(
                20.6,
                Some(20.1),
                Some(21.4),
                "dosed and empty spans",
                2_000,
            )),
            k: None,
            inner_records: Some(0.0),
        },
        of_this_run: None,
        by_run: vec![],
        histogram: histogram(median_ns, n, max),
        modes: vec![],
        kind: IntervalKind::Nested,
        reads: Reads::Plain,
        unmatched_starts: 0,
        unmatched_ends: 0,
        unmatched_by_loss: 0,
        negative: 0,
        evidence: Vec::new(),
        unexplained: None,
        on_cpu_ns: None,
        off_cpu_ns: None,
        taken_off: TakenOff::default(),
        before_culling: Alternative {
            count: n + culled,
            mean: Some(within(median_ns * 1.94, 0.3, "batch means", n + culled)),
            median: Some(within(
                median_ns * 1.004,
                0.003,
                "order statistics",
                n + culled,
            )),
            histogram: (culled > 0).then(|| histogram(median_ns * 1.02, n + culled, 2.0 * max)),
        },
        uncompensated: Alternative {
            count: n,
            mean: Some(within(median_ns * 1.13 + 20.6, 0.006, "batch means", n)),
            median: Some(within(median_ns + 20.6, 0.003, "order statistics", n)),
            histogram: None,
        },
        share_of: None,
        total_ns: Some(median_ns * 1.13 * n as f64),
        granularity_ns: 10.015,
        median_steps: Some((median_ns + 20.6) / 10.015),
        notes: vec![],
        sampled: None,
        slowed: None,
        repeated: None,
        across_hosts: None,
    }
}

/// An interval that was opened and never closed.
pub fn empty_interval(name: &str) -> IntervalReport {
    IntervalReport {
        count: 0,
        unmatched: 3,
        unmatched_starts: 3,
        culled: Culled::default(),
        mean: None,
        median: None,
        quantiles: BTreeMap::new(),
        statistics: SampleStatistics::default(),
        compensation: Compensation {
            method: "none".to_owned(),
            cost: None,
            k: None,
            inner_records: None,
        },
        histogram: Histogram::default(),
        evidence: Vec::new(),
        unexplained: None,
        on_cpu_ns: None,
        off_cpu_ns: None,
        taken_off: TakenOff::default(),
        before_culling: Alternative::default(),
        uncompensated: Alternative::default(),
        total_ns: Some(0.0),
        median_steps: None,
        ..interval(name, 100.0, 1)
    }
}

fn frequency(interval: &IntervalReport) -> FrequencyReport {
    let per_second = interval.count as f64 / 2.31;
    FrequencyReport {
        name: interval.name.clone(),
        count: interval.count,
        per_second: (interval.count > 0).then(|| Estimate {
            unit: "1/s".to_owned(),
            ..within(per_second, 0.01, "batch counts", interval.count)
        }),
        share_of: interval.share_of.clone(),
    }
}

pub fn report(intervals: Vec<IntervalReport>) -> Report {
    let events =
        (intervals.iter()).fold(0, |sum: u64, i| sum.wrapping_add(i.count.wrapping_mul(2)));
    Report {
        schema_version: SCHEMA_VERSION,
        settings: Settings {
            confidence: 0.95,
            cull: "auto".to_owned(),
            compensate: "auto".to_owned(),
            table: None,
            scope: Default::default(),
        },
        runs: None,
        runs_within_ns: None,
        trace: TraceSummary {
            events,
            lost: 0,
            threads: 3,
            clock: ClockSummary {
                name: "tsc".to_owned(),
                ns_per_tick: 1.0 / 2.596_13,
                granularity_ticks: 26.0,
                granularity_ns: 10.015,
                read_cost_ns_median: 12.7,
                rate_source: "measured".to_owned(),
                rate_error_ppb: 1_715.0,
            },
            perturbation: None,
            written: events,
            received: events,
            lost_by: BTreeMap::new(),
            processes: 2,
            command: vec![
                "./inserts".to_owned(),
                "--rows".to_owned(),
                "200000".to_owned(),
            ],
            host: HostSummary {
                name: "bench-3".to_owned(),
                kernel: "6.18.44".to_owned(),
                arch: "x86_64".to_owned(),
                cpus: 2,
                cpu_model: "AMD EPYC".to_owned(),
            },
            started_unix_ns: 1_772_323_203_000_000_000,
            duration_ns: Some(2_410_000_000),
            events_span_ns: Some(2.31e9),
            kept_because: Vec::new(),
            descheduled: "any_deschedule".to_owned(),
        },
        paths: paths(&intervals),
        states: states::states(&intervals),
        stacks: stacks::stacks(&intervals),
        locks: interposed::locks(&intervals),
        allocations: interposed::allocations(&intervals),
        tasks: tasks::tasks(&intervals),
        frequencies: intervals.iter().map(frequency).collect(),
        intervals,
        lines: vec![],
        passes: vec![],
        warnings: vec![],
    }
}

/// A tree in which each interval but the first lies in an earlier one.
pub fn paths(intervals: &[IntervalReport]) -> Vec<PathReport> {
    // A path comes after the one around it and before those of later siblings.
    fn add(
        at: usize,
        parent: Option<u32>,
        depth: u32,
        all: &[IntervalReport],
        paths: &mut Vec<PathReport>,
    ) {
        let Some(interval) = all.get(at) else { return };
        let here = paths.len() as u32;
        // A third of the time of the one around it.
        let total_ns = 1.8e9 / 3_f64.powi(depth as i32) + 1e3;
        paths.push(PathReport {
            name: interval.name.clone(),
            threads: None,
            parent,
            depth,
            calls: interval.count,
            recursive_calls: u64::from(at % 5 == 3).min(interval.count),
            is_switched: false,
            total: Some(within(total_ns, 0.02, "sum of all calls", interval.count)),
            self_ns: Some(total_ns / 3.0),
            off_cpu_ns: Some(total_ns / 7.0),
            share: Some(total_ns / 1.9e9),
            median_ns: interval.median.as_ref().map(|median| median.value),
            p99_ns: interval.quantiles.get("0.99").map(|p99| p99.value),
            max_ns: interval.statistics.max,
        });
        add(2 * at + 1, Some(here), depth + 1, all, paths);
        add(2 * at + 2, Some(here), depth + 1, all, paths);
    }
    let mut paths = Vec::new();
    add(0, None, 0, intervals, &mut paths);
    paths
}

pub fn one() -> Report {
    report(vec![interval("work", 1_820.0, 48_211)])
}

/// Sixty spans in each other, and sixty-six small ones inside each of them: 3 954 paths.
pub fn deep() -> Report {
    const DEPTH: u32 = 60;
    let mut report = one();
    let work = report.paths[0].clone();
    let path = |name: String, depth: u32, total_ns: f64| PathReport {
        name,
        parent: depth.checked_sub(1),
        depth,
        total: Some(within(total_ns, 0.02, "sum of all calls", work.calls)),
        self_ns: Some(total_ns / 100.0),
        off_cpu_ns: Some(0.0),
        share: Some(total_ns / 1e9),
        ..work.clone()
    };
    report.paths = (0..DEPTH)
        .map(|depth| {
            path(
                format!("level {depth}"),
                depth,
                1e9 - 1e7 * f64::from(depth),
            )
        })
        .collect();
    for depth in (1..DEPTH).rev() {
        let small = (0..66).map(|at| {
            let total_ns = if at < 3 { 2.9e6 } else { 1e4 };
            path(format!("small {at} of {depth}"), depth, total_ns)
        });
        report.paths.extend(small);
    }
    report
}

/// A database's stages, with every possible remark.
pub fn six() -> Report {
    let mut prepare = interval("prepare", 8_420.0, 200_000);
    prepare.share_of = Some(ShareOf {
        of: "transaction".to_owned(),
        share: Some(Estimate {
            unit: "1".to_owned(),
            ..within(0.124, 0.02, "ratio of batch sums", 200_000)
        }),
    });
    let mut bind = interval("bind", 61.0, 1_200_000);
    bind.notes
        .push("the median is 8 steps of the clock: use the mean".to_owned());
    let mut step = interval("step", 3_310.0, 200_000);
    step.mean.as_mut().unwrap().notes.push(
        "successive samples are correlated (lag 1: 0.41); the interval allows for it".to_owned(),
    );
    step.unmatched = 3;
    step.unmatched_starts = 2;
    step.unmatched_ends = 1;
    step.unmatched_by_loss = 2;
    let commit = interval("commit", 1_240_000.0, 2_000);
    let compress = interval("compress", 46_000_000.0, 24);
    let mut commit = commit;
    commit.slowed = Some(Slowed {
        what: "points".to_owned(),
        by: within(120.0, 0.25, "adjacent halves", 4_000),
        share: Estimate {
            unit: "1".to_owned(),
            ..within(0.021, 0.25, "adjacent halves", 4_000)
        },
        per_point: Some(within(30.0, 0.25, "adjacent halves", 4_000)),
        points: 4.0,
        samples: [12_000, 12_345],
        long: [3, 4],
    });
    let mut gone = empty_interval("rollback");
    gone.notes.push("opened 3 times, never closed".to_owned());
    let mut report = report(vec![commit, compress, prepare, step, bind, gone]);
    report.settings.table = Some("stages.toml".to_owned());
    report.trace.lost = 1_244;
    report.trace.written += 1_244;
    report.trace.lost_by =
        BTreeMap::from([("dropped".to_owned(), 1_244), ("overwritten".to_owned(), 0)]);
    report.trace.perturbation = Some(Estimate {
        unit: "1".to_owned(),
        ..within(0.021, 0.3, "points switched at random", 120)
    });
    report.warnings = vec![
        Warning {
            code: "lost_events".to_owned(),
            text: "1 244 events were lost because a ring was full: record with a larger --budget, \
                   or with fewer events"
                .to_owned(),
        },
        Warning {
            code: "coarse_clock".to_owned(),
            text: "the clock moves in steps of 10 ns; medians below 200 ns are known to a step \
                   only, use their means"
                .to_owned(),
        },
    ];
    report
}

/// As many intervals as a large program has, with sizes over eight decades.
pub fn many(n: usize) -> Report {
    let modules = [
        "storage",
        "network::http",
        "parser",
        "scheduler",
        "cache",
        "compress",
    ];
    let intervals = (0..n)
        .map(|i| {
            let size = 10_f64.powf(1.2 + (i * 37 % 101) as f64 / 13.0);
            let name = format!(
                "{}::{}_{i}",
                modules[i % modules.len()],
                ["read", "write", "flush"][i % 3]
            );
            match i % 29 {
                28 => empty_interval(&name),
                _ => interval(&name, size, 30 + (i as u64 * 7_919) % 900_000),
            }
        })
        .collect();
    report(intervals)
}
