//! Drains all rings of a session into a raw file.

mod ended_rings;
mod new_rings;

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use undertick_format::block::{self, BlockHeader};
use undertick_format::files::RAW_FILE;
use undertick_format::{TraceError, manifest};
use undertick_memory::pool::Pool;
use undertick_memory::session_lock::SessionLock;
use undertick_ring::Overflow;

use crate::accounts::{Accounts, Ended, GivenUp};
use crate::disk::{BUFFER_BYTES, Disk};
use crate::exited_threads::ExitedThreads;
use crate::follow::Follow;
use crate::perturbation::Levels;
use crate::recover::Recovered;
use crate::ring_drain::{CUT, Ring, Warnings};
use crate::sampled;
use crate::session::Session;
use crate::trace_dir::TraceDir;

/// Leave less than this undrained in its ring.
const LITTLE_BYTES: u64 = 64 * 1024;
/// Leave so little undrained for at most this long.
const LITTLE_AGE: Duration = Duration::from_millis(10);

/// How often to search for rings without living writers.
const SEARCH_EVERY: Duration = Duration::from_millis(100);
/// The largest number of segments prepared in one round: each takes 40 to 70 us.
const MOST_PREPARED: usize = 16;

/// Receives the records while they arrive: the header says which ring they are from, and the
/// records are as they lie in the ring ([`undertick_ring::Record::from_words`]), in the order of
/// each ring.
pub type Tap = Box<dyn FnMut(BlockHeader, &[[u64; 2]])>;

/// Progress of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectorProgress {
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
    /// Which ring holds which part of the memory that all rings share.
    pool: Pool,
    /// Heads that programs took, without a complete ring yet, and since when.
    awaited: Vec<(u32, Instant)>,
    /// Numbers of the rings that are open.
    numbers: HashSet<u32>,
    /// When parts of the session that seldom change were last checked.
    listed: Instant,
    /// What a killed recorder had collected of rings that still exist.
    known: HashMap<u32, Recovered>,
    finished: Vec<manifest::Ring>,
    /// Executions of sampled spans in rings that are finished.
    pub sampled: Vec<manifest::Sampled>,
    accounts: Accounts,
    /// The rings of threads that have ended; a flight recorder only.
    exited_threads: Option<ExitedThreads>,
    lock: SessionLock,
    records: Vec<[u64; 2]>,
    buffer: Vec<u8>,
    disk: Option<Disk>,
    /// Bytes passed to the disk.
    bytes: u64,
    finished_events: u64,
    finished_lost: u64,
    our_namespace: u32,
    /// When rings without living writers were last searched for.
    searched: Instant,
    /// See [`Self::search_orphans`].
    searches_orphans: bool,
    /// Learns from the records which events stay on.
    pub(crate) levels: Option<Levels>,
    /// Receives the records while they arrive.
    pub(crate) tap: Option<Tap>,
    /// Passes the records of a flight recorder to its rules.
    pub(crate) follow: Option<Follow>,
    /// Warnings for the user.
    warnings: Warnings,
}

impl Collector {
    /// Makes a collector that writes raw blocks into a trace directory. The directory has none
    /// yet, or those of a recorder that was killed, which are continued.
    ///
    /// # Errors
    /// The files cannot be made, or read.
    pub fn new(session: &Session, trace: &TraceDir) -> Result<Self, TraceError> {
        let file = (trace.append(RAW_FILE))
            .map_err(TraceError::io(&trace.join(RAW_FILE), "cannot create"))?;
        let overflow = session.settings().overflow;
        let mut pool = session.take_pool();
        pool.look();
        let recovered = crate::recover::recover(trace, pool.map(), overflow)?;
        let (accounts, mut written) = Accounts::open(trace)?;
        // Rings that still exist are finished again.
        (written.ended).retain(|ring, _| !recovered.there.contains(&(*ring as u32)));
        let mut finished: Vec<Ended> = written.ended.into_values().collect();
        let exited_threads = (overflow == Overflow::Overwrite).then(|| {
            let rings = std::mem::take(&mut finished);
            ExitedThreads::open(trace, session.budget_bytes(), rings, written.given_up)
        });
        let events = |count: fn(&manifest::Ring) -> u64| {
            (finished.iter()).fold(0, |sum: u64, ended| sum.saturating_add(count(&ended.ring)))
        };
        let now = Instant::now();
        Ok(Self {
            overflow,
            rings: Vec::new(),
            pool,
            awaited: Vec::new(),
            numbers: HashSet::new(),
            listed: now,
            known: recovered.rings,
            finished_events: events(|ring| ring.received),
            finished_lost: events(|ring| ring.dropped.saturating_add(ring.overwritten)),
            sampled: (finished.iter())
                .flat_map(|ended| ended.sampled.clone())
                .collect(),
            finished: finished.into_iter().map(|ended| ended.ring).collect(),
            accounts,
            exited_threads,
            lock: SessionLock::open(session.opened_dir())?,
            records: Vec::with_capacity(block::MAX_RECORDS),
            buffer: Vec::with_capacity(BUFFER_BYTES + (1 << 18)),
            disk: Some(Disk::start(file, recovered.raw_bytes)),
            bytes: 0,
            our_namespace: our_namespace(),
            searched: now,
            searches_orphans: false,
            levels: None,
            tap: None,
            follow: None,
            warnings: Warnings::default(),
        })
    }

