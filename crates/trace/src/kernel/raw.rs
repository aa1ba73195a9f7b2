//! What the sources said, as it is kept while the program runs: cheap to write,
//! safe to tear. Sorted and put together only when the recording has ended.
//!
//! The file is a sequence of blocks: magic `UTK1`, CRC-32 of what follows, number
//! of records, then records of 32 bytes, little-endian.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use crate::TraceError;

/// The file's name, while there is one.
pub(crate) const RAW_KERNEL_FILE: &str = "kernel.utk";

const MAGIC: u32 = u32::from_le_bytes(*b"UTK1");
const HEADER_BYTES: usize = 12;
const RECORD_BYTES: usize = 32;
/// Records that are collected before they are written.
const BLOCK_RECORDS: usize = 4096;
/// Most records that a block read back may have.
const MOST_RECORDS: usize = 1 << 16;

/// What a record says. `time` is the source's own clock where [`Record::mapped`],
/// else the trace clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum What {
    /// All records of later rounds are of this time or after it.
    Round = 0,
    /// The clocks at one instant: `time` trace clock, `payload` the source's
    /// clock, ns; `a` the bound, ns.
    Anchor = 1,
    /// perf: thread `tid` of `pid` on the CPU.
    PerfIn = 2,
    /// perf: off it; payload 1 still runnable.
    PerfOut = 3,
    /// perf: `payload` records lost.
    PerfLost = 4,
    /// tracefs: from `tid` in state `a` to `pid`.
    Switch = 5,
    /// tracefs: `pid` (0 an interrupt) wakes `tid`.
    Waking = 6,
    /// tracefs: interrupt `a` on top of `tid` for `payload`.
    Interrupt = 7,
    /// tracefs: softirq `a` on top of `tid` for `payload`.
    SoftInterrupt = 8,
    /// tracefs: page fault of `tid`.
    Fault = 9,
    /// tracefs: the CPU now runs at `payload` kHz.
    Frequency = 10,
    /// tracefs: `pid` made `tid`; `a` 1: a thread of its own process.
    NewTask = 11,
    /// tracefs: `tid` runs a new program.
    Exec = 12,
    /// tracefs: `tid` ends.
    Exit = 13,
    /// tracefs: `payload` records lost, -1 not known how many.
    TracefsLost = 14,
    /// `payload` ns stolen from the CPU.
    Steal = 15,
    /// Ours: measuring points were switched to state `a`, `payload` ticks later at
    /// the latest.
    Epoch = 16,
}

impl What {
    const ALL: [Self; 17] = [
        Self::Round,
        Self::Anchor,
        Self::PerfIn,
        Self::PerfOut,
        Self::PerfLost,
        Self::Switch,
        Self::Waking,
        Self::Interrupt,
        Self::SoftInterrupt,
        Self::Fault,
        Self::Frequency,
        Self::NewTask,
        Self::Exec,
        Self::Exit,
        Self::TracefsLost,
        Self::Steal,
        Self::Epoch,
    ];

    /// Whether perf said it.
    pub(crate) const fn is_perf(self) -> bool {
        matches!(self, Self::PerfIn | Self::PerfOut | Self::PerfLost)
    }

    /// Whether tracefs said it.
    pub(crate) const fn is_tracefs(self) -> bool {
        matches!(self as u8, 5..=14)
    }
}

/// One record; the meaning of the fields is that of [`What`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) what: What,
    /// `time` and durations are nanoseconds of the anchors' clock.
    pub(crate) mapped: bool,
    pub(crate) cpu: i16,
    pub(crate) a: i32,
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    pub(crate) time: u64,
    pub(crate) payload: i64,
}

impl Record {
    /// A record of that kind and time, all else 0.
    pub(crate) const fn new(what: What, time: u64) -> Self {
        Self {
            what,
            mapped: false,
            cpu: -1,
            a: 0,
            tid: 0,
            pid: 0,
            time,
            payload: 0,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.what as u8);
        out.push(u8::from(self.mapped));
        out.extend_from_slice(&self.cpu.to_le_bytes());
        out.extend_from_slice(&self.a.to_le_bytes());
        out.extend_from_slice(&self.tid.to_le_bytes());
        out.extend_from_slice(&self.pid.to_le_bytes());
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&self.payload.to_le_bytes());
    }

    fn get(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let i32_at = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().expect("4"));
        Some(Self {
            what: *What::ALL.get(usize::from(bytes[0]))?,
            mapped: bytes[1] != 0,
            cpu: i16::from_le_bytes([bytes[2], bytes[3]]),
            a: i32_at(4),
            tid: i32_at(8),
            pid: i32_at(12),
            time: u64::from_le_bytes(bytes[16..24].try_into().expect("8")),
            payload: i64::from_le_bytes(bytes[24..32].try_into().expect("8")),
        })
    }
}

/// Writes records.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    body: Vec<u8>,
    /// The first thing that went wrong; nothing is written after it.
    failed: Option<io::Error>,
}

