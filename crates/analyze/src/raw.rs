//! Analyses raw blocks directly, before they are finalized: this serves a view of a recording in
//! progress, at a third of the cost of a finalized one.

use std::path::Path;

use undertick_document::Report;
use undertick_format::block::Next;
use undertick_format::manifest::Manifest;
use undertick_format::palette_block::PaletteBlock;
use undertick_format::raw_order::RawGroups;
use undertick_format::rows::Rows;

use crate::analysis::Analysis;
use crate::error::Failed;
use crate::options::Options;
use crate::shard::Worker;

/// Analyses the raw blocks of a recording, on one CPU; `manifest` is that of the recording.
///
/// It takes the blocks that exist: a block that is being written, and what follows bytes that are
/// not a block, are left out. Kernel events are not included.
///
/// # Errors
/// The file cannot be read, or does not support the options.
pub fn analyze_raw(file: &Path, manifest: &Manifest, options: Options) -> Result<Report, Failed> {
    by(file, Analysis::new(manifest, options)?)
}

fn by(file: &Path, mut analysis: Analysis) -> Result<Report, Failed> {
    for _ in 0..analysis.passes() {
        let mut groups = RawGroups::open(file)?;
        let mut worker: Option<Worker> = None;
        let mut room = Room::default();
        while groups.next_group(&mut room.blocks)? {
            // Blocks of a file of that size come in the order of rings.
            let by_ring = groups.is_by_ring();
            let worker = worker.get_or_insert_with(|| analysis.worker(by_ring));
            take(worker, &mut room)?;
        }
        if let Some(worker) = worker {
            analysis.absorb(worker.finish());
        }
        analysis.finish_pass();
    }
    Ok(analysis.finish()?)
}

/// Buffers for decoding blocks.
#[derive(Default)]
struct Room {
    blocks: Vec<u8>,
    palette_block: PaletteBlock,
    rows: Rows,
}

/// Rows that the general path gets where the faster one cannot continue: to restart costs as much
/// as some tens of rows.
const HANDED_OVER: usize = 64;

/// Takes blocks one after the other.
fn take(worker: &mut Worker, room: &mut Room) -> Result<(), Failed> {
    let mut blocks = &room.blocks[..];
    loop {
        let Some((header, bytes)) = room.palette_block.decode_checked(blocks) else {
            room.rows.clear();
            let Next::Block(header, bytes) = room.rows.push_block(blocks).0 else {
                return Ok(());
            };
            worker.push_rows(header, &room.rows.of_ring())?;
            blocks = &blocks[bytes..];
            continue;
        };
        let n = room.palette_block.ts().len();
        let mut at = worker.push_palette_block(header, &room.palette_block, 0)?;
        let mut handed_over = HANDED_OVER;
        while at < n {
            let to = n.min(at + handed_over);
            room.rows.clear();
            room.rows
                .push_palette_block(header, &room.palette_block, at..to);
            worker.push_rows(header, &room.rows.of_ring())?;
            at = worker.push_palette_block(header, &room.palette_block, to)?;
            // If that did not help this time it is unlikely to help next time.
            handed_over *= if at - to < HANDED_OVER { 2 } else { 1 };
        }
        blocks = &blocks[bytes..];
    }
}

#[cfg(test)]
mod tests;
