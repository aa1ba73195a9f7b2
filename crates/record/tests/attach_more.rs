//! Recorders that attach to running programs: libraries, names, handlers, kernel events, rates.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, Read};
use std::process::Command;
use std::time::Duration;

use common::attach_target::{Program, assert_complete, recorded};
use common::{Row, alone, program, request, rows, settings};
use undertick_format::schema::Kind;
use undertick_record::Overflow;
use undertick_record::attach::{Attach, attach};
use undertick_record::kernel::Wanted;
use undertick_record::sampled::Rate;

/// An executable and a library each have an attach page, as long as they are loaded.
#[test]
fn a_library_has_a_door_of_its_own() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let library = program("library.c", &["-shared", "-fPIC"]);
    let mut program = Program::start(Command::new(program("attach.c", &[])).arg(library));
    let attach_pages = |pid: i32| {
        let all = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let links = all.filter_map(|entry| fs::read_link(entry.path()).ok());
        links
            .filter(|link| link.to_string_lossy().contains("undertick-door"))
            .count()
    };
    for (round, load) in ["load 0", "unload 0", "reload 1100", "load 0"]
        .into_iter()
        .enumerate()
    {
        program.tell(load);
        // A library has its page as long as it is loaded.
        let count = if load == "load 0" { 2 } else { 1 };
        assert_eq!(attach_pages(program.pid()), count, "{load}");
        let trace = dir.path().join(format!("{round}.ut"));
        let (result, mut said) = recorded(&trace, &mut program, |program| {
            let mut commands = vec!["main 700", "events 10"];
            if count == 2 {
                commands.extend(["library 30000", "main 5"]);
            }
            program.does(&commands)
        });
        result.unwrap();
        let pid = program.pid();
        if let Some(count) = said.remove(&(pid, 10)) {
            said.insert((pid, 6), count);
        }
        let (manifest, _) = assert_complete(&trace, &said);
        assert_eq!(manifest.rings.len(), 4 + count - 1, "{load}");
    }
    program.tell("quit 0");
}

#[test]
fn names_given_at_any_time_are_kept_up_to_a_bound() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::c();
    program.tell("names 300");
    program.tell("names 300"); // what is known takes no room
    let named = |name: &str, program: &mut Program, during: &str| {
        let trace = dir.path().join(name);
        let (result, _) = recorded(&trace, program, |program| program.tell(during));
        let manifest = result.unwrap();
        let many = manifest
            .names
            .iter()
            .filter(|name| name.event >= 1000)
            .count();
        let late = manifest.names.iter().find(|name| name.event == 77);
        (
            many,
            late.map(|name| name.name.clone()),
            manifest.warnings.join("; "),
        )
    };
    let (many, late, warnings) = named("a.ut", &mut program, "name 77");
    assert_eq!((many, late.as_deref()), (300, Some("given late")));
    assert!(!warnings.contains("names"), "{warnings}");
    // 2000 names of 32 bytes and more do not fit into 64 KiB.
    let (many, late, warnings) = named("b.ut", &mut program, "names 5000");
    assert!((1500..2032).contains(&many), "{many}");
    assert_eq!(late.as_deref(), Some("given late"));
    assert!(
        warnings.contains("names that the program gave are not kept"),
        "{warnings}"
    );
}

/// Points run in threads and in a signal handler while sessions come and go: nothing fails, and the
/// recorded events are consistent.
#[test]
fn handlers_and_threads_while_recorders_come_and_go() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::c();
    program.send("storm 0");
    let mut line = String::new();
    while line.trim() != "storm" {
        line.clear();
        program.said.read_line(&mut line).unwrap();
    }
    let (mut in_thread, mut in_handlers) = (0, 0);
    for round in 0..25u64 {
        let trace = dir.path().join(format!("{round}.ut"));
        let request = request(
            &trace,
            &[],
            settings(Overflow::Grow, 256 << 10, Some(64 << 20)),
        );
        let length = Some(Duration::from_micros(3000 + 1997 * round));
        let pid = program.pid();
        attach(request, Attach { pid, length }, &mut |_| {}).unwrap();
        let (manifest, rows) = rows(&trace);
        assert!(program.child.try_wait().unwrap().is_none(), "round {round}");
        let of = |event: i32| {
            rows.iter()
                .filter(move |row| row.event == event && row.kind == 0)
        };
        // The payloads count up by one from any start. Nothing is missing in between but events of
        // a handler that had no ring.
        let main: Vec<i64> = of(7).map(|row| row.payload).collect();
        in_thread += main.len();
        let gap = main.windows(2).find(|pair| pair[1] != pair[0] + 1);
        assert_eq!(gap, None, "round {round}");
        let handler: Vec<i64> = {
            let mut all: Vec<&Row> = of(8).collect();
            all.sort_by_key(|row| row.ts);
            all.iter().map(|row| row.payload).collect()
        };
        assert!(handler.is_sorted(), "round {round}: {handler:?}");
        in_handlers += handler.len();
        // Each recorded begin stands for executions; the sum is at most the count.
        let executions: u64 = (manifest.sampled.iter()).map(|one| one.executions).sum();
        let stood_for: i64 = (rows.iter())
            .filter(|row| row.event == 9 && row.kind == Kind::Begin as i8)
            .map(|row| row.payload)
            .sum();
        assert!(
            stood_for as u64 <= executions,
            "round {round}: {stood_for} of {executions}"
        );
        // Each event 7 of the main loop, and each event 8 of a handler, comes with one execution.
        // Those at the moment when the recording ends are counted if they still arrive.
        let begun = (main.len() + handler.len()) as u64;
        assert!(
            begun <= executions + 3 + manifest.lost,
            "round {round}: {executions} {begun}"
        );
    }
    assert!(in_thread > 0 && in_handlers > 0);
    // SAFETY: to our own child.
    unsafe { libc::kill(program.pid(), libc::SIGUSR1) };
    let mut rest = String::new();
    program.said.read_line(&mut rest).unwrap();
    assert_eq!(rest, "done\n");
    program.tell("quit 0");
    program.said.read_to_string(&mut rest).unwrap();
    assert!(program.child.wait().unwrap().success());
}

