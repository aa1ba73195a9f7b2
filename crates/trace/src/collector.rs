//! Drains all rings of a session into a raw file.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use undertick_ring::Overflow;
use undertick_ring::layout::SEGMENT_BYTES;

use crate::TraceError;
use crate::accounts::{Accounts, Ended, GivenUp};
use crate::block::{self, BlockHeader};
use crate::disk::{BUFFER_BYTES, Disk};
use crate::ended::EndedRings;
use crate::keep::RAW_FILE;
use crate::manifest;
use crate::perturbation::Levels;
use crate::recover::Recovered;
use crate::ring_drain::{CUT, Ring, Warnings};
use crate::sampled;
use crate::session::{RingMap, Session};
use crate::session_lock::SessionLock;
use crate::trace_dir::TraceDir;
use crate::unopened;

/// Less than this is left in its ring for a while.
const LITTLE_BYTES: u64 = 64 * 1024;
/// For how long.
const LITTLE_AGE: Duration = Duration::from_millis(10);

/// How often rings are searched for writers that are gone.
const SEARCH_EVERY: Duration = Duration::from_millis(100);
/// Segments that are prepared for rings before anybody needs them: a thread that goes into
/// a sandbox later may not ask for pages any more.
const EARLY_SEGMENTS: u32 = 256;
/// Segments that are prepared in one round, of all rings: 40 to 70 us each.
const MOST_PREPARED: u32 = 16;
/// Threads that are looked at in one search for such as are in a sandbox.
const MOST_SANDBOXES: usize = 64;
/// How long a ring that was asked for is looked for by its number. One whose thread was
/// taken off its CPU for longer, in the middle of making it, is found by its name.
const AWAITED_FOR: Duration = Duration::from_secs(10);
/// How often the session directory is searched for such rings.
const LIST_EVERY: Duration = Duration::from_secs(1);
/// Rings asked for whose files are not there are looked for one by one up to so many;
/// beyond, the directory is looked at.
const MOST_LOOKED_FOR: usize = 64;
/// Of rings that were asked for and never made so many numbers are kept.
const MOST_AWAITED: usize = 1 << 16;

/// Who looks at the records of a recording while they come: whose they are, and the
/// records as they lie in the ring ([`undertick_ring::Record::from_words`]), each ring's
/// in its order.
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
    /// Ring numbers that were asked for and whose files were not there yet, since when.
    awaited: Vec<(u32, Instant)>,
    /// When the directory was last looked at for many of them.
    looked: Instant,
    /// Segments that a ring can have come to.
    most_segments: u32,
    /// Segments that were prepared for rings that are open.
    prepared: u32,
    /// Segments that may still be prepared in this round: the rings must not wait for it.
    may_prepare: u32,
    /// Segments of a ring's first size.
    first_segments: u32,
    /// The next ring to be looked at for a sandbox.
    next_sandbox: usize,
    /// Numbers of the next ring, by control page.
    next_rings: Vec<u32>,
    /// Files that are no rings, or cannot be removed: not looked at again.
    refused: HashSet<u32>,
    listed: Instant,
    /// What a recorder that was killed had of rings that are still there.
    known: HashMap<u32, Recovered>,
    finished: Vec<manifest::Ring>,
    /// How often sampled spans began, of rings that are finished.
    pub sampled: Vec<manifest::Sampled>,
    accounts: Accounts,
    /// Of a flight recorder: the threads that have ended.
    ended: Option<EndedRings>,
    lock: SessionLock,
    records: Vec<[u64; 2]>,
    buffer: Vec<u8>,
    disk: Option<Disk>,
    /// Bytes that were handed to the disk.
    bytes: u64,
    finished_events: u64,
    finished_lost: u64,
    our_namespace: u32,
    /// When the rings were last searched for writers that are gone.
    searched: Instant,
    /// See [`Self::search_orphans`].
    searches_orphans: bool,
    /// When rings last found no room in this process: no descriptor, no memory.
    crowded: Option<Instant>,
    /// Rings that were opened in the last round.
    opened: usize,
    /// Who learns from the records which events stay on.
    pub(crate) levels: Option<Levels>,
    /// Who looks at the records while they come.
    pub(crate) tap: Option<Tap>,
    /// What the user must know.
    warnings: Warnings,
}

