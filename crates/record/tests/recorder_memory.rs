//! Programs whose rings lie in a file system that others fill and empty during the recording: no
//! signal, and each record is received or counted as lost.

mod common;

use std::ffi::c_int;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use common::{AS_PROGRAM, SmallDisk, alone, as_rust_program, program, record_for_c, run, settings};
use undertick_record::Overflow;
use undertick_record::session::Settings;

/// Product of the rounds, threads, bursts and records of a burst of `full.c`.
const EVENTS: u64 = 16 * 30 * 8 * 512;
const MIB: u64 = 1 << 20;

/// Fills a file system and empties it again until the sender is dropped; returns how often it was
/// full.
fn fill_and_empty(disk: &Path, is_over: &Receiver<()>) -> u32 {
    let filler = disk.join("filler");
    let mut full = 0;
    while is_over.try_recv() == Err(TryRecvError::Empty) {
        let written = fs::write(&filler, vec![1; 16 * MIB as usize]);
        full += u32::from(written.is_err_and(|e| e.kind() == ErrorKind::StorageFull));
        std::thread::sleep(Duration::from_millis(20));
        let _ = fs::remove_file(&filler);
        std::thread::sleep(Duration::from_millis(1));
    }
    full
}

/// Hold [`alone`] before.
fn check(command: &[String]) {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    for overflow in [Overflow::Grow, Overflow::Drop, Overflow::Block] {
        let dir = tempfile::tempdir().unwrap();
        let Some(disk) = SmallDisk::mount(dir.path(), "8m") else {
            return;
        };
        let trace = dir.path().join("m.ut");
        let settings = Settings {
            parent: Some(disk.0.clone()),
            ..settings(overflow, MIB / 4, Some(4 * MIB))
        };
        let (ended, full) = std::thread::scope(|scope| {
            // Dropped when this closure ends, however it ends.
            let (runs, is_over) = channel::<()>();
            let (trace, disk) = (&trace, &disk.0);
            let filler = scope.spawn(move || {
                // The manifest exists: so does the session.
                while !trace.join("manifest.json").exists()
                    && is_over.try_recv() == Err(TryRecvError::Empty)
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                fill_and_empty(disk, &is_over)
            });
            let ended = run(trace, &command, settings).unwrap();
            drop(runs);
            (ended, filler.join().unwrap())
        });
        assert!(full > 0, "there was always room");
        println!(
            "{overflow:?}: {} received, {} lost",
            ended.events, ended.lost
        );
        let exit = ended.exit.unwrap();
        assert_eq!(exit.status, Some(0), "{overflow:?}: {exit:?}");
        assert_eq!(ended.events + ended.lost, EVENTS);
        assert!(ended.events > 0, "{overflow:?}");
    }
}

#[test]
fn a_program_whose_rings_get_no_memory() {
    let _alone = alone();
    check(&[program("full.c", &[]).to_str().unwrap().to_owned()]);
}

#[test]
fn a_rust_program_whose_rings_get_no_memory() {
    let _alone = alone();
    let library = program("full.c", &["-shared", "-fPIC", "-DAS_LIBRARY"]);
    check(&as_rust_program(library.to_str().unwrap()));
}

type WriteInBursts = unsafe extern "C" fn(extern "C" fn(u16, u32)) -> c_int;

/// The program that this file also is: it loads the library of its argument.
#[test]
fn rust_program() {
    let Ok(library) = std::env::var(AS_PROGRAM) else {
        return;
    };
    // SAFETY: the function has this type.
    let status = unsafe {
        let function = common::function_of(Path::new(&library), c"write_in_bursts");
        let function: WriteInBursts = std::mem::transmute(function);
        function(record_for_c)
    };
    std::process::exit(status);
}
