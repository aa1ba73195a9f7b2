//! The shift of one sample above another, when both scatter in the same way: the median of all
//! differences between the two (Hodges and Lehmann 1963), with the interval of the rank test of
//! Mann and Whitney. It is far sharper than the difference of the medians where most of a sample
//! lies in one narrow place and the rest far off to one side. It only needs differences of
//! undisturbed pairs to outnumber the rest near the middle; half of each sample need not be
//! undisturbed.

use crate::normal_quantile;

/// A shift and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Median of all differences.
    pub value: f64,
    /// Lower bound.
    pub lo: f64,
    /// Upper bound.
    pub hi: f64,
}

/// Halvings of the range of differences: down to the last bit of a double.
const HALVINGS: u32 = 64;

/// Returns how far `above` lies above `below`, in their unit; both finite, in any order. `None`
/// where there are too few values for both bounds: below 4 and 4 at 90 %.
#[must_use]
pub fn shift(below: &[f64], above: &[f64], level: f64) -> Option<Shift> {
    let (below, above) = (sorted(below), sorted(above));
    let (n, m) = (below.len() as f64, above.len() as f64);
    let pairs = n * m;
    let sd = (pairs * (n + m + 1.0) / 12.0).sqrt();
    let rank = (pairs / 2.0 - normal_quantile(level) * sd).floor();
    if rank.is_nan() || rank < 1.0 {
        return None;
    }
    let pairs = below.len() as u64 * above.len() as u64;
    let rank = rank as u64;
    let at = |rank: u64| ranked(&below, &above, rank);
    Some(Shift {
        value: 0.5 * (at(pairs.div_ceil(2)) + at(pairs / 2 + 1)),
        lo: at(rank),
        hi: at(pairs + 1 - rank),
    })
}

pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Returns the difference of this rank (from 1) among all of `above` less `below`; both ascending.
pub(crate) fn ranked(below: &[f64], above: &[f64], rank: u64) -> f64 {
    let ends = |of: &[f64]| (of[0], of[of.len() - 1]);
    let ((b0, b1), (a0, a1)) = (ends(below), ends(above));
    let (mut lo, mut hi) = (a0 - b1, a1 - b0);
    // Smallest `hi` with `rank` or more differences up to it.
    if up_to(below, above, lo) >= rank {
        return lo;
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (lo + hi);
        if up_to(below, above, middle) >= rank {
            hi = middle;
        } else {
            lo = middle;
        }
    }
    hi
}

/// Returns how many differences are not above `limit`; both ascending.
fn up_to(below: &[f64], above: &[f64], limit: f64) -> u64 {
    let mut reached = 0;
    let mut count = 0;
    for &b in below {
        while reached < above.len() && above[reached] - b <= limit {
            reached += 1;
        }
        count += reached as u64;
    }
    count
}

#[cfg(test)]
mod tests;
