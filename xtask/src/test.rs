//! Everything that CI runs.

use std::time::Instant;

use crate::exchange::{Outcome, Step};
use crate::run::{Scratch, c_program, command, exists, root, run, run_lines};
use crate::{lint, page};

/// What was run so far.
#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// What failed, in its own words: said again at the end, so that nobody has
    /// to look for it between thousands of lines.
    failures: Vec<String>,
}

impl Count {
    /// Runs a step that is one test as a whole.
    fn step(&mut self, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(text) => {
                self.fail(&text);
                self.failed += 1;
            }
        }
    }

    fn fail(&mut self, text: &str) {
        let text = format!("FAILED: {text}");
        eprintln!("{text}");
        self.failures.push(text);
    }

    /// Runs a test command and adds up what it says.
    fn tests(&mut self, command: std::process::Command) {
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        let (mut failures, mut is_failure) = (Vec::new(), false);
        // What tests printed that passed is asked for because of what they skipped.
        let mut is_success = false;
        let result = run_lines(command, |line| {
            let is_end = line.starts_with("test result:");
            is_failure = (is_failure || line == "failures:") && !is_end;
            is_success = (is_success || line == "successes:") && !is_end && !is_failure;
            if is_failure {
                failures.push(line.to_owned());
            }
            if is_end {
                let number = |word: &str| {
                    let before = line.split(word).next().unwrap_or("").trim_end();
                    before
                        .rsplit(' ')
                        .next()
                        .and_then(|n| n.parse::<u64>().ok())
                        .unwrap_or(0)
                };
                passed += number(" passed");
                failed += number(" failed");
                skipped += number(" ignored");
            }
            let is_skip = line.trim_start().starts_with("skipped:");
            skipped += u64::from(is_skip);
            is_skip || !is_success
        });
        self.add([passed, failed, skipped], failures, result);
    }

    /// What a command of many tests said of itself, and how it ended.
    fn add(
        &mut self,
        [passed, failed, skipped]: [u64; 3],
        mut failures: Vec<String>,
        ended: Result<(), String>,
    ) {
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
        self.failures.append(&mut failures);
        if let Err(text) = ended {
            self.fail(&text);
            self.failed += u64::from(failed == 0);
        }
    }

    fn with(&mut self, other: Self) {
        let numbers = [other.passed, other.failed, other.skipped];
        self.add(numbers, other.failures, Ok(()));
    }

    fn skip(&mut self, why: &str) {
        println!("skipped: {why}");
        self.skipped += 1;
    }
}

/// Runs it all and says how much passed, failed and was skipped.
pub fn all() -> Result<(), String> {
    let started = Instant::now();
    let mut count = Count::default();
    install();
    count.step(build());
    // A minute that is mostly waiting.
    let soak = std::thread::spawn(|| vec![crate::soak::short()]);
    let mut skipped = 0;
    count.step(lint::all(&mut skipped));
    count.skipped += skipped;
    steps(&mut count, joined("soak", soak));
    let with_output = ["--", "--show-output"];
    let mut tests = command(&[
        "cargo",
        "test",
        "--release",
        "--workspace",
        "--locked",
        "--no-fail-fast",
    ]);
    tests.args(with_output);
    count.tests(tests);
    headers(&mut count);
    strict_headers(&mut count);
    unedited(&mut count);
    aarch64(&mut count);
    let python = wheel(&mut count);
    outside_readers(&mut count);
    // What follows has no times to compare, and needs one CPU each.
    let beside = std::thread::spawn(|| {
        let mut count = Count::default();
        steps(&mut count, crate::card::all(false));
        model(&mut count);
        nightly(&mut count);
        count
    });
    if let Some(python) = python {
        package(&mut count, &python);
    }
    steps(&mut count, exchanges());
    steps(&mut count, crate::book::all());
    match beside.join() {
        Ok(beside) => count.with(beside),
        Err(_) => count.step(Err(
            "the thread of the event card and the memory models panicked".into(),
        )),
    }
    for line in &count.failures {
        println!("{line}");
    }
    println!(
        "\n{:.0} s\n{} passed, {} failed, {} skipped",
        started.elapsed().as_secs_f64(),
        count.passed,
        count.failed,
        count.skipped
    );
    if count.failed == 0 {
        Ok(())
    } else {
        Err("some tests failed; what they said is above".to_owned())
    }
}

