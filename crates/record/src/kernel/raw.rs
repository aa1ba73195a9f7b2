//! The file in which the sources' records are kept while the program runs: cheap to write, and
//! valid when torn. The records are sorted and combined only when the recording has ended.
//!
//! The file is a sequence of blocks: magic `UTK1`, CRC-32 of what follows, number
//! of records, then records of 32 bytes, little-endian.

mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use undertick_format::TraceError;

use crate::trace_dir::TraceDir;
pub(crate) use record::{Record, RecordKind};

/// The file's name, while there is one.
pub(crate) const RAW_KERNEL_FILE: &str = "kernel.utk";
/// The second file of a flight recorder, with the earlier records.
const OLDER_KERNEL_FILE: &str = "kernel-older.utk";
/// Largest size of each file of a flight recorder: half a million records.
pub(crate) const MOST_LAST_BYTES: u64 = 16 << 20;

const MAGIC: u32 = u32::from_le_bytes(*b"UTK1");
const HEADER_BYTES: usize = 12;
const RECORD_BYTES: usize = 32;
/// Records that are collected before they are written.
const BLOCK_RECORDS: usize = 4096;
/// Most records that a block read back may have.
const MOST_RECORDS: usize = 1 << 16;
/// Most names that a flight recorder takes into its next file.
const MOST_NAMES: usize = 1 << 12;

/// Writes records.
#[derive(Debug)]
pub(crate) struct Writer {
    trace: TraceDir,
    file: File,
    body: Vec<u8>,
    /// The state of a flight recorder, which keeps the last records.
    last: Option<Last>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

impl Writer {
    /// Creates the file of a trace, which has none yet.
    pub(crate) fn create(trace: &TraceDir) -> Result<Self, TraceError> {
        let file = (trace.create_new(RAW_KERNEL_FILE)).map_err(TraceError::io(
            &trace.join(RAW_KERNEL_FILE),
            "cannot create",
        ))?;
        Ok(Self {
            trace: trace.clone(),
            file,
            body: Vec::with_capacity(BLOCK_RECORDS * RECORD_BYTES),
            last: None,
            failed: None,
        })
    }

    /// Makes the writer keep only the last records, in files of bounded size.
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

    /// Writes the collected records as a block.
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

    /// Makes the file the older one. The new one begins with what readers must know of the
    /// records before.
    fn begin_anew(&mut self) -> io::Result<()> {
        self.trace.rename(RAW_KERNEL_FILE, OLDER_KERNEL_FILE)?;
        self.file = self.trace.create_new(RAW_KERNEL_FILE)?;
        if let Some(last) = &mut self.last {
            last.bytes = 0;
            last.known(|record| record.put(&mut self.body));
        }
        Ok(())
    }

    /// Writes the rest; returns the error, if there was one.
    pub(crate) fn finish(mut self) -> Option<io::Error> {
        self.flush();
        self.failed
    }
}

/// What a file of the last records must begin with.
#[derive(Debug, Default)]
struct Last {
    /// Largest size of one file, bytes.
    most_bytes: u64,
    bytes: u64,
    /// Process by thread, for the program's threads.
    threads: BTreeMap<i32, i32>,
    anchor: Option<Record>,
    /// Names of threads of other programs.
    names: BTreeMap<i32, Record>,
    /// Times of the last two rounds: new records are hardly ever older than the first.
    rounds: [u64; 2],
}

impl Last {
    fn learn(&mut self, record: &Record) {
        match record.kind {
            RecordKind::Round => self.rounds = [self.rounds[1], record.time],
            RecordKind::Anchor => self.anchor = Some(*record),
            RecordKind::Name if self.names.len() < MOST_NAMES => {
                self.names.insert(record.tid, *record);
            }
            RecordKind::Exec => {
                self.threads.insert(record.tid, record.tid);
            }
            RecordKind::NewTask => {
                let maker = self.threads.get(&record.pid).copied();
                if let Some(maker) = maker {
                    let process = if record.a == 1 { maker } else { record.tid };
                    self.threads.insert(record.tid, process);
                }
            }
            RecordKind::Exit => {
                self.threads.remove(&record.tid);
            }
            _ => {}
        }
    }

