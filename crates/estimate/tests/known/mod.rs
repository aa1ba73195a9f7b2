//! Series with known truth, and the count of intervals that contain it.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use undertick_units::Estimate;

pub const LEVEL: f64 = 0.95;

/// Returns the repetitions of each case: 2000, or the value of UNDERTICK_REPETITIONS.
pub fn repetitions() -> u64 {
    std::env::var("UNDERTICK_REPETITIONS").map_or(2000, |text| {
        (text.parse().ok())
            .filter(|&n| n >= 2000)
            .expect("UNDERTICK_REPETITIONS: a number, 2000 at least")
    })
}

pub struct Source(ChaCha8Rng);

impl Source {
    pub fn new(case: u64, repetition: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(case * 1_000_003 + repetition))
    }

    /// In (0, 1]: its logarithm is finite.
    pub fn uniform(&mut self) -> f64 {
        1.0 - self.0.random::<f64>()
    }

    /// Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    pub fn many(&mut self, n: usize, draw: impl Fn(&mut Self) -> f64) -> Vec<f64> {
        (0..n).map(|_| draw(self)).collect()
    }

    /// Stationary AR(1), mean 0, variance 1.
    pub fn ar1(&mut self, phi: f64, n: usize) -> Vec<f64> {
        let innovation = (1.0 - phi * phi).sqrt();
        let mut x = self.normal();
        (0..n)
            .map(|_| {
                x = phi * x + innovation * self.normal();
                x
            })
            .collect()
    }
}

/// Makes `repetitions()` estimates. At least 93.5 % of the intervals must contain the truth, and at
/// most 96.5 % unless the case may cover more. The mean half-width must be at most 1.3 times the
/// best known one.
#[track_caller]
pub fn covers(
    what: &str,
    (case, truth, best): (u64, f64, f64),
    may_cover_more: bool,
    ask: impl Fn(&mut Source) -> Option<Estimate>,
) {
    let (mut hits, mut refused, mut half) = (0, 0, 0.0);
    let repetitions = repetitions();
    for repetition in 0..repetitions {
        let estimate = ask(&mut Source::new(case, repetition)).expect("an estimate");
        let (Some(lo), Some(hi)) = (estimate.interval.lo, estimate.interval.hi) else {
            refused += 1;
            continue;
        };
        hits += u64::from(lo <= truth && truth <= hi);
        half += (hi - lo) / 2.0;
    }
    let answered = (repetitions - refused) as f64;
    let (share, half) = (hits as f64 / answered, half / answered);
    println!(
        "{what}: {:.2} % hold the truth, half-width {half:.4} ({:.2} of the best known), {refused} refused",
        share * 100.0,
        half / best
    );
    assert!(refused * 100 <= repetitions, "{what}: {refused} refused");
    assert!(share >= 0.935, "{what}: {share}");
    assert!(share <= 0.965 || may_cover_more, "{what}: {share}");
    assert!(half <= 1.3 * best, "{what}: {half}, best known {best}");
}

/// Returns the half-width of a normal interval with known variance.
pub fn best(variance: f64) -> f64 {
    1.959_964 * variance.sqrt()
}
