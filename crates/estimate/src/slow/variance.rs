//! The covariance term of eq. 11: the exact variance of a mean count while the
//! phase of the loop walks against the tick.
//!
//! Let the phase be `u + i x + W_i` (mod 1) with `u` even over the tick, `x` the
//! period in ticks and `W` a walk with steps of variance `s^2`. The count of an
//! activity of `k + p` ticks is `k` plus the indicator of an arc of length `p`,
//! whose Fourier coefficients have |f_h| = |sin(pi h p)| / (pi h). Harmonics of
//! different order are uncorrelated because `u` is even, so
//!
//! `Var(mean count) = sum over h >= 1 of 2 |f_h|^2 S(h)`,
//! `S(h) = n^-2 sum over i, j of cos(2 pi h x (i - j)) exp(-2 pi^2 h^2 s^2 |i - j|)`.
//!
//! Independent counts have S(h) = 1/n; a loop locked q cycles to r ticks has
//! S(q) = 1.

use std::f64::consts::PI;

use super::walk::WalkFacts;

/// Number of harmonics computed one by one; those above get the mean of the upper half.
const HARMONICS: usize = 192;
/// Size below which a term of the sum over lags is neglected.
const NEGLIGIBLE: f64 = 1e-9;

/// S(h) of a run.
#[derive(Clone, Debug)]
pub struct Spectrum {
    coherence: Vec<f64>,
    beyond: f64,
}

impl Spectrum {
    /// Returns the spectrum of `n` counts whose phases are drawn anew each time.
    #[must_use]
    pub fn independent(n: u64) -> Self {
        Self {
            coherence: Vec::new(),
            beyond: 1.0 / n.max(1) as f64,
        }
    }

    /// Returns the spectrum of `n` cycles of a loop whose phase walks with that period and jitter,
    /// ticks; averaged over the normal error of the period.
    #[must_use]
    pub fn of_walk(n: u64, facts: &WalkFacts, jitter: f64) -> Self {
        let coherence: Vec<f64> = (1..=HARMONICS)
            .map(|h| coherence(n, &Turn::new(facts, jitter, h)))
            .collect();
        let upper = &coherence[HARMONICS / 2..];
        let beyond = upper.iter().sum::<f64>() / upper.len() as f64;
        Self { coherence, beyond }
    }

    /// Returns the largest S(h) that is compatible with how well h cycles are known, two standard
    /// errors either way: if the loop were locked, it would be this. A jitter leaves the period
    /// less certain and lets the phase fade, so each possible jitter is taken separately. `h` is
    /// one of the multiples that were watched.
    pub(super) fn greatest(facts: &WalkFacts, h: usize) -> f64 {
        let n = facts.cycles as f64;
        let [least, guess, most] = facts.jitter;
        // The lower bound is 0 wherever crossings are few: a jitter of zero and a guess far from
        // zero do not go together.
        let possible = [least.max(guess / 2.0), guess, most].into_iter();
        let possible = possible.filter(|jitter| jitter.is_finite());
        let each = possible.map(|jitter| {
            let mut turn = Turn::new(facts, jitter, h);
            let error = match facts.period_error {
                0.0 => 0.0,
                _ => facts.end_error.hypot(h as f64 * jitter / n.sqrt()),
            };
            turn.angle = (turn.angle.abs() - 4.0 * PI * error).max(0.0);
            turn.drift = 0.0;
            coherence(facts.cycles, &turn)
        });
        each.fold(0.0, f64::max)
    }

    /// Returns S(h), h >= 1.
    #[must_use]
    pub fn at(&self, h: usize) -> f64 {
        self.coherence.get(h - 1).copied().unwrap_or(self.beyond)
    }

    /// Returns the variance of the mean count of an activity of `ticks` constant length.
    #[must_use]
    pub fn variance(&self, ticks: f64) -> f64 {
        let p = ticks - ticks.floor();
        let (mut low, mut total) = (0.0, p * (1.0 - p));
        // cos(2 pi h p) by its recurrence.
        let double = 2.0 * (2.0 * PI * p).cos();
        let (mut before, mut now) = (1.0, double / 2.0);
        for (index, s) in self.coherence.iter().enumerate() {
            let h = (index + 1) as f64;
            let power = (1.0 - now) / (PI * h * PI * h);
            low += power * s;
            total -= power;
            (before, now) = (now, double * now - before);
        }
        low + total.max(0.0) * self.beyond
    }
}

/// How harmonic h turns from cycle to cycle.
struct Turn {
    /// Angle per cycle, radians.
    angle: f64,
    /// Half the variance of the angle that the walk adds per cycle.
    walk: f64,
    /// Half the variance of `angle` due to the error of the period.
    drift: f64,
}

impl Turn {
    fn new(facts: &WalkFacts, jitter: f64, h: usize) -> Self {
        let n = facts.cycles as f64;
        let (ticks, ends, wander) = match facts.multiples.get(h - 1) {
            Some(&ticks) => (ticks, facts.end_error, jitter.max(facts.jitter[1])),
            None => {
                let lags = facts.multiples.len() as f64;
                let of_one = facts.end_error / lags;
                // A lock this fine is only believed if the period is known equally finely whatever
                // the jitter.
                let most = jitter.max(facts.jitter[2].min(0.5));
                (h as f64 * facts.period, h as f64 * of_one, most)
            }
        };
        let is_known = facts.period_error == 0.0;
        let wander = if is_known {
            0.0
        } else {
            h as f64 * wander / n.sqrt()
        };
        Self {
            angle: 2.0 * PI * (ticks - ticks.round()),
            walk: 0.5 * (2.0 * PI * h as f64 * jitter).powi(2),
            drift: 0.5 * (2.0 * PI).powi(2) * (ends * ends + wander * wander),
        }
    }
}

/// Computes S(h), averaged over a normal error of the period.
fn coherence(n: u64, turn: &Turn) -> f64 {
    let (mut cos, mut sin) = (1.0_f64, 0.0_f64);
    let (sin_step, cos_step) = turn.angle.sin_cos();
    let mut fade = 1.0;
    let mut fade_step = (-turn.walk - turn.drift).exp();
    let slower = (-2.0 * turn.drift).exp();
    let mut sum = 0.0;
    for lag in 1..n {
        (cos, sin) = (
            cos * cos_step - sin * sin_step,
            sin * cos_step + cos * sin_step,
        );
        fade *= fade_step;
        fade_step *= slower;
        if fade < NEGLIGIBLE {
            break;
        }
        sum += (n - lag) as f64 * cos * fade;
    }
    let n = n as f64;
    ((n + 2.0 * sum) / (n * n)).max(0.0)
}

#[cfg(test)]
mod tests;
