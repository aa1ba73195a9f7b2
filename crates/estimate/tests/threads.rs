//! Intervals of the mean and of quantiles over several threads, compared with the truth. The
//! generators share no code with the estimators.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use undertick_estimate::{Sample, Series, spread_over_time};

/// Fewest of 400 intervals at 95 % that contain the truth, but for once in 10^6: exact binomial;
/// 360 would be 90 %.
const REPETITIONS: u64 = 400;
const AT_LEAST: usize = 356;

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// Draws values of one thread: a level, and noise with a share of memory.
fn thread(rng: &mut ChaCha8Rng, n: usize, level: f64, sd: f64, memory: f64) -> Vec<i64> {
    let fresh = (1.0 - memory * memory).sqrt();
    let mut noise = normal(rng);
    (0..n)
        .map(|_| {
            noise = memory * noise + fresh * normal(rng);
            (level + sd * noise).round() as i64
        })
        .collect()
}

fn holds(sample: &Sample, truth: f64) -> bool {
    let mean = sample.mean(0.95, 0.0).unwrap();
    mean.interval.lo.unwrap() <= truth && truth <= mean.interval.hi.unwrap()
}

fn median_holds(sample: &Sample, truth: f64) -> bool {
    let median = sample.quantile(0.5, 0.95, 0.0).unwrap();
    median.interval.lo.unwrap() <= truth && truth <= median.interval.hi.unwrap()
}

fn half(sample: &Sample) -> f64 {
    let mean = sample.mean(0.95, 0.0).unwrap();
    mean.interval.half_width().unwrap()
}

fn merged(threads: &[Vec<i64>]) -> Sample {
    let mut all = Series::new();
    for values in threads {
        all.merge(values.iter().copied().collect());
    }
    all.sample()
}

/// Threads whose means differ by fifty times their scatter: the mean of all is known as well as the
/// separate means, each with its own correlation.
#[test]
fn threads_of_different_levels() {
    for memory in [0.0, 0.9] {
        let (mut hits, mut widths) = (0, Vec::new());
        for seed in 0..REPETITIONS {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let levels = [1000.0, 6000.0, 3000.0, 2000.0];
            let sizes = [4000, 2000, 6000, 3000];
            let threads: Vec<Vec<i64>> = (levels.iter().zip(sizes))
                .map(|(&level, n)| thread(&mut rng, n, level, 100.0, memory))
                .collect();
            let weighted: f64 = levels.iter().zip(sizes).map(|(l, n)| l * n as f64).sum();
            let sample = merged(&threads);
            hits += usize::from(holds(&sample, weighted / 15_000.0));
            widths.push(half(&sample));
        }
        assert!(hits >= AT_LEAST, "memory {memory}: {hits} of 400");
        // The variance of the mean of an AR(1) series is (1 + a) / (1 - a) times that of
        // independent values.
        let truth = 1.96 * 100.0 * ((1.0 + memory) / (1.0 - memory) / 15_000.0).sqrt();
        let mean = widths.iter().sum::<f64>() / widths.len() as f64;
        assert!((0.9..1.35).contains(&(mean / truth)), "{mean} for {truth}");
    }
}

/// 200 threads of 120 values have different levels, drawn from a population. Their common mean is
/// that of the population within the scatter of the levels. In at most one of a hundred cases the
/// levels seem by chance to remember for too long.
#[test]
fn many_short_threads_are_a_sample_of_their_kind() {
    let (mut hits, mut refused) = (0, 0);
    for seed in 0..REPETITIONS {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
        let mut all = Series::new();
        for _ in 0..200 {
            let level = 5000.0 + 300.0 * normal(&mut rng);
            for value in thread(&mut rng, 120, level, 100.0, 0.0) {
                all.push(value);
            }
            all.next_thread();
        }
        let sample = all.sample();
        match sample.mean(0.95, 0.0).unwrap().interval.half_width() {
            Some(_) => hits += usize::from(holds(&sample, 5000.0)),
            None => refused += 1,
        }
    }
    assert!(refused <= 4, "{refused} of 400 refused");
    assert!(hits + refused >= AT_LEAST, "{hits} of 400");
}