    fn known(&self, mut put: impl FnMut(&Record)) {
        let time = self.rounds[0];
        put(&Record::new(RecordKind::Round, time));
        self.anchor.iter().for_each(&mut put);
        for name in self.names.values() {
            put(&Record { time, ..*name });
        }
        let processes: BTreeSet<i32> = self.threads.values().copied().collect();
        for process in processes {
            put(&Record {
                pid: process,
                tid: process,
                ..Record::new(RecordKind::Exec, time)
            });
        }
        for (&tid, &pid) in self.threads.iter().filter(|(tid, pid)| tid != pid) {
            put(&Record {
                pid,
                tid,
                a: 1,
                ..Record::new(RecordKind::NewTask, time)
            });
        }
    }
}

/// The files of a trace, the older one first.
const FILES: [&str; 2] = [OLDER_KERNEL_FILE, RAW_KERNEL_FILE];
/// Name of the joined file, while it is written.
const NEW_FILE: &str = "kernel.utk.new";

/// Waits until a running recorder has written what the kernel's events say up to now: two rounds, since
/// the first may have begun before. Gives up after a while, as the recorder may be gone.
pub(crate) fn await_rounds(trace: &TraceDir) {
    const LOOK_EVERY: Duration = Duration::from_millis(1);
    const MOST: u32 = 200;
    let [_, newer] = FILES;
    let now = || {
        let about = trace.read(newer).and_then(|file| file.metadata()).ok()?;
        Some((about.ino(), about.len()))
    };
    let (mut before, mut rounds) = (now(), 0);
    for _ in 0..MOST {
        if before.is_none() || rounds == 2 {
            return;
        }
        std::thread::sleep(LOOK_EVERY);
        let then = std::mem::replace(&mut before, now());
        rounds += u32::from(then != before);
    }
}

/// Copies what a running recorder has written into one file of another trace. (If the files are
/// swapped at that moment, the older records are missing.)
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn copy(trace: &TraceDir, out: &TraceDir) -> Result<(), TraceError> {
    let [older, newer] = FILES;
    if !trace.has(newer) {
        return Ok(());
    }
    let put = || -> io::Result<()> {
        let mut to = BufWriter::with_capacity(1 << 18, out.create_new(RAW_KERNEL_FILE)?);
        let inode = || {
            let file = trace.read(older).and_then(|file| file.metadata());
            file.map_or(0, |about| about.ino())
        };
        let before = inode();
        copy_blocks(trace, older, &mut to)?;
        if inode() == before {
            copy_blocks(trace, newer, &mut to)?;
        }
        to.flush()
    };
    put().map_err(TraceError::io(&out.join(RAW_KERNEL_FILE), "cannot write"))
}

/// Moves the existing records aside for a recorder that resumes; they precede its own.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn set_aside(trace: &TraceDir) -> Result<(), TraceError> {
    join(trace)?;
    let [older, newer] = FILES;
    match trace.rename(newer, older) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(TraceError::io(&trace.join(newer), "cannot rename")(error))
        }
        _ => Ok(()),
    }
}

/// Joins the files into one.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn join(trace: &TraceDir) -> Result<(), TraceError> {
    let [older, newer] = FILES;
    if !trace.has(older) {
        return Ok(());
    }
    let put = || -> io::Result<()> {
        let mut to = BufWriter::with_capacity(1 << 18, trace.create(NEW_FILE)?);
        for name in FILES {
            copy_blocks(trace, name, &mut to)?;
        }
        to.flush()?;
        trace.rename(NEW_FILE, newer)?;
        trace.remove(older);
        Ok(())
    };
    put().map_err(TraceError::io(&trace.join(newer), "cannot write"))
}

/// Copies the whole blocks of a file, up to the first torn one: a recorder that was killed may
/// have left one, and a file from elsewhere may hold anything.
fn copy_blocks(trace: &TraceDir, name: &str, to: &mut impl Write) -> io::Result<()> {
    let mut from = match trace.read(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => BufReader::with_capacity(1 << 18, opened?),
    };
    let mut block = Vec::new();
    while next_block(&mut from, &mut block)? == Next::Whole {
        to.write_all(&block)?;
    }
    Ok(())
}

/// The next item in a file of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Whole,
    /// Nothing.
    End,
    /// Bytes that are not a whole block.
    Torn,
}

/// Reads the next block, header and records, into `block` and replaces its content.
fn next_block(from: &mut impl Read, block: &mut Vec<u8>) -> io::Result<Next> {
    block.clear();
    (&mut *from).take(HEADER_BYTES as u64).read_to_end(block)?;
    if block.len() < HEADER_BYTES {
        return Ok(if block.is_empty() {
            Next::End
        } else {
            Next::Torn
        });
    }
    let word = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("4"));
    let (magic, checksum, records) = (word(0), word(4), word(8) as usize);
    if magic != MAGIC || records > MOST_RECORDS {
        return Ok(Next::Torn);
    }
    let body = records * RECORD_BYTES;
    (&mut *from).take(body as u64).read_to_end(block)?;
    let mut checked = crc32fast::Hasher::new();
    checked.update(&block[8..]);
    let is_whole = block.len() == HEADER_BYTES + body && checked.finalize() == checksum;
    Ok(if is_whole { Next::Whole } else { Next::Torn })
}

/// Reads records back, up to the first block that is torn.
pub(crate) struct Reader {
    file: BufReader<File>,
    block: std::vec::IntoIter<Record>,
    /// Bytes were left that are not a block.
    pub(crate) torn: bool,
}

impl Reader {
    /// Opens the file of a trace; `None` if it has none.
    pub(crate) fn of_trace(trace: &TraceDir) -> Result<Option<Self>, TraceError> {
        let file = trace.read_if_there(RAW_KERNEL_FILE)?;
        Ok(file.map(|file| Self {
            file: BufReader::with_capacity(1 << 18, file),
            block: Vec::new().into_iter(),
            torn: false,
        }))
    }

    fn next_block(&mut self) -> Option<Vec<Record>> {
        let mut block = Vec::new();
        match next_block(&mut self.file, &mut block) {
            Ok(Next::Whole) => {}
            Ok(Next::End) => return None,
            Ok(Next::Torn) | Err(_) => return self.tear(),
        }
        let body = &block[HEADER_BYTES..];
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
mod tests;
