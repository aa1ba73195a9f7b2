//! Malicious trace directories, and every command that takes a trace: in a jail beside a tree of
//! files that must stay unchanged.
//!
//! Each round copies a good trace (complete, or left by a killed recorder), changes it at random,
//! and runs every command on it with little memory and CPU time. Only what `-o` names may change,
//! and the trace itself for `record --finish` and `--resume`. A failure prints the round's seed;
//! `UNDERTICK_DIRECTORIES_SEED` repeats one, and `UNDERTICK_DIRECTORIES_SECONDS` sets the CPU time
//! of all rounds.

mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use support::{compile, trace};

/// CPU time for all rounds in CI.
const SECONDS: f64 = 40.0;
/// Most CPU time of a command, seconds; on a busy machine the wall time is longer.
const MOST_CPU_SECONDS: u64 = 20;
const MOST_WALL: Duration = Duration::from_secs(180);
/// Most memory of a command, bytes.
const MOST_MEMORY: u64 = 1 << 30;
/// `sql` runs on two of this many directories.
const SQL_EACH: u64 = 40;

/// Possible names in a trace directory.
const FILES: [&str; 18] = [
    "manifest.json",
    "manifest.json",
    "events.parquet",
    "kernel.parquet",
    "raw.utb",
    "rings.jsonl",
    "kernel.utk",
    "kernel-older.utk",
    "ended-0.utb",
    "ended-1.utb",
    "manifest.json.new",
    "events.parquet.new",
    "kernel.parquet.new",
    "spans",
    "sync",
    "control",
    "names",
    "truth.parquet",
];

/// Path, inode, mode, size, time of the last change, target of a link.
type Tree = BTreeMap<PathBuf, (u64, u32, u64, i64, Option<PathBuf>)>;

/// Lists the contents of a directory, without opening anything.
fn tree(dir: &Path) -> Tree {
    let mut found = Tree::new();
    let mut to_do = vec![dir.to_owned()];
    while let Some(dir) = to_do.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let about = fs::symlink_metadata(&path).unwrap();
            if about.is_dir() {
                to_do.push(path.clone());
            }
            let changed = about.mtime() * 1_000_000_000 + about.mtime_nsec();
            let leads = fs::read_link(&path).ok();
            // The time of a directory changes with the files made in it, which are listed
            // themselves.
            let (size, changed) = if about.is_dir() {
                (0, 0)
            } else {
                (about.len(), changed)
            };
            found.insert(path, (about.ino(), about.mode(), size, changed, leads));
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(status.unwrap().success());
}

/// A trace whose recorder was killed.
fn left_by_a_killed_recorder(dir: &Path) -> PathBuf {
    let program = compile(
        dir,
        "long",
        "#include \"undertick.h\"\n#include <unistd.h>\nint main(void) { ut_name(1, \"tick\"); \
         for (uint32_t i = 0; i < 600; i++) { ut_event(1, i); usleep(1000); } return 0; }\n",
        &["-D_GNU_SOURCE"],
    );
    let trace = dir.join("killed.ut");
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args([
            "record",
            "--no-calibration",
            "-o",
            trace.to_str().unwrap(),
            "--",
        ])
        .arg(program)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while fs::metadata(trace.join("raw.utb")).map_or(0, |about| about.len()) == 0 {
        assert!(Instant::now() < end, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(5));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    trace
}

/// Makes one random change in a directory.
struct Changer<'a> {
    random: ChaCha8Rng,
    canary: &'a Path,
    /// A directory with the name of a session.
    session: &'a Path,
}

