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
mod tests {
    use super::Joint;

    /// Parts 1 and 2 with variances 1 and 3, whole 7 exactly: the missing 4 is shared 1:3, and the
    /// variances fall to 1 - 1/4 and 3 - 9/4.
    #[test]
    fn two_parts_by_hand() {
        let mut joint = Joint::independent(&[1.0, 2.0], &[1.0, 3f64.sqrt()]).unwrap();
        let off = joint.constrain(&[1.0, 1.0], 7.0, 0.0).unwrap();
        assert!((off - 2.0).abs() < 1e-12);
        assert!((joint.values()[0] - 2.0).abs() < 1e-12);
        assert!((joint.values()[1] - 5.0).abs() < 1e-12);
        let sds = joint.sds();
        assert!((sds[0].powi(2) - 0.75).abs() < 1e-12 && (sds[1].powi(2) - 0.75).abs() < 1e-12);
        // Once the sum holds, the same condition adds nothing.
        assert_eq!(joint.constrain(&[1.0, 1.0], 7.0, 0.0), Some(0.0));
    }

    /// The same where the whole has a variance of 9: a missing 4 with variance 1 + 3 + 9, of which
    /// each part takes its share.
    #[test]
    fn an_uncertain_whole_by_hand() {
        let mut joint = Joint::independent(&[1.0, 2.0], &[1.0, 3f64.sqrt()]).unwrap();
        let off = joint.constrain(&[1.0, 1.0], 7.0, 3.0).unwrap();
        assert!((off - 4.0 / 13f64.sqrt()).abs() < 1e-12);
        assert!((joint.values()[0] - (1.0 + 4.0 / 13.0)).abs() < 1e-12);
        assert!((joint.values()[1] - (2.0 + 12.0 / 13.0)).abs() < 1e-12);
        let sds = joint.sds();
        assert!((sds[0].powi(2) - (1.0 - 1.0 / 13.0)).abs() < 1e-12);
        assert!((sds[1].powi(2) - (3.0 - 9.0 / 13.0)).abs() < 1e-12);
    }

    /// Regression on a known mean: correlation 0.8 leaves 1 - 0.64.
    #[test]
    fn a_correlated_figure_of_known_mean() {
        let covariance = vec![vec![1.0, 0.8], vec![0.8, 1.0]];
        let mut joint = Joint::with_covariance(&[10.0, 5.0], &covariance).unwrap();
        joint.constrain(&[0.0, 1.0], 4.0, 0.0);
        assert!((joint.values()[0] - 9.2).abs() < 1e-12);
        assert!((joint.sds()[0].powi(2) - 0.36).abs() < 1e-12);
    }

    #[test]
    fn wrong_shapes_are_none() {
        assert_eq!(Joint::independent(&[1.0], &[]), None);
        assert_eq!(Joint::with_covariance(&[1.0], &[vec![1.0, 2.0]]), None);
        let lopsided = vec![vec![1.0, 0.5], vec![0.0, 1.0]];
        assert_eq!(Joint::with_covariance(&[1.0, 2.0], &lopsided), None);
    }
}
