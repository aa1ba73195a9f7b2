//! Tracks which program holds which head and which segment of a session's pool. The collector
//! fills the queues from which programs take heads and segments, and gets them back when their
//! ring has been read.
//!
//! **Method.** Heads and segments each have two queues: those with written pages, which are
//! handed out first, and the others. The collector remembers what it put in. A program can
//! overwrite the queues, so they are never trusted about what was handed out, or to which
//! program.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use undertick_ring::layout::pool::Queue;
use undertick_ring::layout::{self, SEGMENT_BYTES, ring};
use undertick_ring::pool::{Line, MappedLine, put, take};
use undertick_ring::{Mapped, Memory};

use crate::pool_map::PoolMap;

/// Number of heads, and of segments, kept ready with written pages: what threads take in the time that
/// the collector may be off its CPU. In a small pool it is a quarter, because file systems may be
/// small, too.
const READY: usize = 64;
/// This many times as many are ready at first, because none has come back yet. Those that come back are kept
/// up to that number; the memory of more is released.
const KEPT: usize = 4;
/// A program that took more than this since the last time, about a millisecond ago, takes
/// segments faster than they can be prepared. Preparing more would only take CPU time from it.
const TOO_FAST: usize = 8;

/// Entries of the table of uses in a head's first pages.
const USES_OF_READY: usize = (ring::READY_BYTES as usize - ring::OFF_USES) / 8;

/// State of a head or a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    /// In one of the queues.
    Queued,
    /// With the collector: to be prepared, or just returned.
    Here,
    /// Taken by a program.
    Out,
    /// Known to belong to the ring at this head.
    OfRing(u32),
}

/// The heads, or the segments.
struct Stock {
    lines: [MappedLine; 2],
    /// Content of each queue, in order.
    queued: [VecDeque<u32>; 2],
    /// Number taken from each queue, as last seen.
    seen: [u64; 2],
    states: Vec<SlotState>,
    /// Number to be kept ready.
    ready: usize,
    /// What programs have taken since [`Self::look`], and from which queue.
    out: Vec<(u32, usize)>,
}

/// Index of the two queues: with written pages, and without.
const WRITTEN: usize = 0;
const RAW: usize = 1;

impl Stock {
    fn new(lines: [MappedLine; 2]) -> Self {
        let room = lines[RAW].room() as usize;
        Self {
            lines,
            queued: [const { VecDeque::new() }; 2],
            seen: lines.map(|line| line.load_taken(Ordering::Acquire)),
            states: vec![SlotState::Out; room],
            ready: READY,
            out: Vec::new(),
        }
    }

    /// Whether a returned one with written pages is to be kept.
    fn keeps(&self) -> bool {
        self.queued[WRITTEN].len() < KEPT * self.ready
    }

    /// Recovers the content of the queues that a killed recorder left.
    fn recover(&mut self) {
        for which in [WRITTEN, RAW] {
            let line = self.lines[which];
            let (taken, put) = (self.seen[which], line.load_put(Ordering::Acquire));
            let room = u64::from(line.room());
            for place in taken..put.clamp(taken, taken.saturating_add(room)) {
                let number = line.load_number((place % room) as u32);
                let free =
                    (self.states.get_mut(number as usize)).filter(|at| **at == SlotState::Out);
                if let Some(state) = free {
                    *state = SlotState::Queued;
                    self.queued[which].push_back(number);
                }
            }
        }
    }

    /// Returns what programs have taken since the last call, and from which queue.
    fn look(&mut self) -> Vec<(u32, usize)> {
        for which in [WRITTEN, RAW] {
            let taken = self.lines[which].load_taken(Ordering::Acquire);
            let new = taken.saturating_sub(self.seen[which]);
            for _ in 0..new.min(self.queued[which].len() as u64) {
                self.first_is_out(which);
            }
            self.seen[which] = taken.max(self.seen[which]);
        }
        std::mem::take(&mut self.out)
    }

    /// Marks the first one of a queue as taken by a program.
    fn first_is_out(&mut self, which: usize) {
        if let Some(number) = self.queued[which].pop_front() {
            self.states[number as usize] = SlotState::Out;
            self.out.push((number, which));
        }
    }

    /// Puts a number into a queue.
    fn give(&mut self, number: u32, which: usize) {
        self.states[number as usize] = SlotState::Out;
        if put(&self.lines[which], number) {
            self.states[number as usize] = SlotState::Queued;
            self.queued[which].push_back(number);
        }
    }