impl Changer<'_> {
    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())].clone()
    }

    fn change(&mut self, trace: &Path) {
        if self.random.random_range(0..2) == 0 {
            self.change_manifest(trace);
        } else {
            self.change_file(trace);
        }
    }

    fn change_file(&mut self, trace: &Path) {
        let name = self.one_of(&FILES);
        let path = trace.join(name);
        let old = fs::metadata(&path).is_ok_and(|about| about.is_file());
        let bytes = if old { read_some(&path) } else { Vec::new() };
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir_all(&path);
        let make = |mode: libc::mode_t| {
            let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
            // SAFETY: a path that ends with zero.
            unsafe { libc::mknod(path.as_ptr(), mode | 0o600, 0) };
        };
        match self.random.random_range(0..14) {
            0 => symlink(self.canary.join("thesis.txt"), &path).unwrap(),
            1 => symlink(self.canary, &path).unwrap(),
            2 => symlink("/dev/zero", &path).unwrap(),
            3 => symlink(name, &path).unwrap(),
            4 => symlink("/proc/self/fd/0", &path).unwrap(),
            5 => fs::hard_link(self.canary.join("thesis.txt"), &path).unwrap(),
            6 => make(libc::S_IFIFO),
            7 => make(libc::S_IFSOCK),
            8 => {
                fs::create_dir(&path).unwrap();
                let _ = symlink(self.canary, path.join("about.json"));
            }
            9 => {
                let file = File::create(&path).unwrap();
                let _ = file.set_len(1 << 40);
            }
            10 => drop(File::create(&path).unwrap()),
            11 => fs::write(&path, &bytes[..bytes.len() / 2]).unwrap(),
            12 => {
                let mut bytes = bytes;
                for _ in 0..self.random.random_range(1..20) {
                    if !bytes.is_empty() {
                        // A Parquet file has its description at its end.
                        let from = self.one_of(&[0, bytes.len().saturating_sub(2000)]);
                        let at = self.random.random_range(from..bytes.len());
                        bytes[at] = match self.random.random_range(0..3) {
                            0 => self.random.random(),
                            1 => self.one_of(&[0, 0x7f, 0x80, 0xfe, 0xff]),
                            _ => bytes[at] ^ 1 << self.random.random_range(0..8),
                        };
                    }
                }
                fs::write(&path, bytes).unwrap();
            }
            _ => {
                let mut bytes = vec![0; 5000];
                self.random.fill(&mut bytes[..]);
                fs::write(&path, bytes).unwrap();
            }
        }
    }

    fn change_manifest(&mut self, trace: &Path) {
        let path = trace.join("manifest.json");
        if !fs::symlink_metadata(&path).is_ok_and(|about| about.is_file()) {
            return;
        }
        let Ok(mut manifest) = serde_json::from_slice::<Value>(&read_some(&path)) else {
            return;
        };
        for _ in 0..self.random.random_range(1..4) {
            self.change_value(&mut manifest);
        }
        fs::write(&path, serde_json::to_vec(&manifest).unwrap()).unwrap();
    }

    /// Makes the manifest agree with the changed parts, as the sender of a trace can.
    fn agree(&self, trace: &Path) {
        let path = trace.join("manifest.json");
        let Ok(mut manifest) = serde_json::from_slice::<Value>(&read_some(&path)) else {
            return;
        };
        let parts = manifest.get_mut("parts").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten().filter_map(Value::as_object_mut) {
            let file = part.get("file").and_then(Value::as_str).unwrap_or("none");
            if file.contains('/') {
                continue;
            }
            let bytes = read_some(&trace.join(file));
            part.insert("bytes".into(), json!(bytes.len()));
            part.insert("crc32".into(), json!(crc32fast::hash(&bytes)));
        }
        let _ = fs::write(&path, serde_json::to_vec(&manifest).unwrap());
    }

    fn change_value(&mut self, manifest: &mut Value) {
        let session = self.session.to_str().unwrap();
        let Some(object) = manifest.as_object_mut() else {
            return;
        };
        match self.random.random_range(0..12) {
            0 => {
                let name = self.one_of(&[session, ".", "..", "/", "control", ""]);
                object.insert("session".into(), json!(name));
                object.insert("state".into(), json!("recording"));
            }
            1 => {
                let about = fs::metadata(self.session).unwrap();
                object.insert("session".into(), json!(session));
                object.insert("state".into(), json!("recording"));
                let identity = json!({"secret": "00000000000000000000000000000000",
                    "device": about.dev(), "inode": about.ino()});
                object.insert("session_identity".into(), identity);
            }
            2 => {
                let state = self.one_of(&["recording", "complete", "other"]);
                object.insert("state".into(), json!(state));
            }
            3 => {
                let file = self.one_of(&[
                    "../canary/thesis.txt",
                    "/dev/zero",
                    "..",
                    "",
                    "raw.utb",
                    "manifest.json",
                    "a\u{1b}[2Jb",
                    "control",
                ]);
                let part = object.get_mut("parts").and_then(|parts| parts.get_mut(0));
                if let Some(part) = part.and_then(Value::as_object_mut) {
                    part.insert("file".into(), json!(file));
                }
            }
            4 => {
                let part = object.get("parts").and_then(|parts| parts.get(0)).cloned();
                if let Some(part) = part {
                    object.insert("parts".into(), json!(vec![part; 5000]));
                }
            }
            5 => {
                let long = "x".repeat(self.random.random_range(1..3) << 20);
                object.insert(
                    "names".into(),
                    json!([{"pid": null, "event": 1, "name": long}]),
                );
            }
            6 => {
                let names: Vec<Value> = (0..100_000u32)
                    .map(|i| json!({"pid": i as i32, "event": i as u16, "name": format!("\u{1b}]0;{i}\u{7}")}))
                    .collect();
                object.insert("names".into(), json!(names));
            }
            7 => {
                let overflow = self.one_of(&["overwrite", "grow", "nothing"]);
                if let Some(recorder) = object.get_mut("recorder").and_then(Value::as_object_mut) {
                    recorder.insert("overflow".into(), json!(overflow));
                }
            }
            8 => {
                let value = self.one_of(&[
                    json!(0),
                    json!(-1),
                    json!(u64::MAX),
                    json!(1e300),
                    Value::Null,
                ]);
                let field = self.one_of(&[
                    "ticks_per_second_numerator",
                    "ticks_per_second_denominator",
                    "granularity_ticks",
                    "read_cost_ns_median",
                    "anchors",
                    "name",
                ]);
                if let Some(clock) = object.get_mut("clock").and_then(Value::as_object_mut) {
                    clock.insert(field.into(), value);
                }
            }
            9 => {
                let mut deep = json!(1);
                for _ in 0..100 {
                    deep = json!([deep]);
                }
                let keys: Vec<String> = object.keys().cloned().collect();
                let key = self.one_of(&keys);
                object.insert(key, deep);
            }
            10 => {
                let keys: Vec<String> = object.keys().cloned().collect();
                let key = self.one_of(&keys);
                object.remove(&key);
            }
            _ => {
                let keys: Vec<String> = object.keys().cloned().collect();
                let key = self.one_of(&keys);
                let value = self.one_of(&[
                    json!(-1),
                    json!(u64::MAX),
                    json!("\u{1b}[31mred\u{202e}"),
                    json!([]),
                    json!({}),
                    json!("/"),
                    Value::Null,
                ]);
                object.insert(key, value);
            }
        }
    }
}

