//! Writes sorted records as a trace.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use undertick_format::TraceError;
use undertick_format::block::{self, BlockHeader};
use undertick_format::files::{KERNEL_FILE, RAW_FILE};
use undertick_format::manifest::{Part, Ring, Thread};
use undertick_format::schema::Kind;
use undertick_record::kernel::rows::{Row, Sink};
use undertick_ring::{DeschedFlag, Kind as RecordKind, Record};

use super::intake::{Intake, OTHER_NUMBERS, Owner, SpoolKind, Unpacked};

/// Most spans of no thread that can be open in one process at a time.
const MOST_LANES: usize = 4096;
/// Deepest nesting in which an end without a name can find its begin.
const DEEPEST: usize = 1 << 16;
/// Records of a lane that are collected before they become a block.
const LANE_RECORDS: usize = 512;

/// The result of writing.
pub(super) struct Written {
    pub(super) rings: Vec<Ring>,
    pub(super) lanes: Vec<Thread>,
    pub(super) kernel: Option<Part>,
    pub(super) left_out: Vec<(&'static str, u64)>,
}

/// Writes the records of an intake as raw blocks, and the rows of the kernel as Parquet. `progress`
/// receives the share done, 0 to 1.
pub(super) fn write(
    trace: &Path,
    intake: &mut Intake,
    progress: &mut dyn FnMut(f64),
) -> Result<Written, TraceError> {
    let empty = super::spool::Spool::new(trace);
    let spool = std::mem::replace(&mut intake.spool, empty);
    let all = spool.len().max(1) as f64;
    let mut sorted = spool.sorted()?;
    let kernel_path = trace.join(KERNEL_FILE);
    let mut kernel = match intake.kernel_rows {
        0 => None,
        _ => Some(Sink::create(&kernel_path)?),
    };
    let mut rings = Rings::create(trace, &intake.tracks)?;
    let mut lanes: Vec<Lanes> = intake.asyncs.iter().map(|&pid| Lanes::new(pid)).collect();
    let mut done = 0u64;
    while let Some(words) = sorted.next()? {
        let record = Unpacked::from_words(words);
        match record.owner {
            Owner::Kernel => {
                if let Some(sink) = &mut kernel {
                    sink.push(kernel_row(&record));
                    sink.write_full()?;
                }
            }
            Owner::Thread(track) => rings.of_thread(track, &record)?,
            Owner::Process(place) => lanes[place].take(&mut rings, &record)?,
        }
        done += 1;
        if done.is_multiple_of(1 << 16) {
            progress(done as f64 / all);
        }
    }
    let kernel = match kernel {
        Some(sink) => Some(kernel_part(sink.finish()?, &kernel_path)?),
        None => None,
    };
    rings.finish(kernel)
}

fn kernel_row(record: &Unpacked) -> Row {
    let SpoolKind::Kind(kind) = record.kind else {
        unreachable!("rows of the kernel have a kind");
    };
    Row {
        ticks: record.ns,
        kind,
        pid: 0,
        tid: record.id as i32,
        cpu: record
            .cpu
            .and_then(|cpu| i16::try_from(cpu).ok())
            .unwrap_or(-1),
        event: i32::from(record.event),
        payload: record.payload,
    }
}

fn kernel_part(rows: u64, path: &Path) -> Result<Part, TraceError> {
    let (bytes, crc32) = undertick_record::output::checksum(path)?;
    Ok(Part {
        file: KERNEL_FILE.to_owned(),
        rows,
        bytes,
        crc32,
        by_ring: false,
    })
}

/// The rings being written: those of threads, one after the other, then lanes.
struct Rings {
    path: PathBuf,
    out: BufWriter<File>,
    rings: Vec<Being>,
    /// The thread to which records are being added.
    now: usize,
    lanes: Vec<Thread>,
    left_out: HashMap<&'static str, u64>,
    bytes: Vec<u8>,
}

/// A ring, with its records that are not written yet.
struct Being {
    pid: i32,
    tid: i32,
    events: u64,
    position: u64,
    words: Vec<[u64; 2]>,
    /// Open spans, the innermost last.
    open: Vec<u16>,
}

impl Being {
    fn new(pid: i32, tid: i32) -> Self {
        Self {
            pid,
            tid,
            events: 0,
            position: 0,
            words: Vec::new(),
            open: Vec::new(),
        }
    }
}

impl Rings {
    fn create(trace: &Path, tracks: &[(i32, i32)]) -> Result<Self, TraceError> {
        let path = trace.join(RAW_FILE);
        let file = File::create_new(&path).map_err(TraceError::io(&path, "cannot create"))?;
        Ok(Self {
            path,
            out: BufWriter::with_capacity(1 << 20, file),
            rings: tracks
                .iter()
                .map(|&(pid, tid)| Being::new(pid, tid))
                .collect(),
            now: 0,
            lanes: Vec::new(),
            left_out: HashMap::new(),
            bytes: Vec::new(),
        })
    }

    fn of_thread(&mut self, track: u32, record: &Unpacked) -> Result<(), TraceError> {
        let ring = track as usize;
        if ring != self.now {
            self.flush(self.now)?;
            // The buffer of a finished thread is not needed again.
            self.rings[self.now].words = Vec::new();
            self.rings[self.now].open = Vec::new();
            self.now = ring;
        }
        self.add(ring, record, block::MAX_RECORDS - 1)
    }

