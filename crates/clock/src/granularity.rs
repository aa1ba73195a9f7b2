//! The step that a clock really takes.
//!
//! **Question.** A clock counts in units of 0.4 ns (its resolution). Does it
//! take every value? On some virtual machines the TSC moves 26 ticks at a time,
//! and whoever times 5 ns with it sees 0 or 10.
//!
//! **Method.** Read the clock often, at varied distances, keep the differences
//! that are not zero, and find the largest step that at least 99 % of them are
//! multiples of. The greatest common divisor of all of them would say 1: one
//! odd reading in ten thousand is enough. Interrupts only make differences
//! longer, and multiples stay multiples.
//!
//! A clock whose nanoseconds the kernel computes from a counter shows steps of
//! 10 and now and then 11 for a true 10.015; such a clock's differences may miss
//! a multiple by the rounding ([`Grid::Rounded`]).
//!
//! **Caveats.** A step that is never taken alone is not found: if every
//! difference were a multiple of two steps, two steps would be the answer. That
//! is why the distances are varied. For rounded clocks a step below 4 units
//! cannot be told from rounding.

use std::collections::BTreeMap;
use std::hint::black_box;

use crate::{ClockId, Source};

/// How exactly the readings of a clock lie on its grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// The counter itself: a difference is a multiple of the step or it is not.
    Exact,
    /// Computed from a counter and rounded to whole units: off by up to one
    /// unit, and by up to 0.1 % where the kernel steers the rate.
    Rounded,
}

impl Grid {
    /// How the readings of this clock lie.
    #[must_use]
    pub const fn of(clock: ClockId) -> Self {
        match clock {
            ClockId::Tsc | ClockId::Cntvct => Self::Exact,
            _ => Self::Rounded,
        }
    }
}

/// The step of a clock, and what it was found from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Granularity {
    /// Smallest step that the clock takes, ticks.
    pub step_ticks: u64,
    /// Share of the differences that are multiples of it.
    pub share: f64,
    /// Differences used: those above zero.
    pub differences: u64,
    /// Differences below zero: the clock stepped back. A finding.
    pub backward: u64,
}

/// Share of the differences that must be multiples of the step: above the
/// rare odd ones (1 in 20 000 in the guest where this was found; each spoils two
/// differences), and far from what a wrong step reaches (half at best).
const SHARE_ON_GRID: f64 = 0.99;

/// Fewest differences that a step is concluded from.
const FEWEST_DIFFERENCES: u64 = 8;

/// Distinct differences that candidates are drawn from; bounds the search.
const MOST_SEEDS: usize = 128;

/// A smallest difference of up to this many steps still gives a rounded
/// clock's step away.
const MOST_STEPS_IN_SEED: u64 = 16;

/// Least step that rounding to whole units leaves visible.
const LEAST_ROUNDED_STEP: u64 = 4;

/// The largest step that 99 % of the positive differences are multiples of;
/// `None` with fewer than 8 of them.
///
/// ```
/// use undertick_clock::granularity::{Grid, step_of};
///
/// let differences = [26, 52, 26, 0, 26, 78, 26, 26, 52, 0, 26, 26];
/// assert_eq!(step_of(&differences, Grid::Exact).unwrap().step_ticks, 26);
/// ```
#[must_use]
pub fn step_of(differences_ticks: &[i64], grid: Grid) -> Option<Granularity> {
    let mut counts = BTreeMap::<u64, u64>::new();
    let mut backward = 0;
    for &difference in differences_ticks {
        match u64::try_from(difference) {
            Ok(0) => {}
            Ok(forward) => *counts.entry(forward).or_default() += 1,
            Err(_) => backward += 1,
        }
    }
    let differences: u64 = counts.values().sum();
    if differences < FEWEST_DIFFERENCES {
        return None;
    }
    let share = |fits: &dyn Fn(u64) -> bool| {
        let on_grid: u64 = counts
            .iter()
            .filter(|(difference, _)| fits(**difference))
            .map(|(_, count)| count)
            .sum();
        on_grid as f64 / differences as f64
    };
    let seeds = smallest(&counts, differences);
    let exact = divisors(&seeds)
        .into_iter()
        .map(|step| (step, share(&|d| d.is_multiple_of(step))))
        .find(|(_, share)| *share >= SHARE_ON_GRID)
        .unwrap_or((1, 1.0));
    let rounded = (grid == Grid::Rounded)
        .then(|| {
            parts(&seeds)
                .into_iter()
                .map(|step| (step, share(&|d| is_near_multiple(d, step))))
                .find(|(_, share)| *share >= SHARE_ON_GRID)
        })
        .flatten();
    let (step_ticks, share) = match rounded {
        Some(found) if found.0 > exact.0 => found,
        _ => exact,
    };
    Some(Granularity {
        step_ticks,
        share,
        differences,
        backward,
    })
}

