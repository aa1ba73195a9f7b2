//! How two series go together that both change slowly.

/// How two series go together.
pub(super) struct Together {
    mean: (f64, f64),
    pub(super) slope: f64,
    pub(super) correlation: f64,
    pub(super) p_value: f64,
}

impl Together {
    /// `None` of fewer than six values, or of such as never change.
    ///
    /// The test is that of a correlation (Student), for as many independent values as two
    /// series that change as slowly are worth (Bartlett 1946: with the products of their
    /// correlations of neighbours).
    pub(super) fn of(x: &[f64], y: &[f64]) -> Option<Self> {
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

/// A slope and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slope {
    pub(super) value: f64,
    pub(super) error: f64,
}

/// Neighbours that are more alike than this hardly tell anything apart.
const MOST_ALIKE: f64 = 0.98;
/// Enough for the correlation and the slope to settle: each is found with the other.
const TURNS: usize = 8;

impl Slope {
    /// Of `y` on `x`, where what is left of `y` drifts, so that neighbours are alike: from
    /// what each value differs from what its neighbour lets expect (Cochrane and Orcutt
    /// 1949). Their correlation is that of the residuals and what these show too little of
    /// it, (1 + 3 r) / n (Marriott and Pope 1954).
    ///
    /// A straight line takes a drift for what happened to go with it: on a machine that
    /// others slow down for seconds at a time it scatters 1.4 times as much.
    pub(super) fn beside_drift(x: &[f64], y: &[f64]) -> Option<Self> {
        let n = x.len() as f64;
        let mut line = line(x, y)?;
        for _ in 0..TURNS {
            let mut left: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - line.0 * x).collect();
            let mean = left.iter().sum::<f64>() / n;
            left.iter_mut().for_each(|e| *e -= mean);
            let all: f64 = left.iter().map(|e| e * e).sum();
            if all <= 0.0 {
                return Some(Self {
                    value: line.0,
                    error: 0.0,
                });
            }
            let alike = left.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / all;
            let alike = (alike + (1.0 + 3.0 * alike) / n).clamp(0.0, MOST_ALIKE);
            let news =
                |v: &[f64]| -> Vec<f64> { v.windows(2).map(|w| w[1] - alike * w[0]).collect() };
            line = self::line(&news(x), &news(y))?;
        }
        Some(Self {
            value: line.0,
            error: line.1,
        })
    }
}

/// Slope of a straight line by least squares, and its standard error; `None` where there
/// are too few values, or `x` never changes.
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
mod tests {
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::{Slope, line};

    /// Sum of twelve: normal, nearly.
    fn normal(random: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
    }

    /// A disturber that is on for 10 % of the time in phases of one or two stretches,
    /// beside a drift of which a share of 0.75 is left from one stretch to the next.
    fn disturbed(seed: u64, slope: f64) -> (Vec<f64>, Vec<f64>) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut on, mut drift) = (0, 0.0);
        (0..100)
            .map(|_| {
                if on == 0 && random.random_bool(0.07) {
                    on = random.random_range(1..3);
                }
                let x = f64::from(u8::from(on > 0)) * (0.6 + 0.4 * random.random::<f64>());
                on = (on - 1).max(0);
                drift = 0.75 * drift + 0.15 * normal(&mut random);
                (x, 1.0 + slope * x + drift)
            })
            .unzip()
    }

    /// The true slope is in its interval as often as it should be, and the slope scatters
    /// less than that of a line that does not know of the drift.
    #[test]
    fn the_slope_beside_a_drift() {
        const RUNS: u64 = 2000;
        const TRUE: f64 = 0.47;
        let (mut held, mut of_line, mut beside) = (0, 0.0, 0.0);
        for seed in 0..RUNS {
            let (x, y) = disturbed(seed, TRUE);
            let slope = Slope::beside_drift(&x, &y).unwrap();
            held += u64::from((slope.value - TRUE).abs() <= 1.96 * slope.error);
            beside += (slope.value - TRUE).powi(2);
            of_line += (line(&x, &y).unwrap().0 - TRUE).powi(2);
        }
        // 95 %: 1849 to 1944 of 2000 but for one in a million.
        assert!((1849..=1944).contains(&held), "{held} of {RUNS}");
        assert!(beside < 0.65 * of_line, "{beside} and {of_line}");
    }

    /// Without a drift it is the line: 0.5 x + 2 with residuals that cancel in every way.
    #[test]
    fn the_slope_by_hand() {
        let x: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
        let left = |i: usize| [0.01, 0.01, -0.01, -0.01][i % 4];
        let y: Vec<f64> = (0..40).map(|i| 2.0 + 0.5 * x[i] + left(i)).collect();
        let slope = Slope::beside_drift(&x, &y).unwrap();
        assert!((slope.value - 0.5).abs() < 0.002, "{slope:?}");
        // 0.01 / sqrt(40) / 0.5, as good as.
        assert!((slope.error / 0.00316 - 1.0).abs() < 0.15, "{slope:?}");
        let exact: Vec<f64> = x.iter().map(|x| 2.0 + 0.5 * x).collect();
        let slope = Slope::beside_drift(&x, &exact).unwrap();
        assert!((slope.value - 0.5).abs() < 1e-12 && slope.error < 1e-9);
        assert_eq!(Slope::beside_drift(&[1.0; 40], &y), None);
        assert_eq!(Slope::beside_drift(&x[..4], &y[..4]), None);
        assert_eq!(Slope::beside_drift(&[], &[]), None);
    }
}
