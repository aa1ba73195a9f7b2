//! Measuring points are switched off and on while a program runs, in C and in Rust; the tests check
//! what is recorded in each half.

mod common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{Row, alone, program, request, rows, settings};
use undertick_format::manifest::Manifest;
use undertick_format::schema::{Kind, Switched};
use undertick_record::Overflow;
use undertick_record::perturbation::Wanted;
use undertick_record::record::record;

/// The contents of a frame while all points are on, without the sampled spans: kinds and events in
/// order.
const INSIDE: [(Kind, i32); 13] = [
    (Kind::Instant, 2),
    (Kind::Begin, 3),
    (Kind::End, 3),
    (Kind::BeginOrdered, 4),
    (Kind::EndOrdered, 4),
    (Kind::BeginOrdered, 5),
    (Kind::EndOrdered, 5),
    (Kind::Begin, 6),
    (Kind::Next, 6),
    (Kind::End, 7),
    (Kind::Pair, 8),
    (Kind::Instant, 9),
    // The frame's own end.
    (Kind::End, 1),
];

/// As in switched.c.
fn frames(ms: u64, ordered: bool) -> u64 {
    let end = Instant::now() + Duration::from_millis(ms);
    let mut n = 0;
    while Instant::now() < end {
        if ordered {
            undertick::begin_ordered(1);
        } else {
            undertick::begin(1);
        }
        undertick::event(2, n as u32);
        undertick::begin(3);
        undertick::end(3);
        undertick::begin_ordered(4);
        undertick::end_ordered(4);
        undertick::begin_paired(5);
        undertick::end_paired(5);
        undertick::begin(6);
        undertick::next(6, 7);
        undertick::end(7);
        undertick::pair(8);
        undertick::event64(9, n);
        undertick::begin_sampled(10);
        undertick::end_sampled(10);
        for i in 0..10_000 {
            std::hint::black_box(i);
        }
        if ordered {
            undertick::end_ordered(1);
        } else {
            undertick::end(1);
        }
        n += 1;
    }
    n
}

/// Not a test: the Rust program that another one records.
#[test]
fn rust_program() {
    let Some(said) = std::env::var_os("UNDERTICK_TEST_PROGRAM") else {
        return;
    };
    let other = std::thread::spawn(|| frames(1500, false));
    let n = frames(1500, true) + other.join().unwrap();
    fs::write(said, n.to_string()).unwrap();
}

fn recorded(trace: &Path, command: &[&str], wanted: Wanted) -> (Manifest, Vec<Row>) {
    let mut request = request(trace, command, settings(Overflow::Grow, 1 << 20, None));
    request.perturbation = Some(wanted);
    let manifest = record(request, &mut |_| {}).unwrap();
    assert_eq!((manifest.exit.unwrap().status, manifest.lost), (Some(0), 0));
    rows(trace)
}

/// A half: the time from which all threads see it, the time until which it lasts for certain, and
/// whether all points are on.
struct Half {
    from: i64,
    until: i64,
    is_on: bool,
}

fn halves(manifest: &Manifest, rows: &[Row]) -> Vec<Half> {
    let us = (1e3 / manifest.clock.ns_per_tick()) as i64;
    let switches: Vec<&Row> = (rows.iter())
        .filter(|row| row.kind == Kind::Epoch as i8)
        .collect();
    assert!(switches.iter().all(|row| row.mode == 1 && row.payload >= 0));
    (switches.windows(2))
        .filter(|two| two[0].event != Switched::Between as i32)
        .map(|two| Half {
            from: two[0].ts + two[0].payload + us,
            until: two[1].ts,
            is_on: two[0].event == Switched::AllOn as i32,
        })
        .collect()
}

