//! Common code of the command-line tests.
#![allow(dead_code, reason = "the other test programs use a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs the command and returns its output.
pub fn undertick(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(arguments)
        .output()
        .expect("undertick runs")
}

/// Returns the exit status and the text of both streams.
pub fn said(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// What a command printed, or the text of a file.
pub trait Text {
    fn text(&self) -> &[u8];
    /// What else there is to say if it is no document.
    fn besides(&self) -> String;
}

impl Text for &Output {
    fn text(&self) -> &[u8] {
        &self.stdout
    }

    fn besides(&self) -> String {
        said(self).1
    }
}

impl Text for &[u8] {
    fn text(&self) -> &[u8] {
        self
    }

    fn besides(&self) -> String {
        String::from_utf8_lossy(self).into_owned()
    }
}

/// Parses a document of that kind, and keeps a copy, which `cargo xtask test` holds to the document's
/// schema (`undertick schema`).
#[track_caller]
pub fn document(kind: &str, of: impl Text) -> serde_json::Value {
    static KEPT: AtomicU32 = AtomicU32::new(0);
    let found = serde_json::from_slice(of.text())
        .unwrap_or_else(|e| panic!("no document, {e}: {}", of.besides()));
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("documents")
        .join(kind);
    std::fs::create_dir_all(&dir).unwrap();
    let number = KEPT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number}.json", std::process::id());
    std::fs::write(dir.join(name), of.text()).unwrap();
    found
}

/// Asserts that the command failed properly: with that status, with a message, without a panic.
#[track_caller]
pub fn refused(output: &Output, status: i32, words: &[&str]) {
    let (code, text) = said(output);
    assert_eq!(code, status, "{text}");
    assert!(!text.contains("panicked"), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// A directory that every user may enter and write to.
pub fn open_to_all() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    dir
}

/// Makes a copy of a program, to be executed. The copy is written by another process: while this
/// one had it open, a fork by another test's thread could keep it open, and nothing that is open for
/// writing can be executed.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.expect("cp").success());
}

/// Compiles a C text against the header.
pub fn compile(dir: &Path, name: &str, text: &str, arguments: &[&str]) -> PathBuf {
    let (source, out) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&source, text).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let compiled = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-O2", "-Wall", "-Werror", "-pthread", "-I"])
        .arg(include)
        .args(arguments)
        .arg(&source)
        .arg("-o")
        .arg(&out)
        .status()
        .expect("a C compiler");
    assert!(compiled.success());
    out
}

/// A small program: 1000 spans with a stage, an instant, a wide one.
pub const PROGRAM: &str = r#"
#include "undertick.h"
int main(void) {
    ut_name(1, "request, \"quoted\"");
    ut_name(2, "parse");
    ut_name(3, "run </script><script>alert(1)</script>");
    ut_thread_name("main thread");
    for (uint32_t i = 0; i < 1000; i++) {
        ut_begin(1);
        ut_begin(2);
        ut_next(2, 3);
        ut_event(4, i);
        ut_event64(5, (uint64_t)i << 33);
        ut_end(3);
        ut_end(1);
    }
    return 0;
}
"#;

/// Makes a trace of [`PROGRAM`] in `dir`, without kernel events.
pub fn trace(dir: &Path) -> String {
    let program = compile(dir, "program", PROGRAM, &[]);
    let trace = dir.join("t.ut").to_str().unwrap().to_owned();
    let output = undertick(&[
        "record",
        "--no-calibration",
        "--kernel",
        "off",
        "-o",
        &trace,
        "--",
        program.to_str().unwrap(),
    ]);
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    trace
}

/// A tmpfs of that size.
pub struct SmallDisk(pub PathBuf);

impl SmallDisk {
    pub fn mount(dir: &Path, size: &str) -> Option<Self> {
        let at = dir.join("small");
        std::fs::create_dir(&at).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "none"])
            .arg(&at)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(at));
        }
        println!("skipped: no right to mount a small file system here");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
