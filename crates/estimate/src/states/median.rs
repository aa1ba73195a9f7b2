//! The median of samples that come in blocks.

use undertick_units::{Estimate, Interval};

use super::block;
use crate::long_run::student;

/// Fewest blocks for an interval.
pub(super) const FEWEST_BLOCKS: usize = 4;

/// The median of these samples, with the interval that the scatter between their blocks gives
/// (Woodruff 1952): the share below the median is a ratio of sums over blocks, and the values at
/// the bounds of that share bound the median. `None` where there are too few blocks.
pub(super) fn median(
    values: &[f64],
    samples: &[usize],
    level: f64,
    unit: &str,
) -> Option<Estimate> {
    let mut sorted: Vec<f64> = samples.iter().map(|&at| values[at]).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let value = match n {
        0 => return None,
        n if n % 2 == 0 => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        n => sorted[n / 2],
    };
    // Per block: samples, and those below; half of those that equal it.
    let mut blocks: Vec<(usize, f64, f64)> = Vec::new();
    for &at in samples {
        let here = block(at, values.len());
        let below = match values[at].total_cmp(&value) {
            std::cmp::Ordering::Less => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 0.0,
        };
        match blocks.last_mut() {
            Some((block, count, sum)) if *block == here => {
                *count += 1.0;
                *sum += below;
            }
            _ => blocks.push((here, 1.0, below)),
        }
    }
    let b = blocks.len();
    if b < FEWEST_BLOCKS {
        return None;
    }
    let squares: f64 = (blocks.iter())
        .map(|(_, count, below)| (below - 0.5 * count).powi(2))
        .sum();
    let variance = squares / (n as f64 * n as f64) * b as f64 / (b - 1) as f64;
    let half = student(level, (b - 1) as f64) * variance.sqrt();
    let at_share = |share: f64| {
        let rank = share * n as f64;
        let inside = (0.0..n as f64).contains(&rank);
        inside.then(|| sorted[(rank as usize).min(n - 1)])
    };
    Some(Estimate {
        value,
        interval: Interval {
            lo: at_share(0.5 - half),
            hi: at_share(0.5 + half),
        },
        level,
        unit: unit.to_owned(),
        method: "order statistics over blocks of time".to_owned(),
        n: n as u64,
        n_effective: (0.25 / variance.max(f64::MIN_POSITIVE)).min(n as f64),
        notes: Vec::new(),
    })
}