const AARCH64_CC: &str = "aarch64-linux-gnu-gcc";

/// What the tests need from outside Cargo, where we may install it.
fn install() {
    let mut missing: Vec<&str> = [
        ("cc", &["gcc"][..]),
        ("c++", &["g++"]),
        ("clang", &["clang"]),
        ("chromium", &["chromium"]),
        ("npm", &["nodejs", "npm"]),
        (
            AARCH64_CC,
            &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
        ),
        ("qemu-aarch64", &["qemu-user"]),
        ("babeltrace2", &["babeltrace2"]),
        ("lttng", &["lttng-tools", "liblttng-ust-dev"]),
        ("perf", &["linux-perf"]),
    ]
    .iter()
    .chain(&crate::card::PROGRAMS)
    .filter(|(program, _)| !exists(&[program, "--version"]))
    .flat_map(|&(_, packages)| packages)
    .copied()
    .collect();
    if !exists(&["berkeley-abc", "-c", "quit"]) {
        missing.push("berkeley-abc");
    }
    if !exists(&["tmux", "-V"]) {
        missing.push("tmux");
    }
    if !std::path::Path::new("/usr/share/benchmark/compare.py").exists() {
        missing.push("libbenchmark-tools");
    }
    if !exists(&["python3", "-c", "import ensurepip"]) {
        missing.extend(["python3", "python3-venv"]);
    }
    if !missing.is_empty() {
        install_packages(&missing);
    }
    // Of the version that is there now.
    if let Some(runtime) = missing_sanitizers() {
        install_packages(&[&runtime]);
    }
}

fn install_packages(packages: &[&str]) {
    println!("installing {}", packages.join(" "));
    let _ = run(command(&["apt-get", "update", "-qq"]));
    let mut install = command(&["apt-get", "install", "-y", "-qq", "--no-install-recommends"]);
    install.args(packages);
    install.env("DEBIAN_FRONTEND", "noninteractive");
    if let Err(text) = run(install) {
        println!("not installed ({text}); what needs it is skipped");
    }
}

