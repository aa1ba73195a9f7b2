//! A trace of several threads, several million events: the report does not depend on
//! how many CPUs made it, and its exact figures are those that were put in.

use std::collections::BTreeMap;
use std::path::Path;

use undertick_analyze::{Analysis, Cull, Options, Table, analyze_on};
use undertick_report::document::Report;
use undertick_ring::{DeschedFlag, Kind, Record};
use undertick_trace::made::{self, Made, MadeRing};
use undertick_trace::manifest::{Clock, Host, Name};
use undertick_trace::read::Trace;

mod support;

/// What was put in, by interval: samples, sum, least, greatest, unmatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Truth {
    n: u64,
    sum: i64,
    least: i64,
    most: i64,
    unmatched: u64,
}

impl Truth {
    const NOTHING: Self = Self {
        n: 0,
        sum: 0,
        least: i64::MAX,
        most: i64::MIN,
        unmatched: 0,
    };

    fn add(&mut self, ticks: i64) {
        self.n += 1;
        self.sum += ticks;
        self.least = self.least.min(ticks);
        self.most = self.most.max(ticks);
    }
}

/// Event numbers of the program.
const OUTER: u16 = 1;
const INNER: u16 = 2;
const SENT: u16 = 10;
const GOT: u16 = 11;
const NEVER_ENDS: u16 = 20;

struct Program {
    rings: Vec<MadeRing>,
    truth: BTreeMap<&'static str, Truth>,
    lost: u64,
}

fn record(ts: i64, event: u16, kind: Kind, payload: u32) -> Record {
    Record {
        ts: ts as u64,
        payload,
        event,
        cpu: 0,
        kind,
        descheduled: DeschedFlag::No,
    }
}

/// Each thread works in turns of 1000 ticks: a span with one inside it, now and then a
/// message to the next thread, a begin without an end, a gap over an end.
fn program(threads: usize, turns: i64) -> Program {
    let mut truth: BTreeMap<&str, Truth> = ["outer", "inner", "sent", "never ends"]
        .map(|name| (name, Truth::NOTHING))
        .into();
    let mut lost = 0;
    // Time, record; sorted at the end, as messages come from another thread.
    let mut events: Vec<Vec<(i64, Record)>> = vec![Vec::new(); threads];
    for thread in 0..threads {
        let mut mix = 0x9e37_79b9_u64.wrapping_mul(thread as u64 + 1);
        for turn in 0..turns {
            mix = mix
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99_991);
            let at = turn * 1000 + thread as i64;
            let (inner, around) = ((mix >> 40) as i64 % 60 + 20, (mix >> 50) as i64 % 30 + 10);
            let own = &mut events[thread];
            own.push((at, record(at, OUTER, Kind::Begin, 0)));
            let begin = at + around;
            own.push((begin, record(begin, INNER, Kind::Begin, 0)));
            let end = begin + inner;
            own.push((end, record(end, INNER, Kind::End, 0)));
            truth.get_mut("inner").unwrap().add(inner);
            let done = end + 2 * around;
            if turn % 1009 == 1008 {
                // The end is lost: its begin stays without one.
                let gap = record(1, 0, Kind::Continuation, Record::GAP);
                own.push((done + 1, gap));
                own.push((done + 2, record(done + 2, 30, Kind::Instant, 0)));
                lost += 1;
                truth.get_mut("outer").unwrap().unmatched += 1;
            } else {
                own.push((done, record(done, OUTER, Kind::End, 0)));
                truth.get_mut("outer").unwrap().add(done - at);
            }
            if turn % 7 == 3 && threads > 1 {
                let key = (thread as u32) << 24 | turn as u32;
                let (sent, got) = (at + 300, at + 300 + (mix >> 45) as i64 % 90 - 10);
                own.push((sent, record(sent, SENT, Kind::Instant, key)));
                if turn % 77 == 3 {
                    truth.get_mut("sent").unwrap().unmatched += 1;
                } else {
                    let next = &mut events[(thread + 1) % threads];
                    next.push((got, record(got, GOT, Kind::Instant, key)));
                    truth.get_mut("sent").unwrap().add(got - sent);
                }
            }
            if turn % 5003 == 17 {
                let stray = at + 500;
                let record = record(stray, NEVER_ENDS, Kind::Begin, 0);
                events[thread].push((stray, record));
                truth.get_mut("never ends").unwrap().unmatched += 1;
            }
        }
    }
    let rings = events.into_iter().enumerate().map(|(thread, mut events)| {
        events.sort_by_key(|(at, _)| *at);
        MadeRing {
            pid: 100 + thread as i32 / 3,
            tid: 1000 + thread as i32,
            name: String::new(),
            records: events.into_iter().map(|(_, record)| record).collect(),
            true_ns: Vec::new(),
        }
    });
    Program {
        rings: rings.collect(),
        truth,
        lost,
    }
}

