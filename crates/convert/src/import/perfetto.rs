//! Perfetto's protobuf: track events, and the records of the kernel tracer. Field numbers are
//! those of the published trace protocol.

mod clocks;
mod ftrace;
mod tracks;

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;

use clocks::Clocks;
use flate2::read::ZlibDecoder;
use ftrace::Ftrace;
use tracks::{Track, Tracks};
use undertick_format::TraceError;
use undertick_format::schema::Kind;

use super::SourceInfo;
use super::intake::{At, Id, Intake, SpoolKind};
use super::wire::{Fields, Value, varint};

/// Longest packet, bytes.
const LONGEST: u64 = 1 << 26;
/// Longest packet after decompression, bytes.
const LONGEST_PLAIN: u64 = 1 << 28;
/// Deepest nesting of packets.
const DEEPEST: u32 = 4;
/// Most names, sequences and flows that are remembered.
const MOST: usize = 1 << 22;

/// Whether these bytes begin like a Perfetto trace.
pub(super) fn is_packet(mut start: &[u8]) -> bool {
    let Some((&0x0a, rest)) = start.split_first() else {
        return false;
    };
    start = rest;
    let Some(length) = varint(&mut start).and_then(|length| usize::try_from(length).ok()) else {
        return false;
    };
    // The first packet must be whole in these bytes, and be followed by another or by nothing.
    // Text that happens to begin with a line end does not pass this.
    let Some((packet, rest)) = start.split_at_checked(length) else {
        return false;
    };
    let first = Fields(packet).next();
    rest.first().is_none_or(|&next| next == 0x0a)
        && first.is_some_and(|(number, _)| (1..1000).contains(&number))
}

pub(super) fn read(
    file: &Path,
    mut reader: impl BufRead,
    intake: &mut Intake,
) -> Result<SourceInfo, TraceError> {
    let mut trace = Trace {
        intake,
        clocks: Clocks::default(),
        tracks: Tracks::default(),
        ftrace: Ftrace::default(),
        sequences: HashMap::new(),
        flows: HashMap::new(),
        dropped: 0,
        stats: Stats::default(),
    };
    let failed = |e| TraceError::io(file, "cannot read")(e);
    let mut is_cut = false;
    let mut packet = Vec::new();
    loop {
        match next_packet(&mut reader, &mut packet).map_err(failed)? {
            Next::Packet => trace.packet(&packet, 0)?,
            Next::Other => {}
            Next::End => break,
            Next::Cut => {
                is_cut = true;
                break;
            }
            Next::Bad(what) => {
                return Err(TraceError::damaged(
                    file,
                    format!("{what} (is it a Perfetto trace? see --from)"),
                ));
            }
        }
    }
    Ok(trace.info(is_cut))
}

enum Next {
    Packet,
    /// A field that is not a packet.
    Other,
    End,
    Cut,
    Bad(String),
}

/// Reads the next field of the outermost message.
fn next_packet(reader: &mut impl BufRead, packet: &mut Vec<u8>) -> std::io::Result<Next> {
    let Some(key) = read_varint(reader)? else {
        return Ok(if reader.fill_buf()?.is_empty() {
            Next::End
        } else {
            Next::Cut
        });
    };
    packet.clear();
    if key >> 3 == 0 {
        return Ok(Next::Bad("field 0, which no message has".to_owned()));
    }
    if key & 7 != 2 {
        return Ok(match key & 7 {
            0 if read_varint(reader)?.is_some() => Next::Other,
            _ => Next::Bad(format!("field {} is no packet", key >> 3)),
        });
    }
    let Some(length) = read_varint(reader)? else {
        return Ok(Next::Cut);
    };
    if length > LONGEST {
        return Ok(Next::Bad(format!(
            "a packet of {length} bytes, more than 64 MiB"
        )));
    }
    (&mut *reader).take(length).read_to_end(packet)?;
    Ok(match (packet.len() as u64 == length, key >> 3) {
        (false, _) => Next::Cut,
        (true, 1) => Next::Packet,
        (true, _) => Next::Other,
    })
}

fn read_varint(reader: &mut impl BufRead) -> std::io::Result<Option<u64>> {
    let mut bytes = [0; 10];
    for at in 0..bytes.len() {
        if reader.take(1).read(&mut bytes[at..=at])? == 0 {
            return Ok(None);
        }
        if bytes[at] & 0x80 == 0 {
            return Ok(varint(&mut &bytes[..=at]));
        }
    }
    Ok(None)
}

