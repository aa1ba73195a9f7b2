//! The improvement factor, with a confidence interval.

use undertick_units::{Estimate, Interval};

use crate::long_run::student;

/// Blocks of consecutive samples, left out one at a time: long enough to contain the correlation of
/// neighbours, numerous enough for Student's t.
const BLOCKS: usize = 32;

/// Improvement factor k = variance of `uncorrected` / variance of `corrected`, with a confidence
/// interval. Both series are of the same intervals, in the order in which they were measured. The
/// confidence interval comes from the jackknife of ln k over 32 blocks of consecutive samples
/// (Miller 1974), because samples are neither independent nor normal. It is missing below two
/// samples a block. `None` if either series has no spread.
#[must_use]
pub fn improvement(uncorrected: &[f64], corrected: &[f64], level: f64) -> Option<Estimate> {
    assert_eq!(uncorrected.len(), corrected.len(), "the same intervals");
    let n = uncorrected.len();
    let (su, sc) = (squares(uncorrected), squares(corrected));
    let (total_u, total_c) = (sum(&su), sum(&sc));
    if !(total_u > 0.0 && total_c > 0.0) {
        return None;
    }
    let ln_k = (total_u / total_c).ln();
    let mut notes = Vec::new();
    let interval = if n < 2 * BLOCKS {
        notes.push(format!("fewer than {} samples: no interval", 2 * BLOCKS));
        Interval { lo: None, hi: None }
    } else {
        let pseudo = jackknife(&su, &sc, ln_k);
        let b = pseudo.len() as f64;
        let mean = sum(&pseudo) / b;
        let variance = sum(&squares(&pseudo)) / (b - 1.0);
        let half = student(level, b - 1.0) * (variance / b).sqrt();
        // Centred on the mean of the jackknife, which has less bias than ln k.
        // It holds ln k: of samples without scatter the two differ by what is rounded.
        Interval::new((mean - half).min(ln_k).exp(), (mean + half).max(ln_k).exp())
    };
    Some(Estimate {
        value: ln_k.exp(),
        interval,
        level,
        unit: "1".into(),
        method: "ratio of variances, block jackknife".into(),
        n: n as u64,
        n_effective: BLOCKS.min(n) as f64,
        notes,
    })
}

/// Returns the pseudo-values of ln k, with one block left out at a time.
fn jackknife(su: &[f64], sc: &[f64], ln_k: f64) -> Vec<f64> {
    let size = su.len() / BLOCKS;
    let (total_u, total_c) = (sum(su), sum(sc));
    (0..BLOCKS)
        .map(|b| {
            let end = if b + 1 == BLOCKS {
                su.len()
            } else {
                (b + 1) * size
            };
            let block = b * size..end;
            let (u, c) = (sum(&su[block.clone()]), sum(&sc[block]));
            // A block that contains all of the spread leaves nothing to compare without it.
            let without = if total_u - u > 0.0 && total_c - c > 0.0 {
                ((total_u - u) / (total_c - c)).ln()
            } else {
                ln_k
            };
            BLOCKS as f64 * ln_k - (BLOCKS - 1) as f64 * without
        })
        .collect()
}

/// Squared deviations from the mean.
fn squares(values: &[f64]) -> Vec<f64> {
    let mean = sum(values) / values.len().max(1) as f64;
    values.iter().map(|x| (x - mean) * (x - mean)).collect()
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

#[cfg(test)]
mod tests;
