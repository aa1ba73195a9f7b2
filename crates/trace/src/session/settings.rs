//! How rings are to behave.

use std::path::PathBuf;

use undertick_clock::ClockId;
use undertick_ring::Overflow;

use crate::sampled::Rate;

/// How rings are to behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What happens when a ring is full.
    pub overflow: Overflow,
    /// First size of a ring (its only size unless it may grow), bytes.
    pub ring_bytes: u64,
    /// Most that all rings may take together, bytes; `None`: 1 GiB, or half of
    /// what is free.
    pub budget_bytes: Option<u64>,
    /// Clock the programs are to read.
    pub clock: ClockId,
    /// Where to make the directory; `None`: /dev/shm, or the temporary
    /// directory where that is missing or too small.
    pub parent: Option<PathBuf>,
    /// Rates of sampled spans, before what the program itself asks for.
    pub rates: Vec<Rate>,
}

impl Settings {
    /// Rings that grow, as big as they are unless asked otherwise; nothing is sampled.
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

/// First size of a ring unless asked otherwise: 6 ms at full speed. A thread
/// takes it as it writes, so one that writes little takes little.
pub const DEFAULT_RING_BYTES: u64 = 8 << 20;
