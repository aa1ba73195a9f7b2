//! Perfetto protobuf, written by hand: slices and instants need only a few fields of
//! `TracePacket`, `TrackDescriptor` and `TrackEvent`. The kernel's rows have separate tracks, and
//! so have the values that points carry. Field numbers are those of the published trace protocol.

mod counters;
mod kernel;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use undertick_format::read::Trace;
use undertick_format::schema::Kind;

use super::{Names, Nesting, Out, Row, Sink, finish};

const SEQUENCE: u64 = 1;
const CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;

pub struct Perfetto {
    out: Out,
    nesting: Nesting,
    tracks: HashSet<i32>,
    processes: HashSet<i32>,
    /// Threads with rows of the kernel.
    kernel_tracks: HashSet<i32>,
    /// Threads that are off their CPU.
    off: HashSet<i32>,
    interned: HashMap<String, u64>,
    /// Tracks of values, by process and event.
    counters: HashMap<(i32, i32), u64>,
    command: String,
    started: bool,
}

impl Perfetto {
    pub fn new(out: Out, _: &Names) -> Self {
        Self {
            out,
            nesting: Nesting::default(),
            tracks: HashSet::new(),
            processes: HashSet::new(),
            kernel_tracks: HashSet::new(),
            off: HashSet::new(),
            interned: HashMap::new(),
            counters: HashMap::new(),
            command: String::new(),
            started: false,
        }
    }

    fn packet(&mut self, mut packet: Message) -> io::Result<()> {
        packet.number(10, SEQUENCE); // trusted_packet_sequence_id
        let flags = if std::mem::replace(&mut self.started, true) {
            NEEDS_STATE
        } else {
            CLEARED | NEEDS_STATE
        };
        packet.number(13, flags); // sequence_flags
        let mut whole = Message::default();
        whole.message(1, &packet); // Trace.packet
        self.out.write_all(&whole.0)
    }

    /// Describes the tracks of a process and of a ring, at their first row.
    fn describe(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        self.describe_process(row.pid)?;
        if self.tracks.insert(row.ring) {
            let mut thread = Message::default();
            thread.number(1, row.pid as u64);
            thread.number(2, row.tid as u64);
            if let Some(name) = names.thread(row.pid, row.tid) {
                thread.text(5, name);
            }
            let mut descriptor = Message::default();
            descriptor.number(1, track_uuid(row.ring));
            descriptor.number(5, process_uuid(row.pid)); // parent_uuid
            descriptor.message(4, &thread);
            let mut packet = Message::default();
            packet.message(60, &descriptor);
            self.packet(packet)?;
        }
        Ok(())
    }

    fn describe_process(&mut self, pid: i32) -> io::Result<()> {
        if !self.processes.insert(pid) {
            return Ok(());
        }
        let mut process = Message::default();
        process.number(1, pid as u64); // pid
        process.text(6, &self.command); // process_name
        let mut descriptor = Message::default();
        descriptor.number(1, process_uuid(pid));
        descriptor.message(3, &process);
        let mut packet = Message::default();
        packet.message(60, &descriptor);
        self.packet(packet)
    }

    fn event(
        &mut self,
        what: u64,
        name: Option<&str>,
        row: &Row,
        annotation: Option<(&str, i64)>,
    ) -> io::Result<()> {
        let mut packet = Message::default();
        packet.number(8, row.unix_ns as u64); // timestamp
        let mut event = Message::default();
        event.number(9, what); // type
        event.number(11, track_uuid(row.ring)); // track_uuid
        if let Some(name) = name {
            let next = self.interned.len() as u64 + 1;
            let id = *self.interned.entry(name.to_owned()).or_insert(next);
            if id == next {
                let mut entry = Message::default();
                entry.number(1, id);
                entry.text(2, name);
                let mut interned = Message::default();
                interned.message(2, &entry); // event_names
                packet.message(12, &interned); // interned_data
            }
            event.number(10, id); // name_iid
        }
        if let Some((key, value)) = annotation {
            let mut debug = Message::default();
            debug.text(10, key); // name
            debug.number(4, value as u64); // int_value
            event.message(4, &debug); // debug_annotations
        }
        for &arrow in &row.arrows {
            event.fixed64(47, arrow); // flow_ids
        }
        packet.message(11, &event); // track_event
        self.packet(packet)
    }

    fn ends(&mut self, closed: usize, row: &Row) -> io::Result<()> {
        (0..closed).try_for_each(|_| self.event(SLICE_END, None, row, None))
    }
}

const fn process_uuid(pid: i32) -> u64 {
    1 << 40 | pid as u32 as u64
}

const fn track_uuid(ring: i32) -> u64 {
    2 << 40 | ring as u32 as u64
}

impl Sink for Perfetto {
    fn begin(&mut self, trace: &Trace) -> io::Result<()> {
        self.command = trace.manifest.command.first().cloned().unwrap_or_default();
        Ok(())
    }

    fn row(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        if row.mode != 0 {
            return self.of_kernel(row);
        }
        self.describe(row, names)?;
        let slices = self.nesting.apply(row);
        self.ends(slices.closed, row)?;
        if let Some(event) = slices.begun {
            self.event(SLICE_BEGIN, Some(&names.event(row.pid, event)), row, None)?;
        }
        match row.kind {
            Some(Kind::Gap) => self.event(
                INSTANT,
                Some("events lost"),
                row,
                Some(("lost", row.payload)),
            ),
            Some(Kind::Instant) => {
                let name = names.event(row.pid, row.event);
                self.event(INSTANT, Some(&name), row, Some(("payload", row.payload)))?;
                self.counter(row, &name)
            }
            Some(Kind::Pair) => {
                let name = names.event(row.pid, row.event);
                self.event(
                    INSTANT,
                    Some(&name),
                    row,
                    Some(("second reading after, ticks", row.payload)),
                )
            }
            Some(_) | None => Ok(()),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        finish(&mut self.out)
    }
}

/// A protobuf message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }
}
