//! Exact tails of the two rank tests: the probability that chance alone makes a rank sum this
//! small. They are counted, not approximated, where that is cheap, as runs are few.

use statrs::distribution::{ContinuousCDF, Normal};

/// Maximum number of pairs for which signed ranks are counted: 200 pairs are 4 million steps.
const MOST_PAIRS: usize = 200;
/// Limits up to which two samples are counted: the size of the smaller one, and the product of both
/// sizes, which is the number of steps for each number.
const MOST_OF_FEWER: usize = 40;
const MOST_PRODUCT: usize = 20_000;

/// Probability that a rank statistic is small: index k is the probability of at most k.
pub(crate) struct Tail {
    /// Largest value of the statistic.
    greatest: u64,
    kind: Kind,
}

enum Kind {
    /// Probabilities of at most 0, 1, 2, ...: the lower half.
    Counted(Vec<f64>),
    /// The normal distribution, with a continuity correction of half a step.
    Normal { sd: f64 },
}

impl Tail {
    /// Wilcoxon's signed ranks of `n` pairs: each rank has either sign by the toss of a coin.
    pub(crate) fn of_pairs(n: usize) -> Self {
        let greatest = (n * (n + 1) / 2) as u64;
        if n > MOST_PAIRS {
            let n = n as f64;
            let sd = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
            return Self::normal(greatest, sd);
        }
        let half = greatest as usize / 2 + 1;
        let mut shares = vec![0.0; half];
        shares[0] = 1.0;
        for rank in 1..=n {
            for sum in (0..half).rev() {
                let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
                shares[sum] = 0.5 * (shares[sum] + with);
            }
        }
        Self::counted(greatest, shares)
    }

    /// Mann and Whitney's count for two samples: every order of all values is equally likely.
    pub(crate) fn of_two(n: usize, m: usize) -> Self {
        let greatest = (n * m) as u64;
        let (fewer, more) = (n.min(m), n.max(m));
        if fewer > MOST_OF_FEWER || n * m > MOST_PRODUCT {
            let sd = (greatest as f64 * (n + m + 1) as f64 / 12.0).sqrt();
            return Self::normal(greatest, sd);
        }
        Self::counted(greatest, mann_whitney(fewer, more))
    }

    fn normal(greatest: u64, sd: f64) -> Self {
        Self {
            greatest,
            kind: Kind::Normal { sd },
        }
    }

    fn counted(greatest: u64, shares: Vec<f64>) -> Self {
        let mut sum = 0.0;
        let up_to = shares.into_iter().map(|share| {
            sum += share;
            sum
        });
        Self {
            greatest,
            kind: Kind::Counted(up_to.collect()),
        }
    }

    /// Returns the probability of at most `k`.
    pub(crate) fn up_to(&self, k: u64) -> f64 {
        if k > self.greatest / 2 {
            return 1.0;
        }
        match &self.kind {
            Kind::Counted(shares) => shares[k as usize].min(1.0),
            Kind::Normal { sd } => {
                let below = (k as f64 + 0.5 - self.greatest as f64 / 2.0) / sd;
                Normal::standard().cdf(below)
            }
        }
    }

    /// Returns the rank, from 1, of the ordered differences that bounds an interval of at least
    /// this level; `None` where not even the first does.
    pub(crate) fn rank(&self, level: f64) -> Option<u64> {
        let beyond = (1.0 - level) / 2.0;
        let is_beyond = |rank: u64| self.up_to(rank - 1) <= beyond;
        if self.greatest == 0 || !is_beyond(1) {
            return None;
        }
        let (mut lo, mut hi) = (1, self.greatest / 2 + 2);
        while hi - lo > 1 {
            let middle = u64::midpoint(lo, hi);
            if is_beyond(middle) {
                lo = middle;
            } else {
                hi = middle;
            }
        }
        Some(lo)
    }
}

/// Returns the shares of the counts 0, 1, ... of the lower half. The largest of all values belongs
/// to one sample or the other in proportion to their sizes. Without it, the same question remains
/// with one value fewer (Mann and Whitney 1947).
fn mann_whitney(fewer: usize, more: usize) -> Vec<f64> {
    let half = fewer * more / 2 + 1;
    // Counts for i and j values: at [j], for each i in turn.
    let mut before: Vec<Vec<f64>> = vec![only_zero(half); more + 1];
    for i in 1..=fewer {
        let mut now = vec![only_zero(half)];
        for j in 1..=more {
            let of_i = i as f64 / (i + j) as f64;
            let shares = (0..half).map(|u| {
                let largest_is_of_i = if u >= j { before[j][u - j] } else { 0.0 };
                of_i * largest_is_of_i + (1.0 - of_i) * now[j - 1][u]
            });
            let shares = shares.collect();
            now.push(shares);
        }
        before = now;
    }
    before.swap_remove(more)
}

fn only_zero(length: usize) -> Vec<f64> {
    let mut shares = vec![0.0; length];
    shares[0] = 1.0;
    shares
}

#[cfg(test)]
mod tests;
