//! The step that a clock really takes.
//!
//! **Question.** A clock counts in units of 0.4 ns (its resolution). Does it take every value? On
//! some virtual machines the TSC moves 10 ns at a time, and a measurement of 5 ns with it gives 0
//! or 10.
//!
//! **Method.** Read the clock often, at varied distances, keep the differences
//! that are not zero, and find the largest step that at least 99 % of them are
//! multiples of. The greatest common divisor of all of them would say 1: one
//! odd reading in ten thousand is enough. Interrupts only make differences
//! longer, and multiples stay multiples.
//!
//! A step need not be a whole number of ticks: 10 ns are 24.45 ticks of a TSC of
//! 2.445 GHz, which shows 24 or 25, never 26; the kernel's clocks show whole
//! nanoseconds of a step of 10.015. So a difference may miss a multiple by the
//! rounding of its two readings, one unit, and the step is the time of many steps
//! over their number. Below four units rounding hides the step.
//!
//! **Caveats.** A step that is never taken alone is not found: if every
//! difference were a multiple of two steps, two steps would be the answer. That
//! is why the distances are varied.

use std::collections::BTreeMap;
use std::hint::black_box;

use crate::{ClockId, Source};

/// Sources besides rounding that move the readings of a clock off its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// None: a counter.
    Steady,
    /// The kernel steers its rate, by up to 0.1 %.
    Steered,
}

impl Grid {
    /// Returns how the readings of this clock lie.
    #[must_use]
    pub const fn for_clock(clock: ClockId) -> Self {
        match clock {
            ClockId::Tsc | ClockId::Cntvct => Self::Steady,
            _ => Self::Steered,
        }
    }

    /// Returns how far a difference may lie from a multiple of the step, in units.
    fn may_miss(self, difference: u64) -> f64 {
        match self {
            Self::Steady => ROUNDED,
            Self::Steered => ROUNDED + difference as f64 / 1_000.0,
        }
    }
}

/// The step of a clock, and what it was found from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Granularity {
    /// Smallest step that the clock takes, ticks; at least 1.
    pub step_ticks: f64,
    /// Share of the differences that are multiples of it.
    pub share: f64,
    /// Number of differences used: those above zero.
    pub differences: u64,
    /// Number of differences below zero: the clock stepped back, which is a finding.
    pub backward: u64,
}

/// Share of the differences that must be multiples of the step: above the
/// rare odd ones (1 in 20 000 in the guest where this was found; each spoils two
/// differences), and far from what a wrong step reaches (half at best).
const SHARE_ON_GRID: f64 = 0.99;

/// Minimum number of differences from which a step is concluded.
const FEWEST_DIFFERENCES: u64 = 8;

/// Number of distinct differences from which candidates for a whole step are drawn; it bounds the
/// search.
const MOST_SEEDS: usize = 128;
/// The same for steps that need not be whole, of which each seed gives many.
const FEW_SEEDS: usize = 32;

/// Maximum number of steps in a smallest difference that still reveals a step.
const MOST_STEPS_IN_SEED: u64 = 16;

/// Smallest step that rounding to whole units leaves visible.
const LEAST_ROUNDED_STEP: f64 = 4.0;

/// Maximum deviation from rounding. Each of two readings is rounded down, so their difference
/// misses by less than a unit; a little more is allowed, because the step is not known exactly.
const ROUNDED: f64 = 1.1;

/// Maximum probability of lying on a wrong step: differences with a higher one are not evidence.
const BY_CHANCE: f64 = 1e-6;

/// At least one in this many of the differences must be evidence.
const SHOWN: u64 = 8;

/// A difference of one unit does not count on a clock whose step is larger: a TSC of 10 ns
/// sometimes showed one tick more within a step.
const NO_STEP: u64 = 1;

/// Returns the largest step that 99 % of the positive differences are multiples of; `None` with
/// fewer than 8 of them.
///
/// ```
/// use undertick_clock::granularity::{Grid, step_of};
///
/// let differences = [26, 52, 26, 0, 26, 78, 26, 26, 52, 0, 26, 26];
/// assert_eq!(step_of(&differences, Grid::Steady).unwrap().step_ticks, 26.0);
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
    let back_by_one = differences_ticks.iter().filter(|&&d| d == -1).count() as u64;
    let table = Table::new(counts, back_by_one);
    let exact = whole_step(&table, differences);
    let (step_ticks, share) = match rounded_step(&table, differences, grid) {
        // If it is larger by less, it is the same step, less well known.
        Some(found) if found.0 > exact.0 + 0.5 => found,
        _ => exact,
    };
    Some(Granularity {
        step_ticks,
        share,
        differences,
        backward,
    })
}

