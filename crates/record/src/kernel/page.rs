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
mod tests;