impl Collector {
    /// A collector that writes raw blocks into the directory of a trace, which has none
    /// yet, or goes on with what a recorder that was killed has left there.
    ///
    /// # Errors
    /// The files cannot be made, or read.
    pub fn new(session: &Session, trace: &TraceDir) -> Result<Self, TraceError> {
        let file = (trace.append(RAW_FILE))
            .map_err(TraceError::io(&trace.join(RAW_FILE), "cannot create"))?;
        let overflow = session.settings().overflow;
        let recovered = crate::recover::recover(trace, session.opened_dir(), overflow)?;
        let (accounts, mut told) = Accounts::open(trace)?;
        // What is still there is finished again.
        (told.ended).retain(|ring, _| !recovered.there.contains(&(*ring as u32)));
        let mut finished: Vec<Ended> = told.ended.into_values().collect();
        let ended = (overflow == Overflow::Overwrite).then(|| {
            let rings = std::mem::take(&mut finished);
            EndedRings::open(trace, session.budget_bytes(), rings, told.given_up)
        });
        let events = |count: fn(&manifest::Ring) -> u64| {
            (finished.iter()).fold(0, |sum: u64, ended| sum.saturating_add(count(&ended.ring)))
        };
        let now = Instant::now();
        Ok(Self {
            overflow,
            rings: Vec::new(),
            awaited: recovered.there.iter().map(|&ring| (ring, now)).collect(),
            looked: now,
            most_segments: session.segments().1,
            prepared: 0,
            may_prepare: 0,
            first_segments: (session.settings().ring_bytes / SEGMENT_BYTES) as u32,
            next_sandbox: 0,
            next_rings: recovered.next_rings(session),
            refused: HashSet::new(),
            listed: now,
            known: recovered.rings,
            finished_events: events(|ring| ring.received),
            finished_lost: events(|ring| ring.dropped.saturating_add(ring.overwritten)),
            sampled: (finished.iter())
                .flat_map(|ended| ended.sampled.clone())
                .collect(),
            finished: finished.into_iter().map(|ended| ended.ring).collect(),
            accounts,
            ended,
            lock: SessionLock::open(session.opened_dir())?,
            records: Vec::with_capacity(block::MAX_RECORDS),
            buffer: Vec::with_capacity(BUFFER_BYTES + (1 << 18)),
            disk: Some(Disk::start(file, recovered.raw_bytes)),
            bytes: 0,
            our_namespace: our_namespace(),
            searched: now,
            searches_orphans: false,
            crowded: None,
            opened: 0,
            levels: None,
            tap: None,
            warnings: Warnings::default(),
        })
    }

    /// The user must know that.
    pub(crate) fn warn(&mut self, text: &str) {
        self.warnings.say(text.to_owned());
    }

    /// Says whose rings these are, for who goes on after us.
    pub(crate) fn is_of(&mut self, program: crate::accounts::Program) {
        self.accounts.is_of(program);
    }