/// State of a writer of packets, to which its later packets refer.
#[derive(Default)]
struct Sequence {
    names: HashMap<u64, String>,
    clock: Option<u32>,
    track: Option<u64>,
}

/// The service's statistics of its buffers, at the end.
#[derive(Default)]
struct Stats {
    overwritten: u64,
    discarded: u64,
    lost_packets: u64,
}

struct Trace<'a> {
    intake: &'a mut Intake,
    clocks: Clocks,
    tracks: Tracks,
    ftrace: Ftrace,
    sequences: HashMap<u64, Sequence>,
    /// The number of occurrences of each flow.
    flows: HashMap<u64, u32>,
    dropped: u64,
    stats: Stats,
}

impl Trace<'_> {
    fn packet(&mut self, bytes: &[u8], depth: u32) -> Result<(), TraceError> {
        let fields = Fields(bytes);
        if let Some(compressed) = fields.last(50) {
            return self.compressed(compressed.bytes(), depth);
        }
        let number = |field| fields.last(field).map(Value::number);
        let writer = number(10).unwrap_or(0);
        if self.sequences.len() >= MOST && !self.sequences.contains_key(&writer) {
            self.intake.left_out("packet of a sequence beyond 2^22");
            return Ok(());
        }
        let sequence = self.sequences.entry(writer).or_default();
        if number(13).unwrap_or(0) & 1 != 0 || number(41) == Some(1) {
            *sequence = Sequence::default();
            self.clocks.forget(writer);
        }
        self.dropped += u64::from(number(42) == Some(1));
        if let Some(defaults) = fields.last(59) {
            let defaults = Fields(defaults.bytes());
            sequence.clock = defaults.last(58).map(|clock| clock.number() as u32);
            let of_events = defaults.last(11).map(|of| Fields(of.bytes()));
            sequence.track = of_events.and_then(|of| of.last(11)).map(Value::number);
        }
        if let Some(interned) = fields.last(12) {
            sequence.intern(interned.bytes());
        }
        let clock = number(58).map(|clock| clock as u32).or(sequence.clock);
        let time = number(8);
        for (field, value) in fields {
            match field {
                6 => self.clocks.snapshot(writer, value.bytes()),
                60 => self.tracks.describe(value.bytes(), self.intake),
                44 => self
                    .tracks
                    .describe_thread(writer, value.bytes(), self.intake),
                35 => self.stats = Stats::parse(value.bytes()),
                1 => {
                    let clocks = &mut self.clocks;
                    self.ftrace.bundle(value.bytes(), clocks, self.intake)?;
                }
                11 => self.event(writer, clock, time, value.bytes())?,
                _ => {}
            }
        }
        Ok(())
    }

    fn compressed(&mut self, bytes: &[u8], depth: u32) -> Result<(), TraceError> {
        let mut plain = Vec::new();
        let read = ZlibDecoder::new(bytes)
            .take(LONGEST_PLAIN)
            .read_to_end(&mut plain);
        if read.is_err() || depth >= DEEPEST {
            self.intake
                .left_out("compressed packets that cannot be decompressed");
        }
        if depth < DEEPEST {
            for (field, value) in Fields(&plain) {
                if field == 1 {
                    self.packet(value.bytes(), depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        writer: u64,
        clock: Option<u32>,
        time: Option<u64>,
        bytes: &[u8],
    ) -> Result<(), TraceError> {
        let event = Fields(bytes);
        let number = |field| event.last(field).map(Value::number);
        let Some(ns) = self.time(writer, clock, time, event) else {
            self.intake
                .left_out("track event without a time that can be told");
            return Ok(());
        };
        let sequence = &self.sequences[&writer];
        let name = match (event.last(23), number(10)) {
            (Some(name), _) => Some(name.text()),
            (None, Some(iid)) => Some(match sequence.names.get(&iid) {
                Some(name) => name.clone(),
                None => format!("name {iid} (not told)"),
            }),
            (None, None) => None,
        };
        let uuid = number(11).or(sequence.track);
        let track = self.tracks.find(uuid, writer);
        let name = name.as_deref();
        match number(9).unwrap_or(0) {
            1 => self.begin(track, ns, name.unwrap_or_default())?,
            2 => self.end(track, ns)?,
            3 => self.instant(track, ns, name.unwrap_or_default(), payload(event))?,
            4 if self.tracks.repeats_points(track.uuid) => return Ok(()),
            4 => return self.counter(track, ns, event),
            0 => return self.legacy(track, ns, name, event),
            other => {
                self.intake
                    .left_out(&format!("track event of type {other}"));
                return Ok(());
            }
        }
        self.flows(track, ns, event)
    }

    fn time(
        &mut self,
        writer: u64,
        clock: Option<u32>,
        time: Option<u64>,
        event: Fields<'_>,
    ) -> Option<i64> {
        let microseconds = |value: Value<'_>| value.number().cast_signed().checked_mul(1000);
        match (time, event.last(16), event.last(1)) {
            (Some(time), _, _) => self.clocks.ns(writer, clock, time),
            (None, Some(absolute), _) => microseconds(absolute),
            (None, None, Some(since)) => self.clocks.since(writer, microseconds(since)?),
            (None, None, None) => None,
        }
    }

    fn begin(&mut self, track: Track, ns: i64, name: &str) -> Result<(), TraceError> {
        let number = self.intake.event(name);
        match self.at(track, ns) {
            Some(at) => self.intake.begin(at, number),
            None => self.alone(track, ns, SpoolKind::Kind(Kind::Begin), number, 0),
        }
    }

    fn end(&mut self, track: Track, ns: i64) -> Result<(), TraceError> {
        match self.at(track, ns) {
            Some(at) => self.intake.end(at, None),
            None => self.alone(track, ns, SpoolKind::EndOfInnermost, 0, 0),
        }
    }

    fn instant(
        &mut self,
        track: Track,
        ns: i64,
        name: &str,
        payload: i64,
    ) -> Result<(), TraceError> {
        let number = self.intake.event(name);
        match self.at(track, ns) {
            Some(at) => self.intake.instant(at, number, payload),
            None => self.alone(track, ns, SpoolKind::Kind(Kind::Instant), number, payload),
        }
    }

    /// Returns thread and time of an event, if the track is a thread's.
    fn at(&mut self, track: Track, ns: i64) -> Option<At> {
        let (pid, tid) = track.thread?;
        let track = self.intake.thread(&Id::Number(pid), &Id::Number(tid))?;
        Some(At {
            track,
            ns,
            cpu: None,
        })
    }

    fn alone(
        &mut self,
        track: Track,
        ns: i64,
        kind: SpoolKind,
        event: u16,
        payload: i64,
    ) -> Result<(), TraceError> {
        let pid = self.intake.number(&Id::Number(track.pid));
        self.intake
            .of_no_thread(pid, track.uuid, ns, kind, event, payload)
    }

    fn counter(&mut self, track: Track, ns: i64, event: Fields<'_>) -> Result<(), TraceError> {
        let whole = event.last(30).map(|value| value.number().cast_signed());
        let value = match (whole, event.last(44)) {
            (Some(whole), _) => self.tracks.counted(track.uuid, whole),
            (None, Some(bits)) => {
                let value = f64::from_bits(bits.number());
                if value.fract() != 0.0 {
                    self.intake.left_out("fraction of a counter");
                }
                value.floor() as i64
            }
            (None, None) => {
                self.intake.left_out("counter without a value");
                return Ok(());
            }
        };
        let name = self.tracks.name(track.uuid);
        let number = self.intake.event(&name);
        self.alone(track, ns, SpoolKind::Kind(Kind::Instant), number, value)
    }

    /// Handles an event that was converted from Chrome's format.
    fn legacy(
        &mut self,
        track: Track,
        ns: i64,
        name: Option<&str>,
        event: Fields<'_>,
    ) -> Result<(), TraceError> {
        let legacy = Fields(event.last(6).map_or(&[], Value::bytes));
        let number = |field| legacy.last(field).map(Value::number);
        let phase = char::from_u32(number(2).unwrap_or(0) as u32).unwrap_or('\0');
        let name = match (name, number(1)) {
            (Some(name), _) => name.to_owned(),
            _ => String::new(),
        };
        let id = number(6).or(number(10)).or(number(11));
        let of_id = Track {
            uuid: id.unwrap_or(0) ^ 1 << 63,
            thread: None,
            ..track
        };
        match phase {
            'B' => self.begin(track, ns, &name),
            'E' => self.end(track, ns),
            'b' | 'S' => self.begin(of_id, ns, &name),
            'e' | 'F' => self.end(of_id, ns),
            'I' | 'i' | 'n' | 'R' => self.instant(track, ns, &name, payload(event)),
            'X' => {
                let length = number(3).and_then(|us| us.cast_signed().checked_mul(1000));
                let event = self.intake.event(&name);
                match (self.at(track, ns), length) {
                    (Some(at), Some(length)) => self.intake.complete(at, length, event).map(drop),
                    _ => {
                        self.intake
                            .left_out("span (X) without its length or thread");
                        Ok(())
                    }
                }
            }
            _ => {
                self.intake
                    .left_out(&format!("track event of phase {phase:?}"));
                Ok(())
            }
        }
    }

    /// Adds the begins and ends of arrows as instants, with the flow's number as payload.
    fn flows(&mut self, track: Track, ns: i64, event: Fields<'_>) -> Result<(), TraceError> {
        for (field, value) in event {
            let (ids, ends) = match field {
                47 => (value.fixed(), false),
                48 => (value.fixed(), true),
                36 => (value.varints(), false),
                42 => (value.varints(), true),
                _ => continue,
            };
            for id in ids {
                if self.flows.len() >= MOST && !self.flows.contains_key(&id) {
                    self.intake.left_out("flow beyond 2^22");
                    continue;
                }
                let met = self.flows.entry(id).or_default();
                *met += 1;
                let name = match (*met, ends) {
                    (1, false) => "flow start",
                    (2, _) | (_, true) => "flow end",
                    _ => "flow step",
                };
                self.instant(track, ns, name, id.cast_signed())?;
            }
        }
        Ok(())
    }

    fn info(self, is_cut: bool) -> SourceInfo {
        let mut notes = Vec::new();
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        note(
            self.dropped,
            "times Perfetto dropped packets; how many events were in them is not known",
        );
        note(
            self.stats.overwritten,
            "chunks of Perfetto's buffers were overwritten",
        );
        note(
            self.stats.discarded,
            "chunks of Perfetto's buffers were discarded",
        );
        note(self.stats.lost_packets, "times a writer lost packets");
        note(
            self.clocks.unrelated,
            "times are of a clock that no snapshot relates to the others, taken as they stand",
        );
        if is_cut {
            notes.push("the file was cut short: its last packet is not whole".to_owned());
        }
        SourceInfo {
            clock: "perfetto",
            process: self.tracks.process,
            messages: match self.flows.is_empty() {
                true => Vec::new(),
                false => vec!["flow".to_owned()],
            },
            notes,
            ..SourceInfo::default()
        }
    }
}

impl Sequence {
    fn intern(&mut self, bytes: &[u8]) {
        for (field, value) in Fields(bytes) {
            if field == 2 && self.names.len() < MOST {
                let entry = Fields(value.bytes());
                let iid = entry.last(1).map_or(0, Value::number);
                let name = entry.last(2).map(Value::text).unwrap_or_default();
                self.names.insert(iid, name);
            }
        }
    }
}

impl Stats {
    fn parse(bytes: &[u8]) -> Self {
        let mut stats = Self::default();
        let buffers = Fields(bytes).filter(|&(field, _)| field == 1);
        for (_, buffer) in buffers {
            let count = |field| Fields(buffer.bytes()).last(field).map_or(0, Value::number);
            stats.overwritten = stats.overwritten.saturating_add(count(3));
            stats.discarded = stats.discarded.saturating_add(count(18));
            stats.lost_packets = stats.lost_packets.saturating_add(count(19));
        }
        stats
    }
}

/// Returns the integer among an event's annotations if there is exactly one.
fn payload(event: Fields<'_>) -> i64 {
    let mut integers = event
        .filter(|&(field, _)| field == 4)
        .filter_map(|(_, value)| {
            let annotation = Fields(value.bytes());
            let integer = annotation.last(4).or_else(|| annotation.last(3));
            integer.map(|value| value.number().cast_signed())
        });
    let first = integers.next();
    first.filter(|_| integers.next().is_none()).unwrap_or(0)
}
