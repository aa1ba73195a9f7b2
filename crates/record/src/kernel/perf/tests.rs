use super::*;

/// Encodes records as `perf_event_open(2)` describes them.
fn bytes(kind: u32, misc: u16, body: &[u64], time: u64) -> Vec<u8> {
    let size = 8 + 8 * body.len() as u16 + 24;
    let mut out = Vec::new();
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&misc.to_ne_bytes());
    out.extend_from_slice(&size.to_ne_bytes());
    body.iter()
        .for_each(|word| out.extend_from_slice(&word.to_ne_bytes()));
    out.extend_from_slice(&70_i32.to_ne_bytes());
    out.extend_from_slice(&71_i32.to_ne_bytes());
    out.extend_from_slice(&time.to_ne_bytes());
    out.extend_from_slice(&3_u32.to_ne_bytes());
    out.extend_from_slice(&0_u32.to_ne_bytes());
    out
}

#[test]
fn records_by_hand() {
    let expected = |kind, payload, time| {
        Some(Record {
            cpu: 3,
            pid: 70,
            tid: 71,
            payload,
            ..Record::new(kind, time)
        })
    };
    assert_eq!(
        parse(&bytes(14, 0, &[], 900)),
        expected(RecordKind::PerfIn, 0, 900)
    );
    assert_eq!(
        parse(&bytes(14, 1 << 13, &[], 901)),
        expected(RecordKind::PerfOut, 0, 901)
    );
    assert_eq!(
        parse(&bytes(14, 3 << 13, &[], 902)),
        expected(RecordKind::PerfOut, 1, 902)
    );
    assert_eq!(
        parse(&bytes(2, 0, &[17, 44], 903)),
        expected(RecordKind::PerfLost, 44, 903)
    );
    assert_eq!(parse(&bytes(4, 0, &[1, 2], 904)), None);
    assert_eq!(parse(&bytes(2, 0, &[17], 905)), None);
    assert_eq!(parse(&[0; 8]), None);
}
