//! Unfinished traces: what a reader does with them, who may finish them, and what is never lost. A
//! recorder is this file in a separate process.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::flight::{Cells, STOP, assert_accounts, numbers_of};
use common::recorders::{Recorders, act_as_recorder, raw_bytes, wait_until};
use common::{SmallDisk, alone, program, rows};
use undertick_clock::{Source, facts};
use undertick_format::manifest::{Manifest, State};
use undertick_format::read::{Trace, read_manifest};
use undertick_record::Overflow;
use undertick_record::finish::finish;
use undertick_record::resume::{clock_of, resume};
use undertick_ring::layout::ring;

const MIB: u64 = 1 << 20;

/// Not a test: a recorder.
#[test]
fn recorder() {
    act_as_recorder();
}

/// Returns the contents of a directory: path, inode, size, time of the last change, first bytes.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (u64, u64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut to_do = vec![dir.to_owned()];
    while let Some(dir) = to_do.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let (path, about) = (entry.path(), entry.metadata().unwrap());
            let bytes = match about.is_file() {
                true => fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            if about.is_dir() {
                to_do.push(path.clone());
            }
            let changed = about.mtime() * 1_000_000_000 + about.mtime_nsec();
            found.insert(path, (about.ino(), about.len(), changed, bytes));
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(status.unwrap().success());
}

fn change_manifest(trace: &Path, change: impl FnOnce(&mut Manifest)) {
    let mut manifest = read_manifest(trace).unwrap();
    change(&mut manifest);
    let text = serde_json::to_vec(&manifest).unwrap();
    fs::write(trace.join("manifest.json"), text).unwrap();
}

/// Makes a recording whose recorder was killed and whose program has ended.
fn killed(dir: &Path, cells: &Cells, name: &str) -> (PathBuf, Recorders) {
    let trace = dir.join(name);
    let recorders = Recorders::new(trace.clone(), Overflow::Grow, MIB, 64 * MIB);
    let recorder = recorders.start("record", &cells.command(&["write", "2", "500", "1000"]));
    wait_until(|| raw_bytes(&trace) > 0);
    recorder.kill();
    end(cells);
    (trace, recorders)
}

/// Anybody may have made a trace. The directories that it names, even with all files of a session,
/// and the files to which its links lead, stay unchanged.
#[test]
fn a_trace_that_names_a_directory_of_the_reader() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let cells = Cells::new();
    let _stop = cells.stop_if_failed();
    let (sent, recorders) = killed(dir.path(), &cells, "sent.ut");
    let manifest = read_manifest(&sent).unwrap();
    let session = PathBuf::from(manifest.session.clone().unwrap());
    let uid = fs::metadata(dir.path()).unwrap().uid();

    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("thesis.txt"), "mine").unwrap();
    // The directory has the right name, and all files that a session has.
    let canary = home.join(format!("undertick-{uid}-1-a-0"));
    copy(&session, &canary);
    fs::write(canary.join("thesis.txt"), "mine").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&canary, mode).unwrap();
    let about = fs::metadata(&canary).unwrap();
    let before = tree(&home);
    let named = [
        (canary.to_str().unwrap().to_owned(), false),
        // This trace even has the right device and inode number.
        (canary.to_str().unwrap().to_owned(), true),
        (home.to_str().unwrap().to_owned(), true),
        (".".to_owned(), false),
        ("../home".to_owned(), false),
    ];
    for (place, (name, knows)) in named.into_iter().enumerate() {
        let trace = dir.path().join(format!("received-{place}.ut"));
        copy(&sent, &trace);
        // These files make the trace's own directory look like a session.
        for file in ["control", "names"] {
            fs::copy(session.join(file), trace.join(file)).unwrap();
        }
        for file in [
            "manifest.json.new",
            "events.parquet.new",
            "events.parquet",
            "kernel.utk.new",
            "kernel.parquet.new",
        ] {
            let _ = fs::remove_file(trace.join(file));
            symlink(home.join("thesis.txt"), trace.join(file)).unwrap();
        }
        change_manifest(&trace, |manifest| {
            manifest.session = Some(name);
            if let Some(identity) = manifest.session_identity.as_mut().filter(|_| knows) {
                (identity.device, identity.inode) = (about.dev(), about.ino());
            }
        });
        let received = tree(&trace);
        assert!(Trace::open(&trace).is_err());
        assert_eq!(tree(&trace), received, "a reader wrote");
        assert_eq!(tree(&home), before, "a reader touched what the trace names");
        let facts = facts::gather(
            Source::open(clock_of(&trace).unwrap()).unwrap(),
            Duration::ZERO,
        );
        let error = resume(&trace, &facts.unwrap(), &mut |_| {}).unwrap_err();
        assert_eq!(error.exit_status(), 2, "{error}");
        assert_eq!(tree(&home), before);
        // On request it is finished from its own contents, and nothing else is touched.
        let finished = finish(&trace, &mut |_| {}).unwrap();
        assert!(finished.warnings.iter().any(|w| w.contains("not counted")));
        assert_eq!(
            tree(&home),
            before,
            "finishing touched what the trace names"
        );
        assert_eq!(read_manifest(&trace).unwrap().state, State::Complete);
    }
    assert!(session.exists(), "the session of another trace was taken");
    finish(&sent, &mut |_| {}).unwrap();
    assert!(!session.exists());
    assert_eq!(recorders.sessions(), 0);
}

