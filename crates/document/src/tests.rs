use std::collections::BTreeMap;

use undertick_units::Interval;

use super::*;

fn estimate(value: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval {
            lo: Some(value - 1.0),
            hi: None,
        },
        level: 0.95,
        unit: "ns".into(),
        method: "batch means".into(),
        n: 10,
        n_effective: 7.5,
        notes: vec![],
    }
}

fn report() -> Report {
    Report {
        schema_version: SCHEMA_VERSION,
        settings: Settings {
            confidence: 0.95,
            cull: "auto".into(),
            compensate: "auto".into(),
            table: None,
            scope: Scope::ThisRun,
        },
        runs: None,
        runs_within_ns: None,
        trace: TraceSummary {
            events: 4,
            lost: 1,
            threads: 1,
            clock: ClockSummary {
                name: "tsc".into(),
                ns_per_tick: 0.4,
                granularity_ticks: 26.0,
                granularity_ns: 10.4,
                read_cost_ns_median: 8.5,
                rate_source: "cpuid".into(),
                rate_error_ppb: 100.0,
            },
            perturbation: None,
            written: 5,
            received: 4,
            lost_by: BTreeMap::from([("dropped".into(), 1)]),
            processes: 1,
            command: vec!["./a".into()],
            host: HostSummary {
                name: "h".into(),
                kernel: "6.18".into(),
                arch: "x86_64".into(),
                cpus: 2,
                cpu_model: "m".into(),
            },
            started_unix_ns: 7,
            duration_ns: Some(9),
            events_span_ns: Some(8.5),
            kept_because: Vec::new(),
            descheduled: "any_deschedule".into(),
        },
        intervals: vec![IntervalReport {
            name: "step".into(),
            count: 1,
            unmatched: 2,
            culled: Culled {
                count: 1,
                share: 0.5,
                by: BTreeMap::from([("descheduled".into(), 1)]),
            },
            mean: Some(estimate(5.0)),
            median: None,
            quantiles: BTreeMap::from([("0.9".into(), estimate(6.0))]),
            statistics: SampleStatistics {
                min: Some(-1.0),
                max: Some(6.0),
                ..SampleStatistics::default()
            },
            compensation: Compensation {
                method: "calibrated".into(),
                cost: Some(estimate(2.0)),
                k: None,
                inner_records: Some(0.0),
            },
            of_this_run: None,
            by_run: vec![],
            histogram: Histogram {
                unit: "ns".into(),
                edges: vec![0.0, 10.0],
                counts: vec![1],
            },
            modes: vec![Mode {
                at: 5.0,
                lo: 0.0,
                hi: 10.0,
                share: 1.0,
                place: Some(estimate(5.0)),
                share_interval: None,
                valley: Some(Valley {
                    lo: 7.0,
                    hi: 8.0,
                    depth: 0.25,
                    p_value: 1e-3,
                }),
            }],
            kind: IntervalKind::Nested,
            reads: Reads::Ordered,
            unmatched_starts: 2,
            unmatched_ends: 0,
            unmatched_by_loss: 1,
            negative: 0,
            evidence: Vec::new(),
            unexplained: None,
            before_culling: Alternative::default(),
            uncompensated: Alternative::default(),
            share_of: Some(ShareOf {
                of: "loop".into(),
                share: None,
            }),
            total_ns: Some(5.0),
            on_cpu_ns: Some(4.0),
            off_cpu_ns: Some(1.0),
            taken_off: TakenOff {
                count: 1,
                time_ns: 2.5,
            },
            granularity_ns: 10.4,
            median_steps: Some(1.0),
            notes: vec![],
            sampled: Some(Sampled {
                executions: 16,
                recorded: 2,
                rate: Some(8),
                total: Some(estimate(80.0)),
            }),
            slowed: None,
            repeated: None,
            across_hosts: None,
        }],
        paths: Vec::new(),
        stacks: None,
        locks: None,
        allocations: None,
        tasks: None,
        states: Vec::new(),
        frequencies: vec![FrequencyReport {
            name: "step".into(),
            per_second: Some(estimate(3.0)),
            share_of: None,
            count: 4,
        }],
        lines: vec![],
        passes: vec![],
        warnings: vec![Warning {
            code: "lost_events".into(),
            text: "1 event was lost".into(),
        }],
    }
}

