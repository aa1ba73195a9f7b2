//! Drains all rings of a session into a raw file.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use undertick_ring::layout::SEGMENT_BYTES;
use undertick_ring::{Mapped, Memory, Overflow, Reader, Record};

use crate::TraceError;
use crate::block::{self, BlockHeader};
use crate::manifest;
use crate::perturbation::Levels;
use crate::sampled;
use crate::session::{RingMap, Session};

/// Blocks are handed to the writing thread in buffers of this size.
const BUFFER_BYTES: usize = 1 << 20;
/// Buffers that may wait for the disk. Beyond, the rings grow instead.
const BUFFERS: usize = 32;
/// Less than this is left in its ring for a while.
const LITTLE_BYTES: u64 = 64 * 1024;
/// For how long.
const LITTLE_AGE: Duration = Duration::from_millis(10);

/// How often rings are searched for writers that are gone.
const SEARCH_EVERY: Duration = Duration::from_millis(100);
/// Rings asked for whose files are not there are looked for one by one up to so many;
/// beyond, the directory is looked at.
const MOST_LOOKED_FOR: usize = 64;
/// Of rings that were asked for and never made so many numbers are kept.
const MOST_AWAITED: usize = 1 << 16;
/// Warnings about single rings; what comes after is counted.
const MOST_WARNINGS: usize = 100;
/// How often a chunk is copied again that its writer took back meanwhile.
const MOST_COPIES: u32 = 1000;

/// Why nothing more is taken from a ring.
const CUT: &str = "the program cut its file short";

struct Ring {
    map: RingMap,
    reader: Reader<Mapped>,
    received: u64,
    drained: Instant,
    /// Events that could not be written to the disk.
    unwritten: u64,
    abandoned: bool,
    /// What its cells said when recording was switched off.
    sampled: Option<Vec<manifest::Sampled>>,
}

/// Who looks at the records of a recording while they come: whose they are, and the
/// records as they lie in the ring ([`Record::from_words`]), each ring's in its order.
pub type Tap = Box<dyn FnMut(BlockHeader, &[[u64; 2]])>;

/// How far a collection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events kept.
    pub events: u64,
    /// Events lost, all causes.
    pub lost: u64,
    /// Bytes of raw data.
    pub bytes: u64,
    /// Rings open.
    pub rings: usize,
}

/// The collector of one session.
pub struct Collector {
    overflow: Overflow,
    rings: Vec<Ring>,
    /// Ring numbers that were asked for and whose files were not there yet, and when the
    /// directory was last looked at for them.
    awaited: Vec<u32>,
    looked: Instant,
    /// Segments that a ring can have come to.
    most_segments: u32,
    /// Segments that were prepared for rings that are open.
    prepared: u32,
    /// Numbers of the next ring, by control page.
    next_rings: Vec<u32>,
    finished: Vec<manifest::Ring>,
    /// How often sampled spans began, of rings that are finished.
    pub sampled: Vec<manifest::Sampled>,
    records: Vec<[u64; 2]>,
    buffer: Vec<u8>,
    disk: Option<Disk>,
    bytes: u64,
    finished_events: u64,
    finished_lost: u64,
    our_namespace: u32,
    /// When the rings were last searched for writers that are gone.
    searched: Instant,
    /// Who learns from the records which events stay on.
    pub(crate) levels: Option<Levels>,
    /// Who looks at the records while they come.
    pub(crate) tap: Option<Tap>,
    /// What the user must know.
    pub warnings: Vec<String>,
    more_warnings: u64,
}

