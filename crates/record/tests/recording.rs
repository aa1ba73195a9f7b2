//! Whole recordings of C programs that report what they wrote.

mod common;

use std::collections::BTreeMap;
use std::fs;

use common::{alone, killed, payloads, program, rows, run, settings};
use undertick_format::TraceError;
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

#[test]
fn one_and_two_million_events_in_every_growth() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for (name, arguments, n) in [
        ("count", "3000000", 3_000_000),
        ("wide", "1000001", 1_000_001),
    ] {
        let trace = dir.path().join(format!("{name}.ut"));
        let (_, said) = recorded(
            &trace,
            &[name, arguments],
            settings(Overflow::Grow, 256 * 1024, None),
        );
        let rows = assert_complete(&trace, &said);
        let payloads: Vec<i64> = rows
            .iter()
            .filter(|row| row.event == 1)
            .map(|row| row.payload)
            .collect();
        assert_eq!(payloads.len(), n);
        for (i, payload) in payloads.iter().enumerate() {
            let expected = if name == "wide" {
                (i as i64) << 32 | i64::from(!(i as u32))
            } else {
                i as i64
            };
            assert_eq!(*payload, expected);
        }
    }
}

#[test]
fn every_overflow_policy_accounts_for_every_event() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let n = 3_000_000u64;
    for (overflow, budget) in [
        (Overflow::Drop, None),
        (Overflow::Overwrite, None),
        (Overflow::Block, None),
        (Overflow::Grow, Some(MIB)), // grows to 1 MiB, then drops
    ] {
        let trace = dir.path().join(format!("{overflow:?}.ut"));
        let (manifest, _) = recorded(
            &trace,
            &["count", &n.to_string()],
            settings(overflow, 256 * 1024, budget),
        );
        let (_, rows) = rows(&trace);
        let ring = manifest.rings[0];
        assert_eq!(ring.written, n, "{overflow:?}");
        assert_eq!(
            ring.received + ring.dropped + ring.overwritten,
            n,
            "{overflow:?}"
        );
        assert_eq!(manifest.lost, ring.dropped + ring.overwritten);
        let events: Vec<i64> = rows
            .iter()
            .filter(|row| row.kind != Kind::Gap as i8)
            .map(|row| row.payload)
            .collect();
        assert_eq!(events.len() as u64, ring.received);
        assert!(events.is_sorted_by(|a, b| a < b));
        match overflow {
            Overflow::Block => assert_eq!(manifest.lost, 0),
            Overflow::Overwrite => {
                // Two segments of 8192 records: the last events only.
                assert!(ring.overwritten > 0 && *events.last().unwrap() as u64 == n - 1);
                assert_eq!(events.len() as i64, events.last().unwrap() - events[0] + 1);
            }
            _ => {
                // A gap row reports each hole in the numbers, at its place and time.
                assert!(rows.is_sorted_by_key(|row| row.ts), "{overflow:?}");
                let mut told = 0;
                let mut expected = 0i64;
                for row in &rows {
                    if row.kind == Kind::Gap as i8 {
                        told += row.payload;
                        expected += row.payload;
                    } else {
                        assert_eq!(row.payload, expected, "{overflow:?}");
                        expected += 1;
                    }
                }
                assert!(
                    told as u64 <= ring.dropped,
                    "what was dropped last has no gap row after it"
                );
            }
        }
    }
}

#[test]
fn two_thousand_short_threads() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.ut");
    let (manifest, said) = recorded(
        &trace,
        &["threads", "2000"],
        settings(Overflow::Grow, MIB, None),
    );
    assert_eq!(said.values().sum::<u64>(), 2000 / 2 * 8);
    assert_eq!(manifest.rings.len(), 2000);
    assert_complete(&trace, &said);
}

#[test]
fn forked_children_and_orphans_have_their_own_rings() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("f.ut");
    let (manifest, said) = recorded(
        &trace,
        &["forks", "20"],
        settings(Overflow::Grow, MIB, None),
    );
    assert_eq!(manifest.rings.len(), 41);
    assert_complete(&trace, &said);
}

#[test]
fn ends_read_before_it_is_asked_whether_to_record() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("o.ut");
    let (manifest, said) = recorded(&trace, &["ends", "20"], settings(Overflow::Grow, MIB, None));
    // Each process has one ring: none was interrupted in the middle of a write.
    assert_eq!(manifest.rings.len(), 21);
    assert_complete(&trace, &said);
}

