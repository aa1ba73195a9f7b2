//! The tests, in two tiers: what a change is tested with, and all that CI runs.

mod aarch64;
mod headers;
mod install;
mod languages;
mod platforms;
mod programs;

pub use aarch64::AARCH64;
pub use languages::{go_alone, java_alone, node_alone, together_alone};

use std::time::Instant;

use crate::exchange::{Outcome, Step};
use crate::run::{Scratch, c_program, command, exists, line, root, run, run_lines, slowest};
use crate::{lint, page};

/// Counts of the tests run so far.
#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Those of the other tier.
    left: u64,
    /// The messages of failed tests. They are repeated at the end, so that nobody has to search
    /// thousands of lines.
    failures: Vec<String>,
}

impl Count {
    /// Runs a step that counts as one test.
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

    /// Runs a test command and adds up its counts.
    fn tests(&mut self, command: std::process::Command) {
        self.tests_said(command, |line| println!("{line}"));
    }

    /// Runs a test command, adds up its counts, and passes its lines to `show`.
    fn tests_said(&mut self, command: std::process::Command, mut show: impl FnMut(&str)) {
        let mut said = Said::default();
        let result = run_lines(command, |line| {
            if said.line(line) {
                show(line);
            }
            false
        });
        self.add(said.numbers, said.failures, result);
    }

    /// Adds the output and exit status of a command with many tests.
    fn add(
        &mut self,
        [passed, failed, skipped, left]: [u64; 4],
        mut failures: Vec<String>,
        ended: Result<(), String>,
    ) {
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
        self.left += left;
        self.failures.append(&mut failures);
        if let Err(text) = ended {
            self.fail(&text);
            self.failed += u64::from(failed == 0);
        }
    }

    fn with(&mut self, other: Self) {
        let numbers = [other.passed, other.failed, other.skipped, other.left];
        self.add(numbers, other.failures, Ok(()));
    }

    fn skip(&mut self, why: &str) {
        println!("skipped: {why}");
        self.skipped += 1;
    }

    /// Prints what took most time, what failed, and the numbers of tests.
    fn print(&self, started: Instant, tier: Tier) {
        println!("\nwhat took most:");
        for line in slowest(24) {
            println!("{line}");
        }
        for line in &self.failures {
            println!("{line}");
        }
        println!(
            "\n{:.0} s\n{} passed, {} failed, {} skipped",
            started.elapsed().as_secs_f64(),
            self.passed,
            self.failed,
            self.skipped
        );
        if tier == Tier::Usual {
            println!(
                "{} that take long were left out, as were other tools, the card, the browser and \
                 Spark: cargo xtask test --all",
                self.left
            );
        }
    }
}

/// The output of a command of Rust's tests so far.
#[derive(Default)]
struct Said {
    /// Numbers of tests passed, failed, skipped, and left to the other tier.
    numbers: [u64; 4],
    failures: Vec<String>,
    is_failure: bool,
    /// Whether the lines are output of passed tests, which is requested because it names what they
    /// skipped.
    is_success: bool,
}

impl Said {
    /// Parses a line; returns whether to show it.
    fn line(&mut self, line: &str) -> bool {
        let is_end = line.starts_with("test result:");
        self.is_failure = (self.is_failure || line == "failures:") && !is_end;
        self.is_success = (self.is_success || line == "successes:") && !is_end && !self.is_failure;
        if self.is_failure {
            self.failures.push(line.to_owned());
        }
        if is_end {
            for (at, word) in [(0, " passed"), (1, " failed"), (3, " ignored")] {
                let before = line.split(word).next().unwrap_or("").trim_end();
                let counted = before
                    .rsplit(' ')
                    .next()
                    .and_then(|n| n.parse::<u64>().ok());
                self.numbers[at] += counted.unwrap_or(0);
            }
        }
        let is_skip = line.trim_start().starts_with("skipped:");
        self.numbers[2] += u64::from(is_skip);
        is_skip || !self.is_success
    }
}

/// Which tests are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// What a change is tested with.
    Usual,
    /// What CI runs: also those that take long, and those that need other tools, a browser or Spark.
    All,
}

