//! Compares random traces with a matcher without a stack: quadratic, and written from the rule
//! alone.

use crate::support;

use std::collections::BTreeMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use support::*;
use undertick_analyze::{Cull, Options, Table};
use undertick_format::manifest::{Calibration, Manifest};
use undertick_format::schema::Kind;

/// Total of an interval whose sum would be below 0, as when a clock goes back.
const NONE: i64 = i64::MIN;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Expected {
    kept: u64,
    /// [`NONE`] where it would be below 0.
    total: i64,
    culled: u64,
    starts: u64,
    ends: u64,
    negative: u64,
    /// Inner readings of the kept samples.
    inner: i64,
    /// Inner readings of the dropped samples.
    culled_inner: i64,
}

fn is(row: &Row, kinds: &[Kind]) -> bool {
    kinds.iter().any(|&k| k as i8 == row.kind)
}

fn started(row: &Row) -> Option<i64> {
    if is(row, &[Kind::Begin, Kind::BeginOrdered]) {
        Some(i64::from(row.event))
    } else {
        is(row, &[Kind::Next]).then_some(row.payload)
    }
}

fn ended(row: &Row) -> Option<i64> {
    is(row, &[Kind::End, Kind::EndOrdered, Kind::Next]).then_some(i64::from(row.event))
}

/// Returns the start that row `e` closes: the latest of its event since the last gap that no
/// earlier end has closed or passed over. An end f with start m(f) uses up every start from m(f) up
/// to f.
fn naive_starts(rows: &[Row]) -> Vec<Option<usize>> {
    let mut start_of: Vec<Option<usize>> = vec![None; rows.len()];
    for e in 0..rows.len() {
        let Some(event) = ended(&rows[e]) else {
            continue;
        };
        start_of[e] = (0..e).rev().find(|&s| {
            started(&rows[s]) == Some(event)
                && !rows[s..e].iter().any(|r| is(r, &[Kind::Gap]))
                && (s + 1..e).all(|f| start_of[f].is_none_or(|m| m > s))
        });
    }
    start_of
}

fn readings(row: &Row) -> i64 {
    i64::from(is(row, &[Kind::Pair])) + 1
}

/// The recorder's mark of a begin or an end whose reading waited for nothing.
const UNORDERED: i64 = 1 << 31;

/// Costs: plain 10, ordered 30, a reading that waits for nothing 8, any mixture 20. Inside: an
/// event or a reading that waits for nothing 8, other plain ones 6, ordered 20.
fn cost(first: &Row, inner: &[Row], last: &Row) -> i64 {
    let ordered = |r: &Row| is(r, &[Kind::BeginOrdered, Kind::EndOrdered]);
    let unordered = |r: &Row| {
        is(r, &[Kind::Instant]) || (is(r, &[Kind::Begin, Kind::End]) && r.payload & UNORDERED != 0)
    };
    let how = |r: &Row| (ordered(r), unordered(r));
    let ends = match (how(first), how(last)) {
        ((false, false), (false, false)) => 10,
        ((true, _), (true, _)) => 30,
        ((_, true), (_, true)) => 8,
        _ => 20,
    };
    let inside = |r: &Row| match how(r) {
        (true, _) => 20,
        (_, true) => 8,
        _ => 6 * readings(r),
    };
    ends + inner.iter().map(inside).sum::<i64>()
}

fn naive(rings: &[Vec<Row>], cull: bool) -> BTreeMap<String, Expected> {
    let mut out: BTreeMap<String, Expected> = BTreeMap::new();
    let mut take = |name: String, rows: &[Row], s: usize, e: usize| {
        let x = out.entry(name).or_default();
        let raw = rows[e].ts - rows[s].ts;
        x.negative += u64::from(raw < 0);
        // Totals include all samples.
        x.total += raw - cost(&rows[s], &rows[s + 1..e], &rows[e]);
        let inner = rows[s + 1..e].iter().map(readings).sum::<i64>();
        if cull && rows[s + 1..=e].iter().any(|r| r.descheduled == 1) {
            x.culled += 1;
            x.culled_inner += inner;
        } else {
            x.kept += 1;
            x.inner += inner;
        }
    };
    for rows in rings {
        let start_of = naive_starts(rows);
        for e in 0..rows.len() {
            if let Some(s) = start_of[e] {
                take(format!("event {}", rows[e].event), rows, s, e);
            }
            if is(&rows[e], &[Kind::Instant]) {
                let before = (0..e).rev().take_while(|&s| !is(&rows[s], &[Kind::Gap]));
                let same =
                    |s: &usize| is(&rows[*s], &[Kind::Instant]) && rows[*s].event == rows[e].event;
                if let Some(s) = before.into_iter().find(same) {
                    take(format!("event {} (period)", rows[e].event), rows, s, e);
                }
            }
        }
    }
    for rows in rings {
        let start_of = naive_starts(rows);
        for e in 0..rows.len() {
            if ended(&rows[e]).is_some() && start_of[e].is_none() {
                out.entry(format!("event {}", rows[e].event))
                    .or_default()
                    .ends += 1;
            }
            if let Some(event) = started(&rows[e])
                && !start_of.contains(&Some(e))
            {
                out.entry(format!("event {event}")).or_default().starts += 1;
            }
        }
    }
    // At most one in ten may be dropped; otherwise all stay.
    for x in out.values_mut() {
        if 10 * x.culled > x.kept + x.culled {
            x.kept += std::mem::take(&mut x.culled);
            x.inner += x.culled_inner;
        }
        x.culled_inner = 0;
    }
    // No total is below 0, unless the clock went back.
    for x in out.values_mut().filter(|x| x.negative == 0) {
        x.total = x.total.max(0);
    }
    for x in out.values_mut().filter(|x| x.total < 0) {
        x.total = NONE;
    }
    out
}

