//! Recorders that are killed during their work, and others that resume. The programs count what
//! they wrote; a recorder is this file in a separate process.

mod common;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::flight::{Cells, PID, STOP, assert_accounts, number_of, numbers_of};
use common::recorders::{
    ROLE, Recorder, Recorders, act_as_recorder, raw_bytes, resume_here, wait_until,
};
use common::{Row, alone, payloads, rows};
use undertick_format::TraceError;
use undertick_format::manifest::{Manifest, State};
use undertick_format::read::{Trace, read_manifest};
use undertick_format::schema::Kind;
use undertick_record::Overflow;
use undertick_record::finish::finish;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Not a test: a recorder.
#[test]
fn recorder() {
    act_as_recorder();
}

/// Checks that each thread's events are in the trace or dropped: the holes are where gap rows
/// report them, with their length, and no event occurs twice. Returns the dropped events.
fn nothing_is_missing(trace: &Path, written: &[(i32, u64)]) -> u64 {
    let (manifest, rows) = rows(trace);
    assert_accounts(&manifest, &rows);
    for &(tid, written) in written {
        let rings: Vec<_> = manifest
            .rings
            .iter()
            .filter(|ring| ring.tid == tid)
            .collect();
        assert_eq!(rings.len(), 1, "{tid}: {rings:?}");
        let ring = rings[0];
        // The program counts an event after writing it.
        assert!(
            (written..=written + 1).contains(&ring.written),
            "{written}: {ring:?}"
        );
        assert_eq!(ring.overwritten, 0, "{ring:?}");
        let mut next = 0;
        for row in rows.iter().filter(|row| row.tid == tid) {
            next = next_number(row, next);
        }
        assert!(next as u64 <= ring.written, "{next}: {ring:?}");
        // No event follows the last dropped ones to report them.
        let told = next as u64 - ring.received;
        assert!(
            told <= ring.dropped && next as u64 + ring.dropped - told == ring.written,
            "{ring:?}"
        );
    }
    manifest.lost
}

fn next_number(row: &Row, next: i64) -> i64 {
    if row.kind == Kind::Gap as i8 {
        return next + row.payload;
    }
    assert_eq!(number_of(row), next, "{row:?}");
    next + 1
}

