//! The common representation of what the readers of other tools' files find.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use undertick_format::TraceError;
use undertick_format::manifest::{Name, Thread};
use undertick_format::schema::Kind;

use super::spool::Spool;

/// First number for threads and processes whose id cannot be used here, and for tracks that are
/// not threads; Linux gives none above 2^22.
pub(super) const OTHER_NUMBERS: i32 = 1 << 30;
/// Most kinds of left-out things that are counted separately.
const MOST_KINDS: usize = 64;
/// The name of all events beyond the 65535 names that a trace can have.
const REST: &str = "(names beyond 65535)";
/// Longest name kept, bytes.
const LONGEST_NAME: usize = 255;
/// Threads beyond these are left out.
const MOST_THREADS: usize = 1 << 20;

/// Track of the kernel's records in the spool. It comes before the tracks of threads, and those
/// before the tracks of spans that belong to no thread, by process.
const KERNEL: i64 = -1;
const ASYNC: i64 = 1 << 32;

/// The kind of a record in the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpoolKind {
    /// A record of a thread, or a row of the kernel.
    Kind(Kind),
    /// The end of the innermost open span, of any event.
    EndOfInnermost,
}

impl SpoolKind {
    const fn code(self) -> i64 {
        match self {
            Self::Kind(kind) => kind as i64,
            Self::EndOfInnermost => 0xff,
        }
    }

    pub(super) fn from_code(code: i64) -> Option<Self> {
        if code == 0xff {
            return Some(Self::EndOfInnermost);
        }
        Kind::from_code(code as i8).map(Self::Kind)
    }
}

/// A thread that is known to the intake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track(pub(super) u32);

/// A process or a thread, as the source identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Id {
    Number(i64),
    Text(String),
}

/// One row of the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelRow {
    pub(super) ns: i64,
    pub(super) kind: Kind,
    pub(super) tid: i32,
    pub(super) cpu: Option<u32>,
    pub(super) event: u16,
    pub(super) payload: i64,
}

/// Collects the content of a trace.
pub(super) struct Intake {
    pub(super) spool: Spool,
    pub(super) names: Vec<Name>,
    by_name: HashMap<String, u16>,
    /// Process and thread of each track.
    pub(super) tracks: Vec<(i32, i32)>,
    by_ids: HashMap<(i32, i32), Track>,
    other_numbers: HashMap<Id, i32>,
    thread_names: BTreeMap<(i32, i32), String>,
    /// Processes that have spans of no thread.
    pub(super) asyncs: Vec<i32>,
    /// Number of things that a trace cannot hold, by kind.
    pub(super) left_out: BTreeMap<String, u64>,
    /// Events that were lost according to the source.
    pub(super) lost: u64,
    /// The source's own records from which rows of the kernel were made.
    pub(super) kernel_records: u64,
    pub(super) kernel_rows: u64,
    pub(super) step: Step,
    pub(super) span_ns: Option<(i64, i64)>,
    sequence: i64,
}

