//! The order in which raw blocks are read and become Parquet: ring by ring.
//!
//! Threads write in parallel, so the blocks of their rings are interleaved. Readers of a trace
//! want each thread by itself. Then threads are matched and counted on any number of CPUs or
//! machines, and no row is sent from one to another.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::TraceError;
use crate::block;
use crate::groups::RowGroup;

/// Rows in a row group, which one thread decodes and encodes. It holds the raw blocks and the
/// encoded columns, up to 30 MB.
const GROUP_ROWS: usize = 1 << 19;
/// From this number of rows on, a row group ends where a ring ends. So small rings share a row
/// group, and a large ring starts one.
const ENOUGH_ROWS: usize = 1 << 16;
/// A row group ends at this size, whatever blocks say of their records: no collector writes more than
/// 9 MB for the most rows.
const MOST_GROUP_BYTES: usize = 32 << 20;
/// Most blocks sorted at a time, 32 bytes each. A larger file is sorted in parts; then readers
/// find the same ring in several places, and treat the whole as one shard.
const MOST_BLOCKS: usize = 1 << 22;

/// The position of a block.
#[derive(Clone, Copy, Debug)]
struct BlockPosition {
    ring: u32,
    bytes: u32,
    records: u32,
    file: u32,
    offset: u64,
}

impl BlockPosition {
    /// Whether the other block begins where this one ends.
    fn ends_where_begins(&self, other: &Self) -> bool {
        (self.file, self.offset + u64::from(self.bytes)) == (other.file, other.offset)
    }
}

/// Blocks of raw files, collected for one row group at a time.
#[derive(Debug)]
pub struct RawGroups {
    files: Vec<(PathBuf, File)>,
    size: u64,
    /// Sorted positions of blocks, and how many of them are used.
    positions: Vec<BlockPosition>,
    taken: usize,
    /// What follows has not been examined yet: the file, and the offset in it.
    seen: (usize, u64),
    done: u64,
    most_blocks: usize,
    /// How often blocks were sorted.
    times: usize,
    /// The end of the files, or of the undamaged blocks, has been reached.
    over: bool,
    /// There were bytes that are not a block; what follows them is left out.
    pub damaged: bool,
}

impl RawGroups {
    /// Opens a raw file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        Self::from_files(vec![(path.to_owned(), crate::input::open(path)?)])
    }

    /// Makes the groups of opened files, one after the other.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn from_files(files: Vec<(PathBuf, File)>) -> Result<Self, TraceError> {
        let mut size = 0;
        for (path, file) in &files {
            let metadata = file.metadata();
            size += metadata
                .map_err(TraceError::io(path, "cannot look at"))?
                .len();
        }
        Ok(Self {
            files,
            size,
            positions: Vec::new(),
            taken: 0,
            seen: (0, 0),
            done: 0,
            most_blocks: MOST_BLOCKS,
            times: 0,
            over: false,
            damaged: false,
        })
    }

    /// Whether the pieces so far, taken together, are in the order of rings.
    #[must_use]
    pub fn is_by_ring(&self) -> bool {
        self.times <= 1
    }

    /// The share of the file in the pieces so far, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.done as f64 / self.size.max(1) as f64
    }

    /// Puts the blocks of the next row group into `piece`, replacing its content; returns whether
    /// there are any: none at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_group(&mut self, piece: &mut Vec<u8>) -> Result<bool, TraceError> {
        if self.taken == self.positions.len() {
            self.look_on()?;
        }
        let first = self.taken;
        self.taken = end_of_group(&self.positions, first);
        read_blocks(&self.files, &self.positions[first..self.taken], piece)?;
        self.done += piece.len() as u64;
        Ok(!piece.is_empty())
    }

    /// Finds the next blocks and sorts them.
    fn look_on(&mut self) -> Result<(), TraceError> {
        self.positions.clear();
        self.taken = 0;
        while !self.over && self.positions.len() < self.most_blocks {
            let at_its_end = self.look_in_file()?;
            if at_its_end {
                self.seen = (self.seen.0 + 1, 0);
                self.over |= self.seen.0 == self.files.len();
            }
        }
        // Stable: the blocks of a ring keep their order.
        self.positions.sort_by_key(|position| position.ring);
        self.times += usize::from(!self.positions.is_empty());
        Ok(())
    }

    /// Finds the next blocks of one file; returns whether that was all of it.
    fn look_in_file(&mut self) -> Result<bool, TraceError> {
        let (index, mut offset) = self.seen;
        let Some((path, file)) = self.files.get(index) else {
            return Ok(true);
        };
        let failed = || TraceError::io(path, "cannot read");
        let mut window = Window::new(file, offset);
        let mut at_its_end = false;
        while !at_its_end && self.positions.len() < self.most_blocks {
            let head = window.at_least(block::HEADER_BYTES).map_err(failed())?;
            let bytes = block::extent(head).map_or(0, |(bytes, _)| bytes);
            match block::check(window.at_least(bytes).map_err(failed())?) {
                block::Next::Block(header, bytes) => {
                    self.positions.push(BlockPosition {
                        ring: header.ring,
                        bytes: bytes as u32,
                        records: header.records,
                        file: index as u32,
                        offset,
                    });
                    offset += bytes as u64;
                    window.pass(bytes);
                }
                block::Next::End => at_its_end = true,
                block::Next::Damaged => (at_its_end, self.damaged) = (true, true),
            }
        }
        self.seen = (index, offset);
        Ok(at_its_end)
    }
}