fn scramble(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Kills the recorder 200 times at random moments, with 8 threads, over several traces.
#[test]
fn two_hundred_kills_of_the_recorder_lose_nothing_that_was_published() {
    if std::env::var_os(ROLE).is_some() {
        return;
    }
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let (mut kills, mut dropped) = (0, 0);
    // Several traces, because each recorder that resumes reads the whole trace.
    for (part, overflow) in [Overflow::Grow, Overflow::Drop]
        .into_iter()
        .cycle()
        .take(8)
        .enumerate()
    {
        let cells = Cells::new();
        let _stop = cells.stop_if_failed();
        let trace = dir.path().join(format!("{part}.ut"));
        let recorders = Recorders::new(trace.clone(), overflow, 256 * KIB, 8 * MIB);
        let mut recorder =
            recorders.start("record", &cells.command(&["write", "8", "700", "1500"]));
        (0..8).for_each(|t| cells.wait_for(4 * t, 1));
        for _ in 0..25 {
            std::thread::sleep(Duration::from_micros(500 + scramble(&mut state) % 60_000));
            let before = cells.written(8);
            recorder.kill();
            kills += 1;
            // Some pauses are long enough for the rings to fill.
            let pause = if scramble(&mut state).is_multiple_of(8) {
                60_000
            } else {
                2_000
            };
            std::thread::sleep(Duration::from_micros(scramble(&mut state) % pause));
            assert_eq!(read_manifest(&trace).unwrap().state, State::Recording);
            let after = cells.written(8);
            assert!(before.iter().zip(&after).all(|(b, a)| b.1 <= a.1));
            recorder = recorders.resume();
        }
        let now = cells.written(8);
        wait_until(|| now.iter().zip(cells.written(8)).all(|(b, a)| b.1 < a.1));
        cells.store(STOP, 1);
        recorder.ends();
        dropped += nothing_is_missing(&trace, &cells.written(8));
        assert_eq!(recorders.sessions(), 0);
        std::fs::remove_dir_all(&trace).unwrap();
    }
    println!("{kills} kills, {dropped} events dropped");
    assert_eq!(kills, 200);
    assert!(dropped > 0, "the rings were never full");
}

/// Attaches to a running program: it is recorded by several recorders and left as it was. If it
/// ends while no recorder is there, its events are found.
#[test]
fn a_program_that_was_attached_to_is_recorded_on() {
    if std::env::var_os(ROLE).is_some() {
        return;
    }
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for ends_first in [false, true] {
        let cells = Cells::new();
        let _stop = cells.stop_if_failed();
        let command = cells.command(&["write", "3", "300", "1000"]);
        let child = Command::new(&command[0]).args(&command[1..]).spawn();
        let mut program = Recorder(child.unwrap());
        cells.wait_for(PID, 1);
        let trace = dir.path().join(format!("{ends_first}.ut"));
        let recorders = Recorders::new(trace.clone(), Overflow::Grow, MIB, 64 * MIB);
        let pid = cells.load(PID).to_string();
        let mut recorder = recorders.start("attach", &[pid]);
        for _ in 0..5 {
            let before = raw_bytes(&trace);
            wait_until(|| raw_bytes(&trace) > before);
            recorder.kill();
            std::thread::sleep(Duration::from_millis(5));
            recorder = recorders.resume();
        }
        let before = raw_bytes(&trace);
        wait_until(|| raw_bytes(&trace) > before);
        if ends_first {
            recorder.kill();
            cells.store(STOP, 1);
            program.0.wait().unwrap();
            recorders.resume().ends();
        } else {
            recorder.interrupt();
            recorder.ends();
        }
        let (manifest, rows) = rows(&trace);
        assert_accounts(&manifest, &rows);
        assert_eq!((manifest.rings.len(), manifest.lost), (3, 0));
        for (tid, written) in cells.written(3) {
            let numbers = numbers_of(&rows, tid);
            let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
            assert!(
                numbers.iter().copied().eq(first..=last),
                "{tid}: a hole, or twice"
            );
            if ends_first {
                assert_eq!(last, written as i64 - 1);
            }
        }
        let running = cells.written(3);
        if !ends_first {
            // Each thread of the program runs on, and can be recorded again.
            wait_until(|| running.iter().zip(cells.written(3)).all(|(b, a)| b.1 < a.1));
            let again = Recorders::new(dir.path().join("again.ut"), Overflow::Grow, MIB, 64 * MIB);
            let recorder = again.start("attach", &[cells.load(PID).to_string()]);
            wait_until(|| raw_bytes(&again.trace) > 0);
            recorder.interrupt();
            recorder.ends();
            assert_eq!(common::rows(&again.trace).0.lost, 0);
            cells.store(STOP, 1);
            program.0.wait().unwrap();
        }
    }
}

/// Programs that wait for their recorder do not wait for a dead one, in C and in Rust. They then
/// drop and count, and wait again for a recorder that resumes.
#[test]
fn a_program_that_waits_does_not_wait_for_a_dead_recorder() {
    if std::env::var_os(ROLE).is_some() {
        return;
    }
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for is_rust in [false, true] {
        let cells = Cells::new();
        let _stop = cells.stop_if_failed();
        let trace = dir.path().join(format!("{is_rust}.ut"));
        let recorders = Recorders::new(trace.clone(), Overflow::Block, 256 * KIB, 8 * MIB);
        let mut command = cells.command(&["write", "2", "1000"]);
        if is_rust {
            let own = std::env::current_exe().unwrap();
            let own = own.to_str().unwrap();
            let cells = format!("{PROGRAM}={}", command[2]);
            let words = [
                "env",
                "-u",
                ROLE,
                &cells,
                own,
                "rust_program",
                "--exact",
                "--quiet",
            ];
            command = words.map(str::to_owned).to_vec();
        }
        let mut recorder = recorders.start("record", &command);
        (0..2).for_each(|t| cells.wait_for(4 * t, 100_000));
        for _ in 0..3 {
            recorder.kill();
            for t in 0..2 {
                // This is far more than two segments: the program does not block.
                cells.wait_for(4 * t, cells.load(4 * t) + 1_000_000);
            }
            recorder = recorders.resume();
            let before = raw_bytes(&trace);
            wait_until(|| raw_bytes(&trace) > before);
        }
        cells.store(STOP, 1);
        recorder.ends();
        assert!(nothing_is_missing(&trace, &cells.written(2)) > 1_000_000);
    }
}

/// Variable that makes this file the Rust program.
const PROGRAM: &str = "UNDERTICK_TEST_CELLS";

/// Not a test: two threads that write and count, as `flight.c` does.
#[test]
fn rust_program() {
    let Some(path) = std::env::var_os(PROGRAM) else {
        return;
    };
    let cells = &Cells::open(Path::new(&path));
    cells.store(PID, u64::from(std::process::id()));
    std::thread::scope(|scope| {
        for t in 0..2 {
            scope.spawn(move || {
                // SAFETY: only returns a number.
                cells.store(4 * t + 1, unsafe { libc::syscall(libc::SYS_gettid) } as u64);
                for i in 0u64.. {
                    match i % 3 {
                        2 => undertick::event64(2, i << 32 | u64::from(!(i as u32))),
                        _ => undertick::event(1, i as u32),
                    }
                    if (i + 1).is_multiple_of(100) {
                        cells.store(4 * t, i + 1);
                        if cells.load(STOP) != 0 {
                            return;
                        }
                    }
                }
            });
        }
    });
}

/// A flight recorder is killed: rings and ended threads are unchanged.
#[test]
fn a_flight_recorder_goes_on_with_threads_that_ended_before() {
    if std::env::var_os(ROLE).is_some() {
        return;
    }
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let cells = Cells::new();
    let _stop = cells.stop_if_failed();
    let trace = dir.path().join("f.ut");
    // All threads have room, even without a recorder.
    let recorders = Recorders::new(trace.clone(), Overflow::Overwrite, 256 * KIB, 1 << 30);
    let threads = 3000;
    let command = cells.command(&["churn", &threads.to_string()]);
    let mut recorder = recorders.start("record", &command);
    let mut state = 7;
    let mut at = 0;
    while at < threads {
        at += 150;
        cells.wait_for(common::flight::ENDED, at);
        std::thread::sleep(Duration::from_micros(scramble(&mut state) % 12_000));
        recorder.kill();
        if at == 1500 {
            // Snapshots work without a recorder, too.
            let out = dir.path().join("now.ut");
            let made = undertick_record::snapshot::snapshot(&trace, &out, &mut |_| {}).unwrap();
            assert!(each_thread_once(&out, &made) >= 1500);
        }
        recorder = recorders.resume();
    }
    cells.store(STOP, 1);
    recorder.ends();
    let (manifest, _) = rows(&trace);
    assert_eq!(each_thread_once(&trace, &manifest), threads);
    assert_eq!(manifest.lost, 0, "{:?}", manifest.warnings);
}

/// Asserts that each thread has its five events, once; returns the number of threads.
fn each_thread_once(trace: &Path, manifest: &Manifest) -> u64 {
    let (_, rows) = rows(trace);
    assert_accounts(manifest, &rows);
    let mut all: Vec<i64> = payloads(&rows).into_values().flatten().collect();
    all.sort_unstable();
    assert!(all.is_sorted_by(|a, b| a < b), "twice");
    manifest.rings.len() as u64
}

/// The remains of a recording are finished on request, not by opening the trace. It then cannot be
/// resumed; nor can it be while a recorder lives.
#[test]
fn finishing_keeps_what_was_left_and_what_is_refused() {
    if std::env::var_os(ROLE).is_some() {
        return;
    }
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let cells = Cells::new();
    let _stop = cells.stop_if_failed();
    let trace = dir.path().join("o.ut");
    let recorders = Recorders::new(trace.clone(), Overflow::Grow, MIB, 64 * MIB);
    let recorder = recorders.start("record", &cells.command(&["write", "2", "500", "1000"]));
    wait_until(|| raw_bytes(&trace) > 0);
    let refused = |words: &str| {
        let error = resume_here(&trace).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        error
    };
    assert!(matches!(
        refused("its recorder is still running"),
        TraceError::Recording(_)
    ));
    let finished = finish(&trace, &mut |_| {}).unwrap_err().to_string();
    assert!(
        finished.contains("its recorder is still running"),
        "{finished}"
    );
    recorder.kill();
    let before = cells.written(2);
    std::thread::sleep(Duration::from_millis(50));
    let unread = Trace::open(&trace).unwrap_err().to_string();
    assert!(unread.contains("undertick record --finish"), "{unread}");
    assert_eq!(read_manifest(&trace).unwrap().state, State::Recording);
    // The events that were in the rings are there, too.
    finish(&trace, &mut |_| {}).unwrap();
    let (manifest, rows) = rows(&trace);
    assert_accounts(&manifest, &rows);
    for (tid, written) in before {
        let numbers = numbers_of(&rows, tid);
        assert!(numbers.iter().copied().eq(0..numbers.len() as i64), "{tid}");
        assert!(
            numbers.len() as u64 >= written,
            "{} of {written}",
            numbers.len()
        );
    }
    assert!(manifest.session.is_none());
    assert_eq!(refused("nothing to go on with").exit_status(), 2);
    // The program runs on, and is no longer recorded.
    let before = cells.written(2);
    std::thread::sleep(Duration::from_millis(20));
    assert!(before.iter().zip(cells.written(2)).all(|(b, a)| b.1 < a.1));
    cells.store(STOP, 1);
}
