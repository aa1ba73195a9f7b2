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
mod tests {
    use super::*;

    fn found(period: f64, jitter: f64, n: u64) -> Option<Lock> {
        let facts = WalkFacts::known(n, period, jitter);
        Lock::find(&facts, &Spectrum::of_walk(n, &facts, jitter))
    }

    /// 2.5 ticks: after two cycles loop and tick meet again, and no sooner. At 2.5001 the phase
    /// moves 0.0001 of a tick a cycle; a jitter of 0.002 adds 0.02 in 100 cycles.
    #[test]
    fn locks_by_hand() {
        let lock = found(2.5, 0.0, 100).unwrap();
        assert_eq!((lock.ticks, lock.cycles, lock.error_ticks), (5, 2, 0.5));
        assert!(
            lock.moved_ticks == 0.0 && lock.coherence > 0.999,
            "{lock:?}"
        );
        let lock = found(2.5001, 0.0, 100).unwrap();
        assert_eq!((lock.ticks, lock.cycles), (5, 2));
        assert!((lock.moved_ticks - 0.01).abs() < 1e-9, "{lock:?}");
        let lock = found(2.5001, 0.002, 100).unwrap();
        assert!(
            (lock.moved_ticks - 0.01_f64.hypot(0.02)).abs() < 1e-9,
            "{lock:?}"
        );
        let lock = found(7.0 / 3.0, 0.0, 100).unwrap();
        assert_eq!((lock.ticks, lock.cycles), (7, 3));
        assert!((lock.error_ticks - 1.0 / 3.0).abs() < 1e-12);
        let lock = found(3.0, 0.0, 100).unwrap();
        assert_eq!((lock.ticks, lock.cycles, lock.error_ticks), (3, 1, 1.0));
        // The golden section is near no small fraction; jitter undoes any lock.
        assert_eq!(found(2.618_034, 0.0, 10_000), None);
        assert_eq!(found(2.5, 0.3, 10_000), None);
    }

    /// Half a tick: 1/16 against three times p (1 - p)/n. At p = 0.3 that is 0.63/n:
    /// from 11 cycles on; shorter and longer counts as 0.25 and 0.75, 0.5625/n: from
    /// 10 on.
    #[test]
    fn what_a_lock_spoils_by_hand() {
        let lock = |coherence| Lock {
            ticks: 5,
            cycles: 2,
            moved_ticks: 0.0,
            error_ticks: 0.5,
            coherence,
        };
        let whole = lock(1.0);
        assert!(!whole.spoils(0.3, 10) && whole.spoils(0.3, 11));
        for ticks in [0.01, 0.1, 2.9, 7.99] {
            assert!(
                !whole.spoils(ticks, 9) && whole.spoils(ticks, 10),
                "{ticks}"
            );
        }
        // Half as coherent: 1/32 against 0.63/n.
        assert!(!lock(0.5).spoils(1.3, 20) && lock(0.5).spoils(1.3, 21));
        let text = whole.to_string();
        assert!(text.starts_with("5:2 locked") && text.contains("5 ticks pass in 2 cycles"));
        assert!(text.contains("up to 0.500 of a tick"), "{text}");
    }
}