    /// Adds a warning for the user.
    pub(crate) fn warn(&mut self, text: &str) {
        self.warnings.say(text.to_owned());
    }

    /// Writes down which program these rings belong to, for a recorder that resumes after us.
    pub(crate) fn is_of(&mut self, program: crate::accounts::Program) {
        self.accounts.is_of(program);
    }

    /// One round over all rings; returns the bytes drained. With `last`, rings that only a dead
    /// writer can close are finished too.
    pub fn round(&mut self, session: &Session, last: bool) -> u64 {
        self.pool.look();
        if self.pool.map().is_cut() {
            session.let_go(); // programs that wait for us would wait for ever
        }
        self.find_rings(session, last);
        if let Some(levels) = &self.levels {
            levels.settle();
        }
        let mut moved = 0;
        // Killed threads leave their rings open. They are searched for now and then, and always
        // when memory is short.
        let (used, budget) = self.pool.segments();
        let search = self.searched.elapsed() >= SEARCH_EVERY || used > budget / 2;
        if search {
            self.searched = Instant::now();
        }
        // A flight recorder reads a ring once recording has stopped; rings of ended threads
        // earlier.
        let reads = last || self.exited_threads.is_none();
        if let Some(follow) = &mut self.follow {
            follow.begin_round();
        }
        if last && self.exited_threads.is_some() {
            self.lock.wait();
        }
        let orphaned = search && self.searches_orphans && self.pool.map().nobody_else_has_it();
        let written = self.written();
        let mut ended = Vec::new();
        let mut i = 0;
        while i < self.rings.len() {
            self.rings[i].give_back(written);
            if self.rings[i].ends_at.is_some() {
                i += 1;
                continue;
            }
            let map = &self.rings[i].map;
            let closed = last
                || orphaned
                || map.closed()
                || (search && map.writer_is_gone(self.our_namespace));
            if search && !closed {
                self.rings[i].map.prepare_table();
            }
            if let Some(follow) = &mut self.follow {
                // Once closed, it is complete.
                follow.read(&self.rings[i].map, session, self.our_namespace, closed);
            }
            if !reads {
                if closed {
                    ended.push(self.rings.swap_remove(i));
                } else {
                    i += 1;
                }
                continue;
            }
            moved += self.drain(session, i, closed);
            if closed {
                self.rings[i].ends_at = Some(self.bytes + self.buffer.len() as u64);
            }
            i += 1;
        }
        // While the disk is busy, more can be gathered for one write.
        let rests = self.disk.as_ref().is_some_and(Disk::rests);
        self.flush(moved == 0 || last || rests);
        if last && let Some(disk) = &self.disk {
            disk.wait();
        }
        self.finish_written(last);
        self.keep_ended(ended, last);
        if !last {
            self.pool.prepare(MOST_PREPARED);
        }
        moved
    }

    /// How many bytes would remain if the recorder were killed now. All, if the disk refuses
    /// writes: the program must not wait for it.
    fn written(&self) -> u64 {
        match &self.disk {
            Some(disk) if disk.works() => disk.written(),
            _ => u64::MAX,
        }
    }

    /// Shortens the log of names. The names of threads that are given up would otherwise grow
    /// without bound.
    fn shorten_names(&self, session: &Session) {
        let Some(store) = self
            .exited_threads
            .as_ref()
            .filter(|_| !session.is_attached())
        else {
            return;
        };
        if !self.lock.take() {
            return;
        }
        let mut known: HashSet<(i32, Option<i32>)> = HashSet::new();
        let rings = self.rings.iter().map(|ring| (ring.map.pid, ring.map.tid));
        for (pid, tid) in rings.chain(store.threads()) {
            known.extend([(pid, None), (pid, Some(tid))]);
        }
        session.shorten_names(|pid, tid| {
            let task = tid.map_or_else(String::new, |tid| format!("/task/{tid}"));
            known.contains(&(pid, tid)) || Path::new(&format!("/proc/{pid}{task}")).exists()
        });
        self.lock.give();
    }

