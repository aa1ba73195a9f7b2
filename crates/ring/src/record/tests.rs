use super::*;

/// Bytes calculated by hand from docs/format.md; `VECTORS` in crates/record/tests/recording/main.rs
/// keep the C header equal to them.
#[test]
fn a_record_has_the_bytes_of_the_format() {
    let record = Record {
        ts: 0x0102_0304_0506_0708,
        payload: 0xa1a2_a3a4,
        event: 0xb1b2,
        cpu: 0x2aa,
        kind: Kind::Next,
        descheduled: DeschedFlag::Yes,
    };
    let words = record.to_words();
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&words[0].to_le_bytes());
    bytes[8..].copy_from_slice(&words[1].to_le_bytes());
    // 0x2aa | 3 << 11 | 1 << 14 = 0x5aaa
    assert_eq!(
        bytes,
        [
            0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0xa4, 0xa3, 0xa2, 0xa1, 0xb2, 0xb1,
            0xaa, 0x5a
        ]
    );
    assert_eq!(Record::from_words(words), record);
}

#[test]
fn every_pattern_decodes_and_the_defined_ones_come_back() {
    for tail in 0..=u16::MAX {
        let words = [7, u64::from(tail) << 48];
        let back = Record::from_words(words).to_words();
        let expected = if tail >> 14 == 3 {
            (tail & 0x3fff) | 0x8000
        } else {
            tail
        };
        assert_eq!(back[1] >> 48, u64::from(expected));
    }
}
