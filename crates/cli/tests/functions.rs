//! `record --functions` on programs that nobody edited. The numbers of their calls are known by
//! construction.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{refused, said, undertick};

const PROGRAM: &str = include_str!("programs/functions.c");
const CPP: &str = include_str!("programs/functions.cpp");

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
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output).1));
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

#[test]
fn the_filter_takes_names_and_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let c = build(dir.path(), "c", PROGRAM, &["cc", "-O2"]);
    let cpp = build(dir.path(), "cpp", CPP, &["c++", "-O1"]);
    for (filter, program, expected) in [
        (
            "^in_(thread|child)$",
            &c,
            known(&[("in_thread", 4000, 0), ("in_child", 9, 0)]),
        ),
        // The same address has a second name.
        ("same_address", &c, known(&[("another_name", 5, 0)])),
        (
            "shop::price",
            &cpp,
            known(&[
                ("shop::price(int)", 50, 0),
                ("shop::price(std::string const&)", 60, 0),
            ]),
        ),
        // The name in the linker's table.
        (
            "^_ZN4shop5priceEi",
            &cpp,
            known(&[("shop::price(int)", 50, 0)]),
        ),
        (
            r"Shelf<int, int>::put",
            &cpp,
            known(&[("shop::Shelf<int, int>::put(int const&, int)", 30, 0)]),
        ),
        // Text that the shown name omits.
        (
            r"basic_string<char.*allocator<char> > const&\)$",
            &cpp,
            known(&[("shop::price(std::string const&)", 60, 0)]),
        ),
        (
            "throws|Early::Early",
            &cpp,
            known(&[("shop::throws(int)", 80, 0), ("shop::Early::Early()", 1, 0)]),
        ),
    ] {
        let trace = dir.path().join("t.ut");
        let (code, told) = said(&record(&trace, filter, &[], &[text(program)]));
        assert_eq!(code, 0, "{told}");
        assert_eq!(calls(&trace), expected, "{filter}");
        fs::remove_dir_all(&trace).unwrap();
    }
}

/// Names of C++ in the table and on the page are short enough, and contain no markup.
#[test]
fn long_names_are_readable() {
    let dir = tempfile::tempdir().unwrap();
    let program = build(dir.path(), "program", CPP, &["c++", "-O1"]);
    let (trace, page) = (dir.path().join("t.ut"), dir.path().join("page.html"));
    assert_eq!(said(&record(&trace, "shop", &[], &[text(&program)])).0, 0);
    let (code, told) = said(&undertick(&["report", text(&trace), "--html", text(&page)]));
    assert_eq!(code, 0, "{told}");
    assert!(
        told.lines().all(|line| line.chars().count() <= 100),
        "{told}"
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("shop::Shelf&lt;int, int&gt;::put(int const&amp;, int)"));
    assert!(!page.contains("Shelf<int"));
}

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
    fs::copy(program, &other).unwrap();
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

