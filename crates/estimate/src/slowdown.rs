//! The slow-down of a span by some cause, from neighbouring halves of time with it and without it,
//! in random order.
//!
//! Whatever changes more slowly than a pair of halves (other load, the core's frequency) is in both
//! and cancels; the random order balances the rest. Spans far longer than the others (`long`)
//! nearly always have another cause and would hide everything. They are dropped while they come as
//! often with it as without, by an exact binomial test, and included where they do not.

use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use crate::Numbers;
use crate::beta;

/// Spans of one half, all of one length class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HalfSections {
    /// Number of spans that are not long.
    pub n: u64,
    /// Sum of their durations, in any unit.
    pub sum: f64,
    /// Number of long ones.
    pub long: u64,
    /// Sum of their durations, in the same unit.
    pub long_sum: f64,
}

/// Result over the pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Slowdown {
    /// Mean of a span with it less that without it, in the unit of the sums.
    pub difference: Estimate,
    /// The difference as a share of the mean without it.
    pub share: Estimate,
    /// Number of pairs that had spans in both halves.
    pub pairs: u64,
    /// Number of spans with it and without it.
    pub sections: [u64; 2],
    /// Number of long spans with it and without it.
    pub long: [u64; 2],
    /// Whether long ones came more often in one state, and are therefore in the figures.
    pub with_long: bool,
}

/// Probability at which equal rates of long spans are taken for different ones.
const DIFFERENT: f64 = 0.01;
/// Minimum number of pairs to show their scatter.
const FEWEST_PAIRS: usize = 8;

/// Computes the slow-down from pairs `[with it, without it]` in the order of time. `None` for too
/// few pairs.
#[must_use]
pub fn slowdown(pairs: &[[HalfSections; 2]], level: f64) -> Option<Slowdown> {
    let total = |state: usize, of: fn(&HalfSections) -> u64| -> u64 {
        pairs.iter().map(|pair| of(&pair[state])).sum()
    };
    let long = [0, 1].map(|state| total(state, |half| half.long));
    let others = [0, 1].map(|state| total(state, |half| half.n));
    let with_long = differs(long, others);
    let mut sections = others;
    if with_long {
        sections = [others[0] + long[0], others[1] + long[1]];
    }
    let of = |half: &HalfSections| {
        if with_long {
            ((half.n + half.long) as f64, half.sum + half.long_sum)
        } else {
            (half.n as f64, half.sum)
        }
    };
    // Halves contain different numbers of spans: each pair is weighted by the precision that its
    // difference would have if spans were independent.
    let weighted: Vec<(f64, f64)> = (pairs.iter())
        .map(|pair| (of(&pair[0]), of(&pair[1])))
        .filter(|((a, _), (b, _))| *a > 0.0 && *b > 0.0)
        .map(|((a, with), (b, without))| (a * b / (a + b), with / a - without / b))
        .collect();
    if weighted.len() < FEWEST_PAIRS {
        return None;
    }
    let mean_weight = weighted.iter().map(|(w, _)| w).sum::<f64>() / weighted.len() as f64;
    let weighted = (weighted.iter())
        .map(|(w, d)| w * d / mean_weight)
        .collect();
    let mut difference = Numbers::new(weighted).mean(level)?;
    "adjacent halves in random order, batch means".clone_into(&mut difference.method);
    let used = difference.n;
    let without: f64 = pairs.iter().map(|pair| of(&pair[1]).1).sum();
    let mean_without = without / sections[1] as f64;
    let share = |x: f64| x / mean_without;
    let mut as_share = difference.clone();
    as_share.value = share(difference.value);
    as_share.interval.lo = difference.interval.lo.map(share);
    as_share.interval.hi = difference.interval.hi.map(share);
    "1".clone_into(&mut as_share.unit);
    Some(Slowdown {
        difference,
        share: as_share,
        pairs: used,
        sections,
        long,
        with_long,
    })
}

/// Returns whether long spans come more often in one state than in the other one.
fn differs(long: [u64; 2], others: [u64; 2]) -> bool {
    let (all, sections) = (long[0] + long[1], others[0] + others[1] + long[0] + long[1]);
    if all == 0 || sections == 0 {
        return false;
    }
    let p = (others[0] + long[0]) as f64 / sections as f64;
    let at_most = beta::binomial_cdf(long[0], all, p);
    let at_least = beta::binomial_cdf(long[1], all, 1.0 - p);
    2.0 * at_most.min(at_least) < DIFFERENT
}

#[cfg(test)]
mod tests;