/// More processes than the budget has segments: rings of dead processes are reused.
#[test]
fn thousands_of_short_processes_do_not_use_up_the_budget() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("c.ut");
    let (manifest, _) = recorded(
        &trace,
        &["children", "2000"],
        settings(Overflow::Grow, MIB, Some(64 * MIB)),
    );
    let (_, rows) = rows(&trace);
    let seen: Vec<i64> = rows.iter().map(|row| row.payload).collect();
    assert_eq!(manifest.lost, 0, "{:?}", manifest.warnings);
    let mut sorted = seen;
    sorted.sort_unstable();
    assert_eq!(sorted, (0..2000).collect::<Vec<i64>>());
}

#[test]
fn a_program_that_execs_goes_on_recording() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("e.ut");
    let (manifest, said) = recorded(
        &trace,
        &["exec", "1000"],
        settings(Overflow::Grow, MIB, None),
    );
    assert_eq!(manifest.rings.len(), 2);
    assert_complete(&trace, &said);
}

#[test]
fn signal_handlers_record_while_the_thread_records() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("s.ut");
    let (manifest, said) = recorded(
        &trace,
        &["signals", "20000000"],
        settings(Overflow::Grow, MIB, None),
    );
    let (_, rows) = rows(&trace);
    let handled = *said.iter().find(|((_, event), _)| *event == 2).unwrap().1;
    assert!(handled > 100, "the handler hardly ran: {handled}");
    let count = |event| {
        rows.iter()
            .filter(|row| row.event == event && row.kind == 0)
            .count() as u64
    };
    assert_eq!(count(1), 20_000_000);
    assert_eq!(count(2), handled);
    assert_eq!(manifest.lost, 0);
}

#[test]
fn signal_handlers_record_sections_while_the_thread_records_sections() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("p.ut");
    let (manifest, said) = recorded(
        &trace,
        &["sections", "10000000"],
        settings(Overflow::Grow, MIB, None),
    );
    let handled = *said.iter().find(|((_, event), _)| *event == 2).unwrap().1;
    assert!(handled > 100, "the handler hardly ran: {handled}");
    let rows = assert_complete(&trace, &said);
    assert_eq!(manifest.lost, 0);
    // The two rings of the thread, each in the order of its readings.
    assert_eq!(manifest.rings.len(), 2);
    for ring in 0..2 {
        assert!(
            (rows.iter().filter(|row| row.ring == ring)).is_sorted_by_key(|row| row.ts),
            "ring {ring}"
        );
    }
}

#[test]
fn a_library_with_a_recorder_of_its_own_in_the_same_thread() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("d.ut");
    let library = program("library.c", &["-shared", "-fPIC"]);
    let (manifest, said) = recorded(
        &trace,
        &["dlopen", "10000", library.to_str().unwrap()],
        settings(Overflow::Grow, MIB, None),
    );
    assert_eq!(manifest.rings.len(), 2);
    let rows = assert_complete(&trace, &said);
    // Each takes the mark from the other: neither may claim to know.
    let known = rows.iter().filter(|row| row.descheduled == 0).count();
    assert!(
        known < 10,
        "{known} records claim not to have been descheduled"
    );
}

#[test]
fn the_descheduled_flag_is_set_by_sleeping_and_by_nothing_else() {
    let _alone = alone();
    use undertick_format::manifest::Descheduled;
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("z.ut");
    let (manifest, _) = recorded(
        &trace,
        &["sleep", "2000"],
        settings(Overflow::Grow, MIB, None),
    );
    if manifest.descheduled != Descheduled::AnyDeschedule {
        println!(
            "skipped: rseq_cs tells of preemption only, or is not available ({:?})",
            manifest.descheduled
        );
        return;
    }
    let (_, rows) = rows(&trace);
    let flagged = |event: i32, kind: Kind| {
        rows.iter()
            .filter(|row| row.event == event && row.kind == kind as i8 && row.descheduled == 1)
            .count()
    };
    // Whether the kernel counted a switch within each sleep's span, and around it.
    let ends = rows
        .iter()
        .filter(|row| row.event == 2 && row.kind == Kind::End as i8);
    let saw = rows.iter().filter(|row| row.event == 3);
    let (mut asleep, mut worked) = (0, 0);
    for (end, saw) in ends.zip(saw) {
        let (inner, outer) = (saw.payload & 1, saw.payload >> 1);
        assert!(
            inner <= i64::from(end.descheduled),
            "a sleep is not seen: {end:?}"
        );
        worked += i64::from(end.descheduled) & (1 - outer);
        asleep += inner;
    }
    // Flagged without a switch: work that a tick left for the way back (docs/format.md).
    println!("flagged without a switch: {worked}");
    assert!(worked < 20);
    assert!(asleep >= 1000, "{asleep} of 2000 sleeps left the CPU");
    assert!(
        flagged(1, Kind::End) < 20,
        "a section of 20 ns is hardly ever hit: {}",
        flagged(1, Kind::End)
    );
    assert!(rows.iter().all(|row| row.descheduled != -1));
}