impl Intake {
    /// Makes an intake; what does not fit in memory goes to `dir`.
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            spool: Spool::new(dir),
            names: Vec::new(),
            by_name: HashMap::new(),
            tracks: Vec::new(),
            by_ids: HashMap::new(),
            other_numbers: HashMap::new(),
            thread_names: BTreeMap::new(),
            asyncs: Vec::new(),
            left_out: BTreeMap::new(),
            lost: 0,
            kernel_records: 0,
            kernel_rows: 0,
            step: Step::default(),
            span_ns: None,
            sequence: 0,
        }
    }

    /// Returns the number of the event with that name.
    pub(super) fn event(&mut self, name: &str) -> u16 {
        let name = cut(name);
        if let Some(&event) = self.by_name.get(name) {
            return event;
        }
        if self.names.len() >= usize::from(u16::MAX) {
            self.left_out("name beyond 65535");
            return self.names.last().map_or(0, |last| last.event);
        }
        let event = self.names.len() as u16;
        let is_last = self.names.len() + 1 == usize::from(u16::MAX);
        let name = if is_last { REST } else { name };
        self.names.push(Name {
            pid: None,
            event,
            name: name.to_owned(),
        });
        self.by_name.insert(name.to_owned(), event);
        event
    }

    /// Returns the number that stands for the process or thread here.
    pub(super) fn number(&mut self, id: &Id) -> i32 {
        if let Id::Number(number) = *id
            && (0..i64::from(OTHER_NUMBERS)).contains(&number)
        {
            return number as i32;
        }
        let next = OTHER_NUMBERS + self.other_numbers.len().min(MOST_THREADS) as i32;
        if self.other_numbers.len() >= MOST_THREADS {
            return next;
        }
        // A file may give each of many threads a name of megabytes.
        let id = match id {
            Id::Text(text) => Id::Text(cut(text).to_owned()),
            Id::Number(number) => Id::Number(*number),
        };
        *self.other_numbers.entry(id).or_insert(next)
    }

    /// Returns a thread's track. A thread whose id cannot be used here gets the source's
    /// identifier as its name.
    pub(super) fn thread(&mut self, pid: &Id, tid: &Id) -> Option<Track> {
        let ids = (self.number(pid), self.number(tid));
        if let Some(&track) = self.by_ids.get(&ids) {
            return Some(track);
        }
        if self.tracks.len() >= MOST_THREADS {
            self.left_out("event of a thread beyond 2^20 threads");
            return None;
        }
        if ids.1 >= OTHER_NUMBERS {
            let called = match tid {
                Id::Number(number) => format!("thread {number}"),
                Id::Text(text) => cut(text).to_owned(),
            };
            self.thread_names.entry(ids).or_insert(called);
        }
        let track = Track(self.tracks.len() as u32);
        self.tracks.push(ids);
        self.by_ids.insert(ids, track);
        Some(track)
    }

    pub(super) fn name_thread(&mut self, pid: &Id, tid: &Id, name: &str) {
        let ids = (self.number(pid), self.number(tid));
        if self.thread_names.len() < MOST_THREADS {
            self.thread_names.insert(ids, cut(name).to_owned());
        }
    }

    /// Names a thread that has no name yet.
    pub(super) fn name_thread_once(&mut self, track: Track, name: &str) {
        let ids = self.tracks[track.0 as usize];
        let names = self.thread_names.entry(ids);
        names.or_insert_with(|| cut(name).to_owned());
    }

    /// Returns the names of threads, for the manifest.
    pub(super) fn threads(&self) -> Vec<Thread> {
        let thread = |(&(pid, tid), name): (&(i32, i32), &String)| Thread {
            pid,
            tid,
            name: name.clone(),
        };
        self.thread_names.iter().map(thread).collect()
    }

    /// Counts something that a trace cannot hold.
    pub(super) fn left_out(&mut self, kind: &str) {
        if let Some(count) = self.left_out.get_mut(kind) {
            *count += 1;
            return;
        }
        let kind = if self.left_out.len() < MOST_KINDS {
            cut(kind)
        } else {
            "of other kinds"
        };
        *self.left_out.entry(kind.to_owned()).or_default() += 1;
    }

    pub(super) fn begin(&mut self, at: At, event: u16) -> Result<(), TraceError> {
        self.record(at, SpoolKind::Kind(Kind::Begin), event, 0)
    }

    /// Adds the end of the innermost open span of that event, or of any event.
    pub(super) fn end(&mut self, at: At, event: Option<u16>) -> Result<(), TraceError> {
        let kind = event.map_or(SpoolKind::EndOfInnermost, |_| SpoolKind::Kind(Kind::End));
        self.record(at, kind, event.unwrap_or(0), 0)
    }

    pub(super) fn instant(&mut self, at: At, event: u16, payload: i64) -> Result<(), TraceError> {
        self.record(at, SpoolKind::Kind(Kind::Instant), event, payload)
    }

    fn record(
        &mut self,
        at: At,
        kind: SpoolKind,
        event: u16,
        payload: i64,
    ) -> Result<(), TraceError> {
        self.put(at, Order::InTurn, kind, event, payload, 0)
    }

    /// Adds a span of known length; false if it ends before it begins.
    pub(super) fn complete(
        &mut self,
        at: At,
        length_ns: i64,
        event: u16,
    ) -> Result<bool, TraceError> {
        self.complete_with(at, length_ns, event, &[])
    }

    /// As [`Self::complete`], with points that follow its begin before anything else.
    pub(super) fn complete_with(
        &mut self,
        at: At,
        length_ns: i64,
        event: u16,
        points: &[(u16, i64)],
    ) -> Result<bool, TraceError> {
        let Some(end_ns) = at.ns.checked_add(length_ns).filter(|_| length_ns >= 0) else {
            return Ok(false);
        };
        let end = At { ns: end_ns, ..at };
        let (begins, ends) = (SpoolKind::Kind(Kind::Begin), SpoolKind::Kind(Kind::End));
        let (begin_order, end_order) = match length_ns {
            0 => (Order::Empty, Order::Empty),
            _ => (Order::Begins(length_ns), Order::Ends(length_ns)),
        };
        self.put(at, begin_order, begins, event, 0, 0)?;
        for &(point, payload) in points {
            let kind = SpoolKind::Kind(Kind::Instant);
            self.put(at, begin_order, kind, point, payload, 0)?;
        }
        self.put(end, end_order, ends, event, 0, 0)?;
        Ok(true)
    }

    /// Adds a begin, an end or a point of no thread; those with one `id` belong together.
    pub(super) fn of_no_thread(
        &mut self,
        pid: i32,
        id: u64,
        ns: i64,
        kind: SpoolKind,
        event: u16,
        payload: i64,
    ) -> Result<(), TraceError> {
        let place = match self.asyncs.iter().position(|&known| known == pid) {
            Some(place) => place,
            None if self.asyncs.len() < 4096 => {
                self.asyncs.push(pid);
                self.asyncs.len() - 1
            }
            None => 0,
        };
        self.note_time(ns);
        let track = ASYNC + place as i64;
        self.push(
            track,
            ns,
            Order::InTurn,
            packed(kind, event, None),
            payload,
            id.cast_signed(),
        )
    }

    pub(super) fn kernel_row(&mut self, row: KernelRow) -> Result<(), TraceError> {
        self.kernel_rows += 1;
        self.note_time(row.ns);
        let packed = packed(SpoolKind::Kind(row.kind), row.event, row.cpu);
        self.push(
            KERNEL,
            row.ns,
            Order::InTurn,
            packed,
            row.payload,
            i64::from(row.tid),
        )
    }

    fn put(
        &mut self,
        at: At,
        order: Order,
        kind: SpoolKind,
        event: u16,
        payload: i64,
        id: i64,
    ) -> Result<(), TraceError> {
        self.note_time(at.ns);
        let packed = packed(kind, event, at.cpu);
        self.push(i64::from(at.track.0), at.ns, order, packed, payload, id)
    }

    fn push(
        &mut self,
        track: i64,
        ns: i64,
        order: Order,
        packed: i64,
        payload: i64,
        id: i64,
    ) -> Result<(), TraceError> {
        self.sequence += 1;
        let sequence = match order {
            Order::Ends(_) => -self.sequence,
            _ => self.sequence,
        };
        self.spool
            .push([track, ns, order.word(), sequence, packed, payload, id])
    }

    fn note_time(&mut self, ns: i64) {
        let (lo, hi) = self.span_ns.unwrap_or((ns, ns));
        self.span_ns = Some((lo.min(ns), hi.max(ns)));
        self.step.note(ns);
    }
}

