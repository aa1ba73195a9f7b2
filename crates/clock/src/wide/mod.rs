//! Reading a wide clock through narrow words.
//!
//! **Question.** A counter of 64 bits is read 32 bits (or 24, 16, 8) at a time.
//! Between two of the reads the low word may wrap. What did the counter show?
//!
//! ```
//! use undertick_clock::wide::{Shape, Words, four_read};
//!
//! /// A clock of two 8-bit words that wraps right after its low word was read.
//! struct Wrapping(std::vec::IntoIter<u64>);
//! impl Words for Wrapping {
//!     fn read_word(&mut self, index: usize) -> u64 {
//!         (self.0.next().unwrap() >> (8 * index)) & 0xff
//!     }
//! }
//! let mut clock = Wrapping(vec![0x1ff, 0x1ff, 0x200, 0x201].into_iter());
//! assert_eq!(four_read(Shape::new(8, 2)?, &mut clock)?, 0x1ff);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | reader | reads of a word (two words; m words) | right while |
//! |---|---|---|
//! | [`varying_read`] | 3 or 4 (2m - 1; 3m - 1 after a wrap, for m > 2) | a call takes less than a period of the low word (two words: of the whole clock) |
//! | [`four_read`] | 4 (2m) | a call takes less than a period of the low word |
//! | [`OneRead`] | 1 | there is a call in every period of the low word |
//! | [`GuardedOneRead`] | 1, and a coarse clock twice | always, or it says that it cannot tell |
//! | [`latched::read`] | the words and a sequence number twice | always, or it says that the writer never rested |
//!
//! "Right" means: the value lies between what the clock showed at the beginning
//! and at the end of the call. Every interleaving of advances and reads was
//! enumerated; 4-Read is first wrong at a period (three words) or a tick later (two). Kong, Spector and Siewiorek, *Measuring Time in
//! Cm\**, 1986, section 1.2 of our notes on the sources, describe the first
//! four for two words of 16 bits.
//!
//! **Two rules differ from the paper's**, where the clock moved at least once
//! between any two references. Here it may stand still:
//! * 4-Read takes `lo2 >= lo1` for "the wrap came before `lo1`"; with the
//!   paper's `>` a wrap before `lo1` on a clock that shows the same low word
//!   twice loses a whole period.
//! * 1-Read takes `lo < old_lo` for a wrap; with the paper's `<=` two reads
//!   within one tick gain a whole period.
//!
//! **More than two words.** Everything above the low word is the high part. Less
//! than a period of the low word has at most one carry in it, and that carry
//! changes all words at one instant; so the high part read before and the one
//! read after decide as a whole, and 4-Read becomes 2m reads, not 4 for each pair.
//!
//! **Where Varying-Read misleads.** Its value is right, but it is the value at
//! the second reference of a call, or after a wrap at the fourth. With one tick
//! for each reference and calls back to back, 4-Read shows 4 ticks between any
//! two calls. Varying-Read shows 3; but 5 when the wrap fell in the second call
//! and 2 when it fell in the first (the test
//! `varying_read_moves_its_significant_read` finds all three by enumeration).
//! A program that measures a span with it sees a peak of two references and a trough of one that
//! are not in the measured code.

pub mod latched;
mod one_read;

pub use one_read::{Gap, GuardedOneRead, OneRead, Window};

use core::fmt;

/// A clock that is read in words.
pub trait Words {
    /// Reads one word now; 0 is the low one. Bits above the word's width are ignored.
    fn read_word(&mut self, index: usize) -> u64;
}

/// Width and number of the words of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    width_bits: u32,
    words: usize,
}

/// The words make no clock of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadShape;

impl fmt::Display for BadShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a wide clock has two words or more, of a bit or more, and 64 bits at most")
    }
}

impl core::error::Error for BadShape {}

/// The high part moved by more than one carry while it was read: the call took longer than a period
/// of the low word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSlow;

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reading the clock took longer than a period of its low word")
    }
}

impl core::error::Error for TooSlow {}

impl Shape {
    /// Creates the shape of `words` words of `width_bits` bits.
    ///
    /// # Errors
    /// Fewer than two words, no bits, or more than 64 bits in all.
    pub const fn new(width_bits: u32, words: usize) -> Result<Self, BadShape> {
        if width_bits == 0 || width_bits > 32 || words < 2 || words > 64 / width_bits as usize {
            return Err(BadShape);
        }
        Ok(Self { width_bits, words })
    }

    /// Returns the number of bits of a word.
    #[must_use]
    pub const fn width_bits(self) -> u32 {
        self.width_bits
    }

    /// Returns the number of words.
    #[must_use]
    pub const fn words(self) -> usize {
        self.words
    }

    /// Returns the number of ticks after which the low word shows the same again.
    #[must_use]
    pub const fn period_ticks(self) -> u64 {
        1 << self.width_bits
    }

    /// Returns a mask of the bits that the clock has above its low word.
    const fn high_mask(self) -> u64 {
        let bits = self.width_bits * (self.words as u32 - 1);
        u64::MAX >> (64 - bits)
    }

    fn word<W: Words>(self, clock: &mut W, index: usize) -> u64 {
        clock.read_word(index) & (self.period_ticks() - 1)
    }

    /// Returns the words above the low one as one number, in this order of reading.
    fn high<W: Words>(self, clock: &mut W, order: impl Iterator<Item = usize>) -> u64 {
        order.fold(0, |high, index| {
            high | self.word(clock, index) << (self.width_bits as usize * (index - 1))
        })
    }

    fn high_down<W: Words>(self, clock: &mut W) -> u64 {
        self.high(clock, (1..self.words).rev())
    }

    fn high_up<W: Words>(self, clock: &mut W) -> u64 {
        self.high(clock, 1..self.words)
    }

    const fn join(self, high: u64, low: u64) -> u64 {
        high << self.width_bits | low
    }
}

/// Varying-Read: the high part, the low word, the high part; after a wrap the
/// low word again (with more than two words all of them, as the second high
/// part may itself have been read across the carry).
///
/// It is right while a call takes less than a period of the low word. The instant for which it is
/// right varies; see the head of this module.
pub fn varying_read<W: Words>(shape: Shape, clock: &mut W) -> u64 {
    let before = shape.high_down(clock);
    let low = shape.word(clock, 0);
    let mut after = shape.high_up(clock);
    if after == before {
        return shape.join(before, low);
    }
    if shape.words > 2 {
        after = shape.high_down(clock);
    }
    let low = shape.word(clock, 0);
    shape.join(after, low)
}

/// 4-Read: the high part, the low word, both again. The value always uses the first read of the low
/// word; the second only tells on which side of it the wrap fell. The number of reads does not
/// depend on the value.
///
/// # Errors
/// The call took so long that the high part moved by two. A call of between one and two periods
/// need not be noticed.
pub fn four_read<W: Words>(shape: Shape, clock: &mut W) -> Result<u64, TooSlow> {
    let before = shape.high_down(clock);
    let low = shape.word(clock, 0);
    let after = shape.high_up(clock);
    let low_again = shape.word(clock, 0);
    if before == after {
        return Ok(shape.join(before, low));
    }
    // Read across a carry the parts may differ by any amount; with two words by one.
    if shape.words == 2 && after.wrapping_sub(before) & shape.high_mask() != 1 {
        return Err(TooSlow);
    }
    let high = if low_again >= low { after } else { before };
    Ok(shape.join(high, low))
}