/// The end of the row group that begins with the block `first`.
fn end_of_group(positions: &[BlockPosition], first: usize) -> usize {
    let (mut rows, mut bytes) = (0, 0);
    let mut end = first;
    while let Some(position) = positions.get(end) {
        let ring_ends = end > 0 && positions[end - 1].ring != position.ring;
        if rows >= GROUP_ROWS || bytes >= MOST_GROUP_BYTES || (rows >= ENOUGH_ROWS && ring_ends) {
            break;
        }
        rows += position.records as usize;
        bytes += position.bytes as usize;
        end += 1;
    }
    end
}

/// Reads these blocks into `piece`, replacing its content.
fn read_blocks(
    files: &[(PathBuf, File)],
    positions: &[BlockPosition],
    piece: &mut Vec<u8>,
) -> Result<(), TraceError> {
    let length = |positions: &[BlockPosition]| -> usize {
        positions
            .iter()
            .map(|position| position.bytes as usize)
            .sum()
    };
    // Not cleared first: the old content is overwritten, and need not be zeroed.
    piece.resize(length(positions), 0);
    let mut rest = &mut piece[..];
    for adjacent in positions.chunk_by(BlockPosition::ends_where_begins) {
        let (these, others) = rest.split_at_mut(length(adjacent));
        let (path, file) = &files[adjacent[0].file as usize];
        (file.read_exact_at(these, adjacent[0].offset))
            .map_err(TraceError::io(path, "cannot read"))?;
        rest = others;
    }
    Ok(())
}

/// The blocks of one file, in row groups that can be read in any order.
#[derive(Debug)]
pub struct RawIndex {
    files: Vec<(PathBuf, File)>,
    positions: Vec<BlockPosition>,
    /// Ranges of the positions.
    groups: Vec<Range<usize>>,
}

impl RawIndex {
    /// Finds and checks all blocks of a file.
    ///
    /// # Errors
    /// The file cannot be read, is not made of blocks from its beginning to its end, or has more
    /// of them than are sorted at once.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let mut found = RawGroups::open(path)?;
        found.look_on()?;
        let positions = found.positions;
        let bytes: u64 = positions.iter().map(|of| u64::from(of.bytes)).sum();
        if found.damaged || bytes != found.size {
            return Err(TraceError::damaged(
                path,
                format!(
                    "only {bytes} of {} bytes are whole blocks, or there are more than {MOST_BLOCKS} blocks; restore it from a copy",
                    found.size
                ),
            ));
        }
        let mut groups = Vec::new();
        let mut first = 0;
        while first < positions.len() {
            let end = end_of_group(&positions, first);
            groups.push(first..end);
            first = end;
        }
        Ok(Self {
            files: found.files,
            positions,
            groups,
        })
    }

    /// Returns the smallest and the largest ring of each row group, and its records: at least as
    /// many as it has rows.
    pub fn groups(&self) -> impl Iterator<Item = RowGroup> + '_ {
        self.groups.iter().map(|group| {
            let blocks = &self.positions[group.clone()];
            let ring = |block: &BlockPosition| i32::try_from(block.ring).ok();
            let rings = ring(&blocks[0]).zip(ring(&blocks[blocks.len() - 1]));
            let records = blocks.iter().map(|block| u64::from(block.records)).sum();
            (rings, records)
        })
    }

    /// Puts the blocks of a row group into `blocks`, replacing its content.
    ///
    /// # Errors
    /// The file cannot be read.
    ///
    /// # Panics
    /// There is no such row group.
    pub fn read(&self, group: usize, blocks: &mut Vec<u8>) -> Result<(), TraceError> {
        read_blocks(
            &self.files,
            &self.positions[self.groups[group].clone()],
            blocks,
        )
    }

    /// The file, opened again.
    ///
    /// # Errors
    /// There is no room for another descriptor.
    pub(crate) fn files(&self) -> Result<Vec<(PathBuf, File)>, TraceError> {
        let again = |(path, file): &(PathBuf, File)| {
            let file = file
                .try_clone()
                .map_err(TraceError::io(path, "cannot open"))?;
            Ok((path.clone(), file))
        };
        self.files.iter().map(again).collect()
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.files[0].0
    }
}

/// Bytes read at a time, so that they are still in the cache when they are examined.
const WINDOW_BYTES: usize = 256 << 10;

/// A part of a file, examined in the buffer into which it was read.
struct Window<'a> {
    file: &'a File,
    bytes: Vec<u8>,
    /// The range of the buffer in use.
    held: Range<usize>,
    /// Offset in the file at which that range begins.
    offset: u64,
}

impl<'a> Window<'a> {
    fn new(file: &'a File, offset: u64) -> Self {
        Self {
            file,
            bytes: vec![0; WINDOW_BYTES],
            held: 0..0,
            offset,
        }
    }

    /// The bytes that follow: at least `bytes`, or all that there are.
    fn at_least(&mut self, bytes: usize) -> io::Result<&[u8]> {
        if self.held.len() < bytes {
            self.bytes.copy_within(self.held.clone(), 0);
            self.held = 0..self.held.len();
            if self.bytes.len() < bytes {
                self.bytes.resize(bytes, 0);
            }
        }
        while self.held.len() < bytes {
            let at = self.offset + self.held.len() as u64;
            match self.file.read_at(&mut self.bytes[self.held.end..], at) {
                Ok(0) => break,
                Ok(read) => self.held.end += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(&self.bytes[self.held.clone()])
    }

    /// Skips these bytes.
    fn pass(&mut self, bytes: usize) {
        self.held.start += bytes;
        self.offset += bytes as u64;
    }
}

#[cfg(test)]
mod tests;
