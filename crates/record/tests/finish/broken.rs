//! Recordings in which something broke: the session is gone or damaged, the trace was moved, the
//! recorder or the program died, or the clock is another one.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use undertick_format::read::read_manifest;
use undertick_record::Overflow;
use undertick_record::finish::finish;
use undertick_ring::layout::ring;

use crate::common::flight::{Cells, STOP, assert_accounts, numbers_of};
use crate::common::recorders::{Recorders, raw_bytes, resume_here, wait_until};
use crate::common::{self, alone, rows};
use crate::{MIB, change_manifest, copy, end, killed};

/// The session's directory disappears during the recording: the recorder reports it.
#[test]
fn a_session_that_is_lost_is_told() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let cells = Cells::new();
    let _stop = cells.stop_if_failed();
    let trace = dir.path().join("a.ut");
    let recorders = Recorders::new(trace.clone(), Overflow::Grow, MIB, 64 * MIB);
    let recorder = recorders.start("record", &cells.command(&["write", "2", "500", "1000"]));
    wait_until(|| raw_bytes(&trace) > 0);
    let session = read_manifest(&trace).unwrap().session.unwrap();
    fs::remove_dir_all(&session).unwrap();
    cells.store(STOP, 1);
    recorder.ends();
    let (manifest, rows) = rows(&trace);
    assert_accounts(&manifest, &rows);
    let told = manifest.warnings.iter().any(|text| text.contains(&session));
    assert!(told, "{:?}", manifest.warnings);
}

/// The trace is moved during the recording: all of it is at its new place.
#[test]
fn a_trace_that_is_moved_while_it_is_recorded() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for overflow in [Overflow::Grow, Overflow::Overwrite] {
        let cells = Cells::new();
        let _stop = cells.stop_if_failed();
        let trace = dir.path().join("a.ut");
        let moved = dir.path().join(format!("{overflow:?}.ut"));
        let recorders = Recorders::new(trace.clone(), overflow, MIB, 64 * MIB);
        let recorder = recorders.start("record", &cells.command(&["write", "2", "500", "1000"]));
        (0..2).for_each(|t| cells.wait_for(4 * t, 1000));
        wait_until(|| trace.join("manifest.json").exists());
        fs::rename(&trace, &moved).unwrap();
        (0..2).for_each(|t| cells.wait_for(4 * t, 10_000));
        cells.store(STOP, 1);
        recorder.ends();
        assert!(!trace.exists());
        let (manifest, rows) = rows(&moved);
        assert_accounts(&manifest, &rows);
        assert_eq!(manifest.exit.unwrap().status, Some(0));
        let told = manifest.warnings.iter().any(|text| text.contains("moved"));
        assert!(told, "{:?}", manifest.warnings);
        assert_eq!(recorders.sessions(), 0);
    }
}

/// A resumed recording ends when the program is dead, whatever its rings state about their threads:
/// these may belong to another namespace, or name a process that lives.
#[test]
fn rings_of_dead_processes_that_cannot_be_asked() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let us = std::process::id();
    for (name, field, value) in [
        ("namespace", ring::OFF_PID_NAMESPACE, 4242),
        ("process", ring::OFF_PID, us),
    ] {
        let cells = Cells::new();
        let _stop = cells.stop_if_failed();
        let trace = dir.path().join(format!("{name}.ut"));
        let recorders = Recorders::new(trace.clone(), Overflow::Grow, MIB, 64 * MIB);
        let recorder = recorders.start("record", &cells.command(&["write", "2", "500", "1000"]));
        let pool = || {
            let session = read_manifest(&trace).ok()?.session?;
            let path = Path::new(&session).join("pool");
            fs::File::options().read(true).write(true).open(path).ok()
        };
        // A busy machine may begin the second thread long after the first.
        wait_until(|| {
            let rings = pool().map_or(0, |file| common::heads_of(&file).len());
            raw_bytes(&trace) > 0 && rings == 2
        });
        recorder.kill();
        let pid = cells.load(common::flight::PID) as i32;
        // SAFETY: the program that we had started.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        wait_until(|| !Path::new(&format!("/proc/{pid}/task")).exists());
        let file = pool().unwrap();
        let rings = common::heads_of(&file);
        assert_eq!(rings.len(), 2);
        for head in rings {
            file.write_all_at(&value.to_le_bytes(), head + field as u64)
                .unwrap();
            if field == ring::OFF_PID {
                let tid = ring::OFF_TID as u64;
                file.write_all_at(&value.to_le_bytes(), head + tid).unwrap();
            }
        }
        drop(file); // a process that has it open could write to the rings
        let since = Instant::now();
        recorders.resume().ends();
        assert!(since.elapsed() < Duration::from_secs(60));
        let (manifest, rows) = rows(&trace);
        assert_accounts(&manifest, &rows);
        for (tid, written) in cells.written(2) {
            let found = match name {
                "process" => continue,
                _ => numbers_of(&rows, tid).len() as u64,
            };
            assert!(found >= written, "{found} of {written}");
        }
        assert_eq!(recorders.sessions(), 0);
    }
}

