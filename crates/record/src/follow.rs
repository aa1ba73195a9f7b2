//! Reads the rings of a flight recorder while the program writes them, for its rules.
//!
//! **Method.** Each ring has a second reader here. It takes nothing away and gives nothing back: the
//! writer does not notice it. Records are copied, checked to be whole, and passed to the rules.
//! Where the writer has come round since the last look, what was overwritten is skipped.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use undertick_format::manifest;
use undertick_ring::{Mapped, Reader};
use undertick_trigger::{Name, Ring, Watch};

use crate::names::merge_names;
use crate::ring_drain::copy;
use crate::ring_map::RingMap;
use crate::session::Session;

/// How often names are read that were given after the first record of their event.
const NAMES_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct Follow {
    pub(crate) watch: Watch,
    readers: HashMap<u32, Reader<Mapped>>,
    records: Vec<[u64; 2]>,
    /// Names from a file; they replace those of the program.
    given: Vec<manifest::Name>,
    named: Option<Instant>,
}

impl Follow {
    pub(crate) fn new(watch: Watch, given: Vec<manifest::Name>) -> Self {
        Self {
            watch,
            readers: HashMap::new(),
            records: Vec::new(),
            given,
            named: None,
        }
    }

    /// Passes on what a ring has got since the last call.
    pub(crate) fn read(&mut self, map: &RingMap, session: &Session) {
        let is_new = !self.readers.contains_key(&map.number);
        if is_new || self.named.is_none_or(|last| last.elapsed() >= NAMES_EVERY) {
            self.take_names(session);
        }
        let Self {
            watch,
            readers,
            records,
            given,
            ..
        } = self;
        let memory = map.memory();
        let reader = readers
            .entry(map.number)
            .or_insert_with(|| Reader::new(memory));
        let ring = Ring {
            number: map.number,
            pid: map.pid,
            tid: map.tid,
        };
        let mut has_new_names = false;
        reader.look();
        loop {
            let before = reader.position();
            // A ring that the program has overwritten is the collector's to report.
            let Ok(Some(chunk)) = reader.seen_chunk() else {
                break;
            };
            if chunk.position != before {
                watch.gap(ring.number);
            }
            copy(&memory, &chunk, records);
            if map.is_cut() || !reader.is_whole(&chunk) {
                break; // what is left of it is seen at the next look
            }
            let mut taken = watch.take(ring, records, has_new_names);
            if taken < records.len() {
                has_new_names = true;
                let names = names_of(session, given);
                watch.take_names(names.iter().map(name));
                taken += watch.take(ring, &records[taken..], true);
            }
            debug_assert_eq!(taken, records.len());
            reader.pass(&chunk, 0);
        }
    }

    fn take_names(&mut self, session: &Session) {
        self.named = Some(Instant::now());
        let names = names_of(session, &self.given);
        self.watch.take_names(names.iter().map(name));
    }

    /// A thread has ended, and its ring was read to the end.
    pub(crate) fn ended(&mut self, ring: u32) {
        self.readers.remove(&ring);
        self.watch.ended(ring);
    }
}

fn names_of(session: &Session, given: &[manifest::Name]) -> Vec<manifest::Name> {
    merge_names(session.names().0, given)
}

fn name(of: &manifest::Name) -> Name<'_> {
    Name {
        pid: of.pid,
        event: of.event,
        name: &of.name,
    }
}
