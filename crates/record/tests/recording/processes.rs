//! Programs with many threads and processes, programs that exec, and the end of a program.

use undertick_format::TraceError;
use undertick_record::Overflow;

use crate::common::{alone, program, rows, run, settings};
use crate::{MIB, assert_complete, recorded};

#[test]
fn two_thousand_short_threads() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.ut");
    let (manifest, said) = recorded(
        &trace,
        &["threads", "2000"],
        settings(Overflow::Grow, MIB, None),
    );
    assert_eq!(said.values().sum::<u64>(), 2000 / 2 * 8);
    assert_eq!(manifest.rings.len(), 2000);
    assert_complete(&trace, &said);
}

#[test]
fn forked_children_and_orphans_have_their_own_rings() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("f.ut");
    let (manifest, said) = recorded(
        &trace,
        &["forks", "20"],
        settings(Overflow::Grow, MIB, None),
    );
    assert_eq!(manifest.rings.len(), 41);
    assert_complete(&trace, &said);
}

#[test]
fn ends_read_before_it_is_asked_whether_to_record() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("o.ut");
    let (manifest, said) = recorded(&trace, &["ends", "20"], settings(Overflow::Grow, MIB, None));
    // Each process has one ring: none was interrupted in the middle of a write.
    assert_eq!(manifest.rings.len(), 21);
    assert_complete(&trace, &said);
}

/// More processes than the budget has segments: rings of dead processes are reused.
#[test]
fn thousands_of_short_processes_do_not_use_up_the_budget() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("c.ut");
    let (manifest, _) = recorded(
        &trace,
        &["children", "2000"],
        settings(Overflow::Grow, MIB, Some(64 * MIB)),
    );
    let (_, rows) = rows(&trace);
    let seen: Vec<i64> = rows.iter().map(|row| row.payload).collect();
    assert_eq!(manifest.lost, 0, "{:?}", manifest.warnings);
    let mut sorted = seen;
    sorted.sort_unstable();
    assert_eq!(sorted, (0..2000).collect::<Vec<i64>>());
}

#[test]
fn a_program_that_execs_goes_on_recording() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("e.ut");
    let (manifest, said) = recorded(
        &trace,
        &["exec", "1000"],
        settings(Overflow::Grow, MIB, None),
    );
    assert_eq!(manifest.rings.len(), 2);
    assert_complete(&trace, &said);
}

#[test]
fn the_exit_status_and_what_cannot_be_started() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let binary = program("writer.c", &[]);
    let trace = dir.path().join("x.ut");
    let manifest = run(
        &trace,
        &[binary.to_str().unwrap(), "fail"],
        settings(Overflow::Grow, MIB, None),
    )
    .unwrap();
    assert_eq!(manifest.exit.unwrap().status, Some(7));
    assert!(
        manifest
            .warnings
            .iter()
            .any(|text| text.contains("recorded no event"))
    );

    let missing = dir.path().join("y.ut");
    let error = run(
        &missing,
        &["./there-is-no-such-program"],
        settings(Overflow::Grow, MIB, None),
    )
    .unwrap_err();
    assert_eq!(error.exit_status(), 2);
    assert!(
        error.to_string().contains("./there-is-no-such-program"),
        "{error}"
    );
    assert!(
        !missing.exists(),
        "nothing is left of a recording that never began"
    );

    let error = run(&trace, &["true"], settings(Overflow::Grow, MIB, None)).unwrap_err();
    assert!(
        matches!(&error, TraceError::Usage(text) if text.contains("exists already")),
        "{error}"
    );

    let error = run(
        &missing,
        &["true"],
        settings(Overflow::Grow, MIB, Some(1 << 60)),
    )
    .unwrap_err();
    assert!(
        error.exit_status() == 1 && error.to_string().contains("free"),
        "{error}"
    );
}