/// The package of clang's ThreadSanitizer, if clang is there and that is not.
fn missing_sanitizers() -> Option<String> {
    let said = |question: &str| {
        let output = command(&["clang", question]).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let version = said("-dumpversion")?;
    let library = said(&format!(
        "-print-file-name=libclang_rt.tsan-{}.a",
        std::env::consts::ARCH
    ))?;
    // One that it does not find is named without its place.
    let is_there = std::path::Path::new(&library).is_absolute();
    (!is_there).then(|| {
        format!(
            "libclang-rt-{}-dev",
            version.split('.').next().unwrap_or("")
        )
    })
}

/// The program and all tests in one go: building the program by itself would
/// compile Parquet twice, as the tests' own dependencies ask for more features.
fn build() -> Result<(), String> {
    run(command(&[
        "cargo",
        "test",
        "--release",
        "--workspace",
        "--locked",
        "--no-run",
    ]))
}

/// Calls of a real program, as another tool counts them.
fn unedited(count: &mut Count) {
    if let Err(why) = crate::unedited::zlib() {
        return count.skip(&format!("a real program's calls are not compared: {why}"));
    }
    count.step(crate::unedited::counts_agree().map(|said| println!("minigzip, unedited: {said}")));
}

/// `undertick.h` under the compilers and languages that it promises.
fn headers(count: &mut Count) {
    let Ok(scratch) = Scratch::new("header") else {
        return count.skip("no temporary directory for the header's tests");
    };
    let program = root().join("crates/trace/tests/programs/writer.c");
    let cpp = scratch.path("writer.cpp");
    let minimal = "#include \"undertick.h\"\nint main() { undertick::span s(1); ut_name(1, \"x\"); ut_event64(2, 3); return ut_enabled(); }\n";
    if let Err(error) = std::fs::write(&cpp, minimal) {
        return count.step(Err(error.to_string()));
    }
    let warnings = [
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wshadow",
        "-Wconversion",
        "-Werror",
        "-DUNDERTICK_OWN_WARNINGS",
        "-O2",
        "-pthread",
        "-Iinclude",
    ];
    for (compiler, standard, source) in [
        ("gcc", "-std=c11", program.to_str().unwrap_or_default()),
        ("gcc", "-std=gnu17", program.to_str().unwrap_or_default()),
        ("g++", "-std=c++17", cpp.as_str()),
        ("g++", "-std=c++20", cpp.as_str()),
        ("clang", "-std=c11", program.to_str().unwrap_or_default()),
        ("clang++", "-std=c++17", cpp.as_str()),
    ] {
        if !exists(&[compiler, "--version"]) {
            count.skip(&format!("no {compiler} here"));
            continue;
        }
        for extra in [
            &["-fPIC"][..],
            &["-DUNDERTICK_DISABLE"][..],
            &["-finstrument-functions"][..],
        ] {
            let out = scratch.path("program");
            let mut words = vec![compiler, standard];
            words.extend(warnings);
            words.extend(extra);
            words.extend([source, "-o", out.as_str(), "-ldl"]);
            count.step(run(command(&words)));
        }
    }
}

/// The strictest warnings of others, as errors: there is none of the header, whatever of it
/// a program uses.
fn strict_headers(count: &mut Count) {
    const USES: &str = "#include \"undertick.h\"\nint main(void) { ut_name(1, \"x\"); ut_thread_name(\"y\"); ut_event(1, 2); \
        ut_event64(1, 2); ut_begin(1); ut_next(1, 2); ut_end(2); ut_begin_ordered(1); ut_end_ordered(1); \
        ut_begin_sampled(3); ut_end_sampled(3); ut_pair(4); return ut_enabled(); }\n";
    const GCC: &str = "-Wall -Wextra -Wpedantic -Wcast-qual -Wcast-align -Wshadow -Wstrict-aliasing=1 -Wswitch-enum \
        -Wundef -Wpointer-arith -Wvla -Wformat=2 -Winit-self -Wfloat-equal -Wwrite-strings -Wredundant-decls \
        -Wmissing-declarations -Wconversion -Wsign-conversion -Wunused -Winline -Wpadded -Wcast-align=strict";
    const GCC_C: &str = "-Wmissing-prototypes -Wstrict-prototypes -Wc++-compat -Wdeclaration-after-statement -Wnested-externs";
    const GCC_CPP: &str =
        "-Wold-style-cast -Wuseless-cast -Wzero-as-null-pointer-constant -Weffc++";
    let Ok(scratch) = Scratch::new("strict") else {
        return count.skip("no temporary directory for the header's tests");
    };
    for (compiler, standard, name, flags) in [
        ("gcc", "-std=c11", "uses.c", [GCC, GCC_C]),
        ("g++", "-std=c++17", "uses.cpp", [GCC, GCC_CPP]),
        ("clang", "-std=c11", "uses.c", ["-Weverything", ""]),
        ("clang++", "-std=c++17", "uses.cpp", ["-Weverything", ""]),
    ] {
        let source = scratch.path(name);
        if let Err(error) = std::fs::write(&source, USES) {
            return count.step(Err(error.to_string()));
        }
        if !exists(&[compiler, "--version"]) {
            count.skip(&format!("no {compiler} here"));
            continue;
        }
        for build in ["-DNDEBUG", "-DUNDERTICK_DISABLE", "-DUNDERTICK_CARD=0x1000"] {
            let out = scratch.path("uses.o");
            let mut words = vec![compiler, standard, "-O2", "-Werror", "-Iinclude", build];
            words.extend(flags.iter().flat_map(|flags| flags.split_whitespace()));
            words.extend(["-c", source.as_str(), "-o", out.as_str()]);
            count.step(run(command(&words)));
        }
    }
}

/// The header on aarch64: compiled, and recorded under an emulator. Its counter is not
/// this machine's, which the recording refuses; with the system's clock all is there.
fn aarch64(count: &mut Count) {
    if !exists(&[AARCH64_CC, "--version"]) || !exists(&["qemu-aarch64", "--version"]) {
        return count.skip("no aarch64 compiler and emulator here");
    }
    count.step(aarch64_counted());
    count.step(aarch64_forked());
}

/// A C program for aarch64, of that standard of C.
fn built_for_aarch64(source: &str, standard: &str, into: &Scratch) -> Result<String, String> {
    let program = into.path("program");
    run(command(&[
        AARCH64_CC,
        standard,
        "-Wall",
        "-Wextra",
        "-DUNDERTICK_OWN_WARNINGS",
        "-Wpedantic",
        "-Wconversion",
        "-Werror",
        "-O2",
        "-pthread",
        "-Iinclude",
        &format!("crates/trace/tests/programs/{source}"),
        "-o",
        &program,
        "-ldl",
    ]))?;
    Ok(program)
}

/// A command that records what the emulator runs.
fn record_emulated(trace: &str, program: &[&str]) -> std::process::Command {
    let undertick = root().join("target/release/undertick");
    let mut record = command(&[&undertick.to_string_lossy(), "record", "--no-calibration"]);
    record.args([
        "-o",
        trace,
        "--",
        "qemu-aarch64",
        "-L",
        "/usr/aarch64-linux-gnu",
    ]);
    record.args(program);
    record
}

fn manifest_of(trace: &str) -> Result<String, String> {
    std::fs::read_to_string(format!("{trace}/manifest.json")).map_err(|e| e.to_string())
}

/// The emulator's counter is refused; with the system's clock all is recorded.
fn aarch64_counted() -> Result<(), String> {
    let scratch = Scratch::new("aarch64")?;
    let program = built_for_aarch64("writer.c", "-std=c11", &scratch)?;
    let command = [program.as_str(), "count", "100000"];
    let refused = record_emulated(&scratch.path("counter.ut"), &command)
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    if refused.status.success() || !text.contains("reads another clock") {
        return Err(format!("an emulated counter was believed: {text}"));
    }
    let trace = scratch.path("t.ut");
    let mut recorded = record_emulated(&trace, &command);
    recorded.env("UNDERTICK_CLOCK", "monotonic_raw");
    run(recorded)?;
    let manifest = manifest_of(&trace)?;
    if manifest.contains("\"events\": 100000,") && manifest.contains("\"lost\": 0,") {
        Ok(())
    } else {
        Err(format!("not 100000 events: {manifest}"))
    }
}

/// Children of fork() and of a raw clone() have rings of their own where no page is wiped.
fn aarch64_forked() -> Result<(), String> {
    let scratch = Scratch::new("aarch64-forks")?;
    let (program, trace) = (
        built_for_aarch64("forks.c", "-std=gnu11", &scratch)?,
        scratch.path("t.ut"),
    );
    let mut recorded = record_emulated(&trace, &[&program]);
    recorded.env("UNDERTICK_CLOCK", "monotonic_raw");
    run(recorded)?;
    let manifest: serde_json::Value =
        serde_json::from_str(&manifest_of(&trace)?).map_err(|e| e.to_string())?;
    let rings = manifest["rings"].as_array().map_or(0, Vec::len);
    let executions: u64 = (manifest["sampled"].as_array().into_iter().flatten())
        .filter_map(|of| of["executions"].as_u64())
        .sum();
    if (rings, executions, manifest["lost"].as_u64()) == (51, 51 * 100, Some(0)) {
        Ok(())
    } else {
        Err(format!(
            "not 51 rings, 5100 executions, none lost: {rings}, {executions}, {manifest}"
        ))
    }
}

/// The Python package's wheel; the interpreter that has it, for [`package`].
fn wheel(count: &mut Count) -> Option<String> {
    let Some(python) = crate::python::interpreter() else {
        count.skip("no Python with the packages that the tests of the Python package need");
        return None;
    };
    let installed = crate::python::install(&python);
    let is_there = installed.is_ok();
    count.step(installed);
    is_there.then_some(python)
}

/// The tests of the Python package, with the wheel installed.
fn package(count: &mut Count, python: &str) {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut failures = Vec::new();
    let result = run_lines(crate::python::tests(python), |line| {
        let number = |word| crate::python::counted(line, word).unwrap_or(0);
        if line.contains(" in ") && (number("passed") > 0 || number("failed") > 0) {
            (passed, failed) = (number("passed"), number("failed") + number("error"));
        }
        skipped += u64::from(line.starts_with("skipped:"));
        if line.starts_with("FAILED ") || line.starts_with("ERROR ") {
            failures.push(line.to_owned());
        }
        true
    });
    count.add([passed, failed, skipped], failures, result);
}

/// What a thread has done beside the others.
fn joined(what: &'static str, thread: std::thread::JoinHandle<Vec<Step>>) -> Vec<Step> {
    let result = Err("its thread panicked".to_owned());
    (thread.join()).unwrap_or_else(|_| vec![Step { what, result }])
}

/// Import and export beside other tools.
fn exchanges() -> Vec<Step> {
    crate::exchange::all(crate::python::interpreter().as_deref())
}

/// Each step is one test as a whole.
fn steps(count: &mut Count, steps: Vec<Step>) {
    for step in steps {
        let what = step.what;
        match step.result {
            Ok(Outcome::Said(said)) => {
                println!("{what}: {said}");
                count.passed += 1;
            }
            Ok(Outcome::Skipped(why)) => count.skip(&format!("{what}: {why}")),
            Err(error) => count.step(Err(format!("{what}: {error}"))),
        }
    }
}

/// Import and export by themselves: of what has been built.
pub fn exchange_alone() -> Result<(), String> {
    install();
    alone(exchanges())
}

/// README and book by themselves: of what has been built.
pub fn book_alone() -> Result<(), String> {
    alone(crate::book::all())
}

/// The event card by itself; its experiment reads with what has been built.
pub fn card_alone(is_long: bool) -> Result<(), String> {
    install();
    alone(crate::card::all(is_long))
}

fn alone(of: Vec<Step>) -> Result<(), String> {
    let mut count = Count::default();
    steps(&mut count, of);
    println!(
        "{} passed, {} failed, {} skipped",
        count.passed, count.failed, count.skipped
    );
    match count.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} failed")),
    }
}

