//! A program damages all memory and files that it shares with its recorder, while it is recorded.
//!
//! For a longer run: UNDERTICK_HOSTILE_SECONDS=60; for other damage: UNDERTICK_HOSTILE_SEED=2.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{alone, program, rows, run, settings};
use undertick_record::Overflow;

/// Budget of the recorder's rings.
const BUDGET: u64 = 64 << 20;
/// The recorder's memory for blocks while the disk keeps up, KiB. Pages that no block has used yet
/// take no memory; on a busy machine many blocks are in use at once, and late.
const BLOCKS_KIB: u64 = 4 * (1024 + 256);

/// Not a test: the recorder that the other tests watch.
#[test]
fn recorder() {
    let Ok(words) = std::env::var("UNDERTICK_TEST_RECORDER") else {
        return;
    };
    let words: Vec<&str> = words.split('\n').collect();
    let (trace, command) = words.split_first().unwrap();
    let mut settings = settings(Overflow::Grow, 1 << 20, Some(BUDGET));
    settings.parent = std::env::var_os("UNDERTICK_TEST_PARENT").map(PathBuf::from);
    run(Path::new(trace), command, settings).unwrap();
    println!("recorded");
}

fn start(trace: &Path, parent: &Path, command: &[&str]) -> Child {
    let words = [&[trace.to_str().unwrap()], command].concat().join("\n");
    Command::new(std::env::current_exe().unwrap())
        .args(["recorder", "--exact", "--nocapture"])
        .env("UNDERTICK_TEST_RECORDER", words)
        .env("UNDERTICK_TEST_PARENT", parent)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the private memory of a process, KiB; 0 once it is gone.
fn own_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}

/// Returns names, bytes and times of the files that must not change.
fn state(dir: &Path) -> BTreeMap<String, (Vec<u8>, i64, i64)> {
    (fs::read_dir(dir).unwrap().flatten())
        .map(|entry| {
            let about = entry.metadata().unwrap();
            let bytes = fs::read(entry.path()).unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, (bytes, about.mtime(), about.mtime_nsec()))
        })
        .collect()
}

/// Reports each open and each change in a directory, from now on.
struct Opened(fs::File);

impl Opened {
    fn watch(dir: &Path) -> Self {
        use std::os::fd::FromRawFd;
        let path = std::ffi::CString::new(dir.to_str().unwrap()).unwrap();
        let what =
            libc::IN_OPEN | libc::IN_MODIFY | libc::IN_CREATE | libc::IN_DELETE | libc::IN_MOVE;
        // SAFETY: a new descriptor that is ours; the path ends with a zero.
        unsafe {
            let fd = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
            assert!(fd >= 0 && libc::inotify_add_watch(fd, path.as_ptr(), what) >= 0);
            Self(fs::File::from_raw_fd(fd))
        }
    }

    /// Returns the mask of each such event, and the name.
    fn events(&self) -> Vec<(u32, String)> {
        let mut bytes = [0u8; 1 << 16];
        // SAFETY: reads into a buffer of that size.
        let read =
            unsafe { libc::read(self.0.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        let mut rest = &bytes[..usize::try_from(read).unwrap_or(0)];
        let mut all = Vec::new();
        while let Some((head, after)) = rest.split_at_checked(16) {
            let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
            let (name, after) = after.split_at(word(12) as usize);
            let name = String::from_utf8_lossy(name).replace('\0', "");
            all.push((word(4), name));
            rest = after;
        }
        all
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn a_hostile_program_hurts_nobody_but_itself() {
    let _alone = alone();
    let seconds = number("UNDERTICK_HOSTILE_SECONDS", 10);
    let seed = number("UNDERTICK_HOSTILE_SEED", 1);
    let rounds = seconds.div_ceil(10);
    for round in 0..rounds {
        hostile(seed + round, seconds / rounds);
    }
}

fn hostile(seed: u64, seconds: u64) {
    let dir = tempfile::tempdir().unwrap();
    let parent = tempfile::tempdir_in("/dev/shm").unwrap();
    let decoy = dir.path().join("decoy");
    fs::create_dir(&decoy).unwrap();
    fs::write(decoy.join("pool"), pool_like()).unwrap();
    fs::write(
        decoy.join("names"),
        b"UN\x01\0\x07\0\x05\0\0\0\0\0\0\0\0\0stray",
    )
    .unwrap();
    let before = state(&decoy);
    let opened = Opened::watch(&decoy);

    let trace = dir.path().join("h.ut");
    let hostile = program("hostile.c", &[]);
    let command = [
        hostile.to_str().unwrap(),
        &seconds.to_string(),
        &seed.to_string(),
        decoy.to_str().unwrap(),
    ];
    let mut recorder = start(&trace, parent.path(), &command);
    let started = Instant::now();
    let mut memory = Vec::new();
    let ended = loop {
        if let Some(status) = recorder.try_wait().unwrap() {
            break status;
        }
        if trace.join("raw.utb").exists() {
            memory.push((started.elapsed(), own_kib(recorder.id())));
        }
        assert!(
            started.elapsed() < Duration::from_secs(seconds + 60),
            "seed {seed}: the recorder does not end"
        );
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(ended.success(), "seed {seed}: the recorder: {ended}");
    assert_eq!(opened.events(), [], "seed {seed}: the decoy was opened");
    assert_eq!(state(&decoy), before, "seed {seed}: the decoy was changed");
    assert_eq!(
        fs::read_dir(parent.path()).unwrap().count(),
        0,
        "seed {seed}: something of the session is left"
    );

    // From a fifth of the time on the recorder has allocated all that it needs.
    let while_recording = Duration::from_secs_f64(seconds as f64 * 0.95);
    let peak = |from: f64, to: f64| {
        let all = memory.iter().filter(|(at, _)| {
            let at = at.as_secs_f64() / while_recording.as_secs_f64();
            (from..to).contains(&at)
        });
        all.map(|&(_, kib)| kib).max().unwrap()
    };
    let (early, late) = (peak(0.0, 0.4), peak(0.4, 1.0));
    println!("seed {seed}: {early} KiB, then {late} KiB of the recorder's own");
    assert!(
        late * 10 <= early * 11 + 10 * BLOCKS_KIB,
        "seed {seed}: grew from {early} to {late} KiB"
    );

    let (manifest, rows) = rows(&trace);
    assert_eq!(
        rows.iter().filter(|row| row.kind != 7).count() as u64,
        manifest.events
    );
    let witness: Vec<i64> = (rows.iter())
        .filter(|row| row.ring == 0 && row.kind == 0)
        .map(|row| row.payload)
        .collect();
    assert_eq!(witness, (0..1000).collect::<Vec<i64>>(), "seed {seed}");
    assert!(
        !manifest.warnings.is_empty(),
        "seed {seed}: nothing was noticed"
    );
    assert!(manifest.warnings.len() < 200);
}

/// Returns a file to which a recorder would write, were it to follow a link there.
fn pool_like() -> Vec<u8> {
    let mut bytes = vec![0; 3 * 131_072];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, b"UTPOOL01");
    put(8, &2u32.to_le_bytes());
    put(16, &1u32.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    bytes
}
