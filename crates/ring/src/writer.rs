use core::sync::atomic::{Ordering, compiler_fence};

use crate::layout::RECORD_BYTES;
use crate::layout::ring::{segment_of, use_of};
use crate::memory::Memory;
use crate::record::{DeschedFlag, Kind, Record};

/// What a writer does when its ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Overflow {
    /// Takes more segments, up to the session's budget; then drops.
    Grow = 0,
    /// Drops the new event and counts it.
    Drop = 1,
    /// Gives up the oldest segment.
    Overwrite = 2,
    /// Waits until the collector has drained a segment.
    Block = 3,
}

impl Overflow {
    /// Decodes the policy from its code in the control page.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Grow,
            1 => Self::Drop,
            2 => Self::Overwrite,
            3 => Self::Block,
            _ => return None,
        })
    }
}

/// Source of what a writer needs from outside its ring.
pub trait Source {
    /// Takes a segment; returns its number, and how many of its bytes have pages, from its begin
    /// (not 0). `None`: none is available.
    fn take_segment(&mut self) -> Option<(u32, u64)>;
    /// Gets more pages of a segment of which `from` bytes are present, at the end of a piece.
    /// Returns the number of bytes present then; `from`: none are available.
    fn more_pages(&mut self, segment: u32, from: u64) -> u64;
    /// Returns whether the table of uses has a page for this entry.
    fn has_entry(&mut self, index: u32) -> bool;
    /// Waits a moment for the reader; returns false if waiting is hopeless.
    fn wait(&mut self) -> bool;
    /// Called when room was found, for the ring's first segment a piece and for others all of it: a
    /// moment for occasional work.
    fn found(&mut self) {}
}

/// The ring is full and the policy says that the event is to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The possible values of [`Writer::state`] besides the stack pointer of a frame that writes.
pub mod state {
    /// Between two events. It is zero, so that one store can end an event and move the cursor.
    pub const READY: u32 = 0;
    /// There is no ring.
    pub const NO_RING: u32 = 1;
    /// A ring is being made.
    pub const MAKING: u32 = 2;
    /// The thread is ending.
    pub const ENDED: u32 = 3;

    /// Returns whether a frame is writing.
    #[must_use]
    #[inline(always)]
    pub const fn is_writing(state: u32) -> bool {
        state > ENDED
    }
}

/// The fate of an event whose writer was left in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It is in the ring.
    Published,
    /// It was dropped, and is counted in [`Writer::dropped`].
    Dropped,
    /// Neither published nor dropped.
    Unfinished,
}

/// Mark in a cursor: the cursor does not match the position at the moment.
const MOVING: u32 = 4;
/// Mark in a cursor: an event is being dropped.
const DROPPING: u32 = 8;
/// The bits of a cursor that are marks.
const MARKS: u32 = RECORD_BYTES as u32 - 1;

/// The writing side of a ring.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Writer<M> {
    /// Byte of the segment for the next record, and marks. A multiple of [`Memory::PIECE_BYTES`]
    /// means that there may be no room, and [`Self::find_room`] must be called. It shares a word
    /// with `state`, which one store changes: so whether an event was published can be told at each
    /// instruction ([`Self::left`]).
    cursor: u32,
    /// State of the recorder: which frame writes ([`state`]). An event that ends makes it
    /// [`state::READY`].
    pub state: u32,
    memory: M,
    policy: Overflow,
    /// Number of segments to take before drained ones are taken back.
    first_segments: u32,
    /// Difference from a cursor to the position in the stream.
    to_position: u64,
    /// The next segment use.
    next_use: u64,
    /// First use that has not been taken back.
    oldest: u64,
    allocated: u32,
    continuations: u32,
    /// The segment that is being filled.
    segment: u32,
    /// Number of its bytes whose pages are present.
    there: u64,
    /// Events dropped since the last gap record.
    gap: u64,
    /// Total number of events dropped.
    dropped: u64,
    /// The total, including the event that is being dropped.
    dropping: u64,
}

impl<M: Memory> Writer<M> {
    /// Creates a writer at the start of an empty ring. It takes no segment yet. A segment that was
    /// drained just now is still in the collector's cache, and taking its lines back from there
    /// costs more than the event. So drained ones are taken back only once there are
    /// `first_segments`.
    pub const fn new(memory: M, policy: Overflow, first_segments: u32) -> Self {
        Self {
            cursor: 0,
            state: state::NO_RING,
            memory,
            policy,
            first_segments,
            to_position: 0,
            next_use: 0,
            oldest: 0,
            allocated: 0,
            continuations: 0,
            segment: 0,
            there: 0,
            gap: 0,
            dropped: 0,
            dropping: 0,
        }
    }

