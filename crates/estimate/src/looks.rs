//! Group-sequential tests: looks at a growing number of runs.
//!
//! **Question.** Runs cost time, so one looks at those there are and stops when they suffice. How much of
//! the chance of a false alarm may each look spend?
//!
//! **Method.** The numbers of runs at which one looks are fixed beforehand. The alpha-spending function is
//! that of the power family (Kim and DeMets 1987): up to a look at the share `t` of the largest number of
//! runs, `alpha t^3` is spent, so early looks find only large differences and the last look has most. Each
//! look tests at what it adds to that. The sum of these chances bounds that of any false alarm
//! (Bonferroni), however the looks depend on each other and whatever the test is.
//!
//! **Caveats.** The bound holds for the decision. An estimate at a look at which one stops is that of the
//! runs so far; where it stops early because a difference looked large, it is a little too large.

/// The first look.
const FIRST: usize = 8;
/// Each look is at this many times the runs of the one before.
const APART: f64 = 1.5;
/// Power of the share of runs up to which an error is spent.
const POWER: i32 = 3;

/// The looks at up to a largest number of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    most: usize,
}

impl Looks {
    /// Plans looks at up to `most` runs.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { most }
    }

    /// The largest number of runs.
    #[must_use]
    pub const fn most(self) -> usize {
        self.most
    }

    /// The numbers of runs at which to look, ascending; the last is the most.
    pub fn at(self) -> impl Iterator<Item = usize> {
        let next = |at: &usize| Some((*at as f64 * APART).ceil() as usize);
        std::iter::successors(Some(FIRST), next)
            .take_while(move |at| *at < self.most)
            .chain([self.most])
    }

    /// Whether a look is planned at this number of runs.
    #[must_use]
    pub fn is_due(self, runs: usize) -> bool {
        self.at().any(|at| at == runs)
    }

    /// The chance of a false alarm that a look at this number of runs may spend, of `alpha` in all, where
    /// earlier looks spent `spent`. Looks that were not planned may be made, too.
    #[must_use]
    pub fn chance(self, runs: usize, spent: f64, alpha: f64) -> f64 {
        let share = (runs as f64 / self.most.max(1) as f64).min(1.0);
        (alpha * share.powi(POWER) - spent).max(0.0)
    }
}

#[cfg(test)]
mod tests;
