//! Machines and accounts that are not as one would wish: little shared memory, no rights,
//! no place to write to, somebody else's directories.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{SmallDisk, compile, refused, said};

/// A user without any right.
const NOBODY: u32 = 65_534;
const UNDERTICK: &str = env!("CARGO_BIN_EXE_undertick");

/// Two threads with 400000 events each; ends with 5.
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

fn is_root() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0);
    if !root {
        println!("skipped: only root can take rights away, and mount");
    }
    root
}

/// Events kept and lost, and warnings.
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

/// A directory that everybody may write to, and that everybody comes to.
fn open_to_all() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    dir
}

/// As nobody, who does not come to where the command was built.
fn as_nobody(dir: &Path, command: &Command) -> Command {
    let copy = dir.join("undertick");
    if !copy.exists() {
        fs::copy(UNDERTICK, &copy).unwrap();
    }
    let mut other = Command::new(copy);
    other.args(command.get_args()).uid(NOBODY).gid(NOBODY);
    other
}

/// What a container has unless it is asked for more; also where others have filled it.
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

/// The rings' directory by another name, and one that belongs to somebody else.
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

    // Roots alone, and we are nobody.
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

/// A session that somebody else made, or a link in the place of its files: the program
/// runs as if there were none.
#[test]
fn programs_do_not_join_what_is_not_theirs() {
    let dir = open_to_all();
    let program = compile(dir.path(), "flood", FLOOD, &[]);
    let session = dir.path().join("undertick-0-1-1-0");
    fs::create_dir(&session).unwrap();
    let precious = dir.path().join("precious");
    let page = control_page();
    fs::write(&precious, &page).unwrap();
    let ran = |command: &mut Command| {
        let status = command.env("UNDERTICK_SESSION", &session).status().unwrap();
        assert_eq!(status.code(), Some(5));
        let rings: Vec<PathBuf> = (fs::read_dir(&session).unwrap().flatten())
            .map(|entry| entry.path())
            .filter(|path| path.to_string_lossy().contains("ring-"))
            .collect();
        rings.len()
    };
    // A link to a page that would do.
    symlink(&precious, session.join("control")).unwrap();
    assert_eq!(ran(&mut Command::new(&program)), 0);
    assert_eq!(fs::read(&precious).unwrap(), page);
    // The same page without the link is joined: it is the link that is not followed.
    fs::remove_file(session.join("control")).unwrap();
    fs::copy(&precious, session.join("control")).unwrap();
    assert_eq!(ran(&mut Command::new(&program)), 2);
    if !is_root() {
        return;
    }
    // Somebody else's.
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

/// A control page that lets programs record: docs/format.md, section 2.
fn control_page() -> Vec<u8> {
    let mut page = vec![0; 12_288];
    page[..8].copy_from_slice(b"UTCTRL01");
    for (at, value) in [
        (8, 1u32),
        (12, 131_072),
        (16, 2),
        (20, 1),
        (24, 2),
        (28, 64),
        (32, 1),
        (36, 1),
    ] {
        page[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    page
}
