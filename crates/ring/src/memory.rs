use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::layout;

/// The memory of one ring, as both sides see it. The orderings are part of the protocol. They are
/// given here as constants, so that the model can weaken one at a time and show that it was needed.
pub trait Memory {
    /// Bytes of a segment, a power of two.
    const SEGMENT_BYTES: u64;
    /// Bytes of a segment whose pages are allocated at a time: a power of two, at least two
    /// records.
    const PIECE_BYTES: u64 = Self::SEGMENT_BYTES;
    /// Used by the writer after a record; pairs with [`Self::OBSERVE_HEAD`].
    const PUBLISH_HEAD: Ordering = Ordering::Release;
    /// Used by the reader before it examines records and uses below the head.
    const OBSERVE_HEAD: Ordering = Ordering::Acquire;
    /// Used by the reader after it copied records; pairs with [`Self::OBSERVE_TAIL`].
    const PUBLISH_TAIL: Ordering = Ordering::Release;
    /// Used by the writer before it writes into a drained segment.
    const OBSERVE_TAIL: Ordering = Ordering::Acquire;
    /// Used by the writer between giving up an undrained segment and writing into it (overwrite): a
    /// release fence, the first half of a sequence lock.
    const FENCE_OVERWRITE: Ordering = Ordering::Release;
    /// Used by the reader between copying and checking that the copy is whole (overwrite): an
    /// acquire fence, the other half.
    const FENCE_VALIDATE: Ordering = Ordering::Acquire;

    /// Returns the maximum number of segments of the ring: the length of its table of uses.
    fn max_segments(&self) -> u32;
    /// Returns the number of segments of all rings.
    fn segments(&self) -> u32;
    /// Selects, for the writer, the segment that [`Self::store_record`] uses from here on.
    fn enter(&mut self, segment: u32);
    /// Stores the record at byte `at` of the segment that was entered last.
    fn store_record(&self, at: u64, words: [u64; 2]);
    /// Loads the record at byte `at` of the segment area.
    fn load_record(&self, at: u64) -> [u64; 2];
    /// Loads the head, with the given order.
    fn load_head(&self, order: Ordering) -> u64;
    /// Stores the head; see [`Self::load_head`].
    fn store_head(&self, bytes: u64, order: Ordering);
    /// Loads the tail, with the given order.
    fn load_tail(&self, order: Ordering) -> u64;
    /// Stores the tail; see [`Self::load_tail`].
    fn store_tail(&self, bytes: u64, order: Ordering);
    /// Loads the first whole use; relaxed, as the fences order it.
    fn load_oldest(&self) -> u64;
    /// Stores it; see [`Self::load_oldest`].
    fn store_oldest(&self, segment_use: u64);
    /// Loads the entry of a segment use; relaxed, as the head orders it.
    fn load_use(&self, index: u32) -> u64;
    /// Stores it; see [`Self::load_use`].
    fn store_use(&self, index: u32, entry: u64);
    /// Executes a fence.
    fn fence(&self, order: Ordering);
}

/// A ring in a pool that is mapped into this process.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    head: *mut u8,
    /// The pool's first segment.
    first: *mut u8,
    /// The segment that was entered last.
    segment: *mut u8,
    segments: u32,
    max_segments: u32,
}

// SAFETY: every access below is atomic; who may write what is the protocol's
// matter, not the compiler's.
unsafe impl Send for Mapped {}

impl Mapped {
    /// # Safety
    /// `head` must point at [`layout::ring::HEAD_BYTES`] mapped bytes and `first` at `segments`
    /// segments, both readable, writable unless only read by the protocol, aligned to 8; they
    /// live as long as the value and are accessed by others only through atomics or another
    /// process. `max_segments` must not exceed [`layout::MAX_SEGMENTS`].
    #[must_use]
    pub const unsafe fn new(
        head: *mut u8,
        first: *mut u8,
        segments: u32,
        max_segments: u32,
    ) -> Self {
        Self {
            head,
            first,
            segment: first,
            segments,
            max_segments,
        }
    }

    /// Returns the start of the head.
    #[must_use]
    pub const fn head(&self) -> *mut u8 {
        self.head
    }

