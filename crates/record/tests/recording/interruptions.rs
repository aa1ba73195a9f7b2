//! Threads that are interrupted: by signal handlers and libraries that record, and by sleeping.

use undertick_format::schema::Kind;
use undertick_record::Overflow;

use crate::common::{alone, program, rows, settings};
use crate::{MIB, assert_complete, recorded};

#[test]
fn signal_handlers_record_while_the_thread_records() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("s.ut");
    let (manifest, said) = recorded(
        &trace,
        &["signals", "20000000"],
        settings(Overflow::Grow, MIB, None),
    );
    let (_, rows) = rows(&trace);
    let handled = *said.iter().find(|((_, event), _)| *event == 2).unwrap().1;
    assert!(handled > 100, "the handler hardly ran: {handled}");
    let count = |event| {
        rows.iter()
            .filter(|row| row.event == event && row.kind == 0)
            .count() as u64
    };
    assert_eq!(count(1), 20_000_000);
    assert_eq!(count(2), handled);
    assert_eq!(manifest.lost, 0);
}

#[test]
fn signal_handlers_record_sections_while_the_thread_records_sections() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("p.ut");
    let (manifest, said) = recorded(
        &trace,
        &["sections", "10000000"],
        settings(Overflow::Grow, MIB, None),
    );
    let handled = *said.iter().find(|((_, event), _)| *event == 2).unwrap().1;
    assert!(handled > 100, "the handler hardly ran: {handled}");
    let rows = assert_complete(&trace, &said);
    assert_eq!(manifest.lost, 0);
    // The two rings of the thread, each in the order of its readings.
    assert_eq!(manifest.rings.len(), 2);
    for ring in 0..2 {
        assert!(
            (rows.iter().filter(|row| row.ring == ring)).is_sorted_by_key(|row| row.ts),
            "ring {ring}"
        );
    }
}

#[test]
fn a_library_with_a_recorder_of_its_own_in_the_same_thread() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("d.ut");
    let library = program("library.c", &["-shared", "-fPIC"]);
    let (manifest, said) = recorded(
        &trace,
        &["dlopen", "10000", library.to_str().unwrap()],
        settings(Overflow::Grow, MIB, None),
    );
    assert_eq!(manifest.rings.len(), 2);
    let rows = assert_complete(&trace, &said);
    // Each takes the mark from the other: neither may claim to know.
    let known = rows.iter().filter(|row| row.descheduled == 0).count();
    assert!(
        known < 10,
        "{known} records claim not to have been descheduled"
    );
}

#[test]
fn the_descheduled_flag_is_set_by_sleeping_and_by_nothing_else() {
    let _alone = alone();
    use undertick_format::manifest::Descheduled;
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("z.ut");
    let (manifest, _) = recorded(
        &trace,
        &["sleep", "2000"],
        settings(Overflow::Grow, MIB, None),
    );
    if manifest.descheduled != Descheduled::AnyDeschedule {
        println!(
            "skipped: rseq_cs tells of preemption only, or is not available ({:?})",
            manifest.descheduled
        );
        return;
    }
    let (_, rows) = rows(&trace);
    let flagged = |event: i32, kind: Kind| {
        rows.iter()
            .filter(|row| row.event == event && row.kind == kind as i8 && row.descheduled == 1)
            .count()
    };
    // Whether the kernel counted a switch within each sleep's span, and around it.
    let ends = rows
        .iter()
        .filter(|row| row.event == 2 && row.kind == Kind::End as i8);
    let saw = rows.iter().filter(|row| row.event == 3);
    let (mut asleep, mut worked) = (0, 0);
    for (end, saw) in ends.zip(saw) {
        let (inner, outer) = (saw.payload & 1, saw.payload >> 1);
        assert!(
            inner <= i64::from(end.descheduled),
            "a sleep is not seen: {end:?}"
        );
        worked += i64::from(end.descheduled) & (1 - outer);
        asleep += inner;
    }
    // Flagged without a switch: work that a tick left for the way back (docs/format.md).
    println!("flagged without a switch: {worked}");
    assert!(worked < 20);
    assert!(asleep >= 1000, "{asleep} of 2000 sleeps left the CPU");
    assert!(
        flagged(1, Kind::End) < 20,
        "a section of 20 ns is hardly ever hit: {}",
        flagged(1, Kind::End)
    );
    assert!(rows.iter().all(|row| row.descheduled != -1));
}
