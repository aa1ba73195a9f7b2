use RowKind::{Begin, End, Instant};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::path::Path;

use undertick_document::Report;
use undertick_format::block::encode;
use undertick_format::manifest::{Descheduled, Manifest, Thread};
use undertick_format::raw_order::RawIndex;
use undertick_ring::{DeschedFlag, Kind, Record};

use undertick_format::block::BlockHeader;
use undertick_format::schema::Kind as RowKind;

use super::*;

use crate::analysis::Analysis;
use crate::fast_path::support::{Row, calibration, manifest, row};
use crate::fast_path::tests::of_ring;
use crate::options::Options;
use crate::{Compensate, Cull};

/// Makes blocks of `each` rows of each ring; the kernel's rows are left out.
fn blocks(rows: &[Row], each: usize) -> Vec<u8> {
    let mut bytes = vec![];
    let records: Vec<&Row> = rows
        .iter()
        .filter(|row| row.kind <= RowKind::Gap as i8)
        .collect();
    for of_ring in records.chunk_by(|a, b| a.ring == b.ring) {
        for rows in of_ring.chunks(each) {
            let words: Vec<[u64; 2]> = (rows.iter())
                .map(|row| {
                    let is_gap = row.kind == RowKind::Gap as i8;
                    let record = Record {
                        ts: if is_gap { row.payload } else { row.ts } as u64,
                        payload: if is_gap {
                            Record::GAP
                        } else {
                            row.payload as u32
                        },
                        event: row.event as u16,
                        // Each CPU makes different words.
                        cpu: row.ts.rem_euclid(3) as u16,
                        kind: Kind::from_code(row.kind as u16),
                        descheduled: match row.descheduled {
                            0 => DeschedFlag::No,
                            1 => DeschedFlag::Yes,
                            _ => DeschedFlag::Unknown,
                        },
                    };
                    record.to_words()
                })
                .collect();
            let header = BlockHeader {
                ring: rows[0].ring as u32,
                pid: rows[0].pid,
                tid: 100 + rows[0].ring,
                position: 0,
                records: words.len() as u32,
            };
            encode(header, &words, &mut bytes);
        }
    }
    bytes
}

/// The report on these blocks, after a check that it equals that of the general path to the
/// last digit. Where spans are stored no sample waits, so all rows take the general path.
fn by_both(blocks: &[u8], manifest: &Manifest, options: &Options, what: &str) -> Report {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), blocks).unwrap();
    let found = by(
        file.path(),
        Analysis::new(manifest, options.clone()).unwrap(),
    );
    let mut general = Analysis::new(manifest, options.clone()).unwrap();
    assert_eq!(general.passes(), 1, "{what}");
    general.keep_spans(None);
    assert_eq!(found, by(file.path(), general), "{what}");
    found
}

/// The report on a file of blocks.
fn by(file: &Path, mut analysis: Analysis) -> Report {
    let index = RawIndex::open(file).unwrap();
    let mut worker = analysis.worker(true);
    let mut buffers = Buffers::default();
    for group in 0..index.groups().count() {
        index.read(group, &mut buffers.blocks).unwrap();
        assert!(push_blocks(&mut worker, &mut buffers, |_| true).unwrap());
    }
    analysis.absorb(worker.finish());
    analysis.finish_pass();
    analysis.finish().unwrap()
}

/// As [`by_both`], for rows in blocks of that size.
fn found(rows: &[Row], each: usize) -> Report {
    by_both(&blocks(rows, each), &manifest(), &Options::default(), "")
}

/// The thread of that ring, with a name that no other has.
fn thread(ring: i32) -> Thread {
    Thread {
        pid: 100,
        tid: 100 + ring,
        name: ["reader", "writer"][ring as usize].to_owned(),
    }
}

