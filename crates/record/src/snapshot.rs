//! Makes a trace of the last seconds of a flight recorder, which continues to record.
//!
//! **Method.** A snapshot is made from outside. Its sources are the rings in the session's pool,
//! mapped read-only, and the recorder's files of threads that have ended. So it stops no
//! measuring point and no writer. It needs nothing of the recorder except that no ring is taken
//! away during the copy (a lock). It can also be made after the recorder was killed.
//!
//! The heads of all rings are read first, one after the other, and each ring is copied up to its
//! head: the rings end together, within microseconds. A writer that overtakes the copy of its
//! ring makes a hole in it. Then what was copied before the hole is dropped, too, since it is
//! overwritten by now. So the copy of a ring has no gap, and everything that is not in it is
//! counted. If a ring is overwritten so quickly that less than half of it is left at its turn,
//! newer records are copied, too.
//!
//! **Caveats.** Rings are copied one after the other. If a writer comes round before the turn of
//! its ring, that copy begins, and may end, later than the others. The snapshot has the kernel's
//! events that the recorder has written, at most 10 ms less.

mod part;
mod unfinished;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use undertick_clock::ClockId;
use undertick_format::TraceError;
use undertick_format::block::{self, BlockHeader};
use undertick_format::files::RAW_FILE;
use undertick_format::manifest::{self, Manifest, State};
use undertick_format::read::read_manifest;
use undertick_memory::control_page::open_control;
use undertick_memory::pool_map::PoolMap;
use undertick_memory::ring_map::RingMap;
use undertick_memory::session_lock::SessionLock;
use undertick_ring::layout::{SEGMENT_BYTES, control};
use undertick_ring::{Corrupt, Kind, Mapped, Memory, Reader, Record};

use crate::accounts;
use crate::description::{anchor, flight};
use crate::exited_threads::EXITED_THREADS_FILES;
use crate::finalize;
use crate::kernel;
use crate::lock_names;
use crate::names::{self, Names};
use crate::output;
use crate::recover::{each_block, rings_of};
use crate::ring_drain::copy;
use crate::sampled;
use crate::session::SessionDir;
use crate::session_identity::{self, NotTaken};
use crate::trace_dir::TraceDir;

use part::Cut;
pub(crate) use part::Part;
use unfinished::Unfinished;

/// How often a ring is copied again because its writer came round. A copy takes a fraction of the
/// time that the writer needs to fill the ring, unless it loses its CPU.
const MOST_TRIES: u32 = 1000;

/// Makes a trace of what the recording in `trace` holds now; the recording continues.
///
/// # Errors
/// It is not a recording that overwrites, or it has ended; or `out` exists already, or cannot be
/// written.
pub fn snapshot(
    trace: &Path,
    out: &Path,
    progress: &mut dyn FnMut(f64),
) -> Result<Manifest, TraceError> {
    snapshot_of(trace, out, &Part::default(), progress)
}

/// As [`snapshot`], of a part of what the recording holds.
///
/// # Errors
/// As [`snapshot`].
pub(crate) fn snapshot_of(
    trace: &Path,
    out: &Path,
    part: &Part,
    progress: &mut dyn FnMut(f64),
) -> Result<Manifest, TraceError> {
    let mut manifest = read_manifest(trace)?;
    let opened = session_of(trace, &manifest)?;
    let lock = SessionLock::open(&opened)?;
    if !lock.share() {
        return Err(TraceError::Recording(format!(
            "{}: the recorder is just ending the recording; open it when it is over",
            trace.display()
        )));
    }
    let of = TraceDir::open(trace)?;
    kernel::raw::await_rounds(&of);
    let unfinished = Unfinished::make(out)?;
    let made = make(&of, &opened, &unfinished.dir, part, &mut manifest);
    // From here on the recorder may take rings away.
    drop(lock);
    let made = made.and_then(|_lock| {
        finalize::finish(&unfinished.dir, &mut manifest, progress)?;
        unfinished.publish(out)
    });
    if let Err(error) = made {
        unfinished.remove();
        return Err(error);
    }
    Ok(manifest)
}

