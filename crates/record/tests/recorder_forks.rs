//! Children are distinguished from their parents where the kernel does not wipe its page at a
//! fork(), as under qemu-user.

mod common;

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::path::Path;

use common::{AS_PROGRAM, alone, as_rust_program, program, record_for_c, rows, run, settings};
use undertick_format::schema::Kind;
use undertick_record::Overflow;

fn check(command: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("f.ut");
    let ended = run(&trace, command, settings(Overflow::Grow, 1 << 18, None)).unwrap();
    if ended.exit.unwrap().status == Some(77) {
        println!("skipped: no seccomp filters here");
        return;
    }
    assert_eq!(ended.exit.unwrap().status, Some(0), "{:?}", ended.warnings);
    let (manifest, rows) = rows(&trace);
    let mut by_process = BTreeMap::<i32, Vec<i64>>::new();
    for row in (rows.iter()).filter(|row| row.kind != Kind::Gap as i8 && row.event != 3) {
        by_process.entry(row.pid).or_default().push(row.payload);
    }
    assert_eq!((by_process.len(), manifest.lost), (51, 0));
    for payloads in by_process.values() {
        assert_eq!(*payloads, (0..100).collect::<Vec<i64>>());
    }
    // Each process has one ring, with its own executions.
    assert_eq!(manifest.rings.len(), 51);
    let executions: Vec<u64> = manifest.sampled.iter().map(|of| of.executions).collect();
    assert_eq!(executions, [100; 51]);
}

#[test]
fn children_where_no_page_is_wiped() {
    let _alone = alone();
    let binary = program("forks.c", &[]);
    let binary = binary.to_str().unwrap();
    check(&[binary]);
    check(&[binary, binary]);
}

#[test]
fn rust_children_where_no_page_is_wiped() {
    let _alone = alone();
    let filter = program("forks.c", &[]);
    let library = program("forks.c", &["-shared", "-fPIC", "-DAS_LIBRARY"]);
    let words = as_rust_program(library.to_str().unwrap());
    let filter = [filter.to_str().unwrap()].into_iter();
    let words: Vec<&str> = filter.chain(words.iter().map(String::as_str)).collect();
    check(&words);
}

extern "C" fn span_for_c() {
    undertick::begin_sampled(3);
    undertick::end_sampled(3);
}

type ForkChildren = unsafe extern "C" fn(extern "C" fn(u16, u32), extern "C" fn()) -> c_int;

/// The program that this file also is.
#[test]
fn rust_program() {
    let Ok(library) = std::env::var(AS_PROGRAM) else {
        return;
    };
    // SAFETY: the function has this type.
    let result = unsafe {
        let function = common::function_of(Path::new(&library), c"fork_children");
        let function: ForkChildren = std::mem::transmute(function);
        function(record_for_c, span_for_c)
    };
    std::process::exit(result);
}