/// A page in a browser and an export under another project's schema.
fn outside_readers(count: &mut Count) {
    let Ok(scratch) = Scratch::new("outside") else {
        return count.skip("no temporary directory for the readers of other projects");
    };
    let undertick = root()
        .join("target/release/undertick")
        .to_string_lossy()
        .into_owned();
    let (program, trace, page) = (
        scratch.path("program"),
        scratch.path("t.ut"),
        scratch.path("page.html"),
    );
    let source = scratch.path("program.c");
    let text = "#include \"undertick.h\"\nint main(void) { ut_name(1, \"outer\"); ut_name(2, \"inner\");\n\
        for (uint32_t i = 0; i < 5000; i++) { ut_begin(1); ut_begin(2); ut_end(2); ut_event(3, i); ut_end(1); } return 0; }\n";
    let prepared = std::fs::write(&source, text)
        .map_err(|e| e.to_string())
        .and_then(|()| {
            run(c_program(&source, &program))?;
            run(command(&[
                &undertick, "record", "-o", &trace, "--", &program,
            ]))?;
            Ok(())
        });
    let failed = prepared.is_err();
    count.step(prepared);
    if failed {
        return;
    }
    page_in_browser(count, &undertick, &trace, &page);
    let Some(python) = crate::python::interpreter() else {
        return count
            .skip("no Python package perfetto here: the export is not checked against its schema");
    };
    let export = scratch.path("t.pftrace");
    count.step(
        run(command(&[
            &undertick, "export", &trace, "--to", "perfetto", &export,
        ]))
        .and_then(|()| {
            run(command(&[
                &python,
                "crates/cli/tests/perfetto_schema.py",
                &export,
                "10000",
                "5000",
                "4999",
            ]))
        }),
    );
}

