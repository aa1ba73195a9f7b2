//! Reads the rings of a flight recorder while the program writes them, for its rules.
//!
//! **Method.** Each ring has a second reader here. It takes nothing away and gives nothing back: the
//! writer does not notice it. Records are copied, checked to be whole, and passed to the rules.
//! Where the writer has come round since the last look, what was overwritten is skipped.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use undertick_format::manifest;
use undertick_memory::ring_map::RingMap;
use undertick_ring::{Mapped, Reader};
use undertick_trigger::{Name, Ring, Watch};

use crate::names::merge_names;
use crate::ring_drain::copy;
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
    /// Names were read in this round.
    has_new_names: bool,
    /// No round follows in which records could wait for their names.
    pub(crate) is_last_round: bool,
}

impl Follow {
    pub(crate) fn new(watch: Watch, given: Vec<manifest::Name>) -> Self {
        Self {
            watch,
            readers: HashMap::new(),
            records: Vec::new(),
            given,
            named: None,
            has_new_names: false,
            is_last_round: false,
        }
    }

    /// Begins a round over all rings, in which names are read once at most: a program may make many
    /// threads, and each reading parses all names.
    pub(crate) fn begin_round(&mut self) {
        self.has_new_names = false;
    }

    /// Passes on what a ring has got since the last call. `our_namespace` is that of our process
    /// numbers. Records whose event has no name yet wait for the next round, unless `is_closed`: then
    /// there is none.
    pub(crate) fn read(
        &mut self,
        map: &RingMap,
        session: &Session,
        our_namespace: u32,
        is_closed: bool,
    ) {
        if self.named.is_none_or(|last| last.elapsed() >= NAMES_EVERY) {
            self.take_names(session);
        }
        let memory = map.memory();
        let number = map.number;
        (self.readers.entry(number))
            .or_insert_with(|| Reader::new(memory))
            .look();
        let ring = Ring {
            number,
            is_here: map.is_of_namespace(our_namespace),
            pid: map.pid,
            tid: map.tid,
        };
        while let Some(reader) = self.readers.get_mut(&number) {
            let before = reader.position();
            // A ring that the program has overwritten is the collector's to report.
            let Ok(Some(mut chunk)) = reader.seen_chunk() else {
                break;
            };
            if chunk.position != before {
                self.watch.gap(number);
            }
            copy(&memory, &chunk, &mut self.records);
            if map.is_cut() || !reader.is_whole(&chunk) {
                break; // what is left of it is seen at the next look
            }
            let mut taken = self.watch.take(ring, &self.records, false);
            // The name was given before the record was copied, so it is there if it is read now.
            if taken < self.records.len()
                && (is_closed || self.is_last_round || !self.has_new_names)
            {
                self.take_names(session);
                taken += self.watch.take(ring, &self.records[taken..], true);
            }
            let is_all = taken == self.records.len();
            chunk.bytes = 16 * taken as u64;
            if let Some(reader) = self.readers.get_mut(&number) {
                reader.pass(&chunk, 0);
            }
            if !is_all {
                break;
            }
        }
    }

    fn take_names(&mut self, session: &Session) {
        self.has_new_names = true;
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
    merge_names(session.names().events, given)
}

fn name(of: &manifest::Name) -> Name<'_> {
    Name {
        pid: of.pid,
        event: of.event,
        name: &of.name,
    }
}
