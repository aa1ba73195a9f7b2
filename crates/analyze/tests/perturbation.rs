//! Measuring points that were switched off and on, and the slow-down that the samples show.

use crate::support;

use support::{
    Row, begin, calibration, end, instant, interval, manifest, named, ns, report, row, warned,
};
use undertick_analyze::{Cull, Options, Table};
use undertick_document::Report;
use undertick_format::manifest::{Calibration, Manifest, Perturbation};
use undertick_format::schema::{Kind, Switched};

/// Half of a pair, ticks of 1 ns; the 20 us after each switch are dropped.
const HALF: i64 = 100_000;

fn switch(ts: i64, state: Switched) -> Row {
    Row {
        mode: 1,
        ring: -1,
        ..row(Kind::Epoch, ts, state as i32, 40)
    }
}

fn switched(kept: &[u16]) -> Manifest {
    Manifest {
        perturbation: Some(Perturbation {
            asked: "1".into(),
            kept: kept.to_vec(),
            pairs: 20,
            half_ns: HALF as u64,
        }),
        ..named(&[(1, "frame"), (2, "part"), (3, "tick"), (4, "mark")])
    }
}

/// Frames take 1000 without points, and 1060 with a part of 200 and a mark inside; a tick comes
/// before each, 20 apart. Every seventh part ends only in the next frame. While points are off, the
/// recorder has only those that are kept: ticks, a point in each frame that is always on, and
/// frames unless these are switched too.
fn rows(pairs: i64) -> Vec<Row> {
    recorded(pairs, true, false)
}

/// As [`rows`]; if `apart`, all points are on for two halves after each pair.
fn recorded(pairs: i64, frames_kept: bool, apart: bool) -> Vec<Row> {
    let mut states = Vec::new();
    for i in 0..pairs {
        let on_first = (i * i) % 5 < 2;
        states.push(Some(on_first));
        states.push(Some(!on_first));
        if apart {
            states.extend([None; 2]);
        }
    }
    let state = |on: Option<bool>| match on {
        Some(true) => Switched::AllOn,
        Some(false) => Switched::SomeOff,
        None => Switched::Between,
    };
    let mut rows: Vec<Row> = (states.iter().enumerate())
        .map(|(i, &on)| switch(i as i64 * HALF, state(on)))
        .collect();
    let all = states.len() as i64 * HALF;
    rows.push(switch(all, Switched::Between));
    let on_at = |ts: i64| {
        let state = states.get((ts / HALF) as usize).copied();
        state.flatten().unwrap_or(true)
    };
    let (mut at, mut n, mut is_late) = (7, 0, false);
    while at < all - 2000 {
        let points = |rows: &mut Vec<Row>, row: Row| {
            if on_at(row.ts) || (row.event == 1 && frames_kept) {
                rows.push(row);
            }
        };
        rows.push(instant(at, 3, 0));
        at += 20;
        let with = on_at(at + 100);
        points(&mut rows, begin(at, 1));
        if is_late {
            points(&mut rows, end(at + 50, 2));
        }
        points(&mut rows, begin(at + 100, 2));
        points(&mut rows, instant(at + 200, 4, 0));
        rows.push(instant(at + 250, 5, 0));
        n += 1;
        is_late = n % 7 == 0;
        if !is_late {
            points(&mut rows, end(at + 300, 2));
        }
        at += if with { 1060 } else { 1000 };
        points(&mut rows, end(at, 1));
    }
    rows
}

fn analysed(manifest: &Manifest, rows: &[Row], table: Option<Table>) -> Report {
    let options = Options {
        cull: Cull::None,
        table,
        ..Options::default()
    };
    report(manifest, &options, rows)
}

/// The frames of [`rows`] contain three points that are switched, and that take 3 ns each when they
/// are off; a point that is always on, 8; and the frame's readings, 10. The remainder of the 1000
/// with points off is the work.
#[test]
fn points_that_are_off_are_subtracted_too() {
    const WORK: f64 = 1000.0 - 10.0 - 8.0 - 3.0 * 3.0;
    let mean = |inner_off_ns, rows: &[Row]| {
        let mut manifest = switched(&[1, 3, 5]);
        manifest.calibration = Some(Calibration {
            inner_off_ns,
            ..calibration()
        });
        let report = analysed(&manifest, rows, None);
        interval(&report, "frame").mean.clone().unwrap()
    };
    let three = Some(ns(3.0, 2.0, 4.0));
    let found = mean(three.clone(), &rows(20));
    assert!((found.value - WORK).abs() < 0.5, "{found:?}");
    let (lo, hi) = (found.interval.lo.unwrap(), found.interval.hi.unwrap());
    assert!(lo < WORK - 2.0 && WORK + 2.0 < hi, "{found:?}");
    // Older traces have no such cost.
    let without = mean(None, &rows(20));
    assert!(
        (without.value - found.value - 9.0).abs() < 0.2,
        "{without:?}"
    );
    // Points are on in three of four samples where there is time between pairs.
    let apart = mean(three, &recorded(20, true, true));
    assert!((apart.value - WORK).abs() < 0.5, "{apart:?}");
}

