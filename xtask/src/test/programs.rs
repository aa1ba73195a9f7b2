//! Runs the workspace's test programs, some at a time. Most of them spend part of their time waiting
//! for a recorder or a program, and `cargo test` runs them one after the other.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use super::{Count, Tier};
use crate::run::{command, output, run_lines};

/// Programs at once; with all tests, three other threads of tests run beside them.
const fn at_once(tier: Tier) -> usize {
    match tier {
        Tier::Usual => 3,
        Tier::All => 2,
    }
}
/// Tests that use all CPUs, or compare the shares of two programs: nothing runs beside them. Those of
/// the experiments have spin locks with rivals, and take twenty times as long beside others.
const ALONE: [&str; 3] = ["survey", "interference", "undertick_experiment"];

/// Test programs that take longest, by the directory of their package, the longest first.
const LONGEST: [&str; 4] = ["cli", "report", "estimate", "meter"];
/// Package whose test programs mostly wait for a recorder or a program: they run beside the longest.
const WAITING: &str = "record";
/// The test program that makes the pages which a browser opens.
const PAGES: &str = "drawings";

/// A test program, and the directory of its package.
#[derive(Debug, PartialEq)]
struct Program {
    name: String,
    path: String,
    package: String,
}

impl Program {
    fn is_of(&self, directory: &str) -> bool {
        Path::new(&self.package).ends_with(directory)
    }
}

pub struct Programs(Vec<Program>);

/// Builds the command line's program and all tests in one invocation. Building the program by
/// itself would compile Parquet twice, as the tests' own dependencies request more features.
pub fn build(count: &mut Count) -> Programs {
    let mut build = command(&["cargo", "test", "--release", "--workspace", "--locked"]);
    build.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let mut programs = Vec::new();
    let built = run_lines(build, |line| {
        programs.extend(program(line));
        false
    });
    count.step(built);
    Programs(programs)
}

impl Programs {
    /// Runs all test programs. `drawn` is told when the pages that browsers open are there.
    /// `before_alone` waits for whatever runs beside them: nothing may run beside the last ones.
    pub fn run(
        self,
        count: &mut Count,
        tier: Tier,
        drawn: Sender<()>,
        before_alone: impl FnOnce(&mut Count),
    ) {
        if self.0.is_empty() {
            count.step(Err("no program of tests has been built".into()));
        }
        let libraries = match output(command(&["rustc", "--print", "target-libdir"])) {
            Ok(libraries) => libraries,
            Err(error) => {
                count.step(Err(error));
                drop(drawn);
                return before_alone(count);
            }
        };
        let is_alone = |program: &Program| ALONE.contains(&program.name.as_str());
        let (alone, mut together): (Vec<_>, Vec<_>) = self.0.into_iter().partition(is_alone);
        // The longest ones first, so that none runs on when all others have ended, and not two of
        // them before one that waits.
        let rank = |program: &Program| LONGEST.iter().position(|of| program.is_of(of));
        together.sort_by_key(|program| rank(program).unwrap_or(LONGEST.len()));
        let (waiting, computing): (Vec<_>, Vec<_>) =
            (together.into_iter()).partition(|program| program.is_of(WAITING));
        let together = in_turn(computing, waiting);
        let libraries = libraries.trim();
        run_all(
            count,
            tier,
            together,
            (at_once(tier), libraries),
            |program| {
                if program.name == PAGES {
                    let _ = drawn.send(());
                }
            },
        );
        drop(drawn);
        before_alone(count);
        run_all(count, tier, alone, (1, libraries), |_| {});
    }
}

/// One of each list in turn, and the rest of the longer one.
fn in_turn<T>(first: Vec<T>, second: Vec<T>) -> Vec<T> {
    let mut all = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let before = all.len();
        all.extend(first.next());
        all.extend(second.next());
        if all.len() == before {
            return all;
        }
    }
}

/// The examples in the documentation.
pub fn examples(count: &mut Count) {
    let mut examples = command(&["cargo", "test", "--release", "--workspace", "--locked"]);
    examples.args(["--doc", "--no-fail-fast", "--", "--show-output"]);
    count.tests(examples);
}

/// Runs test programs, some at once; `ended` is called after each.
fn run_all(
    count: &mut Count,
    tier: Tier,
    programs: Vec<Program>,
    (at_once, libraries): (usize, &str),
    ended: impl Fn(&Program) + Sync,
) {
    let left = Mutex::new(programs.into_iter());
    let all = Mutex::new(count);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(program) = next(&left) {
                    let (mut one, mut text) = (Count::default(), String::new());
                    one.tests_said(tests_of(&program, tier, libraries), |line| {
                        text.push_str(line);
                        text.push('\n');
                    });
                    ended(&program);
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    print!("\n{}\n{text}", program.path);
                    all.with(one);
                }
            });
        }
    });
}

fn next(left: &Mutex<std::vec::IntoIter<Program>>) -> Option<Program> {
    left.lock().unwrap_or_else(PoisonError::into_inner).next()
}

/// The test program that a message of cargo's build describes, if it does.
fn program(message: &str) -> Option<Program> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let manifest = Path::new(message["manifest_path"].as_str()?);
    is_test.then_some(Program {
        name: message["target"]["name"].as_str()?.to_owned(),
        path: message["executable"].as_str()?.to_owned(),
        package: manifest.parent()?.to_string_lossy().into_owned(),
    })
}

/// A test program started as by `cargo test`: in its package's directory, with the compiler's
/// libraries, which tests of procedural macros are linked with.
fn tests_of(program: &Program, tier: Tier, libraries: &str) -> Command {
    let others = std::env::var("LD_LIBRARY_PATH").map_or(String::new(), |path| format!(":{path}"));
    let mut tests = command(&[&program.path, "--show-output"]);
    if tier == Tier::All {
        // Those print tables for the book, and judge nothing.
        tests.args(["--include-ignored", "--skip", "prints_"]);
    }
    tests
        .current_dir(&program.package)
        .env("CARGO_MANIFEST_DIR", &program.package)
        .env("LD_LIBRARY_PATH", format!("{libraries}{others}"));
    tests
}

/// Compares the calls of a real program with the counts of another tool.
pub(super) fn unedited(count: &mut Count) {
    if let Err(why) = crate::unedited::zlib() {
        return count.skip(&format!("a real program's calls are not compared: {why}"));
    }
    count.step(crate::unedited::counts_agree().map(|said| println!("minigzip, unedited: {said}")));
}

#[cfg(test)]
mod tests {
    use super::{Program, in_turn, program};

    #[test]
    fn lists_take_turns() {
        assert_eq!(in_turn(vec![1, 2, 3], vec![7]), [1, 7, 2, 3]);
        assert_eq!(in_turn(vec![], vec![7, 8]), [7, 8]);
    }

    #[test]
    fn programs_of_tests_are_found_in_what_cargo_says() {
        let test = r#"{"reason":"compiler-artifact","manifest_path":"/a/crates/b/Cargo.toml",
            "target":{"name":"c"},"profile":{"test":true},"executable":"/a/target/release/deps/b-1"}"#;
        let found = Program {
            name: "c".to_owned(),
            path: "/a/target/release/deps/b-1".to_owned(),
            package: "/a/crates/b".to_owned(),
        };
        assert_eq!(program(test), Some(found));
        assert_eq!(program(&test.replace("true", "false")), None);
        assert_eq!(
            program(r#"{"reason":"build-finished","success":true}"#),
            None
        );
        assert_eq!(program("warning: text"), None);
    }
}