impl Tier {
    fn is_all(self) -> bool {
        self == Self::All
    }
}

/// Runs the tests and prints the numbers passed, failed and skipped.
pub fn of(tier: Tier) -> Result<(), String> {
    let started = Instant::now();
    let mut count = Count::default();
    install::packages_and_tools();
    // Those of earlier runs may be of other schemas.
    let _ = std::fs::remove_dir_all(root().join(DOCUMENTS));
    // Downloads, mostly.
    let python = std::thread::spawn(crate::python::interpreter);
    let programs = programs::build(&mut count);
    // This takes half a minute that is mostly waiting.
    let soak = (tier.is_all()).then(|| std::thread::spawn(|| vec![crate::soak::short()]));
    let mut skipped = 0;
    count.step(lint::all(&mut skipped));
    count.skipped += skipped;
    if let Some(soak) = soak {
        steps(&mut count, joined("soak", soak));
    }
    let (drawn, pages) = std::sync::mpsc::channel();
    // These compare no times; most of them, and most test programs, spend part of their time waiting.
    let mut beside = vec![counting(move |count| {
        if let Some(python) = wheel(count, tier, python.join().ok().flatten()) {
            package(count, &python, tier);
            languages::together(count, &python, tier);
        }
        if tier.is_all() {
            steps(count, exchanges());
            programs::examples(count);
            // An error says that no test will draw them.
            let _ = pages.recv();
            outside_readers(count);
            steps(count, crate::packages::all());
        }
        steps(count, crate::book::all());
    })];
    if tier.is_all() {
        beside.push(counting(|count| steps(count, crate::card::all(false))));
        beside.push(counting(|count| {
            nightly(count);
            model(count);
            headers::compilers(count);
            headers::strict(count);
            platforms::all(count);
            programs::unedited(count);
            aarch64::all(count);
            languages::all(count);
        }));
    }
    programs.run(&mut count, tier, drawn, |count| {
        for thread in beside {
            joined_count(count, thread);
        }
    });
    schemas(&mut count);
    count.print(started, tier);
    if count.failed == 0 {
        Ok(())
    } else {
        Err("some tests failed; what they said is above".to_owned())
    }
}

/// Builds the Python package's wheel; returns the interpreter that has it, for [`package`].
fn wheel(count: &mut Count, tier: Tier, python: Option<String>) -> Option<String> {
    let Some(python) = python else {
        count.skip("no Python with the packages that the tests of the Python package need");
        return None;
    };
    let installed = crate::python::install(&python, tier.is_all());
    let is_there = installed.is_ok();
    count.step(installed);
    is_there.then_some(python)
}

/// Runs the tests of the Python package, with the wheel installed.
fn package(count: &mut Count, python: &str, tier: Tier) {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut failures = Vec::new();
    let result = run_lines(crate::python::tests(python, tier.is_all()), |line| {
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
    count.add([passed, failed, skipped, 0], failures, result);
}

/// A parallel thread that runs tests.
fn counting(work: impl FnOnce(&mut Count) + Send + 'static) -> std::thread::JoinHandle<Count> {
    std::thread::spawn(|| {
        let mut count = Count::default();
        work(&mut count);
        count
    })
}

/// Waits for such a thread, and adds what it counted.
fn joined_count(count: &mut Count, thread: std::thread::JoinHandle<Count>) {
    match thread.join() {
        Ok(beside) => count.with(beside),
        Err(_) => count.step(Err("a thread of tests panicked".into())),
    }
}

/// The steps that a parallel thread has run.
fn joined(what: &'static str, thread: std::thread::JoinHandle<Vec<Step>>) -> Vec<Step> {
    let result = Err("its thread panicked".to_owned());
    (thread.join()).unwrap_or_else(|_| vec![Step { what, result }])
}

/// Runs the checks of import and export against other tools.
fn exchanges() -> Vec<Step> {
    crate::exchange::all(crate::python::interpreter().as_deref())
}

/// Counts each step as one test.
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

/// Runs only the checks of import and export, on the existing build.
pub fn exchange_alone() -> Result<(), String> {
    install::packages_and_tools();
    alone(exchanges())
}

/// Only makes and tries the packages, with the program as it is built.
pub fn packages_alone() -> Result<(), String> {
    install::packages_and_tools();
    crate::run::build_workspace()?;
    alone(crate::packages::all())
}

/// Runs only the checks of the README and the book, on the existing build.
pub fn book_alone() -> Result<(), String> {
    alone(crate::book::all())
}

/// Runs only the checks of the event card; its experiment uses the existing build.
pub fn card_alone(is_long: bool) -> Result<(), String> {
    install::packages_and_tools();
    alone(crate::card::all(is_long))
}

fn alone(of: Vec<Step>) -> Result<(), String> {
    let mut count = Count::default();
    steps(&mut count, of);
    ended(&count)
}

fn ended(count: &Count) -> Result<(), String> {
    println!(
        "{} passed, {} failed, {} skipped",
        count.passed, count.failed, count.skipped
    );
    match count.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} failed")),
    }
}

