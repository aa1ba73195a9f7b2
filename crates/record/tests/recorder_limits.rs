//! Programs whose files may not be large (`ulimit -f`), and a recorder with that limit; and how
//! programs get the pages of their rings.

mod common;

use std::ffi::c_int;
use std::path::Path;
use std::process::Command;

use common::{AS_PROGRAM, alone, as_rust_program, program, record_for_c, rows, run, settings};
use rustix::process::{Resource, Rlimit, setrlimit};
use undertick_format::schema::Kind;
use undertick_record::Overflow;

const EVENTS: u64 = 100_000;
/// Values of the shell's `ulimit -f`, 512 bytes each: none; one; two segments; 64 of them.
const LIMITS: [u64; 4] = [0, 1, 512, 16384];

/// Returns the command under a limit.
fn limited(blocks: u64, command: &[String]) -> Vec<String> {
    let script = format!("ulimit -f {blocks}; exec \"$@\"");
    let shell = ["sh", "-c", &script, "sh"].map(str::to_owned);
    shell.into_iter().chain(command.iter().cloned()).collect()
}

/// Hold [`alone`] before.
fn check(unrecorded: &[String], recorded: &[String]) {
    for blocks in LIMITS {
        for command in [unrecorded, recorded] {
            let words = limited(blocks, command);
            // The output is a pipe, which has no limit.
            let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
            assert!(output.status.success(), "{blocks} blocks: {output:?}");
        }
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("l.ut");
        let words = limited(blocks, recorded);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let settings = settings(Overflow::Grow, 1 << 20, None);
        let ended = run(&trace, &words, settings).unwrap();
        assert_eq!(
            ended.exit.unwrap().status,
            Some(0),
            "{blocks}: {:?}",
            ended.warnings
        );
        let (manifest, rows) = rows(&trace);
        let received = rows
            .iter()
            .filter(|row| row.kind != Kind::Gap as i8)
            .count() as u64;
        // The file of the rings is the recorder's: no program makes it larger.
        assert_eq!((received, manifest.lost), (EVENTS, 0), "{blocks} blocks");
        // The name has 23 bytes.
        let is_told = manifest
            .warnings
            .iter()
            .any(|said| said.contains("names that the program gave are not kept"));
        assert_eq!(is_told, blocks == 0, "{:?}", manifest.warnings);
        assert_eq!(
            manifest.names.len(),
            usize::from(blocks > 0),
            "{blocks} blocks"
        );
    }
}

#[test]
fn a_program_whose_files_may_not_be_large() {
    let _alone = alone();
    let binary = program("limits.c", &[]).to_str().unwrap().to_owned();
    check(&[binary.clone(), "nothing".to_owned()], &[binary]);
}

#[test]
fn a_rust_program_whose_files_may_not_be_large() {
    let _alone = alone();
    check(&as_rust_program("nothing"), &as_rust_program("events"));
}

#[test]
fn a_recorder_whose_files_may_not_be_large() {
    let _alone = alone();
    for limit in [0, 4096, 1 << 20] {
        let words = as_rust_program(&format!("record:{limit}"));
        let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        assert!(output.status.success(), "{limit} bytes: {output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("said: "), "{said}");
    }
}

/// A program that does not run ahead of the collector finds the pages of its segments written. A
/// segment's 128 KiB then take two page faults, not one for each of the 32 pages.
fn check_pages(command: &[&str]) {
    if !Path::new("/dev/shm").is_dir() {
        println!("skipped: no /dev/shm; other file systems see each first store to a page");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(Overflow::Grow, 8 << 20, None);
    let ended = run(&dir.path().join("p.ut"), command, settings).unwrap();
    match ended.exit.unwrap().status {
        Some(77) => println!("skipped: this kernel cannot be asked for pages (before 5.14)"),
        faults => assert!(faults.is_some_and(|faults| faults <= 4), "{faults:?}"),
    }
}

#[test]
fn the_pages_of_a_segment_are_there_before_it_is_needed() {
    let _alone = alone();
    check_pages(&[program("pages.c", &[]).to_str().unwrap()]);
}

#[test]
fn the_pages_of_a_segment_are_there_for_a_rust_program() {
    let _alone = alone();
    let library = program("pages.c", &["-shared", "-fPIC", "-DAS_LIBRARY"]);
    let words = as_rust_program(&format!("pages:{}", library.display()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    check_pages(&words);
}

type FewestFaults = unsafe extern "C" fn(extern "C" fn(u16, u32)) -> c_int;

fn fewest_faults(library: &str) -> c_int {
    // SAFETY: the function has this type.
    unsafe {
        let function = common::function_of(Path::new(library), c"fewest_faults");
        let function: FewestFaults = std::mem::transmute(function);
        function(record_for_c)
    }
}

/// The program that this file also is.
#[test]
fn rust_program() {
    let Ok(what) = std::env::var(AS_PROGRAM) else {
        return;
    };
    match what.split_once(':') {
        None if what == "events" => {
            undertick::name(1, "counted");
            (0..EVENTS as u32).for_each(|i| undertick::event(1, i));
        }
        None => {}
        Some(("pages", library)) => std::process::exit(fewest_faults(library)),
        Some((_, limit)) => record_limited(limit.parse().unwrap()),
    }
}

/// Records with a limit on the recorder: an error or a warning, and no signal.
fn record_limited(limit: u64) {
    let dir = tempfile::tempdir().unwrap();
    let _ = common::request(Path::new("/"), &[], settings(Overflow::Grow, 1 << 20, None));
    let binary = program("limits.c", &[]);
    let limit = Rlimit {
        current: Some(limit),
        maximum: None,
    };
    setrlimit(Resource::Fsize, limit).unwrap();
    let result = run(
        &dir.path().join("r.ut"),
        &[binary.to_str().unwrap()],
        settings(Overflow::Grow, 1 << 20, None),
    );
    match result {
        Ok(manifest) => println!("said: {:?}", manifest.warnings),
        Err(error) => println!("said: {error}"),
    }
}
