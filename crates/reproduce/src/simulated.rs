//! The experiment with random phases drawn in each cycle, as the source assumes: for these eq. 10a
//! is exact.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const SEED: u64 = 0x5eed_da54_1988_0701;

/// Mean counts, ticks, of the whole cycle and of each part: one vector for each
/// repetition of `cycles` cycles, for parts of constant length.
pub(super) fn mean_counts(parts: &[f64], cycles: u64, repetitions: usize) -> Vec<Vec<f64>> {
    let mut source = ChaCha8Rng::seed_from_u64(SEED);
    let mut ends = vec![0.0];
    for part in parts {
        ends.push(ends.last().copied().unwrap_or(0.0) + part);
    }
    (0..repetitions)
        .map(|_| {
            let mut sums = vec![0_u64; parts.len() + 1];
            for _ in 0..cycles {
                let phase = source.random::<f64>();
                let mut before = 0;
                for (sum, end) in sums[1..].iter_mut().zip(&ends[1..]) {
                    let reading = (phase + end) as u64;
                    *sum += reading - before;
                    before = reading;
                }
                sums[0] += before;
            }
            sums.iter().map(|&s| s as f64 / cycles as f64).collect()
        })
        .collect()
}

/// The difference of two errors, each uniform over a tick.
pub(super) fn two_ends(draws: usize) -> Vec<f64> {
    let mut source = ChaCha8Rng::seed_from_u64(SEED);
    (0..draws)
        .map(|_| source.random::<f64>() - source.random::<f64>())
        .collect()
}

#[cfg(test)]
mod tests;
