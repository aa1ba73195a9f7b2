//! Recorders that come to programs which run already, and go again. The programs
//! say themselves what they wrote.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Row, alone, payloads, program, request, rows, settings};
use undertick_trace::attach::{Attach, attach};
use undertick_trace::kernel::Wanted;
use undertick_trace::manifest::Manifest;
use undertick_trace::sampled::Rate;
use undertick_trace::schema::Kind;
use undertick_trace::{Overflow, TraceError};

/// What a program says it wrote, by thread and event.
type Said = BTreeMap<(i32, i32), u64>;

/// A program that does what it is told.
struct Program {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .env_remove("UNDERTICK_SESSION")
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut program = Self { child, said };
        program.tell("ready 0"); // its doors are made before it reads
        program
    }

    fn c() -> Self {
        Self::start(&mut Command::new(program("attach.c", &[])))
    }

    /// This file, as the program below.
    fn rust() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["rust_program", "--exact", "--nocapture", "--quiet"])
            .env("UNDERTICK_TEST_PROGRAM", "1");
        Self::start(&mut command)
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn send(&mut self, command: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{command}").unwrap();
    }

    /// Has it do something, and waits until it has.
    fn tell(&mut self, command: &str) -> Said {
        self.send(command);
        let mut said = Said::new();
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended");
            let numbers: Vec<u64> = line
                .split_whitespace()
                .filter_map(|n| n.parse().ok())
                .collect();
            match (line.trim(), &numbers[..]) {
                ("done", _) => return said,
                (_, [tid, event, count]) => {
                    *said.entry((*tid as i32, *event as i32)).or_default() += count;
                }
                _ => {}
            }
        }
    }

    /// Several things.
    fn does(&mut self, commands: &[&str]) -> Said {
        let mut all = Said::new();
        for command in commands {
            for (key, count) in self.tell(command) {
                *all.entry(key).or_default() += count;
            }
        }
        all
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records `program` while `work` is being done, ends with Ctrl-C.
fn recorded<R>(
    trace: &Path,
    program: &mut Program,
    work: impl FnOnce(&mut Program) -> R,
) -> (Result<Manifest, TraceError>, R) {
    let to = Attach {
        pid: program.pid(),
        length: None,
    };
    let request = request(
        trace,
        &[],
        settings(Overflow::Grow, 1 << 20, Some(256 << 20)),
    );
    std::thread::scope(|scope| {
        let recorder = scope.spawn(move || attach(request, to, |_| {}));
        program.tell("on 0");
        let done = work(program);
        // SAFETY: to ourselves; the recorder listens since before the program was on.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
        (recorder.join().unwrap(), done)
    })
}

/// All that was said is there, in order, and nothing else.
fn assert_complete(trace: &Path, said: &Said) -> (Manifest, Vec<Row>) {
    let (manifest, rows) = rows(trace);
    assert_eq!(manifest.lost, 0, "{:?}", manifest.warnings);
    let mut full = said.clone();
    full.retain(|key, _| key.1 != 3); // sampled
    // A section is two records.
    for (_, count) in full.iter_mut().filter(|(key, _)| key.1 == 4) {
        *count *= 2;
    }
    let got: Said = payloads(&rows)
        .into_iter()
        .filter(|(key, _)| key.1 != 3)
        .map(|(key, all)| (key, all.len() as u64))
        .collect();
    assert_eq!(got, full);
    for ring in &manifest.rings {
        let times: Vec<i64> = (rows.iter())
            .filter(|row| row.ring == ring.ring)
            .map(|row| row.ts)
            .collect();
        assert!(times.is_sorted(), "ring {} goes back in time", ring.ring);
    }
    let rings: BTreeMap<i32, i32> = (manifest.rings.iter()).map(|r| (r.ring, r.tid)).collect();
    let mut sampled = Said::new();
    for one in &manifest.sampled {
        let key = (rings[&one.ring], i32::from(one.event));
        *sampled.entry(key).or_default() += one.executions;
    }
    let mut expected = said.clone();
    expected.retain(|key, _| key.1 == 3);
    assert_eq!(sampled, expected);
    (manifest, rows)
}

/// No session is left behind.
fn assert_nothing_left(before: &[String]) {
    assert_eq!(sessions(), before);
}

fn sessions() -> Vec<String> {
    let mine = format!("undertick-{}-{}-", rustix_uid(), std::process::id());
    let mut all: Vec<String> = fs::read_dir("/dev/shm")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap_or_default())
        .filter(|name| name.starts_with(&mine))
        .collect();
    all.sort();
    all
}

