//! Checks the raw blocks of a large recording, which stay as they are.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use undertick_format::TraceError;
use undertick_format::block::Next;
use undertick_format::palette_block::PaletteBlock;
use undertick_format::raw_order::RawGroups;
use undertick_format::rows::Rows;

use super::{Finalized, each_group};

/// Counts the rows of raw blocks; `None` if they must be encoded: a block is damaged, there are more
/// blocks than are sorted at once, or an event has an impossible time, which encoding drops.
/// `progress` receives the share done, 0 to 1.
pub(super) fn check_blocks(
    raw: Vec<(PathBuf, File)>,
    possible: &RangeInclusive<i64>,
    progress: &mut dyn FnMut(f64),
) -> Result<Option<Finalized>, TraceError> {
    let mut groups = RawGroups::from_files(raw)?;
    let mut all = Finalized {
        by_ring: true,
        ..Finalized::default()
    };
    let check = |blocks: &[u8]| check_group(blocks, possible);
    let mut is_clean = true;
    each_group(&mut groups, check, |group, share| {
        match group {
            Some(group) => all.add(group),
            None => is_clean = false,
        }
        progress(share);
        Ok(is_clean)
    })?;
    let can_stay = is_clean && !groups.damaged && groups.is_by_ring() && groups.share() == 1.0;
    Ok(can_stay.then_some(all))
}

/// Counts the rows of a row group; `None` if there is a damaged block or an impossible time.
fn check_group(mut blocks: &[u8], possible: &RangeInclusive<i64>) -> Option<Finalized> {
    let mut found = Finalized::default();
    let mut palette_block = PaletteBlock::default();
    let mut rows = Rows::default();
    while !blocks.is_empty() {
        let (header, bytes, events, of_block) = match palette_block.decode_checked(blocks) {
            Some((header, bytes)) => {
                let (first, last) = palette_block.span()?;
                if !possible.contains(&first) || !possible.contains(&last) {
                    return None;
                }
                let n = palette_block.ts().len() as u64;
                (header, bytes, n, n)
            }
            None => {
                rows.clear();
                let (Next::Block(header, bytes), events) = rows.push_block(blocks) else {
                    return None;
                };
                if !rows.of_ring().ts.iter().all(|ts| possible.contains(ts)) {
                    return None;
                }
                (header, bytes, events, rows.len() as u64)
            }
        };
        *found.received.entry(header.ring as i32).or_default() += events;
        found.rows += of_block;
        blocks = &blocks[bytes..];
    }
    Some(found)
}

#[cfg(test)]
mod tests;
