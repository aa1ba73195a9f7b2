//! Splits a page of the kernel's trace buffer into its events.
//!
//! A page has the time of its first event, the number of bytes used (with two flag bits for
//! events lost before it), and events. An event is a word of 5 bits type or length and 27 bits
//! time since the event before, followed by the event's data.

use super::format::PageLayout;

/// Bits of the commit word that hold the bytes used.
const USED: u64 = (1 << 27) - 1;
/// Events were lost before this page.
const LOST: u64 = 1 << 31;
/// The number of lost events follows the last event.
const LOST_COUNTED: u64 = 1 << 30;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a whole timestamp that a timestamp event holds.
const STAMP_BITS: u32 = 59;

/// One item of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageItem<'a> {
    /// Events lost before the ones that follow; -1 if the number is unknown.
    Lost(u64, i64),
    /// Time and data of an event.
    Event(u64, &'a [u8]),
}

/// Passes the items of a page to `take`. A page that is not as the kernel writes it ends early.
pub(super) fn read<'a>(page: &'a [u8], layout: &PageLayout, mut take: impl FnMut(PageItem<'a>)) {
    let mut time = layout.timestamp.get(page) as u64;
    let commit = layout.commit.get(page) as u64;
    let end = (layout.data + (commit & USED) as usize).min(page.len());
    if commit & LOST != 0 {
        let count = page
            .get(end..end + 8)
            .filter(|_| commit & LOST_COUNTED != 0);
        let count = count.and_then(|bytes| bytes.try_into().ok());
        take(PageItem::Lost(time, count.map_or(-1, i64::from_le_bytes)));
    }
    let word = |at: usize| -> Option<u32> {
        let bytes = page.get(at..at + 4).filter(|_| at + 4 <= end)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let mut at = layout.data;
    while let Some(header) = word(at) {
        let (kind, delta) = (header & 31, u64::from(header >> 5));
        at += 4;
        let length = match kind {
            0 => match word(at) {
                // The length includes itself.
                Some(length) if length >= 4 => {
                    at += 4;
                    length as usize - 4
                }
                _ => return,
            },
            PADDING if delta == 0 => return, // the rest of the page
            PADDING => match word(at) {
                Some(length) => {
                    time += delta;
                    at += length as usize;
                    continue;
                }
                None => return,
            },
            TIME_EXTEND | TIME_STAMP => {
                let Some(high) = word(at) else { return };
                let value = u64::from(high) << 27 | delta;
                time = if kind == TIME_EXTEND {
                    time.wrapping_add(value)
                } else {
                    // The upper bits are those of the previous time.
                    time >> STAMP_BITS << STAMP_BITS | value
                };
                at += 4;
                continue;
            }
            words => words as usize * 4,
        };
        time = time.wrapping_add(delta);
        let Some(event) = page.get(at..at + length).filter(|_| at + length <= end) else {
            return;
        };
        take(PageItem::Event(time, event));
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> PageLayout {
        PageLayout::parse(
            "field: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             field: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
             field: char data;\toffset:16;\tsize:112;\tsigned:0;\n",
        )
        .unwrap()
    }

    fn page(time: u64, flags: u64, words: &[u32], after: &[u8]) -> Vec<u8> {
        let mut page = time.to_le_bytes().to_vec();
        page.extend_from_slice(&(flags | (4 * words.len() as u64)).to_le_bytes());
        words
            .iter()
            .for_each(|word| page.extend_from_slice(&word.to_le_bytes()));
        page.extend_from_slice(after);
        page.resize(128, 0xaa);
        page
    }

    fn items(page: &[u8]) -> Vec<(u64, Vec<u8>, i64)> {
        let mut all = Vec::new();
        read(page, &layout(), |item| match item {
            PageItem::Lost(time, count) => all.push((time, Vec::new(), count)),
            PageItem::Event(time, data) => all.push((time, data.to_vec(), 0)),
        });
        all
    }

    #[test]
    fn every_kind_of_event() {
        let header = |kind: u32, delta: u32| kind | delta << 5;
        let words = [
            header(1, 10), // one word of data
            0x0403_0201,
            header(0, 5), // length in the next word
            8,
            0x0807_0605,
            header(TIME_EXTEND, 7),
            1, // 1 << 27 | 7
            header(PADDING, 3),
            8, // discarded: its length with this word
            0,
            header(1, 2),
            9,
            header(TIME_STAMP, 100),
            2,
            header(1, 1),
            11,
            header(PADDING, 0),
            77,
        ];
        let start = (5 << STAMP_BITS) + 1000;
        let after_stamp = (5 << STAMP_BITS) + (2 << 27) + 101;
        let later = start + 15 + (1 << 27) + 7 + 3 + 2;
        assert_eq!(
            items(&page(start, 0, &words, &[])),
            [
                (start + 10, vec![1, 2, 3, 4], 0),
                (start + 15, vec![5, 6, 7, 8], 0),
                (later, vec![9, 0, 0, 0], 0),
                (after_stamp, vec![11, 0, 0, 0], 0),
            ]
        );
    }

    #[test]
    fn losses_counted_and_not() {
        let words = [1 | 4 << 5, 1];
        let counted = page(50, LOST | LOST_COUNTED, &words, &77_u64.to_le_bytes());
        assert_eq!(
            items(&counted),
            [(50, vec![], 77), (54, vec![1, 0, 0, 0], 0)]
        );
        assert_eq!(items(&page(50, LOST, &words, &[]))[0], (50, vec![], -1));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut state = 3_u64;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..128)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(99);
                    (state >> 33) as u8
                })
                .collect();
            items(&bytes);
            items(&bytes[..(state >> 40) as usize % 128]);
        }
    }
}
