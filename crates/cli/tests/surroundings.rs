//! Restricted machines and accounts: little shared memory, no rights, no writable directory,
//! directories of other users.

use crate::support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use support::{SmallDisk, compile, copy_program, open_to_all, refused, said};

/// A user without any right.
const NOBODY: u32 = 65_534;
const UNDERTICK: &str = env!("CARGO_BIN_EXE_undertick");

/// Two threads with 400000 events each; ends with status 5.
const FLOOD: &str = r#"
#include "undertick.h"
static void *run(void *n) {
    for (uint32_t i = 0; i < 400000; i++) ut_event(1, i);
    return n;
}
int main(void) {
    pthread_t id[2];
    for (int i = 0; i < 2; i++) pthread_create(&id[i], 0, run, 0);
    for (int i = 0; i < 2; i++) pthread_join(id[i], 0);
    return 5;
}
"#;

const ONE_EVENT: &str = "#include \"undertick.h\"\nint main(void) { ut_event(1, 1); return 0; }\n";

fn is_root() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0);
    if !root {
        println!("skipped: only root can take rights away, and mount");
    }
    root
}

/// Returns stored and lost events, and warnings.
fn manifest(trace: &Path) -> (u64, u64, String) {
    let text = fs::read_to_string(trace.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    (
        manifest["events"].as_u64().unwrap(),
        manifest["lost"].as_u64().unwrap(),
        manifest["warnings"].to_string(),
    )
}

fn record(trace: &Path, program: &Path) -> Command {
    let mut command = Command::new(UNDERTICK);
    command
        .args(["record", "--no-calibration", "--kernel", "off", "-o"])
        .arg(trace)
        .arg("--")
        .arg(program);
    command
}

/// Runs the command as nobody, from a copy, because nobody cannot enter the build directory.
fn as_nobody(dir: &Path, command: &Command) -> Command {
    let copy = dir.join("undertick");
    if !copy.exists() {
        // By another process: a child of a test beside this one would inherit the open copy, which
        // could then not be executed.
        let copied = Command::new("cp").arg(UNDERTICK).arg(&copy).status();
        assert!(copied.unwrap().success());
    }
    let mut other = Command::new(copy);
    other.args(command.get_args()).uid(NOBODY).gid(NOBODY);
    other
}

/// The shared memory that a container has by default; also when other processes have filled it.
#[test]
fn a_shared_memory_of_64_megabytes() {
    const MOUNT: &str = "mount -t tmpfs -o size=64m none /dev/shm";
    let probe = Command::new("unshare")
        .args(["-m", "sh", "-c", MOUNT])
        .output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return println!("skipped: no right to mount in a place of our own");
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "flood", FLOOD, &[]);
    for others_mib in [0, 61] {
        let trace = dir.path().join(format!("{others_mib}.ut"));
        let inside = record(&trace, &program);
        let script =
            format!("{MOUNT} && head -c {others_mib}m /dev/zero > /dev/shm/others && exec \"$@\"");
        let output = Command::new("unshare")
            .args(["-m", "sh", "-c", &script, "sh"])
            .arg(inside.get_program())
            .args(inside.get_args())
            .output()
            .unwrap();
        assert_eq!(said(&output).0, 5, "{others_mib}: {}", said(&output).1);
        let (events, lost, warnings) = manifest(&trace);
        assert_eq!(events + lost, 800_000, "{others_mib}: {warnings}");
        assert!(events > 0);
    }
}

#[test]
fn without_any_right() {
    if !is_root() {
        return;
    }
    let dir = open_to_all();
    let program = compile(dir.path(), "flood", FLOOD, &[]);
    let trace = dir.path().join("t.ut");
    let output = as_nobody(dir.path(), &record(&trace, &program))
        .output()
        .unwrap();
    assert_eq!(said(&output).0, 5, "{}", said(&output).1);
    let (events, lost, warnings) = manifest(&trace);
    assert_eq!(
        (events + lost, fs::metadata(&trace).unwrap().uid()),
        (800_000, NOBODY),
        "{warnings}"
    );
}