/// Records threads that ran before, one that starts during the recording, and a child. The kernel's
/// rows are theirs, and each thread has as many as it must have slept.
#[test]
fn the_kernel_is_watched_too() {
    const TIMES: u64 = 40;
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::c();
    let trace = dir.path().join("k.ut");
    let mut request = request(&trace, &[], settings(Overflow::Grow, 1 << 20, None));
    request.kernel = Wanted::Auto;
    let to = Attach {
        pid: program.pid(),
        length: None,
    };
    let said = std::thread::scope(|scope| {
        let recorder = scope.spawn(|| attach(request, to, &mut |_| {}).unwrap());
        program.tell("on 0");
        let mut commands = vec!["events 10"; TIMES as usize];
        commands.extend(["thread 10", "fork 10"]);
        let said = program.does(&commands);
        // SAFETY: as in `recorded`.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
        recorder.join().unwrap();
        said
    });
    let (manifest, rows) = rows(&trace);
    let kernel = manifest.kernel.unwrap();
    let has = |name: &str| {
        kernel
            .sources
            .iter()
            .any(|source| source.name == name && source.used)
    };
    if !has("perf") && !has("tracefs") {
        println!(
            "skipped: no source of switches is allowed here: {:?}",
            kernel.sources
        );
        return;
    }
    // Each command of the test wakes the main thread, which wakes the workers.
    let ours: BTreeMap<i32, u64> = said.keys().map(|key| (key.0, 0)).collect();
    let mut came = ours.clone();
    came.insert(program.pid(), 0);
    for row in rows.iter().filter(|row| row.mode == 1 && row.tid != 0) {
        if row.kind == Kind::SwitchIn as i8 {
            *came.entry(row.tid).or_default() += 1;
        }
    }
    let workers = said
        .iter()
        .filter(|(key, count)| key.1 == 1 && **count == 10 * TIMES);
    let workers: Vec<i32> = workers.map(|(key, _)| key.0).collect();
    assert_eq!(workers.len(), 3, "{said:?}");
    for tid in workers.iter().chain([&program.pid()]) {
        assert!(came[tid] >= TIMES / 2, "{tid}: {came:?}"); // it need not sleep each time
    }
    // Threads that started during the recording have come onto a CPU at least once.
    for (tid, times) in came.iter().filter(|(tid, _)| ours.contains_key(tid)) {
        assert!(*times >= 1, "{tid}: {came:?}");
    }
    // Five threads of the program, one child and the child of that one; no others.
    assert!(came.len() <= 3 + 1 + 1 + 2, "{came:?}");
    if has("perf") && has("tracefs") {
        let compared = kernel.comparison.unwrap();
        assert!(compared.both * 1000 >= compared.first * 999, "{compared:?}");
    }
}

/// A rate that a recorder sets holds for its session only.
#[test]
fn rates_from_outside_end_with_their_session() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::c();
    let share = |name: &str, program: &mut Program, rates: Vec<Rate>| {
        let trace = dir.path().join(name);
        let mut request = request(&trace, &[], settings(Overflow::Grow, 1 << 20, None));
        request.settings.rates = rates;
        let to = Attach {
            pid: program.pid(),
            length: None,
        };
        std::thread::scope(|scope| {
            let recorder = scope.spawn(|| attach(request, to, &mut |_| {}).unwrap());
            program.tell("on 0");
            program.tell("spans 4000");
            // SAFETY: as in `recorded`.
            unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
            recorder.join().unwrap();
        });
        let (_, rows) = rows(&trace);
        let begins = rows
            .iter()
            .filter(|row| row.event == 3 && row.kind == Kind::Begin as i8);
        begins.count()
    };
    let every = |event| vec![Rate { event, one_in: 1 }];
    assert_eq!(share("all.ut", &mut program, every(None)), 12_000);
    // The expectation without a rate is 12 000 / 16.5; the range is 6 standard deviations of a sum
    // of uniform gaps.
    let few = 580..880;
    let n = share("few.ut", &mut program, Vec::new());
    assert!(few.contains(&n), "{n}");
    assert_eq!(share("one.ut", &mut program, every(Some(3))), 12_000);
    let n = share("again.ut", &mut program, Vec::new());
    assert!(few.contains(&n), "{n}");
}