/// Finds the trace directory of a recording: by its path, by the process id of its recorder or of
/// a program that it records, or by its session directory.
///
/// # Errors
/// There is no such recording.
pub fn recording_of(of: &str) -> Result<PathBuf, TraceError> {
    let path = Path::new(of);
    if path.join(control_file()).is_file() {
        return recorder_of(path)
            .and_then(recorded_by)
            .ok_or_else(|| orphan(path));
    }
    let Some(pid) = of.parse().ok().filter(|_| !path.exists()) else {
        return Ok(path.to_owned());
    };
    if let Some(trace) = recorded_by(pid) {
        return Ok(trace);
    }
    let Some(session) = session_of_program(pid) else {
        return Err(TraceError::Usage(format!(
            "{pid}: neither a recorder nor a program that is being recorded; give the trace directory of the recording"
        )));
    };
    (recorder_of(&session).and_then(recorded_by)).ok_or_else(|| orphan(&session))
}

const fn control_file() -> &'static str {
    undertick_ring::layout::CONTROL_FILE
}

fn orphan(session: &Path) -> TraceError {
    TraceError::Usage(format!(
        "{}: its recorder is gone; give the trace directory of the recording",
        session.display()
    ))
}

/// Process id of the recorder that made a session, taken from the directory's name.
fn recorder_of(session: &Path) -> Option<i32> {
    let name = session.canonicalize().ok()?;
    let name = name.file_name()?.to_str()?.strip_prefix("undertick-")?;
    name.split('-').nth(1)?.parse().ok()
}

/// The trace to which a process writes, found by its open file of raw blocks.
fn recorded_by(recorder: i32) -> Option<PathBuf> {
    let files = fs::read_dir(format!("/proc/{recorder}/fd")).ok()?;
    let links = files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok());
    links
        .filter(|link| link.file_name().is_some_and(|name| name == RAW_FILE))
        .filter_map(|link| Some(link.parent()?.to_owned()))
        .find(|trace| read_manifest(trace).is_ok_and(|found| found.session.is_some()))
}

/// The session that owns the files mapped by a program.
fn session_of_program(pid: i32) -> Option<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    maps.lines().find_map(|line| {
        let path = Path::new(line.get(line.find('/')?..)?);
        let session = path.parent()?;
        let name = session.file_name()?.to_str()?;
        (name.starts_with("undertick-") && session.join(control_file()).exists())
            .then(|| session.to_owned())
    })
}

/// The first free name beside a trace: NAME-1.ut, NAME-2.ut, ...
#[must_use]
pub fn numbered(trace: &Path) -> PathBuf {
    numbered_from(trace, 1).1
}

/// As [`numbered`], with this number at least; also returns the number.
pub(crate) fn numbered_from(trace: &Path, first: u64) -> (u64, PathBuf) {
    let stem = trace.file_stem().unwrap_or_default().to_string_lossy();
    (first..)
        .map(|number| (number, trace.with_file_name(format!("{stem}-{number}.ut"))))
        .find(|(_, path)| !path.exists())
        .unwrap_or_else(|| (first, trace.to_owned()))
}

/// The session that holds the rings of a recording.
fn session_of(trace: &Path, manifest: &Manifest) -> Result<SessionDir, TraceError> {
    let name = trace.display();
    let session = manifest
        .session
        .as_ref()
        .filter(|_| manifest.state == State::Recording);
    let Some(session) = session else {
        return Err(TraceError::Usage(format!(
            "{name}: not being recorded any more; it is a trace by itself, as in `undertick report {name}`"
        )));
    };
    if manifest.recorder.overflow != "overwrite" {
        return Err(TraceError::Usage(format!(
            "{name}: recorded with --overflow {}, which leaves no last seconds in the rings; \
             record with --overflow overwrite",
            manifest.recorder.overflow
        )));
    }
    session_identity::look(manifest).map_err(|why| match why {
        NotTaken::Gone => TraceError::Recording(format!(
            "{name}: its rings in {session} are gone; what was kept is in the trace"
        )),
        why => why.error(trace),
    })
}