    fn drain(&mut self, session: &Session, i: usize, to_the_end: bool) -> u64 {
        let mut moved = 0;
        // One read of the head a round. Little data is left to grow, but not for long: following
        // the writer closely would cost it a cache miss an event.
        let ring = &mut self.rings[i];
        let bytes = ring.reader.look();
        if ring.map.is_cut() && !ring.abandoned {
            ring.abandon(CUT, &mut self.warnings);
            return 0;
        }
        if bytes < LITTLE_BYTES && !to_the_end && ring.drained.elapsed() < LITTLE_AGE {
            return 0;
        }
        ring.drained = Instant::now();
        while moved <= self.rings[i].most_bytes() {
            let ring = &mut self.rings[i];
            let (records, warnings) = (&mut self.records, &mut self.warnings);
            let pool = &mut self.pool;
            let Some(chunk) = ring.copy_chunk(to_the_end, pool, records, warnings) else {
                break;
            };
            if let Some(levels) = &mut self.levels {
                levels.observe(ring.map.number, &self.records, |event, is_kept| {
                    session.keep(event, is_kept);
                });
            }
            let header = ring.header(&chunk, self.records.len());
            if let Some(tap) = &mut self.tap {
                tap(header, &self.records);
            }
            let before = self.buffer.len();
            let continuations = block::encode(header, &self.records, &mut self.buffer);
            ring.reader.pass(&chunk, continuations);
            let events = self.records.len() as u64 - u64::from(continuations);
            if self.disk.as_ref().is_some_and(Disk::works) {
                ring.received += events;
            } else {
                ring.unwritten += events;
                self.buffer.truncate(before);
            }
            let end = self.bytes + self.buffer.len() as u64;
            ring.on_the_way.push_back((end, ring.reader.position()));
            moved += chunk.bytes;
            self.flush(false);
        }
        moved
    }

    fn flush(&mut self, all: bool) {
        if self.buffer.is_empty() || (!all && self.buffer.len() < BUFFER_BYTES) {
            return;
        }
        let Some(disk) = &mut self.disk else {
            return self.buffer.clear();
        };
        self.bytes += self.buffer.len() as u64;
        let full = std::mem::replace(&mut self.buffer, disk.empty_buffer());
        disk.write(full);
    }

    /// Stops counting sampled spans, which do not check whether recording is on. It has been
    /// switched off in a program that continues to run.
    pub(crate) fn stop_counting(&mut self) {
        for ring in &mut self.rings {
            let counts = sampled::of_ring(ring.map.number, &ring.map.memory());
            ring.sampled = Some(counts);
            ring.map.unclaim_cells();
        }
    }

    /// Sets whether rings are searched for that no process has open, among rings whose process
    /// has ended or cannot be queried.
    pub(crate) const fn search_orphans(&mut self, is_wanted: bool) {
        self.searches_orphans = is_wanted;
    }

    /// Number of events that programs could not write for lack of memory.
    pub(crate) fn dropped(&self, session: &Session) -> u64 {
        let open = self.rings.iter().map(|ring| ring.map.dropped());
        let ended = self
            .exited_threads
            .as_ref()
            .map_or(0, ExitedThreads::dropped);
        open.fold(
            session.lost_no_ring().saturating_add(ended),
            u64::saturating_add,
        )
    }

    /// Whether there is a ring that is not finished.
    pub(crate) fn has_rings(&self) -> bool {
        !self.rings.is_empty()
    }

    /// The number of segments that programs hold or could take at once, and of all segments.
    pub(crate) fn segments(&self) -> (u32, u32) {
        self.pool.segments()
    }

    /// The number of rings that are open, finished or awaited.
    pub(crate) fn all_rings(&self) -> u64 {
        (self.rings.len() + self.finished.len() + self.awaited.len()) as u64
    }

    /// Progress so far.
    #[must_use]
    pub fn progress(&self, session: &Session) -> CollectorProgress {
        let open = self.rings.iter();
        let (ended, ended_lost) = self
            .exited_threads
            .as_ref()
            .map_or((0, 0), ExitedThreads::events);
        CollectorProgress {
            events: self.finished_events + ended + open.clone().map(|r| r.received).sum::<u64>(),
            lost: open
                .map(|r| {
                    r.map
                        .dropped()
                        .saturating_add(r.reader.overwritten())
                        .saturating_add(r.unwritten)
                })
                .fold(
                    (self.finished_lost.saturating_add(ended_lost))
                        .saturating_add(session.lost_no_ring()),
                    u64::saturating_add,
                ),
            bytes: self.bytes,
            rings: self.rings.len(),
        }
    }

    /// Ends the collection, after the last round.
    ///
    /// # Errors
    /// The disk refused a write: what was written before is whole.
    pub(crate) fn close(mut self) -> Collected {
        self.flush(true);
        let written = self.disk.take().map_or(Ok(()), Disk::finish);
        let given_up = self.exited_threads.take().map(|store| {
            let (ended, given_up) = store.finish();
            for ended in ended {
                self.finished.push(ended.ring);
                self.sampled.extend(ended.sampled);
            }
            given_up
        });
        self.finished.sort_by_key(|ring| ring.ring);
        Collected {
            rings: self.finished,
            sampled: self.sampled,
            given_up,
            warnings: self.warnings.all(),
            written,
        }
    }
}

/// The result of a collection.
pub(crate) struct Collected {
    pub(crate) rings: Vec<manifest::Ring>,
    pub(crate) sampled: Vec<manifest::Sampled>,
    /// The rings that were given up; a flight recorder only.
    pub(crate) given_up: Option<GivenUp>,
    pub(crate) warnings: Vec<String>,
    /// Whether the disk accepted every write.
    pub(crate) written: Result<(), std::io::Error>,
}

fn our_namespace() -> u32 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |meta| meta.ino() as u32)
}
