//! Spans that have only names: each name has one number in a process, for all of its parts.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::{AS_PROGRAM, alone, as_rust_program, program, rows, run, settings};
use undertick_format::schema::Kind;
use undertick_record::Overflow;

const THREADS: usize = 8;

/// The records of each name, by the name in its process: begins, ends and points; and the numbers
/// of that name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    begins: usize,
    ends: usize,
    points: usize,
    numbers: BTreeSet<i32>,
}

fn recorded(command: &[&str]) -> BTreeMap<String, Counts> {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("n.ut");
    let manifest = run(&trace, command, settings(Overflow::Grow, 1 << 20, None)).unwrap();
    assert_eq!(manifest.exit.unwrap().status, Some(0), "{command:?}");
    let (manifest, rows) = rows(&trace);
    assert_eq!(manifest.lost, 0, "{:?}", manifest.warnings);
    let mut by_name = BTreeMap::<String, Counts>::new();
    for row in rows {
        let mut names = (manifest.names.iter())
            .filter(|name| {
                i32::from(name.event) == row.event && name.pid.is_none_or(|pid| pid == row.pid)
            })
            .map(|name| &*name.name);
        let name = names.next().unwrap_or("?");
        assert!(names.all(|other| other == name), "{name} is one of two");
        let counts = by_name.entry(name.to_owned()).or_default();
        match row.kind {
            kind if kind == Kind::Begin as i8 => counts.begins += 1,
            kind if kind == Kind::End as i8 => counts.ends += 1,
            _ => counts.points += 1,
        }
        counts.numbers.insert(row.event);
    }
    by_name
}

fn library(who: &str) -> String {
    let who = format!("-DWHO=\"{who}\"");
    let built = program(
        "named.c",
        &["-shared", "-fPIC", "-DAS_LIBRARY", &who, "-ldl"],
    );
    built.to_str().unwrap().to_owned()
}

/// Checks all parts, in the program and in the child that it forks: each thread runs each part
/// once.
fn check_parts(by_name: &BTreeMap<String, Counts>, parts: &[(&str, usize)], shared: usize) {
    let numbers: BTreeSet<i32> = (by_name.values())
        .flat_map(|counts| counts.numbers.iter().copied())
        .collect();
    assert_eq!(numbers.len(), by_name.len(), "{by_name:?}");
    assert!(numbers.iter().all(|number| (16384..32767).contains(number)));
    assert_eq!(by_name.len(), parts.len() + 1, "{by_name:?}");
    for &(name, spans) in parts.iter().chain(&[("shared", shared)]) {
        let counts = &by_name[name];
        assert_eq!(
            (counts.begins, counts.ends, counts.points),
            (spans, spans, 0),
            "{name}"
        );
        assert_eq!(counts.numbers.len(), 1, "{name}");
    }
}

#[test]
fn a_name_has_one_number_in_a_program_its_libraries_and_its_child() {
    let _alone = alone();
    let binary = program("named.c", &["-ldl"]);
    let [one, two] = ["one", "two"].map(library);
    let by_name = recorded(&[binary.to_str().unwrap(), &one, &two]);
    let spans = 2 * THREADS;
    let parts = [("program", spans), ("one", spans), ("two", spans)];
    check_parts(&by_name, &parts, 3 * 3 * spans);
}

#[test]
fn a_rust_program_shares_its_names_with_a_library_in_c() {
    let _alone = alone();
    let library = library("in C");
    let words = as_rust_program(&library);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let by_name = recorded(&words);
    check_parts(
        &by_name,
        &[("in Rust", THREADS), ("in C", THREADS)],
        (2 + 3) * THREADS,
    );
}

/// The program that this file also is.
#[test]
fn rust_program() {
    let Some(library) = std::env::var_os(AS_PROGRAM) else {
        return;
    };
    // SAFETY: the function has this type.
    let in_c: unsafe extern "C" fn() =
        unsafe { std::mem::transmute(common::function_of(Path::new(&library), c"part")) };
    let all = std::sync::Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                all.wait();
                let _span = undertick::span!("in Rust");
                for _ in 0..2 {
                    let _span = undertick::span!("shared");
                }
                // SAFETY: it may be called by any thread.
                unsafe { in_c() };
            });
        }
    });
}

/// When the numbers are used up, new names are distinguished from those that have a number.
#[test]
fn more_names_than_numbers() {
    let _alone = alone();
    let binary = program("named.c", &["-ldl"]);
    let by_name = recorded(&[binary.to_str().unwrap(), "many"]);
    assert_eq!(by_name.len(), 16383 + 1);
    assert_eq!(by_name["(other names)"].points, 16400 - 16383);
    for i in 0..16383 {
        let counts = &by_name[&format!("name {i}")];
        assert_eq!((counts.points, counts.numbers.len()), (1, 1), "name {i}");
    }
}
