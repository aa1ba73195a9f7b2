//! Count, sum, mean, variance and extremes.

use serde::{Deserialize, Serialize};

/// Count, exact sum, variance, minimum and maximum of integer values.
///
/// Sums are integers (128 bits), relative to the first value, so that the mean
/// is exact and the variance does not suffer from large offsets. The variance
/// is merged pairwise (Chan, Golub and LeVeque 1983, eq. 1.5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    n: u64,
    origin: i64,
    /// Sum of `x - origin`, exact.
    sum: i128,
    /// Sum of squared deviations from the mean.
    m2: f64,
    min: i64,
    max: i64,
}

impl Moments {
    /// Returns the moments of no values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the moments of these values.
    #[must_use]
    #[inline(always)] // for the instructions of the caller
    pub fn from_values(values: &[i64]) -> Self {
        let Some(&origin) = values.first() else {
            return Self::default();
        };
        let (min, max) = values
            .iter()
            .fold((origin, origin), |(lo, hi), &x| (lo.min(x), hi.max(x)));
        let n = values.len() as u64;
        // Deviations below 2^46 make the integer sum of 2^16 values exact in
        // 64 bits, which is several times faster than in 128.
        let near = max.checked_sub(min).is_some_and(|w| w < 1 << 46) && values.len() <= 1 << 16;
        let sum = if near {
            i128::from(values.iter().map(|&x| x - origin).sum::<i64>())
        } else {
            values
                .iter()
                .map(|&x| i128::from(x) - i128::from(origin))
                .sum()
        };
        // 2^16 squares below 2^46 fit 64 bits: exact, and several times faster still.
        let narrow = near && max - min < 1 << 23;
        let mean = sum as f64 / n as f64;
        let square = |d: f64| (d - mean) * (d - mean);
        let m2 = if narrow {
            let squares: i64 = values.iter().map(|&x| (x - origin) * (x - origin)).sum();
            (i128::from(squares) * i128::from(n) - sum * sum) as f64 / n as f64
        } else if near {
            values.iter().map(|&x| square((x - origin) as f64)).sum()
        } else {
            values
                .iter()
                .map(|&x| square((i128::from(x) - i128::from(origin)) as f64))
                .sum()
        };
        Self {
            n,
            origin,
            sum,
            m2,
            min,
            max,
        }
    }

    /// Adds one value.
    pub fn push(&mut self, value: i64) {
        self.merge(&Self::from_values(&[value]));
    }

    /// Adds these values.
    pub fn extend(&mut self, values: &[i64]) {
        self.merge(&Self::from_values(values));
    }

    /// Adds the values that another has seen.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        if self.n == 0 {
            *self = other.clone();
            return;
        }
        let (a, b) = (self.n as f64, other.n as f64);
        let between = i128::from(other.origin) - i128::from(self.origin);
        let delta = between as f64 + other.sum as f64 / b - self.sum as f64 / a;
        self.m2 += other.m2 + delta * delta * (a * b / (a + b));
        self.sum += other.sum + between * i128::from(other.n);
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the moments of the same values, each plus `delta` (saturating at the ends of `i64`).
    #[must_use]
    pub fn shifted(&self, delta: i64) -> Self {
        Self {
            origin: self.origin.saturating_add(delta),
            min: self.min.saturating_add(delta),
            max: self.max.saturating_add(delta),
            ..self.clone()
        }
    }

    /// Returns the number of values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Returns the exact sum.
    #[must_use]
    pub fn sum(&self) -> i128 {
        self.sum + i128::from(self.origin) * i128::from(self.n)
    }

    /// Returns the mean; `None` for no values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        // Quotient and remainder, so that no large sum is rounded first.
        let n = i128::from(self.n);
        (self.n > 0).then(|| {
            let sum = self.sum();
            sum.div_euclid(n) as f64 + sum.rem_euclid(n) as f64 / n as f64
        })
    }

    /// Returns the unbiased variance; `None` below two values.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        (self.n > 1).then(|| self.m2 / (self.n - 1) as f64)
    }

    /// Returns the standard deviation; `None` below two values.
    #[must_use]
    pub fn sd(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Returns the smallest value; `None` for no values.
    #[must_use]
    pub fn min(&self) -> Option<i64> {
        (self.n > 0).then_some(self.min)
    }

    /// Returns the largest value; `None` for no values.
    #[must_use]
    pub fn max(&self) -> Option<i64> {
        (self.n > 0).then_some(self.max)
    }
}

#[cfg(test)]
mod tests;
