//! How the phase of a loop moves against the tick, from whole-tick readings.
//!
//! Let `Y` be the time, in ticks, that `L` cycles take, and `N` the ticks counted over them. For
//! any phase distributed evenly over the tick and any whole number `k`, E|N - k| = E|Y - k|
//! exactly: counting does not distort the first absolute moment about a whole number. So at lags
//! whose mean lies near a whole number, the counts on the other side show how much the length of
//! the cycles scatters, however coarse the tick.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// Number of lags watched at each level, in readings of that level.
pub(super) const LAGS: usize = 32;
/// Number of values of a lagged difference that are distinguished, around its first one.
const VALUES: usize = 9;
/// Minimum run length, as a multiple of a lag, from which the lag is used; beyond the finest level,
/// where levels may contradict each other, a multiple of the longest lag.
const FEW: u64 = 4;
/// Number of crossings that count as one: overlapping windows see the same crossing again, and a
/// walk that stands at an edge crosses it again and again.
const CLUSTER: f64 = 2.0;

/// Readings at one point of the loop, one per cycle, reduced to how their lagged
/// differences scatter at lags 1..=32 and at 17..=32 times each power of two.
/// Memory grows with the logarithm of the number of cycles only.
#[derive(Clone, Debug, Default)]
pub struct PhaseWalk {
    levels: Vec<Level>,
    since_break: u64,
    last: i64,
    steps: u64,
    ticks: i64,
    pieces: u64,
}

#[derive(Clone, Debug)]
struct Level {
    ring: [i64; LAGS],
    filled: usize,
    at: usize,
    lags: [Tally; LAGS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    base: i64,
    counts: [u64; VALUES],
    n: u64,
    sum: i64,
}

/// What the readings say about the cycle's length, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalkFacts {
    /// Cycles from reading to reading.
    pub cycles: u64,
    /// Mean length of a cycle, from reading to reading, ticks.
    pub period: f64,
    /// Mean length of 1, 2, ... 32 cycles, ticks. The sum over overlapping
    /// stretches of q cycles telescopes to q readings at either end of the run,
    /// so where the loop is nearly locked q:r these balance to a q-th of a tick.
    pub multiples: [f64; LAGS],
    /// Error that the two ends leave in each of `multiples`, ticks (one sigma).
    pub end_error: f64,
    /// Standard error of `period`, ticks.
    pub period_error: f64,
    /// Standard deviation of one cycle's length, ticks: lower bound, best
    /// guess and upper bound (right in about 99 and 95 of 100 runs).
    pub jitter: [f64; 3],
}

impl WalkFacts {
    /// Returns the facts of a loop whose period and jitter are known.
    pub(super) fn known(cycles: u64, period: f64, jitter: f64) -> Self {
        Self {
            cycles,
            period,
            multiples: core::array::from_fn(|i| (i + 1) as f64 * period),
            end_error: 0.0,
            period_error: 0.0,
            jitter: [jitter; 3],
        }
    }
}

impl PhaseWalk {
    /// Adds the reading of the next cycle, in whole ticks.
    pub fn push(&mut self, reading: i64) {
        if self.since_break > 0 {
            self.steps += 1;
            self.ticks += reading - self.last;
        } else {
            self.pieces += 1;
        }
        self.last = reading;
        let index = self.since_break;
        self.since_break += 1;
        let deepest = if index == 0 {
            self.levels.len().max(1) - 1
        } else {
            index.trailing_zeros() as usize
        };
        for level in 0..=deepest {
            if level >= self.levels.len() {
                self.levels.push(Level::new());
            }
            let first = if level == 0 { 1 } else { LAGS / 2 + 1 };
            self.levels[level].push(reading, first);
        }
    }

    /// Breaks the chain of readings: the next one follows no other.
    pub fn interrupt(&mut self) {
        self.since_break = 0;
        for level in &mut self.levels {
            level.filled = 0;
        }
    }

    /// Returns the number of stretches of cycles without a break.
    #[must_use]
    pub fn pieces(&self) -> u64 {
        self.pieces
    }
}

impl PhaseWalk {
    /// Returns mean and scatter of the cycle's length. `None` below two readings.
    #[must_use]
    pub fn facts(&self) -> Option<WalkFacts> {
        if self.steps == 0 {
            return None;
        }
        let n = self.steps as f64;
        let jitter = self.jitter();
        let ends = (self.pieces as f64 / 6.0).sqrt() / n;
        let mut multiples = [0.0; LAGS];
        for (index, multiple) in multiples.iter_mut().enumerate() {
            let tally = &self.levels[0].lags[index];
            *multiple = if tally.n > 0 {
                tally.sum as f64 / tally.n as f64
            } else {
                (index + 1) as f64 * self.ticks as f64 / n
            };
        }
        Some(WalkFacts {
            cycles: self.steps,
            period: multiples[LAGS - 1] / LAGS as f64,
            multiples,
            end_error: ends,
            period_error: ends.hypot(jitter[1] / n.sqrt()),
            jitter,
        })
    }

