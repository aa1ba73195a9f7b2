//! How does a thread get a ring, and a ring its segments, without a system call and without
//! waiting?
//!
//! All rings of a session lie in one file, the *pool*, which each program maps once. Its heads and
//! segments are numbered. The collector puts the numbers of free ones into queues, those with
//! written pages into one, the others into another. A thread takes the first number by one
//! compare-and-swap. Only the collector puts numbers in.
//!
//! Caveats: a thread that is killed between taking a number and storing it keeps the number for the
//! rest of the session. Either side treats a number that it reads as untrusted: the number is
//! checked against the count before it becomes an address.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout::pool::{self, Shape};

/// The memory of one queue. The orderings are part of the protocol, as in
/// [`crate::Memory`].
pub trait Line {
    /// Used by the collector after a number and all the data that its taker finds; pairs with
    /// [`Self::OBSERVE_PUT`].
    const PUBLISH_PUT: Ordering = Ordering::Release;
    /// Used by a thread before it reads a number.
    const OBSERVE_PUT: Ordering = Ordering::Acquire;
    /// Used by a thread when it has read a number that another thread may take, too; pairs with
    /// [`Self::OBSERVE_TAKEN`].
    const PUBLISH_TAKEN: Ordering = Ordering::AcqRel;
    /// Used by either side: by the collector before it overwrites a number, by a thread before it
    /// checks how many were put in.
    const OBSERVE_TAKEN: Ordering = Ordering::Acquire;

    /// Returns the capacity, in numbers.
    fn room(&self) -> u32;
    /// Loads how many were taken, with the given order.
    fn load_taken(&self, order: Ordering) -> u64;
    /// Counts one more as taken if `taken` are, with the given order; returns whether that was so.
    fn count_taken(&self, taken: u64, order: Ordering) -> bool;
    /// Loads how many were put in, with the given order.
    fn load_put(&self, order: Ordering) -> u64;
    /// Stores it; see [`Self::load_put`].
    fn store_put(&self, put: u64, order: Ordering);
    /// Loads the number at a place; relaxed, as the counts order it.
    fn load_number(&self, place: u32) -> u32;
    /// Stores it; see [`Self::load_number`].
    fn store_number(&self, place: u32, number: u32);
}

/// Takes the first number of a queue; `None`: there is none now. It never waits, and tries again
/// only when another thread took one.
pub fn take<L: Line>(line: &L) -> Option<u32> {
    let mut taken = line.load_taken(L::OBSERVE_TAKEN);
    // Partner: `put`. What the collector has done with the number happens before.
    while taken < line.load_put(L::OBSERVE_PUT) {
        let number = line.load_number((taken % u64::from(line.room())) as u32);
        if line.count_taken(taken, L::PUBLISH_TAKEN) {
            return Some(number);
        }
        taken = line.load_taken(L::OBSERVE_TAKEN);
    }
    None
}

/// Puts a number in; only the collector may call it. Returns false if there is no room. There
/// always is for a number that was taken, unless a program has overwritten the counts.
pub fn put<L: Line>(line: &L, number: u32) -> bool {
    let put = line.load_put(Ordering::Relaxed);
    // Partner: `take`. The thread that took the previous number there has read it.
    let waiting = put.checked_sub(line.load_taken(L::OBSERVE_TAKEN));
    if waiting.is_none_or(|waiting| waiting >= u64::from(line.room())) {
        return false;
    }
    line.store_number((put % u64::from(line.room())) as u32, number);
    line.store_put(put + 1, L::PUBLISH_PUT);
    true
}

/// A queue of a pool that is mapped into this process.
#[derive(Clone, Copy, Debug)]
pub struct MappedLine {
    counts: *mut u8,
    numbers: *mut u8,
    room: u32,
}

// SAFETY: every access below is atomic.
unsafe impl Send for MappedLine {}

impl MappedLine {
    /// # Safety
    /// `base` is where a pool of that shape is mapped, for as long as the value lives,
    /// writable unless nothing is put in or taken.
    #[must_use]
    pub const unsafe fn new(base: *mut u8, shape: Shape, queue: pool::Queue) -> Self {
        let at = pool::OFF_QUEUES + pool::QUEUE_BYTES * queue as usize;
        // SAFETY: within the pool, by its shape.
        unsafe {
            Self {
                counts: base.add(at),
                numbers: base.add(shape.entries_at(queue)),
                room: shape.room(queue),
            }
        }
    }

    fn count(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: one of the two counts, aligned; mapped by the promise of `new`.
        unsafe { AtomicU64::from_ptr(self.counts.add(offset).cast()) }
    }

    fn number(&self, place: u32) -> &AtomicU32 {
        assert!(place < self.room);
        // SAFETY: within the queue by the check; mapped by the promise of `new`.
        unsafe { AtomicU32::from_ptr(self.numbers.add(4 * place as usize).cast()) }
    }
}

impl Line for MappedLine {
    fn room(&self) -> u32 {
        self.room
    }
    fn load_taken(&self, order: Ordering) -> u64 {
        self.count(pool::OFF_TAKEN).load(order)
    }
    fn count_taken(&self, taken: u64, order: Ordering) -> bool {
        self.count(pool::OFF_TAKEN)
            .compare_exchange(taken, taken.wrapping_add(1), order, Ordering::Relaxed)
            .is_ok()
    }
    fn load_put(&self, order: Ordering) -> u64 {
        self.count(pool::OFF_PUT).load(order)
    }
    fn store_put(&self, put: u64, order: Ordering) {
        self.count(pool::OFF_PUT).store(put, order);
    }
    fn load_number(&self, place: u32) -> u32 {
        self.number(place).load(Ordering::Relaxed)
    }
    fn store_number(&self, place: u32, number: u32) {
        self.number(place).store(number, Ordering::Relaxed);
    }
}
