//! Phase-stepped dither: a small delay in each cycle makes the phase of the
//! loop advance by the golden section of a tick, so that the phases seen fill
//! the tick evenly instead of at random.
//!
//! The run is a pilot and then blocks. Each block begins at an edge of the tick plus a random delay
//! of up to a tick. So the blocks' means are independent and unbiased whatever happens inside them,
//! and Student's interval over the blocks is honest even if the stepping fails. Within a block of M
//! cycles the step is a fraction a/M near the golden section. The M phases are evenly spaced, so
//! the count is one of two neighbours and the mean off by less than 1/M. Since multiples of a/M are
//! badly approximable, phases stay spread where the walk of the phase, or an uncertain length of
//! the loop, spoils the lattice. Blocks differ in length by up to 15 %, so that no activity is a
//! whole number of M-ths in all of them; the estimate is the ratio of the sums.
//!
//! A block that was disturbed is dropped. A disturbance of a loop, e.g. the end of a time slice,
//! keeps step with the clock, so whether a block is disturbed must not depend on its random phase.
//! Each block therefore watches a *window* of whole ticks, from the edge before its delay to an
//! edge after its last cycle, wherever in it the cycles lie. Blocks become shorter until most
//! windows fit between the disturbances, down to a single cycle.

use undertick_units::{Estimate, Interval};

use super::plan::{BLOCKS, PART_OF_A_BLOCK, PILOT, delay_to};
use super::results::{ActivityResult, count_sd};
use crate::long_run::student;
use crate::rate::proportion;

/// The golden section of a tick: the step whose multiples stay furthest from whole ticks.
pub const GOLDEN: f64 = 0.618_033_988_749_894_8;

/// Jitter, ticks, for which a step is chosen.
const CHOSEN_FOR: f64 = 0.003;
/// Number of harmonics that the choice examines.
const LOOKED_AT: u64 = 150;
/// Maximum distance from the golden section of the steps compared.
const NEAR: f64 = 0.02;

/// Returns a number of cycles near `cycles`, and a step a/M of the tick, coprime and near the
/// golden section: its M multiples are evenly spaced, and stay spread while they come in. Of such
/// steps it takes the one that suits an activity of `ticks` best. For example, if five steps
/// advance by exactly the length of the activity, its count telescopes.
pub(super) fn lattice(cycles: u64, ticks: f64) -> (u64, f64) {
    let around = (cycles / 20).clamp(1, 4);
    let harmonics = harmonics(ticks);
    let mut best = (cycles, GOLDEN, f64::INFINITY);
    for m in cycles.saturating_sub(around).max(3)..=cycles + around {
        let of = |share: f64| (share * m as f64).round() as u64;
        for a in of(GOLDEN - NEAR)..=of(GOLDEN + NEAR) {
            if !coprime(a, m) {
                continue;
            }
            let roughness = roughness(a, m, &harmonics);
            if roughness < best.2 {
                best = (m, a as f64 / m as f64, roughness);
            }
        }
    }
    (best.0, best.1)
}

/// Returns the power of the count's harmonics, and how much of each fades in a cycle.
fn harmonics(ticks: f64) -> Vec<(f64, f64)> {
    let pi = core::f64::consts::PI;
    (1..=LOOKED_AT)
        .map(|h| {
            let power = ((pi * h as f64 * ticks).sin() / h as f64).powi(2);
            let fade = (-2.0 * (pi * h as f64 * CHOSEN_FOR).powi(2)).exp();
            (power, fade)
        })
        .collect()
}

/// Variance, but for a factor, of a mean count while the phase steps by a/m with the jitter
/// `CHOSEN_FOR`: each harmonic's power times the spectrum of its walk at 0.
fn roughness(a: u64, m: u64, harmonics: &[(f64, f64)]) -> f64 {
    let step = core::f64::consts::TAU * a as f64 / m as f64;
    // cos(h step) by its recurrence.
    let double = 2.0 * step.cos();
    let (mut before, mut now) = (1.0, double / 2.0);
    let mut sum = 0.0;
    for (h, &(power, fade)) in (1_u64..).zip(harmonics) {
        if h % m != 0 {
            sum += power * (1.0 - fade * fade) / (1.0 - 2.0 * fade * now + fade * fade);
        }
        (before, now) = (now, double * now - before);
    }
    sum
}

