//! The flight recorder: snapshots while the program runs on, threads that end, and bounded memory.
//! The programs count what they wrote.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::attach_target::{Program, sessions};
use common::flight::{Cells, ENDED, PID, STOP, WRITTEN, assert_accounts, assert_same, numbers_of};
use common::{alone, payloads, request, rows, settings};
use undertick_format::TraceError;
use undertick_format::manifest::Manifest;
use undertick_record::Overflow;
use undertick_record::attach::{Attach, attach};
use undertick_record::kernel::Wanted;
use undertick_record::record::{RecordingProgress, record};
use undertick_record::snapshot::snapshot;
use undertick_ring::layout::POOL_FILE;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Records a program that overwrites while `look` runs, and stops it.
fn flown<R>(
    trace: &Path,
    cells: &Cells,
    words: &[&str],
    (ring, budget): (u64, u64),
    look: impl FnOnce() -> R,
) -> (Manifest, R) {
    let command = cells.command(words);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let request = request(
        trace,
        &command,
        settings(Overflow::Overwrite, ring, Some(budget)),
    );
    std::thread::scope(|scope| {
        let _stop = cells.stop_if_failed();
        let recorder = scope.spawn(|| record(request, &mut |_| {}).unwrap());
        cells.wait_for(PID, 1);
        let seen = look();
        cells.store(STOP, 1);
        (recorder.join().unwrap(), seen)
    })
}

/// Three threads write at full speed, in rings that wrap every fraction of a millisecond, and in
/// rings of several megabytes.
#[test]
fn a_snapshot_has_the_last_events_of_each_thread_without_a_hole() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let before = sessions();
    for (ring, budget, count) in [(256 * KIB, 4 * MIB, 25), (4 * MIB, 64 * MIB, 10)] {
        let trace = dir.path().join(format!("{ring}.ut"));
        let cells = Cells::new();
        let words = ["write", "3", "1000"];
        let (manifest, overwritten) = flown(&trace, &cells, &words, (ring, budget), || {
            (0..3).for_each(|t| cells.wait_for(4 * t, 100_000));
            let mut overwritten = 0;
            for round in 0..count {
                let out = dir.path().join(format!("{ring}-{round}.ut"));
                let earlier = cells.written(3);
                let made = snapshot(&trace, &out, &mut |_| {}).unwrap();
                let later = cells.written(3);
                overwritten += look_at(&out, &made, &earlier, &later);
                fs::remove_dir_all(out).unwrap();
            }
            // The program was not stopped: each thread goes on when it has a CPU.
            (0..3).for_each(|t| cells.wait_for(4 * t, cells.load(4 * t) + 1));
            overwritten
        });
        assert!(overwritten > 0, "nothing was overwritten: {ring}");
        // The recording went on to the end, and has the last event of each thread.
        let (_, rows) = rows(&trace);
        assert_accounts(&manifest, &rows);
        for (tid, written) in cells.written(3) {
            let numbers = numbers_of(&rows, tid);
            assert_eq!(numbers.last(), Some(&(written as i64 - 1)));
            let first = written as i64 - numbers.len() as i64;
            assert!(numbers.iter().copied().eq(first..written as i64), "{tid}");
        }
    }
    assert_eq!(sessions(), before);
}

/// Checks a snapshot: the threads' counts before and after it was made bound its contents. Returns
/// the number of overwritten events.
fn look_at(out: &Path, made: &Manifest, earlier: &[(i32, u64)], later: &[(i32, u64)]) -> u64 {
    let (manifest, rows) = rows(out);
    assert_same(&manifest, made);
    assert!(manifest.warnings.is_empty(), "{:?}", manifest.warnings);
    assert!(manifest.flight.unwrap().snapshot_unix_ns.is_some());
    assert_eq!((manifest.session.as_deref(), manifest.exit), (None, None));
    let names: Vec<&str> = manifest
        .names
        .iter()
        .map(|name| name.name.as_str())
        .collect();
    assert_eq!(names, ["narrow", "wide"]);
    assert_accounts(&manifest, &rows);
    assert_eq!(manifest.rings.len(), 3);
    for (&(tid, before), &(_, after)) in earlier.iter().zip(later) {
        let numbers = numbers_of(&rows, tid);
        let (first, last) = (numbers[0], *numbers.last().unwrap());
        assert!(
            numbers.iter().copied().eq(first..=last),
            "{tid}: a hole, or twice"
        );
        // The program counts an event after writing it.
        assert!(
            before as i64 - 1 <= last && last <= after as i64,
            "{tid}: {before} {last} {after}"
        );
        let ring = manifest.rings.iter().find(|ring| ring.tid == tid).unwrap();
        assert_eq!(
            (ring.overwritten, ring.dropped),
            (first as u64, 0),
            "{ring:?}"
        );
        // A ring is at least two segments of 8192 records. One of them is whole, and half of that
        // is copied; four records are three events.
        assert!(numbers.len() >= 3000, "{tid}: {}", numbers.len());
    }
    manifest.lost
}

