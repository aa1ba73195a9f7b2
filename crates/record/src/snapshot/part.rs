//! Which part of a recording a snapshot holds, and why it is made.

use std::collections::HashMap;

use undertick_format::block::{self, BlockHeader};
use undertick_format::manifest::Triggered;
use undertick_ring::{Kind, Record};

/// The part of a recording from a time on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Ticks of the recording clock; 0: everything.
    pub(crate) from_ticks: u64,
    /// The reasons, the first one first.
    pub(crate) triggered: Vec<Triggered>,
    /// Number of further reasons.
    pub(crate) more: u64,
}

impl Part {
    pub(crate) const fn from_ticks(from_ticks: u64) -> Self {
        Self {
            from_ticks,
            triggered: Vec::new(),
            more: 0,
        }
    }
}

/// The number of records, of one ring, that lie before a time. A continuation belongs to the record
/// before it.
pub(super) fn before(records: &[[u64; 2]], ticks: u64) -> usize {
    let is_kept = |words: &[u64; 2]| {
        let record = Record::from_words(*words);
        record.kind != Kind::Continuation && record.ts >= ticks
    };
    match ticks {
        0 => 0,
        _ => records.iter().position(is_kept).unwrap_or(records.len()),
    }
}

/// The number of events among records: a continuation is none.
pub(super) fn events(records: &[[u64; 2]]) -> u64 {
    let is_event = |words: &&[u64; 2]| Record::from_words(**words).kind != Kind::Continuation;
    records.iter().filter(is_event).count() as u64
}

/// Cuts the blocks of threads that have ended.
pub(super) struct Cut {
    from_ticks: u64,
    /// Number of events before that time, by ring; and whether records were kept since.
    earlier: HashMap<u32, (u64, bool)>,
    cut: Vec<u8>,
}

impl Cut {
    pub(super) fn from_ticks(from_ticks: u64) -> Self {
        Self {
            from_ticks,
            earlier: HashMap::new(),
            cut: Vec::new(),
        }
    }

    /// The part of a block that is kept, as a block; nothing if none of it is. The blocks of a ring
    /// come in their order.
    pub(super) fn part<'a>(&'a mut self, mut header: BlockHeader, block: &'a [u8]) -> &'a [u8] {
        let (earlier, has_begun) = self.earlier.entry(header.ring).or_default();
        let mut records = Vec::new();
        if *has_begun
            || self.from_ticks == 0
            || block::decode_records(block, header.records, &mut records).is_none()
        {
            return block;
        }
        let words: Vec<[u64; 2]> = records.iter().map(|record| record.to_words()).collect();
        let dropped = before(&words, self.from_ticks);
        *earlier += events(&words[..dropped]);
        *has_begun = dropped < records.len();
        self.cut.clear();
        if *has_begun {
            header.position += 16 * dropped as u64;
            header.records = (records.len() - dropped) as u32;
            block::encode(header, &words[dropped..], &mut self.cut);
        }
        &self.cut
    }

    /// Number of events of a ring that were cut off.
    pub(super) fn earlier_events(&self, ring: u32) -> u64 {
        self.earlier.get(&ring).map_or(0, |(events, _)| *events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continuation_stays_with_its_record() {
        let record = |kind, ts| {
            Record {
                ts,
                payload: 1,
                event: 5,
                cpu: 0,
                kind,
                descheduled: undertick_ring::DeschedFlag::No,
            }
            .to_words()
        };
        let all = [
            record(Kind::Begin, 100),
            record(Kind::End, 200),
            // The value of the payload, which is no time.
            record(Kind::Continuation, u64::MAX),
            record(Kind::Begin, 300),
            record(Kind::Continuation, 7),
        ];
        let expected = [
            (0, 0),
            (50, 0),
            (100, 0),
            (101, 1),
            (200, 1),
            (201, 3),
            (300, 3),
            (301, 5),
        ];
        for (ticks, count) in expected {
            assert_eq!(before(&all, ticks), count, "{ticks}");
        }
        // The same in blocks of two and three records, of two rings.
        let header = |ring, position, records| BlockHeader {
            ring,
            pid: 1,
            tid: 2,
            position,
            records,
        };
        for (ticks, count) in expected {
            let mut cut = Cut::from_ticks(ticks);
            let mut kept = Vec::new();
            for (from, until) in [(0, 2), (2, 5)] {
                for ring in [7, 8] {
                    let mut block = Vec::new();
                    let header = header(ring, 16 * from as u64, (until - from) as u32);
                    block::encode(header, &all[from..until], &mut block);
                    let part = cut.part(header, &block);
                    let mut records = Vec::new();
                    match block::decode(part, &mut records) {
                        block::Next::Block(header, _) => {
                            let first = header.position as usize / 16;
                            if ring == 7 {
                                kept.extend((first..).zip(records));
                            }
                        }
                        _ => assert!(part.is_empty()),
                    }
                }
            }
            let expected: Vec<(usize, Record)> = (count..5)
                .map(|at| (at, Record::from_words(all[at])))
                .collect();
            assert_eq!(kept, expected, "{ticks}");
            let is_event =
                |words: &&[u64; 2]| Record::from_words(**words).kind != Kind::Continuation;
            let events = all[..count].iter().filter(is_event).count() as u64;
            assert_eq!(cut.earlier_events(8), events, "{ticks}");
        }
    }
}
