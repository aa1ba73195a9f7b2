//! Shares of independent events.

use statrs::distribution::{Beta, ContinuousCDF};
use undertick_units::{Estimate, Interval};

use crate::long_run::normal;

/// Share of `seen` independent events that were `inside` (Wilson 1927, the score interval). It
/// covers 95 % on average over shares, for some shares a little less. Where every share must be
/// covered, use [`proportion_exact`]. `None` for no events.
#[must_use]
pub fn proportion(inside: u64, seen: u64, level: f64) -> Option<Estimate> {
    if seen == 0 || inside > seen {
        return None;
    }
    let (n, p, z) = (seen as f64, inside as f64 / seen as f64, normal(level));
    let shrink = 1.0 + z * z / n;
    let centre = (p + z * z / (2.0 * n)) / shrink;
    let half = z / shrink * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    Some(Estimate {
        value: p,
        interval: Interval::new(
            (centre - half).max(0.0).min(p),
            (centre + half).min(1.0).max(p),
        ),
        level,
        unit: "1".into(),
        method: "score interval of independent events".into(),
        n: seen,
        n_effective: n,
        notes: Vec::new(),
    })
}

/// As [`proportion`], with a confidence interval that covers at least as often as it says for every
/// share (Clopper and Pearson 1934): it is wider, and covers more than it says. `None` for no
/// events.
#[must_use]
pub fn proportion_exact(inside: u64, seen: u64, level: f64) -> Option<Estimate> {
    let score = proportion(inside, seen, level)?;
    let alpha = (1.0 - level) / 2.0;
    let (k, n) = (inside as f64, seen as f64);
    let quantile = |a: f64, b: f64, p: f64| {
        Beta::new(a, b)
            .expect("both shapes are positive")
            .inverse_cdf(p)
    };
    let lo = if inside == 0 {
        0.0
    } else {
        quantile(k, n - k + 1.0, alpha)
    };
    let hi = if inside == seen {
        1.0
    } else {
        quantile(k + 1.0, n - k, 1.0 - alpha)
    };
    Some(Estimate {
        interval: Interval::new(lo, hi),
        method: "exact interval of independent events".into(),
        ..score
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcombe 1998, table I: 81 of 263 gives 0.2553..0.3662, 0 of 20 0..0.1611.
    #[test]
    fn proportions_match_the_printed_ones() {
        for (inside, seen, lo, hi) in [(81, 263, 0.2553, 0.3662), (0, 20, 0.0, 0.1611)] {
            let i = proportion(inside, seen, 0.95).unwrap().interval;
            assert!(
                (i.lo.unwrap() - lo).abs() < 5e-5 && (i.hi.unwrap() - hi).abs() < 5e-5,
                "{i:?}"
            );
        }
        assert_eq!(proportion(0, 0, 0.95), None);
    }

    /// Newcombe 1998, table I, method 5: 81 of 263 gives 0.2527..0.3676, 15 of
    /// 148 0.0578..0.1617, 0 of 20 0..0.1684, 1 of 29 0.0009..0.1776.
    #[test]
    fn exact_proportions_match_the_printed_ones() {
        for (inside, seen, lo, hi) in [
            (81, 263, 0.2527, 0.3676),
            (15, 148, 0.0578, 0.1617),
            (0, 20, 0.0, 0.1684),
            (1, 29, 0.0009, 0.1776),
            (28, 29, 0.8224, 0.9991),
            (20, 20, 0.8316, 1.0),
        ] {
            let e = proportion_exact(inside, seen, 0.95).unwrap();
            let i = e.interval;
            assert!(
                (i.lo.unwrap() - lo).abs() < 5e-5 && (i.hi.unwrap() - hi).abs() < 5e-5,
                "{i:?}"
            );
            assert_eq!(e.n, seen);
        }
        assert_eq!(proportion_exact(0, 0, 0.95), None);
        assert_eq!(proportion_exact(2, 1, 0.95), None);
    }

    /// A million: the bounds solve P(B >= k) = 0.025 and P(B <= k) = 0.025, which the normal
    /// distribution gives within 1e-5 at this size: 0.5 -+ (1.959964 * 0.5 / 1000 + 0.5e-6).
    #[test]
    fn exact_of_a_million() {
        let i = proportion_exact(500_000, 1_000_000, 0.95).unwrap().interval;
        let half = 1.959_964 * 0.5 / 1000.0 + 0.5e-6;
        assert!((i.lo.unwrap() - 0.5 + half).abs() < 1e-7, "{i:?}");
        assert!((i.hi.unwrap() - 0.5 - half).abs() < 1e-7, "{i:?}");
    }
}
