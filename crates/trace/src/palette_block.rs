//! A block's rows in terms of its palette, for readers that pass through them once and look each
//! word of the palette up once a block.

use crate::block::{self, BlockHeader, Group, Keys, Next, Sink};
use crate::rows::Key;

/// The rows of one block: columns of equal length, and the meaning of the codes.
#[derive(Debug, Default)]
pub struct PaletteBlock {
    ts: Vec<i64>,
    payload: Vec<u32>,
    code: Vec<u8>,
    keys: Vec<Key>,
    /// The smallest and the largest reading.
    span: Option<(i64, i64)>,
}

impl PaletteBlock {
    /// Decodes the block at the start of `bytes`, replacing the content; returns its header and
    /// its length. `None` where it is not a block, or its rows cannot be represented this way:
    /// [`crate::rows::Rows::push_block`] tells which. Never panics, whatever the bytes are.
    pub fn decode(&mut self, bytes: &[u8]) -> Option<(BlockHeader, usize)> {
        match block::check(bytes) {
            Next::Block(..) => self.decode_checked(bytes),
            _ => None,
        }
    }

    /// As [`Self::decode`], for a block that was checked before, as those of
    /// [`crate::raw_order::RawGroups`] are.
    pub fn decode_checked(&mut self, bytes: &[u8]) -> Option<(BlockHeader, usize)> {
        self.ts.clear();
        self.payload.clear();
        self.code.clear();
        self.keys.clear();
        self.span = None;
        let (header, length) = block::header(bytes)?;
        block::decode_into(&bytes[..length], header.records, self)?;
        Some((header, length))
    }

    /// The smallest and the largest reading; `None` without rows.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        self.span
    }

    /// Readings, ticks.
    #[must_use]
    pub fn ts(&self) -> &[i64] {
        &self.ts
    }

    /// Payloads.
    #[must_use]
    pub fn payload(&self) -> &[u32] {
        &self.payload
    }

    /// Indices into the keys; each has one.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        &self.code
    }

    /// The meaning of the codes.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }
}

impl Sink for PaletteBlock {
    fn palette(&mut self, words: &[u32]) -> Option<()> {
        for &word in words {
            self.keys.push(Key::from_word(word)?);
        }
        Some(())
    }

    fn group(&mut self, group: &Group<'_>) -> Option<()> {
        let readings = || group.times.iter().map(|&ts| ts as i64);
        self.ts.extend(readings());
        let (first, last) = (*group.times.first()? as i64, *group.times.last()? as i64);
        // A group that rises, and does not wrap from the last number to the first.
        let (lo, hi) = match group.rises && first <= last {
            true => (first, last),
            false => readings().fold((first, first), |(lo, hi), ts| (lo.min(ts), hi.max(ts))),
        };
        let span = self.span.unwrap_or((lo, hi));
        self.span = Some((span.0.min(lo), span.1.max(hi)));
        self.payload.extend_from_slice(group.payloads);
        match group.keys {
            Keys::One(key) => self.code.resize(self.ts.len(), key),
            Keys::Each(keys) => self.code.extend_from_slice(keys),
            Keys::Words(_) => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
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
}