    /// Takes one without pages, to write them.
    fn take_raw(&mut self) -> Option<u32> {
        let number = take(&self.lines[RAW])?;
        // A program may have written another number there: then that one counts as taken by a
        // program.
        let place = self.queued[RAW].iter().position(|at| *at == number)?;
        // Those before it were taken by programs.
        for _ in 0..place {
            self.first_is_out(RAW);
        }
        self.queued[RAW].pop_front();
        self.seen[RAW] += place as u64 + 1;
        self.states[number as usize] = SlotState::Here;
        Some(number)
    }

    fn free(&self) -> usize {
        self.queued.iter().map(VecDeque::len).sum()
    }
}

/// The heads and segments of a session, and which program holds them.
pub struct Pool {
    map: Arc<PoolMap>,
    heads: Stock,
    segments: Stock,
    /// Segments that programs took before their pages were written.
    unwritten: VecDeque<u32>,
    /// Heads that programs have taken and that were not returned yet.
    new_heads: Vec<u32>,
    /// Number of segments that programs have taken since the last round.
    taken: usize,
}

impl Pool {
    fn new(map: Arc<PoolMap>) -> Self {
        let line = |queue| map.line(queue);
        let mut heads = Stock::new([line(Queue::HeadsReady), line(Queue::Heads)]);
        let mut segments = Stock::new([line(Queue::SegmentsReady), line(Queue::Segments)]);
        let ready = (segments.states.len() / 4).clamp(1, READY);
        (heads.ready, segments.ready) = (ready, ready);
        Self {
            heads,
            segments,
            map,
            unwritten: VecDeque::new(),
            new_heads: Vec::new(),
            taken: 0,
        }
    }

    /// The pool of a new session: all are free, some ready.
    pub fn fill(map: Arc<PoolMap>) -> Self {
        let mut pool = Self::new(map);
        let shape = pool.map.shape();
        (0..shape.heads).for_each(|head| pool.heads.give(head, RAW));
        (0..shape.segments).for_each(|segment| pool.segments.give(segment, RAW));
        let ready = pool.segments.ready;
        let first = (pool.segments.states.len() / 4).clamp(1, KEPT * READY);
        (pool.heads.ready, pool.segments.ready) = (first, first);
        pool.prepare(first);
        (pool.heads.ready, pool.segments.ready) = (ready, ready);
        pool
    }

    /// The pool of a session with a killed recorder: what is in no queue belongs to a program.
    pub fn recover(map: Arc<PoolMap>) -> Self {
        let mut pool = Self::new(map);
        pool.heads.recover();
        pool.segments.recover();
        let out = |stock: &Stock| -> Vec<u32> {
            let numbers = 0..stock.states.len() as u32;
            numbers
                .filter(|number| stock.states[*number as usize] == SlotState::Out)
                .collect()
        };
        pool.new_heads = out(&pool.heads);
        let is_unwritten = |segment: &u32| pool.map.written(*segment).load(Ordering::Relaxed) == 0;
        pool.unwritten = out(&pool.segments)
            .into_iter()
            .filter(is_unwritten)
            .collect();
        pool
    }

    /// Its memory.
    pub const fn map(&self) -> &Arc<PoolMap> {
        &self.map
    }

    /// The number of segments that are not free, and of all segments.
    pub fn segments(&self) -> (u32, u32) {
        let all = self.segments.states.len();
        ((all - self.segments.free()) as u32, all as u32)
    }

    /// Updates what programs have taken since the last time.
    pub fn look(&mut self) {
        let heads = self.heads.look();
        self.new_heads
            .extend(heads.into_iter().map(|(head, _)| head));
        for (segment, which) in self.segments.look() {
            self.taken += 1;
            if which == RAW && self.unwritten.len() < self.segments.states.len() {
                self.unwritten.push_back(segment);
            }
        }
    }

