//! A loop of activities beside a slow clock, with known truth. It shares no code with the
//! estimators: time is a real number of ticks, and a reading is its integer part.
#![allow(
    dead_code,
    reason = "each test file compiles its own copy and uses a part"
)]

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Seeded random numbers.
pub struct Source(ChaCha8Rng);

impl Source {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns a uniform number in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0.random::<f64>()
    }

    /// Standard normal, by the polar method.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (u, v) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = u * u + v * v;
            if square > 0.0 && square < 1.0 {
                return u * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }
}

/// A loop: the durations of its activities in ticks, in order, and the spread of one cycle's length
/// (added to the last activity).
pub struct SimulatedLoop {
    pub source: Source,
    pub parts: Vec<f64>,
    pub jitter: f64,
    /// Current time of the loop, ticks.
    pub now: f64,
}

impl SimulatedLoop {
    /// Starts at a random phase.
    pub fn new(seed: u64, parts: &[f64], jitter: f64) -> Self {
        let mut source = Source::new(seed);
        let now = 10.0 + source.uniform();
        Self {
            source,
            parts: parts.to_vec(),
            jitter,
            now,
        }
    }

    /// Runs one cycle; returns the readings at each point, and at the end of the cycle.
    pub fn cycle(&mut self) -> Vec<i64> {
        let mut readings = vec![self.now.floor() as i64];
        let last = self.parts.len() - 1;
        for part in 0..=last {
            self.now += self.parts[part];
            if part == last && self.jitter > 0.0 {
                self.now += self.jitter * self.source.normal();
            }
            readings.push(self.now.floor() as i64);
        }
        readings
    }

    /// Lets time pass outside the loop, ticks.
    pub fn wait(&mut self, ticks: f64) {
        self.now += ticks;
    }
}

/// Returns five parts of a loop of `period` ticks; the third is the activity of 0.05.
pub fn five_parts(period: f64) -> Vec<f64> {
    vec![0.3, 0.45, 0.05, 0.7, period - 1.5]
}

/// Index of the activity in [`five_parts`].
pub const ACTIVITY: usize = 2;

/// Returns the exact binomial band of 1 false alarm in `1 / alarm` around `share` of `n`.
pub fn band(n: u64, share: f64, alarm: f64) -> (u64, u64) {
    let mut ln_pmf = n as f64 * (1.0 - share).ln();
    let (mut below, mut lo, mut hi) = (0.0, None, n);
    for k in 0..=n {
        below += ln_pmf.exp();
        if lo.is_none() && below > alarm / 2.0 {
            lo = Some(k);
        }
        if 1.0 - below < alarm / 2.0 {
            hi = k;
            break;
        }
        ln_pmf += ((n - k) as f64 / (k + 1) as f64 * share / (1.0 - share)).ln();
    }
    (lo.unwrap_or(0), hi)
}
