//! The uncertainty of the mean of a correlated series.

use crate::beta;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Maximum number of batches for an interval: few enough to be long, enough for Student's t.
const AT_MOST: usize = 63;
/// Minimum number of batches: merging does not go below it.
const AT_LEAST: usize = 16;
/// Correlation of neighbours up to which the variance is corrected for it; above it the batches are
/// merged. At 0.2 the correction below is right within 2 % for exponentially falling correlations.
const CORRECTABLE: f64 = 0.2;
/// Standard errors from which a finer level's correlation is believed.
const BELIEVED: f64 = 2.0;
/// Standard errors from which the final level's own correlation rules that level out.
const FORBIDDEN: f64 = 2.33;
/// Maximum number of batches that an autoregression is fitted to.
const AUTOREGRESSED_AT_MOST: usize = 127;
/// Independent values below which a series is too short for its memory.
const FEWEST_INDEPENDENT: f64 = 10.0;

/// Variance of the mean of a series of batch means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadOfMean {
    /// Variance of the mean of all batches given.
    pub variance: f64,
    /// Degrees of freedom of `variance`.
    pub degrees: f64,
    /// Number of batches it was computed from.
    pub batches: usize,
    /// Correlation of neighbours that was corrected for, 0 if none.
    pub correlation: f64,
    /// The series is equivalent to fewer than ten independent values, so an interval of its mean
    /// cannot be trusted: `variance` is that of a whole batch mean, as if all batches were equal.
    pub too_short: bool,
}

impl SpreadOfMean {
    /// Returns half the width of the interval of that level.
    #[must_use]
    pub fn half_width(&self, level: f64) -> f64 {
        student(level, self.degrees) * self.variance.sqrt()
    }
}

/// Computes the variance of the mean of a stationary series from the means of consecutive batches
/// of equal size. `None` below two batches.
///
/// Neighbours are merged down to 16..=63 batches (non-overlapping batch means; Schmeiser 1982 shows
/// that more than about 30 gain little). A correlation that shows at a finer level, where many
/// batches make it visible, halves with each doubling once batches outlast it. Its remainder, r,
/// widens the variance by 1 + 2r, and forces further merging above 0.2. Where that leaves fewer
/// than 16 batches, a first-order autoregression of finer batches takes its place
/// (`autoregressed`).
#[must_use]
pub fn spread_of_mean(batch_means: &[f64]) -> Option<SpreadOfMean> {
    if batch_means.len() < 2 {
        return None;
    }
    let mut level = batch_means.to_vec();
    let mut expected = 0.0_f64;
    let mut by_autoregression = None;
    loop {
        let b = level.len();
        let (variance, r) = variance_and_lag1(&level);
        if b <= AUTOREGRESSED_AT_MOST && by_autoregression.is_none() {
            by_autoregression = Some(autoregressed(b, variance, r));
        }
        let strength = r * (b as f64).sqrt();
        let fits = b <= AT_MOST && expected <= CORRECTABLE;
        if (fits && strength <= FORBIDDEN) || b < AT_LEAST {
            return Some(SpreadOfMean {
                variance: variance / b as f64 * (1.0 + 2.0 * expected),
                degrees: (b - 1) as f64,
                batches: b,
                correlation: expected,
                too_short: false,
            });
        }
        if b / 2 < AT_LEAST {
            return by_autoregression.flatten().or(Some(SpreadOfMean {
                variance,
                degrees: (b - 1) as f64,
                batches: b,
                correlation: r,
                too_short: true,
            }));
        }
        if strength > BELIEVED {
            expected = expected.max(r);
        }
        expected /= 2.0;
        level = level.chunks_exact(2).map(|p| (p[0] + p[1]) / 2.0).collect();
    }
}

/// The spread of the mean of `b` batches of this variance and lag-1 correlation, as a first-order
/// autoregression. `None` where they are equivalent to fewer than ten independent values.
///
/// The correlation is corrected for its bias (Kendall 1954: r estimates
/// phi - (1 + 3 phi) / b). The variance of the mean is f / b times that of a batch,
/// f = 1 + 2 sum (1 - k/b) phi^k (Bayley and Hammersley 1946), and that of a batch
/// (b - 1) / (b - f) times the one about the sample's own mean. The degrees of freedom
/// are those of b / f values, less for the error of phi in f.
fn autoregressed(b: usize, variance: f64, r: f64) -> Option<SpreadOfMean> {
    let n = b as f64;
    let phi = ((r + 1.0 / n) / (1.0 - 3.0 / n)).max(0.0);
    if b < AT_LEAST || phi >= 1.0 || n * (1.0 - phi) / (1.0 + phi) < FEWEST_INDEPENDENT {
        return None;
    }
    let ends = 2.0 * phi * (1.0 - phi.powf(n)) / (n * (1.0 - phi) * (1.0 - phi));
    let f = (1.0 + phi) / (1.0 - phi) - ends;
    // d ln f / d phi is about 2 / (1 - phi^2); the variance of phi (1 - phi^2) / b.
    let of_f = 4.0 / ((1.0 - phi * phi) * n);
    Some(SpreadOfMean {
        variance: variance * (n - 1.0) / (n - f) * f / n,
        degrees: 2.0 / (2.0 / (n / f - 1.0) + of_f),
        batches: b,
        correlation: phi,
        too_short: false,
    })
}

/// Returns whether a series of batch means shows any correlation, at any scale down to 16 batches:
/// 2.6 standard errors, 1 false alarm in 200 per scale.
pub(crate) fn is_correlated(batch_means: &[f64]) -> bool {
    let mut level = batch_means.to_vec();
    while level.len() >= AT_LEAST {
        let (_, r) = variance_and_lag1(&level);
        if r * (level.len() as f64).sqrt() > 2.6 {
            return true;
        }
        level = level.chunks_exact(2).map(|p| (p[0] + p[1]) / 2.0).collect();
    }
    false
}

/// Unbiased variance and lag-1 correlation (0 without spread).
pub(crate) fn variance_and_lag1(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    let products: f64 = values
        .windows(2)
        .map(|w| (w[0] - mean) * (w[1] - mean))
        .sum();
    let r = if squares > 0.0 {
        products / squares
    } else {
        0.0
    };
    (squares / (n - 1.0), r)
}

/// Two-sided quantile of Student's t.
pub(crate) fn student(level: f64, degrees: f64) -> f64 {
    if degrees >= 1e6 {
        return normal(level);
    }
    beta::student_quantile(degrees, 0.5 + level / 2.0)
}

/// Returns the probability that Student's t with these degrees of freedom exceeds `t`.
#[must_use]
pub fn student_beyond(t: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::NAN, |student| student.sf(t))
}

/// Half-width, in standard deviations, of a normal confidence interval of that level: 1.96 for
/// 0.95.
#[must_use]
pub fn normal_quantile(level: f64) -> f64 {
    normal(level)
}

/// Two-sided quantile of the normal distribution.
pub(crate) fn normal(level: f64) -> f64 {
    Normal::standard().inverse_cdf(0.5 + level / 2.0)
}

#[cfg(test)]
mod tests;