    /// Returns heads taken since the last call; a ring may still be in the making there.
    pub fn new_heads(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.new_heads)
    }

    /// Whether a segment belongs to the ring at `head`: the ring says so and nothing contradicts
    /// it.
    pub fn is_of(&mut self, segment: u32, head: u32) -> bool {
        let state = |pool: &Self| pool.segments.states.get(segment as usize).copied();
        if state(self) == Some(SlotState::Queued) {
            self.look(); // taken just now
        }
        if state(self) == Some(SlotState::Out) {
            self.segments.states[segment as usize] = SlotState::OfRing(head);
        }
        state(self) == Some(SlotState::OfRing(head))
    }

    /// Keeps heads and segments ready, at most `most` additional segments. Those that a program
    /// took without pages come first: it gets their pages by 16 KiB.
    pub fn prepare(&mut self, most: usize) {
        self.prepare_heads(4 * most);
        let is_too_fast = std::mem::take(&mut self.taken) > TOO_FAST;
        if is_too_fast && self.segments.queued[WRITTEN].is_empty() {
            return;
        }
        let mut more = 0;
        while more < most
            && let Some(segment) = self.unwritten.pop_front()
        {
            let is_programs = matches!(
                self.segments.states[segment as usize],
                SlotState::Out | SlotState::OfRing(_)
            );
            if is_programs && self.map.written(segment).load(Ordering::Relaxed) == 0 {
                self.write(segment);
                more += 1;
            }
        }
        while more < most && self.segments.queued[WRITTEN].len() < self.segments.ready {
            let Some(segment) = self.segments.take_raw() else {
                break;
            };
            if !self.write(segment) {
                self.map.empty_segment(segment); // of what it got
                self.segments.give(segment, RAW);
                break; // there is no memory
            }
            self.segments.give(segment, WRITTEN);
            more += 1;
        }
    }

    fn prepare_heads(&mut self, most: usize) {
        for _ in 0..most {
            if self.heads.queued[WRITTEN].len() >= self.heads.ready {
                break;
            }
            let Some(head) = self.heads.take_raw() else {
                break;
            };
            let is_there = self.map.populate_head(head);
            self.heads.give(head, if is_there { WRITTEN } else { RAW });
            if !is_there {
                break; // there is no memory
            }
        }
    }

    /// Writes the pages of a segment, and tells programs that they are written.
    fn write(&self, segment: u32) -> bool {
        let is_there = self.map.populate_segment(segment);
        if is_there {
            // Partner: a program that takes pages of a segment.
            self.map.written(segment).store(1, Ordering::Release);
        }
        is_there
    }

    /// Takes back a ring that has been read after its writer has gone: its head and segments.
    pub fn give_back(&mut self, head: u32, memory: &Mapped) {
        self.look();
        let uses = uses_of(memory);
        // A ring names a segment once for each time that it has used it. All names are read
        // before the first segment is returned: by its second name it could belong to a program.
        let mut segments = Vec::new();
        for entry in self.map.table_of_uses(head, uses) {
            let segment = ring::segment_of(entry);
            if self.is_of(segment, head) {
                self.segments.states[segment as usize] = SlotState::Here;
                segments.push(segment);
            }
        }
        // Reset to new: no ring, no uses, no cells. This comes before anything is returned, so
        // that a recorder that resumes after us finds nothing twice.
        let is_long = uses as usize > USES_OF_READY
            || memory
                .field_u32(ring::OFF_HAS_TABLE)
                .load(Ordering::Relaxed)
                != 0
            || memory.field_u32(ring::OFF_CELLS).load(Ordering::Relaxed) != 0;
        memory
            .field_u64(ring::OFF_MAGIC)
            .store(0, Ordering::Release);
        for offset in (0..ring::OFF_USES + 8 * (uses as usize).min(USES_OF_READY)).step_by(8) {
            memory.field_u64(offset).store(0, Ordering::Relaxed);
        }
        if is_long {
            self.map.empty_table(head);
        }
        for segment in segments {
            self.give_segment(segment);
        }
        if self.heads.keeps() {
            self.heads.give(head, WRITTEN);
        } else {
            self.map.empty_head(head);
            self.heads.give(head, RAW);
        }
    }

    fn give_segment(&mut self, segment: u32) {
        let written = self.map.written(segment);
        let is_written = written.load(Ordering::Relaxed) != 0;
        if is_written && self.segments.keeps() {
            self.segments.give(segment, WRITTEN);
        } else {
            self.map.empty_segment(segment);
            written.store(0, Ordering::Relaxed);
            self.segments.give(segment, RAW);
        }
    }
}

/// Most entries of its table of uses that a ring can have written: one for each segment that was
/// begun, and one for the next.
fn uses_of(memory: &Mapped) -> u32 {
    let head = memory.load_head(Ordering::Relaxed);
    let uses = (head / SEGMENT_BYTES).saturating_add(2);
    uses.min(u64::from(memory.max_segments().min(layout::MAX_SEGMENTS))) as u32
}

#[cfg(test)]
mod tests;
