//! Intervals from one host to another, with figures by hand.

use crate::support;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int16Array, RecordBatch};
use support::{Row, batch, instant, interval, manifest};
use undertick_analyze::{Analysis, Options, Table};
use undertick_document::Report;
use undertick_format::identity::ClockIdentity;
use undertick_format::manifest::{HostMap, Manifest, TraceHost};
use undertick_units::Estimate;

const TABLE: &str = "[[interval]]\nname='there'\nstart=1\nend=2\nmatch='message'\n";

/// Two hosts; the second one's clock is right within 15 ns around its time 0, and within 25 at 100
/// 000.
fn two_hosts() -> Manifest {
    let host = |map| TraceHost {
        name: "h".into(),
        clock: ClockIdentity {
            clock: "tsc".into(),
            boot_id: None,
            time_namespace: None,
        },
        ticks_per_second_numerator: 1_000_000_000,
        ticks_per_second_denominator: 1,
        merged: None,
        map,
    };
    let map = HostMap {
        is_same_clock: false,
        compared_with: 0,
        messages: [1; 2],
        sources: vec![],
        wander_ppm: 2.0,
        is_wander_raised: false,
        half_width_ns_median: 15.0,
        half_width_ns_max: 25.0,
        knots: vec![[-7000, 0, 15], [-6000, 1000, 15], [93_000, 100_000, 25]],
    };
    Manifest {
        hosts: vec![host(None), host(Some(map))],
        ..manifest()
    }
}

/// Rows of ring 0 belong to host 0, all others to host 1.
fn on_hosts(rows: &[Row]) -> RecordBatch {
    let made = batch(rows);
    let host = rows.iter().map(|row| i16::from(row.ring > 0));
    let mut columns = made.columns().to_vec();
    columns[10] = Arc::new(host.collect::<Int16Array>()) as ArrayRef;
    RecordBatch::try_new(made.schema(), columns).unwrap()
}

fn report(manifest: &Manifest, rows: &[Row]) -> Report {
    let options = Options {
        table: Some(Table::parse(TABLE, "t.toml").unwrap()),
        ..Options::default()
    };
    let mut analysis = Analysis::new(manifest, options).unwrap();
    let mut by_ring = rows.to_vec();
    by_ring.sort_by_key(|row| row.ring);
    analysis.push(&on_hosts(&by_ring)).unwrap();
    analysis.finish_pass();
    analysis.finish().unwrap()
}

/// Returns messages with these durations, 5 ns apart, from ring 0 to ring `to`.
fn messages(took: &[i64], to: i32) -> Vec<Row> {
    (0..)
        .zip(took)
        .flat_map(|(i, took)| {
            let sent = 20 + 5 * i;
            [instant(sent, 1, i), instant(sent + took, 2, i).on(to)]
        })
        .collect()
}

#[track_caller]
fn wider(found: &Option<Estimate>, than: &Option<Estimate>, by: f64) {
    let (found, than) = (found.as_ref().unwrap(), than.as_ref().unwrap());
    assert_eq!(found.value, than.value);
    // A bound that the samples cannot give stays missing.
    let moved = |from: Option<f64>, to: Option<f64>, by: f64| {
        assert_eq!(from.is_some(), to.is_some());
        let error = from
            .zip(to)
            .map_or(0.0, |(from, to)| (to - from - by).abs());
        assert!(error < 1e-9, "{from:?} {to:?}, {by}");
    };
    moved(than.interval.lo, found.interval.lo, -by);
    moved(than.interval.hi, found.interval.hi, by);
}

#[test]
fn intervals_are_widened_by_what_clocks_leave_open() {
    // 100 of about 100 ns, and 40 whose sign is not certain, one of them negative.
    let mut took: Vec<i64> = (0..100).map(|i| 95 + i % 11).collect();
    took.extend((0..40).map(|i| if i == 7 { -15 } else { 1 + i % 15 }));
    let rows = messages(&took, 1);
    let before = report(&manifest(), &rows);
    let before = interval(&before, "there");
    assert_eq!(before.count, 140);
    let found = report(&two_hosts(), &rows);
    let found = interval(&found, "there");
    // The values are unchanged; none becomes 0.
    assert_eq!(
        (found.count, found.negative, found.statistics.min),
        (140, 1, Some(-15.0))
    );
    for (found, before) in [
        (&found.mean, &before.mean),
        (&found.median, &before.median),
        (&found.uncompensated.median, &before.uncompensated.median),
        (&found.before_culling.mean, &before.before_culling.mean),
    ] {
        wider(found, before, 15.0);
    }
    for (key, quantile) in &found.quantiles {
        let (found, before) = (Some(quantile.clone()), before.quantiles.get(key).cloned());
        wider(&found, &before, 15.0);
    }
    let across = found.across_hosts.unwrap();
    assert_eq!((across.samples, across.concurrent), (140, 40));
    assert_eq!(
        (across.half_width_ns_mean, across.half_width_ns_max),
        (15.0, 15.0)
    );
    assert!(
        found
            .notes
            .iter()
            .any(|n| n.contains("40 samples are shorter than that"))
    );
}

#[test]
fn a_mean_is_widened_by_the_mean_a_quantile_by_the_greatest() {
    // All lie at the beginning of the map, but one at its far end.
    let mut rows = messages(&[100; 99], 1);
    rows.extend([instant(99_900, 1, 1000), instant(100_000, 2, 1000).on(1)]);
    let before = report(&manifest(), &rows);
    let before = interval(&before, "there");
    let found = report(&two_hosts(), &rows);
    let found = interval(&found, "there");
    wider(&found.mean, &before.mean, (99.0 * 15.0 + 25.0) / 100.0);
    wider(&found.median, &before.median, 25.0);
}

#[test]
fn on_one_host_nothing_is_in_doubt() {
    let mut rows = messages(&[100; 50], 0);
    let one = report(&two_hosts(), &rows);
    let here = interval(&one, "there");
    assert_eq!(here.across_hosts, None);
    assert_eq!(
        here.median,
        interval(&report(&manifest(), &rows), "there").median
    );
    // Both ends lie on the second host, whose clock has the same error at both.
    for row in &mut rows {
        row.ring = 1;
    }
    let there = report(&two_hosts(), &rows);
    assert_eq!(interval(&there, "there").across_hosts, None);
}
