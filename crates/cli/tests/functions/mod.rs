//! `record --functions` on programs that nobody edited. The numbers of their calls are known by
//! construction.

mod cost;
mod loading;
mod names;
use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{document, said, undertick};

const PROGRAM: &str = include_str!("../programs/functions.c");
const CPP: &str = include_str!("../programs/functions.cpp");

/// Compiles a text with hooks, with `compiler` and options.
fn build(dir: &Path, name: &str, text: &str, words: &[&str]) -> PathBuf {
    let kind = if words[0].contains("++") { "cpp" } else { "c" };
    let (source, out) = (dir.join(format!("{name}.{kind}")), dir.join(name));
    fs::write(&source, text).unwrap();
    let compiled = Command::new(words[0])
        .args(&words[1..])
        .args(["-Wall", "-pthread", "-finstrument-functions"])
        .arg(&source)
        .arg("-o")
        .arg(&out)
        .args(["-ldl"])
        .output()
        .expect("a compiler");
    assert!(compiled.status.success(), "{}", said(&compiled).1);
    out
}

/// Records with a filter, further options and a program.
fn record(trace: &Path, filter: &str, options: &[&str], program: &[&str]) -> Output {
    let words = ["record", "--no-calibration", "--kernel", "off", "-o"];
    let mut all = words.to_vec();
    all.extend([trace.to_str().unwrap(), "--functions", filter]);
    all.extend(options);
    all.push("--");
    all.extend(program);
    undertick(&all)
}

/// Returns the calls by name, from the report: whole ones, and begins without an end.
fn calls(trace: &Path) -> BTreeMap<String, (u64, u64)> {
    let output = undertick(&["report", trace.to_str().unwrap(), "--json"]);
    let report: serde_json::Value = document("report", &output);
    assert_eq!(report["trace"]["lost"], 0);
    let intervals = report["intervals"].as_array().unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    intervals
        .iter()
        .map(|i| {
            let whole = number(&i["count"]) + number(&i["culled"]["count"]);
            let name = i["name"].as_str().unwrap().to_owned();
            (name, (whole, number(&i["unmatched"])))
        })
        .collect()
}

/// Returns the expected calls, as a map.
fn known(list: &[(&str, u64, u64)]) -> BTreeMap<String, (u64, u64)> {
    list.iter()
        .map(|&(name, whole, open)| (name.to_owned(), (whole, open)))
        .collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A library with a function that all of them export and a private one.
fn library(dir: &Path, name: &str) -> PathBuf {
    let source = format!(
        "static volatile int sink;\n__attribute__((noinline)) static void of_{name}(void) {{ sink++; }}\n\
         void from_library(void) {{ of_{name}(); }}\n"
    );
    build(
        dir,
        &format!("{name}.so"),
        &source,
        &["cc", "-O1", "-fPIC", "-shared"],
    )
}

/// Recursion, threads, handlers, longjmp, fork, libraries opened and closed,
/// static, inlined and aliased functions, constructors.
#[test]
fn every_call_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (library(dir.path(), "one"), library(dir.path(), "two"));
    let expected = known(&[
        ("main", 1, 0),
        ("before_main", 1, 0),
        ("exported", 10, 0),
        ("leaf", 15, 0),
        ("inlined", 20, 0),
        ("recursive", 3 * 501, 0),
        ("another_name", 5, 0),
        ("by_pointer", 7, 0),
        ("thread", 4, 0),
        ("in_thread", 4000, 0),
        ("handler", 6, 0),
        ("in_handler", 6, 0),
        ("jumped_over", 0, 8),
        ("jumps", 0, 8),
        ("in_child", 9, 0),
        ("libraries", 1, 0),
        ("library", 6, 0),
        ("from_library (one.so)", 3, 0),
        ("from_library (two.so)", 6, 0),
        ("of_one", 3, 0),
        ("of_two", 6, 0),
    ]);
    for words in [
        &["cc", "-O0"][..],
        &["cc", "-O3"],
        &["cc", "-O2", "-no-pie"],
        &["clang", "-O2"],
    ] {
        if Command::new(words[0]).arg("--version").output().is_err() {
            println!("skipped: no {} here", words[0]);
            continue;
        }
        let program = build(dir.path(), "program", PROGRAM, words);
        let trace = dir.path().join("t.ut");
        let output = record(&trace, ".", &[], &[text(&program), text(&one), text(&two)]);
        let (code, told) = said(&output);
        assert_eq!(code, 0, "{told}");
        let places: std::collections::BTreeSet<&str> =
            told.lines().filter(|line| line.starts_with("0x")).collect();
        if places.len() != 1 {
            println!("skipped: the two libraries did not come to lie at one place: {places:?}");
        }
        assert_eq!(calls(&trace), expected, "{words:?}");
        fs::remove_dir_all(&trace).unwrap();
    }
}

