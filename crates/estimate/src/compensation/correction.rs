//! The cost that is subtracted from one interval.

/// A measured interval and the pairs of readings beside its ends, ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paired {
    /// Duration of the pair before the interval.
    pub t1: f64,
    /// The interval as measured.
    pub tm: f64,
    /// Duration of the pair after the interval.
    pub t4: f64,
}

/// `constant + b1 t1 + b4 t4`, with `t1` and `t4` held within `fence`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// Ticks.
    pub constant: f64,
    /// Share of the pair before.
    pub b1: f64,
    /// Share of the pair after.
    pub b4: f64,
    /// Smallest and largest pair duration that is believed, ticks. Whatever disturbed a pair
    /// outside them need not have disturbed the interval, so such a pair counts as the bound.
    pub fence: (f64, f64),
}

impl Correction {
    /// Returns the same cost for all intervals: long-term averaging.
    #[must_use]
    pub const fn constant(constant: f64) -> Self {
        Self {
            constant,
            b1: 0.0,
            b4: 0.0,
            fence: (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// Short-term averaging, eq. 1: the mean of both pairs.
    #[must_use]
    pub const fn pairs() -> Self {
        Self {
            constant: 0.0,
            b1: 0.5,
            b4: 0.5,
            fence: (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// Returns a pair clamped to the range that is believed, ticks.
    #[must_use]
    pub fn held(&self, t: f64) -> f64 {
        t.clamp(self.fence.0, self.fence.1)
    }

    /// Returns the cost to be subtracted, ticks.
    #[must_use]
    pub fn cost(&self, t1: f64, t4: f64) -> f64 {
        let slope = |b: f64, t: f64| if b == 0.0 { 0.0 } else { b * self.held(t) };
        self.constant + slope(self.b1, t1) + slope(self.b4, t4)
    }

    /// Returns the interval less the cost, ticks.
    #[must_use]
    pub fn apply(&self, sample: &Paired) -> f64 {
        sample.tm - self.cost(sample.t1, sample.t4)
    }

    /// Returns a correction with the same slopes and a constant that brings the mean of `samples`
    /// to `truth`. Without samples it is unchanged.
    #[must_use]
    pub fn centred(self, samples: &[Paired], truth: f64) -> Self {
        if samples.is_empty() {
            return self;
        }
        let left_over = samples.iter().map(|s| self.apply(s)).sum::<f64>() / samples.len() as f64;
        Self {
            constant: self.constant + left_over - truth,
            ..self
        }
    }
}

/// Minimum number of samples: fewer say too little about two slopes.
const ENOUGH_TO_FIT: usize = 100;
/// Rounds of reweighting; the weights settle within ten.
const ROUNDS: usize = 20;
/// Huber's bound: 95 % efficient where errors are normal (Huber 1964).
const HUBER: f64 = 1.345;
/// Interquartile ranges beyond the quartiles at which a pair is not believed:
/// 0.9 % of exponential delays, none of uniform or normal ones.
const FENCE: f64 = 3.0;

/// Fits control variates: the slopes under which intervals around the same work scatter least, and
/// the constant that brings the mean of `samples` to 0. The fit uses Huber's M-estimator on pairs
/// held within fences, because least squares follows the few disturbed intervals. Without enough
/// samples, or if the pairs never differ, it falls back to long-term averaging.
#[must_use]
pub fn control_variate(samples: &[Paired]) -> Correction {
    let flat = Correction::constant(0.0).centred(samples, 0.0);
    if samples.len() < ENOUGH_TO_FIT {
        return flat;
    }
    let fence = fence(samples);
    let rows: Vec<[f64; 3]> = (samples.iter())
        .map(|s| {
            [
                s.t1.clamp(fence.0, fence.1),
                s.t4.clamp(fence.0, fence.1),
                s.tm,
            ]
        })
        .collect();
    let (b1, b4) = huber(&rows).unwrap_or((0.0, 0.0));
    let fitted = Correction {
        constant: 0.0,
        b1,
        b4,
        fence,
    };
    fitted.centred(samples, 0.0)
}

/// Share of samples with both pairs beyond a bound above which the load is the cause, and not a
/// disturbance: a disturbance of one pair does not reach the other one.
const BOTH: f64 = 0.001;

/// Bounds of believable pairs; as wide as a step of the clock where more than half of all pairs are
/// equal. Where both pairs of a sample are long, as under a load that is seldom on, they are
/// believed. If pairs were cut to less than the interval between them, the fitted slopes would be
/// far too steep.
fn fence(samples: &[Paired]) -> (f64, f64) {
    let mut all: Vec<f64> = samples.iter().flat_map(|s| [s.t1, s.t4]).collect();
    all.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
    let (q1, q3) = (at(0.25), at(0.75));
    let range = if q3 > q1 {
        q3 - q1
    } else {
        at(0.95) - at(0.05)
    };
    let quantile = |of: fn(f64, f64) -> f64, share: f64| {
        let mut both: Vec<f64> = samples.iter().map(|s| of(s.t1, s.t4)).collect();
        both.sort_unstable_by(f64::total_cmp);
        both[((both.len() - 1) as f64 * share) as usize]
    };
    (
        (q1 - FENCE * range).min(quantile(f64::max, BOTH)),
        (q3 + FENCE * range).max(quantile(f64::min, 1.0 - BOTH)),
    )
}

/// Slopes of row[2] on row[0] and row[1], with an intercept.
fn huber(rows: &[[f64; 3]]) -> Option<(f64, f64)> {
    let mut weights = vec![1.0; rows.len()];
    let mut slopes = None;
    for _ in 0..ROUNDS {
        let (a, b1, b4) = weighted(rows, &weights)?;
        let settled =
            slopes.is_some_and(|(p1, p4): (f64, f64)| (b1 - p1).abs() + (b4 - p4).abs() < 1e-9);
        slopes = Some((b1, b4));
        if settled {
            break;
        }
        let residuals: Vec<f64> = (rows.iter())
            .map(|[t1, t4, tm]| tm - a - b1 * t1 - b4 * t4)
            .collect();
        let scale = scale(&residuals);
        if scale == 0.0 {
            break;
        }
        for (weight, residual) in weights.iter_mut().zip(&residuals) {
            *weight = (HUBER * scale / residual.abs()).min(1.0);
        }
    }
    slopes
}

/// Median absolute residual, scaled to the standard deviation of a normal distribution; if most
/// residuals are 0, their mean absolute value.
fn scale(residuals: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
    let middle = sizes.len() / 2;
    let median = *sizes.select_nth_unstable_by(middle, f64::total_cmp).1;
    if median > 0.0 {
        median * 1.482_602_2
    } else {
        sizes.iter().sum::<f64>() / sizes.len() as f64
    }
}

/// Weighted least squares. A pair that never differs gets no slope; two that always agree share one
/// slope.
fn weighted(rows: &[[f64; 3]], weights: &[f64]) -> Option<(f64, f64, f64)> {
    let total: f64 = weights.iter().sum();
    let sum = |i: usize| {
        rows.iter()
            .zip(weights)
            .map(|(row, w)| w * row[i])
            .sum::<f64>()
    };
    let means = [sum(0) / total, sum(1) / total, sum(2) / total];
    let mut c = [[0.0; 3]; 3];
    for (row, w) in rows.iter().zip(weights) {
        for i in 0..3 {
            for j in 0..3 {
                c[i][j] += w * (row[i] - means[i]) * (row[j] - means[j]) / total;
            }
        }
    }
    // Rounding residue of values that all agree is not a spread.
    let varies = |i: usize| c[i][i] > 1e-24 * means[i] * means[i];
    let (b1, b4) = match (varies(0), varies(1)) {
        (false, false) => return None,
        (true, false) => (c[0][2] / c[0][0], 0.0),
        (false, true) => (0.0, c[1][2] / c[1][1]),
        (true, true) => {
            let determinant = c[0][0] * c[1][1] - c[0][1] * c[0][1];
            if determinant < 1e-9 * c[0][0] * c[1][1] {
                let both = c[0][0] + 2.0 * c[0][1] + c[1][1];
                let b = if both > 0.0 {
                    (c[0][2] + c[1][2]) / both
                } else {
                    0.0
                };
                (b, b)
            } else {
                (
                    (c[0][2] * c[1][1] - c[1][2] * c[0][1]) / determinant,
                    (c[1][2] * c[0][0] - c[0][2] * c[0][1]) / determinant,
                )
            }
        }
    };
    let a = means[2] - b1 * means[0] - b4 * means[1];
    (a.is_finite() && b1.is_finite() && b4.is_finite()).then_some((a, b1, b4))
}

#[cfg(test)]
mod tests;