/// Copies what exists into a trace that is to be finished; `manifest` becomes its manifest. Also
/// returns the lock that keeps others from finishing it.
fn make(
    trace: &TraceDir,
    session: &SessionDir,
    out: &TraceDir,
    part: &Part,
    manifest: &mut Manifest,
) -> Result<File, TraceError> {
    let path = out.join(RAW_FILE);
    let failed = || TraceError::io(&path, "cannot write");
    let raw = out.create_new(RAW_FILE).map_err(failed())?;
    let lock = raw.try_clone().map_err(failed())?;
    let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
    let mut raw = BufWriter::with_capacity(1 << 20, raw);
    let pool = Arc::new(PoolMap::open(session, false)?);
    let mut rings: Vec<Looked> = Vec::new();
    let mut there = HashSet::new();
    for found in rings_of(&pool) {
        match found {
            Ok(ring) if there.insert(ring.number) => rings.push(Looked::at(ring)),
            Ok(_) => {} // a program overwrote its number
            Err(why) => manifest.warnings.push(why),
        }
    }
    rings.sort_unstable_by_key(|ring| ring.map.number);
    rings.iter_mut().for_each(Looked::look);
    manifest.triggered = part.triggered.clone();
    manifest.triggered_more = part.more;
    manifest.session = None;
    manifest.session_identity = None;
    manifest.lost = lost_no_ring(session)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let unix_ns = now.map_or(0, |now| now.as_nanos() as i64);
    manifest.duration_ns = Some(unix_ns - manifest.started_unix_ns);
    kernel::raw::copy(trace, out)?;
    kernel::sampling::copy(trace, out)?;

    let written = accounts::read(trace);
    let (given_up, mut ended) = (written.given_up, written.ended);
    // A recorder that was killed may have left both a ring and its stored events.
    ended.retain(|ring, _| !there.contains(&(*ring as u32)));
    let mut cut = Cut::from_ticks(part.from_ticks);
    for file in EXITED_THREADS_FILES {
        each_block(trace, file, |header, block| {
            if there.contains(&header.ring) {
                return Ok(());
            }
            raw.write_all(cut.part(header, block))
        })?;
    }
    for mut ended in ended.into_values() {
        let earlier = cut.earlier_events(ended.ring.ring as u32);
        ended.ring.received = ended.ring.received.saturating_sub(earlier);
        ended.ring.overwritten += earlier;
        manifest.rings.push(ended.ring);
        manifest.sampled.extend(ended.sampled);
    }
    let mut copied = Copied::default();
    let mut blocks = Vec::new();
    for mut ring in rings {
        manifest.warnings.extend(ring.copy(&mut copied));
        copied.keep_from(part.from_ticks);
        blocks.clear();
        copied.encode(&ring.map, &mut blocks);
        raw.write_all(&blocks).map_err(failed())?;
        manifest.rings.push(ring.account(&copied));
        (manifest.sampled).extend(sampled::of_ring(ring.map.number, &ring.map.memory()));
    }
    raw.flush().map_err(failed())?;
    // After the last copy: on a busy machine a ring may be copied again and again for longer than
    // events may lie after the last anchor.
    let clock = manifest.clock.name.parse::<ClockId>().ok();
    manifest.clock.anchors.extend(clock.and_then(anchor));
    manifest.sampled.sort_by_key(|s| (s.ring, s.event));
    let Names {
        events,
        mut threads,
        locks,
    } = names::read(session);
    let known: HashSet<(i32, i32)> = manifest.rings.iter().map(|r| (r.pid, r.tid)).collect();
    threads.retain(|thread| known.contains(&(thread.pid, thread.tid)));
    manifest.names = names::merge_names(events, &manifest.names);
    manifest.threads = threads;
    manifest.locks = lock_names::found(&locks);
    flight(manifest, given_up, Some(unix_ns));
    output::write_manifest(out, manifest)?;
    Ok(lock)
}

fn lost_no_ring(session: &SessionDir) -> Result<u64, TraceError> {
    let (_, page) = open_control(session)?;
    let lost = page.field_u64(control::OFF_LOST_NO_RING);
    let lost = lost.load(Ordering::Relaxed);
    // SAFETY: the number was read, and the page goes with this function.
    unsafe { page.unmap() };
    Ok(lost)
}

/// A ring that is being written to, as seen by the snapshot.
struct Looked {
    map: RingMap,
    reader: Reader<Mapped>,
    /// Position up to which it is copied.
    head: u64,
    /// Bytes that it held when it was first seen.
    held: u64,
    dropped: u64,
}

/// The copy of a ring, without a hole.
#[derive(Default)]
struct Copied {
    records: Vec<[u64; 2]>,
    /// Position and records of each chunk, which lie in one segment each.
    chunks: Vec<(u64, usize)>,
    events: u64,
    /// Events that were copied and overwritten before the rest was copied, or that came before what
    /// is to be kept.
    dropped_again: u64,
}

impl Copied {
    fn clear(&mut self) {
        self.records.clear();
        self.chunks.clear();
        self.events = 0;
        self.dropped_again = 0;
    }