    /// Returns the ring's memory.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// Returns the number of events dropped so far.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of segments taken so far.
    pub const fn allocated(&self) -> u32 {
        self.allocated
    }

    /// Returns whether the next record needs [`Self::find_room`] first.
    #[inline(always)]
    pub const fn needs_room(&self) -> bool {
        self.cursor & (M::PIECE_BYTES as u32 - 1) & !MARKS == 0
    }

    /// Stores and publishes one record, the last of its event. There must be room
    /// (not [`Self::needs_room`]).
    #[inline(always)]
    pub fn put(&mut self, words: [u64; 2]) {
        let slot = u64::from(self.cursor);
        self.memory.store_record(slot, words);
        self.publish(slot + RECORD_BYTES);
        self.finish(slot + RECORD_BYTES);
    }

    #[inline(always)]
    fn publish(&mut self, cursor: u64) {
        // Partner: Reader::chunk. The record must be there before the position.
        self.memory
            .store_head(cursor.wrapping_add(self.to_position), M::PUBLISH_HEAD);
    }

    /// Ends the event; the next one goes to `cursor`.
    #[inline(always)]
    fn finish(&mut self, cursor: u64) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: `cursor` and `state` are the first eight bytes, aligned to eight; on a
        // little-endian machine the state becomes `READY`.
        unsafe { (&raw mut *self).cast::<u64>().write_volatile(cursor) };
    }

    /// Sets where the next record of the same event goes.
    fn move_to(&mut self, cursor: u32) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: a field of our own; a handler that comes in only looks at it.
        unsafe { (&raw mut self.cursor).write_volatile(cursor) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Ends the dropped event that [`Full`] was about, once it has been reported.
    pub fn finish_dropped(&mut self) {
        self.finish(u64::from(self.cursor & !MARKS));
    }

    /// Returns the fate of the event that was being written; nothing more may be written.
    pub fn left(&mut self) -> Left {
        if self.cursor & DROPPING != 0 {
            self.dropped = self.dropping;
            return Left::Dropped;
        }
        let at = u64::from(self.cursor);
        let head = self.memory.load_head(Ordering::Relaxed);
        let is_moving = self.cursor & MOVING != 0;
        if is_moving || head == at.wrapping_add(self.to_position) || at >= M::SEGMENT_BYTES {
            return Left::Unfinished;
        }
        // Checks whether a gap or a pad was published, but not yet the event after it.
        let at = u64::from(self.segment) * M::SEGMENT_BYTES + at;
        match Record::from_words(self.memory.load_record(at)).kind {
            Kind::Continuation => Left::Unfinished,
            _ => Left::Published,
        }
    }

    /// As [`Self::put`], but `words` is evaluated as the last step before the store and the
    /// publication.
    #[inline(always)]
    pub fn put_last(&mut self, words: impl FnOnce() -> [u64; 2]) {
        let slot = u64::from(self.cursor);
        let position = (slot + RECORD_BYTES).wrapping_add(self.to_position);
        let words = words();
        self.memory.store_record(slot, words);
        // Partner: Reader::chunk. The record must be there before the position.
        self.memory.store_head(position, M::PUBLISH_HEAD);
        self.finish(slot + RECORD_BYTES);
    }

    /// Stores an event and its 64-bit payload and publishes both at once.
    ///
    /// # Errors
    /// [`Full`]: the event is dropped and counted.
    pub fn put_wide(
        &mut self,
        record: Record,
        value: u64,
        source: &mut impl Source,
    ) -> Result<(), Full> {
        // The two halves share a piece. So a reader that starts at a segment (overwrite) never
        // meets a half, and the pages of both are present.
        loop {
            if self.needs_room() {
                self.find_room(source)?;
                if self.needs_room() {
                    break; // at the very start of a piece: all of it is room
                }
            } else if (self.cursor + RECORD_BYTES as u32) & (M::PIECE_BYTES as u32 - 1) == 0 {
                self.put_continuation(Record::PAD, record.event, 0);
            } else {
                break;
            }
        }
        let slot = u64::from(self.cursor);
        self.memory.store_record(slot, record.to_words());
        self.store_continuation(slot + RECORD_BYTES, Record::WIDE, record.event, value);
        self.publish(slot + 2 * RECORD_BYTES);
        self.finish(slot + 2 * RECORD_BYTES);
        Ok(())
    }

    /// Stores a continuation that is published before its event.
    fn put_continuation(&mut self, what: u32, event: u16, value: u64) {
        let slot = u64::from(self.cursor);
        self.store_continuation(slot, what, event, value);
        self.publish(slot + RECORD_BYTES);
        self.move_to(self.cursor + RECORD_BYTES as u32);
    }

    fn store_continuation(&mut self, slot: u64, what: u32, event: u16, value: u64) {
        self.continuations = self.continuations.wrapping_add(1);
        let record = Record {
            ts: value,
            payload: what,
            event,
            cpu: Record::CPU_UNKNOWN,
            kind: Kind::Continuation,
            descheduled: DeschedFlag::No,
        };
        self.memory.store_record(slot, record.to_words());
    }

    /// Finds room for at least one record, or counts an event as dropped.
    ///
    /// # Errors
    /// [`Full`]: the event of the caller is dropped and already counted; it has to be reported,
    /// followed by [`Self::finish_dropped`].
    #[cold]
    #[inline(never)]
    pub fn find_room(&mut self, source: &mut impl Source) -> Result<(), Full> {
        let cursor = u64::from(self.cursor & !MARKS);
        let place = cursor % M::SEGMENT_BYTES;
        let has_room = if place == 0 {
            self.next_segment(source)
        } else {
            if place >= self.there {
                self.there = source.more_pages(self.segment, place);
            }
            place < self.there
        };
        if !has_room {
            self.dropping = self.dropped + 1;
            self.move_to(self.cursor | DROPPING);
            self.dropped = self.dropping;
            self.gap += 1;
            return Err(Full);
        }
        if self.gap > 0 {
            let gap = core::mem::take(&mut self.gap);
            self.put_continuation(Record::GAP, 0, gap);
        }
        if place == 0 || self.next_use <= 1 {
            source.found();
        }
        Ok(())
    }

    /// Begins the next use, if there is a segment for it.
    fn next_segment(&mut self, source: &mut impl Source) -> bool {
        let index = (self.next_use % u64::from(self.memory.max_segments())) as u32;
        if !source.has_entry(index) {
            return false;
        }
        let Some(segment) = self.find_segment(source) else {
            return false;
        };
        self.memory
            .store_use(index, use_of(segment, self.continuations));
        self.move_to(self.cursor | MOVING);
        self.memory.enter(segment);
        self.segment = segment;
        self.to_position = self.next_use * M::SEGMENT_BYTES;
        self.next_use += 1;
        self.move_to(0);
        true
    }

    fn find_segment(&mut self, source: &mut impl Source) -> Option<u32> {
        loop {
            self.there = M::SEGMENT_BYTES;
            // Partner: Reader::release. The reader's copies are done before we write.
            let tail = self.memory.load_tail(M::OBSERVE_TAIL);
            let drained =
                self.oldest < self.next_use && tail >= (self.oldest + 1) * M::SEGMENT_BYTES;
            if drained && self.allocated >= self.first_segments {
                return Some(self.take_back());
            }
            if self.allocated < self.memory.max_segments() {
                if let Some((segment, there)) = source.take_segment() {
                    self.there = there;
                    self.allocated += 1;
                    return Some(segment);
                }
            }
            if drained {
                return Some(self.take_back());
            }
            match self.policy {
                Overflow::Overwrite if self.oldest < self.next_use => {
                    let segment = self.take_back();
                    self.memory.store_oldest(self.oldest);
                    self.memory.fence(M::FENCE_OVERWRITE);
                    return Some(segment);
                }
                // Without a segment its own tail cannot move: other rings have all of them.
                Overflow::Block if self.allocated > 0 && source.wait() => {}
                _ => return None,
            }
        }
    }

    fn take_back(&mut self) -> u32 {
        let index = (self.oldest % u64::from(self.memory.max_segments())) as u32;
        self.oldest += 1;
        // This is our own entry, but the page is shared: a value that we did not write must not
        // lead us out of the mapping.
        segment_of(self.memory.load_use(index)).min(self.memory.segments() - 1)
    }
}
