//! Whole recordings of C programs that report what they wrote.

#[path = "../common/mod.rs"]
mod common;
mod interruptions;
mod losses;
mod processes;

use std::collections::BTreeMap;
use std::fs;

use common::{alone, payloads, program, rows, run, settings};
use undertick_format::schema::Kind;
use undertick_record::Overflow;

/// Kind, event and payload of the events that both recorders write (docs/format.md, section 4).
const VECTORS: [(i8, i32, i64); 11] = [
    (0, 0xb1b2, 0xa1a2_a3a4),
    (0, 0xffff, 0x0102_0304_0506_0708),
    (1, 1, 0),
    (3, 1, 2),
    (4, 3, 0),
    (2, 2, 0),
    (5, 4, 0),
    (6, 4, 0),
    (1, 5, 1 << 31),
    (2, 5, 1 << 31),
    (0, 0, 0xffff_ffff),
];

const MIB: u64 = 1 << 20;

/// Records a program and returns the counts that it reported, by (tid, event).
fn recorded(
    trace: &std::path::Path,
    arguments: &[&str],
    settings: undertick_record::session::Settings,
) -> (
    undertick_format::manifest::Manifest,
    BTreeMap<(i32, i32), u64>,
) {
    let said = tempfile::NamedTempFile::new().unwrap();
    let binary = program("writer.c", &[]);
    // The shell only redirects: the program takes its place.
    let path = said.path().to_str().unwrap();
    let mut command = vec![
        "sh",
        "-c",
        "out=$1; shift; exec \"$@\" >>\"$out\"",
        "sh",
        path,
        binary.to_str().unwrap(),
    ];
    command.extend(arguments);
    let manifest = run(trace, &command, settings).unwrap();
    let mut counts = BTreeMap::new();
    for line in fs::read_to_string(said.path()).unwrap().lines() {
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        *counts
            .entry((numbers[0] as i32, numbers[1] as i32))
            .or_default() += numbers[2];
    }
    (manifest, counts)
}

/// Asserts that the read cost is sampled at each segment of 8192 records, and at each eighth of the
/// first one. A sample that was interrupted is dropped. An event may have two records.
fn assert_readings_are_timed(ring: &undertick_format::manifest::Ring) {
    let cost = ring.read_cost.expect("a ring that was written");
    let range = (ring.written / 16_384).max(1)..=ring.written / 4096 + 9;
    assert!(range.contains(&cost.samples), "{range:?}: {cost:?}");
    assert!(
        cost.least_ticks > 0.0 && cost.mean_ticks >= cost.least_ticks,
        "{cost:?}"
    );
}

/// Asserts that all reported events are there, in order.
fn assert_complete(trace: &std::path::Path, said: &BTreeMap<(i32, i32), u64>) -> Vec<common::Row> {
    let (manifest, rows) = rows(trace);
    assert_eq!(manifest.lost, 0, "{:?}", manifest.warnings);
    let got: BTreeMap<_, u64> = payloads(&rows)
        .into_iter()
        .map(|(key, all)| (key, all.len() as u64))
        .collect();
    assert_eq!(&got, said);
    for ring in &manifest.rings {
        assert_eq!(ring.written, ring.received, "{ring:?}");
        assert_readings_are_timed(ring);
        let times: Vec<i64> = rows
            .iter()
            .filter(|row| row.ring == ring.ring)
            .map(|row| row.ts)
            .collect();
        assert!(times.is_sorted(), "ring {} goes back in time", ring.ring);
    }
    rows
}

#[test]
fn the_c_header_writes_the_shared_vectors() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("v.ut");
    let binary = program("writer.c", &[]);
    run(
        &trace,
        &[binary.to_str().unwrap(), "vectors"],
        settings(Overflow::Grow, MIB, None),
    )
    .unwrap();
    let (manifest, rows) = rows(&trace);
    let seen: Vec<(i8, i32, i64)> = rows
        .iter()
        // The payload of a pair is a duration.
        .map(|row| {
            (
                row.kind,
                row.event,
                if row.kind == Kind::Pair as i8 {
                    0
                } else {
                    row.payload
                },
            )
        })
        .collect();
    assert_eq!(seen, VECTORS);
    assert!(
        manifest
            .rings
            .iter()
            .all(|ring| ring.spans_wait == Some(true))
    );
    assert!(rows.iter().all(|row| row.cpu >= -1 && row.pid == row.tid));
    let names: Vec<_> = manifest
        .names
        .iter()
        .map(|name| (name.event, name.name.as_str()))
        .collect();
    assert_eq!(names, [(0xb1b2, "vector"), (7, "renamed")]);
    assert_eq!(manifest.threads[0].name, "C thread");
    assert_eq!(manifest.exit.unwrap().status, Some(0));
    assert!(
        !std::path::Path::new("/dev/shm")
            .join("undertick-leftover")
            .exists()
    );
}

/// Not a test: the Rust program that the next one records.
#[test]
fn rust_program() {
    if std::env::var_os("UNDERTICK_TEST_PROGRAM").is_none() {
        return;
    }
    undertick::name!(0xb1b2, "vector");
    undertick::name(7, "again");
    undertick::name(7, "renamed");
    undertick::thread_name("Rust thread");
    undertick::event!(0xb1b2, 0xa1a2_a3a4);
    undertick::event64!(0xffff, 0x0102_0304_0506_0708);
    undertick::begin(1);
    undertick::next(1, 2);
    undertick::pair!(3);
    undertick::end(2);
    undertick::begin_ordered(4);
    undertick::end_ordered(4);
    undertick::begin_fast(5);
    undertick::end_fast(5);
    undertick::event(0, 0xffff_ffff);
    for i in 0..20_000u64 {
        undertick::event64(9, i << 40 | i);
    }
    std::thread::spawn(|| {
        let _span = undertick::span!(5);
        undertick::event!(6);
    })
    .join()
    .unwrap();
}

