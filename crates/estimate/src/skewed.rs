//! The effect of skewness on Student's interval, and its correction.

use statrs::distribution::{ContinuousCDF, Normal};

/// Third and fourth standardised moments of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    pub(crate) skewness: f64,
    /// Kurtosis less 3.
    pub(crate) excess: f64,
}

impl Shape {
    /// Computes the moments of values weighted by counts; all zero without spread.
    pub(crate) fn from_weighted(values: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let n: f64 = values.clone().map(|(_, count)| count).sum();
        // Relative to the first value, so that large values with little spread keep their digits.
        let Some(origin) = values.clone().next().map(|(x, _)| x) else {
            return Self::default();
        };
        let mean = values.clone().map(|(x, c)| c * (x - origin)).sum::<f64>() / n;
        let mut m = [0.0; 3];
        for (x, count) in values {
            let d = x - origin - mean;
            m[0] += count * d * d / n;
            m[1] += count * d * d * d / n;
            m[2] += count * d * d * d * d / n;
        }
        if m[0] <= 0.0 {
            return Self::default();
        }
        Self {
            skewness: m[1] / m[0].powf(1.5),
            excess: m[2] / (m[0] * m[0]) - 3.0,
        }
    }
}

/// The factor for the half-width of Student's interval, and the shift of its
/// centre in standard deviations of a single value over n.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mend {
    pub(crate) factor: f64,
    /// The shift in units of standard deviation / n.
    pub(crate) shift: f64,
}

/// Minimum number of values: the moments of fewer say too little.
pub(crate) const FEWEST: f64 = 10.0;
/// Maximum widening factor: beyond twice the width the expansion is no longer valid.
const WIDEST: f64 = 2.0;

/// Corrects Student's interval by the Edgeworth expansion of Student's t to order 1/n (Hall 1992,
/// *The Bootstrap and Edgeworth Expansion*, section 2.6). A two-sided interval misses by 2 z phi(z)
/// / n times k4 (z^2 - 3) / 12 - k3^2 (z^4 + 2 z^2 - 3) / 18 more often than a normal sample's, so
/// its quantile is moved by that. t has the mean -k3 / (2 sqrt n), by which the centre is moved.
/// `n` is the number of independent values.
pub(crate) fn mend(shape: Shape, n: f64, level: f64) -> Mend {
    if n < FEWEST {
        return Mend {
            factor: 1.0,
            shift: 0.0,
        };
    }
    // The cumulants of the mean are those of a value over root n and over n.
    let factor = mend_cumulants(shape.skewness / n.sqrt(), shape.excess / n, level);
    Mend {
        factor,
        shift: shape.skewness / 2.0,
    }
}

/// Returns the factor alone, from skewness and excess of the mean itself. The terms of the
/// expansion are cumulants of the mean and of its variance. These add up over independent samples,
/// so it also holds for differences of means.
pub(crate) fn mend_cumulants(skewness: f64, excess: f64, level: f64) -> f64 {
    let z = Normal::standard().inverse_cdf(0.5 + level / 2.0);
    let z2 = z * z;
    let missing =
        skewness * skewness * (z2 * z2 + 2.0 * z2 - 3.0) / 18.0 - excess * (z2 - 3.0) / 12.0;
    (1.0 + missing).clamp(1.0, WIDEST)
}

#[cfg(test)]
mod tests;