#[test]
fn a_home_that_cannot_be_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let Some(home) = SmallDisk::mount(dir.path(), "1m") else {
        return;
    };
    let remounted = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(&home.0)
        .status();
    assert!(remounted.unwrap().success());
    let program = compile(dir.path(), "flood", FLOOD, &[]);
    let trace = dir.path().join("t.ut");
    let at_home = |command: &mut Command| {
        (command.env("HOME", &home.0).current_dir(&home.0))
            .output()
            .unwrap()
    };
    let output = at_home(&mut record(&trace, &program));
    assert_eq!(said(&output).0, 5, "{}", said(&output).1);
    let output = at_home(&mut record(Path::new("t.ut"), &program));
    refused(&output, 1, &["t.ut", "cannot make the trace directory"]);
}

/// The rings' directory is a link, or belongs to another user.
#[test]
fn places_for_rings_that_are_not_what_they_seem() {
    let dir = open_to_all();
    let program = compile(dir.path(), "flood", FLOOD, &[]);
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    let trace = dir.path().join("t.ut");
    let output = record(&trace, &program)
        .env("UNDERTICK_DIR", &link)
        .output()
        .unwrap();
    assert_eq!(said(&output).0, 5, "{}", said(&output).1);
    assert_eq!(manifest(&trace).0, 800_000);
    assert_eq!(
        fs::read_dir(&real).unwrap().count(),
        0,
        "the session is left"
    );

    // Only root can act as another user.
    if !is_root() {
        return;
    }
    let trace = dir.path().join("u.ut");
    let mut command = as_nobody(dir.path(), &record(&trace, &program));
    let output = command.env("UNDERTICK_DIR", &real).output().unwrap();
    refused(
        &output,
        1,
        &["real/undertick-", "cannot make the session directory"],
    );
    assert!(!trace.exists());
}

