//! Bootstrap of any statistic of a series, by resampling its blocks.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use statrs::distribution::{ContinuousCDF, Normal};
use undertick_units::{Estimate, Interval};

use crate::long_run::student;

/// Number of resamples; with 999 the 2.5 % quantile is the 25th smallest.
const RESAMPLES: usize = 999;
/// Minimum number of blocks: fewer say too little about their own scatter.
const FEWEST_BLOCKS: f64 = 10.0;
/// Factor by which blocks are longer than is best for the variance (Politis and White): the best
/// length for the variance accepts a bias that costs an interval coverage.
const LONGER: f64 = 2.0;

/// Estimates a statistic of `values`, with a confidence interval from resampled blocks. Blocks are
/// circular (Politis and Romano 1992); the percentiles are taken further out to allow for the
/// number of blocks (Hesterberg 2015, expanded percentile interval). `memory` gives the number
/// whose correlation from value to value sets the length of the blocks: the value itself, or for a
/// quantile the indicator. Use it only where nothing better exists: for a mean use
/// [`crate::Numbers::mean`], for a quantile [`crate::Numbers::quantile`]. The same `seed` gives the
/// same interval. Returns `None` for no values or a statistic that is not finite. Below ten blocks
/// there is no interval.
///
/// ```
/// use undertick_estimate::block_bootstrap;
///
/// let values: Vec<f64> = (1..=400).map(|i| f64::from(i * i % 401)).collect();
/// let trimmed = |v: &[f64]| {
///     let mut v = v.to_vec();
///     v.sort_unstable_by(f64::total_cmp);
///     let kept = &v[v.len() / 10..v.len() - v.len() / 10];
///     kept.iter().sum::<f64>() / kept.len() as f64
/// };
/// let e = block_bootstrap(&values, |&x| x, trimmed, 0.95, 1).unwrap();
/// assert_eq!(e.value, 200.5);
/// assert!(e.interval.lo.unwrap() > 180.0 && e.interval.hi.unwrap() < 221.0);
/// ```
#[must_use]
pub fn block_bootstrap<T: Copy>(
    values: &[T],
    memory: impl Fn(&T) -> f64,
    statistic: impl Fn(&[T]) -> f64,
    level: f64,
    seed: u64,
) -> Option<Estimate> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let value = statistic(values);
    if !value.is_finite() {
        return None;
    }
    let series: Vec<f64> = values.iter().map(memory).collect();
    let length = block_length(&series);
    let blocks = n as f64 / length as f64;
    let mut estimate = Estimate {
        value,
        interval: Interval { lo: None, hi: None },
        level,
        unit: "1".into(),
        method: format!("bootstrap of blocks of {length}"),
        n: n as u64,
        n_effective: blocks,
        notes: Vec::new(),
    };
    if blocks < FEWEST_BLOCKS {
        (estimate.notes).push("too few values for their autocorrelation: no interval".into());
        return Some(estimate);
    }
    let mut found = resampled(values, length, statistic, seed);
    if found.iter().any(|x| !x.is_finite()) {
        (estimate.notes).push("a resample has no such statistic: no interval".into());
        return Some(estimate);
    }
    found.sort_unstable_by(f64::total_cmp);
    let rank = lower_rank(blocks, level);
    if rank == 0 {
        (estimate.notes).push("too few resamples for that level: no interval".into());
        return Some(estimate);
    }
    estimate.interval = Interval::new(
        found[rank - 1].min(value),
        found[RESAMPLES - rank].max(value),
    );
    Some(estimate)
}

/// Rank of the lower bound among the resamples: the rank of the normal quantile that is as far out
/// as Student's for this number of blocks.
fn lower_rank(blocks: f64, level: f64) -> usize {
    let far = student(level, blocks - 1.0) * (blocks / (blocks - 1.0)).sqrt();
    let share = Normal::standard().cdf(-far);
    // Rounded to the nearest rank: 25 of 1000 for 2.5 %.
    (share * (RESAMPLES + 1) as f64).round() as usize
}

/// Computes the statistic of each resample.
fn resampled<T: Copy>(
    values: &[T],
    length: usize,
    statistic: impl Fn(&[T]) -> f64,
    seed: u64,
) -> Vec<f64> {
    let n = values.len();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut resample = Vec::with_capacity(n + length);
    let mut one = || {
        resample.clear();
        while resample.len() < n {
            // A 64-bit number times n over 2^64: uniform to n / 2^64.
            let start = ((u128::from(random.next_u64()) * n as u128) >> 64) as usize;
            let end = start + length;
            if length == 1 {
                // Copying a slice takes many times as long.
                resample.push(values[start]);
            } else if end <= n {
                resample.extend_from_slice(&values[start..end]);
            } else {
                // Wraps from the end to the beginning.
                resample.extend_from_slice(&values[start..]);
                resample.extend_from_slice(&values[..end - n]);
            }
        }
        resample.truncate(n);
        statistic(&resample)
    };
    (0..RESAMPLES).map(|_| one()).collect()
}

/// Returns the block length for a series, in values; 1 for a series without memory. It is computed
/// from the autocovariances up to where they are lost in noise, under a flat-top window (Politis
/// and White 2004, with the correction by Patton, Politis and White 2009), and doubled.
#[must_use]
pub fn block_length(series: &[f64]) -> usize {
    let n = series.len();
    let nf = n as f64;
    let mean = series.iter().sum::<f64>() / nf;
    let covariance = |lag: usize| -> f64 {
        let pairs = series.iter().zip(&series[lag..]);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / nf
    };
    if n < 2 || covariance(0) <= 0.0 {
        return 1;
    }
    let quiet = 2.0 * (nf.log10() / nf).sqrt() * covariance(0);
    let run = (nf.log10().sqrt().ceil() as usize).max(5);
    let furthest = (nf.sqrt().ceil() as usize + run).min(n - 1);
    let mut loud = 0;
    for lag in 1..=furthest {
        if covariance(lag).abs() > quiet {
            loud = lag;
        } else if lag - loud >= run {
            break;
        }
    }
    if loud == 0 {
        return 1;
    }
    let window = (2 * loud).min(n - 1);
    let (mut at_zero, mut weighted) = (covariance(0), 0.0);
    for lag in 1..=window {
        let flat_top = (2.0 * (1.0 - lag as f64 / window as f64)).min(1.0);
        let part = 2.0 * flat_top * covariance(lag);
        at_zero += part;
        weighted += lag as f64 * part;
    }
    // 2 G^2 / D with D = 4/3 g(0)^2.
    let length = (1.5 * (weighted / at_zero).powi(2) * nf).cbrt();
    ((LONGER * length).ceil() as usize).clamp(1, n)
}

#[cfg(test)]
mod tests;
