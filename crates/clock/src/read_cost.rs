//! The cost of one reading of a clock.
//!
//! **Method.** One read is shorter than the step of most clocks, so reads are timed in many batches
//! of 64, back to back; a batch's time divided by 64 is one observation. The batches are timed with
//! the CPU's counter (ordered reads), or `CLOCK_MONOTONIC_RAW` where that is not usable.
//!
//! **Caveats.** This is the cost of consecutive reads. Between other work, part of an unordered
//! read overlaps with its neighbours, and a serialised one costs them more than itself. The part of
//! it that a recorded span contains is calibrated in place, elsewhere. The p99 is of batch means: a
//! single read that is interrupted shows as a slightly longer batch.

use std::hint::black_box;

use undertick_units::TickRate;

use crate::{ClockId, Source};

/// Number of reads in a batch: the step of a 10 ns clock spread over them is 0.16 ns.
pub const READS_PER_BATCH: u32 = 64;

/// Number of batches: enough for ten above the 99th percentile.
pub const BATCHES: usize = 1_000;

/// The cost of one read, from batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadCost {
    /// The cheapest batch, ns per read.
    pub cost_ns_min: f64,
    /// The median batch, ns per read.
    pub cost_ns_median: f64,
    /// The 99th percentile of the batches, ns per read.
    pub cost_ns_p99: f64,
    /// Number of batches timed.
    pub batches: usize,
    /// Number of reads in each.
    pub reads_per_batch: u32,
}

/// A way to read a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadKind {
    /// As [`Source::read_ticks`].
    Plain,
    /// As [`Source::read_ticks_ordered`]; the fenced one on x86.
    Ordered,
    /// `rdtscp; lfence` (x86 with RDTSCP only).
    Rdtscp,
}

/// Measures the cost of one read on the calling thread, in ns; about 2 ms for a cheap clock. `None`
/// where this kind of read does not exist.
///
/// `timer_rate` is the rate of the clock that times the batches, which is
/// [`timer`].
#[must_use]
pub fn measure(source: Source, kind: ReadKind, timer_rate: TickRate) -> Option<ReadCost> {
    match kind {
        ReadKind::Plain => batches(|| source.read_ticks(), timer_rate),
        ReadKind::Ordered => batches(|| source.read_ticks_ordered(), timer_rate),
        #[cfg(target_arch = "x86_64")]
        ReadKind::Rdtscp if source.clock() == ClockId::Tsc && crate::tsc::has_rdtscp() => {
            batches(|| crate::tsc::read_rdtscp().raw(), timer_rate)
        }
        ReadKind::Rdtscp => None,
    }
}

/// Returns the clock that times the batches.
#[must_use]
pub fn timer() -> Option<Source> {
    Source::open(crate::best().clock)
        .or_else(|_| Source::open(ClockId::MonotonicRaw))
        .ok()
}

#[inline(always)]
fn batches(read: impl Fn() -> u64, timer_rate: TickRate) -> Option<ReadCost> {
    let timer = timer()?;
    let mut batch_ticks = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let begin = timer.read_ticks_ordered();
        for _ in 0..READS_PER_BATCH {
            black_box(read());
        }
        let end = timer.read_ticks_ordered();
        batch_ticks.push(end.wrapping_sub(begin).cast_signed());
    }
    summarise(batch_ticks, READS_PER_BATCH, timer_rate)
}

/// Converts batch times to costs per read; the quantiles are order statistics (the smallest value
/// that the given share of the batches does not exceed).
fn summarise(mut batch_ticks: Vec<i64>, reads_per_batch: u32, rate: TickRate) -> Option<ReadCost> {
    if batch_ticks.is_empty() || reads_per_batch == 0 {
        return None;
    }
    batch_ticks.sort_unstable();
    let at = |per_cent: usize| {
        let rank = (batch_ticks.len() * per_cent).div_ceil(100).max(1);
        batch_ticks[rank - 1] as f64 * rate.ns_per_tick() / f64::from(reads_per_batch)
    };
    Some(ReadCost {
        cost_ns_min: at(0),
        cost_ns_median: at(50),
        cost_ns_p99: at(99),
        batches: batch_ticks.len(),
        reads_per_batch,
    })
}

#[cfg(test)]
mod tests;
