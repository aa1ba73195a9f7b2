#![allow(dead_code, reason = "each test program uses a part")]
//! Common code of the recording tests: compiling the C programs, recording them, reading the rows.

pub mod attach_target;
pub mod evidence;
pub mod flight;
pub mod recorders;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsString, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use undertick_clock::{Choice, Source, facts};
use undertick_format::manifest::Manifest;
use undertick_format::read::Trace;
use undertick_format::{TraceError, schema};
use undertick_record::Overflow;
use undertick_record::kernel::Wanted;
use undertick_record::record::{Request, record};
use undertick_record::session::Settings;

/// Serialises the tests, because a recording reaps every child of the process.
pub fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns the offsets of the rings' heads in a session's pool (docs/format.md, section 3).
pub fn heads_of(pool: &File) -> Vec<u64> {
    let word = |at: u64, bytes: usize| {
        let mut found = [0; 8];
        pool.read_exact_at(&mut found[..bytes], at).unwrap();
        u64::from_le_bytes(found)
    };
    let (heads, segments) = (word(16, 4), word(20, 4));
    let start = (4096 + 8 * (heads + segments) + segments).next_multiple_of(131_072);
    let is_ring = |at: &u64| word(*at, 8) == u64::from_le_bytes(*b"UTRING01");
    (0..heads)
        .map(|head| start + 77_824 * head)
        .filter(is_ring)
        .collect()
}

/// Makes a copy of a program, to be executed. The copy is written by another process, because nothing
/// that is open for writing can be executed, and a fork by another thread could keep it open.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.expect("cp").success());
}

/// Compiles a test program; hold [`alone`] before.
pub fn program(source: &str, arguments: &[&str]) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "{}-{}{}",
        std::process::id(),
        source.replace('.', "-"),
        arguments
            .join("")
            .replace(|c: char| !c.is_ascii_alphanumeric(), "")
    ));
    if !out.exists() {
        let compiled = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
            .arg(here.join("../../../../include"))
            .args(arguments)
            .arg(here.join(source))
            .arg("-o")
            .arg(&out)
            .args(["-ldl"])
            .status()
            .expect("a C compiler");
        assert!(compiled.success());
    }
    out
}

/// Returns a function of a C library, for a program that records by the Rust crate.
pub fn function_of(library: &Path, name: &CStr) -> *mut c_void {
    let path = CString::new(library.as_os_str().as_bytes()).unwrap();
    // SAFETY: both texts end with zero.
    let function = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null());
        libc::dlsym(library, name.as_ptr())
    };
    assert!(!function.is_null());
    function
}

/// Records an event for such a library.
pub extern "C" fn record_for_c(event: u16, payload: u32) {
    undertick::event(event, payload);
}

/// Variable that makes a test file's test `rust_program` a program; its value is what to do.
pub const AS_PROGRAM: &str = "UNDERTICK_TEST_PROGRAM";

/// Returns the command that runs this test file as a program that does `what`.
pub fn as_rust_program(what: &str) -> Vec<String> {
    let set = format!("{AS_PROGRAM}={what}");
    let binary = std::env::current_exe().unwrap();
    let test = ["rust_program", "--exact", "--nocapture", "--quiet"];
    ["/usr/bin/env", &set, binary.to_str().unwrap()]
        .into_iter()
        .chain(test)
        .map(str::to_owned)
        .collect()
}

pub fn settings(overflow: Overflow, ring_bytes: u64, budget_bytes: Option<u64>) -> Settings {
    Settings {
        overflow,
        ring_bytes,
        budget_bytes,
        clock: clock().0.clock,
        parent: None,
        rates: Vec::new(),
    }
}

fn clock() -> &'static (Choice, facts::Facts) {
    static CLOCK: OnceLock<(Choice, facts::Facts)> = OnceLock::new();
    CLOCK.get_or_init(|| {
        let choice = undertick_clock::best();
        let source = Source::open(choice.clock).unwrap();
        let facts = facts::gather(source, undertick_clock::rate::SHORTEST_SPAN).unwrap();
        (choice, facts)
    })
}

pub fn request(trace: &Path, command: &[&str], settings: Settings) -> Request {
    let (choice, facts) = clock().clone();
    Request {
        trace: trace.to_owned(),
        command: command.iter().map(OsString::from).collect(),
        settings,
        choice,
        facts,
        calibration: None,
        names: Vec::new(),
        kernel: Wanted::Off,
        stacks: None,
        perturbation: None,
        triggers: None,
        functions: None,
        with: Vec::new(),
    }
}

