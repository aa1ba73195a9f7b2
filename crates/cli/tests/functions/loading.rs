//! How a program gets the library that records its functions, and programs that cannot have it.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::support::{self, copy_program, refused, said, undertick};
use super::{PROGRAM, build, calls, known, record, text};

#[test]
fn what_cannot_be_recorded_is_refused_with_a_mend() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.ut");
    let program = build(dir.path(), "program", PROGRAM, &["cc", "-O1"]);
    let refuse = |filter: &str, program: &Path, words: &[&str]| {
        refused(&record(&trace, filter, &[], &[text(program)]), 2, words);
        assert!(!trace.exists());
    };
    refuse(
        "no_such",
        &program,
        &["no_such", "matches none", "exported"],
    );
    refuse("(", &program, &["--functions", "unclosed group"]);
    let plain = "int main(void) { return 0; }\n";
    let fixed = build(dir.path(), "static", plain, &["cc", "-static"]);
    refuse(".", &fixed, &["statically linked", "undertick_functions.c"]);
    let pie = build(dir.path(), "pie", plain, &["cc", "-static-pie"]);
    refuse(".", &pie, &["statically linked"]);
    let own = "#define H __attribute__((no_instrument_function))\n\
        H void __cyg_profile_func_enter(void *f, void *s) { (void)f; (void)s; }\n\
        H void __cyg_profile_func_exit(void *f, void *s) { (void)f; (void)s; }\nint main(void) { return 0; }\n";
    let own = build(dir.path(), "own", own, &["cc"]);
    refuse(".", &own, &["own __cyg_profile_func_enter"]);
    // Bytes 18 and 19 of the header are the processor: 40 is ARM, 32 bits.
    let foreign = dir.path().join("foreign");
    let mut bytes = fs::read(&program).unwrap();
    bytes[18..20].copy_from_slice(&40u16.to_le_bytes());
    fs::write(&foreign, bytes).unwrap();
    refuse(".", &foreign, &["another processor"]);
    let stripped = dir.path().join("stripped");
    let strip = Command::new("strip")
        .args(["-o", text(&stripped), text(&program)])
        .status();
    assert!(strip.unwrap().success());
    refuse(".", &stripped, &["stripped"]);
    setuid(dir.path(), &program, &refuse);
}

fn setuid(dir: &Path, program: &Path, refuse: &dyn Fn(&str, &Path, &[&str])) {
    use std::os::unix::fs::PermissionsExt;
    let other = dir.join("setuid");
    copy_program(program, &other);
    if std::os::unix::fs::chown(&other, Some(12345), None).is_err() {
        println!("skipped: no right to give a file to another user here");
        return;
    }
    fs::set_permissions(&other, fs::Permissions::from_mode(0o4755)).unwrap();
    refuse(".", &other, &["set-user-ID"]);
}

/// An uninstrumented program may start an instrumented one, so it runs, and both times the message
/// has the mend. A script is treated alike.
#[test]
fn what_is_started_by_others_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.ut");
    let output = record(&trace, ".", &[], &["true"]);
    let (code, told) = said(&output);
    assert_eq!(code, 0, "{told}");
    assert_eq!(told.matches("-finstrument-functions").count(), 2, "{told}");
    assert!(
        told.contains("no call of a function was recorded"),
        "{told}"
    );
    fs::remove_dir_all(&trace).unwrap();

    // Two programs have a function of the same name and one with a different name.
    let text_of = |n: u32, name: &str| {
        format!(
            "static volatile int s;\n__attribute__((noinline)) static void shared(void) {{ s++; }}\n\
             __attribute__((noinline)) static void {name}(void) {{ s++; }}\n\
             int main(void) {{ for (int i = 0; i < {n}; i++) {{ shared(); {name}(); {name}(); }} return 0; }}\n"
        )
    };
    let a = build(dir.path(), "a", &text_of(10, "only_a"), &["cc", "-O1"]);
    let b = build(dir.path(), "b", &text_of(100, "only_b"), &["cc", "-O1"]);
    let script = dir.path().join("script");
    fs::write(
        &script,
        format!(
            "#!/bin/sh\n{} && {} && {}\n",
            a.display(),
            b.display(),
            a.display()
        ),
    )
    .unwrap();
    let chmod = Command::new("chmod").args(["+x", text(&script)]).status();
    assert!(chmod.unwrap().success());
    let (code, told) = said(&record(&trace, "shared|only", &[], &[text(&script)]));
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("a script"), "{told}");
    let expected = [
        ("shared (a)", 20, 0),
        ("shared (b)", 100, 0),
        ("only_a", 40, 0),
        ("only_b", 200, 0),
    ];
    assert_eq!(calls(&trace), known(&expected));
}

