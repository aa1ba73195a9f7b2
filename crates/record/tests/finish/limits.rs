//! Recorders that lack room on the disk, file descriptors or memory.

use std::fs;

use undertick_format::manifest::State;
use undertick_format::read::{Trace, read_manifest};
use undertick_record::Overflow;
use undertick_record::finish::finish;

use crate::MIB;
use crate::common::flight::assert_accounts;
use crate::common::recorders::{Recorders, wait_until};
use crate::common::{SmallDisk, alone, program, rows};

/// Another program fills the disk during the recording. Names, threads and the exit status are not
/// lost, and the trace can be finished when there is room again.
#[test]
fn a_disk_that_others_fill_up() {
    let _alone = alone();
    for is_set_aside in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let Some(disk) = SmallDisk::mount(dir.path(), "4m") else {
            return;
        };
        let trace = disk.0.join("a.ut");
        let [told, go, begin] = ["told", "go", "begin"].map(|name| dir.path().join(name));
        let binary = program("names.c", &[]);
        let words = [&binary, &told, &go, &begin].map(|path| path.to_str().unwrap().to_owned());
        let recorders = Recorders::new(trace.clone(), Overflow::Grow, MIB, 64 * MIB);
        let mut recorder = recorders.start("record", &words);
        let aside = trace.join("manifest.json.new");
        let is_aside = |bytes: u64| fs::metadata(&aside).is_ok_and(|about| about.len() > bytes);
        wait_until(|| is_aside(0));
        let filler = disk.0.join("filler");
        let fill = || {
            let full = fs::write(&filler, vec![1; 8 << 20]).unwrap_err();
            assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        };
        if !is_set_aside {
            fill();
        }
        fs::write(&begin, "").unwrap();
        wait_until(|| told.exists());
        if is_set_aside {
            // The recorder sees the names and reserves room for them.
            wait_until(|| is_aside(1_000_000));
            fill();
        }
        fs::write(&go, "").unwrap();
        recorder.0.wait().unwrap();
        assert!(!fs::metadata(&aside).is_ok_and(|about| about.len() == 0));
        let of_before = read_manifest(&trace).unwrap();
        assert_eq!(of_before.exit.is_some(), is_set_aside, "room was set aside");
        fs::remove_file(&filler).unwrap();
        if of_before.state == State::Recording {
            assert!(Trace::open(&trace).is_err());
            finish(&trace, &mut |_| {}).unwrap();
        }
        let (manifest, rows) = rows(&trace);
        assert_accounts(&manifest, &rows);
        assert_eq!(manifest.exit.unwrap().status, Some(7));
        let named = (manifest.names.iter()).filter(|n| n.name.starts_with("event number "));
        assert_eq!(named.count(), 3000);
        assert!(
            manifest
                .threads
                .iter()
                .any(|thread| thread.name == "main thread")
        );
        // Events for which the disk had no room are counted.
        assert_eq!(manifest.events + manifest.lost, 100);
        assert_eq!(recorders.sessions(), 0);
    }
}

/// Returns a program without limits on its memory, whatever limits its recorder has.
fn without_soft_limit(words: &[&str]) -> Vec<String> {
    let first = ["sh", "-c", "ulimit -S -v unlimited; exec \"$@\"", "sh"];
    first
        .iter()
        .chain(words)
        .map(|&word| word.to_owned())
        .collect()
}

/// A recorder with few file descriptors, or little memory, reads the rings one after the other. It
/// loses nothing that they hold, and counts all that they do not.
#[test]
fn a_recorder_with_few_descriptors() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let binary = program("odd.c", &[]);
    for (name, limits) in [
        ("files", "ulimit -n 32"),
        ("memory", "ulimit -S -v 3000000"),
    ] {
        let trace = dir.path().join(format!("{name}.ut"));
        let recorders = Recorders::new(trace.clone(), Overflow::Grow, MIB, 1 << 30);
        let words = without_soft_limit(&[binary.to_str().unwrap(), "alive", "400"]);
        recorders.start_with(limits, "record", &words).ends();
        let (manifest, rows) = rows(&trace);
        assert_accounts(&manifest, &rows);
        let warnings = &manifest.warnings;
        assert_eq!(manifest.events + manifest.lost, 800, "{name}: {warnings:?}");
        // The program has the same limits: a thread may get no ring, which is counted.
        let written: u64 = manifest.rings.iter().map(|ring| ring.written).sum();
        assert_eq!(written, manifest.events, "{name}: {warnings:?}");
        assert!(manifest.rings.len() > 200, "{name}: {warnings:?}");
        assert_eq!(recorders.sessions(), 0);
    }
}

/// A recorder that lacks the address space for its rings reports it before the program starts, and
/// leaves nothing behind.
#[test]
fn rings_that_cannot_be_mapped_are_refused() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let recorders = Recorders::new(dir.path().join("a.ut"), Overflow::Grow, MIB, 4 << 30);
    let ran = dir.path().join("ran");
    let words = ["touch", ran.to_str().unwrap()].map(str::to_owned);
    let said = recorders.fails("ulimit -S -v 1000000", "record", &words);
    assert!(
        said.contains("cannot map 4") && said.contains("--budget"),
        "{said}"
    );
    assert!(!ran.exists());
    assert_eq!(recorders.sessions(), 0);
}