fn random_ring(rng: &mut ChaCha8Rng, ring: i32) -> Vec<Row> {
    let mut ts = rng.random_range(0..1000);
    // In some traces so large a share is flagged that all stay.
    let flag_in = [12, 60][rng.random_range(0..2)];
    (0..rng.random_range(0..120))
        .map(|_| {
            // Mostly forward; sometimes the clock steps back.
            ts += rng.random_range(-20..200);
            let event = rng.random_range(1..5);
            let flag = i8::from(rng.random_range(0..flag_in) == 0);
            let row = match rng.random_range(0..40) {
                0..3 => row(Kind::Begin, ts, event, UNORDERED),
                3..12 => begin(ts, event),
                12..15 => row(Kind::End, ts, event, UNORDERED),
                15..24 => end(ts, event),
                24..29 => next(ts, event, rng.random_range(1..5)),
                29..32 => instant(ts, 10 + event, rng.random_range(0..9)),
                32..34 => row(Kind::BeginOrdered, ts, event, 0),
                34..37 => row(Kind::EndOrdered, ts, event, 0),
                37..39 => row(Kind::Pair, ts, 20, 21),
                _ => return row(Kind::Gap, ts, 0, 3).on(ring),
            };
            row.flag(flag).on(ring)
        })
        .collect()
}

/// Returns chunks of the rings in a random interleaving that preserves each ring's order.
fn interleaved(rng: &mut ChaCha8Rng, rings: &[Vec<Row>]) -> Vec<Row> {
    let mut at = vec![0; rings.len()];
    let mut rows = Vec::new();
    while at.iter().zip(rings).any(|(&a, r)| a < r.len()) {
        let i = rng.random_range(0..rings.len());
        let to = (at[i] + rng.random_range(1..30)).min(rings[i].len());
        rows.extend_from_slice(&rings[i][at[i]..to]);
        at[i] = to;
    }
    rows
}

#[test]
fn agrees_with_the_naive_matcher() {
    let m = Manifest {
        calibration: Some(Calibration {
            inner_span_ns: Some(ns(6.0, 5.5, 6.5)),
            ..calibration()
        }),
        ..manifest()
    };
    let mut seen = Expected::default();
    for seed in 0..400 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rings: Vec<Vec<Row>> = (0..3).map(|i| random_ring(&mut rng, i)).collect();
        let rows = interleaved(&mut rng, &rings);
        for cull in [Cull::Auto, Cull::None] {
            let options = Options {
                cull,
                ..Options::default()
            };
            let report = report(&m, &options, &rows);
            let expected = naive(&rings, cull == Cull::Auto);
            let got: BTreeMap<String, Expected> = (report.intervals.iter())
                .filter(|i| !i.name.ends_with("(pair)"))
                .map(|i| {
                    let inner = i.compensation.inner_records.unwrap_or(0.0) * i.count as f64;
                    (
                        i.name.clone(),
                        Expected {
                            kept: i.count,
                            total: i.total_ns.map_or(NONE, |total| total.round() as i64),
                            culled: i.culled.count,
                            starts: i.unmatched_starts,
                            ends: i.unmatched_ends,
                            negative: i.negative,
                            inner: inner.round() as i64,
                            culled_inner: 0,
                        },
                    )
                })
                .collect();
            assert_eq!(got, expected, "seed {seed}, cull {cull}");
            for x in expected.values() {
                seen.kept += x.kept;
                seen.culled += x.culled;
                seen.negative += x.negative;
                seen.starts += x.starts;
                seen.ends += x.ends;
            }
        }
    }
    // The traces contained what they were made to contain.
    let least = [seen.kept, seen.starts, seen.ends].into_iter().min();
    assert!(
        least > Some(5000) && seen.negative > 100 && seen.culled > 100,
        "{seen:?}"
    );
}

/// Messages: for each key the k-th start matches the k-th end, in the order of the rings that send
/// or receive the key.
#[test]
fn messages_agree_with_zipped_lists() {
    let table = Table::parse(
        "[[interval]]\nname='m'\nstart=1\nend=2\nmatch='message'\n",
        "t.toml",
    )
    .unwrap();
    let options = Options {
        table: Some(table),
        ..Options::default()
    };
    for seed in 0..200 {
        let mut rng = ChaCha8Rng::seed_from_u64(10_000 + seed);
        let mut side = |event: i32, ring: i32| -> Vec<Row> {
            let mut ts = 0;
            (0..rng.random_range(0..60))
                .map(|_| {
                    ts += rng.random_range(0..50);
                    instant(ts, event, rng.random_range(0..8) + (1 << 33)).on(ring)
                })
                .collect()
        };
        let rings = [side(1, 0), side(2, 1)];
        let rows = interleaved(&mut rng, &rings);
        let (mut count, mut total, mut starts, mut ends) = (0, 0, 0, 0);
        for key in 0..8 {
            let of = |ring: usize| -> Vec<i64> {
                let key = key + (1 << 33);
                rings[ring]
                    .iter()
                    .filter(|r| r.payload == key)
                    .map(|r| r.ts)
                    .collect()
            };
            let (sent, received) = (of(0), of(1));
            let pairs = sent.len().min(received.len());
            count += pairs as u64;
            total += sent.iter().zip(&received).map(|(s, r)| r - s).sum::<i64>();
            starts += (sent.len() - pairs) as u64;
            ends += (received.len() - pairs) as u64;
        }
        let r = report(&manifest(), &options, &rows);
        exact(&r, "m", (count, total as f64, starts, ends));
    }
}
