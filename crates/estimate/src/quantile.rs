//! Ranks of order statistics that enclose a quantile.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

/// Ranks whose values enclose the quantile; the smallest value has rank 1. `None` where the rank
/// would lie outside the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Rank of the lower bound.
    pub lo: Option<u64>,
    /// Rank of the upper bound.
    pub hi: Option<u64>,
}

/// Variance n p (1 - p) above which the binomial is evaluated by its Cornish-Fisher expansion
/// (error far below one rank); below it the evaluation is exact.
const EXPAND_ABOVE: f64 = 2500.0;

/// Returns ranks whose values enclose the `p`-quantile of `n` independent values with probability
/// at least `level`, at most `(1 - level) / 2` on each side (David and Nagaraja, *Order
/// Statistics*, 3rd ed., section 7.1). `lo` is the largest rank with P(B < lo) <= (1 - level) / 2,
/// `hi` the smallest with P(B >= hi) <= (1 - level) / 2, B binomial(n, p).
#[must_use]
pub fn binomial_ranks(n: u64, p: f64, level: f64) -> Ranks {
    let alpha = (1.0 - level) / 2.0;
    let (lo, hi) = if n as f64 * p * (1.0 - p) > EXPAND_ABOVE {
        expanded(n, p, alpha)
    } else {
        // The upper rank for p is the lower one for 1 - p, counted from above.
        (
            lower_rank(n, p, alpha),
            n + 1 - lower_rank(n, 1.0 - p, alpha),
        )
    };
    Ranks {
        lo: (1..=n).contains(&lo).then_some(lo),
        hi: (1..=n).contains(&hi).then_some(hi),
    }
}

/// Returns the largest l with P(B <= l - 1) <= alpha; 0 if there is none.
fn lower_rank(n: u64, p: f64, alpha: f64) -> u64 {
    let (nf, q) = (n as f64, 1.0 - p);
    // Twelve standard deviations below the mean the tail is below 1e-30.
    let start = (nf * p - 12.0 * (nf * p * q).sqrt() - 12.0)
        .floor()
        .max(0.0);
    let mut k = start;
    let ln_pmf = ln_gamma(nf + 1.0) - ln_gamma(k + 1.0) - ln_gamma(nf - k + 1.0)
        + k * p.ln()
        + (nf - k) * (-p).ln_1p();
    let mut pmf = ln_pmf.exp();
    let mut cdf = pmf;
    while cdf <= alpha && k < nf {
        pmf *= (nf - k) / (k + 1.0) * (p / q);
        k += 1.0;
        cdf += pmf;
    }
    // Here P(B <= k) > alpha, so P(B <= k - 1) <= alpha: the rank is k.
    k as u64
}

/// Interpolated order statistics for a median's interval of exactly `level` (Hettmansperger and
/// Sheather 1986): the lower bound lies `share` of the way from the value of rank `rank` to the
/// next; the upper bound mirrors it. `None` where the level is beyond the sample's extremes, or n
/// is so large that ranks are fine enough.
pub(crate) fn interpolated(n: u64, level: f64) -> Option<(u64, f64)> {
    if n as f64 * 0.25 > EXPAND_ABOVE {
        return None;
    }
    let alpha = (1.0 - level) / 2.0;
    let rank = lower_rank(n, 0.5, alpha);
    if rank == 0 || 2 * rank >= n {
        return None;
    }
    // Coverage of the ranks (k, n + 1 - k) is 1 - 2 P(B <= k - 1).
    let cover = |k: u64| 1.0 - 2.0 * binomial_cdf(n, k - 1);
    let (wide, narrow) = (cover(rank), cover(rank + 1));
    let i = (wide - level) / (wide - narrow);
    let (n, k) = (n as f64, rank as f64);
    Some((rank, (n - k) * i / (k + (n - 2.0 * k) * i)))
}

/// P(B <= k), B binomial(n, 1/2).
fn binomial_cdf(n: u64, k: u64) -> f64 {
    let nf = n as f64;
    (0..=k)
        .map(|j| {
            let j = j as f64;
            (ln_gamma(nf + 1.0)
                - ln_gamma(j + 1.0)
                - ln_gamma(nf - j + 1.0)
                - nf * std::f64::consts::LN_2)
                .exp()
        })
        .sum()
}

fn expanded(n: u64, p: f64, alpha: f64) -> (u64, u64) {
    let (mean, sd) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
    let z = Normal::standard().inverse_cdf(1.0 - alpha);
    let skew = (z * z - 1.0) / 6.0 * (1.0 - 2.0 * p);
    (
        (mean - z * sd + skew + 0.5).floor().max(0.0) as u64,
        (mean + z * sd + skew + 0.5).ceil() as u64,
    )
}

#[cfg(test)]
mod tests;
