//! Programs that enter a sandbox which kills for a system call, after their first event.

mod common;

use std::ffi::c_int;
use std::path::Path;

use common::{AS_PROGRAM, alone, as_rust_program, program, record_for_c, rows, run, settings};
use undertick_format::schema::Kind;
use undertick_record::Overflow;

const BEFORE: u32 = 100;
const INSIDE: u32 = 60_000;

fn check(command: &[&str], overflow: Overflow, ring_bytes: u64) {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("s.ut");
    let ended = run(&trace, command, settings(overflow, ring_bytes, None)).unwrap();
    if ended.exit.unwrap().status == Some(77) {
        println!("skipped: no seccomp filters here");
        return;
    }
    assert_eq!(
        ended.exit.unwrap().status,
        Some(0),
        "{overflow:?}: {:?}",
        ended.warnings
    );
    let (manifest, rows) = rows(&trace);
    let received = rows
        .iter()
        .filter(|row| row.kind != Kind::Gap as i8)
        .count() as u64;
    assert_eq!(received + manifest.lost, u64::from(BEFORE + INSIDE));
    if ring_bytes >= 1 << 20 {
        assert_eq!(manifest.lost, 0, "{:?}", manifest.warnings);
    }
}

fn check_all(command: &[&str]) {
    for (overflow, ring_bytes) in [
        (Overflow::Grow, 1 << 20),
        (Overflow::Drop, 1 << 20),
        (Overflow::Drop, 1 << 18),
        (Overflow::Overwrite, 1 << 20),
    ] {
        check(command, overflow, ring_bytes);
    }
}

#[test]
fn a_program_in_a_sandbox() {
    let _alone = alone();
    let binary = program("sandbox.c", &[]);
    let (before, inside) = (BEFORE.to_string(), INSIDE.to_string());
    check_all(&[binary.to_str().unwrap(), &before, &inside]);
}

#[test]
fn a_rust_program_in_a_sandbox() {
    let _alone = alone();
    let library = program("sandbox.c", &["-shared", "-fPIC", "-DAS_LIBRARY"]);
    let words = as_rust_program(library.to_str().unwrap());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    check_all(&words);
}

/// A sandbox around a thread's first event ends the program, and the trace gives the reason.
#[test]
fn what_a_sandbox_has_ended_is_said() {
    let _alone = alone();
    let binary = program("sandbox.c", &[]);
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("s.ut");
    let command = [binary.to_str().unwrap(), "0", "1"];
    let ended = run(&trace, &command, settings(Overflow::Grow, 1 << 20, None)).unwrap();
    let exit = ended.exit.unwrap();
    if exit.status == Some(77) {
        println!("skipped: no seccomp filters here");
        return;
    }
    assert_eq!(exit.signal, Some(libc::SIGSYS));
    let said = ended.warnings.join("\n");
    assert!(said.contains("seccomp"), "{said}");
}

type RecordInASandbox = unsafe extern "C" fn(extern "C" fn(u16, u32), u32, u32) -> c_int;

/// The program that this file also is.
#[test]
fn rust_program() {
    let Ok(library) = std::env::var(AS_PROGRAM) else {
        return;
    };
    // SAFETY: the function has this type.
    let result = unsafe {
        let function = common::function_of(Path::new(&library), c"record_in_a_sandbox");
        let function: RecordInASandbox = std::mem::transmute(function);
        function(record_for_c, BEFORE, INSIDE)
    };
    std::process::exit(result);
}