/// Returns the disk space of the files in a directory but the one of that name, in bytes.
fn bytes_beside(dir: &Path, name: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    (fs::read_dir(dir).unwrap().flatten())
        .filter(|file| file.file_name() != name)
        .filter_map(|file| Some(file.metadata().ok()?.blocks() * 512))
        .sum()
}

/// 20 000 threads, 8 at a time. The trace has the events of the threads that ended last, and the
/// counts of all others; neither the session nor the trace grows.
#[test]
fn threads_that_end_are_kept_as_far_as_there_is_room_and_counted() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("churn.ut");
    let cells = Cells::new();
    let threads = 20_000u64;
    let (manifest, ()) = flown(
        &trace,
        &cells,
        &["churn", &threads.to_string()],
        (256 * KIB, 64 * MIB),
        || {
            let session = PathBuf::from(
                (undertick_format::read::read_manifest(&trace)
                    .unwrap()
                    .session)
                    .unwrap(),
            );
            let mut most = (0, 0);
            for round in 0u64.. {
                let at = (round + 1) * 2500;
                if at > threads {
                    break;
                }
                cells.wait_for(ENDED, at);
                // The rings cannot grow: the pool has its size from the start.
                most.0 = most.0.max(bytes_beside(&session, POOL_FILE));
                most.1 = most.1.max(bytes_beside(&trace, ""));
                let out = dir.path().join(format!("{round}.ut"));
                let before = cells.load(ENDED);
                let made = snapshot(&trace, &out, &mut |_| {}).unwrap();
                ended_threads(&out, &made, before);
                fs::remove_dir_all(out).unwrap();
            }
            // Names and control. On disk the threads that are kept, and their accounts: twice as many
            // as on a quiet machine, as below.
            assert!(most.0 < 4 * MIB, "the session takes {} bytes", most.0);
            assert!(most.1 < 16 * MIB, "the trace takes {} bytes", most.1);
        },
    );
    let (kept, all) = ended_threads(&trace, &manifest, threads);
    assert_eq!(all, cells.load(WRITTEN));
    // On disk 8192 rings, and as many in memory that a busy recorder has not drained yet.
    assert!((4096..=2 * 8192).contains(&kept), "{kept}");
    assert!(
        manifest
            .warnings
            .iter()
            .any(|text| text.contains("threads that had ended")),
        "{:?}",
        manifest.warnings
    );
}

