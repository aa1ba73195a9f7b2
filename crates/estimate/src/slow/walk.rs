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
mod tests {
    use super::*;

    /// Readings 0, 2, 5, 7, 10, 12: steps of 2 and 3, two of which always make 5; then a break and
    /// 100, 102.
    #[test]
    fn multiples_by_hand() {
        let mut walk = PhaseWalk::default();
        assert_eq!(walk.facts(), None);
        for reading in [0, 2, 5, 7, 10, 12] {
            walk.push(reading);
        }
        let facts = walk.facts().unwrap();
        assert_eq!((facts.cycles, walk.pieces()), (5, 1));
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(facts.multiples[0], 12.0 / 5.0);
        near(facts.multiples[1], 5.0);
        // 7, 8, 7 over three; 10, 10 over four; 12 over five.
        near(facts.multiples[2], 22.0 / 3.0);
        near(facts.multiples[3], 10.0);
        near(facts.multiples[4], 12.0);
        // None are seen over six: six times the mean.
        near(facts.multiples[5], 6.0 * 12.0 / 5.0);
        near(facts.period, 32.0 * 12.0 / 5.0 / 32.0);
        near(facts.end_error, (1.0_f64 / 6.0).sqrt() / 5.0);
        walk.interrupt();
        walk.push(100);
        walk.push(102);
        let facts = walk.facts().unwrap();
        assert_eq!((facts.cycles, walk.pieces()), (6, 2));
        near(facts.multiples[0], 14.0 / 6.0);
        near(facts.multiples[1], 5.0);
        near(facts.end_error, (2.0_f64 / 6.0).sqrt() / 6.0);
        near(
            facts.period_error,
            facts.end_error.hypot(facts.jitter[1] / 6.0_f64.sqrt()),
        );
    }

    /// Counts of -1, 0, 0, 1, 2: mean 0.4 from 0; 0.2 lies against it.
    #[test]
    fn what_lies_against_the_mean_by_hand() {
        let mut tally = Tally::default();
        [-1, 0, 0, 1, 2]
            .into_iter()
            .for_each(|ticks| tally.add(ticks));
        let (offset, against) = tally.against();
        assert!((offset - 0.4).abs() < 1e-12 && (against - 0.2).abs() < 1e-12);
        assert!(!tally.overflows());
        assert_eq!((tally.n, tally.sum), (5, 2));
        // A whole number nearer to the other side: 0, 1, 1, 1.
        let mut tally = Tally::default();
        [0, 1, 1, 1].into_iter().for_each(|ticks| tally.add(ticks));
        let (offset, against) = tally.against();
        assert!((offset - 0.25).abs() < 1e-12 && against == 0.0, "{against}");
        tally.add(1000);
        assert!(tally.overflows());
    }

    /// 200 of 4000 on either side of 0: 0.05 against, in 2000 windows 100; bounds
    /// 100 - 23.26 - 0.5 and 100 + 16.45 + 1.5 of them, times sqrt(2 pi) / 2000. Over
    /// two cycles there are 1000 windows: 50 - 16.45 - 0.5 and 50 + 11.63 + 1.5, and the
    /// walk is 1 / sqrt(2) of it.
    #[test]
    fn bounds_of_the_scatter_by_hand() {
        let mut tally = Tally::default();
        for (ticks, times) in [(0, 3600), (-1, 200), (1, 200)] {
            (0..times).for_each(|_| tally.add(ticks));
        }
        for (lag, expected) in [
            (1, [0.095_553, 0.125_331, 0.147_828]),
            (2, [0.058_584, 0.088_623, 0.111_898]),
        ] {
            let mut level = Level::new();
            level.lags[lag - 1] = tally;
            let found = level.jitter(true).unwrap();
            for (a, b) in found.into_iter().zip(expected) {
                assert!((a - b).abs() < 2e-6, "{lag}: {found:?}");
            }
        }
    }

    /// Four whole windows of three cycles are 12; the coarser levels need four of 32.
    #[test]
    fn few_windows_say_nothing() {
        for (n, finest, is_enough) in [
            (11, true, false),
            (12, true, true),
            (127, false, false),
            (128, false, true),
        ] {
            let mut level = Level::new();
            (0..n).for_each(|i| level.lags[2].add(i % 2));
            assert_eq!(level.jitter(finest).is_some(), is_enough, "{n} {finest}");
        }
    }

    /// A normal value around 0 has s/sqrt(2 pi) below 0 on average; around 1 with
    /// s = 1 it has phi(1) - Phi(-1) = 0.241 971 - 0.158 655.
    #[test]
    fn scatter_by_hand() {
        for s in [0.01, 0.3, 2.0] {
            let against = s / (2.0 * std::f64::consts::PI).sqrt();
            assert!((scatter(0.0, against) - s).abs() < 1e-6 * s, "{s}");
        }
        assert!((scatter(1.0, 0.241_970_725 - 0.158_655_254) - 1.0).abs() < 1e-6);
        assert_eq!((scatter(0.4, 0.0), scatter(0.4, -1.0)), (0.0, 0.0));
    }

    #[test]
    fn time_scales_together_by_hand() {
        let fine = [0.1, 0.2, 0.4];
        assert_eq!(combined(fine, [0.05, 0.3, 0.9]), fine);
        assert_eq!(combined(fine, [0.01, 0.02, 0.05]), [0.01, 0.02, 0.4]);
        assert_eq!(combined(fine, [0.5, 0.6, 0.8]), [0.1, 0.6, 0.8]);
        // Touching is no contradiction.
        assert_eq!(combined(fine, [0.4, 0.6, 0.8]), fine);
        assert_eq!(combined(fine, [0.01, 0.02, 0.1]), fine);
    }

    /// A walk whose steps scatter by a known amount, read in whole ticks: the guess is near, and
    /// the bounds contain it.
    #[test]
    fn a_known_scatter_is_found() {
        for jitter in [0.02, 0.1, 0.4] {
            let (mut at, mut walk) = (0.123, PhaseWalk::default());
            for i in 0..20_000_u32 {
                walk.push(f64::floor(at) as i64);
                at += 2.5 + jitter * mixed(i);
            }
            let facts = walk.facts().unwrap();
            let [lo, guess, hi] = facts.jitter;
            assert!(lo <= jitter && jitter <= hi, "{jitter}: {lo} {guess} {hi}");
            assert!((guess / jitter - 1.0).abs() < 0.3, "{jitter}: {guess}");
            // 19 999 steps: the two ends, and the walk between them.
            let (ends, walked) = ((1.0_f64 / 6.0).sqrt() / 19_999.0, guess / 141.417_82);
            let error = (ends * ends + walked * walked).sqrt();
            assert!((facts.period_error / error - 1.0).abs() < 1e-6);
        }
    }

    /// A fixed standard normal value for each number: SplitMix64, Box and Muller.
    fn mixed(i: u32) -> f64 {
        let uniform = |seed: u64| {
            let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (u, v) = (uniform(2 * u64::from(i) + 1), uniform(2 * u64::from(i) + 2));
        (-2.0 * (1.0 - u).ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    }
}