/// The constructors of a library that is linked with the program run before those of the program.
#[test]
fn the_first_functions_are_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let source = "static volatile int s;\n__attribute__((noinline)) static void first(void) { s++; }\n\
        __attribute__((constructor)) static void starts(void) { first(); first(); }\n\
        __attribute__((destructor)) static void ends(void) { first(); }\nvoid used(void) { }\n";
    let library = build(
        dir.path(),
        "libfirst.so",
        source,
        &["cc", "-O1", "-fPIC", "-shared"],
    );
    let rpath = format!("-Wl,-rpath,{}", dir.path().display());
    // The library comes before the source, so --no-as-needed links it although no symbol needs it
    // yet.
    let words = ["cc", "-O1", &rpath, "-Wl,--no-as-needed", text(&library)];
    let main = "void used(void);\nint main(void) { used(); return 0; }\n";
    let program = build(dir.path(), "program", main, &words);
    let trace = dir.path().join("t.ut");
    let (code, told) = said(&record(&trace, ".", &[], &[text(&program)]));
    assert_eq!(code, 0, "{told}");
    let expected = [
        ("first", 3, 0),
        ("starts", 1, 0),
        ("ends", 1, 0),
        ("used", 1, 0),
        ("main", 1, 0),
    ];
    assert_eq!(calls(&trace), known(&expected));
}

/// The recorder is killed while the program runs. The program goes on, also where it needs a
/// number, and drained events have their names.
#[test]
fn a_killed_recorder_leaves_program_and_names() {
    let dir = tempfile::tempdir().unwrap();
    let done = dir.path().join("done");
    let source = "#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        __attribute__((noinline)) static void tick(void) { usleep(500); }\n\
        __attribute__((noinline)) static void late(void) { usleep(1); }\n\
        int main(int c, char **v) { (void)c; for (int i = 0; i < 2000; i++) tick(); late();\n\
        void *handle = dlopen(v[2], RTLD_NOW); void (*f)(void) = (void (*)(void))dlsym(handle, \"from_library\"); f();\n\
        FILE *file = fopen(v[1], \"w\"); return !file || fclose(file); }\n";
    let program = build(dir.path(), "program", source, &["cc", "-O1"]);
    let opened = library(dir.path(), "opened");
    let trace = dir.path().join("t.ut");
    let mut child = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args([
            "record",
            "--no-calibration",
            "--kernel",
            "off",
            "-o",
            text(&trace),
        ])
        .args(["--functions", "tick|late|of_", "--", text(&program)])
        .args([text(&done), text(&opened)])
        .spawn()
        .unwrap();
    let raw = trace.join("raw.utb");
    let drained = wait_for(|| fs::metadata(&raw).is_ok_and(|meta| meta.len() > 0));
    let manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(trace.join("manifest.json")).unwrap()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = wait_for(|| done.exists());
    let (code, told) = said(&undertick(&["record", "--finish", text(&trace)]));
    assert_eq!(code, 0, "{told}");
    let named = calls(&trace);
    let session = manifest["session"].as_str().expect("it was being recorded");
    assert!(!Path::new(session).exists());
    assert!(drained, "nothing was recorded");
    assert!(ended, "the program did not run to its end");
    assert!(named.contains_key("tick"), "{named:?}");
}

/// Waits, twenty seconds at most.
fn wait_for(is_so: impl Fn() -> bool) -> bool {
    (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        is_so()
    })
}
