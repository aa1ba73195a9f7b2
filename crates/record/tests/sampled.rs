//! Sampled spans: whole recordings of programs that report how many they executed.

mod common;

use std::collections::BTreeMap;
use std::fs;

use common::{Row, alone, killed, program, rows, run, settings};
use undertick_format::manifest::Manifest;
use undertick_format::read;
use undertick_format::schema::Kind;
use undertick_record::Overflow;
use undertick_record::sampled::{Rate, change_rate};
use undertick_record::session::of_recording;

const MIB: u64 = 1 << 20;
/// Events of the sampled spans that record their depth, and of these depths.
const LEVELS: i32 = 4;
const DEPTHS: i32 = 6;

/// Executions that each begin of event 5 of the shared vectors stands for, computed in Python from
/// docs/format.md: seed 20261121; 200 spans at 1 in 16, 100 at 1 in 3, and 10 that are all
/// recorded.
const GAPS: [i64; 56] = [
    2, 21, 26, 25, 11, 3, 29, 5, 30, 21, 28, 1, 4, 1, 5, 1, 3, 1, 3, 1, 2, 1, 1, 3, 3, 2, 4, 1, 1,
    5, 5, 3, 1, 5, 5, 5, 5, 4, 2, 4, 4, 2, 2, 5, 2, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1,
];

/// Returns all rows of the vectors: three spans without a cell follow 46 of event 5.
fn vectors() -> Vec<(i8, i32, i64)> {
    let rate = |i: usize| match i {
        0..11 => 16,
        11..47 => 3,
        _ => 1,
    };
    let of = |i: usize| [(1, 5, GAPS[i]), (2, 5, rate(i))];
    let crowded = std::iter::repeat_n([(1, 261, 1), (2, 261, 1)], 3);
    (0..46)
        .map(of)
        .chain(crowded)
        .chain((46..56).map(of))
        .flatten()
        .collect()
}

fn seen(rows: &[Row]) -> Vec<(i8, i32, i64)> {
    let of = |row: &Row| (row.kind, row.event, row.payload);
    rows.iter().map(of).collect()
}

/// Returns the number of begins of a sampled span in a ring, and the sum of the executions that
/// they stand for.
fn begins(rows: &[Row], ring: i32, event: i32) -> (u64, u64) {
    let begins = rows.iter().filter(|row| {
        (row.ring, row.event, row.kind, row.payload > 0) == (ring, event, Kind::Begin as i8, true)
    });
    begins.fold((0, 0), |(n, sum), row| (n + 1, sum + row.payload as u64))
}

/// Returns the executions by thread and event, from the manifest and the rows; an unsampled event
/// is one.
fn told(manifest: &Manifest, rows: &[Row]) -> BTreeMap<(i32, i32), u64> {
    let mut told = BTreeMap::new();
    let tid = |ring: i32| manifest.rings.iter().find(|r| r.ring == ring).unwrap().tid;
    let mut with_cell = Vec::new();
    for count in &manifest.sampled {
        let event = i32::from(count.event);
        with_cell.push((count.ring, event));
        let (_, sum) = begins(rows, count.ring, event);
        assert!(sum <= count.executions, "{count:?}, records say {sum}");
        *told.entry((tid(count.ring), event)).or_default() += count.executions;
    }
    for row in rows {
        let sampled = row.kind == Kind::Begin as i8 && row.payload > 0;
        if sampled && !with_cell.contains(&(row.ring, row.event)) {
            *told.entry((row.tid, row.event)).or_default() += row.payload as u64;
        } else if row.kind == Kind::Instant as i8 {
            *told.entry((row.tid, row.event)).or_default() += 1;
        }
    }
    told
}

/// Asserts that every end closes the innermost begin of its event, and that all are closed.
fn assert_nested(rows: &[Row]) {
    let mut open = BTreeMap::<(i32, i32), Vec<i64>>::new();
    let mut depth = BTreeMap::<i32, i64>::new();
    for (i, row) in rows.iter().enumerate() {
        let stack = open.entry((row.ring, row.event)).or_default();
        if row.kind == Kind::Begin as i8 {
            let tells = rows.get(i + 1).filter(|_| row.event == LEVELS);
            assert!(tells.is_none_or(|next| next.event == DEPTHS), "{row:?}");
            stack.push(tells.map_or(0, |next| next.payload));
        } else if row.kind == Kind::End as i8 {
            let begun = stack
                .pop()
                .unwrap_or_else(|| panic!("closes nothing: {row:?}"));
            if row.event == LEVELS {
                assert_eq!(
                    depth.get(&row.ring),
                    Some(&begun),
                    "another level's: {row:?}"
                );
            }
        } else if row.event == DEPTHS {
            depth.insert(row.ring, row.payload);
        }
    }
    let left: Vec<_> = open.iter().filter(|(_, stack)| !stack.is_empty()).collect();
    assert!(left.is_empty(), "never closed: {left:?}");
}

