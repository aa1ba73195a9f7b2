//! Joint estimation: figures that must add up, by generalised least squares.
//!
//! For estimates `y` with covariance `C`, and one more figure `b` with variance
//! `v` for the sum `a'x`, the least-squares estimate is
//! `x = y + C a (b - a'y) / (a'C a + v)` with covariance
//! `C - C a a'C / (a'C a + v)`: a diagonal that can only fall. Several
//! conditions are applied one after the other.
//!
//! Counts of one run add up to the cycle's count by construction, so the condition holds already
//! and changes nothing. It makes estimates sharper where the parts were counted in other cycles
//! than the whole, or where the whole is known better than its count shows, e.g. from contiguous
//! cycles.

/// Several estimates of one loop with their covariance.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    values: Vec<f64>,
    covariance: Vec<Vec<f64>>,
}

impl Joint {
    /// Takes independent estimates with these standard deviations.
    #[must_use]
    pub fn independent(values: &[f64], sds: &[f64]) -> Option<Self> {
        let mut covariance = vec![vec![0.0; values.len()]; values.len()];
        for (i, sd) in sds.iter().enumerate().take(values.len()) {
            covariance[i][i] = sd * sd;
        }
        (sds.len() == values.len()).then(|| Self {
            values: values.to_vec(),
            covariance,
        })
    }

    /// Takes estimates with that covariance; `None` unless it is square, symmetric and of matching
    /// size.
    #[must_use]
    pub fn with_covariance(values: &[f64], covariance: &[Vec<f64>]) -> Option<Self> {
        let n = values.len();
        let square = covariance.len() == n && covariance.iter().all(|row| row.len() == n);
        let symmetric = square
            && (0..n).all(|i| {
                (0..n).all(|j| {
                    let (a, b) = (covariance[i][j], covariance[j][i]);
                    (a - b).abs() <= 1e-9 * (a.abs() + b.abs())
                })
            });
        symmetric.then(|| Self {
            values: values.to_vec(),
            covariance: covariance.to_vec(),
        })
    }

    /// Returns the estimates.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the standard deviation of each.
    #[must_use]
    pub fn sds(&self) -> Vec<f64> {
        (0..self.values.len())
            .map(|i| self.covariance[i][i].max(0.0).sqrt())
            .collect()
    }

    /// Adds the condition that the sum of `weights` times the truth is `sum`, known with standard
    /// deviation `sd`. Returns how many standard deviations the estimates were off it: the test of
    /// consistency (0 if both are certain and agree). `None` if the number of weights differs from
    /// that of the estimates.
    pub fn constrain(&mut self, weights: &[f64], sum: f64, sd: f64) -> Option<f64> {
        if weights.len() != self.values.len() {
            return None;
        }
        let with: Vec<f64> = (self.covariance.iter())
            .map(|row| row.iter().zip(weights).map(|(c, w)| c * w).sum())
            .collect();
        let found: f64 = self.values.iter().zip(weights).map(|(y, w)| y * w).sum();
        let of_sum: f64 = with.iter().zip(weights).map(|(c, w)| c * w).sum();
        let off = sum - found;
        let variance = of_sum + sd * sd;
        if variance <= 0.0 {
            return Some(if off == 0.0 { 0.0 } else { f64::INFINITY });
        }
        for (i, gain) in with.iter().enumerate() {
            self.values[i] += gain * off / variance;
            for (j, other) in with.iter().enumerate() {
                self.covariance[i][j] -= gain * other / variance;
            }
        }
        Some(off / variance.sqrt())
    }
}

#[cfg(test)]
mod tests;
