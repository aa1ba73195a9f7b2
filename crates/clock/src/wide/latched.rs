//! Latched words: a writer marks its writes in a sequence number.
//!
//! The number is odd while the words are being written, and advances by one step with each write. A
//! reader that sees the same even number before and after the words has words of one write. There
//! is one writer, and any number of readers, in any process.
//!
//! **Caveats.** The number has 32 bits: a reader that is interrupted between its two loads for
//! exactly a multiple of 2^31 writes would not notice (with a tick of 50 us: 29.8 hours).

use core::fmt;

/// The memory of a latch. Each operation states its ordering. The trait is generic so that a model
/// checker runs the same protocol as the machine.
pub trait Cells {
    /// Loads the sequence number; what follows is not loaded before it (acquire).
    fn sequence_acquire(&self) -> u32;
    /// Loads the sequence number, without ordering.
    fn sequence(&self) -> u32;
    /// Stores the sequence number, without ordering.
    fn set_sequence(&self, sequence: u32);
    /// Stores the sequence number after everything before (release).
    fn set_sequence_release(&self, sequence: u32);
    /// Loads a word, without ordering.
    fn word(&self, index: usize) -> u32;
    /// Stores a word, without ordering.
    fn set_word(&self, index: usize, word: u32);
    /// A fence that keeps earlier loads before what follows.
    fn fence_acquire(&self);
    /// A fence that keeps what follows after earlier stores.
    fn fence_release(&self);
}

/// Maximum number of tries of one call. A write takes some nanoseconds and there is one a tick.
/// Only a writer that lost its CPU in the middle of a write makes a reader try this often (about a
/// millisecond's worth).
pub const MOST_TRIES: u32 = 100_000;

/// The writer was writing at every try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the clock's writer was in the middle of a writing at every try; has it died?")
    }
}

impl core::error::Error for Busy {}

/// Reads two words of 32 bits, low word first in memory.
///
/// # Errors
/// The writer was busy in all of `most_tries` tries.
#[inline]
pub fn read(cells: &impl Cells, most_tries: u32) -> Result<u64, Busy> {
    for _ in 0..most_tries {
        let before = cells.sequence_acquire();
        if !before.is_multiple_of(2) {
            core::hint::spin_loop();
            continue;
        }
        let (low, high) = (cells.word(0), cells.word(1));
        // The loads above are complete before the sequence is loaded again.
        cells.fence_acquire();
        if cells.sequence() == before {
            return Ok(u64::from(high) << 32 | u64::from(low));
        }
    }
    Err(Busy)
}

/// Writes both words. Only one writer may call it.
#[inline]
pub fn write(cells: &impl Cells, ticks: u64) {
    let sequence = cells.sequence();
    cells.set_sequence(sequence.wrapping_add(1));
    // A reader that sees a word of this write sees the odd number too.
    cells.fence_release();
    cells.set_word(0, ticks as u32);
    cells.set_word(1, (ticks >> 32) as u32);
    cells.set_sequence_release(sequence.wrapping_add(2));
}
