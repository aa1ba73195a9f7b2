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
            let end = (start + length).min(n);
            resample.extend_from_slice(&values[start..end]);
            // Wraps from the end to the beginning.
            resample.extend_from_slice(&values[..start + length - end]);
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
mod tests {
    use super::*;

    /// 40 blocks: t(0.975; 39) = 2.022691, times sqrt(40/39) = 2.048463; Phi(-2.048463) = 0.02026:
    /// the 20th of 999. For very many blocks: the 25th.
    #[test]
    fn ranks_by_hand() {
        assert_eq!(lower_rank(40.0, 0.95), 20);
        assert_eq!(lower_rank(1e9, 0.95), 25);
        assert_eq!(lower_rank(1e9, 0.9), 50);
        assert_eq!(lower_rank(10.0, 0.9999), 0);
    }

    /// 4 ones, 4 zeros, repeated: R(0) = 1/4; lags 1 and 7 are close to 1/8, 2 is 0, 4 is -1/4. The
    /// autocovariances never fade into noise.
    #[test]
    fn a_wave_is_cut_in_long_blocks() {
        let wave: Vec<f64> = (0..800).map(|i| f64::from((i / 4) % 2)).collect();
        assert!(block_length(&wave) > 8, "{}", block_length(&wave));
        assert_eq!(block_length(&[1.0; 50]), 1);
        assert_eq!(block_length(&[]), 1);
        assert_eq!(block_length(&[3.0]), 1);
    }

    #[test]
    fn a_trend_gets_no_interval() {
        let ramp: Vec<f64> = (0..300).map(f64::from).collect();
        let e = block_bootstrap(&ramp, |&x| x, |v| v[0], 0.95, 1).unwrap();
        assert_eq!((e.value, e.interval.lo, e.interval.hi), (0.0, None, None));
        assert!(e.notes[0].contains("too few values"), "{:?}", e.notes);
    }

    #[test]
    fn what_has_no_statistic_has_no_estimate() {
        let of = |values: &[f64], f: fn(&[f64]) -> f64| block_bootstrap(values, |&x| x, f, 0.95, 1);
        assert!(of(&[], |_| 1.0).is_none());
        assert!(of(&[1.0; 20], |_| f64::NAN).is_none());
        // Sometimes a resample lacks the only 1.
        let mut values = [0.0; 20];
        values[3] = 1.0;
        let e = of(&values, |v| 1.0 / v.iter().sum::<f64>()).unwrap();
        assert_eq!((e.value, e.interval.lo), (1.0, None));
    }

    /// Every value is equally likely, and blocks run on in order and wrap around the end.
    #[test]
    fn blocks_are_stretches_of_a_circle() {
        let values: Vec<usize> = (0..10).collect();
        let mut starts = [0_u32; 10];
        let count = std::cell::RefCell::new(&mut starts);
        resampled(
            &values,
            4,
            |v| {
                assert_eq!(v.len(), 10);
                for block in [&v[0..4], &v[4..8], &v[8..10]] {
                    assert!(block.windows(2).all(|w| w[1] == (w[0] + 1) % 10), "{v:?}");
                    count.borrow_mut()[block[0]] += 1;
                }
                0.0
            },
            7,
        );
        // 2997 starts: 299.7 each, sd 16.4; the bounds are five sd either way.
        assert!(
            starts.iter().all(|&s| (217..=382).contains(&s)),
            "{starts:?}"
        );
    }

    /// Sums of two, and of four, of the squares modulo 401 have a memory of one and of three lags.
    /// The lengths were calculated independently, in Python: 10.95 and 21.72.
    #[test]
    fn lengths_match_another_calculation() {
        let square = |i: u32| f64::from(i * i % 401);
        let of = |k: u32| -> Vec<f64> { (1..=400).map(|i| (i..i + k).map(square).sum()).collect() };
        assert_eq!(block_length(&of(2)), 11);
        assert_eq!(block_length(&of(4)), 22);
        assert_eq!(block_length(&of(1)), 1);
        // Correlation after 4 and 8 values, little between: 37.56.
        let apart: Vec<f64> = (1..=400)
            .map(|i| square(i) + square(i + 4) + square(i + 8))
            .collect();
        assert_eq!(block_length(&apart), 38);
    }
}
