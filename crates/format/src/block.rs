//! Raw blocks: what the collector writes while it records. They are cheap to write (about 2 ns
//! and 3..6 bytes an event) and can be torn safely: each block has a length and a checksum, so a
//! cut file is read up to its last whole block.
//!
//! Layout, little-endian: header of 48 bytes, palette, groups of up to 128 records. A group has
//! its widths (time, payload, key), then the columns. Times are differences to the record before.
//! Payloads are differences to the smallest of the group. The 32 bits of event, CPU, kind and
//! flags are indices into the palette.

use undertick_ring::{Kind, Record};

/// `b"UTB1"`.
const MAGIC: u32 = u32::from_le_bytes(*b"UTB1");
/// Bytes of a block header.
pub const HEADER_BYTES: usize = 48;
/// Number of records that share their column widths.
const GROUP: usize = 128;
/// Most records in a block: one segment.
pub const MAX_RECORDS: usize = 8192;
/// Longest possible body, bytes: nothing compressed, and the palette.
const MAX_BODY_BYTES: usize = MAX_RECORDS * 17 + 4 * 256 + 4096;

/// The ring and the extent of a block's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Ring number.
    pub ring: u32,
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Position of the first record in the ring's stream, bytes.
    pub position: u64,
    /// Number of records.
    pub records: u32,
}

