//! Input that no recorder writes: nothing may panic, and memory must stay bounded.

use crate::support;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use support::*;
use undertick_analyze::{Analysis, Cull, Options, Table};
use undertick_document::Report;
use undertick_format::manifest::Manifest;

/// Pushes `times` batches.
fn storm(options: Options, times: usize, rows: impl Fn(usize) -> Vec<Row>) -> Report {
    let mut analysis = Analysis::new(&manifest(), options).unwrap();
    for i in 0..times {
        analysis.push(&batch(&rows(i))).unwrap();
    }
    analysis.finish_pass();
    analysis.finish().unwrap()
}

fn with(table: &str) -> Options {
    Options {
        table: Some(Table::parse(table, "t.toml").unwrap()),
        ..Options::default()
    }
}

/// A million begins without an end: all are unmatched, most given up early, and the innermost still
/// matches.
#[test]
fn begins_without_ends() {
    let rows = |i: usize| {
        let mut rows: Vec<Row> = (0..10_000)
            .map(|k| begin((i * 10_000 + k) as i64, 1))
            .collect();
        if i == 99 {
            rows.push(end(1_000_005, 1));
        }
        rows
    };
    let r = storm(Options::default(), 100, rows);
    exact(&r, "event 1", (1, 6.0, 999_999, 0));
    let text = warned(&r, "too_many_open").unwrap();
    let given_up: u64 = text.split(' ').next().unwrap().parse().unwrap();
    assert!((999_999 - 1024..999_999).contains(&given_up), "{text}");
    let r = storm(with("[[interval]]\nname='i'\nstart=1\nend=2\n"), 100, rows);
    exact(&r, "i", (0, 0.0, 1_000_000, 0));
    assert!(warned(&r, "too_many_open").is_some());
}

/// More keys than are stored: the others are counted, within a thread and between threads.
#[test]
fn keys_without_ends() {
    let rows = |i: usize| {
        (0..60_000)
            .map(|k| instant(0, 1, (i * 60_000 + k) as i64))
            .collect()
    };
    let table = |word| format!("[[interval]]\nname='i'\nstart=1\nend=2\nmatch='{word}'\n");
    let given_up = |r: &Report, kept: u64| {
        exact(r, "i", (0, 0.0, 1_200_000, 0));
        let text = warned(r, "too_many_open").unwrap();
        let wanted = format!("{} ", 1_200_000 - kept);
        assert!(text.starts_with(&wanted), "{text}");
    };
    given_up(&storm(with(&table("key")), 20, rows), 1 << 16);
    // Between threads any number of keys may wait, but only a limited number of starts of one key.
    let r = storm(with(&table("message")), 20, rows);
    exact(&r, "i", (0, 0.0, 1_200_000, 0));
    assert_eq!(warned(&r, "too_many_open"), None);
    let one_key = |_| (0..60_000).map(|_| instant(0, 1, 7)).collect();
    given_up(&storm(with(&table("message")), 20, one_key), 1 << 20);
}

/// All 65536 event numbers: 4096 intervals, and the others are counted.
#[test]
fn every_event_number() {
    let r = storm(Options::default(), 2, |i| {
        (0..65_536)
            .flat_map(|e| [begin(i as i64, e), end(i as i64 + 1, e)])
            .collect()
    });
    assert_eq!(r.intervals.len(), 4096);
    assert_eq!(r.frequencies.len(), 4096);
    assert!(warned(&r, "too_many_names").is_some());
}

/// Random codes and readings in every column, including the ends of their ranges.
#[test]
fn garbage_in_every_column() {
    let tables = [
        None,
        Some(
            "[[interval]]\nname='a'\nstart=1\nend=2\n[[interval]]\nname='b'\nstart=2\nend=2\nwithin='a'\n[[interval]]\nname='k'\nstart=1\nend=3\nmatch='key'\nwithin='a'\n[[interval]]\nname='m'\nstart=3\nend=1\nmatch='message'\n[[frequency]]\nname='f'\nevent=3\nwithin='a'\n",
        ),
    ];
    for seed in 0..15 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut pick = |few: &[i64]| match rng.random_range(0..8) {
            0 => rng.random::<u64>() as i64,
            1 => [i64::MIN, i64::MAX, -1, 0][rng.random_range(0..4)],
            _ => few[rng.random_range(0..few.len())],
        };
        let rows: Vec<Row> = (0..3000)
            .map(|_| Row {
                ts: pick(&[5, 100, 10_000]),
                ring: pick(&[0, 1, 2]) as i32,
                pid: pick(&[100]) as i32,
                mode: i8::from(pick(&[0]) == -1),
                kind: pick(&[0, 1, 2, 3, 4, 5, 6, 7]) as i8,
                descheduled: pick(&[0, 1, -1]) as i8,
                event: pick(&[1, 2, 3]) as i32,
                payload: pick(&[1, 2, 3]),
            })
            .collect();
        for table in tables {
            for cull in [Cull::Auto, Cull::Ratio(4.0), Cull::None] {
                for step in [0.0, 1.0, 24.45, u64::MAX as f64] {
                    let table = table.map(|t| Table::parse(t, "t.toml").unwrap());
                    let options = Options {
                        table,
                        cull,
                        ..Options::default()
                    };
                    let mut m = Manifest {
                        calibration: Some(calibration()),
                        ..manifest()
                    };
                    m.clock.granularity_ticks = step;
                    let r = report(&m, &options, &rows);
                    assert!(finite(&r), "seed {seed}, step {step}");
                }
            }
        }
    }
}

/// JSON has no not-a-number: a figure is a number or absent.
fn finite(report: &Report) -> bool {
    report.intervals.iter().all(|i| {
        let estimates = i.mean.iter().chain(&i.median).chain(i.quantiles.values());
        let bounds = estimates.flat_map(|e| [Some(e.value), e.interval.lo, e.interval.hi]);
        let figures = bounds.chain([
            i.statistics.min,
            i.statistics.max,
            i.statistics.sd,
            i.total_ns,
            i.median_steps,
        ]);
        let edges = i.histogram.edges.iter().copied().map(Some);
        figures.chain(edges).flatten().all(f64::is_finite)
            && i.histogram.counts.iter().sum::<u64>() == i.count
    })
}