    /// Returns the start of a segment; its number must be below [`Memory::segments`].
    #[must_use]
    pub fn segment(&self, segment: u32) -> *mut u8 {
        assert!(segment < self.segments);
        let at = u64::from(segment) * layout::SEGMENT_BYTES;
        self.first.wrapping_add(at as usize)
    }

    /// Returns a 64-bit field of the head.
    #[must_use]
    #[inline(always)]
    pub fn field_u64(&self, offset: usize) -> &AtomicU64 {
        assert!(offset % 8 == 0 && (offset as u64) < layout::ring::HEAD_BYTES);
        // SAFETY: within the head by the check, aligned because that is.
        unsafe { AtomicU64::from_ptr(self.head.add(offset).cast()) }
    }

    /// Returns a 32-bit field of the head.
    #[must_use]
    #[inline(always)]
    pub fn field_u32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset % 4 == 0 && (offset as u64) < layout::ring::HEAD_BYTES);
        // SAFETY: within the head by the check, aligned because that is.
        unsafe { AtomicU32::from_ptr(self.head.add(offset).cast()) }
    }

    /// Returns the word `at` bytes after `from`.
    ///
    /// # Safety
    /// It lies within a segment of the mapping, and `at` is a multiple of 8.
    #[inline(always)]
    unsafe fn word(&self, from: *mut u8, at: u64) -> &AtomicU64 {
        // SAFETY: by the caller; segments are aligned.
        unsafe { AtomicU64::from_ptr(from.add(at as usize).cast()) }
    }
}

impl Memory for Mapped {
    const SEGMENT_BYTES: u64 = layout::SEGMENT_BYTES;
    const PIECE_BYTES: u64 = layout::PIECE_BYTES;

    #[inline(always)]
    fn max_segments(&self) -> u32 {
        self.max_segments
    }
    fn segments(&self) -> u32 {
        self.segments
    }
    fn enter(&mut self, segment: u32) {
        self.segment = self.segment(segment);
    }
    #[inline(always)]
    fn store_record(&self, at: u64, words: [u64; 2]) {
        debug_assert!(at + layout::RECORD_BYTES <= layout::SEGMENT_BYTES);
        // SAFETY: within the segment: the writer takes `at` from its own cursor.
        unsafe {
            self.word(self.segment, at)
                .store(words[0], Ordering::Relaxed);
            self.word(self.segment, at + 8)
                .store(words[1], Ordering::Relaxed);
        }
    }
    #[inline(always)]
    fn load_record(&self, at: u64) -> [u64; 2] {
        debug_assert!(at + 16 <= u64::from(self.segments) * layout::SEGMENT_BYTES);
        // SAFETY: below the last segment's end: the reader takes `at` from checked uses.
        unsafe {
            [
                self.word(self.first, at).load(Ordering::Relaxed),
                self.word(self.first, at + 8).load(Ordering::Relaxed),
            ]
        }
    }
    #[inline(always)]
    fn load_head(&self, order: Ordering) -> u64 {
        self.field_u64(layout::ring::OFF_HEAD).load(order)
    }
    #[inline(always)]
    fn store_head(&self, bytes: u64, order: Ordering) {
        self.field_u64(layout::ring::OFF_HEAD).store(bytes, order);
    }
    fn load_tail(&self, order: Ordering) -> u64 {
        self.field_u64(layout::ring::OFF_TAIL).load(order)
    }
    fn store_tail(&self, bytes: u64, order: Ordering) {
        self.field_u64(layout::ring::OFF_TAIL).store(bytes, order);
    }
    fn load_oldest(&self) -> u64 {
        self.field_u64(layout::ring::OFF_OLDEST)
            .load(Ordering::Relaxed)
    }
    fn store_oldest(&self, segment_use: u64) {
        self.field_u64(layout::ring::OFF_OLDEST)
            .store(segment_use, Ordering::Relaxed);
    }
    fn load_use(&self, index: u32) -> u64 {
        self.field_u64(layout::ring::OFF_USES + 8 * index as usize)
            .load(Ordering::Relaxed)
    }
    fn store_use(&self, index: u32, entry: u64) {
        self.field_u64(layout::ring::OFF_USES + 8 * index as usize)
            .store(entry, Ordering::Relaxed);
    }
    fn fence(&self, order: Ordering) {
        fence(order);
    }
}
