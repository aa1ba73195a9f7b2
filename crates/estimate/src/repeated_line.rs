//! A straight line through points that were each measured in every repetition.

use undertick_units::Estimate;

use crate::beta;
use crate::numbers::Numbers;

/// `y = intercept + slope * x`, fitted separately in each repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatedLine {
    /// The slope, in units of `y` per unit of `x`.
    pub slope: Estimate,
    /// `y` at `x = 0`.
    pub intercept: Estimate,
    /// Whether the points lie on a line; `None` with two points.
    pub lack_of_fit: Option<LackOfFit>,
}

/// How far the points are from the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LackOfFit {
    /// Probability of points as far from the line as these, if the truth lies on a line.
    pub p: f64,
    /// The `x` of the point that is farthest from the line, as a share of the line's value there.
    pub worst_x: f64,
    /// Its distance from the line, as a share of the line's value there.
    pub worst_share: f64,
}

/// Minimum number of repetitions: a point is weighed by its scatter between them.
const FEWEST_REPETITIONS: usize = 4;

/// Fits the line through points `(x, y in each repetition)`, with the same repetitions for all
/// points. Each repetition gives a line by weighted least squares. The estimate is their median
/// with the interval of its order statistics (their mean with Student's interval below six), so it
/// includes what repetitions differ by. A point has the inverse square of its mean as weight, so
/// that large values, which scatter more, do not decide alone. `None` with fewer than two different
/// `x` or fewer than four repetitions, or with unequal numbers of them.
///
/// Lack of fit is an F test of the mean distances from the line against the scatter of each point
/// between repetitions. Its variance is itself estimated, from `R` repetitions, which makes the
/// squares `(R-1)/(R-3)` times as large on average; the test divides by this factor.
///
/// ```
/// use undertick_estimate::repeated_line;
///
/// let points: Vec<(f64, Vec<f64>)> = (1..6)
///     .map(|i| {
///         let x = f64::from(i);
///         (x, (0..8).map(|r| 3.0 + 2.0 * x + 0.01 * f64::from(r * (i + 3) % 7 - 3)).collect())
///     })
///     .collect();
/// let line = repeated_line(&points, 0.95).unwrap();
/// assert!((line.slope.value - 2.0).abs() < 0.02);
/// assert!(line.lack_of_fit.unwrap().worst_share < 0.01);
/// ```
#[must_use]
pub fn repeated_line(points: &[(f64, Vec<f64>)], level: f64) -> Option<RepeatedLine> {
    let repetitions = points.first()?.1.len();
    let whole = (points.iter())
        .all(|(x, y)| x.is_finite() && y.len() == repetitions && y.iter().all(|y| y.is_finite()));
    if repetitions < FEWEST_REPETITIONS || !whole {
        return None;
    }
    let x: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    let weights = weights(points);
    let fits = (0..repetitions)
        .map(|r| {
            let y: Vec<f64> = points.iter().map(|(_, y)| y[r]).collect();
            fit(&x, &y, &weights)
        })
        .collect::<Option<Vec<_>>>()?;
    let over = |of: fn(&(f64, f64)) -> f64| {
        let numbers = Numbers::new(fits.iter().map(of).collect());
        let median = numbers.quantile(0.5, level)?;
        match median.interval.half_width() {
            Some(_) => Some(median),
            None => numbers.mean(level),
        }
    };
    Some(RepeatedLine {
        slope: over(|fit| fit.0)?,
        intercept: over(|fit| fit.1)?,
        lack_of_fit: lack_of_fit(points, &fits),
    })
}

/// Weights: the inverse square of each point's mean, since durations scatter about in proportion to
/// their length. Weights from the scatter itself would fit what they weigh, and the lines would
/// differ less between repetitions than their error: 91 % intervals instead of 95 %.
fn weights(points: &[(f64, Vec<f64>)]) -> Vec<f64> {
    let means: Vec<f64> = points.iter().map(|(_, y)| mean(y).abs()).collect();
    let least = means.iter().copied().fold(0.0, f64::max) * 1e-6;
    let least = least.max(f64::MIN_POSITIVE.sqrt());
    means.iter().map(|m| m.max(least).powi(-2)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Slope and intercept by weighted least squares, relative to the weighted means, so that large `x`
/// keep their digits.
fn fit(x: &[f64], y: &[f64], weights: &[f64]) -> Option<(f64, f64)> {
    let total: f64 = weights.iter().sum();
    let middle =
        |values: &[f64]| values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>() / total;
    let (x_mean, y_mean) = (middle(x), middle(y));
    let mut sums = (0.0, 0.0);
    for ((x, y), w) in x.iter().zip(y).zip(weights) {
        sums.0 += w * (x - x_mean).powi(2);
        sums.1 += w * (x - x_mean) * (y - y_mean);
    }
    let slope = sums.1 / sums.0;
    (slope.is_finite()).then_some((slope, y_mean - slope * x_mean))
}

fn lack_of_fit(points: &[(f64, Vec<f64>)], fits: &[(f64, f64)]) -> Option<LackOfFit> {
    let repetitions = fits.len() as f64;
    let free = points.len().checked_sub(2).filter(|&free| free > 0)? as f64;
    let line = |x: f64| {
        let values: Vec<f64> = fits
            .iter()
            .map(|(slope, level)| level + slope * x)
            .collect();
        mean(&values)
    };
    let mut squares = 0.0;
    let (mut worst_x, mut worst_share) = (points[0].0, 0.0);
    for (x, y) in points {
        let off = mean(y) - line(*x);
        // A point that never differs decides the test alone if the line misses it.
        squares += repetitions * off.powi(2) / variance(y).max(f64::MIN_POSITIVE);
        let share = (off / line(*x)).abs();
        if share > worst_share {
            (worst_x, worst_share) = (*x, share);
        }
    }
    let f = squares / free * (repetitions - 3.0) / (repetitions - 1.0);
    let within = points.len() as f64 * (repetitions - 1.0);
    if !(free > 0.0 && within > 0.0) {
        return None;
    }
    Some(LackOfFit {
        p: beta::fisher_sf(f.min(f64::MAX), free, within),
        worst_x,
        worst_share,
    })
}

#[cfg(test)]
mod tests;
