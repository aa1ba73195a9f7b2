//! A straight line through points measured in order.

use undertick_units::{Estimate, Interval};

use crate::batches::batch_size;
use crate::long_run::{spread_of_mean, student};

/// `y = intercept + slope * x`, by least squares.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The slope, in units of `y` per unit of `x`.
    pub slope: Estimate,
    /// `y` at `x = 0`.
    pub intercept: Estimate,
}

/// Minimum number of points for a line with intervals.
const FEWEST: usize = 4;

/// Fits a line through points in the order in which they were measured. Residuals may be correlated
/// with their neighbours and may scatter more in places. The confidence intervals are therefore a
/// jackknife over blocks of points, each left out in turn. There are as many blocks as leave the
/// influence of the points on the line uncorrelated between them (as [`spread_of_mean`] finds it).
/// The degrees of freedom count the blocks by their weight (Satterthwaite). `None` if `x` and `y`
/// are of unequal length, or with fewer than two different `x`; without intervals below four
/// points.
///
/// A bend in the line (a drift that is not straight) appears as correlation and widens the interval
/// as far as it shows between blocks.
///
/// ```
/// use undertick_estimate::line;
///
/// let x: Vec<f64> = (0..100).map(f64::from).collect();
/// let y: Vec<f64> = x.iter().map(|x| 3.0 + 2.0 * x + (x * 37.0 % 10.0) - 4.5).collect();
/// let found = line(&x, &y, 0.95).unwrap();
/// assert!((found.slope.value - 2.0).abs() < 0.02);
/// assert!(found.slope.interval.half_width().unwrap() < 0.05);
/// ```
#[must_use]
pub fn line(x: &[f64], y: &[f64], level: f64) -> Option<Line> {
    if x.len() != y.len() {
        return None;
    }
    // Relative to the means: large x with little spread keep their digits.
    let n = x.len() as f64;
    let (x_mean, y_mean) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let points: Vec<(f64, f64)> = (x.iter().zip(y))
        .map(|(x, y)| (x - x_mean, y - y_mean))
        .collect();
    let sums = Sums::from_points(&points);
    let (slope, level_at_mean) = sums.fit()?;
    // In centred coordinates the required intercept is the level at -x_mean.
    let fit = Fit {
        points: &points,
        sums,
        slope,
        level_at_mean,
    };
    let method = "least squares, jackknife of blocks";
    Some(Line {
        slope: fit.estimate(|slope, _| slope, |x, sums| x / sums.xx, level, method),
        intercept: {
            let mut e = fit.estimate(
                move |slope, at_mean| at_mean - slope * x_mean,
                move |x, sums| 1.0 / sums.n - x_mean * x / sums.xx,
                level,
                method,
            );
            e.value += y_mean;
            e.interval.lo = e.interval.lo.map(|lo| lo + y_mean);
            e.interval.hi = e.interval.hi.map(|hi| hi + y_mean);
            e
        },
    })
}

/// Sums over points.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Sums {
    fn from_points(points: &[(f64, f64)]) -> Self {
        points.iter().fold(Self::default(), |s, &(x, y)| Self {
            n: s.n + 1.0,
            x: s.x + x,
            y: s.y + y,
            xx: s.xx + x * x,
            xy: s.xy + x * y,
        })
    }

    fn less(self, other: Self) -> Self {
        Self {
            n: self.n - other.n,
            x: self.x - other.x,
            y: self.y - other.y,
            xx: self.xx - other.xx,
            xy: self.xy - other.xy,
        }
    }

    /// Returns the slope, and y at x = 0; `None` without two different x.
    fn fit(self) -> Option<(f64, f64)> {
        let spread = self.xx - self.x * self.x / self.n;
        if self.n < 2.0 || spread.is_nan() || spread <= self.xx * 1e-14 {
            return None;
        }
        let slope = (self.xy - self.x * self.y / self.n) / spread;
        Some((slope, (self.y - slope * self.x) / self.n))
    }
}

/// A line in coordinates relative to the means of its points.
struct Fit<'a> {
    points: &'a [(f64, f64)],
    sums: Sums,
    slope: f64,
    level_at_mean: f64,
}

impl Fit<'_> {
    /// Estimates `figure` of slope and level; `weight` is what one unit of y at x adds to it.
    fn estimate(
        &self,
        figure: impl Fn(f64, f64) -> f64,
        weight: impl Fn(f64, &Sums) -> f64,
        level: f64,
        method: &str,
    ) -> Estimate {
        let n = self.points.len();
        let value = figure(self.slope, self.level_at_mean);
        let mut estimate = Estimate {
            value,
            interval: Interval { lo: None, hi: None },
            level,
            unit: "1".into(),
            method: method.into(),
            n: n as u64,
            n_effective: n as f64,
            notes: Vec::new(),
        };
        if n < FEWEST {
            (estimate.notes).push(format!("fewer than {FEWEST} points: no interval"));
            return estimate;
        }
        // The influence of each point on the figure, in batches.
        let influence: Vec<f64> = (self.points.chunks_exact(batch_size(n)))
            .map(|chunk| {
                (chunk.iter())
                    .map(|&(x, y)| weight(x, &self.sums) * (y - self.at(x)))
                    .sum()
            })
            .collect();
        let Some(spread) = spread_of_mean(&influence) else {
            return estimate;
        };
        let blocks = spread.batches;
        let block = |j: usize| &self.points[n * j / blocks..n * (j + 1) / blocks];
        let mut squares = 0.0;
        let (mut weights, mut fourths) = (0.0_f64, 0.0_f64);
        for j in 0..blocks {
            let Some((slope, at_mean)) = self.sums.less(Sums::from_points(block(j))).fit() else {
                (estimate.notes).push("the line rests on one block: no interval".into());
                return estimate;
            };
            squares += (figure(slope, at_mean) - value).powi(2);
            let of_block: f64 = (block(j).iter())
                .map(|&(x, _)| weight(x, &self.sums).powi(2))
                .sum();
            weights += of_block;
            fourths += of_block * of_block;
        }
        let b = blocks as f64;
        let mut variance = squares * (b - 1.0) / b;
        if spread.too_short {
            variance *= b;
            (estimate.notes).push("too few points for the correlation of their residuals: the interval is that of one block".into());
        } else if spread.correlation > 0.0 {
            variance *= 1.0 + 2.0 * spread.correlation;
            (estimate.notes).push(format!(
                "widened for a correlation of {:.2} left between blocks",
                spread.correlation
            ));
        }
        let degrees = (weights * weights / fourths - 1.0).max(1.0);
        let half = student(level, degrees) * variance.sqrt();
        estimate.interval = Interval::new(value - half, value + half);
        estimate.n_effective = (n as f64).min(self.independent(&weight) / variance);
        estimate
    }

    fn at(&self, x: f64) -> f64 {
        self.level_at_mean + self.slope * x
    }

    /// Returns n times the variance that the figure would have with independent residuals.
    fn independent(&self, weight: &impl Fn(f64, &Sums) -> f64) -> f64 {
        let squares = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            self.points.iter().map(|&(x, y)| of(x, y).powi(2)).sum()
        };
        let residual = squares(&|x, y| y - self.at(x)) / (self.sums.n - 2.0);
        self.sums.n * residual * squares(&|x, _| weight(x, &self.sums))
    }
}

#[cfg(test)]
mod tests;
