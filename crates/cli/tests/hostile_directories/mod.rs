//! Malicious trace directories, and every command that takes a trace: in a jail beside a tree of
//! files that must stay unchanged.
//!
//! Each round copies a good trace (complete, or left by a killed recorder), changes it at random,
//! and runs every command on it with little memory and CPU time. Only what `-o` names may change,
//! and the trace itself for `record --finish` and `--resume`. A failure prints the round's seed;
//! `UNDERTICK_DIRECTORIES_SEED` repeats one, and `UNDERTICK_DIRECTORIES_SECONDS` sets the CPU time
//! of all rounds.

mod changes;
use crate::support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use changes::Changer;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::{compile, trace};

/// CPU time for all rounds in CI.
const SECONDS: f64 = 20.0;
/// Most CPU time of a command, seconds; on a busy machine the wall time is longer.
const MOST_CPU_SECONDS: u64 = 20;
const MOST_WALL: Duration = Duration::from_secs(180);
/// Most memory of a command, bytes.
const MOST_MEMORY: u64 = 1 << 30;
/// `sql` runs on two of this many directories.
const SQL_EACH: u64 = 40;

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
        "explain TRACE",
        "explain TRACE --json",
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
#[ignore = "long: cargo xtask test --all"]
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