/// The page's script: its types, and its tests in a browser.
fn page_in_browser(count: &mut Count, undertick: &str, trace: &str, real: &str) {
    if let Some(why) = page::missing() {
        return count.skip(why);
    }
    let made = page::types().and_then(|()| page::document(undertick, trace, real));
    let failed = made.is_err();
    count.step(made);
    if failed {
        return;
    }
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut failures = Vec::new();
    let result = run_lines(page::tests(real), |line| {
        let (pass, fail, skip) = page::counted(line);
        (passed, failed, skipped) = (passed + pass, failed + fail, skipped + skip);
        if line.starts_with("not ok ") {
            failures.push(line.to_owned());
        }
        true
    });
    count.add([passed, failed, skipped], failures, result);
}

/// The ring's protocol and the clock page's latch, all interleavings, and with
/// each ordering weakened.
fn model(count: &mut Count) {
    for (package, test) in [
        ("undertick-ring", "protocol"),
        ("undertick-ring", "queue"),
        ("undertick-clock", "latch"),
    ] {
        let mut loom = command(&[
            "cargo",
            "test",
            "--release",
            "--locked",
            "-p",
            package,
            "--test",
            test,
            "--target-dir",
            "target/loom",
        ]);
        loom.env("RUSTFLAGS", "--cfg loom");
        count.tests(loom);
    }
}