    /// Adds a record to a ring; an end without a name gets the name of the innermost begin.
    fn add(&mut self, ring: usize, record: &Unpacked, most: usize) -> Result<(), TraceError> {
        let being = &mut self.rings[ring];
        let (kind, event) = match record.kind {
            SpoolKind::Kind(kind) => (kind, record.event),
            SpoolKind::EndOfInnermost => match being.open.last() {
                Some(&event) => (Kind::End, event),
                None => return self.leave_out("end of a span that did not begin"),
            },
        };
        match kind {
            Kind::Begin if being.open.len() < DEEPEST => being.open.push(event),
            Kind::Begin => return self.leave_out("begin of a span nested deeper than 65536"),
            Kind::End => {
                if let Some(at) = being.open.iter().rposition(|&open| open == event) {
                    being.open.remove(at);
                }
            }
            _ => {}
        }
        being.push(record, kind, event);
        if being.words.len() >= most {
            self.flush(ring)?;
        }
        Ok(())
    }

    fn leave_out(&mut self, kind: &'static str) -> Result<(), TraceError> {
        *self.left_out.entry(kind).or_default() += 1;
        Ok(())
    }

    /// Writes the collected records of a ring as a block.
    fn flush(&mut self, ring: usize) -> Result<(), TraceError> {
        let Some(being) = self.rings.get_mut(ring).filter(|b| !b.words.is_empty()) else {
            return Ok(());
        };
        let header = BlockHeader {
            ring: ring as u32,
            pid: being.pid,
            tid: being.tid,
            position: being.position,
            records: being.words.len() as u32,
        };
        self.bytes.clear();
        block::encode(header, &being.words, &mut self.bytes);
        being.position += 16 * being.words.len() as u64;
        being.words.clear();
        (self.out.write_all(&self.bytes)).map_err(TraceError::io(&self.path, "cannot write"))
    }

    fn finish(mut self, kernel: Option<Part>) -> Result<Written, TraceError> {
        for ring in 0..self.rings.len() {
            self.flush(ring)?;
        }
        (self.out.flush()).map_err(TraceError::io(&self.path, "cannot write"))?;
        let ring = |(number, being): (usize, &Being)| Ring {
            ring: number as i32,
            pid: being.pid,
            tid: being.tid,
            written: being.events,
            received: being.events,
            dropped: 0,
            overwritten: 0,
            spans_wait: None,
            interposed: false,
            read_cost: None,
        };
        Ok(Written {
            rings: self.rings.iter().enumerate().map(ring).collect(),
            lanes: self.lanes,
            kernel,
            left_out: self.left_out.into_iter().collect(),
        })
    }
}

impl Being {
    fn push(&mut self, from: &Unpacked, kind: Kind, event: u16) {
        let narrow = u32::try_from(from.payload);
        let record = Record {
            ts: from.ns.cast_unsigned(),
            payload: narrow.unwrap_or(0),
            event,
            cpu: (from.cpu.and_then(|cpu| u16::try_from(cpu).ok()))
                .map_or(Record::CPU_UNKNOWN, |cpu| cpu.min(Record::CPU_UNKNOWN)),
            kind: RecordKind::from_code(kind as u16),
            descheduled: DeschedFlag::Unknown,
        };
        self.words.push(record.to_words());
        if narrow.is_err() {
            let wide = Record {
                ts: from.payload.cast_unsigned(),
                payload: Record::WIDE,
                kind: RecordKind::Continuation,
                ..record
            };
            self.words.push(wide.to_words());
        }
        self.events += 1;
    }
}

/// Places spans of no thread where nothing else is open. A lane has one of them at a time, with
/// what is nested in it, so that begins and ends find each other.
struct Lanes {
    pid: i32,
    rings: Vec<usize>,
    free: BTreeSet<usize>,
    /// Lane and depth of open spans, by the number that identifies related records.
    open: HashMap<u64, (usize, usize)>,
}

impl Lanes {
    fn new(pid: i32) -> Self {
        Self {
            pid,
            rings: Vec::new(),
            free: BTreeSet::new(),
            open: HashMap::new(),
        }
    }

    fn take(&mut self, rings: &mut Rings, record: &Unpacked) -> Result<(), TraceError> {
        let open = self.open.get(&record.id).copied();
        let is_begin = record.kind == SpoolKind::Kind(Kind::Begin);
        let is_instant = record.kind == SpoolKind::Kind(Kind::Instant);
        let (lane, depth) = match open {
            Some(open) => open,
            None if is_begin || is_instant => match self.free_lane(rings) {
                Some(lane) => (lane, 0),
                None => return rings.leave_out("span of no thread beyond 4096 open at once"),
            },
            None => return rings.leave_out("end of a span that did not begin"),
        };
        let depth = match (is_begin, is_instant) {
            (true, _) => depth + 1,
            (_, true) => depth,
            _ => depth - 1,
        };
        if depth == 0 {
            self.open.remove(&record.id);
            self.free.insert(lane);
        } else {
            self.open.insert(record.id, (lane, depth));
        }
        rings.add(self.rings[lane], record, LANE_RECORDS)
    }

    /// The first lane in which nothing is open.
    fn free_lane(&mut self, rings: &mut Rings) -> Option<usize> {
        if let Some(lane) = self.free.pop_first() {
            return Some(lane);
        }
        let lane = self.rings.len();
        if lane >= MOST_LANES {
            return None;
        }
        let tid = OTHER_NUMBERS + (1 << 24) + rings.lanes.len() as i32;
        rings.lanes.push(Thread {
            pid: self.pid,
            tid,
            name: format!("async {}", lane + 1),
        });
        self.rings.push(rings.rings.len());
        rings.rings.push(Being::new(self.pid, tid));
        Some(lane)
    }
}
