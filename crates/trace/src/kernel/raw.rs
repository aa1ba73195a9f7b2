//! What the sources said, as it is kept while the program runs: cheap to write,
//! safe to tear. Sorted and put together only when the recording has ended.
//!
//! The file is a sequence of blocks: magic `UTK1`, CRC-32 of what follows, number
//! of records, then records of 32 bytes, little-endian.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::TraceError;

/// The file's name, while there is one.
pub(crate) const RAW_KERNEL_FILE: &str = "kernel.utk";
/// What a flight recorder has beside it: the records before.
const OLDER_KERNEL_FILE: &str = "kernel-older.utk";
/// Most that a flight recorder has in one of them: half a million records.
pub(crate) const MOST_LAST_BYTES: u64 = 16 << 20;

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
    path: PathBuf,
    file: File,
    body: Vec<u8>,
    /// Of a flight recorder, which keeps the last ones.
    last: Option<Last>,
    /// The first thing that went wrong; nothing is written after it.
    failed: Option<io::Error>,
}

impl Writer {
    /// A new file.
    pub(crate) fn create(path: &Path) -> Result<Self, TraceError> {
        let file = File::create_new(path).map_err(TraceError::io(path, "cannot create"))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            body: Vec::with_capacity(BLOCK_RECORDS * RECORD_BYTES),
            last: None,
            failed: None,
        })
    }

    /// From here on the last records are kept, and no file grows beyond a bound.
    pub(crate) fn keep_the_last(self, most_bytes: u64) -> Self {
        let last = Some(Last {
            most_bytes,
            ..Last::default()
        });
        Self { last, ..self }
    }

    pub(crate) fn push(&mut self, record: &Record) {
        if let Some(last) = &mut self.last {
            last.learn(record);
        }
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
        if let Some(last) = &mut self.last {
            last.bytes += block.len() as u64;
            if last.bytes >= last.most_bytes && self.failed.is_none() {
                self.failed = self.begin_anew().err();
            }
        }
    }

    /// The file becomes the older one; the new one begins with what must be known of
    /// what went before.
    fn begin_anew(&mut self) -> io::Result<()> {
        let older = self.path.with_file_name(OLDER_KERNEL_FILE);
        std::fs::rename(&self.path, older)?;
        self.file = File::create_new(&self.path)?;
        if let Some(last) = &mut self.last {
            last.bytes = 0;
            last.known(|record| record.put(&mut self.body));
        }
        Ok(())
    }

    /// Writes the rest; says what went wrong, if anything did.
    pub(crate) fn finish(mut self) -> Option<io::Error> {
        self.flush();
        self.failed
    }
}

/// What a file of the last records must begin with.
#[derive(Debug, Default)]
struct Last {
    /// Most in one file.
    most_bytes: u64,
    bytes: u64,
    /// Process by thread: those that are the program's.
    threads: BTreeMap<i32, i32>,
    anchor: Option<Record>,
    /// Times of the last two rounds: what comes is hardly ever older than the first.
    rounds: [u64; 2],
}

impl Last {
    fn learn(&mut self, record: &Record) {
        match record.what {
            What::Round => self.rounds = [self.rounds[1], record.time],
            What::Anchor => self.anchor = Some(*record),
            What::Exec => {
                self.threads.insert(record.tid, record.tid);
            }
            What::NewTask => {
                let maker = self.threads.get(&record.pid).copied();
                if let Some(maker) = maker {
                    let process = if record.a == 1 { maker } else { record.tid };
                    self.threads.insert(record.tid, process);
                }
            }
            What::Exit => {
                self.threads.remove(&record.tid);
            }
            _ => {}
        }
    }

    fn known(&self, mut put: impl FnMut(&Record)) {
        let time = self.rounds[0];
        put(&Record::new(What::Round, time));
        self.anchor.iter().for_each(&mut put);
        let processes: BTreeSet<i32> = self.threads.values().copied().collect();
        for process in processes {
            put(&Record {
                pid: process,
                tid: process,
                ..Record::new(What::Exec, time)
            });
        }
        for (&tid, &pid) in self.threads.iter().filter(|(tid, pid)| tid != pid) {
            put(&Record {
                pid,
                tid,
                a: 1,
                ..Record::new(What::NewTask, time)
            });
        }
    }
}

/// The files of a trace, the older one first; those that are there.
fn files(trace: &Path) -> [PathBuf; 2] {
    [OLDER_KERNEL_FILE, RAW_KERNEL_FILE].map(|file| trace.join(file))
}

/// Copies what a recorder that goes on has written into one file of another trace. (If the
/// files change their places just then, the older records are missing.)
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn copy(trace: &Path, out: &Path) -> Result<(), TraceError> {
    let [older, newer] = files(trace);
    if !newer.exists() {
        return Ok(());
    }
    let path = out.join(RAW_KERNEL_FILE);
    let put = || -> io::Result<()> {
        let mut to = BufWriter::with_capacity(1 << 18, File::create_new(&path)?);
        let inode = |path: &Path| std::fs::metadata(path).map_or(0, |about| about.ino());
        let before = inode(&older);
        copy_blocks(&older, &mut to)?;
        if inode(&older) == before {
            copy_blocks(&newer, &mut to)?;
        }
        to.flush()
    };
    put().map_err(TraceError::io(&path, "cannot write"))
}