impl Writer {
    /// A new file.
    pub(crate) fn create(path: &Path) -> Result<Self, TraceError> {
        let file = File::create_new(path).map_err(TraceError::io(path, "cannot create"))?;
        Ok(Self {
            file,
            body: Vec::with_capacity(BLOCK_RECORDS * RECORD_BYTES),
            failed: None,
        })
    }

    pub(crate) fn push(&mut self, record: &Record) {
        record.put(&mut self.body);
        if self.body.len() >= BLOCK_RECORDS * RECORD_BYTES {
            self.flush();
        }
    }

    /// Writes what there is as a block.
    pub(crate) fn flush(&mut self) {
        if self.body.is_empty() || self.failed.is_some() {
            return self.body.clear();
        }
        let records = (self.body.len() / RECORD_BYTES) as u32;
        let mut checked = crc32fast::Hasher::new();
        checked.update(&records.to_le_bytes());
        checked.update(&self.body);
        let mut block = Vec::with_capacity(HEADER_BYTES + self.body.len());
        block.extend_from_slice(&MAGIC.to_le_bytes());
        block.extend_from_slice(&checked.finalize().to_le_bytes());
        block.extend_from_slice(&records.to_le_bytes());
        block.append(&mut self.body);
        self.failed = self.file.write_all(&block).err();
    }

    /// Writes the rest; says what went wrong, if anything did.
    pub(crate) fn finish(mut self) -> Option<io::Error> {
        self.flush();
        self.failed
    }
}

/// Reads records back, up to the first block that is not whole.
pub(crate) struct Reader {
    file: BufReader<File>,
    block: std::vec::IntoIter<Record>,
    /// Bytes were left that are no block.
    pub(crate) torn: bool,
}

impl Reader {
    /// `None` if there is no such file.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, TraceError> {
        match File::open(path) {
            Ok(file) => Ok(Some(Self {
                file: BufReader::with_capacity(1 << 18, file),
                block: Vec::new().into_iter(),
                torn: false,
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TraceError::io(path, "cannot open")(error)),
        }
    }

    fn next_block(&mut self) -> Option<Vec<Record>> {
        let mut header = [0; HEADER_BYTES];
        let mut got = 0;
        while got < HEADER_BYTES {
            match self.file.read(&mut header[got..]) {
                Ok(0) => {
                    self.torn |= got > 0;
                    return None;
                }
                Ok(n) => got += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.tear(),
            }
        }
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4"));
        let records = word(8) as usize;
        if word(0) != MAGIC || records > MOST_RECORDS {
            return self.tear();
        }
        let mut body = vec![0; records * RECORD_BYTES];
        if self.file.read_exact(&mut body).is_err() {
            return self.tear();
        }
        let mut checked = crc32fast::Hasher::new();
        checked.update(&header[8..]);
        checked.update(&body);
        if checked.finalize() != word(4) {
            return self.tear();
        }
        let (whole, _) = body.as_chunks::<RECORD_BYTES>();
        Some(whole.iter().filter_map(Record::get).collect())
    }

    fn tear<T>(&mut self) -> Option<T> {
        self.torn = true;
        None
    }
}

impl Iterator for Reader {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            if let Some(record) = self.block.next() {
                return Some(record);
            }
            if self.torn {
                return None;
            }
            self.block = self.next_block()?.into_iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(i: u64) -> Record {
        Record {
            mapped: i.is_multiple_of(2),
            cpu: (i % 300) as i16 - 1,
            a: -(i as i32),
            tid: i as i32 * 3,
            pid: i as i32 * 5,
            payload: -(i as i64) << 33,
            ..Record::new(What::ALL[i as usize % 16], i << 35)
        }
    }

    #[test]
    fn codes_are_places() {
        for (place, what) in What::ALL.into_iter().enumerate() {
            assert_eq!(what as usize, place);
        }
    }

    #[test]
    fn what_was_written_comes_back_and_a_cut_keeps_whole_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k");
        let mut writer = Writer::create(&path).unwrap();
        (0..10_000).for_each(|i| writer.push(&some(i)));
        assert!(writer.finish().is_none());
        let mut reader = Reader::open(&path).unwrap().unwrap();
        let all: Vec<Record> = reader.by_ref().collect();
        assert_eq!(all, (0..10_000).map(some).collect::<Vec<_>>());
        assert!(!reader.torn);

        let bytes = std::fs::read(&path).unwrap();
        let block = HEADER_BYTES + BLOCK_RECORDS * RECORD_BYTES;
        for (cut, whole) in [(0, 0), (5, 0), (block - 1, 0), (block, 1), (block + 3, 1)] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let mut reader = Reader::open(&path).unwrap().unwrap();
            assert_eq!(reader.by_ref().count(), whole * BLOCK_RECORDS, "{cut}");
            assert_eq!(reader.torn, cut % block != 0, "{cut}");
        }
        for at in [0, 5, 9, 100, block - 1] {
            let mut bad = bytes.clone();
            bad[at] ^= 4;
            std::fs::write(&path, &bad).unwrap();
            let mut reader = Reader::open(&path).unwrap().unwrap();
            assert_eq!((reader.by_ref().count(), reader.torn), (0, true), "{at}");
        }
        assert!(Reader::open(&dir.path().join("none")).unwrap().is_none());
    }
}
