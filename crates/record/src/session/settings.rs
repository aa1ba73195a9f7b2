//! The settings of rings.

use std::path::PathBuf;

use undertick_clock::ClockId;
use undertick_ring::Overflow;

use crate::sampled::Rate;

/// The settings of rings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What happens when a ring is full.
    pub overflow: Overflow,
    /// First size of a ring, bytes; its only size unless it may grow.
    pub ring_bytes: u64,
    /// Most that all rings may take together, bytes; `None`: 1 GiB, or half of the free memory.
    pub budget_bytes: Option<u64>,
    /// Clock that the programs are to read.
    pub clock: ClockId,
    /// Where to make the directory; `None`: /dev/shm, or the temporary
    /// directory where that is missing or too small.
    pub parent: Option<PathBuf>,
    /// Rates of sampled spans; they take precedence over those that the program itself sets.
    pub rates: Vec<Rate>,
}

impl Settings {
    /// Default settings: growing rings of the default size, and no sampling.
    #[must_use]
    pub fn growing(clock: ClockId) -> Self {
        Self {
            overflow: Overflow::Grow,
            ring_bytes: DEFAULT_RING_BYTES,
            budget_bytes: None,
            clock,
            parent: None,
            rates: Vec::new(),
        }
    }
}

/// Default first size of a ring, bytes: 6 ms at full speed. A thread takes the memory as it
/// writes, so one that writes little takes little.
pub const DEFAULT_RING_BYTES: u64 = 8 << 20;