/// Returns the largest whole step that the differences are multiples of, and the share of those
/// that are.
fn whole_step(table: &Table, differences: u64) -> (f64, f64) {
    let share = |step: u64| {
        let on_grid: u64 = (table.counts.iter())
            .filter(|(difference, _)| difference.is_multiple_of(step))
            .map(|(_, count)| count)
            .sum();
        on_grid as f64 / differences as f64
    };
    divisors(&smallest(&table.counts, differences, MOST_SEEDS))
        .into_iter()
        .map(|step| (step as f64, share(step)))
        .find(|(_, share)| *share >= SHARE_ON_GRID)
        .unwrap_or((1.0, 1.0))
}

/// Returns the largest step, whole or not, that the differences are rounded multiples of, and the
/// share of those that are.
fn rounded_step(table: &Table, differences: u64, grid: Grid) -> Option<(f64, f64)> {
    candidates(&smallest(table.from(NO_STEP + 1), differences, FEW_SEEDS))
        .into_iter()
        .filter(|candidate| {
            // The candidate is known to a twentieth of a unit in the smallest difference: in eight
            // of those it misses by half a unit more than rounding does.
            let longest = 8.0 * candidate.seed;
            let found = table.on_grid(candidate.step, longest, SHARE_ON_GRID, |d| {
                grid.may_miss(d) + 0.5
            });
            found.is_some_and(|found| found.of >= differences / SHOWN)
        })
        .filter_map(|candidate| {
            let near = table.fitted(candidate.step, 8.0 * candidate.seed, grid)?;
            let step = table.fitted(near, 64.0 * candidate.seed, grid)?;
            (step >= LEAST_ROUNDED_STEP).then_some((step, candidate))
        })
        .find_map(|(step, candidate)| {
            // Some lie there by chance, most of them for a small step: the odd ones are more than
            // those seen, and few differences all lie there easily.
            let by_chance = ((2.0 * grid.may_miss(step as u64) + 1.0) / step).min(1.0);
            let least = 1.0 - (1.0 - SHARE_ON_GRID) * (1.0 - by_chance);
            let longest = 64.0 * candidate.seed;
            let found = table.on_grid(step, longest, least, |d| grid.may_miss(d))?;
            let is_chance = by_chance.powf(found.of as f64) > BY_CHANCE;
            (!is_chance).then_some((step, found.share))
        })
}

/// Returns the smallest distinct differences, `most` of them or as many as make up more than twice
/// the share that may be off the grid: at least one of them is a multiple of the step.
fn smallest(counts: &[(u64, u64)], differences: u64, most: usize) -> Vec<u64> {
    let enough = 2.0 * (1.0 - SHARE_ON_GRID) * differences as f64;
    let mut seen = 0_u64;
    let mut seeds = Vec::new();
    for &(difference, count) in counts.iter().take(most) {
        seeds.push(difference);
        seen += count;
        if seen as f64 > enough {
            break;
        }
    }
    seeds
}

/// Returns every divisor of any seed, largest first.
fn divisors(seeds: &[u64]) -> Vec<u64> {
    let mut all = Vec::new();
    for &seed in seeds {
        let mut small = 1;
        while small <= seed / small {
            if seed.is_multiple_of(small) {
                all.extend([small, seed / small]);
            }
            small += 1;
            // A difference above 2^40 ticks (minutes) is not a step; do not factor it.
            if small > 1 << 20 {
                break;
            }
        }
    }
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    all
}

/// A step that the smallest differences allow.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    step: f64,
    /// The difference of which the step is a part.
    seed: f64,
}

/// Returns every seed, and what lies within its rounding, divided by 1 to 16; largest first.
fn candidates(seeds: &[u64]) -> Vec<Candidate> {
    let parts = |seed: u64| {
        (1..=MOST_STEPS_IN_SEED).flat_map(move |n| {
            (-10..=10_i32).map(move |tenths| Candidate {
                step: (seed as f64 + f64::from(tenths) / 10.0) / n as f64,
                seed: seed as f64,
            })
        })
    };
    let mut all: Vec<_> = (seeds.iter().flat_map(|&seed| parts(seed)))
        // For smaller ones every number is a rounded multiple.
        .filter(|candidate| candidate.step >= LEAST_ROUNDED_STEP - 0.1)
        .collect();
    all.sort_by(|a, b| b.step.total_cmp(&a.step));
    all
}

/// The differences that lie on a grid.
struct OnGrid {
    share: f64,
    /// Number of differences of which it is a share.
    of: u64,
}