/// Thread and time of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) track: Track,
    pub(super) ns: i64,
    pub(super) cpu: Option<u32>,
}

/// The order of records of one time in one thread.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// The end of a span of known length: the shorter, inner one comes first.
    Ends(i64),
    /// In the order of the source.
    InTurn,
    /// The begin of a span of known length: the longer, outer one comes first.
    Begins(i64),
    /// A span of no length.
    Empty,
}

const LONGEST: i64 = (1 << 60) - 1;

impl Order {
    fn word(self) -> i64 {
        match self {
            Self::Ends(length) => length.min(LONGEST),
            Self::InTurn => 1 << 60,
            Self::Begins(length) => (2 << 60) + LONGEST - length.min(LONGEST),
            Self::Empty => 3 << 60,
        }
    }
}

fn packed(kind: SpoolKind, event: u16, cpu: Option<u32>) -> i64 {
    let cpu = cpu.map_or(0, |cpu| i64::from(cpu) + 1);
    kind.code() | i64::from(event) << 8 | cpu << 24
}

/// A record read back from the spool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unpacked {
    pub(super) owner: Owner,
    pub(super) ns: i64,
    pub(super) kind: SpoolKind,
    pub(super) event: u16,
    pub(super) cpu: Option<u32>,
    pub(super) payload: i64,
    pub(super) id: u64,
}

/// The owner of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Kernel,
    Thread(u32),
    /// No thread; the index of the process.
    Process(usize),
}

impl Unpacked {
    pub(super) fn from_words([track, ns, _, _, packed, payload, id]: super::spool::Words) -> Self {
        Self {
            owner: match track {
                KERNEL => Owner::Kernel,
                ASYNC.. => Owner::Process((track - ASYNC) as usize),
                _ => Owner::Thread(track as u32),
            },
            ns,
            kind: SpoolKind::from_code(packed & 0xff).unwrap_or(SpoolKind::EndOfInnermost),
            event: (packed >> 8) as u16,
            cpu: u32::try_from((packed >> 24) - 1).ok(),
            payload,
            id: id.cast_unsigned(),
        }
    }
}

/// The step of the source's times, ns: the common divisor of all differences.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    first: Option<i64>,
    common: u64,
    times: u64,
}

/// From this number of times on, their common divisor is reported as the clock's step.
const ENOUGH_TIMES: u64 = 64;

impl Step {
    fn note(&mut self, ns: i64) {
        self.times += 1;
        if self.common == 1 {
            return;
        }
        let first = *self.first.get_or_insert(ns);
        let (mut a, mut b) = (self.common, ns.abs_diff(first));
        while b != 0 {
            (a, b) = (b, a % b);
        }
        self.common = a;
    }

    /// The step, at least 1 ns.
    pub(super) fn ns(&self) -> u64 {
        if self.times < ENOUGH_TIMES {
            1
        } else {
            self.common.max(1)
        }
    }
}

/// Cuts a text to the maximum length in bytes, at a character boundary.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_NAME)]
}

#[cfg(test)]
mod tests;
