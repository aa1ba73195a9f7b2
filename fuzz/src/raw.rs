//! Raw blocks with correct checksums: a program cannot write them, but the sender of a trace can.

use std::path::PathBuf;

use undertick_format::block::{self, Next};
use undertick_format::palette_block::PaletteBlock;
use undertick_format::raw_order::{RawGroups, RawIndex};
use undertick_format::rows::Rows;

const MAGIC: &[u8] = b"UTB1";

/// Corrects the length and the checksum of the block at the start; returns where the next one
/// starts.
fn mend(bytes: &mut [u8]) -> Option<usize> {
    let most = bytes.len();
    let head = bytes.get_mut(..block::HEADER_BYTES)?;
    head[..4].copy_from_slice(MAGIC);
    let body = u32::from_le_bytes(head[8..12].try_into().ok()?) as usize;
    let body = body.min(most - block::HEADER_BYTES);
    head[8..12].copy_from_slice(&(body as u32).to_le_bytes());
    let records = u32::from_le_bytes(head[12..16].try_into().ok()?);
    let records = records.clamp(1, block::MAX_RECORDS as u32);
    head[12..16].copy_from_slice(&records.to_le_bytes());
    let whole = &mut bytes[..block::HEADER_BYTES + body];
    let check = crc32fast::hash(&whole[8..]);
    whole[4..8].copy_from_slice(&check.to_le_bytes());
    Some(whole.len())
}

pub fn block(bytes: &[u8]) {
    let mut records = Vec::new();
    block::decode(bytes, &mut records);
    let mut bytes = bytes.to_vec();
    mend(&mut bytes);
    let decoded = block::decode(&bytes, &mut records);
    let mut rows = Rows::default();
    let (pushed, events) = rows.push_block(&bytes);
    assert_eq!(decoded, pushed);
    match pushed {
        Next::Block(header, length) => {
            assert!(length <= bytes.len() && records.len() == header.records as usize);
            assert!(events <= rows.len() as u64 && rows.len() <= records.len());
        }
        _ => assert!(rows.is_empty() && events == 0),
    }
    let (length, batch) = (rows.len(), rows.take());
    assert_eq!(batch.num_rows(), length);
    let mut palette_block = PaletteBlock::default();
    if let Some((header, bytes)) = palette_block.decode(&bytes) {
        assert_eq!(pushed, Next::Block(header, bytes));
        let readings = || palette_block.ts().iter().copied();
        assert_eq!(palette_block.span(), readings().min().zip(readings().max()));
        rows.push_palette_block(header, &palette_block, 0..length);
        assert_eq!(rows.take(), batch);
    }
}

/// Reads a file of blocks; the first byte selects whether they are corrected first.
pub fn raw_file(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else {
        return;
    };
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while first & 1 == 0
        && let Some(length) = bytes.get_mut(at..).and_then(mend)
    {
        at += length;
    }
    let path = file(&bytes);
    let mut groups = RawGroups::open(&path).expect("it is there");
    let mut taken = 0;
    let mut group = Vec::new();
    while groups.next_group(&mut group).expect("it can be read") {
        assert!(!group.is_empty());
        taken += group.len();
        let mut rest = &group[..];
        let mut rows = Rows::default();
        while let (Next::Block(_, length), _) = rows.push_block(rest) {
            rest = &rest[length..];
        }
        rows.take();
    }
    assert!(taken <= bytes.len() && groups.share() <= 1.0);
    if let Ok(index) = RawIndex::open(&path) {
        let all: usize = (0..index.groups().count())
            .map(|at| {
                index.read(at, &mut group).expect("it can be read");
                group.len()
            })
            .sum();
        assert_eq!((all, taken), (bytes.len(), bytes.len()));
    }
}

/// Writes the bytes to this thread's file.
fn file(bytes: &[u8]) -> PathBuf {
    thread_local! {
        static DIR: tempfile::TempDir = tempfile::tempdir_in(super::imports::memory()).expect("a directory");
    }
    DIR.with(|dir| {
        let path = dir.path().join("raw.utb");
        std::fs::write(&path, bytes).expect("room for a file");
        path
    })
}