/// More functions than numbers: the functions without a number are counted.
#[test]
fn functions_beyond_the_numbers_are_counted() {
    const MORE: usize = 100;
    let dir = tempfile::tempdir().unwrap();
    // Symbols lie a byte apart, with the calls that a compiler would make for them.
    let source = format!(
        "#include <stdint.h>\nextern char f0[];\n\
         void __cyg_profile_func_enter(void *, void *);\nvoid __cyg_profile_func_exit(void *, void *);\n\
         __asm__(\".text\\n.altmacro\\n.macro one n\\n.globl f\\\\n\\n.type f\\\\n, %function\\nf\\\\n: .byte 0\\n.size f\\\\n, 1\\n.endm\\n\"\n\
         \".set i, 0\\n.rept {all}\\none %i\\n.set i, i + 1\\n.endr\\n\");\n\
         __attribute__((no_instrument_function)) int main(void) {{\n\
         for (int k = 0; k < 2; k++) for (int i = 0; i < {all}; i++) {{ __cyg_profile_func_enter(f0 + i, 0); __cyg_profile_func_exit(f0 + i, 0); }}\n\
         return 0; }}\n",
        all = 0x8000 + MORE
    );
    let program = build(dir.path(), "many", &source, &["cc", "-O0"]);
    let trace = dir.path().join("t.ut");
    let (code, told) = said(&record(&trace, "^f", &[], &[text(&program)]));
    assert_eq!(code, 0, "{told}");
    let said = format!(
        "{MORE} functions got no number, since there are 32768: their {} calls",
        2 * MORE
    );
    assert!(told.contains(&said), "{told}");
    // A report has fewer rows than there are functions.
    let manifest = fs::read_to_string(trace.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["names"].as_array().unwrap().len(), 0x8000);
    assert_eq!(manifest["events"], 2 * 2 * 0x8000);
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

/// The cost of a recorded function is measured where functions are recorded, stored for the next
/// recording, and subtracted: in the function itself, and in the enclosing one for the begin and
/// the end of each function that it calls.
#[test]
fn what_functions_cost_is_subtracted() {
    let dir = tempfile::tempdir().unwrap();
    let source = "static volatile unsigned long x = 1;\n\
        __attribute__((noinline)) static void inner(void) { for (int i = 0; i < 20; i++) x = x * 5 + 1; }\n\
        __attribute__((noinline)) static void outer(void) { for (int i = 0; i < 10; i++) inner(); }\n\
        int main(void) { for (int i = 0; i < 2000; i++) outer(); return 0; }\n";
    let program = build(dir.path(), "program", source, &["cc", "-O1"]);
    let recorded = |name: &str, options: &[&str]| {
        let trace = dir.path().join(name);
        let output = Command::new(env!("CARGO_BIN_EXE_undertick"))
            .env("XDG_CACHE_HOME", dir.path().join("cache"))
            .args(["record", "--kernel", "off", "-o", text(&trace)])
            .args(options)
            .args(["--", text(&program)])
            .output()
            .unwrap();
        let (code, told) = said(&output);
        assert_eq!(code, 0, "{told}");
        let manifest = fs::read_to_string(trace.join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        (trace, manifest, told)
    };
    let by_functions = ["--functions", "^(outer|inner)$"];
    let (_, without, _) = recorded("without.ut", &[]);
    let (trace, manifest, told) = recorded("with.ut", &by_functions);
    let (without, with) = (&without["calibration"], &manifest["calibration"]);
    let is_busy = told.contains("too few undisturbed") || told.contains("came out at");
    if without.is_null() || with.is_null() || is_busy {
        println!("skipped: this machine is too busy to measure what recording costs");
        return;
    }
    assert!(!told.contains("could not be measured"), "{told}");
    assert!(without["functions"].is_null() && with["functions"].is_object());
    let report = undertick(&["report", text(&trace), "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let subtracted = |name: &str| {
        let intervals = report["intervals"].as_array().unwrap();
        let found = intervals.iter().find(|interval| interval["name"] == name);
        let cost = &found.unwrap()["compensation"]["cost"]["value"];
        cost.as_f64().unwrap()
    };
    let ns = |figure: &serde_json::Value| figure["value"].as_f64().unwrap();
    let function = &with["functions"];
    let (ends, inside) = (ns(&function["span"]["dosed_ns"]), ns(&function["inner_ns"]));
    // The costs are scaled by the read cost of the program's only ring.
    let clock = &manifest["clock"];
    let [ticks, seconds] = ["numerator", "denominator"]
        .map(|part| clock[format!("ticks_per_second_{part}")].as_f64().unwrap());
    let read_ticks = manifest["rings"][0]["read_cost"]["mean_ticks"].as_f64();
    let ratio = read_ticks.unwrap() * 1e9 * seconds / ticks / ns(&with["read_ns"]);
    let [ends, inside] = [ends, inside].map(|cost| cost * ratio.powf(1.2));
    for (name, expected) in [("inner", ends), ("outer", ends + 20.0 * inside)] {
        let found = subtracted(name);
        assert!(
            (found - expected).abs() < 1e-3 * expected,
            "{name}: {found} for {expected}"
        );
    }
    // The next recording finds the stored cost, here changed to that of a quiet machine.
    let kept = dir.path().join("cache/undertick");
    let kept = fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    let mut contents: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    for span in ["plain", "ordered"] {
        let figure = &mut contents["calibration"][span]["empty_ns"];
        let value = ns(figure);
        figure["interval"] = serde_json::json!([value - 0.1, value + 0.1]);
    }
    let mut other = function.clone();
    other["inner_ns"]["value"] = 12.345.into();
    contents["calibration"]["functions"] = other;
    fs::write(&kept, contents.to_string()).unwrap();
    let (_, again, told) = recorded("again.ut", &by_functions);
    let found = ns(&again["calibration"]["functions"]["inner_ns"]);
    assert!(found == 12.345 || told.contains("holds no more"), "{told}");
    let (_, without, _) = recorded("without-again.ut", &[]);
    assert!(without["calibration"]["functions"].is_null());
}