/// Makes room for the file of a recorder that goes on: what there is comes before it.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn set_aside(trace: &Path) -> Result<(), TraceError> {
    join(trace)?;
    let [older, newer] = files(trace);
    match std::fs::rename(&newer, older) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(TraceError::io(&newer, "cannot rename")(error))
        }
        _ => Ok(()),
    }
}

/// Puts the files together into one.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn join(trace: &Path) -> Result<(), TraceError> {
    let [older, newer] = files(trace);
    if !older.exists() {
        return Ok(());
    }
    let new = trace.join("kernel.utk.new");
    let put = || -> io::Result<()> {
        let mut to = BufWriter::with_capacity(1 << 18, File::create(&new)?);
        for path in [&older, &newer] {
            copy_blocks(path, &mut to)?;
        }
        to.flush()?;
        std::fs::rename(&new, &newer)?;
        std::fs::remove_file(&older)
    };
    put().map_err(TraceError::io(&newer, "cannot write"))
}

/// A recorder that was killed may have left a block that is not whole.
fn copy_blocks(path: &Path, to: &mut impl Write) -> io::Result<()> {
    let mut from = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => BufReader::with_capacity(1 << 18, opened?),
    };
    let mut block = Vec::new();
    loop {
        block.clear();
        (&mut from)
            .take(HEADER_BYTES as u64)
            .read_to_end(&mut block)?;
        let Some(records) = block.get(8..HEADER_BYTES) else {
            return Ok(());
        };
        let records = u32::from_le_bytes(records.try_into().expect("four bytes")) as usize;
        let body = records.min(MOST_RECORDS) * RECORD_BYTES;
        (&mut from).take(body as u64).read_to_end(&mut block)?;
        if block.len() < HEADER_BYTES + body {
            return Ok(());
        }
        to.write_all(&block)?;
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
        let file = crate::input::open_if_there(path)?;
        Ok(file.map(|file| Self {
            file: BufReader::with_capacity(1 << 18, file),
            block: Vec::new().into_iter(),
            torn: false,
        }))
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

    /// 200 000 records of 32 bytes and room for twice 64 KiB: the last ones are there, and
    /// before them whose threads they are.
    #[test]
    fn the_last_records_are_kept_and_what_must_be_known_of_those_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(RAW_KERNEL_FILE);
        let most = 64 << 10;
        let mut writer = Writer::create(&path).unwrap().keep_the_last(most);
        let of = |what, pid, tid, a, time| Record {
            pid,
            tid,
            a,
            ..Record::new(what, time)
        };
        let early = [
            of(What::Exec, 10, 10, 0, 1),
            of(What::NewTask, 10, 11, 1, 2),
            of(What::NewTask, 11, 12, 1, 3),
            of(What::NewTask, 12, 20, 0, 4), // a process of its own
            of(What::NewTask, 20, 21, 1, 5),
            of(What::Exit, 10, 11, 0, 6),
            of(What::NewTask, 99, 98, 1, 7), // nobody's
            of(What::Anchor, 0, 0, 0, 8),
        ];
        early.iter().for_each(|record| writer.push(record));
        let all = 200_000;
        for i in 0..all {
            if i % 1000 == 0 {
                writer.push(&Record::new(What::Round, 100 + i));
                writer.flush();
            }
            writer.push(&Record::new(What::Fault, 100 + i));
        }
        assert!(writer.finish().is_none());
        let bytes = |file| std::fs::metadata(dir.path().join(file)).unwrap().len();
        // A block more than the bound, in each.
        assert!(bytes(RAW_KERNEL_FILE) + bytes(OLDER_KERNEL_FILE) < 2 * (most + 33_000));
        let out = tempfile::tempdir().unwrap();
        copy(dir.path(), out.path()).unwrap();
        join(dir.path()).unwrap();
        assert!(!dir.path().join(OLDER_KERNEL_FILE).exists());
        let read = |dir: &Path| -> Vec<Record> {
            let mut reader = Reader::open(&dir.join(RAW_KERNEL_FILE)).unwrap().unwrap();
            let all = reader.by_ref().collect();
            assert!(!reader.torn);
            all
        };
        let records = read(dir.path());
        assert_eq!(records, read(out.path()));
        let faults: Vec<u64> = (records.iter())
            .filter(|record| record.what == What::Fault)
            .map(|record| record.time)
            .collect();
        assert!(faults.len() as u64 > most / 32, "{}", faults.len());
        assert!(
            faults
                .iter()
                .copied()
                .eq(100 + all - faults.len() as u64..100 + all)
        );
        let first = faults[0];
        let known: Vec<_> = (records.iter())
            .take_while(|record| record.what != What::Fault)
            .inspect(|record| assert!(record.time <= first, "{record:?} {first}"))
            .map(|record| (record.what, record.pid, record.tid, record.a))
            .collect();
        let expected = [
            (What::Round, 0, 0, 0),
            (What::Anchor, 0, 0, 0),
            (What::Exec, 10, 10, 0),
            (What::Exec, 20, 20, 0),
            (What::NewTask, 10, 12, 1),
            (What::NewTask, 20, 21, 1),
        ];
        assert_eq!(known[..6], expected);
    }
}
