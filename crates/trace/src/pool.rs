//! Which program has which head and which segment of a session's pool: the collector keeps the queues
//! filled from which programs take them, and gets them back when their ring is read.
//!
//! **Method.** Of each kind there are two queues: of those whose pages are written, which are
//! handed out first, and of the others. What was put in is remembered here: a program can
//! write over the queues, and is never believed about what was handed out, or to whom.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use undertick_ring::layout::pool::Queue;
use undertick_ring::layout::{self, SEGMENT_BYTES, ring};
use undertick_ring::pool::{Line, MappedLine, put, take};
use undertick_ring::{Mapped, Memory};

use crate::pool_map::PoolMap;

/// Segments with written pages that are kept ready, and heads: what threads take in the time
/// that the collector may be taken off its CPU. Of a small pool a quarter: file systems may
/// be small, too.
const READY: usize = 64;
/// This many times as many are kept when they come back; of more the memory is taken.
const KEPT: usize = 4;
/// A program that took more than this since the last time, about a millisecond ago, takes
/// segments faster than they can be prepared: to try would only keep it from its CPU.
const TOO_FAST: usize = 8;

/// Entries of the table of uses in a head's first pages.
const USES_OF_READY: usize = (ring::READY_BYTES as usize - ring::OFF_USES) / 8;

/// Where a head or a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In one of the queues.
    Queued,
    /// The collector's own: to be prepared, or come back just now.
    Here,
    /// Taken by a program.
    Out,
    /// Known to be the ring's at this head.
    Of(u32),
}

/// The heads, or the segments.
struct Stock {
    lines: [MappedLine; 2],
    /// What is in each queue, first one first.
    queued: [VecDeque<u32>; 2],
    /// How many were taken from each queue, as last seen.
    seen: [u64; 2],
    places: Vec<Place>,
    /// How many are kept ready.
    ready: usize,
    /// What programs took since [`Self::look`], and from which queue.
    out: Vec<(u32, usize)>,
}

/// Of the two queues: with written pages, without.
const WRITTEN: usize = 0;
const RAW: usize = 1;

impl Stock {
    fn new(lines: [MappedLine; 2]) -> Self {
        let room = lines[RAW].room() as usize;
        Self {
            lines,
            queued: [const { VecDeque::new() }; 2],
            seen: lines.map(|line| line.load_taken(Ordering::Acquire)),
            places: vec![Place::Out; room],
            ready: READY,
            out: Vec::new(),
        }
    }

    /// Whether one with written pages is to be kept that has come back.
    fn keeps(&self) -> bool {
        self.queued[WRITTEN].len() < KEPT * self.ready
    }

    /// What a recorder that was killed has left in the queues.
    fn recover(&mut self) {
        for which in [WRITTEN, RAW] {
            let line = self.lines[which];
            let (taken, put) = (self.seen[which], line.load_put(Ordering::Acquire));
            let room = u64::from(line.room());
            for place in taken..put.clamp(taken, taken.saturating_add(room)) {
                let number = line.load_number((place % room) as u32);
                let free = (self.places.get_mut(number as usize)).filter(|at| **at == Place::Out);
                if let Some(place) = free {
                    *place = Place::Queued;
                    self.queued[which].push_back(number);
                }
            }
        }
    }

    /// Looks what programs took since the last time, and from which queue.
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

    /// A program took the first one of a queue.
    fn first_is_out(&mut self, which: usize) {
        if let Some(number) = self.queued[which].pop_front() {
            self.places[number as usize] = Place::Out;
            self.out.push((number, which));
        }
    }

    /// Puts one into a queue.
    fn give(&mut self, number: u32, which: usize) {
        self.places[number as usize] = Place::Out;
        if put(&self.lines[which], number) {
            self.places[number as usize] = Place::Queued;
            self.queued[which].push_back(number);
        }
    }

    /// Takes one without pages, to give it some.
    fn take_raw(&mut self) -> Option<u32> {
        let number = take(&self.lines[RAW])?;
        // A program may have written something else there: then it is counted as a program's.
        let place = self.queued[RAW].iter().position(|at| *at == number)?;
        // Those before it were taken by programs.
        for _ in 0..place {
            self.first_is_out(RAW);
        }
        self.queued[RAW].pop_front();
        self.seen[RAW] += place as u64 + 1;
        self.places[number as usize] = Place::Here;
        Some(number)
    }

    fn free(&self) -> usize {
        self.queued.iter().map(VecDeque::len).sum()
    }
}

