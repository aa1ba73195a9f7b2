//! Hand-made traces.
#![allow(dead_code, reason = "the tests inside the crate use a part")]

pub mod made;

use std::sync::Arc;

use arrow_array::{Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch};
use undertick_analyze::{Analysis, Options};
use undertick_document::{FrequencyReport, IntervalReport, Report};
use undertick_format::manifest::{
    Calibration, Clock, Descheduled, Host, Manifest, Name, SpanCost, State,
};
use undertick_format::schema::{Kind, event_schema};
use undertick_units::{Estimate, Interval};

/// One row, with the columns that the analysis reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub ts: i64,
    pub ring: i32,
    pub pid: i32,
    pub mode: i8,
    pub kind: i8,
    pub descheduled: i8,
    pub event: i32,
    pub payload: i64,
}

/// Returns a row of ring 0.
pub fn row(kind: Kind, ts: i64, event: i32, payload: i64) -> Row {
    Row {
        ts,
        ring: 0,
        pid: 100,
        mode: 0,
        kind: kind as i8,
        descheduled: 0,
        event,
        payload,
    }
}

pub fn begin(ts: i64, event: i32) -> Row {
    row(Kind::Begin, ts, event, 0)
}

pub fn end(ts: i64, event: i32) -> Row {
    row(Kind::End, ts, event, 0)
}

pub fn next(ts: i64, from: i32, to: i64) -> Row {
    row(Kind::Next, ts, from, to)
}

pub fn instant(ts: i64, event: i32, payload: i64) -> Row {
    row(Kind::Instant, ts, event, payload)
}

impl Row {
    pub fn on(self, ring: i32) -> Self {
        Self { ring, ..self }
    }

    pub fn in_process(self, pid: i32) -> Self {
        Self { pid, ..self }
    }

    pub fn flag(self, descheduled: i8) -> Self {
        Self {
            descheduled,
            ..self
        }
    }
}

pub fn batch(rows: &[Row]) -> RecordBatch {
    let i64s = |of: fn(&Row) -> i64| Arc::new(rows.iter().map(of).collect::<Int64Array>());
    let i32s = |of: fn(&Row) -> i32| Arc::new(rows.iter().map(of).collect::<Int32Array>());
    let i16s = |of: fn(&Row) -> i16| Arc::new(rows.iter().map(of).collect::<Int16Array>());
    let i8s = |of: fn(&Row) -> i8| Arc::new(rows.iter().map(of).collect::<Int8Array>());
    RecordBatch::try_new(
        event_schema(),
        vec![
            i64s(|r| r.ts),
            i32s(|r| r.ring),
            i32s(|r| r.pid),
            // Rows of the kernel are about the thread of ring 0.
            i32s(|r| 1000 + r.ring.max(0)),
            i16s(|_| 0),
            i8s(|r| r.mode),
            i8s(|r| r.kind),
            i8s(|r| r.descheduled),
            i32s(|r| r.event),
            i64s(|r| r.payload),
            i16s(|_| 0),
        ],
    )
    .expect("columns fit the schema")
}

/// A clock of 1 tick = 1 ns that steps by 1, no calibration, no names.
pub fn manifest() -> Manifest {
    Manifest {
        state: State::Complete,
        undertick_version: "0".into(),
        command: vec!["./program".into()],
        descheduled: Descheduled::PreemptionOnly,
        ..Manifest::new(
            Host {
                name: "h".into(),
                kernel: "6.18".into(),
                arch: "x86_64".into(),
                cpus: 2,
                cpu_model: "m".into(),
            },
            Clock {
                name: "tsc".into(),
                ticks_per_second_numerator: 1_000_000_000,
                ticks_per_second_denominator: 1,
                rate_source: "test".into(),
                rate_error_ppb: 0.0,
                granularity_ticks: 1.0,
                read_cost_ns_median: 8.5,
                anchors: vec![],
                across_cpus: None,
            },
            "grow",
        )
    }
}