/// Of parts there are those that were recorded alone, so what a frame takes besides them is not known.
#[test]
fn the_tree_counts_what_was_recorded_and_says_so() {
    let paths = |kept: &[u16]| analysed(&switched(kept), &rows(20), None).paths;
    let found = paths(&[1, 3, 5]);
    let (frame, part) = (&found[0], &found[1]);
    assert_eq!(
        (frame.name.as_str(), frame.is_switched, frame.self_ns),
        ("frame", false, None)
    );
    assert_eq!((part.name.as_str(), part.is_switched), ("part", true));
    assert!(part.self_ns.is_some(), "nothing is inside: {part:?}");
    assert!(part.calls < frame.calls * 6 / 10, "{part:?}");
    // The same rows where nothing was switched: the rest of a frame is its own.
    let found = paths(&[1, 2, 3, 4, 5]);
    assert!(
        found[0].self_ns.is_some() && !found[1].is_switched,
        "{found:?}"
    );
}

#[test]
fn an_enclosing_span_is_slowed_by_what_is_inside() {
    let report = analysed(&switched(&[1, 3, 5]), &rows(20), None);
    let frame = interval(&report, "frame").slowed.as_ref().unwrap();
    assert!((frame.by.value - 60.0).abs() < 1e-9, "{frame:?}");
    assert!((frame.share.value - 0.06).abs() < 1e-9);
    // A mark, a begin and an end; in two frames of seven one of these is missing or added.
    assert!((frame.points - 3.0).abs() < 0.02, "{}", frame.points);
    let each = frame.per_point.as_ref().unwrap();
    assert!((each.value - 60.0 / frame.points).abs() < 1e-9);
    assert_eq!(
        (frame.by.unit.as_str(), frame.share.unit.as_str()),
        ("ns", "1")
    );
    assert_eq!((frame.by.n, frame.long), (20, [0, 0]));
    // Spans that begin within four medians of a half's end are not included: 76 us of the 80
    // contain 71 frames of 1080 or 74 of 1020.
    for (samples, least, most) in [
        (frame.samples[0], 70 * 20, 72 * 20),
        (frame.samples[1], 73 * 20, 76 * 20),
    ] {
        assert!((least..=most).contains(&samples), "{samples}");
    }
    // From tick to tick the slow-down is the same, as a share of 1020.
    let tick = interval(&report, "tick (period)").slowed.as_ref().unwrap();
    assert!((tick.by.value - 60.0).abs() < 1.0, "{tick:?}");
    // The trace's figure is that of the interval with the largest total.
    let of_all = report.trace.perturbation.as_ref().unwrap();
    assert!(
        of_all.method.starts_with("of tick (period), by points: "),
        "{of_all:?}"
    );
    assert_eq!(of_all.value, tick.share.value);
    assert!(
        warned(&report, "perturbation")
            .unwrap()
            .contains("event 1, 3, 5 ")
    );
}

/// No part is longer than from a begin to the next frame's start, however many switches lie
/// between; no mark's period covers a time without points.
#[test]
fn what_is_cut_by_a_switch_is_no_sample() {
    let report = analysed(&switched(&[1, 3, 5]), &rows(20), None);
    let part = interval(&report, "part");
    assert!(
        part.statistics.max.unwrap() <= 1060.0,
        "{:?}",
        part.statistics.max
    );
    assert!(part.count > 1000 && part.slowed.is_none());
    assert_eq!((part.unmatched, part.unmatched_starts), (0, 0));
    assert!(
        part.notes
            .iter()
            .any(|note| note.contains("switched off and on"))
    );
    let mark = interval(&report, "mark (period)");
    assert!(
        mark.statistics.max.unwrap() <= 1080.0,
        "{:?}",
        mark.statistics.max
    );
    assert_eq!(warned(&report, "unmatched"), None);
    // The test can fail: without the rule they are as long as a half.
    let report = analysed(&named(&[(2, "part"), (4, "mark")]), &rows(20), None);
    assert!(interval(&report, "mark (period)").statistics.max.unwrap() > HALF as f64);
}