/// Checks that each ring is that of a thread, with its five events, and that the others were given
/// up and counted. Returns the number of rings in the trace and the events of all threads.
fn ended_threads(trace: &Path, manifest: &Manifest, least: u64) -> (u64, u64) {
    let (opened, rows) = rows(trace);
    assert_same(&opened, manifest);
    assert_accounts(manifest, &rows);
    let given_up = manifest.flight.unwrap();
    let written: u64 = manifest.rings.iter().map(|ring| ring.written).sum();
    let seen = manifest.rings.len() as u64 + given_up.given_up_rings;
    // Where a busy recorder gives heads back late, a thread may find none: it has no ring.
    let without_ring = (manifest.events + manifest.lost) - (written + given_up.given_up_events);
    assert!(
        5 * seen + without_ring >= 5 * least,
        "{seen} of {least} threads, {without_ring} events of others"
    );
    if given_up.snapshot_unix_ns.is_none() {
        let said = |text: &String| {
            let (n, _) = text.split_once(" events lost: their thread could get no ring")?;
            n.parse::<u64>().ok()
        };
        let said = manifest.warnings.iter().find_map(said);
        assert_eq!(without_ring, said.unwrap_or(0));
    }
    assert_eq!(given_up.given_up_events, 5 * given_up.given_up_rings);
    let mut numbers = BTreeSet::new();
    let mut newest = 0;
    for ((_, event), all) in payloads(&rows) {
        assert_eq!(event, 3);
        // The kernel may give a thread's number to another thread.
        for five in all.chunks(5) {
            let number = five[0] / 8;
            assert!(
                five.iter()
                    .copied()
                    .eq((0..five.len() as i64).map(|i| number * 8 + i))
            );
            assert!(numbers.insert(number), "{number} twice");
            newest = newest.max(number);
        }
    }
    // The oldest rings are given up. A thread has a ring without events if it found all memory in
    // use because the recorder, waiting for a CPU, had not drained it.
    let oldest = *numbers.iter().next().unwrap();
    let crowded = (manifest.rings.iter()).filter(|ring| ring.received < ring.written);
    let missing = newest - oldest - numbers.len() as i64;
    let without_ring_at_all = without_ring.div_ceil(5) as i64;
    assert!(
        missing <= 64 + crowded.count() as i64 + without_ring_at_all,
        "{oldest}..{newest}: {}, {without_ring_at_all} without a ring",
        numbers.len()
    );
    (
        manifest.rings.len() as u64,
        written + given_up.given_up_events + without_ring,
    )
}

/// The signal goes to the recorder; the program, which has a handler for it, receives none.
#[test]
fn a_signal_makes_a_numbered_snapshot() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("run.ut");
    let cells = Cells::new();
    let command = cells.command(&["write", "2", "100", "500"]);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let request = request(
        &trace,
        &command,
        settings(Overflow::Overwrite, 256 * KIB, Some(8 * MIB)),
    );
    let (tell, told) = std::sync::mpsc::channel();
    let manifest = std::thread::scope(|scope| {
        let _stop = cells.stop_if_failed();
        let recorder = scope.spawn(move || {
            record(request, &mut |it| {
                if let RecordingProgress::Snapshot(made) = it {
                    tell.send(made).unwrap();
                }
            })
        });
        (0..2).for_each(|t| cells.wait_for(4 * t, 1000));
        for number in 1..=3 {
            let before = cells.written(2);
            // SAFETY: to ourselves; the recorder has listened since before it began.
            unsafe { libc::kill(libc::getpid(), libc::SIGRTMIN()) };
            let made = told.recv_timeout(Duration::from_secs(30)).unwrap().unwrap();
            assert_eq!(made.trace, dir.path().join(format!("run-{number}.ut")));
            assert_eq!(made.why, None);
            let (_, rows) = rows(&made.trace);
            for (tid, written) in before {
                let last = *numbers_of(&rows, tid).last().unwrap();
                assert!(last >= written as i64 - 1, "{last} of {written}");
            }
        }
        cells.store(STOP, 1);
        recorder.join().unwrap().unwrap()
    });
    assert_eq!(
        manifest.exit.unwrap().status,
        Some(0),
        "the program got the signal"
    );
}

/// Ends the recording if the test fails; otherwise the test would wait for it.
struct StopIfFailed;

impl Drop for StopIfFailed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // SAFETY: to ourselves.
            unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
        }
    }
}

