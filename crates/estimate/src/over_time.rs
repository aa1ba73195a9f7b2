//! The uncertainty of a mean, from slices of time.

use crate::long_run::{SpreadOfMean, spread_of_mean};

/// Minimum number of slices that are not empty: fewer say nothing.
const FEWEST: usize = 16;

/// Spread of the mean of values that fell into equal slices of time: `counts[i]` values, with the
/// sum `sums[i]`, in slice i. `None` where fewer than 16 slices contain values.
///
/// A ratio estimate: its residuals, sum less mean times count, are a series in time (Cochran,
/// *Sampling Techniques*, 3rd ed., eq. 6.10). Their correlation is treated as that of any series.
/// Whatever slows several threads at once lies in the same slices, so this shows what a single
/// thread cannot.
///
/// # Panics
/// If `counts` and `sums` differ in length.
#[must_use]
pub fn spread_over_time(counts: &[f64], sums: &[f64]) -> Option<SpreadOfMean> {
    assert_eq!(counts.len(), sums.len(), "a sum for each count");
    let held = counts.iter().filter(|&&count| count > 0.0).count();
    if held < FEWEST {
        return None;
    }
    let (n, sum): (f64, f64) = (counts.iter().sum(), sums.iter().sum());
    let mean = sum / n;
    let residuals: Vec<f64> = (counts.iter().zip(sums))
        .map(|(count, sum)| sum - mean * count)
        .collect();
    let spread = spread_of_mean(&residuals)?;
    let per_value = residuals.len() as f64 / n;
    Some(SpreadOfMean {
        variance: spread.variance * per_value * per_value,
        ..spread
    })
}

#[cfg(test)]
mod tests;