/// Records a program; its reported counts must be those of the trace.
fn recorded(arguments: &[&str]) -> (Manifest, Vec<Row>) {
    recorded_with(arguments, settings(Overflow::Grow, MIB, None))
}

fn recorded_with(
    arguments: &[&str],
    settings: undertick_record::session::Settings,
) -> (Manifest, Vec<Row>) {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("s.ut");
    let out = dir.path().join("said");
    let binary = program("sampled.c", &[]);
    let mut command = vec![
        "sh",
        "-c",
        "out=$1; shift; exec \"$@\" >>\"$out\"",
        "sh",
        out.to_str().unwrap(),
        binary.to_str().unwrap(),
    ];
    command.extend(arguments);
    let exit = run(&trace, &command, settings).unwrap().exit;
    assert_eq!(exit.unwrap().status, Some(0));
    let (manifest, rows) = rows(&trace);
    let mut said = BTreeMap::<(i32, i32), u64>::new();
    for line in fs::read_to_string(&out).unwrap_or_default().lines() {
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        *said
            .entry((numbers[0] as i32, numbers[1] as i32))
            .or_default() += numbers[2];
    }
    said.retain(|_, n| *n > 0);
    if !said.is_empty() {
        let told = told(&manifest, &rows);
        let differ =
            |key| (told.get(key) != said.get(key)).then(|| (*key, told.get(key), said.get(key)));
        let wrong: Vec<_> = told.keys().chain(said.keys()).filter_map(differ).collect();
        assert!(
            wrong.is_empty(),
            "(thread, event), told, said: {:?}",
            &wrong[..wrong.len().min(9)]
        );
    }
    (manifest, rows)
}

#[test]
fn c_records_the_shared_vectors() {
    let (manifest, rows) = recorded(&["vectors"]);
    assert_eq!(seen(&rows), vectors());
    let counts: Vec<_> = manifest
        .sampled
        .iter()
        .map(|s| (s.event, s.executions))
        .collect();
    assert_eq!(counts, [(5, 310)]);
}

