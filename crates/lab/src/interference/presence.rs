//! For how much of a burst another process was there.
//!
//! A process that shares the probe's CPU has it in turns: while the probe has its own
//! turn the other one waits, and is there all the same. One that begins in the midst of a
//! burst, or ends there, was there for a part of it. The times that the probe lost say
//! which, to about a turn: what lies between two of them, or between one and an end of
//! the burst, is the probe's turn if it is as short as one.

use super::analysis::Seen;

/// Turns of the probe may be so many times the usual one: the scheduler looks at its
/// ticks.
const LONG_TURN: f64 = 1.75;

/// The probe's usual turn beside another process: the median time between two losses
/// of its CPU in one burst; where there are none the median loss, as between equals. ns.
pub(super) fn turn_ns(taken: &[&Seen<'_>]) -> f64 {
    let lost: Vec<Vec<(f64, f64)>> = taken.iter().map(|s| s.lost_times()).collect();
    let between = (lost.iter()).flat_map(|times| times.windows(2).map(|w| w[1].0 - w[0].1));
    let mut turns: Vec<f64> = between.collect();
    if turns.is_empty() {
        turns = lost.iter().flatten().map(|(from, to)| to - from).collect();
    }
    turns.sort_by(f64::total_cmp);
    turns.get(turns.len() / 2).copied().unwrap_or(0.0)
}

/// How long another process was there in a stretch of `wall_ns` that was lost at these
/// times, in their order, ns.
pub(super) fn present_ns(lost: &[(f64, f64)], wall_ns: f64, turn_ns: f64) -> f64 {
    let (Some(first), Some(last)) = (lost.first(), lost.last()) else {
        return 0.0;
    };
    // Who has run for a short while only does not wait for another turn.
    let reach = |(from, to): &(f64, f64)| (to - from).min(turn_ns);
    let waits = |gap_ns: f64, longest: f64, otherwise: f64| match gap_ns <= LONG_TURN * longest {
        true => gap_ns.max(0.0),
        // It came or went somewhere in there: after half a turn, as good as any.
        false => otherwise,
    };
    let ends = [(first.0, reach(first)), (wall_ns - last.1, reach(last))];
    let at_ends: f64 = (ends.into_iter())
        .map(|(gap, reach)| waits(gap, reach, reach / 2.0))
        .sum();
    let between: f64 = (lost.windows(2))
        .map(|w| {
            let (a, b) = (reach(&w[0]), reach(&w[1]));
            waits(w[1].0 - w[0].1, a.max(b), f64::midpoint(a, b))
        })
        .sum();
    let lost: f64 = lost.iter().map(|(from, to)| to - from).sum();
    (lost + at_ends + between).min(wall_ns)
}

#[cfg(test)]
mod tests {
    use super::present_ns;

    const TURN: f64 = 4.0;

    #[test]
    fn a_process_that_is_there_all_the_time() {
        for lost in [
            &[(4.0, 8.0)][..],
            &[(0.0, 4.0), (8.0, 12.0)],
            &[(1.0, 5.0), (9.0, 12.0)],
            &[(6.5, 10.5)],
            &[(0.0, 12.0)],
        ] {
            assert_eq!(present_ns(lost, 12.0, TURN), 12.0, "{lost:?}");
        }
    }

    #[test]
    fn one_that_comes_or_goes() {
        // Comes at 8: 8 is more than any turn of 4; half a turn before.
        assert_eq!(present_ns(&[(8.0, 12.0)], 12.0, TURN), 6.0);
        // Goes at 3.
        assert_eq!(present_ns(&[(0.0, 3.0)], 12.0, TURN), 4.5);
        // Goes and comes again.
        let lost = [(0.0, 4.0), (16.0, 20.0)];
        assert_eq!(present_ns(&lost, 20.0, TURN), 12.0);
    }

    #[test]
    fn who_runs_shortly_was_there_shortly() {
        assert_eq!(present_ns(&[(5.0, 5.5)], 12.0, TURN), 1.0);
        assert_eq!(present_ns(&[(0.0, 0.5)], 12.0, TURN), 0.75);
        assert_eq!(present_ns(&[], 12.0, TURN), 0.0);
        assert_eq!(present_ns(&[(3.0, 3.0)], 12.0, 0.0), 0.0);
    }
}
