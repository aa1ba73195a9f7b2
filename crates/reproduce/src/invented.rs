//! Invented figures, for tests of what is derived from them.

use undertick_document::{
    Alternative, ClockSummary, Compensation, Culled, Histogram, HostSummary, IntervalKind,
    IntervalReport, LineReport, Reads, Repeated, Report, Settings, TakenOff, TraceSummary,
};
use undertick_units::{Estimate, Interval};

pub(super) fn about(ns: f64) -> Estimate {
    Estimate {
        value: ns,
        interval: Interval {
            lo: Some(ns * 0.9),
            hi: Some(ns * 1.1),
        },
        level: 0.95,
        unit: "ns".to_owned(),
        method: "invented".to_owned(),
        n: 100,
        n_effective: 100.0,
        notes: Vec::new(),
    }
}

fn map(with: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    let owned = with.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    owned.collect()
}

/// A step or an interval of a script.
pub(super) fn interval(
    script: &str,
    with: &[(&str, &str)],
    process: &str,
    step: Option<u32>,
    name: &str,
    ns: f64,
) -> IntervalReport {
    IntervalReport {
        name: name.to_owned(),
        count: 100,
        unmatched: 0,
        culled: Culled::default(),
        evidence: Vec::new(),
        unexplained: None,
        mean: Some(about(ns)),
        median: None,
        quantiles: Default::default(),
        statistics: Default::default(),
        compensation: Compensation {
            method: "null step".to_owned(),
            cost: None,
            k: None,
            inner_records: None,
        },
        of_this_run: None,
        by_run: Vec::new(),
        histogram: Histogram::default(),
        modes: Vec::new(),
        kind: IntervalKind::Nested,
        reads: Reads::Plain,
        unmatched_starts: 0,
        unmatched_ends: 0,
        unmatched_by_loss: 0,
        negative: 0,
        on_cpu_ns: None,
        off_cpu_ns: None,
        taken_off: TakenOff::default(),
        before_culling: Alternative::default(),
        uncompensated: Alternative::default(),
        share_of: None,
        total_ns: Some(ns),
        granularity_ns: 10.0,
        median_steps: None,
        notes: Vec::new(),
        sampled: None,
        slowed: None,
        across_hosts: None,
        repeated: Some(Repeated {
            script: script.to_owned(),
            title: String::new(),
            parameters: map(with),
            placement: String::new(),
            process: process.to_owned(),
            step,
            includes: String::new(),
            typical: about(ns),
            typical_is: "mean".to_owned(),
            largest_per_second: None,
            largest_per_minute: None,
            repetitions: Vec::new(),
        }),
    }
}

/// A straight line.
pub(super) fn line(
    script: &str,
    with: &[(&str, &str)],
    at_0: f64,
    slope: f64,
    p: f64,
) -> LineReport {
    LineReport {
        name: "line".to_owned(),
        script: script.to_owned(),
        parameters: map(with),
        of: "it".to_owned(),
        against: "x".to_owned(),
        per: 1.0,
        slope: about(slope),
        intercept: about(at_0),
        points: 5,
        lack_of_fit_p: Some(p),
        worst_at: Some(16.0),
        worst_share: Some(0.3),
        includes: String::new(),
    }
}

pub(super) fn report(intervals: Vec<IntervalReport>, lines: Vec<LineReport>) -> Report {
    Report {
        schema_version: 1,
        settings: Settings {
            confidence: 0.95,
            cull: "none".to_owned(),
            compensate: "null step".to_owned(),
            table: None,
            scope: Default::default(),
        },
        runs: None,
        runs_within_ns: None,
        trace: TraceSummary {
            events: 0,
            lost: 0,
            threads: 0,
            clock: ClockSummary {
                name: "tsc".to_owned(),
                ns_per_tick: 1.0,
                granularity_ticks: 10.0,
                granularity_ns: 10.0,
                read_cost_ns_median: 10.0,
                rate_source: String::new(),
                rate_error_ppb: 0.0,
            },
            perturbation: None,
            written: 0,
            received: 0,
            lost_by: Default::default(),
            processes: 0,
            command: Vec::new(),
            host: HostSummary {
                name: String::new(),
                kernel: String::new(),
                arch: String::new(),
                cpus: 2,
                cpu_model: String::new(),
            },
            started_unix_ns: 0,
            duration_ns: None,
            events_span_ns: None,
            kept_because: Vec::new(),
            descheduled: String::new(),
        },
        intervals,
        paths: Vec::new(),
        states: Vec::new(),
        stacks: None,
        locks: None,
        allocations: None,
        tasks: None,
        frequencies: Vec::new(),
        lines,
        passes: Vec::new(),
        warnings: Vec::new(),
    }
}
