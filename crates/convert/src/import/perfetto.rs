//! Perfetto's protobuf: track events, and the records of the kernel tracer. Field numbers are
//! those of the published trace protocol.

mod clocks;
mod ftrace;
mod packets;
mod track_events;
mod tracks;

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;

use clocks::Clocks;
use flate2::read::ZlibDecoder;
use ftrace::Ftrace;
use packets::{Next, next_packet};
use tracks::Tracks;
use undertick_format::TraceError;

use super::SourceInfo;
use super::intake::Intake;
use super::wire::{Fields, Value, varint};

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
        if number(98).unwrap_or(0) != 0 {
            self.intake
                .left_out("packet of another machine, whose clocks and threads are others");
            return Ok(());
        }
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
                // Samples that were skipped have no stack.
                66 if Fields(value.bytes()).last(4).is_some() => {
                    self.intake.left_out("stack sample");
                }
                135 => self.intake.left_out("stack sample"),
                133 => self.intake.left_out("zstd-compressed packets"),
                // Each of its samples is a repeated identifier of a stack.
                54 => self.intake.left_out("packet of stack samples"),
                37 => self.intake.left_out("heap profile"),
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
