//! Traces of somebody else and copies of traces: nothing outside of them is touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use undertick_format::manifest::State;
use undertick_format::read::{Trace, read_manifest};
use undertick_record::Overflow;
use undertick_record::finish::finish;

use crate::common::flight::{Cells, STOP, assert_accounts, numbers_of};
use crate::common::recorders::{Recorders, raw_bytes, resume_here, wait_until};
use crate::common::{alone, rows};
use crate::{MIB, change_manifest, copy, killed};

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
        let error = resume_here(&trace).unwrap_err();
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
