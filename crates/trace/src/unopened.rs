//! Rings that the recorder could not map: what was written to them is read off their
//! headers.

use std::fs::File;
use std::os::unix::fs::FileExt;

use undertick_ring::layout::{self, SEGMENT_BYTES, ring};
use undertick_ring::{Kind, Record};

use crate::manifest::Ring;
use crate::session_dir::SessionDir;

/// The account of a ring of which `received` events are in the trace; all others are
/// dropped. `None`: it is no ring, or not complete yet.
pub(crate) fn account(dir: &SessionDir, number: u32, owner: u32, received: u64) -> Option<Ring> {
    let name = format!("{}{number:08x}", layout::RING_PREFIX);
    let file = dir.file(&name, owner).ok().flatten()?;
    let header = Header::read(&file)?;
    let written = header.events(&file)?.max(received);
    let dropped = header.u64_at(ring::OFF_DROPPED);
    Some(Ring {
        ring: number as i32,
        pid: header.u32_at(ring::OFF_PID) as i32,
        tid: header.u32_at(ring::OFF_TID) as i32,
        written: written.saturating_add(dropped),
        received,
        dropped: (written - received).saturating_add(dropped),
        overwritten: 0,
        spans_wait: Some(header.u32_at(ring::OFF_SPAN_READINGS) == ring::SPANS_WAIT),
    })
}

/// The first page of a ring's file.
struct Header([u8; ring::OFF_USES]);

impl Header {
    fn read(file: &File) -> Option<Self> {
        let mut bytes = [0; ring::OFF_USES];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let header = Self(bytes);
        let is_ring = header.u64_at(ring::OFF_MAGIC) == ring::MAGIC
            && header.u32_at(ring::OFF_VERSION) == layout::VERSION
            && (1..=layout::MAX_SEGMENTS).contains(&header.u32_at(ring::OFF_MAX_SEGMENTS));
        is_ring.then_some(header)
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Events up to the head: records, less the continuations among them. Those before the
    /// last segment are counted in the table of uses.
    fn events(&self, file: &File) -> Option<u64> {
        let head = self.u64_at(ring::OFF_HEAD) / 16 * 16;
        let Some(last) = head.checked_sub(16) else {
            return Some(0);
        };
        let place = last / SEGMENT_BYTES;
        let segments = u64::from(self.u32_at(ring::OFF_MAX_SEGMENTS));
        let mut of_use = [0; 8];
        let table = ring::OFF_USES as u64;
        file.read_exact_at(&mut of_use, table + 8 * (place % segments))
            .ok()?;
        let of_use = u64::from_le_bytes(of_use);
        let segment = of_use & u64::from(u32::MAX);
        if segment >= segments {
            return None;
        }
        let mut records = vec![0; (head - place * SEGMENT_BYTES) as usize];
        file.read_exact_at(&mut records, (segment + 1) * SEGMENT_BYTES)
            .ok()?;
        let is_continuation = |record: &&[u8]| {
            let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("8"));
            Record::from_words([word(0), word(8)]).kind == Kind::Continuation
        };
        let here = records.chunks_exact(16).filter(is_continuation).count() as u64;
        Some((head / 16).saturating_sub((of_use >> 32) + here))
    }
}
