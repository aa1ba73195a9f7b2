//! Analyses raw blocks as they are: no rows are made of those that the palette matcher can take.

use undertick_format::block::{BlockHeader, Next};
use undertick_format::palette_block::PaletteBlock;
use undertick_format::rows::Rows;

use crate::error::Error;
use crate::shard::Worker;

/// Buffers for decoding blocks.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The blocks of a row group.
    pub(crate) blocks: Vec<u8>,
    palette_block: PaletteBlock,
    rows: Rows,
}

/// Rows that the general path gets where the faster one cannot continue: to restart costs as much
/// as some tens of rows.
const HANDED_OVER: usize = 64;

/// Passes the blocks of a row group to a worker, in order. `on_block` receives the number of
/// records of each, and returns whether to go on. Returns whether all blocks could be decoded.
///
/// # Errors
/// More rings than a trace can have.
pub(crate) fn push_blocks(
    worker: &mut Worker,
    buffers: &mut Buffers,
    mut on_block: impl FnMut(u64) -> bool,
) -> Result<bool, Error> {
    let Buffers {
        blocks,
        palette_block,
        rows,
    } = buffers;
    let mut blocks = &blocks[..];
    while !blocks.is_empty() {
        let (header, bytes) = match palette_block.decode_checked(blocks) {
            Some((header, bytes)) => {
                push_palette(worker, header, palette_block, rows)?;
                (header, bytes)
            }
            None => {
                rows.clear();
                let Next::Block(header, bytes) = rows.push_block(blocks).0 else {
                    return Ok(false);
                };
                worker.push_rows(header, &rows.of_ring())?;
                (header, bytes)
            }
        };
        blocks = &blocks[bytes..];
        if !on_block(u64::from(header.records)) {
            break;
        }
    }
    Ok(true)
}

/// Passes a block to the palette matcher, and to the general path where that cannot continue.
fn push_palette(
    worker: &mut Worker,
    header: BlockHeader,
    palette_block: &PaletteBlock,
    rows: &mut Rows,
) -> Result<(), Error> {
    let n = palette_block.ts().len();
    let mut at = worker.push_palette_block(header, palette_block, 0)?;
    let mut handed_over = HANDED_OVER;
    while at < n {
        let to = n.min(at + handed_over);
        rows.clear();
        rows.push_palette_block(header, palette_block, at..to);
        worker.push_rows(header, &rows.of_ring())?;
        at = worker.push_palette_block(header, palette_block, to)?;
        // If that did not help this time it is unlikely to help next time.
        handed_over *= if at - to < HANDED_OVER { 2 } else { 1 };
    }
    Ok(())
}

#[cfg(test)]
mod tests;
