//! Recorders that attach to running programs, and leave again. The programs report what they wrote.

mod common;

use std::fs;
use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

use common::attach_target::{
    ALL, Program, assert_complete, assert_nothing_left, recorded, ring_memory, sessions, uid,
};
use common::{alone, payloads, program, request, rows, settings};
use undertick_format::TraceError;
use undertick_record::Overflow;
use undertick_record::attach::{Attach, attach};

#[test]
fn a_program_is_recorded_several_times_and_runs_on() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let before = sessions();
    let mut program = Program::c();
    for round in 0..4 {
        // Events before, between and after recordings are not recorded.
        program.does(&ALL);
        let trace = dir.path().join(format!("{round}.ut"));
        let (result, said) = recorded(&trace, &mut program, |program| program.does(&ALL));
        let manifest = result.unwrap();
        assert!(manifest.exit.unwrap().interrupted);
        program.tell("off 0");
        assert_nothing_left(&before);
        let (manifest, rows) = assert_complete(&trace, &said);
        // Three workers, two child processes with all of their events, and three events of the main
        // thread.
        assert_eq!(said.len(), 3 * 4 + 2 + 4 + 1, "{said:?}");
        for ((tid, event), all) in payloads(&rows) {
            let first: Vec<i64> = all.iter().copied().take(100).collect();
            if matches!(event, 1 | 2 | 6) {
                assert_eq!(first, (0..100).collect::<Vec<i64>>(), "{tid} {event}");
            }
        }
        let mut names: Vec<_> = (manifest.names.iter())
            .map(|name| (name.pid, name.event, name.name.as_str()))
            .collect();
        names.sort();
        let pid = Some(program.pid());
        assert_eq!(names, [(pid, 1, "counted"), (pid, 3, "sampled")]);
        let workers = manifest
            .threads
            .iter()
            .filter(|thread| thread.name == "worker");
        assert_eq!((workers.count(), manifest.threads.len()), (3, 4));
        assert_eq!(manifest.session, None);
        assert!(
            manifest.command[0].ends_with("attach-c"),
            "{:?}",
            manifest.command
        );
    }
    program.tell("quit 0");
    assert!(program.child.wait().unwrap().success());
}

#[test]
fn a_rust_program_is_recorded_several_times() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let before = sessions();
    let mut program = Program::rust();
    for round in 0..3 {
        program.does(&ALL);
        let trace = dir.path().join(format!("{round}.ut"));
        let (result, said) = recorded(&trace, &mut program, |program| program.does(&ALL));
        result.unwrap();
        program.tell("off 0");
        assert_nothing_left(&before);
        let (manifest, _) = assert_complete(&trace, &said);
        assert_eq!(said.len(), 2 * 4 + 2 + 4, "{said:?}");
        let names: Vec<_> = (manifest.names.iter())
            .map(|name| (name.event, name.name.as_str()))
            .collect();
        assert_eq!(names, [(1, "counted"), (3, "sampled")]);
        assert_eq!(manifest.threads.len(), 3, "{:?}", manifest.threads);
    }
    program.tell("quit 0");
}

/// Not a test: a Rust program that has recorded nothing yet.
#[test]
fn rust_sleeper() {
    if std::env::var_os("UNDERTICK_TEST_PROGRAM").is_some() {
        say("done\n");
        std::io::stdin().read_to_string(&mut String::new()).unwrap();
    }
}

#[test]
fn a_rust_program_has_its_door_before_its_first_event() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["rust_sleeper", "--exact", "--nocapture", "--quiet"])
        .env("UNDERTICK_TEST_PROGRAM", "1");
    let program = Program::start(&mut command);
    let request = request(
        &dir.path().join("s.ut"),
        &[],
        settings(Overflow::Grow, 1 << 20, None),
    );
    let (pid, length) = (program.pid(), Some(Duration::from_millis(1)));
    assert!(
        attach(request, Attach { pid, length }, &mut |_| {})
            .unwrap()
            .rings
            .is_empty()
    );
}

/// The last events are stored, the others counted.
#[test]
fn a_flight_recorder_can_come_and_go() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::c();
    for round in 0..2 {
        let trace = dir.path().join(format!("{round}.ut"));
        let request = request(
            &trace,
            &[],
            settings(Overflow::Overwrite, 512 << 10, Some(64 << 20)),
        );
        let (pid, length) = (program.pid(), None);
        std::thread::scope(|scope| {
            let recorder =
                scope.spawn(|| attach(request, Attach { pid, length }, &mut |_| {}).unwrap());
            program.tell("on 0");
            program.tell("main 200000");
            // SAFETY: as in `recorded`.
            unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
            recorder.join().unwrap();
        });
        let (manifest, rows) = rows(&trace);
        let all = payloads(&rows).remove(&(pid, 2)).unwrap();
        let first = 200_000 - all.len() as i64;
        assert_eq!(all, (first..200_000).collect::<Vec<_>>());
        assert_eq!(
            (manifest.events + manifest.lost, manifest.lost),
            (200_000, first as u64)
        );
        assert!(manifest.lost > 100_000);
    }
}

