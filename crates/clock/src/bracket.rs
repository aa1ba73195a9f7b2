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
mod tests {
    use super::*;

    const fn try_of(before_ns: u64, ticks: u64, after_ns: u64) -> Try {
        Try {
            before_ns,
            ticks,
            after_ns,
        }
    }

    #[test]
    fn the_tightest_try_is_kept() {
        let tries = [
            try_of(1_000, 1, 1_050),
            try_of(2_000, 2, 2_030),
            try_of(3_000, 3, 3_900),
        ];
        // [2000, 2030 + 10): middle 2020, within 20.
        assert_eq!(
            tightest(&tries, 10),
            Some(Pair {
                ticks: 2,
                reference_ns: 2_020,
                error_ns: 20
            })
        );
    }

    #[test]
    fn a_bracket_whose_reference_was_set_back_is_not_the_tightest() {
        let tries = [try_of(2_000, 1, 1_000), try_of(3_000, 2, 3_041)];
        let pair = tightest(&tries, 0).unwrap();
        assert_eq!(
            (pair.ticks, pair.reference_ns, pair.error_ns),
            (2, 3_020, 21)
        );
        assert_eq!(tightest(&tries[..1], 0), None);
        assert_eq!(tightest(&[], 0), None);
    }

    #[test]
    fn the_truth_lies_within_the_bound() {
        // A reference that shows every tenth nanosecond, a clock of 3 ticks/ns,
        // and reads that happen at any true time.
        let shown = |true_ns: u64| true_ns / 10 * 10;
        for start in 0..200_u64 {
            for gap in 0..60_u64 {
                let at_clock_ns = 1_000_000 + start + gap;
                let tries = [try_of(
                    shown(1_000_000 + start),
                    at_clock_ns * 3,
                    shown(at_clock_ns + gap / 2),
                )];
                let pair = tightest(&tries, 10).unwrap();
                let miss = pair.reference_ns.abs_diff(at_clock_ns);
                assert!(miss <= pair.error_ns, "{miss} > {}", pair.error_ns);
            }
        }
    }

    #[test]
    fn an_anchor_lies_between_two_readings_of_unix_time() {
        let Ok(clock) = Source::open(crate::best().clock) else {
            unreachable!("the best clock can be opened")
        };
        let unix_ns = || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            i64::try_from(now.unwrap().as_nanos()).unwrap()
        };
        let before = unix_ns();
        let Some(anchor) = anchor(clock, 0) else {
            println!("skipped: Unix time was set back during the test");
            return;
        };
        let after = unix_ns();
        assert!(anchor.error_ns >= 0);
        assert!(
            before <= anchor.unix_ns && anchor.unix_ns <= after,
            "{before} {anchor:?} {after}"
        );
    }
}