impl Collector {
    /// A collector that writes raw blocks to `raw`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(session: &Session, raw: &Path) -> Result<Self, TraceError> {
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(raw)
            .map_err(TraceError::io(raw, "cannot create"))?;
        Ok(Self {
            overflow: session.settings().overflow,
            rings: Vec::new(),
            awaited: Vec::new(),
            looked: Instant::now(),
            most_segments: session.segments().1,
            prepared: 0,
            next_rings: Vec::new(),
            finished: Vec::new(),
            sampled: Vec::new(),
            records: Vec::with_capacity(block::MAX_RECORDS),
            buffer: Vec::with_capacity(BUFFER_BYTES + (1 << 18)),
            disk: Some(Disk::start(file)),
            bytes: 0,
            finished_events: 0,
            finished_lost: 0,
            our_namespace: std::fs::metadata("/proc/self/ns/pid")
                .map_or(0, |meta| meta.ino() as u32),
            searched: Instant::now(),
            levels: None,
            tap: None,
            warnings: Vec::new(),
            more_warnings: 0,
        })
    }

    /// One round over all rings; returns the bytes taken from them. With
    /// `last`, also rings that only a dead writer can close are finished.
    pub fn round(&mut self, session: &Session, last: bool) -> u64 {
        self.find_rings(session, last);
        if let Some(levels) = &self.levels {
            levels.settle();
        }
        let mut moved = 0;
        // Killed threads leave their rings open: searched for now and then, and
        // always when memory gets short.
        let (used, budget) = session.segments();
        let search = self.searched.elapsed() >= SEARCH_EVERY || used > budget / 2;
        if search {
            self.searched = Instant::now();
        }
        let mut i = 0;
        while i < self.rings.len() {
            let map = &self.rings[i].map;
            let closed = last || map.closed() || (search && map.writer_is_gone(self.our_namespace));
            // A flight recorder is read once it has stopped.
            if self.overflow != Overflow::Overwrite || closed {
                moved += self.drain(session, i, closed);
            }
            if closed {
                let ring = self.rings.swap_remove(i);
                self.finish(session, ring);
            } else {
                if self.overflow == Overflow::Grow {
                    let (used, budget) = session.segments();
                    let ring = &mut self.rings[i].map;
                    let free = budget.saturating_sub(used.max(self.prepared));
                    self.prepared += ring.prepare(ring.allocated().saturating_add(free));
                }
                i += 1;
            }
        }
        self.flush(moved == 0 || last);
        moved
    }

    fn find_rings(&mut self, session: &Session, last: bool) {
        let dir = session.opened_dir();
        self.awaited.extend(session.new_rings(&mut self.next_rings));
        if self.awaited.len() > MOST_AWAITED {
            // Nobody makes so many at a time: the oldest will not come.
            self.awaited.drain(..self.awaited.len() - MOST_AWAITED);
        }
        let mut wanted = None;
        if self.awaited.len() > MOST_LOOKED_FOR {
            // The more there are, the longer it takes.
            let wait = LITTLE_AGE * (1 + self.awaited.len() as u32 / 4096);
            if !last && self.looked.elapsed() < wait {
                return;
            }
            let there = dir.rings(MOST_AWAITED + self.rings.len());
            wanted = Some(there.into_iter().collect::<HashSet<u32>>());
            self.looked = Instant::now();
        }
        let awaited = std::mem::take(&mut self.awaited);
        for number in awaited {
            if wanted
                .as_ref()
                .is_some_and(|there| !there.contains(&number))
            {
                self.awaited.push(number);
                continue;
            }
            match RingMap::open(dir, number, session.owner()) {
                Ok(Some(map)) => {
                    let reader = Reader::new(map.memory());
                    self.rings.push(Ring {
                        map,
                        reader,
                        received: 0,
                        drained: Instant::now(),
                        unwritten: 0,
                        abandoned: false,
                        sampled: None,
                    });
                }
                Ok(None) => self.awaited.push(number),
                Err(error) => self.warn(error.to_string()),
            }
        }
    }

    fn warn(&mut self, text: String) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(text);
        } else {
            self.more_warnings += 1;
        }
    }

    /// Nothing more is taken from a ring; what came before stays.
    fn abandon(&mut self, i: usize, why: &str) {
        let ring = &mut self.rings[i];
        ring.abandoned = true;
        let (number, pid, tid) = (ring.map.number, ring.map.pid, ring.map.tid);
        self.warn(format!(
            "ring {number} of process {pid} thread {tid}: {why}, what came before is kept"
        ));
    }

    fn drain(&mut self, session: &Session, i: usize, to_the_end: bool) -> u64 {
        let mut moved = 0;
        // One look a round. Little is left to become more, but not for long:
        // running after the writer would cost it a cache miss an event.
        let ring = &mut self.rings[i];
        let bytes = ring.reader.look();
        if ring.map.is_cut() && !ring.abandoned {
            self.abandon(i, CUT);
            return 0;
        }
        if bytes < LITTLE_BYTES && !to_the_end && ring.drained.elapsed() < LITTLE_AGE {
            return 0;
        }
        ring.drained = Instant::now();
        // Who writes on while the rest is taken must not keep us.
        let room = u64::from(ring.map.memory().max_segments()) * SEGMENT_BYTES;
        let mut copies = 0;
        while !self.rings[i].abandoned && moved <= 2 * room && copies < MOST_COPIES {
            let ring = &mut self.rings[i];
            let next = if to_the_end {
                ring.reader.chunk()
            } else {
                ring.reader.seen_chunk()
            };
            let mut chunk = match next {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(corrupt) => {
                    let why = format!("{corrupt}; the program overwrote its ring");
                    self.abandon(i, &why);
                    break;
                }
            };
            if chunk.at / SEGMENT_BYTES >= u64::from(self.most_segments) {
                self.abandon(
                    i,
                    "it names a segment beyond the budget; the program overwrote its ring",
                );
                break;
            }
            // Copied first: what is counted and checked must not change under
            // our hands.
            self.records.clear();
            let memory = ring.map.memory();
            self.records
                .extend((0..chunk.bytes / 16).map(|r| memory.load_record(chunk.at + 16 * r)));
            if ring.map.is_cut() {
                self.abandon(i, CUT);
                break;
            }
            if !ring.reader.is_whole(&chunk) {
                copies += 1;
                continue;
            }
            copies = 0;
            // A gap takes its time from the event after it: wait for that.
            let gap = |words: &[u64; 2]| Record::from_words(*words).is_gap();
            if !to_the_end && self.records.last().is_some_and(gap) {
                self.records.pop();
                chunk.bytes -= 16;
                if self.records.is_empty() {
                    break;
                }
            }
            if let Some(levels) = &mut self.levels {
                levels.observe(ring.map.number, &self.records, |event, is_kept| {
                    session.keep(event, is_kept);
                });
            }
            let header = BlockHeader {
                ring: ring.map.number,
                pid: ring.map.pid,
                tid: ring.map.tid,
                position: chunk.position,
                records: self.records.len() as u32,
            };
            if let Some(tap) = &mut self.tap {
                tap(header, &self.records);
            }
            let before = self.buffer.len();
            let continuations = block::encode(header, &self.records, &mut self.buffer);
            ring.reader.release(&chunk, continuations);
            let events = self.records.len() as u64 - u64::from(continuations);
            if self.disk.as_ref().is_some_and(Disk::works) {
                ring.received += events;
            } else {
                ring.unwritten += events;
                self.buffer.truncate(before);
            }
            moved += chunk.bytes;
            self.flush(false);
        }
        moved
    }

    fn finish(&mut self, session: &Session, ring: Ring) {
        let dropped = ring.map.dropped() + ring.unwritten;
        let overwritten = ring.reader.overwritten();
        self.finished_events += ring.received;
        self.finished_lost = self
            .finished_lost
            .saturating_add(dropped)
            .saturating_add(overwritten);
        self.finished.push(manifest::Ring {
            ring: ring.map.number as i32,
            pid: ring.map.pid,
            tid: ring.map.tid,
            written: ring
                .received
                .saturating_add(dropped)
                .saturating_add(overwritten),
            received: ring.received,
            dropped,
            overwritten,
        });
        let now = || sampled::of_ring(ring.map.number, &ring.map.memory());
        let counts = ring.sampled.unwrap_or_else(now);
        self.sampled.extend(counts);
        self.prepared -= ring.map.memory_taken();
        session.give_back(ring.map.number, ring.map.allocated());
        if session.is_attached() {
            ring.map.give_back_memory();
        }
        session.opened_dir().remove(&ring.map.name);
    }

    fn flush(&mut self, all: bool) {
        if self.buffer.is_empty() || (!all && self.buffer.len() < BUFFER_BYTES) {
            return;
        }
        let Some(disk) = &self.disk else {
            return self.buffer.clear();
        };
        self.bytes += self.buffer.len() as u64;
        let full = std::mem::replace(&mut self.buffer, disk.empty_buffer());
        disk.write(full);
    }

    /// Recording has been switched off in a program that runs on: sampled spans, which
    /// do not ask for that, are counted no more.
    pub(crate) fn stop_counting(&mut self) {
        for ring in &mut self.rings {
            let counts = sampled::of_ring(ring.map.number, &ring.map.memory());
            ring.sampled = Some(counts);
            ring.map.unclaim_cells();
        }
    }

    /// Whether a ring that was asked for is not there yet.
    pub(crate) fn awaits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self, session: &Session) -> Progress {
        let open = self.rings.iter();
        Progress {
            events: self.finished_events + open.clone().map(|r| r.received).sum::<u64>(),
            lost: open
                .map(|r| {
                    r.map
                        .dropped()
                        .saturating_add(r.reader.overwritten())
                        .saturating_add(r.unwritten)
                })
                .fold(
                    self.finished_lost.saturating_add(session.lost_no_ring()),
                    u64::saturating_add,
                ),
            bytes: self.bytes,
            rings: self.rings.len(),
        }
    }

    /// Ends the collection: the last round must have been made.
    ///
    /// # Errors
    /// The disk refused something: what was written before is whole.
    pub fn close(mut self) -> (Vec<manifest::Ring>, Vec<String>, Result<(), std::io::Error>) {
        self.flush(true);
        let written = self.disk.take().map_or(Ok(()), Disk::finish);
        self.finished.sort_by_key(|ring| ring.ring);
        if self.more_warnings > 0 {
            let more = format!("{} more rings could not be read", self.more_warnings);
            self.warnings.push(more);
        }
        (self.finished, self.warnings, written)
    }
}