/// A disturbance slows all threads at once: they share noise that is as large as their own. An
/// interval for independent threads would be far too narrow. In the first case each thread shows
/// the common noise, because it lasts for 20 values and more; in the second, with a value of each
/// thread in each slice, no single thread does.
#[test]
fn threads_that_become_slow_together() {
    for (how_many, slices, each, memory) in [(4, 400, 20, 0.5), (8, 1500, 1, 0.0)] {
        let (mut hits, mut apart, mut medians) = (0, 0, 0);
        for seed in 0..REPETITIONS {
            let mut rng = ChaCha8Rng::seed_from_u64(2000 + seed);
            let common = thread(&mut rng, slices, 0.0, 100.0, memory);
            let (mut counts, mut sums) = (vec![0.0; slices], vec![0.0; slices]);
            let mut threads = Vec::new();
            for _ in 0..how_many {
                let mut values = thread(&mut rng, slices * each, 3000.0, 100.0, 0.0);
                for (i, value) in values.iter_mut().enumerate() {
                    *value += common[i / each];
                    counts[i / each] += 1.0;
                    sums[i / each] += *value as f64;
                }
                threads.push(values);
            }
            let mut sample = merged(&threads);
            apart += usize::from(holds(&sample, 3000.0));
            sample.allow_for_time(spread_over_time(&counts, &sums).unwrap());
            hits += usize::from(holds(&sample, 3000.0));
            medians += usize::from(median_holds(&sample, 3000.0));
        }
        assert!(hits >= AT_LEAST, "{how_many} threads: {hits} of 400");
        assert!(
            medians >= AT_LEAST,
            "{how_many} threads: medians {medians} of 400"
        );
        assert!(apart < 320, "the question has no teeth: {apart} of 400");
    }
}

/// Quantiles over threads with memory.
#[test]
fn medians_of_threads_with_memory() {
    let mut hits = 0;
    for seed in 0..REPETITIONS {
        let mut rng = ChaCha8Rng::seed_from_u64(3000 + seed);
        let threads: Vec<Vec<i64>> = (0..3)
            .map(|_| thread(&mut rng, 6000, 10_000.0, 1000.0, 0.8))
            .collect();
        hits += usize::from(median_holds(&merged(&threads), 10_000.0));
    }
    assert!(hits >= AT_LEAST, "{hits} of 400");
}

/// In any order of merging, counts, sums, extremes and histogram are those of all values, and a
/// single thread is unchanged by merging.
#[test]
fn what_is_exact_stays_exact() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let threads: Vec<Vec<i64>> = [1, 700, 3, 20_000, 511, 0, 5000]
        .iter()
        .map(|&n| thread(&mut rng, n, 500.0, 300.0, 0.3))
        .collect();
    let all: Vec<i64> = threads.concat();
    let mut chained = Series::new();
    for values in &threads {
        values.iter().for_each(|&x| chained.push(x));
        chained.next_thread();
    }
    for sample in [merged(&threads), chained.sample()] {
        let moments = sample.moments();
        assert_eq!(moments.n(), 26_215);
        assert_eq!(moments.sum(), all.iter().map(|&x| i128::from(x)).sum());
        assert_eq!(moments.min(), all.iter().min().copied());
        assert_eq!(moments.max(), all.iter().max().copied());
        let mut sorted = all.clone();
        sorted.sort_unstable();
        for rank in [1, 13_107, 26_215] {
            let bin = sample.distribution().at_rank(rank).unwrap();
            let value = sorted[rank as usize - 1];
            assert!((bin.lo..=bin.hi).contains(&value), "{rank}");
        }
        assert!(sample.mean(0.95, 0.0).unwrap().interval.lo.is_some());
    }
    let one: Series = threads[3].iter().copied().collect();
    let mut merged = Series::new();
    merged.merge(one.clone());
    merged.merge(Series::new());
    assert_eq!(
        merged.sample().mean(0.95, 0.0),
        one.sample().mean(0.95, 0.0)
    );
}

/// Threads with one value each give no information about their own scatter.
#[test]
fn single_values_are_merged_too() {
    let mut all = Series::new();
    for value in [10, 20, 30] {
        all.merge(std::iter::once(value).collect());
    }
    let mean = all.clone().sample().mean(0.95, 0.0).unwrap();
    assert_eq!((mean.value, mean.interval.lo), (20.0, None));
    all.merge((0..100).map(|i| i * 37 % 101).collect());
    assert!(all.sample().mean(0.95, 0.0).unwrap().interval.lo.is_some());
}