/// The smallest distinct differences that make up more than twice the share
/// which may be off the grid: at least one of them is a multiple of the step.
fn smallest(counts: &BTreeMap<u64, u64>, differences: u64) -> Vec<u64> {
    let enough = 2.0 * (1.0 - SHARE_ON_GRID) * differences as f64;
    let mut seen = 0_u64;
    let mut seeds = Vec::new();
    for (difference, count) in counts.iter().take(MOST_SEEDS) {
        seeds.push(*difference);
        seen += count;
        if seen as f64 > enough {
            break;
        }
    }
    seeds
}

/// Every divisor of any seed, largest first.
fn divisors(seeds: &[u64]) -> Vec<u64> {
    let mut all = Vec::new();
    for &seed in seeds {
        let mut small = 1;
        while small <= seed / small {
            if seed.is_multiple_of(small) {
                all.extend([small, seed / small]);
            }
            small += 1;
            // A difference above 2^40 ticks (minutes) is no step; do not factor it.
            if small > 1 << 20 {
                break;
            }
        }
    }
    largest_first(all)
}

/// Every seed divided by 1 to 16, rounded, largest first.
fn parts(seeds: &[u64]) -> Vec<u64> {
    let all = seeds
        .iter()
        .flat_map(|seed| (1..=MOST_STEPS_IN_SEED).map(move |n| (seed + n / 2) / n))
        .filter(|step| *step >= LEAST_ROUNDED_STEP)
        .collect();
    largest_first(all)
}

fn largest_first(mut steps: Vec<u64>) -> Vec<u64> {
    steps.sort_unstable_by(|a, b| b.cmp(a));
    steps.dedup();
    steps
}

/// Whether a rounded clock with this step can show this difference.
fn is_near_multiple(difference: u64, step: u64) -> bool {
    let past = difference % step;
    let miss = past.min(step - past);
    // Below half a step the nearest multiple may be none at all.
    difference >= step / 2 && miss <= 1 + difference / 1_000
}

/// Differences collected from a clock that steps at every or every other read.
const FINE_DIFFERENCES: usize = 20_000;

/// Steps waited for on a clock that stands still for long.
const COARSE_STEPS: usize = 12;

/// Most reads of a coarse clock: at 5 ns or more each, half a second or so.
const MOST_READS: u64 = 20_000_000;

/// Most nanoseconds spent on a coarse clock. Twelve steps of 10 ms, the
/// coarsest tick that Linux is built with, and as much again.
const LONGEST_NS: u64 = 240_000_000;

/// Measures the step of a clock on the calling thread: under a millisecond for
/// a fine clock, twelve steps (up to 0.24 s) for a coarse one. `None` if it
/// hardly moved in that time.
#[must_use]
pub fn measure(source: Source) -> Option<Granularity> {
    let grid = Grid::of(source.clock());
    let mut differences = Vec::with_capacity(FINE_DIFFERENCES);
    let mut delay = Delay::new();
    let mut last = source.read_ticks();
    for _ in 0..FINE_DIFFERENCES {
        delay.run();
        let now = source.read_ticks();
        differences.push(now.wrapping_sub(last).cast_signed());
        last = now;
    }
    let moved = differences.iter().filter(|d| **d != 0).count();
    if moved < FINE_DIFFERENCES / 20 {
        differences = wait_for_steps(source);
    }
    step_of(&differences, grid)
}

/// The differences at which a coarse clock moves.
fn wait_for_steps(source: Source) -> Vec<i64> {
    let started_ns = crate::kernel::read_ns(libc::CLOCK_MONOTONIC_RAW).unwrap_or(0);
    let mut differences = Vec::with_capacity(COARSE_STEPS);
    let mut last = source.read_ticks();
    for read in 0..MOST_READS {
        let now = source.read_ticks();
        if now != last {
            differences.push(now.wrapping_sub(last).cast_signed());
            last = now;
            // Also the first is whole: the clock showed its last step when we came.
            if differences.len() == COARSE_STEPS {
                break;
            }
        }
        if read % 1_024 == 0 {
            let now_ns = crate::kernel::read_ns(libc::CLOCK_MONOTONIC_RAW).unwrap_or(0);
            if now_ns.wrapping_sub(started_ns) > LONGEST_NS {
                break;
            }
        }
    }
    differences
}

/// Work of 0 to 63 dependent multiplications, so that the distances between
/// reads do not keep to one multiple of the step.
struct Delay {
    state: u64,
}

impl Delay {
    const fn new() -> Self {
        Self {
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }

    #[inline]
    fn run(&mut self) {
        for _ in 0..self.state >> 58 {
            self.state = black_box(self.state.wrapping_mul(0x5851_f42d_4c95_7f2d));
        }
        self.state = self
            .state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
    }
}

#[cfg(test)]
#[path = "granularity_tests.rs"]
mod tests;