/// Appends a block to `out`; returns how many of the records are continuations.
///
/// # Panics
/// If there are no or more than [`MAX_RECORDS`] records.
pub fn encode(header: BlockHeader, records: &[[u64; 2]], out: &mut Vec<u8>) -> u32 {
    assert!(!records.is_empty() && records.len() <= MAX_RECORDS);
    let start = out.len();
    out.resize(start + HEADER_BYTES, 0);
    let palette_at = out.len();
    let mut palette = Palette::new();
    let mut keys = [0u8; MAX_RECORDS];
    let mut continuations = 0;
    for (record, key) in records.iter().zip(&mut keys) {
        let word = (record[1] >> 32) as u32;
        continuations += u32::from((word >> 27) & 7 == Kind::Continuation as u32);
        *key = palette.index(word);
    }
    for word in palette.words() {
        out.extend_from_slice(&word.to_le_bytes());
    }
    let raw_keys = palette.overflowed;
    let mut previous = 0u64;
    for (group, keys) in records.chunks(GROUP).zip(keys.chunks(GROUP)) {
        let mut deltas = [0u64; GROUP];
        let mut payloads = [0u32; GROUP];
        let (mut widest, mut least) = (0u64, u32::MAX);
        for (i, record) in group.iter().enumerate() {
            deltas[i] = record[0].wrapping_sub(previous);
            previous = record[0];
            widest |= deltas[i];
            payloads[i] = record[1] as u32;
            least = least.min(payloads[i]);
        }
        let mut span = 0u32;
        for payload in &mut payloads[..group.len()] {
            *payload -= least;
            span |= *payload;
        }
        // No early exit: the loop without one is vectorised.
        let keys = &keys[..group.len()];
        let differ = keys.iter().fold(0, |differ, &key| differ | (key ^ keys[0]));
        let key_width = if raw_keys { 4 } else { u8::from(differ != 0) };
        let (time_width, payload_width) = (width(widest), width(u64::from(span)));
        out.extend_from_slice(&[time_width, payload_width, key_width, keys[0]]);
        out.extend_from_slice(&least.to_le_bytes());
        put(out, time_width, deltas[..group.len()].iter().copied());
        put(
            out,
            payload_width,
            payloads[..group.len()].iter().map(|&p| u64::from(p)),
        );
        match key_width {
            0 => {}
            1 => out.extend_from_slice(keys),
            _ => put(out, 4, group.iter().map(|record| record[1] >> 32)),
        }
    }
    let body = (out.len() - palette_at) as u32;
    let head = &mut out[start..palette_at];
    head[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    head[8..12].copy_from_slice(&body.to_le_bytes());
    head[12..16].copy_from_slice(&(records.len() as u32).to_le_bytes());
    head[16..20].copy_from_slice(&header.ring.to_le_bytes());
    head[20..24].copy_from_slice(&header.pid.to_le_bytes());
    head[24..28].copy_from_slice(&header.tid.to_le_bytes());
    head[28..32].copy_from_slice(&(palette.used as u32).to_le_bytes());
    head[32..40].copy_from_slice(&header.position.to_le_bytes());
    let check = crc32fast::hash(&out[start + 8..]);
    out[start + 4..start + 8].copy_from_slice(&check.to_le_bytes());
    continuations
}

/// Up to 255 different words, found by a hash; usually there are two or three.
struct Palette {
    words: [u32; 256],
    used: usize,
    overflowed: bool,
    slots: [u16; 512],
    last: (u32, u8),
}

impl Palette {
    fn new() -> Self {
        Self {
            words: [0; 256],
            used: 0,
            overflowed: false,
            slots: [u16::MAX; 512],
            last: (0, 0),
        }
    }

    fn words(&self) -> &[u32] {
        &self.words[..self.used]
    }

    #[inline]
    fn index(&mut self, word: u32) -> u8 {
        if self.used > 0 && self.last.0 == word {
            return self.last.1;
        }
        let mut slot = (word.wrapping_mul(0x9e37_79b1) >> 23) as usize;
        loop {
            let index = self.slots[slot];
            if index == u16::MAX {
                break;
            }
            if self.words[index as usize] == word {
                self.last = (word, index as u8);
                return index as u8;
            }
            slot = (slot + 1) & 511;
        }
        if self.used == 255 {
            self.overflowed = true;
            return 0;
        }
        self.slots[slot] = self.used as u16;
        self.words[self.used] = word;
        self.used += 1;
        self.last = (word, (self.used - 1) as u8);
        self.last.1
    }
}

fn width(bits: u64) -> u8 {
    match bits {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

fn put(out: &mut Vec<u8>, width: u8, values: impl Iterator<Item = u64>) {
    match width {
        0 => {}
        1 => out.extend(values.map(|v| v as u8)),
        2 => values.for_each(|v| out.extend_from_slice(&(v as u16).to_le_bytes())),
        4 => values.for_each(|v| out.extend_from_slice(&(v as u32).to_le_bytes())),
        _ => values.for_each(|v| out.extend_from_slice(&v.to_le_bytes())),
    }
}

/// Bytes and records of the block at the start of `bytes` according to its header, unchecked;
/// `None` if that is not the header of a block.
#[must_use]
pub fn extent(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = bytes.get(..HEADER_BYTES)?;
    let u32_at =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (body, records) = (u32_at(8) as usize, u32_at(12) as usize);
    let sane = (1..=MAX_RECORDS).contains(&records) && body <= 32 * MAX_RECORDS;
    sane.then_some((HEADER_BYTES + body, records))
}

/// The next item in a raw file.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A whole block: its header and its length, header included.
    Block(BlockHeader, usize),
    /// The file ends here, or was cut in the middle of a block.
    End,
    /// These bytes are not a block.
    Damaged,
}

/// Checks the block at the start of `bytes` against its checksum, without decoding its content.
/// Never panics, whatever the bytes are.
pub fn check(bytes: &[u8]) -> Next {
    if bytes.len() < HEADER_BYTES {
        return Next::End;
    }
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let body = u32_at(8) as usize;
    let count = u32_at(12) as usize;
    if u32_at(0) != MAGIC || body > MAX_BODY_BYTES || count == 0 || count > MAX_RECORDS {
        return Next::Damaged;
    }
    let Some(whole) = bytes.get(..HEADER_BYTES + body) else {
        return Next::End;
    };
    if crc32fast::hash(&whole[8..]) != u32_at(4) {
        return Next::Damaged;
    }
    let (header, length) = header(whole).expect("it is a whole block");
    Next::Block(header, length)
}

/// The header and the length of the block at the start of `bytes`, which [`check`] found whole;
/// `None` if there are fewer bytes. Never panics, whatever the bytes are.
pub(crate) fn header(bytes: &[u8]) -> Option<(BlockHeader, usize)> {
    let (length, records) = extent(bytes).filter(|(length, _)| *length <= bytes.len())?;
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let header = BlockHeader {
        ring: u32_at(16),
        pid: u32_at(20) as i32,
        tid: u32_at(24) as i32,
        position: u64::from_le_bytes(bytes[32..40].try_into().expect("eight bytes")),
        records: records as u32,
    };
    Some((header, length))
}

/// Decodes the block at the start of `bytes` into `records` (cleared first).
/// Never panics, whatever the bytes are.
pub fn decode(bytes: &[u8], records: &mut Vec<Record>) -> Next {
    records.clear();
    let next = check(bytes);
    let Next::Block(header, length) = next else {
        return next;
    };
    match decode_records(&bytes[..length], header.records, records) {
        Some(()) => next,
        None => Next::Damaged,
    }
}

/// Decodes the `n` records of a block whose length and check sum are right, and appends them to
/// `records`. `None` if the block is damaged; `records` may then hold a part.
pub fn decode_records(block: &[u8], n: u32, records: &mut Vec<Record>) -> Option<()> {
    let mut records = Records {
        palette: Vec::new(),
        records,
    };
    decode_into(block, n, &mut records)
}

struct Records<'a> {
    palette: Vec<u32>,
    records: &'a mut Vec<Record>,
}

impl Sink for Records<'_> {
    fn palette(&mut self, words: &[u32]) -> Option<()> {
        self.palette.extend(words);
        Some(())
    }

    fn group(&mut self, group: &Group<'_>) -> Option<()> {
        for i in 0..group.times.len() {
            let word = group.keys.word(i, &self.palette)?;
            let payload = u64::from(group.payloads[i]);
            let words = [group.times[i], payload | u64::from(word) << 32];
            self.records.push(Record::from_words(words));
        }
        Some(())
    }
}

