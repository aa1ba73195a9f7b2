//! Programs that fork by vfork(), close files that they did not open, unmap unknown memory, and
//! have more threads than a process may have open files.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::{Row, alone, payloads, program, rows, run, settings};
use undertick_format::manifest::Manifest;
use undertick_record::Overflow;

const MIB: u64 = 1 << 20;

/// Returns manifest and rows, and the counts that the program reported, by thread and event.
fn recorded(
    trace: &Path,
    arguments: &[&str],
    ring_bytes: u64,
) -> (Manifest, Vec<Row>, BTreeMap<(i32, i32), u64>) {
    let said = tempfile::NamedTempFile::new().unwrap();
    let binary = program("odd.c", &[]);
    let mut command = vec![
        "sh",
        "-c",
        "out=$1; shift; exec \"$@\" >>\"$out\"",
        "sh",
        said.path().to_str().unwrap(),
        binary.to_str().unwrap(),
    ];
    command.extend(arguments);
    run(trace, &command, settings(Overflow::Grow, ring_bytes, None)).unwrap();
    let mut counts = BTreeMap::new();
    for line in fs::read_to_string(said.path()).unwrap().lines() {
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        *counts
            .entry((numbers[0] as i32, numbers[1] as i32))
            .or_default() += numbers[2];
    }
    let (manifest, rows) = rows(trace);
    (manifest, rows, counts)
}

fn counted(rows: &[Row]) -> BTreeMap<(i32, i32), u64> {
    (payloads(rows).into_iter())
        .map(|(key, all)| (key, all.len() as u64))
        .collect()
}

#[test]
fn children_of_vfork_record_in_their_parents_place() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let (manifest, rows, said) = recorded(&dir.path().join("v.ut"), &["vfork", "50"], MIB);
    assert_eq!((counted(&rows), manifest.lost), (said, 0));
    assert_eq!(manifest.rings.len(), 51);
    let parents: Vec<i32> = (rows.iter())
        .filter(|row| row.ring == 0)
        .map(|row| row.event)
        .collect();
    assert_eq!(parents, [1, 2, 3].repeat(50));
}

#[test]
fn a_tree_of_processes() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let (manifest, rows, said) = recorded(&dir.path().join("t.ut"), &["tree", "7"], MIB);
    assert_eq!(said.values().sum::<u64>(), (1 << 8) - 1);
    assert_eq!((counted(&rows), manifest.lost), (said, 0));
}

#[test]
fn a_program_that_closes_all_descriptors() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let (manifest, rows, _) = recorded(&dir.path().join("c.ut"), &["close"], MIB);
    let of = |event| {
        (rows.iter().filter(move |row| row.event == event))
            .map(|row| row.payload)
            .collect::<Vec<i64>>()
    };
    assert_eq!(of(1), (0..2000).collect::<Vec<i64>>());
    assert_eq!(of(2), (0..1000).collect::<Vec<i64>>());
    let names: Vec<&str> = manifest
        .names
        .iter()
        .map(|name| name.name.as_str())
        .collect();
    assert_eq!(names, ["before", "after"]);
    assert_eq!((manifest.lost, manifest.rings.len()), (0, 2));
}

#[test]
fn a_program_that_unmaps_what_it_does_not_know() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let (manifest, rows, _) = recorded(&dir.path().join("u.ut"), &["unmap"], MIB);
    let kept: Vec<i64> = rows.iter().map(|row| row.payload).collect();
    assert_eq!(kept, (0..1000).collect::<Vec<i64>>());
    assert_eq!(manifest.exit.unwrap().signal, Some(libc::SIGSEGV));
    let said = manifest.warnings.join("\n");
    assert!(
        said.contains("SIGSEGV") && said.contains("unmaps"),
        "{said}"
    );
}

#[test]
fn ten_thousand_threads_one_after_the_other() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let (manifest, rows, _) = recorded(&dir.path().join("e.ut"), &["ended", "10000"], 256 * 1024);
    assert_eq!(
        (manifest.lost, rows.len()),
        (0, 20_000),
        "{:?}",
        manifest.warnings
    );
    each_once(&rows, 10_000);
}

/// The program has more threads than the 1024 files that a process may usually have open.
#[test]
fn three_thousand_threads_at_once() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let before = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if before.maximum.is_some_and(|most| most < 8192) {
        println!(
            "skipped: no more than {:?} files may be open here",
            before.maximum
        );
        return;
    }
    let usual = rustix::process::Rlimit {
        current: Some(1024),
        ..before
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, usual).unwrap();
    let (manifest, rows, _) = recorded(&dir.path().join("a.ut"), &["alive", "3000"], 256 * 1024);
    rustix::process::setrlimit(rustix::process::Resource::Nofile, before).unwrap();
    assert_eq!(
        manifest.exit.unwrap().status,
        Some(0),
        "{:?}",
        manifest.warnings
    );
    assert_eq!(
        (manifest.lost, rows.len()),
        (0, 6000),
        "{:?}",
        manifest.warnings
    );
    each_once(&rows, 3000);
}

/// Asserts that each thread's number occurs once in both events.
fn each_once(rows: &[Row], threads: i64) {
    for event in [1, 2] {
        let mut numbers: Vec<i64> = (rows.iter().filter(|row| row.event == event))
            .map(|row| row.payload)
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..threads).collect::<Vec<i64>>());
    }
}
