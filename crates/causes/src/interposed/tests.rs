use undertick_analyze::columns::Writer;
use undertick_analyze::kinds::{GAP, INSTANT};
use undertick_format::interposed::FIRST_EVENT;
use undertick_format::rows::RowsOfRing;

use super::reader::Reader;
use super::*;

const MUTEX: i32 = FIRST_EVENT as i32 + 1;
const CONDITION: i32 = FIRST_EVENT as i32 + 4;
const HOLDER: i32 = FIRST_EVENT as i32 + 6;
const END: i32 = FIRST_EVENT as i32 + 7;
const SIGNAL: i32 = FIRST_EVENT as i32 + 8;
const LOST: i32 = -1;

/// Passes rows of one ring: time, event (or [`LOST`]) and payload.
fn pass(reader: &mut Reader, ring: i32, rows: &[(i64, i32, i64)]) {
    let writer = Writer {
        ring,
        pid: 1,
        tid: 100 + ring,
        host: 0,
    };
    let ts: Vec<i64> = rows.iter().map(|row| row.0).collect();
    let kind: Vec<i8> = (rows.iter())
        .map(|row| if row.1 == LOST { GAP } else { INSTANT })
        .collect();
    let event: Vec<i32> = rows.iter().map(|row| row.1).collect();
    let payload: Vec<i64> = rows.iter().map(|row| row.2).collect();
    let descheduled = vec![0; rows.len()];
    let rows = RowsOfRing {
        ts: &ts,
        kind: &kind,
        descheduled: &descheduled,
        event: &event,
        payload: &payload,
    };
    reader.take(writer, &rows);
}

fn reader() -> Reader {
    let mut reader = Reader::default();
    reader.knows_holders = true;
    reader
}

/// Begin, end, the other thread and since when.
type Begun = (i64, i64, Option<(i32, i64)>);

fn waits(found: &Interposed) -> Vec<Begun> {
    let waits = found.waits.iter();
    waits.map(|wait| (wait.start, wait.end, wait.by)).collect()
}

fn counted(calls: i64, bytes: i64) -> i64 {
    calls << 42 | bytes
}

const ALLOCATIONS: i32 = FIRST_EVENT as i32;

#[test]
fn allocations_belong_to_the_record_before() {
    let mut reader = reader();
    let rows = [
        (10, ALLOCATIONS, 0),
        (20, ALLOCATIONS, counted(3, 300)),
        (30, ALLOCATIONS, counted(1, (1 << 42) - 1)),
        (40, ALLOCATIONS, 0),
    ];
    pass(&mut reader, 0, &rows);
    let found = reader.finish(None, &HashMap::new());
    let chunks: Vec<(i64, u16, u64)> = (found.chunks.iter())
        .map(|of| (of.start, of.calls, found.bytes(of)))
        .collect();
    assert_eq!(chunks, [(10, 3, 300), (20, 1, (1 << 42) - 1)]);
    assert_eq!(found.unplaced, Allocations::default());
}

#[test]
fn allocations_before_the_first_record_are_before_all_spans() {
    let rows = [(10, ALLOCATIONS, counted(3, 300)), (20, ALLOCATIONS, 0)];
    let mut reader = reader();
    pass(&mut reader, 0, &rows);
    assert_eq!(
        reader.finish(None, &HashMap::new()).chunks[0].start,
        i64::MIN
    );
    // Unless there were others, which were overwritten.
    let mut reader = Reader::default();
    reader.cut.insert(0);
    pass(&mut reader, 0, &rows);
    let found = reader.finish(None, &HashMap::new());
    assert_eq!((found.chunks.len(), found.unplaced.calls), (0, 3));
}

#[test]
fn allocations_after_lost_records_have_no_span() {
    let mut reader = reader();
    let rows = [
        (10, ALLOCATIONS, 0),
        (20, LOST, 5),
        (30, ALLOCATIONS, counted(3, 300)),
        (40, ALLOCATIONS, counted(2, 20)),
    ];
    pass(&mut reader, 0, &rows);
    let found = reader.finish(None, &HashMap::new());
    let starts: Vec<i64> = found.chunks.iter().map(|of| of.start).collect();
    assert_eq!(starts, [30]);
    assert_eq!((found.unplaced.calls, found.unplaced.bytes), (3, 300));
}

#[test]
fn a_wait_has_the_holder_of_its_begin() {
    let mut reader = reader();
    let rows = [
        (10, MUTEX, 64),
        (11, HOLDER, 7),
        (20, END, 0),
        (30, MUTEX, 64),
        (35, END, 110),
    ];
    pass(&mut reader, 0, &rows);
    let found = reader.finish(None, &HashMap::new());
    assert_eq!(waits(&found), [(10, 20, Some((7, 10))), (30, 35, None)]);
}

#[test]
fn a_wait_without_its_end_is_open_or_unknown() {
    let mut reader = reader();
    // A jump left the first one, records are missing in the second, and the last one never ends.
    let rows = [
        (10, MUTEX, 64),
        (20, MUTEX, 96),
        (30, LOST, 1),
        (40, END, 0),
        (50, MUTEX, 32),
    ];
    pass(&mut reader, 0, &rows);
    let found = reader.finish(Some(90), &HashMap::from([(100, 0)]));
    assert_eq!(waits(&found), [(50, 90, None)]);
    assert!(found.waits[0].is_open);
    // Its thread was seen for the last time at 70.
    let mut reader = self::reader();
    pass(&mut reader, 0, &rows);
    let found = reader.finish(Some(90), &HashMap::from([(100, 70)]));
    assert_eq!(waits(&found), [(50, 70, None)]);
}

#[test]
fn a_condition_was_signalled_by_the_last_thread_before_the_wait_ended() {
    let mut reader = reader();
    pass(
        &mut reader,
        0,
        &[
            (10, CONDITION, 64),
            (30, END, 0),
            (50, CONDITION, 64),
            (60, END, 110),
        ],
    );
    pass(
        &mut reader,
        1,
        &[
            (5, SIGNAL, 64),
            (25, SIGNAL, 64),
            (28, SIGNAL, 128),
            (40, SIGNAL, 64),
            (55, SIGNAL, 64),
        ],
    );
    pass(&mut reader, 2, &[(20, SIGNAL, 64)]);
    let found = reader.finish(None, &HashMap::new());
    // The second one timed out: the signal during it woke another thread.
    assert_eq!(waits(&found), [(10, 30, Some((101, 25))), (50, 60, None)]);
}

#[test]
fn holders_are_not_known_where_threads_of_several_hosts_have_other_numbers() {
    let mut reader = Reader::default();
    pass(
        &mut reader,
        0,
        &[(10, MUTEX, 64), (11, HOLDER, 7), (20, END, 0)],
    );
    assert_eq!(
        waits(&reader.finish(None, &HashMap::new())),
        [(10, 20, None)]
    );
}