/// Distinct differences above 0, ascending, and how often each came.
struct Table {
    counts: Vec<(u64, u64)>,
    /// Number of differences before each place.
    before: Vec<u64>,
    /// Number of differences of -1.
    back_by_one: u64,
}

impl Table {
    fn new(counts: BTreeMap<u64, u64>, back_by_one: u64) -> Self {
        let counts: Vec<_> = counts.into_iter().collect();
        let before = (counts.iter())
            .scan(0, |sum, &(_, count)| {
                Some(std::mem::replace(sum, *sum + count))
            })
            .collect();
        Self {
            counts,
            before,
            back_by_one,
        }
    }

    /// Returns the differences from `least` on.
    fn from(&self, least: u64) -> &[(u64, u64)] {
        &self.counts[self.counts.partition_point(|&(d, _)| d < least)..]
    }

    /// Selects, of the differences above one unit and up to `longest`, those that are `step` or a
    /// multiple, within the allowed deviation; `None` if their share is below `least`.
    fn on_grid(
        &self,
        step: f64,
        longest: f64,
        least: f64,
        may_miss: impl Fn(u64) -> f64,
    ) -> Option<OnGrid> {
        let places = [NO_STEP + 1, (longest as u64).saturating_add(1)]
            .map(|bound| self.counts.partition_point(|&(d, _)| d < bound));
        let total = self.counts.last().map_or(0, |&(_, n)| n) + self.before.last().unwrap_or(&0);
        let up_to = |place: usize| self.before.get(place).copied().unwrap_or(total);
        let of = up_to(places[1]).saturating_sub(up_to(places[0]));
        let most_off = (1.0 - least) * of as f64;
        let mut off = 0;
        for &(difference, count) in self.counts.get(places[0]..places[1])? {
            let (steps, miss) = nearest(difference, step);
            if steps < 1.0 || miss > may_miss(difference) {
                off += count;
                if off as f64 > most_off {
                    return None;
                }
            }
        }
        (of > 0).then(|| OnGrid {
            share: 1.0 - off as f64 / of as f64,
            of,
        })
    }

    /// Refines the step near `near`, from the time of many over their number: what rounding takes
    /// from one difference it gives to the next. It uses differences up to `longest`.
    fn fitted(&self, near: f64, longest: f64, grid: Grid) -> Option<f64> {
        let (mut ticks, mut steps) = (-(self.back_by_one as f64), 0.0);
        for &(difference, count) in &self.counts {
            if difference as f64 > longest {
                break;
            }
            let (here, miss) = nearest(difference, near);
            if miss <= grid.may_miss(difference) + 0.5 {
                ticks += difference as f64 * count as f64;
                steps += here * count as f64;
            }
        }
        (steps > 0.0).then(|| ticks / steps)
    }
}

/// Returns the nearest whole number of steps, and the distance to it.
fn nearest(difference: u64, step: f64) -> (f64, f64) {
    let steps = (difference as f64 / step).round();
    (steps, (difference as f64 - steps * step).abs())
}

/// Number of differences collected from a clock that steps at every or every other read.
const FINE_DIFFERENCES: usize = 20_000;

/// Number of steps awaited on a clock that stands still for long.
const COARSE_STEPS: usize = 12;

/// Maximum number of reads of a coarse clock: at 5 ns or more each, about half a second.
const MOST_READS: u64 = 20_000_000;

/// Maximum time spent on a coarse clock, ns: twelve steps of 10 ms, the coarsest tick that Linux is
/// built with, and as much again.
const LONGEST_NS: u64 = 240_000_000;

/// Measures the step of a clock on the calling thread: under a millisecond for a fine clock, twelve
/// steps (up to 0.24 s) for a coarse one. `None` if it hardly moved in that time.
#[must_use]
pub fn measure(source: Source) -> Option<Granularity> {
    let grid = Grid::for_clock(source.clock());
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

/// Returns the differences at which a coarse clock moves.
fn wait_for_steps(source: Source) -> Vec<i64> {
    let started_ns = crate::kernel::read_ns(libc::CLOCK_MONOTONIC_RAW).unwrap_or(0);
    let mut differences = Vec::with_capacity(COARSE_STEPS);
    let mut last = source.read_ticks();
    for read in 0..MOST_READS {
        let now = source.read_ticks();
        if now != last {
            differences.push(now.wrapping_sub(last).cast_signed());
            last = now;
            // The first one is whole too: the clock showed its last step at the start.
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

/// Work of 0 to 63 dependent multiplications, so that the distances between reads are not multiples
/// of one step.
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
