use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use undertick_document::Report;
use undertick_format::manifest::{
    Calibration, Descheduled, Manifest, Perturbation, Ring as ManifestRing, SampledCost, SpanCost,
};
use undertick_format::schema::{Kind, Switched};

use super::support::{Row, batch, calibration, manifest, ns, row};
use crate::{Analysis, Compensate, Cull, Options};

/// A ring whose program's recorder only had readings that wait for nothing.
fn never_waits(ring: i32) -> ManifestRing {
    ManifestRing {
        ring,
        pid: 1,
        tid: 1,
        written: 0,
        received: 0,
        dropped: 0,
        overwritten: 0,
        spans_wait: Some(false),
        interposed: false,
        read_cost: None,
    }
}

/// Kernel rows of the thread of ring 0, at random times.
fn of_kernel(rng: &mut ChaCha8Rng, until: i64) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut ts = 0;
    while ts < until {
        ts += rng.random_range(20_000..2_000_000);
        let of = |kind, ts, payload| Row {
            mode: 1,
            ring: -1,
            ..row(kind, ts, 0, payload)
        };
        match rng.random_range(0..3) {
            0 => rows.push(of(Kind::Interrupt, ts, rng.random_range(1..500))),
            1 => rows.push(of(Kind::Migrate, ts, 1)),
            _ => {
                rows.push(of(Kind::SwitchOut, ts, rng.random_range(0..3)));
                ts += rng.random_range(1..3_000);
                rows.push(of(Kind::SwitchIn, ts, 0));
            }
        }
    }
    rows
}

/// Measuring points that are switched off and on.
fn switches(until: i64) -> Vec<Row> {
    let times = (0..until).step_by(120_000).zip(0..);
    times
        .map(|(ts, i): (i64, i32)| {
            let states = [Switched::AllOn, Switched::SomeOff];
            let state = states[((i / 2 % 2) ^ (i % 2)) as usize];
            Row {
                mode: 1,
                ring: -1,
                ..row(Kind::Epoch, ts, state as i32, 40)
            }
        })
        .collect()
}

/// Mostly plain rows of a ring; one in `odd` is something else, or out of order.
pub(crate) fn of_ring(rng: &mut ChaCha8Rng, ring: i32, n: usize, odd: u32) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut open: Vec<i32> = Vec::new();
    let mut ts = rng.random_range(0..10_000);
    for _ in 0..n {
        ts += rng.random_range(1..3_000);
        let event = rng.random_range(1..5) + 10 * open.len().min(3) as i32;
        let mut made = match rng.random_range(0..10) {
            0 => row(Kind::Instant, ts, 90 + event % 3, rng.random_range(0..9)),
            1..5 if open.len() < 6 => {
                open.push(event);
                row(Kind::Begin, ts, event, 0)
            }
            _ => match open.pop() {
                Some(event) => row(Kind::End, ts, event, 0),
                None => row(Kind::Instant, ts, 90, 0),
            },
        };
        if rng.random_range(0..odd) == 0 {
            let pair = rng.random_range(0..60);
            made = match rng.random_range(0..9) {
                0 => row(Kind::Gap, ts, 0, 5),
                1 => row(Kind::Next, ts, 3, 4),
                2 => row(Kind::Pair, ts, 80, pair),
                3 => row(Kind::BeginOrdered, ts, event, pair),
                4 => row(Kind::EndOrdered, ts, event, pair),
                5 if pair % 3 == 0 => row(Kind::Begin, ts, event, 1 << 31),
                6 if pair % 3 == 0 => row(Kind::End, ts, event, 1 << 31),
                5 => row(Kind::Begin, ts, event, 16),
                6 => row(Kind::End, ts, event, 16),
                7 => made.flag(if pair % 2 == 0 { 1 } else { -1 }),
                _ => Row {
                    ts: ts - 4_000,
                    ..made
                },
            };
        }
        rows.push(made.on(ring));
    }
    rows
}

/// The report, by the fast path where it is possible, or by the general one alone: where spans
/// are stored no sample waits.
fn report(manifest: &Manifest, options: &Options, rows: &[Row], general: bool) -> Report {
    let mut analysis = Analysis::new(manifest, options.clone()).unwrap();
    for pass in 0..analysis.passes() {
        if general && pass + 1 == analysis.passes() {
            analysis.keep_spans(None);
        }
        for rows in rows.chunks(7_001) {
            analysis.push(&batch(rows)).unwrap();
        }
        analysis.finish_pass();
    }
    analysis.finish().unwrap()
}

/// Everything that can stand between plain rows, with every way of dropping and compensating: the
/// results equal those of the general path to the last digit.
#[test]
fn the_short_way_says_what_the_general_way_says() {
    let (mut samples, mut slowed) = (0, 0);
    for seed in 0..8_u64 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut rows = match seed % 2 {
            0 => Vec::new(),
            _ => of_kernel(&mut rng, 9_000_000),
        };
        let is_switched = seed % 4 == 3;
        if is_switched {
            rows.extend(switches(9_000_000));
            rows.sort_by_key(|row| row.ts);
        }
        let odd = [3, 40, 3_000][seed as usize % 3];
        for ring in 0..3 {
            rows.extend(of_ring(&mut rng, ring, 6_000, odd));
        }
        let manifest = Manifest {
            calibration: (seed % 4 < 2).then(|| Calibration {
                inner_span_ns: (seed < 4).then(|| ns(5.0, 4.0, 6.0)),
                sampled: [1, 4].contains(&seed).then(|| SampledCost {
                    span: SpanCost {
                        empty_ns: ns(17.0, 16.0, 18.0),
                        dosed_ns: ns(17.0, 16.0, 18.0),
                        least_dose_ns: None,
                    },
                    counted_ns: ns(2.0, 1.0, 3.0),
                    record_ns: ns(13.0, 12.0, 14.0),
                }),
                ..calibration()
            }),
            rings: (seed == 5).then(|| never_waits(1)).into_iter().collect(),
            descheduled: Descheduled::AnyDeschedule,
            perturbation: is_switched.then(|| Perturbation {
                asked: "1".into(),
                kept: vec![1, 2, 3, 4],
                pairs: 37,
                half_ns: 120_000,
            }),
            ..manifest()
        };
        for cull in [Cull::Auto, Cull::None, Cull::Kernel, Cull::Ratio(4.0)] {
            for compensate in [Compensate::Auto, Compensate::None, Compensate::LongTerm] {
                let options = Options {
                    cull,
                    compensate,
                    ..Options::default()
                };
                let no_kernel = cull == Cull::Kernel && seed % 2 == 0;
                let no_pairs = compensate == Compensate::LongTerm && odd == 3_000;
                if no_kernel || no_pairs {
                    continue;
                }
                let short = report(&manifest, &options, &rows, false);
                let general = report(&manifest, &options, &rows, true);
                samples += short.intervals.iter().map(|i| i.count).sum::<u64>();
                slowed += (short.intervals.iter())
                    .filter(|i| i.slowed.is_some())
                    .count();
                assert_eq!(short, general, "seed {seed}, {cull:?}, {compensate:?}");
            }
        }
    }
    assert!(samples > 200_000, "{samples} samples only");
    assert!(slowed > 20, "{slowed} intervals only of which it is known");
}