/// Writes buffers on a thread of its own, so that a slow disk fills the rings
/// and does not stop the draining.
struct Disk {
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    failed: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: JoinHandle<Result<(), std::io::Error>>,
}

impl Disk {
    fn start(mut file: File) -> Self {
        let (full, to_write) = sync_channel::<Vec<u8>>(BUFFERS);
        let (give_back, empty) = sync_channel(BUFFERS + 2);
        let failed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let tell = std::sync::Arc::clone(&failed);
        let thread = std::thread::spawn(move || {
            let mut result = Ok(());
            let mut whole = 0;
            for mut buffer in to_write {
                if result.is_ok() {
                    match file.write_all(&buffer) {
                        Ok(()) => whole += buffer.len() as u64,
                        Err(error) => {
                            tell.store(true, std::sync::atomic::Ordering::Relaxed);
                            let _ = keep_whole_blocks(&file, whole, &buffer);
                            result = Err(error);
                        }
                    }
                }
                buffer.clear();
                let _ = give_back.try_send(buffer);
            }
            result
        });
        Self {
            full,
            empty,
            failed,
            thread,
        }
    }

    fn works(&self) -> bool {
        !self.failed.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn empty_buffer(&self) -> Vec<u8> {
        self.empty
            .try_recv()
            .unwrap_or_else(|_| Vec::with_capacity(BUFFER_BYTES + (1 << 18)))
    }

    fn write(&self, buffer: Vec<u8>) {
        let _ = self.full.send(buffer);
    }

    fn finish(self) -> Result<(), std::io::Error> {
        drop(self.full);
        self.thread.join().unwrap_or(Ok(()))
    }
}

/// Room left on a full disk for the manifest.
const MANIFEST_ROOM_BYTES: u64 = 64 * 1024;

/// The disk took only a part of `buffer`, which began at `start`: keeps the
/// blocks that are whole, less what the manifest will need.
fn keep_whole_blocks(file: &File, start: u64, buffer: &[u8]) -> Result<(), std::io::Error> {
    let taken = file.metadata()?.len().saturating_sub(start);
    let room = taken.saturating_sub(MANIFEST_ROOM_BYTES);
    let mut whole = 0;
    while let Some((length, _)) = block::extent(&buffer[whole..]) {
        if (whole + length) as u64 > room {
            break;
        }
        whole += length;
    }
    file.set_len(start + whole as u64)
}
