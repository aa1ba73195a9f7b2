use super::*;

const HEADER: BlockHeader = BlockHeader {
    ring: 3,
    pid: 40,
    tid: 41,
    position: 1 << 40,
    records: 0,
};

/// A small local generator: the test must not depend on a crate's random stream.
fn scramble(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state ^ (*state >> 29)
}

fn round_trip(records: &[[u64; 2]]) -> usize {
    let mut out = vec![0xee; 5];
    let continuations = encode(HEADER, records, &mut out);
    let expected: Vec<Record> = records
        .iter()
        .map(|&words| Record::from_words(words))
        .collect();
    assert_eq!(
        continuations as usize,
        expected
            .iter()
            .filter(|r| r.kind == Kind::Continuation)
            .count()
    );
    let mut decoded = Vec::new();
    let header = BlockHeader {
        records: records.len() as u32,
        ..HEADER
    };
    assert_eq!(
        decode(&out[5..], &mut decoded),
        Next::Block(header, out.len() - 5)
    );
    assert_eq!(decoded, expected);
    out.len() - 5
}

#[test]
fn a_steady_loop_takes_few_bytes() {
    let records: Vec<[u64; 2]> = (0..8192)
        .map(|i| [1 << 60 | (i * 31), i | 7 << 32])
        .collect();
    let bytes = round_trip(&records);
    assert!(bytes < 8192 * 3, "{bytes}");
}

#[test]
fn anything_comes_back() {
    let mut state = 1;
    for length in [1, 2, 127, 128, 129, 1000, 8192] {
        for shift in [0, 8, 20, 40, 63] {
            // Few and many different keys; small, huge and backward steps.
            let records: Vec<[u64; 2]> = (0..length)
                .map(|_| {
                    [
                        scramble(&mut state) >> shift,
                        scramble(&mut state) >> (shift / 2),
                    ]
                })
                .map(|[ts, word]| [ts, word & !(0b11 << 62)])
                .collect();
            round_trip(&records);
        }
    }
}

#[test]
fn a_cut_block_is_the_end_and_a_changed_one_is_damaged() {
    let records: Vec<[u64; 2]> = (0..300).map(|i| [i * 1000, i]).collect();
    let mut out = Vec::new();
    encode(HEADER, &records, &mut out);
    let mut decoded = Vec::new();
    for cut in 0..out.len() {
        assert_eq!(decode(&out[..cut], &mut decoded), Next::End, "cut at {cut}");
    }
    for at in 0..out.len() {
        let mut bad = out.clone();
        bad[at] ^= 1 << (at % 8);
        assert!(
            !matches!(decode(&bad, &mut decoded), Next::Block(..)),
            "flip at {at} went unseen"
        );
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let mut state = 7;
    let mut decoded = Vec::new();
    for _ in 0..2000 {
        let length = scramble(&mut state) as usize % 400;
        let mut bytes: Vec<u8> = (0..length).map(|_| scramble(&mut state) as u8).collect();
        if length >= 12 {
            bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
            let body = (length.saturating_sub(HEADER_BYTES)) as u32;
            bytes[8..12].copy_from_slice(&body.to_le_bytes());
        }
        if length > HEADER_BYTES {
            bytes[12..16].copy_from_slice(&(scramble(&mut state) as u32 % 8193).to_le_bytes());
            bytes[28..32].copy_from_slice(&(scramble(&mut state) as u32 % 9).to_le_bytes());
            let check = crc32fast::hash(&bytes[8..]);
            bytes[4..8].copy_from_slice(&check.to_le_bytes());
        }
        decode(&bytes, &mut decoded);
    }
}
