//! Correlation and regression of two autocorrelated series.

/// A straight line through two series, and their correlation.
pub(super) struct Regression {
    mean: (f64, f64),
    pub(super) slope: f64,
    pub(super) correlation: f64,
    pub(super) p_value: f64,
}

impl Regression {
    /// `None` for fewer than six values, or for values that never change.
    ///
    /// The test is that of a correlation (Student). Its number of independent values is that of two
    /// series that change as slowly (Bartlett 1946: with the products of their correlations of
    /// neighbours).
    pub(super) fn fit(x: &[f64], y: &[f64]) -> Option<Self> {
        let n = x.len() as f64;
        let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
        let (mx, my) = (mean(x), mean(y));
        let sum = |f: &dyn Fn(f64, f64) -> f64| {
            (x.iter().zip(y))
                .map(|(x, y)| f(x - mx, y - my))
                .sum::<f64>()
        };
        let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
        if n < 6.0 || xx <= 0.0 || yy <= 0.0 {
            return None;
        }
        let correlation = xy / (xx * yy).sqrt();
        let neighbours = |v: &[f64], mean: f64, all: f64| {
            v.windows(2)
                .map(|w| (w[0] - mean) * (w[1] - mean))
                .sum::<f64>()
                / all
        };
        let both = (neighbours(x, mx, xx) * neighbours(y, my, yy)).max(0.0);
        let worth = n * (1.0 - both) / (1.0 + both);
        let degrees = (worth - 2.0).max(1.0);
        let t = correlation * (degrees / (1.0 - correlation.powi(2)).max(1e-12)).sqrt();
        Some(Self {
            mean: (mx, my),
            slope: xy / xx,
            correlation,
            p_value: undertick_estimate::student_beyond(t, degrees),
        })
    }

    pub(super) fn at(&self, x: f64) -> f64 {
        self.mean.1 + self.slope * (x - self.mean.0)
    }
}

/// More shifts than about this number do not improve the standard deviation.
const MAX_SHIFTS: usize = 1000;

/// By how many standard deviations the innovations of `y` agree with those of `x`: the differences
/// of each value from the prediction by its neighbour. `None` as for [`Slope::beside_drift`].
///
/// The standard deviation is that of the same sum with `x` shifted circularly against `y` by each
/// number of places from `apart` on. However `x` and `y` are autocorrelated, this is how well they
/// agree by chance. `y` counts by rank, so that a few large values decide nothing.
pub(super) fn deviations(x: &[f64], y: &[f64], apart: usize) -> Option<f64> {
    let y = ranks(y);
    let autocorrelation = Slope::with_autocorrelation(x, &y)?.1;
    let (x, y) = (
        centred(&innovations(x, autocorrelation)),
        centred(&innovations(&y, autocorrelation)),
    );
    let n = x.len();
    let shifted = |by: usize| -> f64 {
        let (late, early) = y.split_at(by);
        let turned = early.iter().chain(late);
        x.iter().zip(turned).map(|(x, y)| x * y).sum()
    };
    let places = apart..n.saturating_sub(apart);
    let each = (places.len() / MAX_SHIFTS).max(1);
    let others: Vec<f64> = places.step_by(each).map(shifted).collect();
    let square = others.iter().map(|sum| sum * sum).sum::<f64>() / others.len() as f64;
    (others.len() >= apart && square > 0.0).then(|| shifted(0) / square.sqrt())
}

/// Ranks of the values; equal ones share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for same in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let middle = before as f64 + (same.len() - 1) as f64 / 2.0;
        same.iter().for_each(|&at| ranks[at] = middle);
        before += same.len();
    }
    ranks
}

fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|v| v - mean).collect()
}

/// Innovations: the differences of each value from that share of the one before.
fn innovations(values: &[f64], autocorrelation: f64) -> Vec<f64> {
    values
        .windows(2)
        .map(|w| w[1] - autocorrelation * w[0])
        .collect()
}

/// A slope and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slope {
    pub(super) value: f64,
    pub(super) error: f64,
}

/// Values with a higher autocorrelation than this give hardly any information.
const MAX_AUTOCORRELATION: f64 = 0.98;
/// Enough iterations for the correlation and the slope to converge: each is found with the other.
const TURNS: usize = 8;

impl Slope {
    /// The slope of `y` on `x`, where the remainder of `y` drifts, so that neighbours are
    /// correlated. It comes from the difference of each value from the prediction by its neighbour
    /// (Cochrane and Orcutt 1949). The correlation of neighbours is that of the residuals plus its
    /// bias, (1 + 3 r) / n (Marriott and Pope 1954).
    ///
    /// A straight line attributes to `x` a drift that happens to go with it: on a machine that
    /// others slow down for seconds at a time it scatters 1.4 times as much.
    pub(super) fn beside_drift(x: &[f64], y: &[f64]) -> Option<Self> {
        Self::with_autocorrelation(x, y).map(|(slope, _)| slope)
    }

    /// As above, with the autocorrelation of the residuals.
    fn with_autocorrelation(x: &[f64], y: &[f64]) -> Option<(Self, f64)> {
        let n = x.len() as f64;
        let mut line = line(x, y)?;
        let mut autocorrelation = 0.0;
        for _ in 0..TURNS {
            let mut left: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - line.0 * x).collect();
            let mean = left.iter().sum::<f64>() / n;
            left.iter_mut().for_each(|e| *e -= mean);
            let all: f64 = left.iter().map(|e| e * e).sum();
            if all <= 0.0 {
                let slope = Self {
                    value: line.0,
                    error: 0.0,
                };
                return Some((slope, 0.0));
            }
            autocorrelation = left.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / all;
            autocorrelation = (autocorrelation + (1.0 + 3.0 * autocorrelation) / n)
                .clamp(0.0, MAX_AUTOCORRELATION);
            line = self::line(
                &innovations(x, autocorrelation),
                &innovations(y, autocorrelation),
            )?;
        }
        let slope = Self {
            value: line.0,
            error: line.1,
        };
        Some((slope, autocorrelation))
    }
}

/// Slope of a straight line by least squares, and its standard error; `None` where there are too
/// few values, or `x` never changes.
fn line(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let n = x.len() as f64;
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| f(x - mx, y - my)).sum()
    };
    let (xx, xy) = (sum(&|x, _| x * x), sum(&|x, y| x * y));
    if n < 5.0 || xx <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    let left = sum(&|x, y| (y - slope * x).powi(2));
    Some((slope, (left / (n - 3.0) / xx).sqrt()))
}

#[cfg(test)]
mod tests;
