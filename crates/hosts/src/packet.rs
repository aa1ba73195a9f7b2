//! The packets of `undertick sync`: 64 bytes, little-endian.
//!
//! | offset | type | meaning |
//! |---|---|---|
//! | 0 | 8 bytes | magic `UTSYNC01` |
//! | 8 | u8 | 1 hello, 2 welcome, 3 question, 4 answer |
//! | 16 | u128 | session: drawn by the asking host, repeated in answers |
//! | 32 | u64 | number of the question |
//! | 40 | i64 | sent here, ticks |
//! | 48 | i64 | received there, ticks |
//! | 56 | i64 | answered there, ticks |
//!
//! A welcome is followed by the description of the answering host, as JSON. A hello is as long as
//! the longest welcome, so that forged questions cannot flood anybody with answers.

/// Bytes of all packets but hello and welcome.
pub(super) const PACKET_BYTES: usize = 64;
/// Bytes of a hello; a welcome is not longer.
pub(super) const HELLO_BYTES: usize = 1200;

const MAGIC: &[u8; 8] = b"UTSYNC01";

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum PacketKind {
    Hello = 1,
    Welcome = 2,
    Question = 3,
    Answer = 4,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) kind: PacketKind,
    pub(super) session: u128,
    pub(super) number: u64,
    /// Stamps: sent here, received there, answered there.
    pub(super) stamps: [i64; 3],
}

impl Packet {
    pub(super) fn to_bytes(self) -> [u8; PACKET_BYTES] {
        let mut bytes = [0; PACKET_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8] = self.kind as u8;
        bytes[16..32].copy_from_slice(&self.session.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        for (place, stamp) in bytes[40..].chunks_exact_mut(8).zip(self.stamps) {
            place.copy_from_slice(&stamp.to_le_bytes());
        }
        bytes
    }

    /// Decodes a packet; `None` if the bytes are not one. Bytes that follow are ignored.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PACKET_BYTES] = bytes.first_chunk()?;
        if &bytes[..8] != MAGIC {
            return None;
        }
        let kind = match bytes[8] {
            1 => PacketKind::Hello,
            2 => PacketKind::Welcome,
            3 => PacketKind::Question,
            4 => PacketKind::Answer,
            _ => return None,
        };
        let word = |at: usize| -> [u8; 8] { bytes[at..at + 8].try_into().expect("eight bytes") };
        Some(Self {
            kind,
            session: u128::from_le_bytes(bytes[16..32].try_into().expect("sixteen bytes")),
            number: u64::from_le_bytes(word(32)),
            stamps: [40, 48, 56].map(|at| i64::from_le_bytes(word(at))),
        })
    }
}

#[cfg(test)]
mod tests;