pub fn run(trace: &Path, command: &[&str], settings: Settings) -> Result<Manifest, TraceError> {
    record(request(trace, command, settings), &mut |_| {})
}

/// A small file system in memory.
pub struct SmallDisk(pub PathBuf);

impl SmallDisk {
    /// Returns `None` where it cannot be mounted.
    pub fn mount(parent: &Path, size: &str) -> Option<Self> {
        let place = parent.join("small");
        std::fs::create_dir(&place).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&place)
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(place));
        }
        println!("skipped: a small file system cannot be mounted (not root?)");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// One row of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub ts: i64,
    pub ring: i32,
    pub pid: i32,
    pub tid: i32,
    pub cpu: i16,
    pub mode: i8,
    pub kind: i8,
    pub descheduled: i8,
    pub event: i32,
    pub payload: i64,
}

pub fn rows(trace: &Path) -> (Manifest, Vec<Row>) {
    let trace = Trace::open(trace).unwrap();
    let mut rows = Vec::new();
    for batch in trace.batches() {
        let batch = batch.unwrap();
        let i32s = |c: usize| batch.column(c).as_primitive::<Int32Type>().clone();
        let i64s = |c: usize| batch.column(c).as_primitive::<Int64Type>().clone();
        let i8s = |c: usize| batch.column(c).as_primitive::<Int8Type>().clone();
        let (ts, payload) = (i64s(schema::TS), i64s(schema::PAYLOAD));
        let (ring, pid, tid, event) = (
            i32s(schema::RING),
            i32s(schema::PID),
            i32s(schema::TID),
            i32s(schema::EVENT),
        );
        let cpu = batch.column(schema::CPU).as_primitive::<Int16Type>();
        let (mode, kind) = (i8s(schema::MODE), i8s(schema::KIND));
        let descheduled = i8s(schema::DESCHEDULED);
        rows.extend((0..batch.num_rows()).map(|i| Row {
            ts: ts.value(i),
            ring: ring.value(i),
            pid: pid.value(i),
            tid: tid.value(i),
            cpu: cpu.value(i),
            mode: mode.value(i),
            kind: kind.value(i),
            descheduled: descheduled.value(i),
            event: event.value(i),
            payload: payload.value(i),
        }));
    }
    (trace.manifest, rows)
}

/// Returns the payloads by thread and event, in the order of the trace, without gaps.
pub fn payloads(rows: &[Row]) -> BTreeMap<(i32, i32), Vec<i64>> {
    let mut by = BTreeMap::<(i32, i32), Vec<i64>>::new();
    for row in rows
        .iter()
        .filter(|row| row.kind != schema::Kind::Gap as i8)
    {
        by.entry((row.tid, row.event))
            .or_default()
            .push(row.payload);
    }
    by
}

/// The remains of a program that was killed.
pub struct Killed {
    pub round: usize,
    pub manifest: Manifest,
    pub rows: Vec<Row>,
    /// The id of each of its threads, and the thread's count.
    pub published: Vec<(i32, u64)>,
}

/// Records, `rounds` times, a program whose threads count their events in memory that survives it,
/// and kills it after a while.
pub fn killed(source: &str, rounds: usize, mut check: impl FnMut(&Killed)) {
    let binary = program(source, &[]);
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for round in 0..rounds {
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("k.ut");
        let cells = tempfile::tempfile_in(dir.path()).unwrap();
        cells.set_len(4096).unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), cells.as_raw_fd());
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let delay = Duration::from_micros(200 + state % 12_000);
        let threads = 1 + round % 3;
        let killer = std::thread::spawn({
            let cells = cells.try_clone().unwrap();
            move || {
                let pid = loop {
                    let pid = cell(&cells, 511);
                    if pid != 0 {
                        break pid as i32;
                    }
                    std::thread::sleep(Duration::from_micros(100));
                };
                std::thread::sleep(delay);
                // SAFETY: a signal to the program that this test started.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        });
        let count = threads.to_string();
        let command = [binary.to_str().unwrap(), "kill", &path, &count];
        let ended = run(&trace, &command, settings(Overflow::Grow, 1 << 20, None)).unwrap();
        killer.join().unwrap();
        assert_eq!(ended.exit.unwrap().signal, Some(libc::SIGKILL));
        let (manifest, rows) = rows(&trace);
        check(&Killed {
            round,
            manifest,
            rows,
            published: (0..threads)
                .map(|t| (cell(&cells, 2 * t + 1) as i32, cell(&cells, 2 * t)))
                .collect(),
        });
    }
}

fn cell(file: &File, index: usize) -> u64 {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 8 * index as u64).unwrap();
    u64::from_le_bytes(bytes)
}