/// Receives the content of a block; returns `None` to reject it.
pub(crate) trait Sink {
    /// Receives the words of the records; called first.
    fn palette(&mut self, words: &[u32]) -> Option<()>;
    /// Receives the next records, with their positions in the palette.
    fn group(&mut self, group: &Group<'_>) -> Option<()>;
}

/// Up to [`GROUP`] records of a block.
pub(crate) struct Group<'a> {
    pub(crate) times: &'a [u64],
    pub(crate) payloads: &'a [u32],
    pub(crate) keys: Keys<'a>,
    /// No time of the group, modulo 2^64, can come before the one before it.
    pub(crate) rises: bool,
}

/// Where the event, CPU, kind and flags of a group's records are.
pub(crate) enum Keys<'a> {
    /// All records have the same position in the palette.
    One(u8),
    /// Each record has its position in the palette.
    Each(&'a [u8]),
    /// Each record has its own word, 32 bits, little-endian.
    Words(&'a [u8]),
}

impl Keys<'_> {
    /// Whether all positions are below `palette`. All are checked, which is faster than stopping
    /// at one.
    fn lie_in(&self, palette: usize) -> bool {
        let most = match self {
            Self::One(key) => *key,
            Self::Each(keys) => keys.iter().fold(0, |most, &key| most.max(key)),
            Self::Words(_) => return true,
        };
        usize::from(most) < palette
    }

    /// The word of a record.
    #[inline]
    fn word(&self, record: usize, palette: &[u32]) -> Option<u32> {
        match self {
            Self::One(key) => palette.get(usize::from(*key)).copied(),
            Self::Each(keys) => palette.get(usize::from(keys[record])).copied(),
            Self::Words(bytes) => {
                let word = bytes.get(4 * record..4 * record + 4)?;
                Some(u32::from_le_bytes(word.try_into().expect("four bytes")))
            }
        }
    }
}

/// Decodes a block of `records` records that [`check`] found whole; `None` where it is not valid
/// or the sink rejects it. Never panics, whatever the bytes are.
pub(crate) fn decode_into(block: &[u8], records: u32, sink: &mut impl Sink) -> Option<()> {
    let palette = u32::from_le_bytes(block[28..32].try_into().expect("four bytes")) as usize;
    let mut rest = &block[HEADER_BYTES..];
    if palette > 255 {
        return None;
    }
    let palette: Vec<u32> = take(&mut rest, 4 * palette)?
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
        .collect();
    sink.palette(&palette)?;
    let mut room = Room {
        times: [0; GROUP],
        payloads: [0; GROUP],
    };
    let mut previous = 0;
    let mut left = records as usize;
    while left > 0 {
        let n = left.min(GROUP);
        let group = group(&mut rest, n, &mut previous, &mut room)?;
        group.keys.lie_in(palette.len()).then_some(())?;
        sink.group(&group)?;
        left -= n;
    }
    rest.is_empty().then_some(())
}

/// Buffers for the columns of a group.
struct Room {
    times: [u64; GROUP],
    payloads: [u32; GROUP],
}

/// The next group of a block, `n` records; `previous` is the time before them.
#[inline]
fn group<'a, 'b: 'a>(
    rest: &mut &'b [u8],
    n: usize,
    previous: &mut u64,
    room: &'a mut Room,
) -> Option<Group<'a>> {
    let head = take(rest, 8)?;
    let (time_width, payload_width, key_width, first_key) = (head[0], head[1], head[2], head[3]);
    let least = u32::from_le_bytes(head[4..8].try_into().expect("four bytes"));
    let (times, payloads) = (&mut room.times[..n], &mut room.payloads[..n]);
    get(rest, time_width, times)?;
    for time in &mut *times {
        *previous = previous.wrapping_add(*time);
        *time = *previous;
    }
    if payload_width == 0 {
        payloads.fill(least);
    } else {
        let mut above = [0; GROUP];
        get(rest, payload_width, &mut above[..n])?;
        for (payload, above) in payloads.iter_mut().zip(&above) {
            *payload = least.wrapping_add(*above as u32);
        }
    }
    let keys = match key_width {
        0 => Keys::One(first_key),
        1 => Keys::Each(take(rest, n)?),
        4 => Keys::Words(take(rest, 4 * n)?),
        _ => return None,
    };
    Some(Group {
        times,
        payloads,
        keys,
        // The sum of 127 differences of 32 bits is less than 2^39.
        rises: time_width < 8,
    })
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(n)?;
    *rest = left;
    Some(taken)
}

/// Reads numbers of `width` bytes each.
fn get(rest: &mut &[u8], width: u8, values: &mut [u64]) -> Option<()> {
    let bytes = take(rest, usize::from(width) * values.len())?;
    match width {
        0 => values.fill(0),
        1 => (values.iter_mut().zip(bytes)).for_each(|(v, &b)| *v = u64::from(b)),
        2 => (values.iter_mut().zip(bytes.as_chunks().0))
            .for_each(|(v, &b)| *v = u64::from(u16::from_le_bytes(b))),
        4 => (values.iter_mut().zip(bytes.as_chunks().0))
            .for_each(|(v, &b)| *v = u64::from(u32::from_le_bytes(b))),
        8 => (values.iter_mut().zip(bytes.as_chunks().0))
            .for_each(|(v, &b)| *v = u64::from_le_bytes(b)),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests;