fn coprime(mut a: u64, mut b: u64) -> bool {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

/// Number of ticks in a whole run below which they count as few.
const FEW: u64 = 8;
/// Factor by which blocks become shorter after a disturbed window; after a whole one they become
/// longer again, up to their full length. About 7 of 10 windows stay whole.
const SHORTER: f64 = 0.7;
const LONGER: f64 = 1.15;
/// Room in a window for cycles that take longer than learned.
const ROOM: f64 = 1.01;

/// The next action of a stepped run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Move {
    /// Begin to watch for disturbances and wait for an edge of the tick; then
    /// [`Stepper::aligned`].
    Align,
    /// Wait for the delay and run a cycle; then [`Stepper::push`].
    Cycle {
        /// The delay, ticks.
        delay_ticks: f64,
    },
    /// Wait until the clock shows that many ticks; then [`Stepper::held`].
    Hold {
        /// The reading that ends the window.
        until: i64,
    },
}

/// Decides the delays of a stepped run, and sums up its blocks. [`Stepper::disturbed`] reports a
/// disturbance at any time, instead of the answer that the move asks for.
#[derive(Clone, Debug)]
pub struct Stepper {
    random: u64,
    /// Number of cycles of a block without disturbances.
    proper_cycles: f64,
    /// Number of cycles of a block that disturbances allow.
    typical_cycles: f64,
    block_cycles: u64,
    block: u64,
    in_block: u64,
    step: f64,
    /// Remaining cycles of the pilot, which only show how long the loop is.
    pilot: u64,
    /// The edge that the window began with.
    edge: Option<i64>,
    delay: f64,
    delayed: f64,
    slope: Slope,
    loop_ticks: Weighted,
    sums: Vec<i64>,
    blocks: Stepped,
}

/// Means of the blocks of a stepped run.
#[derive(Clone, Debug)]
pub struct Stepped {
    activities: Vec<Activity>,
    cycle: Activity,
    dropped: u64,
    disturbances: u64,
}

/// Ticks counted in the cycles of a block.
#[derive(Clone, Copy, Debug)]
struct Block {
    ticks: i64,
    cycles: u64,
}

#[derive(Clone, Debug, Default)]
struct Activity {
    blocks: Vec<Block>,
    ticks: i64,
    cycles: u64,
}

/// Least squares line through the mean reading of each cycle: every point has its own phase, so
/// their whole ticks balance.
#[derive(Clone, Copy, Debug, Default)]
struct Slope {
    n: f64,
    i: f64,
    r: f64,
    ii: f64,
    ir: f64,
    first: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Weighted {
    sum: f64,
    weight: f64,
}

impl Slope {
    fn push(&mut self, index: u64, readings: &[i64]) {
        if self.n == 0.0 {
            self.first = readings[0];
        }
        let all: i64 = readings.iter().map(|r| r - self.first).sum();
        let (i, r) = (index as f64, all as f64 / readings.len() as f64);
        self.n += 1.0;
        self.i += i;
        self.r += r;
        self.ii += i * i;
        self.ir += i * r;
    }

    fn ticks_per_cycle(&self) -> Option<f64> {
        let spread = self.n * self.ii - self.i * self.i;
        (spread > 0.0).then(|| (self.n * self.ir - self.i * self.r) / spread)
    }
}

impl Stepper {
    /// Creates a stepper for a loop of that many activities and about `cycles` cycles in all;
    /// `seed` is for the random phases.
    #[must_use]
    pub fn new(activities: usize, cycles: u64, seed: u64) -> Self {
        let counted = cycles.saturating_sub(PILOT.min(cycles / 10)) as f64;
        let block_cycles = (counted / (BLOCKS as f64 + PART_OF_A_BLOCK)).max(3.0);
        Self {
            random: seed,
            proper_cycles: block_cycles,
            typical_cycles: block_cycles,
            block_cycles: PILOT,
            block: 0,
            step: GOLDEN,
            in_block: 0,
            pilot: PILOT.min(cycles / 10).max(8),
            edge: None,
            delay: 0.0,
            delayed: 0.0,
            slope: Slope::default(),
            loop_ticks: Weighted::default(),
            sums: vec![0; activities + 1],
            blocks: Stepped {
                activities: vec![Activity::default(); activities],
                cycle: Activity::default(),
                dropped: 0,
                disturbances: 0,
            },
        }
    }

