//! Makes a trace of the stream of the event card (`hw/event_card`), from a file, or from a device
//! while it arrives. Each master of the card becomes a thread, and its stores as supervisor
//! another.
//!
//! The stream itself says where events were lost (a gap record), how many, and which masters may
//! have lost some. The open spans of those masters are given up there. Memory does not grow with
//! the stream.

mod device;
mod manifest;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use undertick_ring::{Kind, Record};

pub use device::Device;
use undertick_format::TraceError;
use undertick_format::block::{self, BlockHeader};
use undertick_format::files::RAW_FILE;
use undertick_format::manifest::{Manifest, Name};
use undertick_record::finalize::{self};
use undertick_record::trace_dir::TraceDir;

use super::made_in;

/// Bytes of a record.
const RECORD_BYTES: usize = 16;
/// Payload of the continuation record at the start of a stream.
const CARD: u32 = 4;
/// Version of the stream, in the event number of that record.
const VERSION: u16 = 1;
/// Flag of records that a master stored as supervisor.
const SUPERVISOR: u64 = 3;
/// The process to which all masters belong as threads, and the threads of supervisors.
const PID: i32 = 1;
const SUPERVISOR_TID: i32 = 4096;
/// Latest time: times are stored as signed numbers.
const LATEST: u64 = i64::MAX as u64;
/// Records of a master that are collected before they become a block; a gap stays with its event.
const MOST_RECORDS: usize = block::MAX_RECORDS - 2;

/// Values that the stream does not contain.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// Ticks per second, for a stream that does not begin with the card's own record, or whose
    /// card does not know its rate.
    pub ticks_per_second: Option<u64>,
    /// Names of events.
    pub names: Vec<Name>,
}

/// Whether a file begins as a card's stream does.
pub(super) fn is_stream(start: &[u8]) -> bool {
    (start.first_chunk()).is_some_and(|bytes| is_card(&record(bytes)) && start[12] == 1)
}

const fn is_card(record: &Record) -> bool {
    matches!(record.kind, Kind::Continuation) && record.payload == CARD
}

/// Makes a trace of a stream. `file` is its name in messages. A read that is interrupted by a
/// signal ends the stream as its end does.
///
/// # Errors
/// The stream is not the card's, or is damaged (the error gives the offset); or the directory
/// exists already, or the disk refuses. In each case nothing is left behind.
pub fn record_card(
    file: &Path,
    stream: impl Read,
    card: Card,
    out: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Manifest, TraceError> {
    made_in(out, || {
        let mut reader = Reader {
            file,
            stream,
            offset: 0,
            cut: 0,
        };
        let mut masters = Masters::create(out)?;
        let header = masters.take_all(&mut reader, &card, progress)?;
        let cut = reader.cut;
        masters.flush_all()?;
        let mut manifest = manifest::build(file, &masters, &header, card.names, cut);
        finalize::finish_events(&TraceDir::open(out)?, &mut manifest, None, &mut |_| {})?;
        Ok(manifest)
    })
}

/// The content of the stream's first record.
struct StreamHeader {
    hz: u64,
    /// Periods of the clock in a tick.
    tick: u64,
    masters: Option<u16>,
}

struct Reader<'a, R> {
    file: &'a Path,
    stream: R,
    /// Offset of the record that was read last.
    offset: u64,
    /// Bytes of an incomplete record at the end.
    cut: usize,
}

impl<R: Read> Reader<'_, R> {
    /// Returns the next whole record and its flag.
    fn next(&mut self) -> Result<Option<(Record, u64)>, TraceError> {
        let mut bytes = [0; RECORD_BYTES];
        let mut filled = 0;
        while filled < RECORD_BYTES {
            match self.stream.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => break,
                Err(error) => return Err(TraceError::io(self.file, "cannot read")(error)),
            }
        }
        if filled < RECORD_BYTES {
            self.cut = filled;
            return Ok(None);
        }
        Ok(Some((record(&bytes), u64::from(bytes[15] >> 6))))
    }

    fn wrong(&self, what: &str) -> TraceError {
        TraceError::Usage(format!(
            "{}: at offset {}: {what}",
            self.file.display(),
            self.offset
        ))
    }
}