    /// Returns the scatter over all time scales: a bound must hold at each of them. A loop that
    /// follows its own timer scatters between cycles and yet keeps its phase; only the long lags
    /// show that.
    fn jitter(&self) -> [f64; 3] {
        let mut found: Option<[f64; 3]> = None;
        for (depth, level) in self.levels.iter().enumerate() {
            let Some(here) = level.jitter(depth == 0) else {
                continue;
            };
            let scale = (2.0_f64).powi(depth as i32).sqrt();
            let here = here.map(|j| j / scale);
            found = Some(match found {
                None => here,
                Some(all) => combined(all, here),
            });
        }
        found.unwrap_or([0.0, 0.5, f64::INFINITY])
    }
}

/// Combines the scatter of two time scales: the finer one, unless the coarser one contradicts it.
fn combined(fine: [f64; 3], coarse: [f64; 3]) -> [f64; 3] {
    if coarse[2] < fine[0] {
        return [coarse[0], coarse[1], fine[2]];
    }
    if coarse[0] > fine[2] {
        return [fine[0], coarse[1], coarse[2]];
    }
    fine
}

impl Level {
    fn new() -> Self {
        Self {
            ring: [0; LAGS],
            filled: 0,
            at: 0,
            lags: [Tally::default(); LAGS],
        }
    }

    fn push(&mut self, reading: i64, first: usize) {
        for lag in first..=self.filled {
            let before = self.ring[(self.at + LAGS - lag) % LAGS];
            self.lags[lag - 1].add(reading - before);
        }
        self.ring[self.at] = reading;
        self.at = (self.at + 1) % LAGS;
        self.filled = (self.filled + 1).min(LAGS);
    }

    /// Computes the scatter from the lag that shows the most crossings to the other side.
    fn jitter(&self, finest: bool) -> Option<[f64; 3]> {
        let mut best: Option<(f64, usize)> = None;
        for (index, tally) in self.lags.iter().enumerate() {
            let lag = index as u64 + 1;
            let few = FEW * if finest { lag } else { LAGS as u64 };
            if tally.n < few || tally.overflows() {
                continue;
            }
            let (_, against) = tally.against();
            let events = against * tally.n as f64 / lag as f64;
            // Without any crossing, the lag nearest to a whole number of ticks is used.
            let rank = if events > 0.0 {
                events
            } else {
                -tally.against().0 * tally.n as f64
            };
            if best.is_none_or(|(r, _)| rank > r) {
                best = Some((rank, index));
            }
        }
        let (_, index) = best?;
        let (tally, lag) = (&self.lags[index], (index + 1) as f64);
        let (offset, against) = tally.against();
        let windows = tally.n as f64 / (lag * CLUSTER);
        let events = against * windows;
        let bound = |events: f64| scatter(offset, events.max(0.0) / windows) / lag.sqrt();
        Some([
            bound(events - 2.326 * events.sqrt() - 0.5),
            bound(events),
            bound(events + 1.645 * events.sqrt() + 1.5),
        ])
    }
}

impl Tally {
    fn add(&mut self, ticks: i64) {
        if self.n == 0 {
            self.base = ticks - (VALUES / 2) as i64;
        }
        let index = (ticks - self.base).clamp(0, VALUES as i64 - 1);
        self.counts[index as usize] += 1;
        self.n += 1;
        self.sum += ticks;
    }

    /// Returns whether differences may have left the distinguished values.
    fn overflows(&self) -> bool {
        self.counts[0] + self.counts[VALUES - 1] > 0
    }

    /// Returns how far the mean lies from the nearest whole number, and the mean ticks counted
    /// beyond that number on the other side of it.
    fn against(&self) -> (f64, f64) {
        let n = self.n as f64;
        let sum: f64 = (self.counts.iter().enumerate())
            .map(|(v, &c)| v as f64 * c as f64)
            .sum();
        let mean = sum / n;
        let whole = mean.round();
        let distance: f64 = (self.counts.iter().enumerate())
            .map(|(v, &c)| (v as f64 - whole).abs() * c as f64)
            .sum();
        let offset = (mean - whole).abs();
        // E|d| and |E d| are the sum and the difference of the two sides.
        let against = 0.5 * (distance / n - offset);
        (offset, if against * n > 0.25 { against } else { 0.0 })
    }
}

/// Returns the standard deviation `s` of a normal value around `offset >= 0` whose mean part below
/// 0 is `against`: s phi(offset/s) - offset Phi(-offset/s).
fn scatter(offset: f64, against: f64) -> f64 {
    if against <= 0.0 {
        return 0.0;
    }
    let normal = Normal::standard();
    let below = |s: f64| s * normal.pdf(offset / s) - offset * normal.cdf(-offset / s);
    let (mut lo, mut hi) = (1e-9, 1.0);
    while below(hi) < against && hi < 1e6 {
        hi *= 2.0;
    }
    for _ in 0..60 {
        let middle = 0.5 * (lo + hi);
        if below(middle) < against {
            lo = middle;
        } else {
            hi = middle;
        }
    }
    hi
}

#[cfg(test)]
mod tests;