/// Every frame of every thread is there in each half. Its contents are complete while all points
/// are on, and missing while they are off. A thread that loses its CPU between the check whether to
/// record and the clock reading records late. That takes a coincidence within some 10 ns; 3 are
/// allowed.
fn check(manifest: &Manifest, rows: &[Row], frames: u64) {
    let about = manifest.perturbation.as_ref().unwrap();
    assert_eq!(about.kept, [1]);
    let halves = halves(manifest, rows);
    // The last pair may have been cut short.
    let more = halves.len() as u64 / 2 - about.pairs;
    assert!(more <= 1, "{more}");
    assert!(about.pairs > 50, "{about:?}");
    let pairs = || halves.chunks_exact(2);
    assert!(pairs().all(|pair| pair[0].is_on != pair[1].is_on));
    // The order is random: the chance that all pairs have the same one is below 2^-50.
    assert!(pairs().any(|pair| pair[0].is_on) && pairs().any(|pair| pair[1].is_on));
    let of_user: Vec<&Row> = rows.iter().filter(|row| row.mode == 0).collect();
    let count = |kinds: [Kind; 2]| {
        let is = |row: &&&Row| row.event == 1 && kinds.iter().any(|kind| row.kind == *kind as i8);
        of_user.iter().filter(is).count() as u64
    };
    assert_eq!(count([Kind::Begin, Kind::BeginOrdered]), frames);
    assert_eq!(count([Kind::End, Kind::EndOrdered]), frames);
    let executions = manifest.sampled.iter().map(|cell| cell.executions);
    assert_eq!(executions.sum::<u64>(), frames);
    let (mut late, mut whole, mut empty) = (0, 0, 0);
    let mut threads: Vec<i32> = of_user.iter().map(|row| row.tid).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), 2);
    for tid in threads {
        let of_thread: Vec<&&Row> = of_user.iter().filter(|row| row.tid == tid).collect();
        let is_begin = |row: &Row| {
            row.event == 1
                && (row.kind == Kind::Begin as i8 || row.kind == Kind::BeginOrdered as i8)
        };
        for frame in of_thread.chunk_by(|_, next| !is_begin(next)) {
            let (first, last) = (frame[0].ts, frame[frame.len() - 1].ts);
            let place = halves.partition_point(|half| half.until <= first);
            let Some(half) = halves
                .get(place)
                .filter(|h| h.from <= first && last < h.until)
            else {
                continue;
            };
            if !half.is_on {
                late += frame.len() - 2;
                empty += 1;
                continue;
            }
            let inside = frame[1..].iter().filter(|row| row.event != 10);
            let inside: Vec<(i8, i32)> = inside.map(|row| (row.kind, row.event)).collect();
            let mut expected = INSIDE.map(|(kind, event)| (kind as i8, event));
            expected[12].0 = frame[frame.len() - 1].kind;
            if inside != expected {
                late += 1;
            }
            whole += 1;
        }
    }
    println!("{whole} whole frames, {empty} empty ones, {late} late");
    assert!(whole > 500 && empty > 500, "{whole} {empty}");
    assert!(late <= 3, "{late}");
}

#[test]
fn a_c_program_records_what_is_on() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let binary = program("switched.c", &[]);
    let said = dir.path().join("said");
    let line = format!("exec {} 1500 > {}", binary.display(), said.display());
    let trace = dir.path().join("t.ut");
    let (manifest, rows) = recorded(&trace, &["sh", "-c", &line], Wanted::Level(1));
    let frames = fs::read_to_string(said).unwrap().trim().parse().unwrap();
    check(&manifest, &rows, frames);
}

#[test]
fn a_rust_program_too() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let said = dir.path().join("said");
    let program = format!("UNDERTICK_TEST_PROGRAM={}", said.display());
    let own = std::env::current_exe().unwrap();
    let words = [
        "env",
        &program,
        own.to_str().unwrap(),
        "rust_program",
        "--exact",
    ];
    let (manifest, rows) = recorded(&dir.path().join("t.ut"), &words, Wanted::Level(1));
    check(
        &manifest,
        &rows,
        fs::read_to_string(said).unwrap().parse().unwrap(),
    );
}

/// Named events stay on, and all others are switched. A level that nothing reaches leaves
/// everything on, and a warning reports it.
#[test]
fn named_events_and_nothing_to_switch() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let binary = program("switched.c", &[]);
    let words = [binary.to_str().unwrap(), "1000"];
    let kept = Wanted::Kept(vec![1, 2]);
    let (manifest, all) = recorded(&dir.path().join("a.ut"), &words, kept);
    let about = manifest.perturbation.as_ref().unwrap();
    assert_eq!(
        (about.asked.as_str(), &about.kept[..]),
        ("keep=1,2", &[1, 2][..])
    );
    let count = |event: i32, kind: Kind| {
        all.iter()
            .filter(|row| row.event == event && row.kind == kind as i8 && row.mode == 0)
            .count()
    };
    let frames = count(1, Kind::Begin) + count(1, Kind::BeginOrdered);
    assert_eq!(count(2, Kind::Instant), frames);
    // All points were on while it learnt, 0.1 s of 1 s, and then half of the time.
    let spans = count(3, Kind::Begin);
    assert!(
        spans > frames / 4 && spans < frames * 9 / 10,
        "{spans} of {frames}"
    );

    let (manifest, all) = recorded(&dir.path().join("b.ut"), &words, Wanted::Level(5));
    assert_eq!(manifest.perturbation.as_ref().unwrap().pairs, 0);
    assert!(
        all.iter()
            .all(|row| row.kind != Kind::Epoch as i8 || row.event == Switched::Between as i32)
    );
    let said = manifest
        .warnings
        .iter()
        .find(|text| text.contains("perturbation"));
    assert!(said.unwrap().contains("no other points inside"), "{said:?}");
}