/// Not a test: the Rust program that is recorded several times.
#[test]
fn rust_program() {
    if std::env::var_os("UNDERTICK_TEST_PROGRAM").is_none() {
        return;
    }
    undertick::name(1, "first");
    undertick::name(1, "counted");
    undertick::name(3, "sampled");
    undertick::thread_name("main thread");
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (give, orders) = std::sync::mpsc::channel::<(String, u64)>();
            let (answer, done) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                undertick::thread_name("worker");
                for (order, n) in orders {
                    match order.as_str() {
                        "events" => rust_events(1, n),
                        _ => rust_spans(n),
                    }
                    answer.send(()).unwrap();
                }
            });
            (give, done)
        })
        .collect();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (order, n) = line.split_once(' ').unwrap();
        let n: u64 = n.parse().unwrap();
        match order {
            "on" => (0..)
                .find(|_| rested(undertick::enabled()))
                .map_or((), drop::<u32>),
            "off" => (0..)
                .find(|_| rested(!undertick::enabled()))
                .map_or((), drop::<u32>),
            "events" | "spans" => {
                for (give, _) in &workers {
                    give.send((order.to_owned(), n)).unwrap();
                }
                for (_, done) in &workers {
                    done.recv().unwrap();
                }
            }
            "main" => rust_events(2, n),
            "thread" => std::thread::spawn(move || rust_events(6, n))
                .join()
                .unwrap(),
            // SAFETY: the child records, writes and ends.
            "fork" => unsafe {
                let child = libc::fork();
                if child == 0 {
                    rust_events(2, n);
                    rust_spans(n);
                    libc::exit(0);
                }
                let mut status = 0;
                libc::waitpid(child, &raw mut status, 0);
                assert_eq!(status, 0);
            },
            _ => {}
        }
        say("done\n");
        if order == "quit" {
            std::process::exit(0);
        }
    }
}

fn rested(is_so: bool) -> bool {
    if !is_so {
        std::thread::sleep(Duration::from_micros(200));
    }
    is_so
}

fn rust_events(event: u16, n: u64) {
    for i in 0..n {
        undertick::event(event, i as u32);
    }
    rust_said(event, n);
}

fn rust_spans(n: u64) {
    for i in 0..n {
        undertick::begin_paired(4);
        undertick::begin_sampled(3);
        undertick::event64(5, i << 32);
        undertick::end_sampled(3);
        undertick::end_ordered(4);
    }
    for event in [3, 4, 5] {
        rust_said(event, n);
    }
}

fn rust_said(event: u16, n: u64) {
    // SAFETY: only returns a number.
    let tid = unsafe { libc::gettid() };
    say(&format!("{tid} {event} {n}\n"));
}

fn say(text: &str) {
    // SAFETY: the bytes are there; not by way of the test harness.
    unsafe { libc::write(1, text.as_ptr().cast(), text.len()) };
}

#[test]
fn the_memory_is_given_back() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for (mut program, workers) in [(Program::c(), 3), (Program::rust(), 2)] {
        let trace = dir.path().join(format!("{}.ut", program.pid()));
        let (result, inside) = recorded(&trace, &mut program, |program| {
            program.does(&["events 300000", "spans 20000", "main 100000"]);
            ring_memory(program.pid())
        });
        result.unwrap();
        assert!(inside.0 > 3 * 1024, "{inside:?} KiB while it is recorded");
        // For each thread with sampled spans two pages stay until its next sampled span.
        let (kib, mappings) = ring_memory(program.pid());
        assert!(kib <= 8 * workers, "{kib} KiB of {workers} workers");
        program.does(&["spans 10", "main 10", "events 10"]);
        assert_eq!(ring_memory(program.pid()).0, 0);
        // The next session frees the mappings of the rings.
        for again in 0..3 {
            let trace = dir.path().join(format!("{}-{again}.ut", program.pid()));
            recorded(&trace, &mut program, |program| {
                program.does(&["spans 10", "events 10", "main 10"])
            })
            .0
            .unwrap();
            assert!(ring_memory(program.pid()).1 <= 2 * mappings, "{mappings}");
        }
        fs::remove_dir_all(&trace).unwrap();
    }
}