/// See the module.
pub(crate) struct Pool {
    map: Arc<PoolMap>,
    heads: Stock,
    segments: Stock,
    /// Segments that programs took without written pages.
    unwritten: VecDeque<u32>,
    /// Heads that programs took since they were last asked for.
    new_heads: Vec<u32>,
    /// Segments that programs took since the last round.
    taken: usize,
}

impl Pool {
    fn new(map: Arc<PoolMap>) -> Self {
        let line = |queue| map.line(queue);
        let mut heads = Stock::new([line(Queue::HeadsReady), line(Queue::Heads)]);
        let mut segments = Stock::new([line(Queue::SegmentsReady), line(Queue::Segments)]);
        let ready = (segments.places.len() / 4).clamp(1, READY);
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

    /// Of a session that begins: all are free, some ready.
    pub(crate) fn fill(map: Arc<PoolMap>) -> Self {
        let mut pool = Self::new(map);
        let shape = pool.map.shape();
        (0..shape.heads).for_each(|head| pool.heads.give(head, RAW));
        (0..shape.segments).for_each(|segment| pool.segments.give(segment, RAW));
        pool.prepare(READY);
        pool
    }

    /// Of a session whose recorder was killed: what is in no queue is a program's.
    pub(crate) fn recover(map: Arc<PoolMap>) -> Self {
        let mut pool = Self::new(map);
        pool.heads.recover();
        pool.segments.recover();
        let out = |stock: &Stock| -> Vec<u32> {
            let numbers = 0..stock.places.len() as u32;
            numbers
                .filter(|number| stock.places[*number as usize] == Place::Out)
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

    pub(crate) const fn map(&self) -> &Arc<PoolMap> {
        &self.map
    }

    /// Segments that are not free, and all that there are.
    pub(crate) fn segments(&self) -> (u32, u32) {
        let all = self.segments.places.len();
        ((all - self.segments.free()) as u32, all as u32)
    }

    /// Looks what programs took since the last time.
    pub(crate) fn look(&mut self) {
        let heads = self.heads.look();
        self.new_heads
            .extend(heads.into_iter().map(|(head, _)| head));
        for (segment, which) in self.segments.look() {
            self.taken += 1;
            if which == RAW && self.unwritten.len() < self.segments.places.len() {
                self.unwritten.push_back(segment);
            }
        }
    }

    /// Heads that were taken since the last time; a ring may still be in the making there.
    pub(crate) fn new_heads(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.new_heads)
    }

    /// Whether a segment is that of the ring at `head`, as the ring says and nothing
    /// contradicts.
    pub(crate) fn is_of(&mut self, segment: u32, head: u32) -> bool {
        let place = |pool: &Self| pool.segments.places.get(segment as usize).copied();
        if place(self) == Some(Place::Queued) {
            self.look(); // taken just now
        }
        if place(self) == Some(Place::Out) {
            self.segments.places[segment as usize] = Place::Of(head);
        }
        place(self) == Some(Place::Of(head))
    }

    /// Keeps heads and segments ready, at most `most` segments more. Those that a program
    /// took without pages come first: it takes them by 16 KiB.
    pub(crate) fn prepare(&mut self, most: usize) {
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
                self.segments.places[segment as usize],
                Place::Out | Place::Of(_)
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

    /// Writes the pages of a segment, and tells programs.
    fn write(&self, segment: u32) -> bool {
        let is_there = self.map.populate_segment(segment);
        if is_there {
            // Partner: whoever takes pages of a segment.
            self.map.written(segment).store(1, Ordering::Release);
        }
        is_there
    }

    /// Gets a ring back whose writer is gone and which was read: its head and segments.
    pub(crate) fn give_back(&mut self, head: u32, memory: &Mapped) {
        self.look();
        let uses = uses_of(memory);
        // A ring names a segment once for each time that it has used it. All names are read
        // before the first one is given: it could be a program's by the second.
        let mut segments = Vec::new();
        for entry in self.map.table_of_uses(head, uses) {
            let segment = ring::segment_of(entry);
            if self.is_of(segment, head) {
                self.segments.places[segment as usize] = Place::Here;
                segments.push(segment);
            }
        }
        // As new: no ring, no uses, no cells. Before anything is given, so that a
        // recorder that goes on after us finds nothing twice.
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

/// How many entries of its table of uses a ring can have written: one for each segment that
/// was begun, one for the next.
fn uses_of(memory: &Mapped) -> u32 {
    let head = memory.load_head(Ordering::Relaxed);
    let uses = (head / SEGMENT_BYTES).saturating_add(2);
    uses.min(u64::from(memory.max_segments().min(layout::MAX_SEGMENTS))) as u32
}

#[cfg(test)]
mod tests;
