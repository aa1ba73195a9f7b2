//! Lock-in: the loop and the clock step together. The phases seen are then few and always the same,
//! and no number of cycles helps.

use std::fmt;

use super::variance::Spectrum;
use super::walk::WalkFacts;

/// Maximum number of cycles per lock that is searched for: with more the phases are spread densely
/// enough.
const MOST_CYCLES: usize = 96;
/// S(q) from which a lock counts: the phase has not moved evenly over a q-th
/// of the tick, i.e. it passed it fewer than about four times.
const UNRESOLVED: f64 = 0.04;
/// Variance that a lock may add, over that of independent counts, before the confidence interval is
/// refused: up to here it is at most twice as wide.
const SPOILT: f64 = 3.0;

/// A loop locked to the tick: q cycles take r ticks, and the phase moved little.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lock {
    /// Ticks after which loop and tick meet again.
    pub ticks: u64,
    /// Cycles after which they meet again.
    pub cycles: u64,
    /// How far the phase moved in the whole run, ticks.
    pub moved_ticks: f64,
    /// How far a mean count may be off however many cycles are run, ticks.
    pub error_ticks: f64,
    /// S(q) of the run, 1 when fully locked.
    pub coherence: f64,
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{} locked to the tick: {} ticks pass in {} cycles, and the phase moved {:.2} of a \
             tick in the whole run; counting may be wrong by up to {:.3} of a tick however long it \
             runs",
            self.ticks, self.cycles, self.ticks, self.cycles, self.moved_ticks, self.error_ticks
        )
    }
}

impl Lock {
    /// Returns the most harmful lock, if the run shows one or cannot exclude it. A run in pieces
    /// leaves the period less certain, which is not evidence that the phase moves.
    ///
    /// `spectrum` is that of the smallest jitter. Multiples of the cycle that were not watched
    /// individually count as their average over the period's error.
    #[must_use]
    pub fn find(facts: &WalkFacts, spectrum: &Spectrum) -> Option<Self> {
        let n = facts.cycles as f64;
        let locks = (1..=MOST_CYCLES).filter_map(|q| {
            let coherence = match q <= facts.multiples.len() {
                true => Spectrum::greatest(facts, q),
                false => spectrum.at(q),
            };
            if coherence < UNRESOLVED {
                return None;
            }
            let multiple = q as f64 * facts.period;
            let per_cycle = (multiple - multiple.round()) / q as f64;
            Some(Self {
                ticks: multiple.round() as u64,
                cycles: q as u64,
                moved_ticks: (per_cycle * n).hypot(facts.jitter[1] * n.sqrt()),
                error_ticks: 1.0 / q as f64,
                coherence,
            })
        });
        let harm = |lock: &Self| lock.coherence * lock.error_ticks * lock.error_ticks;
        locks.reduce(|worst, lock| {
            if harm(&lock) > harm(&worst) {
                lock
            } else {
                worst
            }
        })
    }

    /// Returns whether the lock spoils the count of an activity of about `ticks`: what it may add
    /// to the variance exceeds three times what independent counts have in any case.
    pub(super) fn spoils(&self, ticks: f64, n: u64) -> bool {
        let step = self.error_ticks;
        let p = ticks - ticks.floor();
        // The true length may lie anywhere within a step of what was counted.
        let p = p.clamp((0.5 * step).min(0.5), (1.0 - 0.5 * step).max(0.5));
        let independent = p * (1.0 - p) / n as f64;
        self.coherence * step * step / 4.0 > SPOILT * independent
    }
}

#[cfg(test)]
mod tests;
