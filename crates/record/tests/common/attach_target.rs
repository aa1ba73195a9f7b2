//! Programs that run before a recorder attaches, and that report what they wrote.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use undertick_format::TraceError;
use undertick_format::manifest::Manifest;
use undertick_record::Overflow;
use undertick_record::attach::{Attach, attach};

use super::{Row, payloads, program, request, rows, settings};

/// The counts of events that a program reports, by thread and event.
pub type Said = BTreeMap<(i32, i32), u64>;

/// A program that executes commands from its standard input.
pub struct Program {
    pub child: Child,
    pub said: BufReader<ChildStdout>,
}

impl Program {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .env_remove("UNDERTICK_SESSION")
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut program = Self { child, said };
        program.tell("ready 0"); // its attach pages are made before it reads
        program
    }

    pub fn c() -> Self {
        Self::start(&mut Command::new(program("attach.c", &[])))
    }

    /// Starts this test file as the Rust program.
    pub fn rust() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["rust_program", "--exact", "--nocapture", "--quiet"])
            .env("UNDERTICK_TEST_PROGRAM", "1");
        Self::start(&mut command)
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn send(&mut self, command: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{command}").unwrap();
    }

    /// Sends it a command, and waits until it is done.
    pub fn tell(&mut self, command: &str) -> Said {
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

    /// Sends it several commands.
    pub fn does(&mut self, commands: &[&str]) -> Said {
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

/// Records `program` while `work` runs, then ends the recording as by Ctrl-C.
pub fn recorded<R>(
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
        let recorder = scope.spawn(move || attach(request, to, &mut |_| {}));
        program.tell("on 0");
        let done = work(program);
        // SAFETY: to ourselves; the recorder listens since before the program was on.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
        (recorder.join().unwrap(), done)
    })
}

/// Asserts that all reported events are there, in order, and no others.
pub fn assert_complete(trace: &Path, said: &Said) -> (Manifest, Vec<Row>) {
    let (manifest, rows) = rows(trace);
    assert_eq!(manifest.lost, 0, "{:?}", manifest.warnings);
    let mut full = said.clone();
    full.retain(|key, _| key.1 != 3); // sampled
    // A span has two records.
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

/// Asserts that no session is left behind.
pub fn assert_nothing_left(before: &[String]) {
    assert_eq!(sessions(), before);
}

pub fn sessions() -> Vec<String> {
    let mine = format!("undertick-{}-{}-", uid(), std::process::id());
    let mut all: Vec<String> = fs::read_dir("/dev/shm")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap_or_default())
        .filter(|name| name.starts_with(&mine))
        .collect();
    all.sort();
    all
}

pub fn uid() -> u32 {
    // SAFETY: only returns a number.
    unsafe { libc::getuid() }
}

/// Returns the KiB of session files that the process has in memory, and the number of such
/// mappings.
pub fn ring_memory(pid: i32) -> (u64, usize) {
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

/// Commands to a program: its permanent threads, one that comes and goes, children.
pub const ALL: [&str; 6] = [
    "events 30000",
    "main 20000",
    "thread 5000",
    "spans 3000",
    "fork 2000",
    "events 100",
];