/// Reads the beginning of a file, without waiting for a pipe.
fn read_some(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if fs::symlink_metadata(path).is_ok_and(|about| about.is_file()) {
        let _ = File::open(path)
            .unwrap()
            .take(1 << 22)
            .read_to_end(&mut bytes);
    }
    bytes
}

/// The end of a command.
struct Ended {
    status: std::process::ExitStatus,
    cpu_seconds: f64,
    memory_bytes: u64,
    said: Vec<u8>,
}

#[expect(
    clippy::zombie_processes,
    reason = "wait4 waits, and tells what was used"
)]
fn run(arguments: &[&str], jail: &Path, said: &Path) -> Ended {
    let out = File::create(said).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_undertick"));
    command
        .args(arguments)
        .current_dir(jail)
        .stdin(Stdio::null())
        .stdout(out.try_clone().unwrap())
        .stderr(out)
        .env("COLUMNS", "100");
    // SAFETY: setrlimit is safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let limit = |seconds| libc::rlimit {
                rlim_cur: seconds,
                rlim_max: seconds + 1,
            };
            libc::setrlimit(libc::RLIMIT_CPU, &limit(MOST_CPU_SECONDS));
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    let pid = child.id() as libc::pid_t;
    let end = Instant::now() + MOST_WALL;
    loop {
        let mut status = 0;
        // SAFETY: all zeros is a valid rusage; both are valid for writing.
        let (ended, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let ended = libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage);
            (ended, usage)
        };
        if ended == pid {
            let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
            return Ended {
                status: std::os::unix::process::ExitStatusExt::from_raw(status),
                cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
                memory_bytes: usage.ru_maxrss as u64 * 1024,
                said: fs::read(said).unwrap(),
            };
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns every command that takes a trace, and whether it may write into it. `sql` needs the
/// Python package, in the interpreter that `UNDERTICK_PYTHON` names.
fn commands(trace: &str, out: &str, with_sql: bool) -> Vec<(Vec<String>, bool)> {
    let words = |text: &str| -> Vec<String> {
        (text.split(' '))
            .map(|word| word.replace("TRACE", trace).replace("OUT", out))
            .collect()
    };
    let read = [
        "report TRACE",
        "report TRACE --json",
        "report TRACE --html OUT/page.html",
        "export TRACE --to perfetto OUT/p",
        "export TRACE --to chrome OUT/c",
        "export TRACE --to csv OUT/v",
        "export TRACE --to parquet OUT/q",
        "export TRACE --to hdrhistogram OUT/h",
        "export TRACE --to google-benchmark OUT/g",
        "export TRACE --to pyperf OUT/y",
        "compare TRACE TRACE",
        "merge TRACE TRACE -o OUT/m.ut",
        "snapshot TRACE -o OUT/s.ut",
        "sample TRACE 4",
        "import TRACE -o OUT/i.ut",
        "report good.ut --table TRACE/manifest.json",
        "run TRACE/manifest.json",
        "slow run TRACE/manifest.json",
        "estimate --of mean TRACE/manifest.json",
        "survey --fleet TRACE",
    ];
    let sql = with_sql.then_some("sql TRACE SELECT/**/count(*)FROM/**/events");
    let write = ["record --resume TRACE", "record --finish TRACE"];
    (read.into_iter().chain(sql))
        .map(|text| (words(text), false))
        .chain(write.into_iter().map(|text| (words(text), true)))
        .collect()
}

#[test]
fn no_trace_directory_harms_its_reader() {
    let dir = tempfile::tempdir().unwrap();
    let good = PathBuf::from(trace(dir.path()));
    let killed = left_by_a_killed_recorder(dir.path());
    let jail = dir.path().join("jail");
    let canary = jail.join("canary");
    fs::create_dir_all(&canary).unwrap();
    fs::write(canary.join("thesis.txt"), "mine").unwrap();
    // SAFETY: only returns a number.
    let uid = unsafe { libc::geteuid() };
    let session = canary.join(format!("undertick-{uid}-1-a-0"));
    fs::create_dir(&session).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&session, mode).unwrap();
    for file in ["control", "names", "pool", "trace"] {
        fs::write(session.join(file), [0; 12288]).unwrap();
    }
    copy(&good, &jail.join("good.ut"));

    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<f64>().unwrap())
    };
    let seconds = number("UNDERTICK_DIRECTORIES_SECONDS").unwrap_or(SECONDS);
    let only = number("UNDERTICK_DIRECTORIES_SEED").map(|seed| seed as u64);
    let (mut used, mut runs, mut longest) = (0.0, 0, 0.0_f64);
    for seed in only.unwrap_or(0).. {
        let mut changer = Changer {
            random: ChaCha8Rng::seed_from_u64(seed),
            canary: &canary,
            session: &session,
        };
        let from = if seed % 2 == 0 { &good } else { &killed };
        let trace = jail.join("x.ut");
        copy(from, &trace);
        for _ in 0..changer.random.random_range(1..5) {
            changer.change(&trace);
        }
        if seed % 4 < 2 {
            changer.agree(&trace);
        }
        let out = jail.join("out");
        // `sql` takes a hundred times as long as the others.
        let with_sql = seed % SQL_EACH < 2 && std::env::var_os("UNDERTICK_PYTHON").is_some();
        for (words, writes) in commands("x.ut", "out", with_sql) {
            fs::create_dir(&out).unwrap();
            let before = tree(&jail);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ended = run(&words, &jail, &dir.path().join("said"));
            let place = format!("seed {seed}: {}", words.join(" "));
            let said = String::from_utf8_lossy(&ended.said[..ended.said.len().min(4000)]);
            let code = ended.status.code();
            assert!(
                matches!(code, Some(0..=2)),
                "{place}: {:?}: {said}",
                ended.status
            );
            assert!(
                ended.memory_bytes < MOST_MEMORY,
                "{place}: {} bytes",
                ended.memory_bytes
            );
            assert!(
                !ended.said.contains(&0x1b),
                "{place}: an escape sequence: {said:?}"
            );
            let (mut before, mut after) = (before, tree(&jail));
            let may_change = |path: &Path| {
                path.starts_with(&out) || (writes && path.starts_with(&trace) && path != trace)
            };
            before.retain(|path, _| !may_change(path));
            after.retain(|path, _| !may_change(path));
            for (path, about) in &before {
                assert_eq!(after.get(path), Some(about), "{place}: {}", path.display());
            }
            assert_eq!(before.len(), after.len(), "{place}: something is new");
            fs::remove_dir_all(&out).unwrap();
            used += ended.cpu_seconds;
            longest = longest.max(ended.cpu_seconds);
            runs += 1;
        }
        fs::remove_dir_all(&trace).unwrap();
        assert_eq!(
            fs::read(canary.join("thesis.txt")).unwrap(),
            b"mine",
            "seed {seed}"
        );
        if used > seconds || only.is_some() {
            break;
        }
    }
    println!("{runs} commands, {used:.1} s of CPU time, the longest {longest:.2} s");
    let _ = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(["record", "--finish", killed.to_str().unwrap()])
        .output();
}