/// Everything that may stand between plain rows, at any frequency.
#[test]
fn codes_say_what_the_general_way_says() {
    let mut samples = 0;
    for seed in 0..12 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let odd = [3, 40, 700, 100_000][seed as usize % 4];
        let rows: Vec<Row> = (0..3)
            .flat_map(|ring| of_ring(&mut rng, ring, 6_000, odd))
            .collect();
        let each = [100, 1_000, 8_192][seed as usize % 3];
        let blocks = blocks(&rows, each);
        let manifest = Manifest {
            calibration: (seed % 2 == 0).then(calibration),
            descheduled: Descheduled::AnyDeschedule,
            // Three roles, or none.
            threads: (0..2 * (seed as i32 % 2)).map(thread).collect(),
            ..manifest()
        };
        for cull in [Cull::Auto, Cull::None] {
            for compensate in [Compensate::Auto, Compensate::None] {
                let options = Options {
                    cull,
                    compensate,
                    ..Options::default()
                };
                let what = format!("seed {seed}, {cull:?}, {compensate:?}");
                let found = by_both(&blocks, &manifest, &options, &what);
                assert_eq!(found.has_roles(), seed % 2 == 1, "{what}");
                samples += found.intervals.iter().map(|i| i.count).sum::<u64>();
            }
        }
    }
    assert!(samples > 200_000, "{samples} samples only");
}

/// Rows from kind and event of each, and the ticks since the row before.
fn at_times(rows: impl IntoIterator<Item = (RowKind, i32, i64)>) -> Vec<Row> {
    let mut ts = 0;
    let rows = rows.into_iter().map(|(kind, event, after)| {
        ts += after;
        row(kind, ts, event, 0)
    });
    rows.collect()
}

/// An interval that has one parent for long and then, in the middle of a block, another: from
/// then on it has no common parent.
#[test]
fn an_interval_that_moves_to_another() {
    // All are known from the first rows on.
    let known = [(Begin, 2, 1), (End, 2, 1)];
    let rows = at_times(known.into_iter().chain((0..2_000).flat_map(|i| {
        let outer = if i < 1_000 { 1 } else { 2 };
        [
            (Begin, outer, 10),
            (Begin, 5, 100),
            (End, 5, 200 + i % 7),
            (End, outer, 90),
        ]
    })));
    for (n, moves) in [(4_002, false), (rows.len(), true)] {
        let found = found(&rows[..n], 8_192);
        assert_eq!(found.intervals.iter().any(|i| i.share_of.is_some()), !moves);
    }
}

/// A span that begins inside another while the general path has the rows, and ends long
/// after.
#[test]
fn an_interval_elsewhere_that_is_taken_over() {
    let inner = || (0..100).flat_map(|_| [(Begin, 6, 3), (End, 6, 5)]);
    let whole = |outer| {
        let begins = [(Begin, outer, 10), (Begin, 5, 10)];
        let ends = [(End, 5, 10), (End, outer, 10)];
        begins.into_iter().chain(inner()).chain(ends)
    };
    let known = [(Begin, 2, 1), (End, 2, 1)];
    let mut rows: Vec<_> = known
        .into_iter()
        .chain((0..9).flat_map(|_| whole(1)))
        .collect();
    let in_one = |rows: &[_]| {
        let found = found(&at_times(rows.iter().copied()), 8_192);
        (found.intervals.iter())
            .filter(|i| i.share_of.is_some())
            .count()
    };
    // 5 lies in 1, and 6 in 5.
    assert_eq!(in_one(&rows), 2);
    rows.push((RowKind::Pair, 80, 1));
    rows.extend(whole(2));
    assert_eq!(in_one(&rows), 1);
}

/// From the last instant before a loss to the first one long after it, no known time passed.
#[test]
fn an_instant_after_a_loss() {
    let spans = || (0..100).flat_map(|_| [(Begin, 6, 3), (End, 6, 5)]);
    let instants = || (0..50).map(|_| (Instant, 9, 7));
    let before = instants().chain(spans()).chain(instants());
    let rows = before
        .chain([(RowKind::Gap, 0, 1_000_000)])
        .chain(spans())
        .chain(instants());
    let found = found(&at_times(rows), 30);
    let periods: Vec<u64> = found.intervals.iter().map(|i| i.count).collect();
    assert!(periods.contains(&(99 + 49)), "{periods:?}");
}

/// Deeper than the stored starts of a ring.
#[test]
fn a_recursion_without_end() {
    for deep in [900, 1_500] {
        let rows = (0..3).flat_map(|_| {
            let down = (0..deep).map(|_| (Begin, 4, 3));
            down.chain((0..deep).map(|_| (End, 4, 5)))
        });
        let found = found(&at_times(rows), 8_192);
        let counts: Vec<u64> = found.intervals.iter().map(|i| i.count).collect();
        assert_eq!(counts == [3 * deep], deep < 1_024, "{counts:?}");
    }
}