#[test]
fn it_ends_with_its_time_or_with_the_program() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::c();
    let timed = |name: &str, program: &Program, length| {
        let trace = dir.path().join(name);
        let request = request(&trace, &[], settings(Overflow::Grow, 1 << 20, None));
        let (pid, length) = (program.pid(), Some(Duration::from_millis(length)));
        (trace, move || {
            attach(request, Attach { pid, length }, &mut |_| {})
        })
    };
    // The recording ends with its time.
    let (trace, record) = timed("time.ut", &program, 300);
    let since = Instant::now();
    let manifest = record().unwrap();
    assert!(since.elapsed() >= Duration::from_millis(300));
    assert!(!manifest.exit.unwrap().interrupted);
    assert!(
        manifest
            .warnings
            .iter()
            .any(|w| w.contains("no measuring point")),
        "{manifest:?}"
    );
    assert!(manifest.duration_ns.unwrap() >= 300_000_000);
    assert!(rows(&trace).1.is_empty());
    // The recording ends with the program: by a return from main, by an immediate exit, and by a
    // kill.
    for end in ["quit 0", "exit 0", "kill"] {
        let (trace, record) = timed(&format!("{}.ut", &end[..4]), &program, 600_000);
        let said = std::thread::scope(|scope| {
            let recorder = scope.spawn(record);
            program.tell("on 0");
            let said = program.does(&ALL[..5]);
            match end {
                "kill" => program.child.kill().unwrap(),
                _ => drop(program.tell(end)),
            }
            program.child.wait().unwrap();
            recorder.join().unwrap().unwrap();
            said
        });
        assert_complete(&trace, &said);
        program = Program::c();
    }
}

#[test]
fn what_cannot_be_recorded_is_refused_in_words() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("no.ut");
    let refused = |pid: i32, words: &str| {
        let length = Some(Duration::from_millis(1));
        let request = request(&trace, &[], settings(Overflow::Grow, 1 << 20, None));
        let error = attach(request, Attach { pid, length }, &mut |_| {}).unwrap_err();
        assert!(matches!(error, TraceError::Usage(_)), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains(words) && text.contains(&format!("--pid {pid}: ")),
            "{text}"
        );
        assert!(!trace.exists());
    };
    let before = sessions();
    let source = |options| Command::new(program("attach.c", options));
    let disabled = Program::start(&mut source(&["-DUNDERTICK_DISABLE"]));
    refused(disabled.pid(), "not linked with the recorder");
    let without = Program::start(&mut source(&["-DUNDERTICK_NO_ATTACH"]));
    refused(without.pid(), "not linked with the recorder");
    let asked_not_to = Program::start(source(&[]).env("UNDERTICK_ATTACH", "0"));
    refused(asked_not_to.pid(), "UNDERTICK_ATTACH=0");
    let mut gone = Program::c();
    let pid = gone.pid();
    gone.tell("quit 0");
    // SAFETY: waits for our own child, which stays to be waited for.
    unsafe {
        let mut about = std::mem::zeroed();
        libc::waitid(
            libc::P_PID,
            pid as u32,
            &raw mut about,
            libc::WEXITED | libc::WNOWAIT,
        );
    }
    refused(pid, "has ended");
    drop(gone);
    refused(pid, "no such process");
    // The identifier of a thread is refused.
    let mut program = Program::c();
    let said = program.tell("events 1");
    let thread = said
        .keys()
        .map(|key| key.0)
        .find(|tid| *tid != program.pid())
        .unwrap();
    refused(thread, "a thread");
    // A program has one recorder at a time.
    let pid = program.pid();
    let (result, ()) = recorded(&dir.path().join("yes.ut"), &mut program, |_| {
        refused(
            pid,
            &format!("being recorded already, by process {}", std::process::id()),
        );
    });
    result.unwrap();
    // Root can still record a program that closed all of its files.
    program.tell("close 0");
    if uid() == 0 {
        let (result, said) = recorded(&dir.path().join("closed.ut"), &mut program, |p| {
            p.does(&ALL[..4])
        });
        result.unwrap();
        assert_complete(&dir.path().join("closed.ut"), &said);
    } else {
        refused(pid, "has closed the descriptor");
    }
    assert_nothing_left(&before);
    // A program that blocks must go on although its recorder may be killed.
    let request = request(&trace, &[], settings(Overflow::Block, 1 << 20, None));
    let error = attach(request, Attach { pid, length: None }, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("--overflow block"), "{error}");
}