#[test]
fn reads_back_what_it_wrote() {
    let text = serde_json::to_string(&report()).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report());
}

/// A mode as earlier versions may have written it is still readable.
#[test]
fn a_mode_without_intervals_is_read() {
    let text = r#"{"at": 7.0, "lo": 1.0, "hi": 9.0, "share": 0.5}"#;
    let mode: Mode = serde_json::from_str(text).unwrap();
    assert_eq!((mode.at, mode.place, mode.valley), (7.0, None, None));
}

/// Names that external programs rely on (version 1).
#[test]
fn keeps_the_published_names() {
    let json = serde_json::to_value(report()).unwrap();
    for pointer in [
        "/schema_version",
        "/trace/events",
        "/trace/lost",
        "/trace/threads",
        "/trace/clock/granularity_ns",
        "/trace/perturbation",
        "/intervals/0/name",
        "/intervals/0/count",
        "/intervals/0/unmatched",
        "/intervals/0/culled/count",
        "/intervals/0/culled/share",
        "/intervals/0/culled/by/descheduled",
        "/intervals/0/on_cpu_ns",
        "/intervals/0/off_cpu_ns",
        "/intervals/0/taken_off/count",
        "/intervals/0/taken_off/time_ns",
        "/intervals/0/mean/value",
        "/intervals/0/mean/interval/0",
        "/intervals/0/median",
        "/intervals/0/quantiles/0.9/n_effective",
        "/intervals/0/min",
        "/intervals/0/max",
        "/intervals/0/sd",
        "/intervals/0/compensation/method",
        "/intervals/0/compensation/cost/value",
        "/intervals/0/compensation/k",
        "/intervals/0/histogram/unit",
        "/intervals/0/histogram/edges",
        "/intervals/0/histogram/counts",
        "/intervals/0/modes/0/at",
        "/intervals/0/modes/0/share",
        "/intervals/0/modes/0/share_interval",
        "/intervals/0/modes/0/place/interval/0",
        "/intervals/0/modes/0/valley/p_value",
        "/frequencies/0/name",
        "/frequencies/0/per_second/value",
        "/frequencies/0/share_of",
        "/warnings/0/code",
        "/warnings/0/text",
    ] {
        assert!(json.pointer(pointer).is_some(), "{pointer} is missing");
    }
    assert_eq!(
        json.pointer("/intervals/0/mean/interval/1").unwrap(),
        &serde_json::Value::Null
    );
    assert_eq!(json.pointer("/intervals/0/kind").unwrap(), "nested");
}

#[test]
fn distributions_of_states_without_a_count_for_each_bin_are_taken_out() {
    let state = |counts: &[u64]| StateReport {
        conditions: Vec::new(),
        share: Estimate {
            interval: Interval::new(0.5, 0.5),
            unit: "1".into(),
            ..estimate(0.5)
        },
        median: None,
        counts: counts.to_vec(),
    };
    let after = |edges_ns: &[f64], counts: [&[u64]; 2]| {
        let mut report = report();
        report.states.push(PathStates {
            path: 0,
            looked_at: 10,
            explained: 0.5,
            edges_ns: edges_ns.to_vec(),
            states: counts.map(state).to_vec(),
        });
        let states = without_impossible(report).states.remove(0);
        let counts: Vec<Vec<u64>> = states.states.into_iter().map(|of| of.counts).collect();
        (states.edges_ns, counts)
    };
    let edges = [1.0, 2.0, 4.0];
    let kept = after(&edges, [&[1, 2], &[3, 4]]);
    assert_eq!(kept, (edges.to_vec(), vec![vec![1, 2], vec![3, 4]]));
    let nothing = (Vec::new(), vec![Vec::new(), Vec::new()]);
    for (edges, counts) in [
        (&[] as &[f64], [&[][..], &[]]),
        (&edges, [&[1, 2], &[3]]),
        (&edges, [&[1, 2], &[3, 40]]),
        (&edges, [&[1, u64::MAX], &[3, 4]]),
        (&[1.0, 1.0, 4.0], [&[1, 2], &[3, 4]]),
        (&[1.0, f64::INFINITY], [&[1], &[3]]),
        (&[2.0, f64::NAN, 4.0], [&[1, 2], &[3, 4]]),
    ] {
        assert_eq!(after(edges, counts), nothing, "{edges:?} {counts:?}");
    }
}