fn rustix_uid() -> u32 {
    // SAFETY: only returns a number.
    unsafe { libc::getuid() }
}

/// KiB that the process holds in files of sessions, and how many such mappings.
fn ring_memory(pid: i32) -> (u64, usize) {
    let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let (mut kib, mut mappings, mut inside) = (0, 0, false);
    for line in smaps.lines() {
        let first = line.split(' ').next().unwrap();
        if first.contains('-') && !first.ends_with(':') {
            inside = line.contains("/undertick-");
            mappings += usize::from(inside);
        } else if inside && line.starts_with("Rss:") {
            kib += line
                .split_whitespace()
                .nth(1)
                .unwrap()
                .parse::<u64>()
                .unwrap();
        }
    }
    (kib, mappings)
}

/// What a program does: its threads that stay, one that comes and goes, children.
const ALL: [&str; 6] = [
    "events 30000",
    "main 20000",
    "thread 5000",
    "spans 3000",
    "fork 2000",
    "events 100",
];

#[test]
fn a_program_is_recorded_several_times_and_runs_on() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let before = sessions();
    let mut program = Program::c();
    for round in 0..4 {
        // Not recorded: before, between, after.
        program.does(&ALL);
        let trace = dir.path().join(format!("{round}.ut"));
        let (result, said) = recorded(&trace, &mut program, |program| program.does(&ALL));
        let manifest = result.unwrap();
        assert!(manifest.exit.unwrap().interrupted);
        program.tell("off 0");
        assert_nothing_left(&before);
        let (manifest, rows) = assert_complete(&trace, &said);
        // Three workers, two processes more with all they do, three of main's.
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
    let all = [
        "events 30000",
        "main 20000",
        "thread 5000",
        "spans 3000",
        "fork 2000",
        "events 100",
    ];
    for round in 0..3 {
        program.does(&all);
        let trace = dir.path().join(format!("{round}.ut"));
        let (result, said) = recorded(&trace, &mut program, |program| program.does(&all));
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

/// Not a test by itself: a Rust program that has recorded nothing yet.
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
        attach(request, Attach { pid, length }, |_| {})
            .unwrap()
            .rings
            .is_empty()
    );
}

/// The last events are kept, the others counted.
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
            let recorder = scope.spawn(|| attach(request, Attach { pid, length }, |_| {}).unwrap());
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

/// Not a test by itself: the Rust program that is recorded several times.
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
    for mut program in [Program::c(), Program::rust()] {
        let trace = dir.path().join(format!("{}.ut", program.pid()));
        let (result, inside) = recorded(&trace, &mut program, |program| {
            program.does(&["events 300000", "spans 20000", "main 100000"]);
            ring_memory(program.pid())
        });
        result.unwrap();
        assert!(inside.0 > 3 * 1024, "{inside:?} KiB while it is recorded");
        // Of each thread with sampled spans two pages stay until its next one.
        let (kib, mappings) = ring_memory(program.pid());
        assert!(
            kib <= 8 * mappings as u64,
            "{kib} KiB in {mappings} mappings"
        );
        program.does(&["spans 10", "main 10", "events 10"]);
        assert_eq!(ring_memory(program.pid()).0, 0);
        // And the rings themselves with the next session.
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
            attach(request, Attach { pid, length }, |_| {})
        })
    };
    // Its time.
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
    // The program, by itself, without a word, and killed.
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
        let error = attach(request, Attach { pid, length }, |_| {}).unwrap_err();
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
    // A thread is not a process.
    let mut program = Program::c();
    let said = program.tell("events 1");
    let thread = said
        .keys()
        .map(|key| key.0)
        .find(|tid| *tid != program.pid())
        .unwrap();
    refused(thread, "a thread");
    // One recorder at a time.
    let pid = program.pid();
    let (result, ()) = recorded(&dir.path().join("yes.ut"), &mut program, |_| {
        refused(
            pid,
            &format!("being recorded already, by process {}", std::process::id()),
        );
    });
    result.unwrap();
    // One that closed all its files can still be recorded by root.
    program.tell("close 0");
    if rustix_uid() == 0 {
        let (result, said) = recorded(&dir.path().join("closed.ut"), &mut program, |p| {
            p.does(&ALL[..4])
        });
        result.unwrap();
        assert_complete(&dir.path().join("closed.ut"), &said);
    } else {
        refused(pid, "has closed the descriptor");
    }
    assert_nothing_left(&before);
    // Blocking: the recorder may be killed.
    let request = request(&trace, &[], settings(Overflow::Block, 1 << 20, None));
    let error = attach(request, Attach { pid, length: None }, |_| {}).unwrap_err();
    assert!(error.to_string().contains("--overflow block"), "{error}");
}