/// Where tests keep the documents that commands printed, by kind.
const DOCUMENTS: &str = "target/tmp/documents";

/// Holds the documents that the tests of the command line kept to the published schemas.
fn schemas(count: &mut Count) {
    let Some(python) = crate::python::with("jsonschema>=4.20", "jsonschema") else {
        return count.skip("no Python package jsonschema here: documents are not held to schemas");
    };
    let command = line(
        "{} crates/cli/tests/schemas.py docs/schema {}",
        &[&python, DOCUMENTS],
    );
    let mut skipped = 0;
    let result = run_lines(command, |line| {
        skipped += u64::from(line.starts_with("skipped:"));
        true
    });
    count.skipped += skipped;
    count.step(result);
}

/// Checks a page in a browser and an export under another project's schema.
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
            run(line(
                "{} crates/cli/tests/perfetto_schema.py {} 10000 5000 4999",
                &[&python, &export],
            ))
        }),
    );
}

/// Checks the types of the page's script, and runs its tests in a browser.
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
    count.add([passed, failed, skipped, 0], failures, result);
}

/// Checks the ring's protocol and the clock page's latch under all interleavings, and with each
/// ordering weakened.
fn model(count: &mut Count) {
    for (package, test) in [
        ("undertick-ring", "protocol"),
        ("undertick-ring", "queue"),
        ("undertick-clock", "latch"),
    ] {
        let mut loom = line(
            "cargo test --release --locked -p {} --test {} --target-dir target/loom",
            &[package, test],
        );
        loom.env("RUSTFLAGS", "--cfg loom");
        count.tests(loom);
    }
}

/// Runs Miri and ThreadSanitizer, which need a nightly toolchain.
fn nightly(count: &mut Count) {
    if !exists(&["cargo", "+nightly", "--version"]) {
        return count.skip("no nightly toolchain: Miri and ThreadSanitizer are not run");
    }
    let fuzz =
        "cargo +nightly metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml";
    let is_locked = exists(&fuzz.split(' ').collect::<Vec<_>>());
    let mend =
        "fuzz/Cargo.lock is not of these crates: `cargo +nightly metadata` in fuzz writes it";
    count.step(is_locked.then_some(()).ok_or_else(|| mend.to_owned()));
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
        count.tests(line(
            "cargo +nightly miri test --locked -p undertick-ring --target-dir target/miri",
            &[],
        ));
    } else {
        count.skip("no Miri for the nightly toolchain here");
    }
    let mut sanitizer = line(
        "cargo +nightly test --release --locked -p undertick-ring --test protocol \
         --test queue -Zbuild-std --target x86_64-unknown-linux-gnu --target-dir target/tsan",
        &[],
    );
    sanitizer.env("RUSTFLAGS", "-Zsanitizer=thread");
    if cfg!(target_arch = "x86_64") && exists(&["cargo", "+nightly", "miri", "--version"]) {
        count.tests(sanitizer);
    } else {
        count.skip("no ThreadSanitizer here (it needs nightly's sources, on x86-64)");
    }
}