fn written(dir: &Path, name: &str, program: &Program) -> Trace {
    let names = [
        (OUTER, "outer"),
        (INNER, "inner"),
        (NEVER_ENDS, "never ends"),
    ];
    let made = Made {
        host: Host {
            name: "made".into(),
            kernel: String::new(),
            arch: String::new(),
            cpus: 8,
            cpu_model: String::new(),
        },
        command: Vec::new(),
        clock: Clock {
            name: "of 1 ns".into(),
            ticks_per_second_numerator: 1_000_000_000,
            ticks_per_second_denominator: 1,
            rate_source: "definition".into(),
            rate_error_ppb: 0.0,
            granularity_ticks: 1,
            read_cost_ns_median: 0.0,
            anchors: Vec::new(),
            across_cpus: None,
        },
        names: names
            .map(|(event, name)| Name {
                pid: None,
                event,
                name: name.into(),
            })
            .into(),
        started_unix_ns: 0,
        duration_ns: 1,
        warnings: Vec::new(),
    };
    let path = dir.join(name);
    made::write(&path, made, &program.rings, |_| {}).unwrap();
    Trace::open(&path, |_| {}).unwrap()
}

fn as_pushed(trace: &Trace, options: &Options) -> Report {
    let mut analysis = Analysis::new(&trace.manifest, options.clone()).unwrap();
    for _ in 0..analysis.passes() {
        for batch in trace.batches() {
            analysis.push(&batch.unwrap()).unwrap();
        }
        analysis.finish_pass();
    }
    analysis.finish().unwrap()
}

/// Counts, sums and extremes of an interval of the report.
fn exact(report: &Report, name: &str) -> Truth {
    let interval = support::interval(report, name);
    Truth {
        n: interval.count,
        sum: interval.total_ns as i64,
        least: interval.min.map_or(i64::MAX, |least| least as i64),
        most: interval.max.map_or(i64::MIN, |most| most as i64),
        unmatched: interval.unmatched,
    }
}

fn with_messages() -> Options {
    let table = "[[interval]]\nname='outer'\nstart='outer'\nend='outer'\n\
                 [[interval]]\nname='inner'\nstart='inner'\nend='inner'\nwithin='outer'\n\
                 [[interval]]\nname='never ends'\nstart='never ends'\nend='never ends'\n\
                 [[interval]]\nname='sent'\nstart=10\nend=11\nmatch='message'\n\
                 [[frequency]]\nname='inners'\nevent='inner'\nwithin='outer'\n";
    Options {
        table: Some(Table::parse(table, "t.toml").unwrap()),
        ..Options::default()
    }
}

#[test]
fn the_report_does_not_depend_on_the_number_of_cpus() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(5, 140_000);
    let trace = written(dir.path(), "five.ut", &program);
    let groups = trace.groups().unwrap();
    assert!(groups.len() >= 2 && groups.iter().all(|group| group.by_ring));
    let ratio = Options {
        cull: Cull::Ratio(4.0),
        ..Options::default()
    };
    for (name, options) in [
        ("as they are", Options::default()),
        ("by a table", with_messages()),
        ("in two passes", ratio),
    ] {
        let [one, two, many] = [1, 2, 9].map(|cpus| {
            let mut last = 0.0;
            let report = analyze_on(&trace, options.clone(), cpus, |share| {
                assert!((last..=1.0).contains(&share), "{share} after {last}");
                last = share;
            });
            report.unwrap()
        });
        assert_eq!(one, two, "{name}");
        assert_eq!(one, many, "{name}");
        let pushed = as_pushed(&trace, &options);
        assert_eq!(one.trace, pushed.trace, "{name}");
        assert_eq!(one.intervals.len(), pushed.intervals.len());
        for interval in &pushed.intervals {
            let ours = support::interval(&one, &interval.name);
            assert_eq!(exact(&one, &interval.name), exact(&pushed, &interval.name));
            assert_eq!(ours.histogram, interval.histogram, "{}", interval.name);
            assert_eq!(ours.culled, interval.culled, "{}", interval.name);
            let values = |i: &undertick_report::document::IntervalReport| {
                let median = i.median.as_ref().map(|e| e.value);
                (i.mean.as_ref().map(|e| e.value), median)
            };
            assert_eq!(values(ours), values(interval), "{}", interval.name);
        }
    }
    let report = analyze_on(&trace, with_messages(), 2, |_| {}).unwrap();
    for (name, truth) in &program.truth {
        assert_eq!(exact(&report, name), *truth, "{name}");
    }
    assert_eq!(report.trace.threads, 5);
    assert_eq!(support::frequency(&report, "inners").count, 700_000);
    let gaps = report
        .warnings
        .iter()
        .any(|w| w.text.contains(&program.lost.to_string()));
    assert!(gaps, "{:?}", report.warnings);
}

/// Of one thread nothing is merged: every figure is that of the batches as they come.
#[test]
fn one_thread_is_as_it_always_was() {
    let dir = tempfile::tempdir().unwrap();
    let trace = written(dir.path(), "one.ut", &program(1, 30_000));
    let options = Options::default();
    let pushed = as_pushed(&trace, &options);
    for cpus in [1, 3] {
        let report = analyze_on(&trace, options.clone(), cpus, |_| {}).unwrap();
        assert_eq!(report, pushed);
    }
}

#[test]
fn a_trace_without_events() {
    let dir = tempfile::tempdir().unwrap();
    let trace = written(dir.path(), "none.ut", &program(3, 0));
    let report = analyze_on(&trace, Options::default(), 2, |_| {}).unwrap();
    assert_eq!((report.trace.events, report.intervals.len()), (0, 0));
    let report = analyze_on(&trace, with_messages(), 2, |_| {}).unwrap();
    assert_eq!(report.intervals.len(), 4);
}