/// Attaches to a running program, with kernel events; requests other than a recording that
/// overwrites are refused with a message.
#[test]
fn snapshots_of_a_program_that_ran_already_and_what_is_refused() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::c();
    let pid = program.pid();
    let trace = dir.path().join("a.ut");
    let mut wanted = request(
        &trace,
        &[],
        settings(Overflow::Overwrite, 512 * KIB, Some(64 * MIB)),
    );
    wanted.kernel = Wanted::Auto;
    std::thread::scope(|scope| {
        let _stop = StopIfFailed;
        let length = None;
        let recorder =
            scope.spawn(move || attach(wanted, Attach { pid, length }, &mut |_| {}).unwrap());
        program.tell("on 0");
        let mut all = 0;
        for (round, count) in [200_000u64, 10, 50_000].into_iter().enumerate() {
            program.tell(&format!("main {count}"));
            program.tell("name 77");
            all += count;
            // The names in its attach page and the kernel's records come later.
            let end = Instant::now() + Duration::from_secs(60);
            let (out, manifest) = (0..)
                .map(|again| {
                    std::thread::sleep(Duration::from_millis(300));
                    let out = dir.path().join(format!("a-{round}-{again}.ut"));
                    let manifest = snapshot(&trace, &out, &mut |_| {}).unwrap();
                    (out, manifest)
                })
                .find(|(_, manifest)| {
                    assert!(Instant::now() < end, "the name does not come");
                    manifest.names.iter().any(|name| name.event == 77)
                })
                .unwrap();
            let (_, rows) = rows(&out);
            let ring = manifest.rings.iter().find(|ring| ring.tid == pid).unwrap();
            assert_eq!(ring.written, all, "{ring:?}");
            let events = payloads(
                &rows
                    .iter()
                    .filter(|r| r.mode == 0)
                    .copied()
                    .collect::<Vec<_>>(),
            );
            let got = &events[&(pid, 2)];
            assert_eq!(*got.last().unwrap() as u64, count - 1);
            assert_eq!(got.len() as u64, ring.received);
            assert!(
                manifest
                    .names
                    .iter()
                    .any(|name| (name.event, name.name.as_str()) == (77, "given late"))
            );
            let kernel = manifest.kernel.unwrap();
            if kernel.sources.iter().any(|source| source.used) {
                assert_eq!(
                    rows.iter().filter(|row| row.mode == 1).count() as u64,
                    kernel.rows
                );
            } else {
                println!("skipped: no evidence of the kernel here");
            }
        }
        // SAFETY: to ourselves.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
        recorder.join().unwrap();
    });
    drop(program); // a recording waits for all children
    let refused = |trace: &Path, out: &Path, words: &str| {
        let error = snapshot(trace, out, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.exit_status(), 2, "{error}");
    };
    let free = dir.path().join("free.ut");
    refused(&trace, &free, "not being recorded any more");
    refused(&dir.path().join("none.ut"), &free, "no such trace");
    let growing = dir.path().join("growing.ut");
    let cells = Cells::new();
    let command = cells.command(&["write", "1", "10", "1000"]);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let request = request(&growing, &command, settings(Overflow::Grow, MIB, None));
    std::thread::scope(|scope| {
        let recorder = scope.spawn(|| record(request, &mut |_| {}).unwrap());
        cells.wait_for(0, 10);
        refused(&growing, &free, "--overflow grow");
        cells.store(STOP, 1);
        recorder.join().unwrap();
    });
    assert!(!free.exists());
    let error = snapshot(&growing, &growing, &mut |_| {}).unwrap_err();
    assert!(matches!(error, TraceError::Usage(_)), "{error}");
}

/// Two seconds stand for days. Snapshots are made all the time, and the recorder still removes the
/// rings of threads that end.
#[test]
fn snapshots_one_after_the_other_do_not_keep_the_recorder_from_its_work() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("s.ut");
    let cells = Cells::new();
    let words = ["churn", "4000"];
    let (manifest, made) = flown(&trace, &cells, &words, (256 * KIB, 128 * MIB), || {
        let end = Instant::now() + Duration::from_secs(2);
        let mut made = 0;
        while Instant::now() < end || cells.load(ENDED) < 4000 || made <= 10 {
            let out = dir.path().join("now.ut");
            snapshot(&trace, &out, &mut |_| {}).unwrap();
            fs::remove_dir_all(out).unwrap();
            made += 1;
        }
        made
    });
    println!("{made} snapshots");
    let (kept, written) = ended_threads(&trace, &manifest, 4000);
    assert_eq!((kept, written), (4000, cells.load(WRITTEN)));
    // All memory holds 512 rings. If the recorder waits for a CPU, some threads find none; if it
    // removed no ring, 3488 threads would.
    let crowded: Vec<_> = (manifest.rings.iter())
        .filter(|ring| ring.received < ring.written)
        .collect();
    assert!(crowded.iter().all(|ring| ring.received == 0), "{crowded:?}");
    assert!(crowded.len() < 2000, "{}", crowded.len());
    assert_eq!(manifest.lost, 5 * crowded.len() as u64);
}
