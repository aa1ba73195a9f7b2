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
mod tests;