/// A reader that opens a trace repeatedly while it is recorded and finalized learns that it is
/// being recorded, and then gets all of it: no two processes may finish it at once.
#[test]
fn a_trace_opened_while_it_is_kept() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut refused = 0;
    for round in 0..12 {
        let trace = dir.path().join(format!("{round}.ut"));
        let opened = std::thread::scope(|scope| {
            let opener = scope.spawn(|| {
                let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
                let mut refused = 0;
                loop {
                    let is_trace = trace.join("manifest.json").exists();
                    match undertick_format::read::Trace::open(&trace) {
                        Ok(opened) => return (opened.manifest, refused),
                        Err(TraceError::Recording(_)) => refused += 1,
                        Err(error) => assert!(!is_trace, "{error}"),
                    }
                    assert!(std::time::Instant::now() < end, "never complete");
                }
            });
            recorded(
                &trace,
                &["count", "400000"],
                settings(Overflow::Grow, MIB, None),
            );
            opener.join().unwrap()
        });
        refused += opened.1;
        let (manifest, rows) = rows(&trace);
        assert_eq!(
            (manifest.events, rows.len()),
            (400_000, 400_000),
            "round {round}"
        );
        assert_eq!(opened.0, manifest, "round {round}");
    }
    assert!(refused > 100, "it was hardly ever open: {refused}");
}

#[test]
fn two_hundred_kills_lose_nothing_that_was_written() {
    let _alone = alone();
    killed("writer.c", 200, |killed| {
        let round = killed.round;
        let got = payloads(&killed.rows);
        for &(tid, published) in &killed.published {
            let events = got.get(&(tid, 1)).map_or(&[][..], Vec::as_slice);
            assert!(
                events.len() as u64 >= published,
                "round {round}: {} of {published} kept",
                events.len()
            );
            // One more event than was counted may be there, and none may be torn.
            assert!(events.len() as u64 <= published + 1, "round {round}");
            assert!(
                events
                    .iter()
                    .enumerate()
                    .all(|(i, &payload)| payload == i as i64),
                "round {round}: torn"
            );
        }
        assert_eq!(killed.manifest.lost, 0);
    });
}

#[test]
fn the_exit_status_and_what_cannot_be_started() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let binary = program("writer.c", &[]);
    let trace = dir.path().join("x.ut");
    let manifest = run(
        &trace,
        &[binary.to_str().unwrap(), "fail"],
        settings(Overflow::Grow, MIB, None),
    )
    .unwrap();
    assert_eq!(manifest.exit.unwrap().status, Some(7));
    assert!(
        manifest
            .warnings
            .iter()
            .any(|text| text.contains("recorded no event"))
    );

    let missing = dir.path().join("y.ut");
    let error = run(
        &missing,
        &["./there-is-no-such-program"],
        settings(Overflow::Grow, MIB, None),
    )
    .unwrap_err();
    assert_eq!(error.exit_status(), 2);
    assert!(
        error.to_string().contains("./there-is-no-such-program"),
        "{error}"
    );
    assert!(
        !missing.exists(),
        "nothing is left of a recording that never began"
    );

    let error = run(&trace, &["true"], settings(Overflow::Grow, MIB, None)).unwrap_err();
    assert!(
        matches!(&error, TraceError::Usage(text) if text.contains("exists already")),
        "{error}"
    );

    let error = run(
        &missing,
        &["true"],
        settings(Overflow::Grow, MIB, Some(1 << 60)),
    )
    .unwrap_err();
    assert!(
        error.exit_status() == 1 && error.to_string().contains("free"),
        "{error}"
    );
}
