//! The mean over a time that was observed only at some moments.

use undertick_units::{Estimate, Interval};

use crate::long_run::student;

/// Mean over a time of a quantity, from `values`: one observation in each of as many equally long
/// parts of the time, at a random moment of its part.
///
/// The confidence interval is of the mean over *this* time, not over another time. Where the
/// quantity changes seldom, observations tell more than as many independent values, because each
/// part is observed. The variance is that of successive differences (von Neumann 1941):
/// `sum((v[i+1] - v[i])^2) / (2 (n - 1) n)`. A quantity that stays constant over many observations
/// contributes only at its changes. There it contributes about three times too much (a change is
/// anywhere in its part: 1/6 of a part squared, not 1/2), so the interval is rather too wide. A
/// quantity that differs from observation to observation without order has the usual interval.
/// Student's distribution has two thirds of `n - 1` degrees, the equivalent of successive
/// differences.
///
/// `None` with fewer than two observations.
#[must_use]
pub fn intermittent_mean(values: &[f64], level: f64) -> Option<Estimate> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.windows(2).map(|v| (v[1] - v[0]).powi(2)).sum();
    let variance = squares / (2.0 * (n - 1) as f64 * n as f64);
    let degrees = (2.0 * (n - 1) as f64 / 3.0).max(1.0);
    let half = student(level, degrees) * variance.sqrt();
    Some(Estimate {
        value: mean,
        interval: Interval::new(mean - half, mean + half),
        level,
        unit: "1".into(),
        method: "mean of spaced looks, successive differences".into(),
        n: n as u64,
        n_effective: n as f64,
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn by_hand() {
        // Differences 2, -1, 3: squares 14; 14 / (2 * 3 * 4); t(2 degrees) = 4.303.
        let e = intermittent_mean(&[1.0, 3.0, 2.0, 5.0], 0.95).unwrap();
        assert!((e.value - 2.75).abs() < 1e-12);
        let half = e.interval.half_width().unwrap();
        assert!(
            (half - 4.3027 * (14.0_f64 / 24.0).sqrt()).abs() < 1e-3,
            "{e:?}"
        );
        assert_eq!(intermittent_mean(&[1.0], 0.95), None);
    }

    /// A disturber that is on and off for random times: its share of the run is known from the
    /// generator. 1000 runs; at least 95 % must be covered (the interval is too wide by design),
    /// and it must not be as wide as that of independent observations.
    #[test]
    fn covers_the_share_of_a_slow_disturber() {
        let mut random = ChaCha8Rng::seed_from_u64(20_261_121);
        let (mut held, mut width, mut independent) = (0, 0.0, 0.0);
        const RUNS: usize = 1000;
        for _ in 0..RUNS {
            let n = 300;
            let (on, off) = (
                random.random_range(4.0..20.0),
                random.random_range(4.0..40.0),
            );
            // Changes of state over 0..n.
            let mut at = 0.0;
            let mut state = random.random_bool(0.5);
            let mut stretches = Vec::new();
            while at < n as f64 {
                let mean: f64 = if state { on } else { off };
                let end = (at - mean * (1.0 - random.random::<f64>()).ln()).min(n as f64);
                stretches.push((at, end, state));
                (at, state) = (end, !state);
            }
            let truth: f64 = (stretches.iter().filter(|s| s.2))
                .map(|s| s.1 - s.0)
                .sum::<f64>()
                / n as f64;
            let looks: Vec<f64> = (0..n)
                .map(|i| {
                    let at = i as f64 + random.random::<f64>();
                    f64::from(u8::from(
                        stretches.iter().any(|s| s.2 && s.0 <= at && at < s.1),
                    ))
                })
                .collect();
            let e = intermittent_mean(&looks, 0.95).unwrap();
            let (lo, hi) = (e.interval.lo.unwrap(), e.interval.hi.unwrap());
            held += usize::from(lo <= truth && truth <= hi);
            width += hi - lo;
            independent += 2.0 * 1.96 * (truth * (1.0 - truth) / n as f64).sqrt();
        }
        // 950 less 5 standard deviations of a binomial.
        assert!(held >= 915, "{held} of {RUNS}");
        assert!(width < 0.75 * independent, "{width} {independent}");
    }

    /// Independent values: 95 %, 2000 runs, the exact binomial band (1 in 10^6).
    #[test]
    fn covers_as_usual_without_order() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let held = (0..2000)
            .filter(|_| {
                // Uniform values; the mean over the time is that of the distribution.
                let looks: Vec<f64> = (0..60).map(|_| random.random::<f64>()).collect();
                let i = intermittent_mean(&looks, 0.95).unwrap().interval;
                i.lo.unwrap() <= 0.5 && 0.5 <= i.hi.unwrap()
            })
            .count();
        assert!((1850..=1945).contains(&held), "{held}");
    }
}
