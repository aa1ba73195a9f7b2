use super::*;
use crate::schema;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};

/// The codes of records and those of rows are one list up to `EndOrdered`.
#[test]
fn kinds_of_records_and_rows_agree() {
    for code in 0..7 {
        let record = format!("{:?}", RecordKind::from_code(code));
        let row = Kind::from_code(code as i8).unwrap();
        assert_eq!((format!("{row:?}"), row as u16), (record, code));
    }
}

#[test]
fn wide_events_gaps_and_strays() {
    let record = |ts, payload, kind| Record {
        ts,
        payload,
        event: 5,
        cpu: 1,
        kind,
        descheduled: DeschedFlag::Yes,
    };
    let continuation = |value, what| Record {
        cpu: Record::CPU_UNKNOWN,
        descheduled: DeschedFlag::No,
        ..record(value, what, RecordKind::Continuation)
    };
    let header = BlockHeader {
        ring: 2,
        pid: 3,
        tid: 4,
        position: 0,
        records: 0,
    };
    let mut rows = Rows::default();
    let events = rows.push(
        header,
        &[
            continuation(9, Record::WIDE), // belongs to nothing
            record(100, 7, RecordKind::Instant),
            continuation(1 << 40, Record::WIDE),
            continuation(0, Record::PAD),
            continuation(12, Record::GAP),
            record(200, 8, RecordKind::Begin),
            continuation(9, Record::WIDE), // a begin has no wide payload
        ],
    );
    assert_eq!(events, 2);
    let batch = rows.take();
    let column = |c: usize| {
        batch
            .column(c)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec()
    };
    assert_eq!(column(schema::TS), [100, 200, 200]);
    assert_eq!(column(schema::PAYLOAD), [1 << 40, 12, 8]);
    assert_eq!(
        batch
            .column(schema::KIND)
            .as_primitive::<Int8Type>()
            .values()
            .to_vec(),
        [0, 7, 1]
    );
    assert_eq!(
        batch
            .column(schema::CPU)
            .as_primitive::<Int16Type>()
            .values()
            .to_vec(),
        [1, -1, 1]
    );
    assert_eq!(
        batch
            .column(schema::DESCHEDULED)
            .as_primitive::<Int8Type>()
            .values()
            .to_vec(),
        [1, 0, 1]
    );
    assert!(rows.is_empty());
    // A gap that nothing follows has no time.
    assert_eq!(rows.push(header, &[continuation(12, Record::GAP)]), 0);
    assert!(rows.is_empty());

    // Blocks of several rings in one batch.
    rows.push(header, &[record(900, 7, RecordKind::Instant)]);
    rows.push(
        BlockHeader { ring: 3, ..header },
        &[
            continuation(12, Record::GAP),
            record(300, 8, RecordKind::Instant),
        ],
    );
    let batch = rows.take();
    let ts = batch.column(schema::TS).as_primitive::<Int64Type>();
    assert_eq!(ts.values().to_vec(), [900, 300, 300]);
    let ring = batch.column(schema::RING).as_primitive::<Int32Type>();
    assert_eq!(ring.values().to_vec(), [2, 3, 3]);
}
