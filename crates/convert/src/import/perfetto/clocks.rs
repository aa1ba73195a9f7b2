//! Converts times of several clocks to one clock, by snapshots that read them together.

use std::collections::HashMap;

use crate::import::wire::{Fields, Value};

/// The clock of a trace that does not name one: `CLOCK_BOOTTIME`.
const DEFAULT: u32 = 6;
/// The numbers of clocks that belong to one sequence: from 64 to 127.
const OF_SEQUENCE: std::ops::Range<u32> = 64..128;
/// Most clocks that are remembered.
const MOST: usize = 1 << 20;

/// Identifies a clock: its sequence, 0 for all, and its number.
type Key = (u64, u32);

/// One clock, as of its last snapshot.
#[derive(Clone, Copy)]
struct Known {
    /// Added to its nanoseconds to get those of the trace's clock.
    offset_ns: i128,
    ns_per_unit: i64,
    is_incremental: bool,
    /// The last reading, in its units.
    last: i64,
}

#[derive(Default)]
pub(super) struct Clocks {
    known: HashMap<Key, Known>,
    /// The trace's own clock.
    own: Option<u32>,
    /// Readings of clocks that no snapshot relates to the trace's clock.
    pub(super) unrelated: u64,
    /// Time of the last event by sequence, for sequences whose times count from it.
    last_ns: HashMap<u64, i64>,
}

const fn key(sequence: u64, clock: u32) -> Key {
    if clock >= OF_SEQUENCE.start && clock < OF_SEQUENCE.end {
        (sequence, clock)
    } else {
        (0, clock)
    }
}

impl Clocks {
    /// Forgets a sequence when its writer restarts.
    pub(super) fn forget(&mut self, sequence: u64) {
        self.last_ns.remove(&sequence);
    }

    /// Reads a snapshot of several clocks at one instant.
    pub(super) fn snapshot(&mut self, sequence: u64, bytes: &[u8]) {
        let snapshot = Fields(bytes);
        let own = snapshot
            .last(2)
            .map_or(DEFAULT, |clock| clock.number() as u32);
        let own = *self.own.get_or_insert(own);
        let mut read = Vec::new();
        for (_, clock) in snapshot.filter(|&(field, _)| field == 1) {
            let clock = Fields(clock.bytes());
            let number = |field| clock.last(field).map(Value::number);
            let units = number(2).unwrap_or(0).cast_signed();
            let ns_per_unit = number(4).map_or(1, u64::cast_signed).max(1);
            let ns = i128::from(units) * i128::from(ns_per_unit);
            let id = number(1).unwrap_or(0) as u32;
            read.push((id, units, ns, ns_per_unit, number(3) == Some(1)));
        }
        // The present reading of the trace's clock, directly or through another known clock.
        let now = (read
            .iter()
            .find(|clock| clock.0 == own)
            .map(|clock| clock.2))
        .or_else(|| {
            read.iter().find_map(|&(id, _, ns, _, _)| {
                let known = self.known.get(&key(sequence, id))?;
                Some(ns + known.offset_ns)
            })
        });
        for (id, units, ns, ns_per_unit, is_incremental) in read {
            let key = key(sequence, id);
            if self.known.len() >= MOST && !self.known.contains_key(&key) {
                continue;
            }
            // The first snapshot counts for the clocks of the machine: this preserves the
            // distances of times.
            let offset_ns = match self.known.get(&key) {
                Some(known) if key.0 == 0 => known.offset_ns,
                _ => now.map_or(0, |now| now - ns),
            };
            self.known.insert(
                key,
                Known {
                    offset_ns,
                    ns_per_unit,
                    is_incremental,
                    last: units,
                },
            );
        }
    }

    /// Converts a reading to the trace's clock, ns.
    pub(super) fn ns(&mut self, sequence: u64, clock: Option<u32>, time: u64) -> Option<i64> {
        let clock = clock.unwrap_or(DEFAULT);
        let mut units = time.cast_signed();
        let ns = match self.known.get_mut(&key(sequence, clock)) {
            Some(known) => {
                if known.is_incremental {
                    units = units.checked_add(known.last)?;
                    known.last = units;
                }
                i128::from(units) * i128::from(known.ns_per_unit) + known.offset_ns
            }
            None => {
                self.unrelated += u64::from(self.own.is_some_and(|own| own != clock));
                i128::from(units)
            }
        };
        let ns = i64::try_from(ns).ok()?;
        if self.last_ns.len() < MOST {
            self.last_ns.insert(sequence, ns);
        }
        Some(ns)
    }

    /// Converts a time that counts from the sequence's last one.
    pub(super) fn since(&mut self, sequence: u64, ns: i64) -> Option<i64> {
        let last = self.last_ns.entry(sequence).or_insert(0);
        *last = last.checked_add(ns)?;
        Some(*last)
    }
}
