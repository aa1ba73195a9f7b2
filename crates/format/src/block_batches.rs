//! Reads raw blocks as record batches.

use std::path::Path;

use arrow_array::RecordBatch;

use crate::TraceError;
use crate::block::Next;
use crate::raw_order::RawIndex;
use crate::rows::Rows;

/// Rows in a batch.
pub(crate) const BATCH_ROWS: usize = 1 << 14;

/// Reads raw blocks as batches.
pub(crate) struct BlockBatches<'a> {
    index: &'a RawIndex,
    /// Row groups still to be read.
    groups: std::vec::IntoIter<usize>,
    /// Those of the present row group, and how many bytes of them are decoded.
    blocks: Vec<u8>,
    decoded: usize,
    rows: Rows,
}

impl<'a> BlockBatches<'a> {
    pub(crate) fn new(index: &'a RawIndex, groups: Vec<usize>) -> Self {
        Self {
            index,
            groups: groups.into_iter(),
            blocks: Vec::new(),
            decoded: 0,
            rows: Rows::default(),
        }
    }

    /// Decodes blocks until there are enough rows for a batch, or no more.
    fn read(&mut self) -> Result<(), TraceError> {
        while self.rows.len() < BATCH_ROWS {
            if self.decoded == self.blocks.len() {
                let Some(next) = self.groups.next() else {
                    return Ok(());
                };
                self.index.read(next, &mut self.blocks)?;
                self.decoded = 0;
            }
            match self.rows.push_block(&self.blocks[self.decoded..]).0 {
                Next::Block(_, bytes) => self.decoded += bytes,
                Next::Damaged | Next::End => {
                    return Err(undecodable(self.index.path()));
                }
            }
        }
        Ok(())
    }
}

impl Iterator for BlockBatches<'_> {
    type Item = Result<RecordBatch, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.read() {
            self.groups = Vec::new().into_iter();
            self.blocks.clear();
            self.decoded = 0;
            self.rows.clear();
            return Some(Err(error));
        }
        (!self.rows.is_empty()).then(|| Ok(self.rows.take()))
    }
}

/// The error of a file with a block that cannot be decoded.
pub(crate) fn undecodable(path: &Path) -> TraceError {
    let what = "a block of events that cannot be decoded; restore it from a copy";
    TraceError::damaged(path, what)
}