    /// One round over all rings; returns the bytes taken from them. With
    /// `last`, also rings that only a dead writer can close are finished.
    pub fn round(&mut self, session: &Session, last: bool) -> u64 {
        self.find_rings(session, last);
        self.may_prepare = MOST_PREPARED;
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
            self.find_sandboxes();
        }
        // A flight recorder is read once it has stopped; threads that ended, before.
        let reads = last || self.ended.is_none();
        if last && self.ended.is_some() {
            self.lock.wait();
        }
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
                || map.closed()
                || (search && map.writer_is_gone(self.our_namespace))
                || (search && self.searches_orphans && map.nobody_else_has_it());
            if !reads {
                if closed {
                    ended.push(self.rings.swap_remove(i));
                } else {
                    self.prepare(session, i);
                    i += 1;
                }
                continue;
            }
            moved += self.drain(session, i, closed);
            if closed {
                self.rings[i].ends_at = Some(self.bytes + self.buffer.len() as u64);
            } else {
                self.prepare(session, i);
            }
            i += 1;
        }
        // While the disk has something to do, more may come together.
        let rests = self.disk.as_ref().is_some_and(Disk::rests);
        self.flush(moved == 0 || last || rests);
        if last && let Some(disk) = &self.disk {
            disk.wait();
        }
        self.finish_written(session);
        self.keep_ended(session, ended);
        moved
    }

    /// Which rings get the pages of their first size: those of threads in a sandbox, and
    /// those that were there at the last search while that is little memory.
    fn find_sandboxes(&mut self) {
        let mut early: u32 = (self.rings.iter())
            .filter(|ring| ring.early)
            .map(|ring| ring.map.memory_taken())
            .sum();
        let count = self.rings.len();
        for _ in 0..count.min(MOST_SANDBOXES) {
            self.next_sandbox = (self.next_sandbox + 1) % count;
            let ring = &mut self.rings[self.next_sandbox];
            if ring.early || ring.ends_at.is_some() {
                continue;
            }
            let is_little = early.saturating_add(self.first_segments) <= EARLY_SEGMENTS;
            ring.early = is_little || ring.map.is_in_sandbox(self.our_namespace);
            early = early.saturating_add(u32::from(ring.early) * self.first_segments);
        }
    }

    /// Has pages ready for a ring that is written to.
    fn prepare(&mut self, session: &Session, i: usize) {
        let ring = &mut self.rings[i];
        let first = u32::from(ring.early) * self.first_segments;
        if first == 0 && (self.overflow != Overflow::Grow || ring.map.allocated() == 0) {
            return;
        }
        let (used, budget) = session.segments();
        let free = budget.saturating_sub(used.max(self.prepared));
        let limit = ring.map.allocated().saturating_add(free);
        let grows = self.overflow == Overflow::Grow;
        let limit = limit.min(if grows { u32::MAX } else { first });
        let more = ring.map.prepare(first, limit, self.may_prepare);
        self.may_prepare -= more;
        self.prepared += more;
    }

    /// How many bytes a recorder that was killed now would leave behind; all, if the
    /// disk refuses: the program must not wait for it.
    fn written(&self) -> u64 {
        match &self.disk {
            Some(disk) if disk.works() => disk.written(),
            _ => u64::MAX,
        }
    }

    fn find_rings(&mut self, session: &Session, last: bool) {
        let now = Instant::now();
        let new = session.new_rings(&mut self.next_rings);
        self.awaited.extend(new.into_iter().map(|ring| (ring, now)));
        if self.awaited.len() > MOST_AWAITED {
            // Nobody makes so many at a time: the oldest will not come.
            self.awaited.drain(..self.awaited.len() - MOST_AWAITED);
        }
        let dir = session.opened_dir();
        if self
            .crowded
            .is_some_and(|since| !last && since.elapsed() < SEARCH_EVERY)
        {
            return;
        }
        if last || self.listed.elapsed() >= LIST_EVERY {
            self.listed = now;
            self.list_rings(session, now);
            self.shorten_names(session);
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
            self.looked = now;
        }
        let (rings, warnings, known) = (&mut self.rings, &mut self.warnings, &self.known);
        let refused = &mut self.refused;
        let before = rings.len();
        self.crowded = None;
        let crowded = &mut self.crowded;
        (self.awaited).retain_mut(|&mut (number, ref mut since)| {
            if crowded.is_some() {
                *since = now;
                return true;
            }
            if wanted
                .as_ref()
                .is_some_and(|there| !there.contains(&number))
            {
                return since.elapsed() < AWAITED_FOR;
            }
            match RingMap::open(dir, number, session.owner()) {
                Ok(Some(map)) => {
                    rings.push(Ring::new(map, known.get(&number)));
                    false
                }
                Ok(None) => since.elapsed() < AWAITED_FOR,
                Err(error) if is_shortage(&error) => {
                    *crowded = Some(now);
                    *since = now;
                    true
                }
                Err(error) => {
                    refused.insert(number);
                    warnings.say(error.to_string());
                    false
                }
            }
        });
        self.opened = rings.len() - before;
    }

    /// Whether rings wait for room in this process, and some found it in the last round.
    pub(crate) const fn has_room_again(&self) -> bool {
        self.crowded.is_some() && self.opened > 0
    }

    /// Rings that never found room in this process: what was written to them is counted.
    fn count_unopened(&mut self, session: &Session) {
        let mut unopened = 0;
        for (number, _) in std::mem::take(&mut self.awaited) {
            let received = self.known.get(&number).map_or(0, |known| known.events);
            let dir = session.opened_dir();
            let Some(ring) = unopened::account(dir, number, session.owner(), received) else {
                continue;
            };
            unopened += u64::from(ring.written > received);
            self.finished.push(ring);
        }
        if unopened > 0 {
            self.warnings.say(format!(
                "{unopened} rings could not be opened: the recorder had no descriptors or no memory left (ulimit -n, ulimit -v); what was written to them is counted as dropped"
            ));
        }
    }

    /// The names of threads that are given up would be the one thing that grows.
    fn shorten_names(&self, session: &Session) {
        let Some(store) = self.ended.as_ref().filter(|_| !session.is_attached()) else {
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

    /// Rings that are there and are not known: made long after their number was given.
    fn list_rings(&mut self, session: &Session, now: Instant) {
        let there = session.opened_dir().rings(MOST_AWAITED + self.rings.len());
        if there.len() == self.rings.len() {
            return;
        }
        let known: HashSet<u32> = (self.rings.iter().map(|ring| ring.map.number))
            .chain(self.awaited.iter().map(|&(ring, _)| ring))
            .collect();
        // One whose number was given since comes by that, and must not come twice.
        let new: BTreeSet<u32> = (there.into_iter())
            .filter(|ring| session.was_asked(&self.next_rings, *ring))
            .filter(|ring| !known.contains(ring) && !self.refused.contains(ring))
            .collect();
        let new = new.into_iter();
        self.awaited.extend(new.map(|ring| (ring, now)));
    }

    fn drain(&mut self, session: &Session, i: usize, to_the_end: bool) -> u64 {
        let mut moved = 0;
        // One look a round. Little is left to become more, but not for long:
        // running after the writer would cost it a cache miss an event.
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
            let Some(chunk) = ring.copy_chunk(to_the_end, self.most_segments, records, warnings)
            else {
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

    /// Finishes the rings whose last block is in the file.
    fn finish_written(&mut self, session: &Session) {
        let written = self.written();
        let is_over = |ring: &mut Ring| ring.ends_at.is_some_and(|end| end <= written);
        let over: Vec<Ring> = self.rings.extract_if(.., is_over).collect();
        for mut ring in over {
            let ended = ring.account(self.overflow);
            self.finished_events += ended.ring.received;
            self.finished_lost = (self.finished_lost)
                .saturating_add(ended.ring.dropped)
                .saturating_add(ended.ring.overwritten);
            self.accounts.ended(std::slice::from_ref(&ended));
            self.finished.push(ended.ring);
            self.sampled.extend(ended.sampled);
            self.take_away(session, &ring);
        }
    }

    /// Keeps the last events of threads that have ended, unless somebody is just making
    /// a snapshot: then they stay in their rings until the next round.
    fn keep_ended(&mut self, session: &Session, mut rings: Vec<Ring>) {
        if rings.is_empty() {
            return;
        }
        let Some(store) = self.ended.as_mut().filter(|_| self.lock.take()) else {
            self.rings.append(&mut rings);
            return;
        };
        let mut blocks = Vec::new();
        let mut ended = Vec::new();
        for ring in &mut rings {
            let (mut moved, most) = (0, ring.most_bytes());
            let (records, warnings) = (&mut self.records, &mut self.warnings);
            while moved <= most
                && let Some(chunk) = ring.copy_chunk(true, self.most_segments, records, warnings)
            {
                moved += chunk.bytes;
                let header = ring.header(&chunk, records.len());
                let continuations = block::encode(header, records, &mut blocks);
                ring.reader.pass(&chunk, continuations);
                ring.received += records.len() as u64 - u64::from(continuations);
            }
            ended.push(ring.account(self.overflow));
        }
        if let Err(error) = store.keep(&blocks, &mut ended, &mut self.accounts) {
            let text = format!("threads that ended are not kept: {error}");
            if !self.warnings.said.contains(&text) {
                self.warnings.say(text);
            }
        }
        for ring in &rings {
            self.take_away(session, ring);
        }
        self.lock.give();
    }

    /// Its events and its account are kept.
    fn take_away(&mut self, session: &Session, ring: &Ring) {
        self.prepared -= ring.map.memory_taken();
        session.give_back(ring.map.number, ring.map.allocated());
        if session.is_attached() {
            ring.map.give_back_memory();
        }
        self.known.remove(&ring.map.number);
        if !session.opened_dir().remove(&ring.map.name) {
            self.refused.insert(ring.map.number);
        }
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

    /// Recording has been switched off in a program that runs on: sampled spans, which
    /// do not ask for that, are counted no more.
    pub(crate) fn stop_counting(&mut self) {
        for ring in &mut self.rings {
            let counts = sampled::of_ring(ring.map.number, &ring.map.memory());
            ring.sampled = Some(counts);
            ring.map.unclaim_cells();
        }
    }

    /// Whether rings whose process is over, or cannot be asked for, are searched for those
    /// that nobody has open.
    pub(crate) const fn search_orphans(&mut self, is_wanted: bool) {
        self.searches_orphans = is_wanted;
    }

    /// Whether a ring is there that is not finished.
    pub(crate) fn has_rings(&self) -> bool {
        !self.rings.is_empty() || self.crowded.is_some()
    }

    /// Whether a ring that was asked for is not there yet.
    pub(crate) fn awaits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Rings that are open, finished or waited for.
    pub(crate) fn all_rings(&self) -> u64 {
        (self.rings.len() + self.finished.len() + self.awaited.len()) as u64
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self, session: &Session) -> Progress {
        let open = self.rings.iter();
        let (ended, ended_lost) = self.ended.as_ref().map_or((0, 0), EndedRings::events);
        Progress {
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

    /// Ends the collection: the last round must have been made.
    ///
    /// # Errors
    /// The disk refused something: what was written before is whole.
    pub(crate) fn close(mut self, session: &Session) -> Collected {
        self.flush(true);
        self.count_unopened(session);
        let written = self.disk.take().map_or(Ok(()), Disk::finish);
        let given_up = self.ended.take().map(|store| {
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

/// What there is at the end.
pub(crate) struct Collected {
    pub(crate) rings: Vec<manifest::Ring>,
    pub(crate) sampled: Vec<manifest::Sampled>,
    /// Of a flight recorder.
    pub(crate) given_up: Option<GivenUp>,
    pub(crate) warnings: Vec<String>,
    /// Whether the disk took it all.
    pub(crate) written: Result<(), std::io::Error>,
}

/// Whether it may go better once others are closed.
fn is_shortage(error: &TraceError) -> bool {
    let short = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN];
    matches!(error, TraceError::Io { source, .. }
        if source.raw_os_error().is_some_and(|code| short.contains(&code)))
}

fn our_namespace() -> u32 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |meta| meta.ino() as u32)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use undertick_ring::layout::{self, SEGMENT_BYTES, control, ring};

    use super::*;
    use crate::session::Settings;

    /// A ring whose file is seen in the directory before its number is seen in the control
    /// page, and then by that, is one ring.
    #[test]
    fn a_ring_that_is_made_while_the_directory_is_searched() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings {
            parent: Some(dir.path().to_owned()),
            budget_bytes: Some(1 << 20),
            ring_bytes: 1 << 18,
            ..Settings::growing(undertick_clock::ClockId::Monotonic)
        };
        let session = Session::create(settings).unwrap();
        let trace = TraceDir::make(&dir.path().join("a.ut")).unwrap();
        let mut collector = Collector::new(&session, &trace).unwrap();
        let file = session.opened_dir().create("ring-00000000").unwrap();
        file.set_len(3 * SEGMENT_BYTES).unwrap();
        let put = |at: usize, value: u32| {
            file.write_all_at(&value.to_le_bytes(), at as u64).unwrap();
        };
        put(ring::OFF_VERSION, layout::VERSION);
        put(ring::OFF_MAX_SEGMENTS, 2);
        put(ring::OFF_STATE, ring::STATE_OPEN);
        let magic = ring::MAGIC.to_le_bytes();
        file.write_all_at(&magic, ring::OFF_MAGIC as u64).unwrap();
        let page = session.pages_again().unwrap().remove(0);
        let search = |collector: &mut Collector| {
            collector.listed = Instant::now() - 2 * LIST_EVERY;
            collector.round(&session, false);
            collector.progress(&session).rings
        };
        search(&mut collector);
        let asked = page.field_u32(control::OFF_NEXT_RING);
        asked.store(1, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(search(&mut collector), 1);
        assert_eq!(search(&mut collector), 1);
        page.unmap();
    }
}
