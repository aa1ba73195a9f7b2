//! Drains one ring for the collector: copies it chunk by chunk, checks it, and keeps its account.

use std::collections::VecDeque;
use std::time::Instant;

use undertick_format::block::BlockHeader;
use undertick_format::manifest;
use undertick_memory::pool::Pool;
use undertick_memory::ring_map::RingMap;
use undertick_ring::layout::SEGMENT_BYTES;
use undertick_ring::{Chunk, Mapped, Memory, Overflow, Reader, Record};

use crate::accounts::Ended;
use crate::recover::Recovered;
use crate::sampled;

/// Most warnings about single rings; further ones are only counted.
const MOST_WARNINGS: usize = 100;
/// How often a chunk is copied again because its writer overwrote it during the copy.
const MOST_COPIES: u32 = 1000;

/// The reason why a ring is drained no further.
pub(crate) const CUT: &str = "the program cut the rings' file short";

/// Warnings for the user, in bounded number.
#[derive(Default)]
pub(crate) struct Warnings {
    pub(crate) said: Vec<String>,
    more: u64,
}

impl Warnings {
    pub(crate) fn say(&mut self, text: String) {
        if self.said.len() < MOST_WARNINGS {
            self.said.push(text);
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn all(mut self) -> Vec<String> {
        if self.more > 0 {
            self.said
                .push(format!("{} more rings could not be read", self.more));
        }
        self.said
    }
}

/// A ring that is being drained.
pub(crate) struct Ring {
    pub(crate) map: RingMap,
    pub(crate) reader: Reader<Mapped>,
    pub(crate) received: u64,
    pub(crate) drained: Instant,
    /// Events that could not be written to the disk.
    pub(crate) unwritten: u64,
    pub(crate) abandoned: bool,
    /// The content of its cells when recording was switched off.
    pub(crate) sampled: Option<Vec<manifest::Sampled>>,
    /// Blocks that are not in the file yet: their ends among all bytes, and in the ring. The
    /// space is given back to the writer when they are written.
    pub(crate) on_the_way: VecDeque<(u64, u64)>,
    /// Its thread is done and it is drained: the end of its last block.
    pub(crate) ends_at: Option<u64>,
}

impl Ring {
    pub(crate) fn new(map: RingMap, known: Option<&Recovered>) -> Self {
        let memory = map.memory();
        let reader = known.map_or_else(
            || Reader::new(memory),
            |known| {
                let reader = Reader::resume(memory, known.position, known.continuations);
                // The killed recorder may have written records whose space it had not yet given
                // back.
                reader.publish(reader.position());
                reader
            },
        );
        Self {
            map,
            reader,
            received: known.map_or(0, |known| known.events),
            drained: Instant::now(),
            unwritten: 0,
            abandoned: false,
            sampled: None,
            on_the_way: VecDeque::new(),
            ends_at: None,
        }
    }

    /// Drains nothing more from it; what came before stays.
    pub(crate) fn abandon(&mut self, why: &str, warnings: &mut Warnings) {
        self.abandoned = true;
        let (number, pid, tid) = (self.map.number, self.map.pid, self.map.tid);
        warnings.say(format!(
            "ring {number} of process {pid} thread {tid}: {why}, what came before is kept"
        ));
    }

    /// Copies the next records: what is counted and checked must not change at the same time.
    pub(crate) fn copy_chunk(
        &mut self,
        to_the_end: bool,
        pool: &mut Pool,
        records: &mut Vec<[u64; 2]>,
        warnings: &mut Warnings,
    ) -> Option<Chunk> {
        let mut copies = 0;
        while !self.abandoned && copies < MOST_COPIES {
            let next = if to_the_end {
                self.reader.chunk()
            } else {
                self.reader.seen_chunk()
            };
            let mut chunk = match next {
                Ok(chunk) => chunk?,
                Err(corrupt) => {
                    let why = format!("{corrupt}; the program overwrote its ring");
                    self.abandon(&why, warnings);
                    break;
                }
            };
            if !pool.is_of((chunk.at / SEGMENT_BYTES) as u32, self.map.head) {
                let why = "it names a segment that is not its own; the program overwrote its ring";
                self.abandon(why, warnings);
                break;
            }
            copy(&self.map.memory(), &chunk, records);
            if self.map.is_cut() {
                self.abandon(CUT, warnings);
                break;
            }
            if !self.reader.is_whole(&chunk) {
                copies += 1;
                continue;
            }
            // A gap takes its time from the event after it, so wait for that.
            let gap = |words: &[u64; 2]| Record::from_words(*words).is_gap();
            if !to_the_end && records.last().is_some_and(gap) {
                records.pop();
                chunk.bytes -= 16;
                if records.is_empty() {
                    break;
                }
            }
            return Some(chunk);
        }
        None
    }

    /// Bounds one drain, bytes, so that a fast writer cannot starve the other rings.
    pub(crate) fn most_bytes(&self) -> u64 {
        2 * u64::from(self.map.memory().max_segments()) * SEGMENT_BYTES
    }

    pub(crate) fn header(&self, chunk: &Chunk, records: usize) -> BlockHeader {
        BlockHeader {
            ring: self.map.number,
            pid: self.map.pid,
            tid: self.map.tid,
            position: chunk.position,
            records: records as u32,
        }
    }

    /// Gives space back to the writer for what is in the file, now that `written` bytes are.
    pub(crate) fn give_back(&mut self, written: u64) {
        let mut position = None;
        while let Some(&(end, of_ring)) = self.on_the_way.front()
            && end <= written
        {
            self.on_the_way.pop_front();
            position = Some(of_ring);
        }
        if let Some(position) = position {
            self.reader.publish(position);
        }
    }

    /// Returns its account, when nothing more is read from it.
    pub(crate) fn account(&mut self, overflow: Overflow) -> Ended {
        let mut dropped = self.map.dropped().saturating_add(self.unwritten);
        let mut overwritten = self.reader.overwritten();
        if overflow != Overflow::Overwrite {
            // Records that a killed recorder took before they were written.
            dropped = dropped.saturating_add(std::mem::take(&mut overwritten));
        }
        let number = self.map.number;
        let counts = self.sampled.take();
        Ended {
            ring: manifest::Ring {
                ring: number as i32,
                pid: self.map.pid,
                tid: self.map.tid,
                written: self
                    .received
                    .saturating_add(dropped)
                    .saturating_add(overwritten),
                received: self.received,
                dropped,
                overwritten,
                spans_wait: Some(self.map.spans_wait()),
                interposed: self.map.is_interposed(),
                read_cost: self.map.read_cost(),
            },
            sampled: counts.unwrap_or_else(|| sampled::of_ring(number, &self.map.memory())),
        }
    }
}

/// Copies the records of a chunk into `records` (cleared first).
pub(crate) fn copy(memory: &Mapped, chunk: &Chunk, records: &mut Vec<[u64; 2]>) {
    records.clear();
    records.extend((0..chunk.bytes / 16).map(|r| memory.load_record(chunk.at + 16 * r)));
}