/// A session belongs to another user, or a link replaces one of its files: the program runs as if
/// there were no session.
#[test]
fn programs_do_not_join_what_is_not_theirs() {
    let dir = open_to_all();
    let program = compile(dir.path(), "flood", FLOOD, &[]);
    let session = dir.path().join("undertick-0-1-1-0");
    fs::create_dir(&session).unwrap();
    let precious = dir.path().join("precious");
    let page = control_page();
    fs::write(&precious, &page).unwrap();
    fs::write(session.join("pool"), pool()).unwrap();
    let ran = |command: &mut Command| {
        let status = command.env("UNDERTICK_SESSION", &session).status().unwrap();
        assert_eq!(status.code(), Some(5));
        let pool = fs::read(session.join("pool")).unwrap();
        u32::from_le_bytes(pool[12..16].try_into().unwrap())
    };
    // A link to a valid page.
    symlink(&precious, session.join("control")).unwrap();
    assert_eq!(ran(&mut Command::new(&program)), 0);
    assert_eq!(fs::read(&precious).unwrap(), page);
    // The same page without the link is joined: only the link was not followed.
    fs::remove_file(session.join("control")).unwrap();
    fs::copy(&precious, session.join("control")).unwrap();
    assert_eq!(ran(&mut Command::new(&program)), 2);
    if !is_root() {
        return;
    }
    // The session belongs to another user.
    fs::set_permissions(&session, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(session.join("control"), fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::read(session.join("control")).unwrap();
    assert_eq!(
        ran(Command::new(&program).uid(NOBODY).gid(NOBODY)),
        2,
        "no more than before"
    );
    assert_eq!(fs::read(session.join("control")).unwrap(), before);
}

/// A pool of 8 heads and 8 segments, all of them free: docs/format.md, section 3.
fn pool() -> Vec<u8> {
    let mut pool = vec![0; 786_432 + 8 * 131_072];
    pool[..8].copy_from_slice(b"UTPOOL01");
    let mut put = |at: usize, value: u32| pool[at..at + 4].copy_from_slice(&value.to_le_bytes());
    for (at, value) in [(8, 2), (16, 8), (20, 8), (320, 8), (576, 8)] {
        put(at, value);
    }
    for number in 0..8 {
        put(4128 + 4 * number as usize, number);
        put(4192 + 4 * number as usize, number);
    }
    pool
}

/// A control page that lets programs record: docs/format.md, section 2.
fn control_page() -> Vec<u8> {
    let mut page = vec![0; 12_288];
    page[..8].copy_from_slice(b"UTCTRL01");
    for (at, value) in [
        (8, 2u32),
        (12, 131_072),
        (16, 2),
        (20, 1),
        (24, 2),
        (28, 8),
        (32, 1),
        (36, 1),
        (44, 8),
    ] {
        page[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    page
}

/// Records `program`; returns when the cost of recording was measured, and the manifest's warnings.
fn cost_of_recording(
    dir: &Path,
    program: &Path,
    home: &[(&str, &Path)],
    options: &[&str],
) -> (i64, String) {
    let trace = dir.join("c.ut");
    let _ = fs::remove_dir_all(&trace);
    let output = Command::new(UNDERTICK)
        .args(["record", "--kernel", "off", "-o"])
        .arg(&trace)
        .args(options)
        .arg("--")
        .arg(program)
        .env_remove("HOME")
        .env_remove("XDG_CACHE_HOME")
        .envs(home.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let manifest = fs::read(trace.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let measured = manifest["calibration"]["measured_unix_ns"].as_i64();
    // The machine may be too busy for the measurement.
    (measured.unwrap_or(0), manifest["warnings"].to_string())
}

/// For a missing program nothing is measured, stored or made.
#[test]
fn a_program_that_is_nowhere_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (work, cache) = (dir.path().join("work"), dir.path().join("cache"));
    fs::create_dir(&work).unwrap();
    fs::create_dir(&cache).unwrap();
    // A file that is there, but not in PATH: ./ was forgotten.
    copy_program(Path::new("/bin/true"), &work.join("here"));
    for (program, options) in [
        ("./no-such-program", [].as_slice()),
        ("no-such-program", &[]),
        ("/no/such/program", &["--runs", "2"]),
        ("here", &[]),
    ] {
        let output = Command::new(UNDERTICK)
            .args(["record", "-o", "c.ut"])
            .args(options)
            .args(["--", program])
            .current_dir(&work)
            .env("XDG_CACHE_HOME", &cache)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let line = format!("{program}: no such program; give its path, or a name that is in PATH");
        assert!(said.contains(&line), "{said}");
        let made = |dir: &Path| fs::read_dir(dir).unwrap().count();
        assert_eq!((made(&work), made(&cache)), (1, 0), "{program}");
    }
}

/// The cost of recording is measured once, and the next recording finds it and checks it. It is
/// measured anew on request, without a file, and where none can be stored.
#[test]
#[ignore = "long: cargo xtask test --all"]
fn the_cost_of_recording_is_kept() {
    const LONG_AGO: i64 = 1_000_000_007;
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let in_cache = [("XDG_CACHE_HOME", cache.as_path())];
    let in_home = [("HOME", dir.path())];
    let nowhere: [(&str, &Path); 0] = [];
    let program = compile(dir.path(), "program", ONE_EVENT, &[]);
    let recorded = |home: &[(&str, &Path)], options: &[&str]| {
        cost_of_recording(dir.path(), &program, home, options)
    };
    let (first, _) = recorded(&in_cache, &[]);
    if first == 0 {
        println!("skipped: this machine is too busy to measure what recording costs");
        return;
    }
    let files = || fs::read_dir(cache.join("undertick")).unwrap().flatten();
    assert_eq!(files().count(), 1);
    let file = files().next().unwrap().path();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(
        file.parent().unwrap().metadata().unwrap().mode() & 0o777,
        0o700
    );

    // The stored cost is that of a quiet machine, long ago.
    let kept = fs::read_to_string(&file).unwrap();
    let mut kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    kept["calibration"]["measured_unix_ns"] = LONG_AGO.into();
    for span in ["plain", "ordered"] {
        for cost in ["empty_ns", "dosed_ns"] {
            let figure = &mut kept["calibration"][span][cost];
            let value = figure["value"].as_f64().unwrap();
            figure["interval"] = serde_json::json!([value - 0.1, value + 0.1]);
        }
    }
    let figure = &mut kept["calibration"]["inner_ordered_ns"];
    figure["interval"] = serde_json::json!([figure["value"], figure["value"]]);
    let kept = kept.to_string();
    fs::write(&file, &kept).unwrap();
    let (second, warnings) = recorded(&in_cache, &[]);
    let holds_no_more = warnings.contains("holds no more");
    assert!((second == LONG_AGO) != holds_no_more, "{second} {warnings}");

    // From a program without events nothing is subtracted, so nothing is checked.
    fs::write(&file, &kept).unwrap();
    let (empty, warnings) = cost_of_recording(dir.path(), Path::new("true"), &in_cache, &[]);
    assert_eq!(empty, LONG_AGO);
    assert!(!warnings.contains("could not be told"), "{warnings}");
    let manifest = fs::read(dir.path().join("c.ut/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let kept_calibration = serde_json::from_str::<serde_json::Value>(&kept).unwrap();
    assert_eq!(manifest["calibration"], kept_calibration["calibration"]);

    fs::write(&file, &kept).unwrap();
    assert_ne!(recorded(&in_cache, &["--calibrate"]).0, LONG_AGO);
    fs::write(&file, &kept[..kept.len() / 2]).unwrap();
    assert_ne!(recorded(&in_cache, &[]).0, LONG_AGO);
    assert_ne!(recorded(&nowhere, &[]).0, LONG_AGO);
    recorded(&in_home, &[]);
    assert!(dir.path().join(".cache/undertick").is_dir());
}

/// A second container of the same pod: its files are others, but for `/dev/shm`, and its processes have the
/// same numbers.
#[test]
fn a_recorder_beside_the_programs_container_attaches_through_shared_memory() {
    const PACED: &str = "#include \"undertick.h\"\n#include <unistd.h>\nint main(void) {\n    for (uint32_t i = 0; \
        i < 20000; i++) { ut_begin(1); usleep(100); ut_end(1); }\n    return 0;\n}\n";
    if !is_root() {
        return;
    }
    let dir = open_to_all();
    let [shared, other] = ["shared", "other"].map(|name| dir.path().join(name));
    for place in [&shared, &other] {
        fs::create_dir(place).unwrap();
        fs::set_permissions(place, fs::Permissions::from_mode(0o1777)).unwrap();
    }
    let program = compile(dir.path(), "paced", PACED, &[]);
    let in_container = |shm: &Path, words: &[&str]| {
        let script = "mount --bind \"$1\" /dev/shm && shift && exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]);
        command.arg(shm).args(words);
        command
    };
    let copy = dir.path().join("undertick");
    copy_program(Path::new(UNDERTICK), &copy);
    let record = |shm: &Path, trace: &Path, pid: u32| {
        let pid = pid.to_string();
        let trace = trace.to_str().unwrap();
        let words = [
            copy.to_str().unwrap(),
            "record",
            "--no-calibration",
            "--kernel",
            "off",
            "--for",
            "300ms",
            "-o",
            trace,
            "--pid",
            &pid,
        ];
        in_container(shm, &words).output().unwrap()
    };
    let mut child = in_container(&shared, &[program.to_str().unwrap()])
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let (here, there) = (dir.path().join("here.ut"), dir.path().join("there.ut"));
    let alone = record(&other, &there, child.id());
    let beside = record(&shared, &here, child.id());
    let _ = child.kill();
    let _ = child.wait();
    refused(&alone, 2, &["sees other files", "process namespace"]);
    assert!(beside.status.success(), "{}", said(&beside).1);
    let (events, lost, _) = manifest(&here);
    assert!(events > 200 && lost == 0, "{events} {lost}");
}