pub fn named(names: &[(u16, &str)]) -> Manifest {
    let name = |&(event, name): &(u16, &str)| Name {
        pid: None,
        event,
        name: name.into(),
    };
    Manifest {
        names: names.iter().map(name).collect(),
        ..manifest()
    }
}

pub fn ns(value: f64, lo: f64, hi: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(lo, hi),
        level: 0.95,
        unit: "ns".into(),
        method: "test".into(),
        n: 1000,
        n_effective: 1000.0,
        notes: vec![],
    }
}

/// Plain 10 +- 1, ordered 30 +- 1, inner 8 +- 0.5, of events and of spans, and 20 +- 0.5; the empty
/// span agrees with the dosed one. Between two readings that wait for nothing, such as events, lie
/// 8.
pub fn calibration() -> Calibration {
    let span = |v: f64| SpanCost {
        empty_ns: ns(v, v - 1.0, v + 1.0),
        dosed_ns: ns(v, v - 1.0, v + 1.0),
        least_dose_ns: None,
    };
    Calibration {
        plain: span(10.0),
        ordered: span(30.0),
        inner_event_ns: ns(8.0, 7.5, 8.5),
        inner_off_ns: None,
        inner_span_ns: Some(ns(8.0, 7.5, 8.5)),
        inner_ordered_ns: ns(20.0, 19.5, 20.5),
        sparse: None,
        functions: None,
        sampled: None,
        paired: None,
        interrupt: None,
        read_ns: None,
        measured_unix_ns: None,
    }
}

/// Returns the report of these rows. Batches of every small size must give the same result.
pub fn report(manifest: &Manifest, options: &Options, rows: &[Row]) -> Report {
    let in_batches_of = |size: usize| {
        let mut analysis = Analysis::new(manifest, options.clone()).expect("valid options");
        for _ in 0..analysis.passes() {
            for chunk in rows.chunks(size) {
                analysis.push(&batch(chunk)).expect("valid batch");
            }
            analysis.finish_pass();
        }
        analysis.finish().expect("all passes done")
    };
    let whole = in_batches_of(rows.len().max(1));
    if rows.len() < 100 {
        for size in 1..rows.len() {
            assert_eq!(in_batches_of(size), whole, "batches of {size}");
        }
    }
    whole
}

pub fn plain(rows: &[Row]) -> Report {
    report(&manifest(), &Options::default(), rows)
}

#[track_caller]
pub fn interval<'a>(report: &'a Report, name: &str) -> &'a IntervalReport {
    let names: Vec<&str> = report.intervals.iter().map(|i| i.name.as_str()).collect();
    let found = report.intervals.iter().find(|i| i.name == name);
    found.unwrap_or_else(|| panic!("no interval {name:?} in {names:?}"))
}

#[track_caller]
pub fn frequency<'a>(report: &'a Report, name: &str) -> &'a FrequencyReport {
    let found = report.frequencies.iter().find(|f| f.name == name);
    found.unwrap_or_else(|| panic!("no frequency {name:?}"))
}

/// Asserts exact figures: count, sum of samples (none where it would be below 0), unmatched starts
/// and ends.
#[track_caller]
pub fn exact(report: &Report, name: &str, expected: (u64, f64, u64, u64)) {
    let i = interval(report, name);
    let got = (i.count, i.total_ns, i.unmatched_starts, i.unmatched_ends);
    assert_eq!(
        got,
        (
            expected.0,
            Some(expected.1).filter(|total| *total >= 0.0),
            expected.2,
            expected.3
        ),
        "{name}: (count, total, open starts, lone ends)"
    );
    assert_eq!(i.unmatched, i.unmatched_starts + i.unmatched_ends);
}

pub fn warned<'a>(report: &'a Report, code: &str) -> Option<&'a str> {
    let found = report.warnings.iter().find(|w| w.code == code);
    found.map(|w| w.text.as_str())
}
