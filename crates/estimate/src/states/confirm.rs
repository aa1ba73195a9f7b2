//! Whether a proposed split holds in the blocks that did not propose it.

use super::median::FEWEST_BLOCKS;
use super::split::{By, Split};
use super::{FEWEST_IN_STATE, Observed, block};

/// Share of the scatter of its node that a split must explain.
const OF_NODE: f64 = 0.05;
/// Share of the scatter of all samples that it must explain.
const OF_ALL: f64 = 0.02;
/// Ratio of the (geometric) means of the sides: what differs by less is no answer to why samples
/// vary.
const APART: f64 = 1.05;
/// Shifts of the fact against the samples.
const SHIFTS: usize = 512;
/// A shifted fact is another one if its correlation with the fact itself is below this.
const OTHER: f64 = 0.5;
/// Fewest shifted facts that are other ones.
const FEWEST_SHIFTS: usize = 64;
/// Fewest times that a fact changes sides: what changes once or twice is known as a time.
const FEWEST_CHANGES: usize = 8;
/// How many times what the best shifted fact explains, the fact itself must.
const OVER_SHIFTED: f64 = 2.0;
/// Standard errors by which the blocks of two times must differ.
const TIMES_APART: f64 = 5.0;

/// Whether a split holds for these samples. `scatter`: the sum of squares of all samples of their
/// blocks.
pub(super) fn is_confirmed(
    observed: &Observed<'_>,
    logs: &[f64],
    samples: &[usize],
    split: &Split,
    scatter: f64,
) -> bool {
    let sides: Vec<bool> = (samples.iter())
        .map(|&at| split.is_above(observed, at))
        .collect();
    let logs_of: Vec<f64> = samples.iter().map(|&at| logs[at]).collect();
    let n = logs_of.len() as f64;
    let above = sides.iter().filter(|side| **side).count();
    if above < FEWEST_IN_STATE || sides.len() - above < FEWEST_IN_STATE {
        return false;
    }
    let blocks = |of: bool| {
        let mut blocks: Vec<usize> = (samples.iter().zip(&sides))
            .filter(|(_, side)| **side == of)
            .map(|(&at, _)| block(at, observed.values.len()))
            .collect();
        blocks.dedup();
        blocks.len()
    };
    if blocks(false) < FEWEST_BLOCKS || blocks(true) < FEWEST_BLOCKS {
        return false;
    }
    let mean = logs_of.iter().sum::<f64>() / n;
    let off: Vec<f64> = logs_of.iter().map(|log| log - mean).collect();
    let squares: f64 = off.iter().map(|off| off * off).sum();
    // Both sides' sums differ by sign alone, so one of them gives the difference of the means.
    let (above, below) = (above as f64, n - above as f64);
    let gain = |sum: f64| sum * sum * n / (above * below);
    let sum: f64 = off
        .iter()
        .zip(&sides)
        .map(|(off, side)| if *side { *off } else { 0.0 })
        .sum();
    let explains = gain(sum) >= (OF_NODE * squares).max(OF_ALL * scatter);
    let apart = (sum / above + sum / below).abs();
    if !explains || sum <= 0.0 || apart < APART.ln() {
        return false;
    }
    match split.by {
        By::Time { .. } => differs_by_blocks(samples, &logs_of, &sides, observed.values.len()),
        By::Kinds { .. } | By::Number { .. } => {
            is_over_shifted(&off, &sides, above, gain(sum) / OVER_SHIFTED, &gain)
        }
    }
}

/// Whether no shifted fact explains as much as `most`; `false` also where too few of them are other
/// facts.
fn is_over_shifted(
    off: &[f64],
    sides: &[bool],
    above: f64,
    most: f64,
    gain: &impl Fn(f64) -> f64,
) -> bool {
    let n = off.len();
    let changes = sides.windows(2).filter(|two| two[0] != two[1]).count();
    if changes < FEWEST_CHANGES {
        return false;
    }
    let share = above / n as f64;
    let mut others = 0;
    for shift in (1..=SHIFTS).map(|i| i * n / (SHIFTS + 1)) {
        let shifted = sides[shift..].iter().chain(&sides[..shift]);
        let (mut sum, mut both) = (0.0, 0_usize);
        for ((off, side), other) in off.iter().zip(sides).zip(shifted) {
            sum += if *other { *off } else { 0.0 };
            both += usize::from(side & other);
        }
        let correlation = (both as f64 / n as f64 - share * share) / (share * (1.0 - share));
        if correlation.abs() < OTHER {
            if gain(sum) >= most {
                return false;
            }
            others += 1;
        }
    }
    others >= FEWEST_SHIFTS
}

/// Whether the means of the blocks before a time differ from those after it (Welch's t); there
/// are enough blocks of both.
fn differs_by_blocks(samples: &[usize], logs: &[f64], sides: &[bool], n: usize) -> bool {
    let mut blocks: [Vec<(usize, f64, usize)>; 2] = [Vec::new(), Vec::new()];
    for ((&at, log), side) in samples.iter().zip(logs).zip(sides) {
        let here = block(at, n);
        let of_side = &mut blocks[usize::from(*side)];
        match of_side.last_mut() {
            Some((block, sum, count)) if *block == here => {
                *sum += log;
                *count += 1;
            }
            _ => of_side.push((here, *log, 1)),
        }
    }
    let mean_and_error = |of: &[(usize, f64, usize)]| {
        let means: Vec<f64> = of.iter().map(|(_, sum, n)| sum / *n as f64).collect();
        let n = means.len() as f64;
        let mean = means.iter().sum::<f64>() / n;
        let squares: f64 = means.iter().map(|one| (one - mean).powi(2)).sum();
        (mean, squares / (n - 1.0) / n)
    };
    let (before, a) = mean_and_error(&blocks[0]);
    let (after, b) = mean_and_error(&blocks[1]);
    (after - before).abs() > TIMES_APART * (a + b).sqrt()
}
