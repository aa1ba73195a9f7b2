//! Writes the values that points carry: a track beside their process.

use std::io;

use super::{Message, Perfetto, process_uuid};
use crate::export::{Names, PAYLOAD_OF_POINTS, Row};

/// Type of a [`Message`] `TrackEvent` that carries a value.
const COUNTER: u64 = 4;

impl Perfetto {
    /// Writes the payload of a point as a value over time, from the first one on that is not 0.
    /// The payload by which an arrow is matched is a key, not a value.
    pub(super) fn counter(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        let of = (row.pid, row.event);
        let track = match self.counters.get(&of) {
            Some(&track) => track,
            None if row.payload == 0 || !row.arrows.is_empty() => return Ok(()),
            None => self.describe_counter(of, &names.event(row.pid, row.event))?,
        };
        self.event_packet(row.unix_ns, |_, _, event| {
            event.number(9, COUNTER); // type
            event.number(11, track); // track_uuid
            event.number(30, row.payload as u64); // counter_value
        })
    }

    fn describe_counter(&mut self, of: (i32, i32), name: &str) -> io::Result<u64> {
        let track = counter_uuid(self.counters.len() as u64);
        self.counters.insert(of, track);
        let mut descriptor = Message::default();
        descriptor.number(1, track);
        descriptor.text(2, name);
        descriptor.number(5, process_uuid(of.0)); // parent_uuid
        let mut counter = Message::default();
        counter.text(6, PAYLOAD_OF_POINTS); // unit_name
        descriptor.message(8, &counter);
        let mut packet = Message::default();
        packet.message(60, &descriptor);
        self.packet(packet)?;
        Ok(track)
    }
}

const fn counter_uuid(place: u64) -> u64 {
    4 << 40 | place
}
