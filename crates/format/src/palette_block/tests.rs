use undertick_ring::{DeschedFlag, Kind, Record};

use super::PaletteBlock;
use crate::block::{BlockHeader, Next, encode};
use crate::rows::Rows;

const HEADER: BlockHeader = BlockHeader {
    ring: 3,
    pid: 40,
    tid: 41,
    position: 0,
    records: 0,
};

fn block(of: impl Iterator<Item = Record>) -> Vec<u8> {
    let words: Vec<[u64; 2]> = of.map(Record::to_words).collect();
    let mut bytes = vec![];
    encode(HEADER, &words, &mut bytes);
    bytes
}

fn record(i: u64, kinds: &[Kind], events: u64) -> Record {
    Record {
        ts: 1_000 + i * (i % 7) * 1_000_003,
        payload: if i.is_multiple_of(5) { 0 } else { i as u32 },
        event: (i * 31 % events) as u16,
        cpu: (i % 3) as u16,
        kind: kinds[i as usize % kinds.len()],
        descheduled: if i.is_multiple_of(11) {
            DeschedFlag::Yes
        } else {
            DeschedFlag::No
        },
    }
}

/// The codes give the same as the rows.
#[test]
fn codes_say_what_rows_say() {
    let (mut palette_block, mut rows) = (PaletteBlock::default(), Rows::default());
    for (n, events) in [(1, 1), (127, 3), (128, 1), (129, 3), (8192, 9)] {
        let kinds = [Kind::Begin, Kind::End, Kind::Instant];
        let bytes = block((0..n).map(|i| record(i, &kinds, events)));
        let (header, length) = palette_block.decode(&bytes).unwrap();
        assert_eq!(
            (header.ring, header.records, length),
            (3, n as u32, bytes.len())
        );
        rows.clear();
        rows.push_block(&bytes);
        let rows = rows.of_ring();
        assert_eq!(palette_block.ts(), rows.ts);
        let readings = || rows.ts.iter().copied();
        assert_eq!(palette_block.span(), readings().min().zip(readings().max()));
        let keys: Vec<_> = palette_block
            .code()
            .iter()
            .map(|&code| palette_block.keys()[usize::from(code)])
            .collect();
        assert!(
            keys.iter()
                .map(|key| key.kind)
                .eq(rows.kind.iter().copied())
        );
        assert!(
            keys.iter()
                .map(|key| key.event)
                .eq(rows.event.iter().copied())
        );
        assert!(
            keys.iter()
                .map(|key| key.descheduled)
                .eq(rows.descheduled.iter().copied())
        );
        assert!(
            palette_block
                .payload()
                .iter()
                .map(|&p| i64::from(p))
                .eq(rows.payload.iter().copied())
        );
        // Some of them as rows, too.
        let mut again = Rows::default();
        let half = n as usize / 2;
        again.push_palette_block(header, &palette_block, half..n as usize);
        again.push_palette_block(header, &palette_block, 0..half);
        let again = again.of_ring();
        let turned = |at: usize| (at + half) % n as usize;
        for at in 0..n as usize {
            assert_eq!(again.ts[at], rows.ts[turned(at)]);
            assert_eq!(again.kind[at], rows.kind[turned(at)]);
            assert_eq!(again.event[at], rows.event[turned(at)]);
            assert_eq!(again.payload[at], rows.payload[turned(at)]);
            assert_eq!(again.descheduled[at], rows.descheduled[turned(at)]);
        }
    }
}

/// Continuations, more words than codes, and bytes that are not a block.
#[test]
fn what_cannot_be_said_by_codes() {
    let mut palette_block = PaletteBlock::default();
    let kinds = [Kind::Instant, Kind::Continuation];
    assert_eq!(
        palette_block.decode(&block((0..9).map(|i| record(i, &kinds, 2)))),
        None
    );
    let bytes = block((0..900).map(|i| record(i, &[Kind::Begin], 300)));
    assert_eq!(palette_block.decode(&bytes), None);
    assert_eq!(palette_block.decode(&[]), None);
    let mut bytes = block((0..9).map(|i| record(i, &[Kind::Begin], 2)));
    assert!(palette_block.decode(&bytes).is_some());
    bytes[60] ^= 1;
    assert_eq!(palette_block.decode(&bytes), None);
}

/// A position outside the palette, with a valid checksum, is rejected.
#[test]
fn places_outside_the_palette() {
    let mut bytes = block((0..9).map(|i| record(i, &[Kind::Begin], 2)));
    assert!(PaletteBlock::default().decode(&bytes).is_some());
    *bytes.last_mut().unwrap() = 200; // the last record's place
    let check = crc32fast::hash(&bytes[8..]);
    bytes[4..8].copy_from_slice(&check.to_le_bytes());
    assert_eq!(PaletteBlock::default().decode(&bytes), None);
    let mut rows = Rows::default();
    assert_eq!(rows.push_block(&bytes), (Next::Damaged, 0));
    assert!(rows.is_empty());
}
