//! One ring of a session, as its readers see it: the collector and snapshots.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use undertick_format::manifest::ReadCost;
use undertick_ring::layout::{self, SEGMENT_BYTES, cell, ring};
use undertick_ring::{Mapped, Memory};

use crate::pool_map::PoolMap;

/// Number of uses of a ring from which on the whole table of uses gets its pages: a writer uses
/// the 512 entries of its first page as they are.
const TABLE_FROM: u64 = 256;

/// A ring that a program made.
pub struct RingMap {
    pool: Arc<PoolMap>,
    memory: Mapped,
    /// The head of the pool at which it lies.
    pub head: u32,
    /// Ring number, according to the ring.
    pub number: u32,
    /// Process, according to the ring.
    pub pid: i32,
    /// Thread, according to the ring.
    pub tid: i32,
    has_table: bool,
}

impl RingMap {
    /// Returns the ring at a head of the pool; `None` if it is not complete yet.
    ///
    /// # Errors
    /// What is there is not a ring.
    pub fn at(pool: &Arc<PoolMap>, head: u32) -> Result<Option<Self>, String> {
        // Not read through the mapping: a head without pages has no ring.
        if !pool.has_ring(head) {
            return Ok(None);
        }
        let found = pool.ring(head, 1);
        let u32_of = |offset| found.field_u32(offset).load(Ordering::Relaxed);
        if found.field_u64(ring::OFF_MAGIC).load(Ordering::Acquire) != ring::MAGIC {
            return Ok(None);
        }
        let segments = u32_of(ring::OFF_MAX_SEGMENTS);
        let number = u32_of(ring::OFF_RING);
        let is_sound = u32_of(ring::OFF_VERSION) == layout::VERSION
            && (1..=layout::MAX_SEGMENTS).contains(&segments)
            && i32::try_from(number).is_ok();
        if !is_sound {
            return Err(format!(
                "head {head} of the session's pool is not a ring's: a program overwrote it"
            ));
        }
        Ok(Some(Self {
            memory: pool.ring(head, segments),
            pool: Arc::clone(pool),
            head,
            number,
            pid: u32_of(ring::OFF_PID) as i32,
            tid: u32_of(ring::OFF_TID) as i32,
            has_table: false,
        }))
    }

    /// The memory, for a [`undertick_ring::Reader`].
    #[must_use]
    pub const fn memory(&self) -> Mapped {
        self.memory
    }

    /// Whether the program cut the pool short, and zeros were read in its place.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.pool.is_cut()
    }

    /// Number of events that the writer dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.memory
            .field_u64(ring::OFF_DROPPED)
            .load(Ordering::Relaxed)
    }

    /// Whether the thread ended without saying so (killed, `_exit`). Known only where its ids
    /// mean the same to us.
    #[must_use]
    pub fn writer_is_gone(&self, our_namespace: u32) -> bool {
        if !self.is_of_namespace(our_namespace) {
            return false;
        }
        // SAFETY: signal 0 only checks the thread.
        let answer = unsafe { libc::syscall(libc::SYS_tgkill, self.pid, self.tid, 0) };
        answer != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }

    /// Whether its process and thread mean the same to us.
    pub fn is_of_namespace(&self, ours: u32) -> bool {
        let theirs = self.memory.field_u32(ring::OFF_PID_NAMESPACE);
        let is_same = ours != 0 && theirs.load(Ordering::Relaxed) == ours;
        is_same && self.pid > 0 && self.tid > 0
    }

    /// Whether the readings of its spans wait for all earlier instructions.
    #[must_use]
    pub fn spans_wait(&self) -> bool {
        self.memory
            .field_u32(ring::OFF_SPAN_READINGS)
            .load(Ordering::Relaxed)
            == ring::SPANS_WAIT
    }

    /// Whether a preloaded library writes it, of what its thread waits for and allocates.
    #[must_use]
    pub fn is_interposed(&self) -> bool {
        let writer = self.memory.field_u32(ring::OFF_WRITER);
        writer.load(Ordering::Relaxed) == ring::INTERPOSED
    }

    /// The cost of clock readings in its thread. Whatever the program wrote there, the figures
    /// are finite and not below 0.
    #[must_use]
    pub fn read_cost(&self) -> Option<ReadCost> {
        let word = |field| self.memory.field_u64(field).load(Ordering::Relaxed);
        let samples = self.memory.field_u32(ring::OFF_READ_COST_SAMPLES);
        let samples = u64::from(samples.load(Ordering::Relaxed));
        if samples == 0 {
            return None;
        }
        let of_each = |sum: u64| sum as f64 / samples as f64;
        // Rounded so that the number survives being written as text and read again.
        let rounded = |ticks: f64| (ticks * 1024.0).round() / 1024.0;
        let mean = of_each(word(ring::OFF_READ_COST_TICKS));
        let variance = of_each(word(ring::OFF_READ_COST_SQUARES)) - mean * mean;
        let reads = f64::from(ring::READS);
        let least = self.memory.field_u32(ring::OFF_READ_COST_LEAST);
        Some(ReadCost {
            samples,
            least_ticks: rounded(f64::from(least.load(Ordering::Relaxed)) / reads),
            mean_ticks: rounded(mean / reads),
            deviation_ticks: rounded(variance.max(0.0).sqrt() / reads),
        })
    }

    /// Whether the thread marked the ring as complete.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.memory
            .field_u32(ring::OFF_STATE)
            .load(Ordering::Acquire)
            == ring::STATE_CLOSED
    }

    /// Writes the pages of the whole table of uses of a ring that has come far; otherwise the
    /// writer would take them one at a time.
    pub fn prepare_table(&mut self) {
        let uses = self.memory.load_head(Ordering::Relaxed) / SEGMENT_BYTES;
        if self.has_table || uses < TABLE_FROM.min(u64::from(self.memory.max_segments()) / 2) {
            return;
        }
        self.has_table = self.pool.populate_table(self.head);
        if self.has_table {
            let told = self.memory.field_u32(ring::OFF_HAS_TABLE);
            told.store(1, Ordering::Release);
        }
    }

    /// Unassigns all cells of sampled spans. A sampled span checks its cell before it checks whether
    /// recording is on.
    pub fn unclaim_cells(&self) {
        let there = self.memory.field_u32(ring::OFF_CELLS);
        if there.load(Ordering::Acquire) != cell::CELLS as u32 {
            return;
        }
        for place in 0..cell::CELLS {
            let at = ring::OFF_CELL_TABLE + place * cell::BYTES + cell::OFF_STATE;
            self.memory.field_u32(at).store(0, Ordering::Relaxed);
        }
    }
}