/// An executable and a library have a door each, as long as they are there.
#[test]
fn a_library_has_a_door_of_its_own() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let library = program("library.c", &["-shared", "-fPIC"]);
    let mut program = Program::start(Command::new(program("attach.c", &[])).arg(library));
    let doors = |pid: i32| {
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
        // As long as it is loaded.
        let count = if load == "load 0" { 2 } else { 1 };
        assert_eq!(doors(program.pid()), count, "{load}");
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
    // 2000 of 32 bytes and more do not fit into 64 KiB.
    let (many, late, warnings) = named("b.ut", &mut program, "names 5000");
    assert!((1500..2032).contains(&many), "{many}");
    assert_eq!(late.as_deref(), Some("given late"));
    assert!(
        warnings.contains("names that the program gave are not kept"),
        "{warnings}"
    );
}

/// Points in threads and in a signal handler while sessions come and go: nothing
/// breaks, and what there is makes sense.
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
        attach(request, Attach { pid, length }, |_| {}).unwrap();
        let (manifest, rows) = rows(&trace);
        assert!(program.child.try_wait().unwrap().is_none(), "round {round}");
        let of = |event: i32| {
            rows.iter()
                .filter(move |row| row.event == event && row.kind == 0)
        };
        // Counted up by one, from wherever: none is missing in between, but those
        // of a handler that had no ring.
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
        // Each recorded begin stands for executions; together at most what was counted.
        let executions: u64 = (manifest.sampled.iter()).map(|one| one.executions).sum();
        let stood_for: i64 = (rows.iter())
            .filter(|row| row.event == 9 && row.kind == Kind::Begin as i8)
            .map(|row| row.payload)
            .sum();
        assert!(
            stood_for as u64 <= executions,
            "round {round}: {stood_for} of {executions}"
        );
        // One of main's loop with each event 7, one of each handler's 8; those of the
        // moment in which recording ends are counted as long as they come.
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

/// Threads that ran already, one that is made meanwhile and a child: the kernel's
/// rows are theirs, and of each there are as many as it must have slept.
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
        let recorder = scope.spawn(|| attach(request, to, |_| {}).unwrap());
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
    // Each of our commands wakes the main thread, which wakes the workers.
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
    // Those that were made meanwhile have come onto a CPU at least once.
    for (tid, times) in came.iter().filter(|(tid, _)| ours.contains_key(tid)) {
        assert!(*times >= 1, "{tid}: {came:?}");
    }
    // Five of the program's, one child and its child; nobody else.
    assert!(came.len() <= 3 + 1 + 1 + 2, "{came:?}");
    if has("perf") && has("tracefs") {
        let compared = kernel.comparison.unwrap();
        assert!(compared.both * 1000 >= compared.first * 999, "{compared:?}");
    }
}

/// A rate given from outside counts for that session alone.
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
            let recorder = scope.spawn(|| attach(request, to, |_| {}).unwrap());
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
    // 12 000 / 16.5 without a rate: 6 standard deviations of a uniform gap's sum.
    let few = 580..880;
    let n = share("few.ut", &mut program, Vec::new());
    assert!(few.contains(&n), "{n}");
    assert_eq!(share("one.ut", &mut program, every(Some(3))), 12_000);
    let n = share("again.ut", &mut program, Vec::new());
    assert!(few.contains(&n), "{n}");
}
