//! The median of samples that come in blocks.

use std::cmp::Ordering;

use undertick_units::{Estimate, Interval};

use super::{BLOCKS, block};
use crate::spread_over_time;

/// Fewest blocks for an interval.
pub(super) const FEWEST_BLOCKS: usize = 4;
/// Slices of a block: what neighbours have in common shows in them.
const SLICES: usize = 16;
/// Why an interval is open.
const ALIKE: &str =
    "calls that follow each other are alike for too long: the run is short for an interval";

/// The median of these samples, with the interval that the scatter between slices of their blocks gives
/// (Woodruff 1952): the share below the median is a ratio of sums over slices, whose correlation is that of a
/// series ([`spread_over_time`]), and the values at the bounds of that share bound the median. The interval
/// is open where neighbours are alike for so long that there are fewer than ten independent stretches;
/// `None` where there are too few blocks.
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
    // Per slice of the blocks that have any: samples, and those below; half of those that equal it.
    let (mut counts, mut belows, mut last) = (Vec::new(), Vec::new(), None);
    for &at in samples {
        let here = block(at, values.len());
        if last.replace(here) != Some(here) {
            counts.resize(counts.len() + SLICES, 0.0);
            belows.resize(belows.len() + SLICES, 0.0);
        }
        let slice = counts.len() - SLICES + at * BLOCKS * SLICES / values.len() % SLICES;
        counts[slice] += 1.0;
        belows[slice] += match values[at].total_cmp(&value) {
            Ordering::Less => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Greater => 0.0,
        };
    }
    if counts.len() < FEWEST_BLOCKS * SLICES {
        return None;
    }
    let spread = spread_over_time(&counts, &belows)?;
    let half = match spread.too_short {
        true => f64::INFINITY,
        false => spread.half_width(level),
    };
    let variance = spread.variance;
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
        method: "order statistics over slices of time".to_owned(),
        n: n as u64,
        n_effective: (0.25 / variance.max(f64::MIN_POSITIVE)).min(n as f64),
        notes: match spread.too_short {
            true => vec![ALIKE.to_owned()],
            false => Vec::new(),
        },
    })
}
