//! Tracks and the threads or processes to which they belong.

use std::collections::HashMap;

use crate::export::PAYLOAD_OF_POINTS;
use crate::import::intake::{Id, Intake};
use crate::import::wire::{Fields, Value};

/// Most tracks that are remembered.
const MOST: usize = 1 << 22;
/// Deepest nesting of tracks.
const DEEPEST: u32 = 64;

/// The track of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    pub(super) uuid: u64,
    /// Process and thread, if it is a thread's own track.
    pub(super) thread: Option<(i64, i64)>,
    pub(super) pid: i64,
}

#[derive(Clone, Default)]
struct Described {
    parent: u64,
    name: String,
    thread: Option<(i64, i64)>,
    pid: Option<i64>,
    counter: Option<Counter>,
}

#[derive(Clone, Copy)]
struct Counter {
    multiplier: i64,
    is_incremental: bool,
    sum: i64,
    /// A track of our own export that repeats the values of points.
    repeats_points: bool,
}

#[derive(Default)]
pub(super) struct Tracks {
    described: HashMap<u64, Described>,
    /// Threads of writers that declare once the thread of all their events.
    of_writers: HashMap<u64, (i64, i64)>,
    /// The first process's name.
    pub(super) process: Option<String>,
}

/// Decodes an `int32`: negative ones are written with 64 bits.
const fn int(value: Value<'_>) -> i64 {
    value.number().cast_signed()
}

impl Tracks {
    /// Reads a `TrackDescriptor`.
    pub(super) fn describe(&mut self, bytes: &[u8], intake: &mut Intake) {
        let fields = Fields(bytes);
        let uuid = fields.last(1).map_or(0, Value::number);
        if self.described.len() >= MOST && !self.described.contains_key(&uuid) {
            return intake.left_out("track beyond 2^22");
        }
        let mut described = self.described.remove(&uuid).unwrap_or_default();
        for (field, value) in fields {
            match field {
                5 => described.parent = value.number(),
                2 | 10 | 13 => described.name = value.text(),
                3 => described.pid = Some(self.process(value.bytes())),
                4 => described.thread = Some(thread(value.bytes(), intake)),
                8 => described.counter = Some(Counter::parse(value.bytes())),
                _ => {}
            }
        }
        self.described.insert(uuid, described);
    }

    fn process(&mut self, bytes: &[u8]) -> i64 {
        let fields = Fields(bytes);
        if let Some(name) = fields.last(6).filter(|_| self.process.is_none()) {
            self.process = Some(name.text());
        }
        fields.last(1).map_or(0, int)
    }

    /// Reads the `ThreadDescriptor` of a packet: the thread of all events of the writer.
    pub(super) fn describe_thread(&mut self, writer: u64, bytes: &[u8], intake: &mut Intake) {
        if self.of_writers.len() < MOST {
            self.of_writers.insert(writer, thread(bytes, intake));
        }
    }

    /// Returns the track of that number, or the writer's own track.
    pub(super) fn find(&self, uuid: Option<u64>, writer: u64) -> Track {
        let uuid = uuid.filter(|&uuid| uuid != 0);
        let known = uuid.and_then(|uuid| self.described.get(&uuid));
        let thread = match (known, uuid) {
            (Some(known), _) if known.counter.is_none() => known.thread,
            (None, None) => self.of_writers.get(&writer).copied(),
            _ => None,
        };
        let pid = thread
            .map(|(pid, _)| pid)
            .or_else(|| uuid.map(|uuid| self.pid(uuid)));
        Track {
            uuid: uuid.unwrap_or(writer),
            thread,
            pid: pid.unwrap_or(0),
        }
    }

    /// The process that a track lies in, 0 if it lies in none.
    fn pid(&self, mut uuid: u64) -> i64 {
        for _ in 0..DEEPEST {
            let Some(known) = self.described.get(&uuid) else {
                break;
            };
            if let Some(pid) = known.pid.or(known.thread.map(|(pid, _)| pid)) {
                return pid;
            }
            uuid = known.parent;
        }
        0
    }

    pub(super) fn name(&self, uuid: u64) -> String {
        let name = self.described.get(&uuid).map(|known| known.name.clone());
        name.filter(|name| !name.is_empty())
            .unwrap_or_else(|| "counter".to_owned())
    }

    /// Whether the values of a track repeat those of points in the trace.
    pub(super) fn repeats_points(&self, uuid: u64) -> bool {
        let counter = self.described.get(&uuid).and_then(|known| known.counter);
        counter.is_some_and(|counter| counter.repeats_points)
    }

    /// Returns a counter's value, from the value in the event.
    pub(super) fn counted(&mut self, uuid: u64, value: i64) -> i64 {
        let known = self
            .described
            .get_mut(&uuid)
            .and_then(|known| known.counter.as_mut());
        let Some(counter) = known else { return value };
        let value = value.saturating_mul(counter.multiplier);
        if !counter.is_incremental {
            return value;
        }
        counter.sum = counter.sum.saturating_add(value);
        counter.sum
    }
}

fn thread(bytes: &[u8], intake: &mut Intake) -> (i64, i64) {
    let fields = Fields(bytes);
    let (pid, tid) = (fields.last(1).map_or(0, int), fields.last(2).map_or(0, int));
    if let Some(name) = fields.last(5) {
        intake.name_thread(&Id::Number(pid), &Id::Number(tid), &name.text());
    }
    (pid, tid)
}

impl Counter {
    fn parse(bytes: &[u8]) -> Self {
        let fields = Fields(bytes);
        Self {
            multiplier: fields.last(4).map_or(1, int).max(1),
            is_incremental: fields.last(5).map(Value::number) == Some(1),
            sum: 0,
            repeats_points: (fields.last(6)).is_some_and(|unit| unit.text() == PAYLOAD_OF_POINTS),
        }
    }
}
