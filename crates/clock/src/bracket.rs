//! Two clocks at one instant.
//!
//! **Question.** What did clock A show when clock B showed this?
//!
//! **Method.** No instruction reads two clocks. So this module reads A, then B, then A: B was read
//! between the two readings of A, and their middle is right within half their distance. Of several
//! tries the one with the smallest distance is kept. An interrupt in between makes a try wide,
//! never wrong.
//!
//! **Caveats.** The bound is valid for one CPU's view; a thread that moves between CPUs whose
//! counters differ adds that difference. Both clocks show their last step: half the step of A and
//! all of B's are added to the bound where known.

use crate::{ClockId, Source};

/// Number of tries of which the tightest is kept; about 10 us in all. The smallest of 64 is within
/// one clock step of the smallest of 10 000 on a machine that is not overloaded.
pub const TRIES: usize = 64;

/// The readings of a clock and a reference at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Reading of the clock, ticks.
    pub ticks: u64,
    /// Reading of the reference, nanoseconds: the middle of the bracket.
    pub reference_ns: u64,
    /// The reference was within this of `reference_ns` when `ticks` was read,
    /// ns: half the bracket and half the reference's step, rounded up.
    pub error_ns: u64,
}

/// A point that ties a clock to Unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Reading of the clock, ticks.
    pub ticks: u64,
    /// Unix time, nanoseconds.
    pub unix_ns: i64,
    /// The pair is right within this, ns.
    pub error_ns: i64,
}

/// One try: the reference before, the clock, the reference after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Try {
    pub before_ns: u64,
    pub ticks: u64,
    pub after_ns: u64,
}

/// Pairs a clock with a reference whose ticks are nanoseconds. `None` if the
/// reference stepped back in every try.
///
/// `reference_step_ns` is the reference's granularity; its true time can be up
/// to a step later than it shows.
#[must_use]
pub fn pair(clock: Source, reference: Source, reference_step_ns: u64) -> Option<Pair> {
    let tries: [Try; TRIES] = core::array::from_fn(|_| {
        let before_ns = reference.read_ticks_ordered();
        let ticks = clock.read_ticks_ordered();
        let after_ns = reference.read_ticks_ordered();
        Try {
            before_ns,
            ticks,
            after_ns,
        }
    });
    tightest(&tries, reference_step_ns)
}

/// Pairs a clock with `CLOCK_REALTIME`. `None` if that was stepped back in every
/// try, or shows a time after the year 2262.
#[must_use]
pub fn anchor(clock: Source, realtime_step_ns: u64) -> Option<Anchor> {
    let realtime = Source::open(ClockId::Realtime).ok()?;
    let pair = pair(clock, realtime, realtime_step_ns)?;
    Some(Anchor {
        ticks: pair.ticks,
        unix_ns: i64::try_from(pair.reference_ns).ok()?,
        error_ns: i64::try_from(pair.error_ns).ok()?,
    })
}

/// Returns the tightest try in which the reference did not step back.
pub(crate) fn tightest(tries: &[Try], reference_step_ns: u64) -> Option<Pair> {
    let (width_ns, best) = tries
        .iter()
        .filter_map(|t| Some((t.after_ns.checked_sub(t.before_ns)?, t)))
        .min_by_key(|(width_ns, _)| *width_ns)?;
    // At the read, the reference's true time lay in [before, after + step).
    let span_ns = width_ns.saturating_add(reference_step_ns);
    Some(Pair {
        ticks: best.ticks,
        reference_ns: best.before_ns.saturating_add(span_ns / 2),
        error_ns: span_ns.div_ceil(2),
    })
}

#[cfg(test)]
mod tests;
