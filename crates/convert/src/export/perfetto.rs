//! Perfetto protobuf, written by hand: slices and instants need only a few fields of
//! `TracePacket`, `TrackDescriptor` and `TrackEvent`. The kernel's rows have separate tracks, and
//! so have the values that points carry. Field numbers are those of the published trace protocol.

mod counters;
mod kernel;
mod stacks;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use undertick_format::read::Trace;
use undertick_format::schema::Kind;
use undertick_format::stacks::StackTable;

use super::{Names, Nesting, Out, Row, Sink, close};

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
    /// Cache of interned names: one entry for each event number modulo 256.
    recent: Vec<Option<Recent>>,
    /// Tracks of values, by process and event.
    counters: HashMap<(i32, i32), u64>,
    command: String,
    started: bool,
    /// The ring and the process of the last row, whose tracks are described.
    described: Option<(i32, i32)>,
    callstacks: stacks::Callstacks,
    /// Buffers of messages that are written.
    buffers: Buffers,
}

/// An event whose name is interned.
#[derive(Clone, Copy)]
struct Recent {
    pid: i32,
    event: i32,
    id: u64,
}

#[derive(Default)]
struct Buffers {
    head: Message,
    packet: Message,
    event: Message,
}

impl Perfetto {
    pub fn new(out: Out, stacks: StackTable) -> Self {
        Self {
            out,
            nesting: Nesting::default(),
            tracks: HashSet::new(),
            processes: HashSet::new(),
            kernel_tracks: HashSet::new(),
            off: HashSet::new(),
            interned: HashMap::new(),
            recent: vec![None; 256],
            counters: HashMap::new(),
            command: String::new(),
            started: false,
            described: None,
            callstacks: stacks::Callstacks::new(stacks),
            buffers: Buffers::default(),
        }
    }

    fn packet(&mut self, mut packet: Message) -> io::Result<()> {
        self.write_packet(&mut packet)
    }

    fn write_packet(&mut self, packet: &mut Message) -> io::Result<()> {
        packet.number(10, SEQUENCE); // trusted_packet_sequence_id
        let flags = if std::mem::replace(&mut self.started, true) {
            NEEDS_STATE
        } else {
            CLEARED | NEEDS_STATE
        };
        packet.number(13, flags); // sequence_flags
        let head = &mut self.buffers.head;
        head.0.clear();
        head.varint(1 << 3 | 2); // Trace.packet
        head.varint(packet.0.len() as u64);
        self.out.write_all(&head.0)?;
        self.out.write_all(&packet.0)
    }

    /// Writes a packet with an event, made in buffers that are used again.
    fn event_packet(
        &mut self,
        ns: i64,
        make: impl FnOnce(&mut Self, &mut Message, &mut Message),
    ) -> io::Result<()> {
        let mut packet = std::mem::take(&mut self.buffers.packet);
        let mut event = std::mem::take(&mut self.buffers.event);
        packet.0.clear();
        event.0.clear();
        packet.number(8, ns as u64); // timestamp
        make(self, &mut packet, &mut event);
        packet.message(11, &event); // track_event
        let written = self.write_packet(&mut packet);
        self.buffers.packet = packet;
        self.buffers.event = event;
        written
    }

    /// Describes the tracks of a process and of a ring, at their first row.
    fn describe(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        let of = Some((row.ring, row.pid));
        if self.described == of {
            return Ok(());
        }
        self.described = of;
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
        name: Option<Name<'_>>,
        row: &Row,
        annotation: Option<(&str, i64)>,
    ) -> io::Result<()> {
        self.event_packet(row.unix_ns, |this, packet, event| {
            event.number(9, what); // type
            event.number(11, track_uuid(row.ring)); // track_uuid
            if let Some(name) = name {
                let id = this.intern(name, row.pid, packet);
                event.number(10, id); // name_iid
            }
            if let Some((key, value)) = annotation {
                // debug_annotations: name, int_value
                let length = 2 + key.len() + 1 + varint_length(value as u64);
                event.varint(4 << 3 | 2);
                event.varint(length as u64);
                event.text(10, key);
                event.number(4, value as u64);
            }
            for &arrow in &row.arrows {
                event.fixed64(47, arrow); // flow_ids
            }
        })
    }

    /// Returns the identifier of a name; describes it in the packet that has it first.
    fn intern(&mut self, name: Name<'_>, pid: i32, packet: &mut Message) -> u64 {
        let text = match name {
            Name::Text(text) => text.into(),
            Name::OfEvent(event, names) => {
                let place = event as usize % self.recent.len();
                if let Some(recent) = self.recent[place]
                    && (recent.pid, recent.event) == (pid, event)
                {
                    return recent.id;
                }
                names.event(pid, event)
            }
        };
        let next = self.interned.len() as u64 + 1;
        let id = *self
            .interned
            .entry(text.clone().into_owned())
            .or_insert(next);
        if id == next {
            let mut entry = Message::default();
            entry.number(1, id);
            entry.text(2, &text);
            let mut interned = Message::default();
            interned.message(2, &entry); // event_names
            packet.message(12, &interned); // interned_data
        }
        if let Name::OfEvent(event, _) = name {
            let place = event as usize % self.recent.len();
            self.recent[place] = Some(Recent { pid, event, id });
        }
        id
    }

    fn ends(&mut self, closed: usize, row: &Row) -> io::Result<()> {
        (0..closed).try_for_each(|_| self.event(SLICE_END, None, row, None))
    }
}

/// The name of a slice or point.
#[derive(Clone, Copy)]
enum Name<'a> {
    Text(&'a str),
    OfEvent(i32, &'a Names),
}

/// Bytes of a varint.
const fn varint_length(value: u64) -> usize {
    (u64::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
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
            self.event(SLICE_BEGIN, Some(Name::OfEvent(event, names)), row, None)?;
        }
        let name = Name::OfEvent(row.event, names);
        match row.kind {
            Some(Kind::Gap) => {
                let lost = Some(("lost", row.payload));
                self.event(INSTANT, Some(Name::Text("events lost")), row, lost)
            }
            Some(Kind::Instant) => {
                let payload = Some(("payload", row.payload));
                self.event(INSTANT, Some(name), row, payload)?;
                self.counter(row, names)
            }
            Some(Kind::Pair) => {
                let ticks = Some(("second reading after, ticks", row.payload));
                self.event(INSTANT, Some(name), row, ticks)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn end(self) -> io::Result<()> {
        close(self.out.into_inner()?)
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