/// No span that stays on encloses the frames: only the switch shows that one was cut.
#[test]
fn a_span_that_lies_in_nothing_is_cut_too() {
    let all = recorded(20, false, false);
    let kept = |events: &[u16]| analysed(&switched(events), &all, None);
    let cut = kept(&[3, 5]);
    let frame = interval(&cut, "frame");
    assert!(
        frame.statistics.max.unwrap() <= 1060.0,
        "{:?}",
        frame.statistics.max
    );
    assert!(frame.slowed.is_none() && frame.notes[0].contains("no other side"));
    let tick = interval(&cut, "tick (period)").slowed.as_ref().unwrap();
    assert!((tick.points - 5.0).abs() < 0.1, "{}", tick.points);
    // The test can fail.
    assert!(interval(&kept(&[1, 3, 5]), "frame").statistics.max.unwrap() > HALF as f64);
}

#[test]
fn intervals_of_a_table_too() {
    let table = Table::parse(
        "[[interval]]\nname = \"frame\"\nstart = 1\nend = 1\n\
         [[interval]]\nname = \"part\"\nstart = 2\nend = 2\nwithin = \"frame\"\n",
        "t.toml",
    )
    .unwrap();
    let report = analysed(&switched(&[1, 3, 5]), &rows(20), Some(table));
    let frame = interval(&report, "frame").slowed.as_ref().unwrap();
    assert!((frame.by.value - 60.0).abs() < 1e-9, "{frame:?}");
    assert!(interval(&report, "part").slowed.is_none());
}

/// Samples with a known disturbance are dropped, whatever the state.
#[test]
fn what_was_hit_is_left_out() {
    let mut all = rows(20);
    let mut hits = Vec::new();
    for row in &mut all {
        // Every frame's end between 30 and 60 us of a half follows a preemption.
        let is_end = row.kind == Kind::End as i8 && row.event == 1;
        if is_end && (30_000..60_000).contains(&(row.ts % HALF)) {
            let kernel = |kind, ts, payload| Row {
                mode: 1,
                ring: -1,
                ..support::row(kind, ts, 0, payload)
            };
            hits.push(kernel(Kind::SwitchOut, row.ts - 20, 1));
            hits.push(kernel(Kind::SwitchIn, row.ts - 10, 0));
        }
    }
    let switches = all.iter().take_while(|row| row.mode == 1).count();
    let mut of_kernel: Vec<Row> = all.drain(..switches).chain(hits).collect();
    of_kernel.sort_by_key(|row| row.ts);
    of_kernel.extend(all);
    let options = Options::default();
    let found = report(&switched(&[1, 3, 5]), &options, &of_kernel);
    let frame = interval(&found, "frame").slowed.as_ref().unwrap();
    assert!((frame.by.value - 60.0).abs() < 1e-9, "{frame:?}");
    // 30 of 76 us are missing.
    assert!(frame.samples[0] < 46 * 20 && frame.samples[0] > 41 * 20);
}

#[test]
fn without_switches_nothing_is_said() {
    let report = analysed(&manifest(), &rows(20), None);
    assert!(report.trace.perturbation.is_none());
    assert!(report.intervals.iter().all(|i| i.slowed.is_none()));
    assert_eq!(warned(&report, "perturbation"), None);
}

/// Kernel events were switched, and no point. What fell into samples is known in one state only, so
/// no sample is dropped.
#[test]
fn the_kernels_events_slow_too() {
    let mut manifest = switched(&[1, 2, 3, 4, 5]);
    if let Some(about) = &mut manifest.perturbation {
        about.asked = "kernel".into();
    }
    let mut all: Vec<Row> = rows(20);
    let switches = all.iter().take_while(|row| row.mode == 1).count();
    // In the halves that are on, every frame contains an interrupt.
    let hits: Vec<Row> = (all.iter())
        .filter(|row| row.kind == Kind::Begin as i8 && row.event == 2)
        .map(|row| Row {
            mode: 1,
            ring: -1,
            ..support::row(Kind::Interrupt, row.ts + 500, 3, 10)
        })
        .collect();
    all.splice(switches..switches, hits);
    let found = report(&manifest, &Options::default(), &all);
    let frame = interval(&found, "frame").slowed.as_ref().unwrap();
    assert_eq!(
        (frame.what.as_str(), &frame.per_point),
        ("kernel events", &None)
    );
    assert!((frame.by.value - 60.0).abs() < 1e-9, "{frame:?}");
    assert!(frame.samples[0] > 70 * 20, "{frame:?}");
    assert!(
        warned(&found, "perturbation")
            .unwrap()
            .contains("kernel's trace")
    );
}
