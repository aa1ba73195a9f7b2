//! Shares of independent events.

use undertick_units::{Estimate, Interval};

use crate::beta;
use crate::long_run::normal;

/// Share of `seen` independent events that were `inside` (Wilson 1927, the score interval). It
/// covers 95 % on average over shares, for some shares a little less. Where every share must be
/// covered, use [`proportion_exact`]. `None` for no events.
#[must_use]
pub fn proportion(inside: u64, seen: u64, level: f64) -> Option<Estimate> {
    if seen == 0 || inside > seen {
        return None;
    }
    let (n, p) = (seen as f64, inside as f64 / seen as f64);
    Some(Estimate {
        value: p,
        interval: score_interval(p, n, level),
        level,
        unit: "1".into(),
        method: "score interval of independent events".into(),
        n: seen,
        n_effective: n,
        notes: Vec::new(),
    })
}

/// Returns the score interval (Wilson 1927) of a share `p` of `n` independent events.
pub(crate) fn score_interval(p: f64, n: f64, level: f64) -> Interval {
    let z = normal(level);
    let shrink = 1.0 + z * z / n;
    let centre = (p + z * z / (2.0 * n)) / shrink;
    let half = z / shrink * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    Interval::new(
        (centre - half).max(0.0).min(p),
        (centre + half).min(1.0).max(p),
    )
}

/// As [`proportion`], with a confidence interval that covers at least as often as it says for every
/// share (Clopper and Pearson 1934): it is wider, and covers more than it says. `None` for no
/// events.
#[must_use]
pub fn proportion_exact(inside: u64, seen: u64, level: f64) -> Option<Estimate> {
    let score = proportion(inside, seen, level)?;
    let alpha = (1.0 - level) / 2.0;
    let (k, n) = (inside as f64, seen as f64);
    let lo = if inside == 0 {
        0.0
    } else {
        beta::quantile(k, n - k + 1.0, alpha)
    };
    let hi = if inside == seen {
        1.0
    } else {
        beta::quantile(k + 1.0, n - k, 1.0 - alpha)
    };
    Some(Estimate {
        interval: Interval::new(lo, hi),
        method: "exact interval of independent events".into(),
        ..score
    })
}

#[cfg(test)]
mod tests;
