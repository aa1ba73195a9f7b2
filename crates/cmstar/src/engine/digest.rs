//! A number that represents everything that happened.

/// Mixes events, in their order. Two runs that differ anywhere have different digests, except for a
/// chance of about one in 2^64; it is no protection against intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        // The offset basis of FNV-1a.
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, word: u64) {
        // The prime of FNV-1a, a whole word at a time; the rotation brings the
        // high bits, which are the well mixed ones, down.
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(29);
    }

    /// Returns the digest.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}
