//! The change of a whole fleet.

use super::peers::quantile;
use crate::beta;
use crate::quantile::binomial_ranks;

/// The change of the middle machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Median of the machines' changes.
    pub value: f64,
    /// Its lower bound, by order statistics; `None` with too few machines.
    pub lo: Option<f64>,
    /// Its upper bound.
    pub hi: Option<f64>,
    /// Probability that as many machines change the same way by chance (sign test).
    pub p: f64,
    /// Number of machines.
    pub n: usize,
}

/// Computes the change of the fleet from each machine's change; `None` without machines.
#[must_use]
pub fn change(changes: &[f64], level: f64) -> Option<Change> {
    if changes.is_empty() {
        return None;
    }
    let mut sorted = changes.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ranks = binomial_ranks(sorted.len() as u64, 0.5, level);
    let at = |rank: Option<u64>| Some(sorted[rank? as usize - 1]);
    Some(Change {
        value: quantile(sorted.iter().copied(), 0.5),
        lo: at(ranks.lo),
        hi: at(ranks.hi),
        p: sign_test(&sorted),
        n: sorted.len(),
    })
}

/// Sign test of the changes; machines that did not change do not count.
fn sign_test(changes: &[f64]) -> f64 {
    let up = changes.iter().filter(|c| **c > 0.0).count() as u64;
    let down = changes.iter().filter(|c| **c < 0.0).count() as u64;
    let few = up.min(down);
    let tail = beta::binomial_cdf(few, up + down, 0.5);
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests;