    /// Drops all that was copied, because a hole follows it.
    fn drop_all(&mut self) {
        let dropped = self.dropped_again + self.events;
        self.clear();
        self.dropped_again = dropped;
    }

    /// Drops the records before a time.
    fn keep_from(&mut self, ticks: u64) {
        let dropped = part::before(&self.records, ticks);
        let events = part::events(&self.records[..dropped]);
        self.events -= events;
        self.dropped_again += events;
        self.records.drain(..dropped);
        let mut rest = dropped;
        self.chunks.retain_mut(|(position, records)| {
            let of_this = rest.min(*records);
            rest -= of_this;
            *position += 16 * of_this as u64;
            *records -= of_this;
            *records > 0
        });
    }

    fn encode(&self, map: &RingMap, blocks: &mut Vec<u8>) {
        let mut rest = &self.records[..];
        for &(position, records) in &self.chunks {
            let (chunk, after) = rest.split_at(records);
            rest = after;
            let header = BlockHeader {
                ring: map.number,
                pid: map.pid,
                tid: map.tid,
                position,
                records: records as u32,
            };
            block::encode(header, chunk, blocks);
        }
    }
}

impl Looked {
    const fn at(map: RingMap) -> Self {
        let reader = Reader::new(map.memory());
        Self {
            map,
            reader,
            head: 0,
            held: 0,
            dropped: 0,
        }
    }

    /// Reads the head: what is written later is not in the copy.
    fn look(&mut self) {
        self.dropped = self.map.dropped();
        self.head = self.reader.look() + self.reader.position();
        if self.held == 0 {
            let oldest = self.map.memory().load_oldest();
            let start = oldest.saturating_mul(SEGMENT_BYTES);
            self.held = self.head.saturating_sub(start);
        }
    }

    /// Copies the ring up to the head as it was read, or, if the writer has come round since, up
    /// to the present head. Returns a warning, if there is one.
    fn copy(&mut self, copied: &mut Copied) -> Option<String> {
        copied.clear();
        let ring = format!(
            "ring {} of process {} thread {}",
            self.map.number, self.map.pid, self.map.tid
        );
        for _ in 0..MOST_TRIES {
            match self.copy_seen(copied) {
                Ok(()) if self.reader.position() >= self.head && self.is_enough(copied) => {
                    return None;
                }
                Ok(()) => self.look(),
                Err(corrupt) => {
                    return Some(format!(
                        "{ring}: {corrupt}; the program overwrote its ring, what came before is kept"
                    ));
                }
            }
        }
        copied.drop_all();
        Some(format!(
            "{ring}: written faster than it can be copied; give a greater --ring"
        ))
    }

    /// Whether the copy suffices. If the writer was quick, little is left of what the ring held
    /// when its head was read; there is more by now.
    const fn is_enough(&self, copied: &Copied) -> bool {
        copied.records.len() as u64 * 32 >= self.held
    }

    /// Copies until everything up to the head is copied, or overwritten.
    fn copy_seen(&mut self, copied: &mut Copied) -> Result<(), Corrupt> {
        let mut chunk_records = Vec::new();
        loop {
            let before = self.reader.position();
            let Some(chunk) = self.reader.seen_chunk()? else {
                return Ok(());
            };
            if chunk.position != before {
                copied.drop_all();
            }
            copy(&self.map.memory(), &chunk, &mut chunk_records);
            if !self.reader.is_whole(&chunk) {
                return Ok(());
            }
            let is_continuation =
                |words: &&[u64; 2]| Record::from_words(**words).kind == Kind::Continuation;
            let continuations = chunk_records.iter().filter(is_continuation).count();
            copied.events += (chunk_records.len() - continuations) as u64;
            copied.chunks.push((chunk.position, chunk_records.len()));
            copied.records.append(&mut chunk_records);
            self.reader.pass(&chunk, continuations as u32);
        }
    }

    fn account(&self, copied: &Copied) -> manifest::Ring {
        let overwritten = self.reader.overwritten() + copied.dropped_again;
        manifest::Ring {
            ring: self.map.number as i32,
            pid: self.map.pid,
            tid: self.map.tid,
            written: (copied.events.saturating_add(overwritten)).saturating_add(self.dropped),
            received: copied.events,
            dropped: self.dropped,
            overwritten,
            spans_wait: Some(self.map.spans_wait()),
            interposed: self.map.is_interposed(),
            read_cost: self.map.read_cost(),
        }
    }
}
