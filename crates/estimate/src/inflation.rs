//! How much more an indicator scatters than one of independent values.

use crate::long_run::{is_correlated, normal, spread_of_mean};

/// Number of values below which they say nothing about their autocorrelation.
pub(crate) const FEW: u64 = 16;

/// Variance inflation of an indicator, and the penalty for having estimated it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inflation {
    pub(crate) variance: f64,
    /// Student's quantile over the normal one.
    pub(crate) quantile_ratio: f64,
    /// As [`SpreadOfMean::too_short`](crate::SpreadOfMean::too_short): there is no interval.
    pub(crate) too_short: bool,
}

/// Computes the inflation of an indicator from its shares in consecutive batches of `size` values:
/// how much more its mean scatters than that of independent values. `None` if no correlation shows.
pub(crate) fn inflation(shares: &[f64], size: f64, level: f64) -> Option<Inflation> {
    let b = shares.len() as f64;
    if shares.len() < FEW as usize {
        return None;
    }
    let share = shares.iter().sum::<f64>() / b;
    let independent = share * (1.0 - share) / size;
    if independent <= 0.0 {
        return None;
    }
    let (variance, _) = crate::long_run::variance_and_lag1(shares);
    let excess = (variance / independent - 1.0) * (b / 2.0).sqrt();
    if !(size > 1.0 && excess > 2.6 || is_correlated(shares)) {
        return None;
    }
    let spread = spread_of_mean(shares)?;
    let student = spread.half_width(level) / spread.variance.sqrt();
    Some(Inflation {
        variance: (spread.variance * b / independent).max(1.0),
        quantile_ratio: student / normal(level),
        too_short: spread.too_short,
    })
}
