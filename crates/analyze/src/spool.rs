//! Sorts more records than fit in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A record; its words define its place in the order.
pub type Words = [i64; 4];

/// Bytes of a record.
const BYTES: usize = size_of::<Words>();
/// Records kept in memory before they are sorted and written to a file: 32 MiB.
const MOST: usize = 1 << 20;

/// A sorted stretch in an unnamed file, which disappears when it is closed.
#[derive(Clone, Debug)]
struct Run(Arc<File>);

/// Receives records in any order and returns them in ascending order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "Vec<Words>", from = "Vec<Words>")]
pub struct Spool {
    runs: Vec<Run>,
    tail: Vec<Words>,
    /// Whether the disk refused a write; then more records are kept in memory.
    refused: bool,
}

impl Spool {
    pub fn push(&mut self, record: Words) {
        self.tail.push(record);
        if self.tail.len() >= MOST && !self.refused {
            self.write_out();
        }
    }

    /// Writes the records out; if the disk refuses, all stay in memory.
    #[cold]
    fn write_out(&mut self) {
        self.tail.sort_unstable();
        match written(&self.tail) {
            Ok(file) => {
                self.runs.push(Run(Arc::new(file)));
                self.tail.clear();
            }
            Err(_) => self.refused = true,
        }
    }

    /// Adds the records of another.
    pub fn append(&mut self, other: Self) {
        self.runs.extend(other.runs);
        for record in other.tail {
            self.push(record);
        }
    }

    /// Returns all records, ascending.
    pub fn sorted(mut self) -> Sorted {
        self.tail.sort_unstable();
        let in_memory = Source::Memory(self.tail.into_iter());
        let files = self.runs.into_iter().map(Source::from_run);
        let mut sources: Vec<Source> = files.chain([in_memory]).collect();
        let next = (sources.iter_mut().enumerate())
            .filter_map(|(i, source)| Some(Reverse((source.next()?, i))))
            .collect();
        Sorted { sources, next }
    }
}

impl From<Spool> for Vec<Words> {
    fn from(spool: Spool) -> Self {
        spool.sorted().collect()
    }
}

impl From<Vec<Words>> for Spool {
    fn from(records: Vec<Words>) -> Self {
        let mut spool = Self::default();
        records.into_iter().for_each(|record| spool.push(record));
        spool
    }
}

fn written(records: &[Words]) -> std::io::Result<File> {
    let mut out = BufWriter::with_capacity(1 << 18, tempfile::tempfile()?);
    for record in records {
        for word in record {
            out.write_all(&word.to_le_bytes())?;
        }
    }
    out.into_inner()
        .map_err(std::io::IntoInnerError::into_error)
}

/// The source of sorted records.
#[derive(Debug)]
enum Source {
    Memory(std::vec::IntoIter<Words>),
    File(BufReader<At>),
}

impl Source {
    fn from_run(run: Run) -> Self {
        Self::File(BufReader::with_capacity(1 << 16, At(run.0, 0)))
    }

    fn next(&mut self) -> Option<Words> {
        match self {
            Self::Memory(records) => records.next(),
            Self::File(reader) => {
                let mut bytes = [0; BYTES];
                // Data just written that cannot be read means a broken disk, not bad input.
                match reader.read_exact(&mut bytes) {
                    Ok(()) => Some(std::array::from_fn(|i| {
                        let word = &bytes[8 * i..8 * i + 8];
                        i64::from_le_bytes(word.try_into().expect("eight bytes"))
                    })),
                    Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => None,
                    Err(e) => panic!("a temporary file cannot be read: {e}"),
                }
            }
        }
    }
}

/// A file that several readers share, each with a separate position.
#[derive(Debug)]
struct At(Arc<File>, u64);

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read_at(buffer, self.1)?;
        self.1 += read as u64;
        Ok(read)
    }
}

/// Returns records in ascending order.
#[derive(Debug)]
pub struct Sorted {
    sources: Vec<Source>,
    next: BinaryHeap<Reverse<(Words, usize)>>,
}

impl Iterator for Sorted {
    type Item = Words;

    fn next(&mut self) -> Option<Words> {
        let Reverse((record, i)) = self.next.pop()?;
        if let Some(next) = self.sources[i].next() {
            self.next.push(Reverse((next, i)));
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests;