/// The user's own LD_PRELOAD stays, and no temporary file is left behind.
#[test]
fn preloading_is_added_to() {
    let dir = tempfile::tempdir().unwrap();
    let temporary = dir.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    // It prints the process that it is in, because `undertick` loads it, too.
    let theirs = "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n\
        __attribute__((constructor)) static void c(void) { printf(\"theirs in %s\\n\", program_invocation_short_name); fflush(stdout); }\n";
    let theirs = support::compile(dir.path(), "theirs", theirs, &["-shared", "-fPIC"]);
    let program = build(dir.path(), "program", PROGRAM, &["cc", "-O1"]);
    let trace = dir.path().join("t.ut");
    let run = |tmpdir: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_undertick"))
            .args([
                "record",
                "--no-calibration",
                "--kernel",
                "off",
                "-o",
                text(&trace),
            ])
            .args(["--functions", "^leaf$", "--", text(&program)])
            .env("TMPDIR", tmpdir)
            .env("LD_PRELOAD", &theirs)
            .output()
            .unwrap();
        let (code, told) = said(&output);
        assert_eq!(code, 0, "{told}");
        assert!(told.contains("theirs in program"), "{told}");
        assert_eq!(calls(&trace), known(&[("leaf", 15, 0)]));
        fs::remove_dir_all(&trace).unwrap();
    };
    run(&temporary);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    // LD_PRELOAD cannot have a name with a space: another directory is used.
    let spaced = dir.path().join("with space");
    fs::create_dir(&spaced).unwrap();
    run(&spaced);
    assert_eq!(fs::read_dir(&spaced).unwrap().count(), 0);
}

/// The library is linked instead of preloaded; its source is compiled into a static program.
#[test]
fn the_library_can_be_linked() {
    let dir = tempfile::tempdir().unwrap();
    let lib = dir.path().join("lib");
    assert_eq!(
        said(&undertick(&["header", "--functions", "--dir", text(&lib)])).0,
        0
    );
    let include = format!("-I{}", lib.display());
    let object = dir.path().join("hooks.o");
    let compiled = Command::new("cc")
        .args([
            "-O2",
            "-c",
            &include,
            text(&lib.join("undertick_functions.c")),
            "-o",
            text(&object),
        ])
        .status();
    assert!(compiled.unwrap().success());
    let source = dir.path().join("program.c");
    fs::write(&source, PROGRAM).unwrap();
    let (search, path) = (
        format!("-L{}", lib.display()),
        format!("-Wl,-rpath,{}", lib.display()),
    );
    let ways: [&[&str]; 2] = [
        &[
            &search,
            &path,
            "-Wl,--no-as-needed",
            "-lundertick_functions",
        ],
        &["-static", text(&object)],
    ];
    for way in ways {
        let program = dir.path().join("linked");
        let linked = Command::new("cc")
            .args([
                "-O2",
                "-w",
                "-pthread",
                "-finstrument-functions",
                text(&source),
                "-o",
                text(&program),
            ])
            .args(way)
            .output()
            .unwrap();
        assert!(linked.status.success(), "{}", said(&linked).1);
        let trace = dir.path().join("t.ut");
        let (code, told) = said(&record(
            &trace,
            "^(leaf|in_thread|before_main)$",
            &[],
            &[text(&program)],
        ));
        assert_eq!(code, 0, "{told}");
        let expected = known(&[
            ("leaf", 15, 0),
            ("in_thread", 4000, 0),
            ("before_main", 1, 0),
        ]);
        assert_eq!(calls(&trace), expected, "{way:?}");
        fs::remove_dir_all(&trace).unwrap();
        // Without --functions, and without a session, no function is recorded.
        let words = [
            "record",
            "--no-calibration",
            "-o",
            text(&trace),
            "--",
            text(&program),
        ];
        let (code, told) = said(&undertick(&words));
        assert_eq!((code, told.contains(" 0 events of")), (0, true), "{told}");
        fs::remove_dir_all(&trace).unwrap();
        assert!(Command::new(&program).status().unwrap().success());
    }
}