/// Links and pipes in the place of the raw files are refused; the reader neither follows them nor
/// waits for them.
#[test]
fn links_in_place_of_raw_files() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let cells = Cells::new();
    let _stop = cells.stop_if_failed();
    let (sent, recorders) = killed(dir.path(), &cells, "sent.ut");
    let outside = dir.path().join("outside");
    fs::write(&outside, vec![7; 4096]).unwrap();
    for (place, link) in ["raw.utb", "rings.jsonl", "ended-0.utb", "kernel.utk"]
        .into_iter()
        .enumerate()
    {
        for is_pipe in [false, true] {
            let trace = dir.path().join(format!("{place}-{is_pipe}.ut"));
            copy(&sent, &trace);
            let _ = fs::remove_file(trace.join(link));
            if is_pipe {
                let status = Command::new("mkfifo").arg(trace.join(link)).status();
                assert!(status.unwrap().success());
            } else {
                symlink(&outside, trace.join(link)).unwrap();
            }
            assert!(Trace::open(&trace).is_err());
            let _ = finish(&trace, &mut |_| {});
            assert_eq!(fs::read(&outside).unwrap(), vec![7; 4096], "{link}");
        }
    }
    finish(&sent, &mut |_| {}).unwrap();
    assert_eq!(recorders.sessions(), 0);
}

/// A copy of a trace that is being recorded is opened and finished: the recording goes on
/// undisturbed.
#[test]
fn a_copy_of_a_trace_that_is_being_recorded() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let cells = Cells::new();
    let _stop = cells.stop_if_failed();
    let trace = dir.path().join("a.ut");
    let recorders = Recorders::new(trace.clone(), Overflow::Grow, MIB, 64 * MIB);
    let mut recorder = recorders.start("record", &cells.command(&["write", "2", "500", "1000"]));
    wait_until(|| raw_bytes(&trace) > 0);
    for round in 0..3 {
        let copied = dir.path().join(format!("copy-{round}.ut"));
        copy(&trace, &copied);
        assert!(Trace::open(&copied).is_err());
        let manifest = finish(&copied, &mut |_| {}).unwrap();
        let warned = manifest
            .warnings
            .iter()
            .any(|text| text.contains("a copy of"));
        assert!(warned, "{:?}", manifest.warnings);
        let before = raw_bytes(&trace);
        wait_until(|| raw_bytes(&trace) > before);
        // A copy remains a copy after the recorder is dead.
        if round == 1 {
            recorder.kill();
            let copied = dir.path().join("dead.ut");
            copy(&trace, &copied);
            finish(&copied, &mut |_| {}).unwrap();
            recorder = recorders.resume();
        }
    }
    cells.store(STOP, 1);
    recorder.ends();
    let (manifest, rows) = rows(&trace);
    assert_accounts(&manifest, &rows);
    assert_eq!(manifest.lost, 0);
    for (tid, written) in cells.written(2) {
        let numbers = numbers_of(&rows, tid);
        assert!(numbers.len() as u64 >= written, "{tid}");
        assert!(numbers.iter().copied().eq(0..numbers.len() as i64), "{tid}");
    }
    assert_eq!(recorders.sessions(), 0);
}

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
        wait_until(|| raw_bytes(&trace) > 0);
        recorder.kill();
        let pid = cells.load(common::flight::PID) as i32;
        // SAFETY: the program that we had started.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        wait_until(|| !Path::new(&format!("/proc/{pid}/task")).exists());
        let session = read_manifest(&trace).unwrap().session.unwrap();
        let path = Path::new(&session).join("pool");
        let file = fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
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
    let facts = facts::gather(
        Source::open(clock_of(&trace).unwrap()).unwrap(),
        Duration::ZERO,
    )
    .unwrap();
    let refused = || resume(&trace, &facts, &mut |_| {}).unwrap_err().to_string();
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
        let facts = facts::gather(
            Source::open(clock_of(&trace).unwrap()).unwrap(),
            Duration::ZERO,
        );
        let refused = resume(&trace, &facts.unwrap(), &mut |_| {}).unwrap_err();
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

/// Ends the program of a recording, and waits for its end.
fn end(cells: &Cells) {
    cells.store(STOP, 1);
    wait_until(|| cells.load(common::flight::PID) != 0);
    let pid = cells.load(common::flight::PID);
    wait_until(|| !Path::new(&format!("/proc/{pid}/task")).exists());
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