/// Not a test: the Rust program that the next one records.
#[test]
fn rust_program() {
    if std::env::var_os("UNDERTICK_TEST_PROGRAM").is_none() {
        return;
    }
    let spans = |event: u16, n: u32| {
        for _ in 0..n {
            undertick::begin_sampled(event);
            undertick::end_sampled(event);
        }
    };
    undertick::sample_seed(20_261_121);
    spans(5, 200);
    undertick::sample_rate(5, 3);
    spans(5, 100);
    spans(261, 3);
    undertick::sample_rate(5, 1);
    spans(5, 10);
    // Spans in threads of all lengths, with other spans open, and in a child.
    for n in 1..60 {
        let busy = move || {
            let _full = undertick::span!(6);
            for _ in 0..n {
                let _outer = undertick::sampled_span!(7);
                spans(8, 3);
            }
        };
        std::thread::spawn(busy).join().unwrap();
    }
    // SAFETY: the child calls what a child may call.
    let child = unsafe { libc::fork() };
    if child == 0 {
        spans(5, 33);
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

#[test]
fn rust_records_the_shared_vectors() {
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
    let manifest = run(&trace, &words, settings(Overflow::Grow, MIB, None)).unwrap();
    assert_eq!((manifest.exit.unwrap().status, manifest.lost), (Some(0), 0));
    let (manifest, rows) = rows(&trace);
    let first: Vec<Row> = rows.iter().filter(|row| row.ring == 0).copied().collect();
    assert_eq!(seen(&first), vectors());
    assert_nested(&rows);
    let of = |event: u16| -> u64 {
        let counts = manifest.sampled.iter().filter(|s| s.event == event);
        counts.map(|s| s.executions).sum()
    };
    // 1 + 2 + .. + 59 = 1770.
    assert_eq!((of(5), of(7), of(8)), (310 + 33, 1_770, 5_310));
}

#[test]
fn threads_of_all_lengths_are_counted_to_the_last_span() {
    let (manifest, rows) = recorded(&["threads", "300"]);
    assert_eq!(manifest.rings.len(), 300);
    assert_nested(&rows);
}

/// Each execution is recorded with probability 1/16, the first as well as the 150th, so that code
/// that runs only a few times in each thread has its share: of 8 spans of 240 events in 40 threads,
/// 4800 +- 329. The gaps are drawn anew each time. For independent choices the variance would be
/// 15/256 of the number; here it is smaller, because the choices avoid each other. 4.9 standard
/// deviations give one false alarm in 10^6.
#[test]
fn what_runs_a_few_times_in_each_thread_has_its_share() {
    let (manifest, rows) = recorded(&["few", "8"]);
    let executed: u64 = manifest.sampled.iter().map(|s| s.executions).sum();
    assert_eq!(executed, 8 * 240 * 40);
    let recorded = rows
        .iter()
        .filter(|row| row.kind == Kind::Begin as i8)
        .count() as f64;
    let (expected, band) = (
        executed as f64 / 16.0,
        4.9 * (executed as f64 * 15.0 / 256.0).sqrt(),
    );
    assert!(
        (recorded - expected).abs() < band,
        "{recorded}, expected {expected} +- {band}"
    );
}

#[test]
fn children_count_what_they_execute_themselves() {
    let (manifest, rows) = recorded(&["forks", "40"]);
    assert_eq!(manifest.rings.len(), 81);
    assert_nested(&rows);
}

#[test]
fn nested_spans_of_one_event_are_closed_by_their_own_ends() {
    let (_, rows) = recorded(&["nested", "20000"]);
    assert!(rows.iter().any(|row| row.kind == Kind::End as i8));
    assert_nested(&rows);
    let (_, rows) = recorded(&["deep", "3000"]);
    assert!(rows.len() > 3_000, "{}", rows.len());
    assert_nested(&rows);
}

#[test]
fn signal_handlers_with_spans_of_the_same_event() {
    let (manifest, rows) = recorded(&["signals", "20000000"]);
    assert_eq!(manifest.lost, 0);
    let handled = told(&manifest, &rows);
    assert!(
        handled
            .iter()
            .any(|(&(_, event), &n)| event == 2 && n > 100)
    );
    assert_nested(&rows);
}

#[test]
fn switching_off_keeps_ends_with_their_begins() {
    let (_, rows) = recorded(&["off", "5000"]);
    // Spans while recording is off are missing, but no end closes another's begin: of the outer
    // spans (1 in 6 of all) none stays open for long.
    let mut open = 0_i64;
    for row in rows.iter().filter(|row| row.event == 1) {
        open += if row.kind == Kind::Begin as i8 { 1 } else { -1 };
        assert!(open >= -1_700, "{row:?}");
    }
    assert!(rows.len() > 5_000);
}

#[test]
fn events_that_found_no_room_are_counted_all_the_same() {
    for overflow in [Overflow::Drop, Overflow::Overwrite] {
        let budget = settings(overflow, MIB / 4, Some(MIB));
        let (manifest, rows) = recorded_with(&["full", "3000000"], budget);
        assert!(manifest.lost > 0, "{overflow:?}");
        let (_, sum) = begins(&rows, 0, 1);
        assert!(sum < 3_000_000);
    }
}

#[test]
fn a_rate_can_be_changed_from_outside_while_the_program_runs() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("a.ut");
    let _alone = alone();
    let binary = program("sampled.c", &[]);
    let other = std::thread::spawn({
        let trace = trace.clone();
        move || loop {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let Ok(manifest) = read::read_manifest(&trace) else {
                continue;
            };
            let session = of_recording(&trace, &manifest).expect("the recording runs");
            let rate = |event, one_in| {
                change_rate(&session, Rate { event, one_in }).unwrap();
            };
            rate(None, 9);
            rate(Some(1), 1);
            return;
        }
    });
    let command = [binary.to_str().unwrap(), "all"];
    run(&trace, &command, settings(Overflow::Grow, MIB, None)).unwrap();
    other.join().unwrap();
    let (_, rows) = rows(&trace);
    let mark = rows.iter().position(|row| row.event == 9).unwrap();
    let after = seen(&rows[mark + 1..]);
    let each = [(1, 1, 1), (2, 1, 1)];
    assert_eq!(after, each.repeat(100));
    let manifest = read::read_manifest(&trace).unwrap();
    assert!(of_recording(&trace, &manifest).is_err(), "it is over");
}

#[test]
fn a_rate_given_to_the_recorder_is_not_the_programs_to_change() {
    let mut given = settings(Overflow::Grow, MIB, None);
    let rate = |event, one_in| Rate { event, one_in };
    // Event 5 of the vectors, which ask for 3 and for 1; 261 has no cell.
    given.rates = vec![rate(None, 2), rate(Some(5), 20), rate(Some(261), 7)];
    let (manifest, rows) = recorded_with(&["vectors"], given);
    assert_eq!(manifest.sampled[0].executions, 310);
    let ends = |event| {
        let of = rows
            .iter()
            .filter(move |r| (r.event, r.kind) == (event, Kind::End as i8));
        of.map(|row| row.payload).collect::<Vec<_>>()
    };
    assert!(ends(5).iter().all(|&one_in| one_in == 20), "{rows:?}");
    assert!((8..40).contains(&ends(5).len()), "{}", ends(5).len());
    assert_eq!(ends(261), [1, 1, 1]);
}

#[test]
fn sixty_kills_lose_no_execution() {
    let _alone = alone();
    killed("sampled.c", 60, |killed| {
        let told = told(&killed.manifest, &killed.rows);
        for &(tid, published) in &killed.published {
            let counted = told.get(&(tid, 1)).copied().unwrap_or(0);
            // One more execution than was counted may have begun.
            assert!(
                (published..=published + 1).contains(&counted),
                "round {}: {counted} told of {published}",
                killed.round
            );
        }
    });
}