#[test]
fn the_rust_crate_writes_the_shared_vectors() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("r.ut");
    let own = std::env::current_exe().unwrap();
    let words = [
        "env",
        "UNDERTICK_TEST_PROGRAM=1",
        own.to_str().unwrap(),
        "rust_program",
        "--exact",
    ];
    let manifest = run(&trace, &words, settings(Overflow::Grow, 256 * 1024, None)).unwrap();
    assert_eq!((manifest.exit.unwrap().status, manifest.lost), (Some(0), 0));
    let (manifest, rows) = rows(&trace);
    assert_eq!(manifest.rings.len(), 2);
    assert!(
        manifest
            .rings
            .iter()
            .all(|ring| ring.spans_wait == Some(true))
    );
    manifest.rings.iter().for_each(assert_readings_are_timed);
    let seen: Vec<(i8, i32, i64)> = rows
        .iter()
        .filter(|row| row.event != 9 && row.ring == 0)
        .map(|row| {
            (
                row.kind,
                row.event,
                if row.kind == Kind::Pair as i8 {
                    0
                } else {
                    row.payload
                },
            )
        })
        .collect();
    assert_eq!(seen, VECTORS);
    let wide: Vec<i64> = rows
        .iter()
        .filter(|row| row.event == 9)
        .map(|row| row.payload)
        .collect();
    assert_eq!(
        wide,
        (0..20_000i64).map(|i| i << 40 | i).collect::<Vec<_>>()
    );
    let other: Vec<(i8, i32)> = rows
        .iter()
        .filter(|row| row.ring == 1)
        .map(|row| (row.kind, row.event))
        .collect();
    assert_eq!(other, [(1, 5), (0, 6), (2, 5)]);
    let names: Vec<_> = manifest
        .names
        .iter()
        .map(|name| (name.event, name.name.as_str()))
        .collect();
    assert_eq!(names, [(0xb1b2, "vector"), (7, "renamed")]);
    assert_eq!(manifest.threads[0].name, "Rust thread");
}

/// Square roots of a chain in the programs below.
const CHAIN: i64 = 30;

/// Not a test: the Rust program that the next one records.
#[test]
fn rust_roots() {
    if std::env::var_os("UNDERTICK_TEST_ROOTS").is_none() {
        return;
    }
    let roots = |start: f64| {
        let mut x = start;
        for _ in 0..CHAIN {
            x = x.sqrt();
        }
        std::hint::black_box(x);
    };
    for n in 0..1000 {
        let x = std::hint::black_box(f64::from(n) + 1.3);
        undertick::begin(1);
        roots(x);
        undertick::end(1);
        undertick::begin_sampled(2);
        roots(x);
        undertick::end_sampled(2);
        undertick::begin(3);
        roots(x);
        undertick::next(3, 4);
        roots(x);
        undertick::end(4);
    }
}

/// Each span of a chain of square roots contains them: one takes at least 9 cycles on any CPU, of
/// at most 6.5 GHz, and a busy machine makes it longer. A reading that waits for nothing passes
/// only few instructions.
#[test]
fn spans_hold_work_that_takes_long() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let c = program("writer.c", &[]);
    let own = std::env::current_exe().unwrap();
    let rust = [
        "env",
        "UNDERTICK_TEST_ROOTS=1",
        own.to_str().unwrap(),
        "rust_roots",
        "--exact",
    ];
    for (name, words) in [
        ("c", &[c.to_str().unwrap(), "roots", "1000"][..]),
        ("rust", &rust),
    ] {
        let trace = dir.path().join(name);
        run(&trace, words, settings(Overflow::Grow, MIB, None)).unwrap();
        let (manifest, rows) = rows(&trace);
        let least = CHAIN as f64 * 9.0 / 6.5 / manifest.clock.ns_per_tick();
        for event in 1..=4 {
            let mut begun = None;
            let mut ticks = Vec::new();
            for row in &rows {
                let (begins, ends) = match Kind::from_code(row.kind).unwrap() {
                    Kind::Begin => (Some(row.event), None),
                    Kind::End => (None, Some(row.event)),
                    Kind::Next => (Some(row.payload as i32), Some(row.event)),
                    _ => continue,
                };
                if ends == Some(event)
                    && let Some(start) = begun.take()
                {
                    ticks.push(row.ts - start);
                }
                if begins == Some(event) {
                    begun = Some(row.ts);
                }
            }
            ticks.sort_unstable();
            assert!(ticks.len() > 30, "{name}: {} spans of {event}", ticks.len());
            let median = ticks[ticks.len() / 2] as f64;
            assert!(
                median > least,
                "{name}: spans of {event}: {median} ticks, not {least}"
            );
        }
        // On x86-64 each reading names its CPU, and the program stays on one.
        let cpus: std::collections::BTreeSet<i16> = rows.iter().map(|row| row.cpu).collect();
        assert!(name == "rust" || cpus.len() == 1, "{cpus:?}");
    }
}