fn record(bytes: &[u8; RECORD_BYTES]) -> Record {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    Record::from_words([word(0), word(8)])
}

/// A master in one mode, with its records that are not written yet.
struct Master {
    tid: i32,
    name: String,
    events: u64,
    position: u64,
    words: Vec<[u64; 2]>,
    /// Events lost since its previous record; `Some(0)`: the number is in another master's gap.
    gap: Option<u64>,
}

/// All masters, by number and mode, in the order of their rings.
struct Masters {
    path: PathBuf,
    out: BufWriter<File>,
    all: Vec<Master>,
    places: BTreeMap<(u16, bool), usize>,
    bytes: Vec<u8>,
    lost: u64,
    span: Option<(u64, u64)>,
}

impl Masters {
    fn create(trace: &Path) -> Result<Self, TraceError> {
        let path = trace.join(RAW_FILE);
        let file = File::create_new(&path).map_err(TraceError::io(&path, "cannot create"))?;
        Ok(Self {
            path,
            out: BufWriter::with_capacity(1 << 20, file),
            all: Vec::new(),
            places: BTreeMap::new(),
            bytes: Vec::new(),
            lost: 0,
            span: None,
        })
    }

    fn take_all<R: Read>(
        &mut self,
        reader: &mut Reader<'_, R>,
        card: &Card,
        progress: &mut dyn FnMut(u64),
    ) -> Result<StreamHeader, TraceError> {
        let mut header: Option<StreamHeader> = None;
        let mut records = 0u64;
        while let Some((record, flag)) = reader.next()? {
            match (&header, is_card(&record)) {
                (None, true) => header = Some(begin(reader, &record, card)?),
                (None, false) => {
                    let hz = card.ticks_per_second.ok_or_else(|| {
                        reader.wrong(
                            "is not the record with which a card's stream begins; if the beginning is \
                             missing, give the rate: --ticks-per-second",
                        )
                    })?;
                    header = Some(StreamHeader {
                        hz,
                        tick: 1,
                        masters: None,
                    });
                    self.take(reader, header.as_ref(), &record, flag)?;
                }
                (Some(_), true) => {
                    return Err(reader.wrong(&format!(
                        "the card was reset here; take the part before (head -c {}) and the rest as two files",
                        reader.offset
                    )));
                }
                (Some(_), false) => self.take(reader, header.as_ref(), &record, flag)?,
            }
            reader.offset += RECORD_BYTES as u64;
            records += 1;
            if records.is_multiple_of(1 << 16) {
                progress(reader.offset);
            }
        }
        if self.all.is_empty() {
            return Err(TraceError::Usage(format!(
                "{}: holds no event of an event card; is it the right file, and was the card enabled?",
                reader.file.display()
            )));
        }
        Ok(header.expect("there was a record"))
    }

    fn take<R: Read>(
        &mut self,
        reader: &Reader<'_, R>,
        header: Option<&StreamHeader>,
        record: &Record,
        flag: u64,
    ) -> Result<(), TraceError> {
        if record.is_gap() {
            return self.lose(reader, record);
        }
        if record.kind == Kind::Continuation {
            return Err(reader.wrong(&format!(
                "a continuation {}, which a card does not write; is the file damaged?",
                record.payload
            )));
        }
        let masters = header.and_then(|header| header.masters);
        if masters.is_some_and(|count| record.cpu >= count) {
            return Err(reader.wrong(&format!(
                "an event of master {} of a card for {}; is the file damaged?",
                record.cpu,
                masters.unwrap_or_default()
            )));
        }
        let (first, last) = self.span.unwrap_or((record.ts, record.ts));
        if record.ts < last {
            return Err(reader.wrong(&format!(
                "time goes back from {last} to {}; is the file damaged, or did the card's time wrap?",
                record.ts
            )));
        }
        if record.ts > LATEST {
            return Err(reader.wrong(&format!(
                "time {} is beyond 2^63 ticks; preset the card's time lower",
                record.ts
            )));
        }
        self.span = Some((first, record.ts));
        let master = self.master(record.cpu, flag == SUPERVISOR);
        if let Some(lost) = master.gap.take() {
            let gap = Record {
                ts: lost,
                payload: Record::GAP,
                kind: Kind::Continuation,
                ..*record
            };
            master.words.push(gap.to_words());
        }
        master.words.push(record.to_words());
        master.events += 1;
        if master.words.len() >= MOST_RECORDS {
            let place = self.places[&(record.cpu, flag == SUPERVISOR)];
            self.flush(place)?;
        }
        Ok(())
    }

