use crate::layout::RECORD_BYTES;
use crate::layout::ring::segment_of;
use crate::memory::Memory;

/// The ring contains a value that no writer stores. It is to be abandoned; what was read before
/// remains valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupt {
    /// The head went back, is not a whole record, or is farther ahead than
    /// the ring is long.
    Head {
        /// The value of the head, bytes.
        head: u64,
        /// Position of the reader, bytes.
        position: u64,
    },
    /// A use names a segment that does not exist.
    Use {
        /// The segment named.
        segment: u32,
        /// Number of existing segments.
        segments: u32,
    },
}

impl core::fmt::Display for Corrupt {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Head { head, position } => {
                write!(f, "published position {head} does not follow {position}")
            }
            Self::Use { segment, segments } => {
                write!(f, "segment {segment} named, there are {segments}")
            }
        }
    }
}

impl core::error::Error for Corrupt {}

/// Published records that lie together in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Position in the stream, bytes.
    pub position: u64,
    /// Byte of the segment area at which the records begin.
    pub at: u64,
    /// Number of bytes, a multiple of 16, at least 16.
    pub bytes: u64,
}

/// The reading side of a ring. It trusts nothing that it reads there.
#[derive(Debug)]
pub struct Reader<M> {
    memory: M,
    position: u64,
    /// The head as last seen.
    head: u64,
    overwritten: u64,
    /// Continuation records below `position`, modulo 2^32.
    continuations: u32,
}

impl<M: Memory> Reader<M> {
    /// Creates a reader at the start of a ring.
    pub const fn new(memory: M) -> Self {
        Self {
            memory,
            position: 0,
            head: 0,
            overwritten: 0,
            continuations: 0,
        }
    }

    /// Creates a reader that continues where another one ended: at `position`, below which there
    /// are `continuations` continuation records, modulo 2^32. Records that the other one returned
    /// to the writer and did not keep count as overwritten.
    pub fn resume(memory: M, position: u64, continuations: u32) -> Self {
        let tail = memory.load_tail(M::OBSERVE_TAIL);
        let mut reader = Self {
            position,
            continuations,
            ..Self::new(memory)
        };
        let mut whole = tail & !(M::SEGMENT_BYTES - 1);
        if whole == tail && reader.memory.load_head(M::OBSERVE_HEAD) <= whole {
            // That segment has not been begun, so the previous one was not taken back.
            whole = whole.saturating_sub(M::SEGMENT_BYTES);
        }
        reader.skip_to(whole);
        reader
    }

    /// Returns the ring's memory.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// Returns the number of bytes of the stream that were taken or skipped.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of events that were overwritten before they could be read.
    pub const fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// Loads the position of the writer; returns the number of bytes not taken yet. Each load costs
    /// the writer a cache miss: once a millisecond this is negligible, but continuous polling would
    /// triple the cost of an event.
    pub fn look(&mut self) -> u64 {
        // Partner: Writer::put.
        self.head = self.memory.load_head(M::OBSERVE_HEAD);
        self.head.saturating_sub(self.position)
    }

    /// Loads the position of the writer, and returns the next chunk without taking it; `None` if
    /// all that is published was taken.
    ///
    /// # Errors
    /// [`Corrupt`]: the ring is to be abandoned.
    pub fn chunk(&mut self) -> Result<Option<Chunk>, Corrupt> {
        self.look();
        self.seen_chunk()
    }

    /// Returns the next chunk of what the last [`Self::look`] saw.
    ///
    /// # Errors
    /// As [`Self::chunk`].
    pub fn seen_chunk(&mut self) -> Result<Option<Chunk>, Corrupt> {
        let head = self.head;
        if !self.skip_overwritten(head) {
            return Ok(None);
        }
        let room = u64::from(self.memory.max_segments()) * M::SEGMENT_BYTES;
        let corrupt = Corrupt::Head {
            head,
            position: self.position,
        };
        let ahead = head.checked_sub(self.position).ok_or(corrupt)?;
        if head % RECORD_BYTES != 0 || ahead > room {
            return Err(corrupt);
        }
        if ahead == 0 {
            return Ok(None);
        }
        let within = self.position & (M::SEGMENT_BYTES - 1);
        let segment = segment_of(self.entry(self.position));
        let segments = self.memory.segments();
        if segment >= segments {
            return Err(Corrupt::Use { segment, segments });
        }
        Ok(Some(Chunk {
            position: self.position,
            at: u64::from(segment) * M::SEGMENT_BYTES + within,
            bytes: ahead.min(M::SEGMENT_BYTES - within),
        }))
    }

    /// Returns whether the copy of the chunk is what was written there: false if the writer has
    /// since reused the segment.
    pub fn is_whole(&self, chunk: &Chunk) -> bool {
        // Partner: the fence in Writer::find_segment.
        self.memory.fence(M::FENCE_VALIDATE);
        self.memory.load_oldest() <= chunk.position / M::SEGMENT_BYTES
    }

    /// Returns the chunk to the writer. `continuations` is the number of its records that are not
    /// events.
    pub fn release(&mut self, chunk: &Chunk, continuations: u32) {
        self.pass(chunk, continuations);
        self.publish(self.position);
    }

    /// As [`Self::release`], but the writer is not informed: for readers that only inspect the
    /// ring, and for those that must first store the copy safely.
    pub const fn pass(&mut self, chunk: &Chunk, continuations: u32) {
        self.position = chunk.position + chunk.bytes;
        self.continuations = self.continuations.wrapping_add(continuations);
    }

    /// Returns to the writer what was passed below `position`.
    pub fn publish(&self, position: u64) {
        // Partner: Writer::find_segment. Our copy is done before it writes.
        self.memory.store_tail(position, M::PUBLISH_TAIL);
    }

    /// Skips the oldest segments, which may be gone under the overwrite policy: moves to the first
    /// whole one below `head` and counts what was lost. Returns false if there is none at this
    /// moment.
    fn skip_overwritten(&mut self, head: u64) -> bool {
        let oldest = self.memory.load_oldest();
        let start = oldest.saturating_mul(M::SEGMENT_BYTES);
        if start <= self.position {
            return true;
        }
        if start >= head {
            return false;
        }
        // The entry exists because the head, which we acquired, is beyond it. It belongs to this
        // use as long as the use is not given up.
        let continuations_at_start = (self.entry(start) >> 32) as u32;
        self.memory.fence(M::FENCE_VALIDATE);
        if self.memory.load_oldest() != oldest {
            return false;
        }
        self.skip(start, continuations_at_start);
        true
    }

    /// Moves to the start of a segment that is whole, if that is ahead.
    fn skip_to(&mut self, start: u64) {
        if start > self.position {
            let continuations = (self.entry(start) >> 32) as u32;
            self.skip(start, continuations);
        }
    }

    fn skip(&mut self, start: u64, continuations_at_start: u32) {
        let records = (start - self.position) / RECORD_BYTES;
        let continuations = continuations_at_start.wrapping_sub(self.continuations);
        self.overwritten += records.saturating_sub(u64::from(continuations));
        self.continuations = continuations_at_start;
        self.position = start;
    }

    fn entry(&self, position: u64) -> u64 {
        let segment_use = position / M::SEGMENT_BYTES;
        self.memory
            .load_use((segment_use % u64::from(self.memory.max_segments())) as u32)
    }
}