    /// Returns the next action.
    pub fn next_move(&mut self) -> Move {
        let Some(edge) = self.edge.or((self.pilot > 0).then_some(0)) else {
            return Move::Align;
        };
        if self.in_block >= self.block_cycles {
            return Move::Hold {
                until: edge + self.window_ticks(),
            };
        }
        let delay_ticks = if self.in_block == 0 {
            self.uniform()
        } else {
            self.delay
        };
        self.delayed += delay_ticks;
        Move::Cycle { delay_ticks }
    }

    /// Reports that the edge came, and the reading of the clock in ticks.
    pub fn aligned(&mut self, reading: i64) {
        self.edge = Some(reading);
    }

    /// Returns the number of whole ticks that contain the random delay and every cycle of the
    /// block.
    fn window_ticks(&self) -> i64 {
        let cycles = self.block_cycles as f64;
        let length = cycles * self.loop_ticks().unwrap_or(1.0) + (cycles - 1.0) * self.delay;
        ((1.0 + length) * ROOM).ceil() as i64
    }

    /// SplitMix64 (Steele, Lea and Flood 2014), as a number in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Adds the cycle after that delay: its readings in whole ticks, including the one that ends
    /// it.
    pub fn push(&mut self, readings: &[i64]) {
        self.slope.push(self.in_block, readings);
        let last = self.sums.len() - 1;
        for (sum, ends) in self.sums.iter_mut().zip(readings.windows(2)) {
            *sum += ends[1] - ends[0];
        }
        self.sums[last] += readings[last] - readings[0];
        self.in_block += 1;
        if self.pilot > 0 {
            self.pilot -= 1;
            if self.pilot == 0 {
                self.learn();
                self.open();
            }
        }
    }

    /// Reports that the window ended undisturbed: its block counts.
    pub fn held(&mut self) {
        self.learn();
        let cycles = self.in_block;
        let all = self.blocks.activities.iter_mut();
        let all = all.chain(core::iter::once(&mut self.blocks.cycle));
        for (activity, &ticks) in all.zip(&self.sums) {
            activity.blocks.push(Block { ticks, cycles });
            activity.ticks += ticks;
            activity.cycles += cycles;
        }
        self.typical_cycles = (self.typical_cycles * LONGER).min(self.proper_cycles);
        self.open();
    }

    /// Reports a disturbance of the loop since the last [`Move::Align`]: the whole block is
    /// dropped, including the cycle that was just run.
    pub fn disturbed(&mut self) {
        self.blocks.disturbances += 1;
        self.blocks.dropped += (self.in_block + 1).min(self.block_cycles);
        self.learn();
        if self.pilot > 0 {
            // For the rest of it, after the disturbance.
            self.slope = Slope::default();
            self.in_block = 0;
            self.pilot -= 1;
        } else {
            self.typical_cycles = (self.typical_cycles * SHORTER).max(1.0);
        }
        if self.pilot == 0 {
            self.open();
        }
    }

    /// Opens the next block: its length, its step, its delay.
    fn open(&mut self) {
        self.block += 1;
        let spread = (self.block as f64 * GOLDEN).fract() - 0.5;
        let cycles = (self.typical_cycles * (1.0 + 0.3 * spread))
            .round()
            .max(1.0) as u64;
        (self.block_cycles, self.step) = if cycles < 3 {
            (cycles, GOLDEN)
        } else {
            lattice(cycles, self.blocks.shortest())
        };
        if let Some(length) = self.loop_ticks() {
            self.delay = delay_to(length, self.step);
        }
        self.sums.fill(0);
        self.slope = Slope::default();
        (self.in_block, self.edge) = (0, None);
    }

    /// Learns the loop's length from the readings of a block.
    fn learn(&mut self) {
        if let Some(advance) = self.slope.ticks_per_cycle() {
            // Readings are whole ticks: the slope's error falls as n^-1.5.
            let weight = self.slope.n.powi(3);
            self.loop_ticks.sum += weight * (advance - self.delay);
            self.loop_ticks.weight += weight;
        }
    }

    /// Returns the time spent in delays so far, ticks.
    #[must_use]
    pub fn delayed_ticks(&self) -> f64 {
        self.delayed
    }