/// Miri and ThreadSanitizer, which need a nightly toolchain.
fn nightly(count: &mut Count) {
    if !exists(&["cargo", "+nightly", "--version"]) {
        return count.skip("no nightly toolchain: Miri and ThreadSanitizer are not run");
    }
    let _ = exists(&[
        "rustup",
        "component",
        "add",
        "--toolchain",
        "nightly",
        "miri",
        "rust-src",
    ]);
    if exists(&["cargo", "+nightly", "miri", "--version"]) {
        count.tests(command(&[
            "cargo",
            "+nightly",
            "miri",
            "test",
            "--locked",
            "-p",
            "undertick-ring",
            "--target-dir",
            "target/miri",
        ]));
    } else {
        count.skip("no Miri for the nightly toolchain here");
    }
    let mut sanitizer = command(&[
        "cargo",
        "+nightly",
        "test",
        "--release",
        "--locked",
        "-p",
        "undertick-ring",
        "--test",
        "protocol",
        "--test",
        "queue",
        "-Zbuild-std",
        "--target",
        "x86_64-unknown-linux-gnu",
        "--target-dir",
        "target/tsan",
    ]);
    sanitizer.env("RUSTFLAGS", "-Zsanitizer=thread");
    if cfg!(target_arch = "x86_64") && exists(&["cargo", "+nightly", "miri", "--version"]) {
        count.tests(sanitizer);
    } else {
        count.skip("no ThreadSanitizer here (it needs nightly's sources, on x86-64)");
    }
}
