//! The C recorder under ThreadSanitizer: not recorded, recorded, and recorded later.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::attach_target::{Program, recorded};
use common::{alone, run, settings};
use undertick_record::Overflow;

/// Builds a program with the sanitizer by each installed compiler that supports it.
fn programs(source: &str) -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = here.join("tests/programs").join(source);
    let mut all = Vec::new();
    for compiler in ["gcc", "clang"] {
        let name = source.file_stem().unwrap().to_str().unwrap();
        let out = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{}-{name}-{compiler}-tsan", std::process::id()));
        let built = Command::new(compiler)
            .args(["-O2", "-g", "-fsanitize=thread", "-pthread", "-I"])
            .arg(here.join("../../include"))
            .arg(&source)
            .arg("-o")
            .arg(&out)
            .arg("-ldl")
            .output();
        match built {
            Ok(built) if built.status.success() => all.push(out),
            Ok(_) => println!("skipped: {compiler} has no ThreadSanitizer here"),
            Err(_) => println!("skipped: no {compiler} here"),
        }
    }
    // The sanitizer may fail to start (address space layout): check with a program without threads.
    all.retain(|program| {
        let alone = Command::new(program)
            .args(["ready"])
            .stdin(std::process::Stdio::null())
            .output();
        let starts = alone.is_ok_and(|output| {
            !String::from_utf8_lossy(&output.stderr).contains("FATAL: ThreadSanitizer")
        });
        if !starts {
            println!("skipped: ThreadSanitizer does not start here");
        }
        starts
    });
    all
}

#[test]
fn a_program_that_is_not_recorded_has_no_races() {
    let _alone = alone();
    for program in programs("races.c") {
        for _ in 0..5 {
            let output = Command::new(&program).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }
}

#[test]
fn a_program_that_is_recorded_has_no_races() {
    let _alone = alone();
    for program in programs("races.c") {
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("r.ut");
        let command = [program.to_str().unwrap()];
        let ended = run(&trace, &command, settings(Overflow::Grow, 1 << 20, None)).unwrap();
        assert_eq!(ended.exit.unwrap().status, Some(0));
    }
}

#[test]
fn a_program_that_a_recorder_comes_to_has_no_races() {
    let _alone = alone();
    for program in programs("attach.c") {
        let mut running = Program::start(&mut Command::new(program));
        for i in 0..2 {
            let dir = tempfile::tempdir().unwrap();
            let trace = dir.path().join(format!("{i}.ut"));
            let work = ["events 300", "main 200", "thread 50", "spans 300"];
            let (result, _) = recorded(&trace, &mut running, |program| program.does(&work));
            result.unwrap();
        }
        drop(running.child.stdin.take());
        assert!(running.child.wait().unwrap().success());
    }
}

/// A number of the pool goes to one thread, and a thread that learns that there is none has none.
#[test]
fn a_number_of_the_pool_is_taken_once() {
    let _alone = alone();
    let done = Command::new(common::program("taking.c", &[])).output();
    let done = done.unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{said}");
}