    /// Returns the current delay of each cycle, ticks.
    #[must_use]
    pub fn step_delay_ticks(&self) -> f64 {
        self.delay
    }

    /// Returns the length of the loop without delays, as learned so far, ticks.
    #[must_use]
    pub fn loop_ticks(&self) -> Option<f64> {
        (self.loop_ticks.weight > 0.0).then(|| self.loop_ticks.sum / self.loop_ticks.weight)
    }

    /// Returns the blocks so far.
    #[must_use]
    pub fn blocks(&self) -> &Stepped {
        &self.blocks
    }
}

impl Stepped {
    /// Returns the mean of the shortest activity that was seen, ticks: it needs the most cycles, so
    /// the steps are chosen for it.
    fn shortest(&self) -> f64 {
        (self.activities.iter())
            .filter(|a| a.ticks > 0)
            .map(Activity::mean)
            .fold(0.5, f64::min)
    }

    /// Returns the estimates of the activities, ns, for a tick of that length.
    #[must_use]
    pub fn activities(&self, tick_ns: f64, level: f64) -> Vec<ActivityResult> {
        (self.activities.iter())
            .map(|a| a.result(tick_ns, level))
            .collect()
    }

    /// Returns the estimate of the cycle without its delay, ns.
    #[must_use]
    pub fn cycle(&self, tick_ns: f64, level: f64) -> ActivityResult {
        self.cycle.result(tick_ns, level)
    }

    /// Returns the number of cycles dropped with the disturbed blocks.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of blocks that were disturbed.
    #[must_use]
    pub fn disturbances(&self) -> u64 {
        self.disturbances
    }

    /// Returns the number of blocks that count.
    #[must_use]
    pub fn whole(&self) -> usize {
        self.cycle.blocks.len()
    }
}

impl Activity {
    fn mean(&self) -> f64 {
        self.ticks as f64 / self.cycles.max(1) as f64
    }

    fn result(&self, tick_ns: f64, level: f64) -> ActivityResult {
        let b = self.blocks.len() as f64;
        let (ticks, cycles) = (self.ticks, self.cycles);
        let (n, mean) = (cycles as f64, self.mean());
        let squares: f64 = (self.blocks.iter())
            .map(|block| (block.ticks as f64 - mean * block.cycles as f64).powi(2))
            .sum();
        let sd = (squares * b / (b - 1.0).max(1.0)).sqrt() / n.max(1.0);
        let interval = if self.blocks.len() < 2 {
            Interval { lo: None, hi: None }
        } else {
            let half = student(level, b - 1.0) * sd.max(self.finest());
            let (lo, hi) = self.few(ticks, cycles, level);
            let (lo, hi) = ((mean - half).min(lo), (mean + half).max(hi));
            Interval::new(lo.max(0.0) * tick_ns, hi * tick_ns)
        };
        let p = mean - mean.floor();
        ActivityResult {
            estimate: Estimate {
                value: mean * tick_ns,
                interval,
                level,
                unit: "ns".into(),
                method: "phase-stepped blocks".into(),
                n: cycles,
                n_effective: if sd > 0.0 {
                    p * (1.0 - p) / (sd * sd)
                } else {
                    n
                },
                notes: Vec::new(),
            },
            ticks,
            predicted_sd_ns: count_sd(mean, cycles) * tick_ns,
            sd_ns: sd * tick_ns,
            independence: None,
            refused: None,
        }
    }

    /// Returns the bounds of independent counts where only a few ticks were counted, as blocks then
    /// say little about their own scatter; otherwise none.
    fn few(&self, ticks: i64, cycles: u64, level: f64) -> (f64, f64) {
        let nothing = (f64::INFINITY, 0.0);
        let Some(seen) = u64::try_from(ticks).ok().filter(|&t| t < FEW) else {
            return nothing;
        };
        proportion(seen.min(cycles), cycles, level).map_or(nothing, |e| {
            (
                e.interval.lo.unwrap_or(0.0),
                e.interval.hi.unwrap_or(f64::INFINITY),
            )
        })
    }

    /// Returns the smallest standard deviation believed, ticks: that of one tick more in one of the
    /// blocks. If all blocks agree, a smaller one never shows.
    fn finest(&self) -> f64 {
        1.0 / self.cycles.max(1) as f64
    }
}

#[cfg(test)]
mod tests;
