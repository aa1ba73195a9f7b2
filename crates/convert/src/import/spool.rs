//! Sorts more records than fit in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use undertick_format::TraceError;

/// A record; its words define its place in the order.
pub(super) type Words = [i64; 7];

const BYTES: usize = size_of::<Words>();
/// Records kept in memory before they are sorted and written: 28 MiB.
const MOST: usize = 1 << 19;
/// Memory of all buffers for reading sorted stretches back, bytes.
const READ_BYTES: usize = 1 << 25;

/// Receives records in any order and returns them in ascending order. Sorted stretches go to one
/// unnamed file, which disappears when it is closed.
pub(super) struct Spool {
    dir: PathBuf,
    file: Option<File>,
    /// The number of records of each stretch, in the order of the file.
    stretches: Vec<u64>,
    tail: Vec<Words>,
    most: usize,
}

impl Spool {
    /// Makes a spool with its file in `dir`.
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            file: None,
            stretches: Vec::new(),
            tail: Vec::new(),
            most: MOST,
        }
    }

    /// The directory of its file.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn len(&self) -> u64 {
        self.stretches.iter().sum::<u64>() + self.tail.len() as u64
    }

    pub(super) fn push(&mut self, record: Words) -> Result<(), TraceError> {
        self.tail.push(record);
        if self.tail.len() >= self.most {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), TraceError> {
        let failed = || TraceError::io(&self.dir, "cannot keep records that are to be sorted");
        self.tail.sort_unstable();
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&self.dir).map_err(failed())?),
        };
        let mut bytes = Vec::with_capacity(self.tail.len() * BYTES);
        for word in self.tail.iter().flatten() {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        file.write_all(&bytes).map_err(failed())?;
        self.stretches.push(self.tail.len() as u64);
        self.tail.clear();
        Ok(())
    }

    /// Returns all records, in order.
    pub(super) fn sorted(mut self) -> Result<Sorted, TraceError> {
        self.tail.sort_unstable();
        let room = (READ_BYTES / BYTES / self.stretches.len().max(1)).clamp(64, 1 << 14);
        let mut sorted = Sorted {
            dir: self.dir,
            file: self.file,
            tail: self.tail.into_iter(),
            stretches: Vec::new(),
            heap: BinaryHeap::new(),
        };
        let mut next = 0;
        for records in self.stretches {
            sorted.stretches.push(Stretch {
                next,
                end: next + records,
                room,
                read: Vec::new().into_iter(),
            });
            next += records;
        }
        for place in 0..=sorted.stretches.len() {
            sorted.refill(place)?;
        }
        Ok(sorted)
    }
}

/// A sorted stretch of the file.
struct Stretch {
    next: u64,
    end: u64,
    room: usize,
    read: std::vec::IntoIter<Words>,
}

/// Returns records in order.
pub(super) struct Sorted {
    dir: PathBuf,
    file: Option<File>,
    tail: std::vec::IntoIter<Words>,
    stretches: Vec<Stretch>,
    heap: BinaryHeap<Reverse<(Words, usize)>>,
}

impl Sorted {
    /// The next record; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Words>, TraceError> {
        let Some(Reverse((record, place))) = self.heap.pop() else {
            return Ok(None);
        };
        self.refill(place)?;
        Ok(Some(record))
    }

    /// Moves the next record of a stretch, or of those in memory, into the heap.
    fn refill(&mut self, place: usize) -> Result<(), TraceError> {
        let next = match (self.stretches.get_mut(place), &self.file) {
            (Some(stretch), Some(file)) => stretch.next(file).map_err(TraceError::io(
                &self.dir,
                "cannot read records that were sorted",
            ))?,
            _ => self.tail.next(),
        };
        if let Some(record) = next {
            self.heap.push(Reverse((record, place)));
        }
        Ok(())
    }
}

impl Stretch {
    fn next(&mut self, file: &File) -> std::io::Result<Option<Words>> {
        if let Some(record) = self.read.next() {
            return Ok(Some(record));
        }
        let records = self.room.min((self.end - self.next) as usize);
        let mut bytes = vec![0; records * BYTES];
        file.read_exact_at(&mut bytes, self.next * BYTES as u64)?;
        self.next += records as u64;
        let word = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let records = bytes.chunks_exact(BYTES).map(|record| {
            let mut words = [0; BYTES / 8];
            for (to, from) in words.iter_mut().zip(record.chunks_exact(8)) {
                *to = word(from);
            }
            words
        });
        self.read = records.collect::<Vec<_>>().into_iter();
        Ok(self.read.next())
    }
}

#[cfg(test)]
mod tests;