/// The recorder was killed after it had ended the recording: the error states this, and the trace
/// can be finished.
#[test]
fn a_recorder_that_died_while_it_finished() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let cells = Cells::new();
    let _stop = cells.stop_if_failed();
    let (trace, recorders) = killed(dir.path(), &cells, "a.ut");
    let session = read_manifest(&trace).unwrap().session.unwrap();
    fs::remove_dir_all(session).unwrap();
    let refused = || resume_here(&trace).unwrap_err().to_string();
    assert!(refused().contains("its rings are gone"), "{}", refused());
    change_manifest(&trace, |manifest| {
        manifest.session = None;
        manifest.session_identity = None;
    });
    let said = refused();
    assert!(!said.contains("started anew"), "{said}");
    assert!(said.contains("while it finished"), "{said}");
    assert!(said.contains("--finish"), "{said}");
    let before = raw_bytes(&trace);
    assert!(before > 0);
    finish(&trace, &mut |_| {}).unwrap();
    assert!(rows(&trace).0.events > 0);
    assert_eq!(recorders.sessions(), 0);
}

/// The files of a session were damaged after its recorder was killed: it cannot be resumed. The
/// contents of the trace remain, with the names and a warning that losses are not counted. A
/// program that lives is no longer recorded.
#[test]
fn a_session_with_damaged_files_is_finished_without_them() {
    let _alone = alone();
    type Damage = fn(&Path);
    let damages: [(&str, &str, Damage); 6] = [
        ("pool", "it is gone", |file| fs::remove_file(file).unwrap()),
        ("pool", "cut short", |file| cut(file, 0)),
        ("pool", "not a pool", |file| cut(file, 1 << 20)),
        ("pool", "something else", |file| {
            fs::remove_file(file).unwrap();
            symlink("/dev/zero", file).unwrap();
        }),
        ("names", "it is gone", |file| fs::remove_file(file).unwrap()),
        ("control", "not a session's", |file| cut(file, 0)),
    ];
    for (file, why, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        let cells = Cells::new();
        let _stop = cells.stop_if_failed();
        let trace = dir.path().join("a.ut");
        // Another process must not cut files that a living program has mapped. A program that waits
        // for the collector is released.
        let lives = why == "it is gone" && file != "control";
        let overflow = if lives {
            Overflow::Block
        } else {
            Overflow::Grow
        };
        let recorders = Recorders::new(trace.clone(), overflow, MIB, 64 * MIB);
        let recorder = recorders.start("record", &cells.command(&["write", "2", "500", "1000"]));
        wait_until(|| raw_bytes(&trace) > 0);
        recorder.kill();
        if !lives {
            end(&cells);
        }
        let session = PathBuf::from(read_manifest(&trace).unwrap().session.unwrap());
        damage(&session.join(file));
        let refused = resume_here(&trace).unwrap_err();
        assert_eq!(refused.exit_status(), 2, "{refused}");
        let said = refused.to_string();
        assert!(said.contains(why) && said.contains("--finish"), "{said}");
        let finished = finish(&trace, &mut |_| {}).unwrap();
        let is_told = |warning: &String| warning.contains(why) && warning.contains("not counted");
        assert!(finished.warnings.iter().any(is_told), "{finished:?}");
        let (manifest, rows) = rows(&trace);
        assert!(manifest.events > 0 && manifest.events == rows.len() as u64);
        assert_eq!(manifest.names.is_empty(), file == "names", "{file}");
        assert_eq!(recorders.sessions(), 0);
        if lives {
            // The program has reached the end of its rings, and goes on.
            let before = cells.load(0);
            wait_until(|| cells.load(0) > before + 200_000);
            end(&cells);
        }
    }
}

fn cut(file: &Path, bytes: u64) {
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_len(bytes).unwrap();
}

/// A program reads another clock than its recorder, as an emulated one does. Its events are
/// dropped, counted and reported, and a trace with no other events is an error.
#[test]
fn a_clock_that_cannot_be() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let cells = Cells::new();
    let _stop = cells.stop_if_failed();
    let (trace, recorders) = killed(dir.path(), &cells, "a.ut");
    let shifted = dir.path().join("shifted.ut");
    copy(&trace, &shifted);
    // The times are those of a recording a year before.
    let year = 365 * 86_400 * 1_000_000_000_i64;
    change_manifest(&shifted, |manifest| {
        for anchor in &mut manifest.clock.anchors {
            anchor.ticks += year;
        }
    });
    let error = finish(&shifted, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("reads another clock"), "{error}");
    let (manifest, found) = rows(&shifted);
    assert_accounts(&manifest, &found);
    assert_eq!((manifest.events, found.len()), (0, 0));
    assert!(manifest.lost > 0);
    finish(&trace, &mut |_| {}).unwrap();
    assert!(rows(&trace).0.events > 0);
    assert_eq!(recorders.sessions(), 0);
}
