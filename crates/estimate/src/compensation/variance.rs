//! The variance of a result corrected by pairs, from standard deviations and correlations (eq. 2, 4
//! and 5), and the estimation of these from data.

use super::correction::Paired;

/// Standard deviations of the parts of a measurement, ticks: `s1` of the pair
/// before, `s2` from the starting sample to the work, `s3` from the work to
/// the ending sample, `s4` of the pair after.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Spread {
    pub s1: f64,
    pub s2: f64,
    pub s3: f64,
    pub s4: f64,
}

/// Eq. 2: variance of `tm - (t1 + t4) / 2`, ticks squared, from the spreads and
/// the correlations r12, r13, r14, r23, r24, r34 in that order. Eq. 4 is this
/// with s1 = s4 = s and s2 = s3 = s/2.
#[must_use]
pub fn variance_of_pairs(s: &Spread, [r12, r13, r14, r23, r24, r34]: [f64; 6]) -> f64 {
    s.s2 * s.s2 + s.s3 * s.s3 + (s.s1 * s.s1 + s.s4 * s.s4) / 4.0 + 2.0 * r23 * s.s2 * s.s3
        - r12 * s.s1 * s.s2
        - r13 * s.s1 * s.s3
        - r24 * s.s2 * s.s4
        - r34 * s.s3 * s.s4
        + r14 * s.s1 * s.s4 / 2.0
}

/// Eq. 5 for spreads that need not agree, ticks squared: intervals so short that T2 + T3 is one
/// time. With all three spreads s it is s^2 (1.5 - r13 - r34 + r14 / 2).
#[must_use]
pub fn variance_of_pairs_short(c: &Correlations) -> f64 {
    c.s3 * c.s3 + (c.s1 * c.s1 + c.s4 * c.s4) / 4.0 - c.r13 * c.s1 * c.s3 - c.r34 * c.s3 * c.s4
        + c.r14 * c.s1 * c.s4 / 2.0
}

/// Spreads (ticks) and correlations of T1, T3 = T2 + T3 and T4 as observed around nothing, and the
/// part of the correlations that the clock's step causes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Correlations {
    /// Spread of the pairs before.
    pub s1: f64,
    /// Spread of the intervals around nothing.
    pub s3: f64,
    /// Spread of the pairs after.
    pub s4: f64,
    /// Correlation of the pair before with the interval.
    pub r13: f64,
    /// Correlation of the interval with the pair after.
    pub r34: f64,
    /// Correlation of both pairs.
    pub r14: f64,
    /// The part of r13 that neighbours sharing a reading of a stepping clock have by construction:
    /// -d^2 / (12 s1 s3), at most half. It is 0 where pairs were sampled by another thread, which
    /// shares no reading.
    pub r13_by_step: f64,
    /// The same part of r34.
    pub r34_by_step: f64,
}

impl Correlations {
    /// Estimates them from intervals around nothing; `granularity` is the clock's step in ticks,
    /// `shared` says whether pairs share readings with the interval.
    #[must_use]
    pub fn from_samples(samples: &[Paired], granularity: f64, shared: bool) -> Self {
        let n = samples.len() as f64;
        if n < 2.0 {
            return Self::default();
        }
        let mean = [|s: &Paired| s.t1, |s: &Paired| s.tm, |s: &Paired| s.t4]
            .map(|part| samples.iter().map(part).sum::<f64>() / n);
        let mut c = [[0.0; 3]; 3];
        for s in samples {
            let d = [s.t1 - mean[0], s.tm - mean[1], s.t4 - mean[2]];
            for i in 0..3 {
                for j in i..3 {
                    c[i][j] += d[i] * d[j] / (n - 1.0);
                }
            }
        }
        // Rounding residue of values that all agree is not a spread.
        let spread = |i: usize| {
            let sd: f64 = f64::sqrt(c[i][i]);
            if sd > 1e-12 * mean[i].abs() { sd } else { 0.0 }
        };
        let (s1, s3, s4) = (spread(0), spread(1), spread(2));
        // Rounding may put the correlation of equal pairs above 1.
        let ratio = |c: f64, a: f64, b: f64| match a * b > 0.0 {
            true => (c / (a * b)).clamp(-1.0, 1.0),
            false => 0.0,
        };
        // Independent errors alone make every variance at least d^2/6. A series below that has its
        // phase locked to the step, and shares no more than that.
        let step = granularity;
        let by_step = |a: f64, b: f64| match a * b > 0.0 {
            true if shared => -(step * step / 12.0) / f64::max(a * b, step * step / 6.0),
            _ => 0.0,
        };
        Self {
            s1,
            s3,
            s4,
            r13: ratio(c[0][1], s1, s3),
            r34: ratio(c[1][2], s3, s4),
            r14: ratio(c[0][2], s1, s4),
            r13_by_step: by_step(s1, s3),
            r34_by_step: by_step(s3, s4),
        }
    }

    /// Returns the improvement factor that eq. 5 gives for pairs.
    #[must_use]
    pub fn k_of_pairs(&self) -> Option<f64> {
        let v = variance_of_pairs_short(self);
        (v > 0.0).then(|| self.s3 * self.s3 / v)
    }
}

#[cfg(test)]
mod tests;
