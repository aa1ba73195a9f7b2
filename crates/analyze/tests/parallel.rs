//! A trace of several threads, several million events: the report does not depend on the number of
//! CPUs that made it, and its exact figures are those of the generator.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int16Type, Int32Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use undertick_analyze::{Analysis, Cull, Options, Table, analyze_on, find_spans, keep_spans};
use undertick_document::Report;
use undertick_format::manifest::{Clock, Host, Name};
use undertick_format::read::Trace;
use undertick_record::synthetic::{self, SyntheticRing, SyntheticTrace};
use undertick_ring::{DeschedFlag, Kind, Record};

use crate::support;

/// The truth of each interval: samples, sum, minimum, maximum, unmatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
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

pub struct Program {
    pub rings: Vec<SyntheticRing>,
    pub truth: BTreeMap<&'static str, Truth>,
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

/// Each thread works in turns of 1000 ticks: a span with one inside it; now and then a message to
/// the next thread, a begin without an end, or a gap in the place of an end.
pub fn program(threads: usize, turns: i64) -> Program {
    let mut truth: BTreeMap<&str, Truth> = ["outer", "inner", "sent", "never ends"]
        .map(|name| (name, Truth::NOTHING))
        .into();
    let mut lost = 0;
    // Time and record; sorted at the end, because messages come from another thread.
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
                // The end is lost, so its begin stays unmatched.
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
        SyntheticRing {
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

pub fn written(dir: &Path, name: &str, program: &Program) -> Trace {
    let names = [
        (OUTER, "outer"),
        (INNER, "inner"),
        (NEVER_ENDS, "never ends"),
    ];
    let made = SyntheticTrace {
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
            granularity_ticks: 1.0,
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
    synthetic::write(&path, made, &program.rings, &mut |_| {}).unwrap();
    Trace::open(&path).unwrap()
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

/// Returns counts, sums and extremes of an interval of the report.
pub fn exact(report: &Report, name: &str) -> Truth {
    let interval = support::interval(report, name);
    Truth {
        n: interval.count,
        sum: interval.total_ns.unwrap() as i64,
        least: interval
            .statistics
            .min
            .map_or(i64::MAX, |least| least as i64),
        most: interval.statistics.max.map_or(i64::MIN, |most| most as i64),
        unmatched: interval.unmatched,
    }
}

pub fn with_messages() -> Options {
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
            let report = analyze_on(&trace, options.clone(), cpus, &mut |share| {
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
            let values = |i: &undertick_document::IntervalReport| {
                let median = i.median.as_ref().map(|e| e.value);
                (i.mean.as_ref().map(|e| e.value), median)
            };
            assert_eq!(values(ours), values(interval), "{}", interval.name);
        }
    }
    let report = analyze_on(&trace, with_messages(), 2, &mut |_| {}).unwrap();
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

/// A stored span: name, thread, start, ticks, depth, parent.
pub type Kept = (String, i32, i64, i64, i32, Option<String>);

pub fn kept(dir: &Path) -> Vec<Kept> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "parquet"));
    files.sort();
    let mut spans = Vec::new();
    for file in files {
        let file = std::fs::File::open(file).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        for batch in reader.build().unwrap() {
            let batch: RecordBatch = batch.unwrap();
            let words = |name: &str| batch[name].as_string::<i32>();
            let ints = |name: &str| batch[name].as_primitive::<Int32Type>();
            let longs = |name: &str| batch[name].as_primitive::<Int64Type>();
            for i in 0..batch.num_rows() {
                let parent = words("parent").iter().nth(i).unwrap();
                let ticks = longs("ticks").value(i);
                // One tick is one ns, and nothing is subtracted.
                assert_eq!(
                    batch["ns"].as_primitive::<Float64Type>().value(i),
                    ticks as f64
                );
                assert_eq!(batch["host"].as_primitive::<Int16Type>().value(i), 0);
                assert_eq!(words("dropped").iter().nth(i).unwrap(), None);
                assert_eq!(longs("start_ns").value(i), longs("start").value(i));
                spans.push((
                    words("name").value(i).to_owned(),
                    ints("tid").value(i),
                    longs("start").value(i),
                    ticks,
                    ints("depth").value(i),
                    parent.map(str::to_owned),
                ));
            }
        }
    }
    spans
}

/// Every generated span is a row, once. A second request reuses the files, and one with a table
/// makes others.
#[test]
fn spans_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(3, 500);
    let trace = written(dir.path(), "spans.ut", &program);
    // For a single use nothing is written into the trace.
    let made = find_spans(&trace, Options::default(), &mut |_| {}).unwrap();
    let once = made.dir().to_owned();
    assert!(!trace.dir().join("spans").exists());
    let mut for_one_use = kept(&once);
    drop(made);
    assert!(!once.exists());
    let spans = keep_spans(&trace, Options::default(), &mut |_| {}).unwrap();
    let spans = spans.dir();
    assert_eq!(spans, trace.dir().join("spans"));
    let again = find_spans(&trace, Options::default(), &mut |_| {}).unwrap();
    assert_eq!(again.dir(), spans);
    let mut wanted: Vec<Kept> = Vec::new();
    for ring in &program.rings {
        let mut open: Vec<(u16, i64)> = Vec::new();
        for record in &ring.records {
            match record.kind {
                Kind::Begin => open.push((record.event, record.ts as i64)),
                Kind::End => {
                    // A begin above it that never ended is no span.
                    let at = open.iter().rposition(|o| o.0 == record.event).unwrap();
                    let (event, start) = open[at];
                    open.truncate(at);
                    let name = |event: u16| ["outer", "inner"][usize::from(event) - 1].to_owned();
                    let parent = open.last().map(|o| match o.0 {
                        NEVER_ENDS => "never ends".to_owned(),
                        event => name(event),
                    });
                    let ticks = record.ts as i64 - start;
                    let depth = at as i32;
                    wanted.push((name(event), ring.tid, start, ticks, depth, parent));
                }
                _ => {}
            }
        }
    }
    let mut found = kept(spans);
    for_one_use.sort();
    let mut all = found.clone();
    all.sort();
    assert_eq!(for_one_use, all);
    found.retain(|span| span.0 == "outer" || span.0 == "inner");
    found.sort();
    wanted.sort();
    assert_eq!(found.len(), 3000);
    assert_eq!(found, wanted);
    let modified = || {
        std::fs::metadata(spans.join("about.json"))
            .unwrap()
            .modified()
            .unwrap()
    };
    let first = modified();
    keep_spans(&trace, Options::default(), &mut |_| {}).unwrap();
    assert_eq!(modified(), first, "made again");
    keep_spans(&trace, with_messages(), &mut |_| {}).unwrap();
    let messages: Vec<Kept> = kept(spans).into_iter().filter(|s| s.0 == "sent").collect();
    let truth = program.truth["sent"];
    assert_eq!(messages.len() as u64, truth.n);
    assert_eq!(messages.iter().map(|m| m.3).sum::<i64>(), truth.sum);
    assert!(
        messages
            .iter()
            .all(|m| m.1 == -1 && m.4 == 0 && m.5.is_none())
    );
    assert!(
        messages.iter().any(|m| m.3 < 0),
        "some end before they begin"
    );
    let inner = kept(spans).into_iter().find(|s| s.0 == "inner").unwrap();
    assert_eq!((inner.4, inner.5.as_deref()), (1, Some("outer")));
}

/// One thread needs no merge: every figure is that of the batches as they come.
#[test]
fn one_thread_is_as_it_always_was() {
    let dir = tempfile::tempdir().unwrap();
    let trace = written(dir.path(), "one.ut", &program(1, 30_000));
    let options = Options::default();
    let pushed = as_pushed(&trace, &options);
    for cpus in [1, 3] {
        let report = analyze_on(&trace, options.clone(), cpus, &mut |_| {}).unwrap();
        assert_eq!(report, pushed);
    }
}

#[test]
fn a_trace_without_events() {
    let dir = tempfile::tempdir().unwrap();
    let trace = written(dir.path(), "none.ut", &program(3, 0));
    let report = analyze_on(&trace, Options::default(), 2, &mut |_| {}).unwrap();
    assert_eq!((report.trace.events, report.intervals.len()), (0, 0));
    let report = analyze_on(&trace, with_messages(), 2, &mut |_| {}).unwrap();
    assert_eq!(report.intervals.len(), 4);
}