    /// Marks a loss in some of these masters; the number in each is unknown.
    fn lose<R: Read>(&mut self, reader: &Reader<'_, R>, gap: &Record) -> Result<(), TraceError> {
        if gap.ts == 0 {
            return Err(reader
                .wrong("a loss of no events, which a card does not write; is the file damaged?"));
        }
        self.lost = self.lost.checked_add(gap.ts).ok_or_else(|| {
            reader.wrong("more events lost than can be counted; is the file damaged?")
        })?;
        let mut count = gap.ts;
        for (&(number, _), &place) in &self.places {
            if gap.event >> (number & 15) & 1 == 1 {
                let pending = &mut self.all[place].gap;
                *pending = Some(pending.unwrap_or(0).saturating_add(count));
                count = 0;
            }
        }
        Ok(())
    }

    fn master(&mut self, number: u16, is_supervisor: bool) -> &mut Master {
        let next = self.all.len();
        let place = *(self.places.entry((number, is_supervisor))).or_insert(next);
        if place == next {
            let tid = i32::from(number) + 1;
            self.all.push(Master {
                tid: if is_supervisor {
                    tid + SUPERVISOR_TID
                } else {
                    tid
                },
                name: format!(
                    "master {number}{}",
                    if is_supervisor { ", supervisor" } else { "" }
                ),
                events: 0,
                position: 0,
                words: Vec::new(),
                gap: None,
            });
        }
        &mut self.all[place]
    }

    fn flush(&mut self, place: usize) -> Result<(), TraceError> {
        let master = &mut self.all[place];
        if master.words.is_empty() {
            return Ok(());
        }
        let header = BlockHeader {
            ring: place as u32,
            pid: PID,
            tid: master.tid,
            position: master.position,
            records: master.words.len() as u32,
        };
        self.bytes.clear();
        block::encode(header, &master.words, &mut self.bytes);
        master.position += (RECORD_BYTES * master.words.len()) as u64;
        master.words.clear();
        (self.out.write_all(&self.bytes)).map_err(TraceError::io(&self.path, "cannot write"))
    }

    fn flush_all(&mut self) -> Result<(), TraceError> {
        for place in 0..self.all.len() {
            self.flush(place)?;
        }
        (self.out.flush()).map_err(TraceError::io(&self.path, "cannot write"))
    }
}

/// Reads the card's own record.
fn begin<R: Read>(
    reader: &Reader<'_, R>,
    record: &Record,
    card: &Card,
) -> Result<StreamHeader, TraceError> {
    if record.event != VERSION {
        return Err(reader.wrong(&format!(
            "a stream of version {}, this Undertick reads {VERSION}; take the Undertick that came with the card",
            record.event
        )));
    }
    let (hz, tick) = (record.ts & 0xffff_ffff, record.ts >> 32);
    let (hz, tick) = match card.ticks_per_second {
        Some(given) => (given, 1),
        None => (hz, tick),
    };
    if hz == 0 || tick == 0 {
        return Err(reader.wrong(
            "the card does not know the rate of its clock; give it: --ticks-per-second (clock rate / TICK)",
        ));
    }
    Ok(StreamHeader {
        hz,
        tick,
        masters: Some(record.cpu),
    })
}
