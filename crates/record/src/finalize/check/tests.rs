use undertick_format::block::{BlockHeader, HEADER_BYTES, encode};
use undertick_ring::{DeschedFlag, Kind, Record};

use super::*;

fn record(ts: u64, kind: Kind, payload: u32) -> [u64; 2] {
    let record = Record {
        ts,
        payload,
        event: 7,
        cpu: 0,
        kind,
        descheduled: DeschedFlag::No,
    };
    record.to_words()
}

/// Blocks of two rings: three events, one of them wide, and two events of which one follows a loss.
fn blocks() -> Vec<u8> {
    let wide = [
        record(20, Kind::Instant, 0),
        record(1 << 40, Kind::Continuation, Record::WIDE),
    ];
    let after_loss = [
        record(9, Kind::Continuation, Record::GAP),
        record(40, Kind::Instant, 5),
    ];
    let rings = [
        vec![
            record(10, Kind::Begin, 0),
            wide[0],
            wide[1],
            record(30, Kind::End, 0),
        ],
        vec![record(15, Kind::Instant, 1), after_loss[0], after_loss[1]],
    ];
    let mut bytes = Vec::new();
    for (ring, records) in rings.iter().enumerate() {
        let header = BlockHeader {
            ring: ring as u32,
            pid: 1,
            tid: 1,
            position: 0,
            records: records.len() as u32,
        };
        encode(header, records, &mut bytes);
    }
    bytes
}

fn checked(bytes: &[u8], possible: RangeInclusive<i64>) -> Option<Finalized> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let raw = vec![(file.path().to_owned(), file.reopen().unwrap())];
    check_blocks(raw, &possible, &mut |_| {}).unwrap()
}

#[test]
fn rows_and_events_are_counted() {
    let found = checked(&blocks(), 10..=40).unwrap();
    assert_eq!((found.rows, found.by_ring, found.damaged), (6, true, false));
    assert_eq!(found.received, [(0, 3), (1, 2)].into());
    assert!(found.impossible.is_empty());
}

#[test]
fn impossible_times_must_be_encoded() {
    for possible in [11..=40, 10..=39, 100..=200] {
        assert!(
            checked(&blocks(), possible.clone()).is_none(),
            "{possible:?}"
        );
    }
    // Without wide events another path decodes the block.
    let mut bytes = Vec::new();
    let header = BlockHeader {
        ring: 0,
        pid: 1,
        tid: 1,
        position: 0,
        records: 2,
    };
    let plain = [record(10, Kind::Begin, 0), record(30, Kind::End, 0)];
    encode(header, &plain, &mut bytes);
    assert!(checked(&bytes, 10..=30).is_some());
    assert!(checked(&bytes, 10..=29).is_none() && checked(&bytes, 11..=30).is_none());
}

#[test]
fn what_is_torn_or_damaged_must_be_encoded() {
    let whole = blocks();
    let mut changed = whole.clone();
    changed[HEADER_BYTES + 3] ^= 1;
    for bytes in [
        &whole[..whole.len() - 1],
        &changed,
        &[&whole[..], b"x"].concat(),
    ] {
        assert!(checked(bytes, 0..=100).is_none());
    }
}
