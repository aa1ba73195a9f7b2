//! Determines for how much of a burst another process occupied the probe's CPU, running on it or
//! waiting for it.
//!
//! A process that shares the probe's CPU has it in turns: during the probe's turn it waits, but
//! still occupies the CPU. A process that starts or ends within a burst did so for a part of it.
//! The times that the probe lost show this, to about a turn. The time between two losses, or
//! between one and an end of the burst, is the probe's turn if it is as short as one.

/// Turns of the probe may be this many times the usual one, because the scheduler acts at its
/// ticks.
const LONG_TURN: f64 = 1.75;

/// A loss shorter than this share of the usual one has another cause: a process that wakes up
/// during a turn does not end it.
const PASSING: f64 = 0.25;

/// The probe's usual turn beside another process, ns: the usual time between two losses of its CPU
/// in one burst. Where there are none it is the usual loss, as between equals.
///
/// The usual time is the one in which half of the total time is spent. Many short losses and turns,
/// which other processes cause beside the one that has most of the time, therefore do not count as
/// usual.
pub(super) fn turn_ns(lost: &[Vec<(f64, f64)>]) -> f64 {
    let losses = lost.iter().flatten().map(|(from, to)| to - from);
    let usual_ns = usual(losses.collect());
    let between = lost.iter().flat_map(|times| {
        let lasting: Vec<&(f64, f64)> = (times.iter())
            .filter(|(from, to)| to - from >= PASSING * usual_ns)
            .collect();
        let gaps = lasting.windows(2).map(|w| w[1].0 - w[0].1);
        gaps.collect::<Vec<f64>>()
    });
    let turns: Vec<f64> = between.collect();
    match turns.is_empty() {
        true => usual_ns,
        false => usual(turns),
    }
}

/// The weighted median: half of the sum of these times is in times that are no longer.
fn usual(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let half = times.iter().sum::<f64>() / 2.0;
    let mut passed = 0.0;
    let middle = times.iter().find(|time| {
        passed += **time;
        passed >= half
    });
    middle.copied().unwrap_or(0.0)
}

/// Time for which another process occupied the CPU, ns, in a period of `wall_ns` with these losses
/// in order.
pub(super) fn occupied_ns(lost: &[(f64, f64)], wall_ns: f64, turn_ns: f64) -> f64 {
    // A process that has run only briefly does not wait for another turn.
    let reach = |(from, to): &(f64, f64)| (to - from).min(turn_ns);
    let lost = without_passing(lost, wall_ns, PASSING * turn_ns, reach);
    let (Some(first), Some(last)) = (lost.first(), lost.last()) else {
        return 0.0;
    };
    let waits = |gap_ns: f64, longest: f64, otherwise: f64| match gap_ns <= LONG_TURN * longest {
        true => gap_ns.max(0.0),
        // It started or stopped somewhere in between; half a turn is as good an assumption as any.
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

/// These losses without the short ones during a turn of the probe, between two long losses: the
/// process that waits for its next turn goes on waiting.
fn without_passing(
    lost: &[(f64, f64)],
    wall_ns: f64,
    short_ns: f64,
    reach: impl Fn(&(f64, f64)) -> f64,
) -> Vec<(f64, f64)> {
    let lasts = |(from, to): &&(f64, f64)| to - from >= short_ns;
    let is_passing = |at: usize| {
        let (before, after) = (
            lost[..at].iter().rev().find(lasts),
            lost[at + 1..].iter().find(lasts),
        );
        let gap_ns = after.map_or(wall_ns, |l| l.0) - before.map_or(0.0, |l| l.1);
        let longest = [before, after].into_iter().flatten().map(&reach);
        gap_ns <= LONG_TURN * longest.fold(0.0, f64::max)
    };
    let stays = |(at, loss): &(usize, &(f64, f64))| lasts(loss) || !is_passing(*at);
    let stay = lost.iter().enumerate().filter(stays);
    stay.map(|(_, loss)| *loss).collect()
}

#[cfg(test)]
mod tests;
