//! Phase-stepped dither: a small delay in each cycle makes the phase of the
//! loop advance by the golden section of a tick, so that the phases seen fill
//! the tick evenly instead of at random.
//!
//! The run is a pilot and then blocks; a block with a disturbed cycle is left out. Each block begins at a random phase (a
//! random delay of up to a tick), so the blocks' means are independent and
//! unbiased whatever happens inside them, and Student's interval over the
//! blocks is honest even if the stepping fails. Within a block of M cycles the
//! step is a fraction a/M near the golden section: the M phases are evenly spaced, so the count is one of two
//! neighbours and the mean off by less than 1/M; and since multiples of a/M
//! are badly approximable, phases stay spread where the walk of the phase, or
//! a length of the loop not yet known well, spoils the lattice. Blocks differ in
//! length by up to 15 %, so that no activity is a whole number of M-ths in all of
//! them; the estimate is the ratio of the sums.

use undertick_units::{Estimate, Interval};

use super::counts::ActivityCounts;
use super::plan::{BLOCKS, delay_to};
use super::results::{ActivityResult, count_sd, selection, share};
use crate::long_run::student;
use crate::rate::proportion;

/// The golden section of a tick: the step whose multiples keep the furthest
/// from whole ticks.
pub const GOLDEN: f64 = 0.618_033_988_749_894_8;

/// Jitter, ticks, for which a step is chosen.
const CHOSEN_FOR: f64 = 0.003;
/// Harmonics that the choice looks at.
const LOOKED_AT: u64 = 150;
/// Steps compared lie this near to the golden section.
const NEAR: f64 = 0.02;

/// A number of cycles near `cycles`, and a step a/M of the tick, coprime and
/// near the golden section: its M multiples are evenly spaced, and stay spread
/// while they come in. Of such steps the one that suits an activity of `ticks`
/// best: e.g. five steps that advance by just the length of the activity make
/// its count telescope.
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

/// Power of the count's harmonics, and how much of each fades in a cycle.
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

/// Variance, but for a factor, of a mean count while the phase steps by a/m with
/// the jitter `CHOSEN_FOR`: each harmonic's power times the spectrum of its walk
/// at 0.
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

/// Cycles of the pilot.
const PILOT: u64 = 64;
/// Fewer ticks than this in a whole run are few.
const FEW: u64 = 8;
/// Shortest block that is made where cycles are often disturbed.
const SHORTEST: f64 = 24.0;
/// Disturbed cycles that a block meets on average where they are frequent.
const MET: f64 = 0.5;

/// Decides the delays of a stepped run, and sums up its blocks.
#[derive(Clone, Debug)]
pub struct Stepper {
    random: u64,
    typical_cycles: u64,
    block_cycles: u64,
    block: u64,
    cycles: u64,
    in_block: u64,
    step: f64,
    pilot: bool,
    restart: bool,
    delay: f64,
    delayed: f64,
    slope: Slope,
    loop_ticks: Weighted,
    sums: Vec<i64>,
    kept: u64,
    blocks: Stepped,
}

/// Means of the blocks of a stepped run.
#[derive(Clone, Debug)]
pub struct Stepped {
    activities: Vec<Activity>,
    cycle: Activity,
    dropped: u64,
}

/// Ticks counted in the cycles of a block that were not dropped.
#[derive(Clone, Copy, Debug)]
struct Block {
    ticks: i64,
    cycles: u64,
}

#[derive(Clone, Debug, Default)]
struct Activity {
    blocks: Vec<Block>,
    counts: ActivityCounts,
}

/// Least squares line through the mean reading of each cycle: every point is a
/// phase of its own, so their whole ticks balance.
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
    /// For a loop of that many activities and about `cycles` cycles in all;
    /// `seed` for the random phases.
    #[must_use]
    pub fn new(activities: usize, cycles: u64, seed: u64) -> Self {
        let block_cycles = (cycles.saturating_sub(PILOT.min(cycles / 10)) / BLOCKS).max(3);
        Self {
            random: seed,
            typical_cycles: block_cycles,
            block_cycles: PILOT.min(block_cycles.max(8)),
            block: 0,
            cycles: 0,
            step: GOLDEN,
            in_block: 0,
            pilot: true,
            restart: false,
            delay: 0.0,
            delayed: 0.0,
            slope: Slope::default(),
            loop_ticks: Weighted::default(),
            sums: vec![0; activities + 1],
            kept: 0,
            blocks: Stepped {
                activities: vec![Activity::default(); activities],
                cycle: Activity::default(),
                dropped: 0,
            },
        }
    }

    /// The delay before the next cycle, ticks.
    pub fn delay_ticks(&mut self) -> f64 {
        let delay = if self.in_block == 0 || core::mem::take(&mut self.restart) {
            self.uniform()
        } else {
            self.delay
        };
        self.delayed += delay;
        delay
    }

    /// SplitMix64 (Steele, Lea and Flood 2014), as a number in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Adds the cycle after that delay: its readings in whole ticks, the one
    /// that ends it included.
    pub fn push(&mut self, readings: &[i64]) {
        self.slope.push(self.in_block, readings);
        let last = self.sums.len() - 1;
        for (sum, ends) in self.sums.iter_mut().zip(readings.windows(2)) {
            *sum += ends[1] - ends[0];
        }
        self.sums[last] += readings[last] - readings[0];
        if !self.pilot {
            for (activity, ends) in self.blocks.activities.iter_mut().zip(readings.windows(2)) {
                activity.counts.push(ends[1] - ends[0]);
            }
            self.blocks.cycle.counts.push(readings[last] - readings[0]);
        }
        self.kept += 1;
        self.advance();
    }

    /// The cycle after that delay was disturbed. Its whole block is left out:
    /// what disturbs a loop, e.g. the scheduler's tick, may well keep step with
    /// the clock, and the phases that are then missing would bias the rest.
    /// Where disturbances leave no whole blocks, cycles are left out one by one.
    pub fn drop_cycle(&mut self) {
        self.blocks.dropped += 1;
        self.cycles += 1;
        self.learn();
        if self.pilot || !self.blocks.is_often_disturbed(self.cycles) {
            self.open();
        } else {
            self.restart = true;
            self.slope = Slope::default();
        }
    }

    fn advance(&mut self) {
        self.cycles += 1;
        self.in_block += 1;
        if self.in_block >= self.block_cycles {
            self.learn();
            self.close();
            self.open();
        }
    }

    /// The next block: its length, its step, its delay.
    fn open(&mut self) {
        self.block += 1;
        let spread = (self.block as f64 * GOLDEN).fract() - 0.5;
        let undisturbed = MET * self.cycles as f64 / self.blocks.dropped.max(1) as f64;
        let typical = (self.typical_cycles as f64).min(undisturbed.max(SHORTEST));
        let cycles = typical * (1.0 + 0.3 * spread);
        (self.block_cycles, self.step) =
            lattice((cycles.round() as u64).max(3), self.blocks.shortest());
        if let Some(length) = self.loop_ticks() {
            self.delay = delay_to(length, self.step);
        }
        self.sums.fill(0);
        self.slope = Slope::default();
        (self.kept, self.in_block, self.pilot) = (0, 0, false);
    }

    /// The loop's length, from the readings of a block.
    fn learn(&mut self) {
        if let Some(advance) = self.slope.ticks_per_cycle() {
            // Ticks are read whole: the slope's error falls as n^-1.5.
            let weight = self.slope.n.powi(3);
            self.loop_ticks.sum += weight * (advance - self.delay);
            self.loop_ticks.weight += weight;
        }
    }

    /// Ends a whole block: keeps its sums.
    fn close(&mut self) {
        if self.pilot {
            return;
        }
        let cycles = self.kept;
        let all = self.blocks.activities.iter_mut();
        let all = all.chain(core::iter::once(&mut self.blocks.cycle));
        for (activity, &ticks) in all.zip(&self.sums) {
            activity.blocks.push(Block { ticks, cycles });
        }
    }

    /// Time spent in delays so far, ticks.
    #[must_use]
    pub fn delayed_ticks(&self) -> f64 {
        self.delayed
    }

    /// The delay of each cycle now, ticks.
    #[must_use]
    pub fn step_delay_ticks(&self) -> f64 {
        self.delay
    }

    /// Length of the loop without delays, as learned so far, ticks.
    #[must_use]
    pub fn loop_ticks(&self) -> Option<f64> {
        (self.loop_ticks.weight > 0.0).then(|| self.loop_ticks.sum / self.loop_ticks.weight)
    }

    /// The blocks so far.
    #[must_use]
    pub fn blocks(&self) -> &Stepped {
        &self.blocks
    }
}

impl Stepped {
    /// Whether so many of that many cycles were disturbed that no whole blocks
    /// are left.
    fn is_often_disturbed(&self, cycles: u64) -> bool {
        self.dropped > 16 && self.dropped as f64 * SHORTEST > cycles as f64
    }

    /// Mean of the shortest activity that was seen at all, ticks: it needs the
    /// most cycles, so the steps are chosen for it.
    fn shortest(&self) -> f64 {
        (self.activities.iter())
            .map(|a| a.counts.mean())
            .filter(|&mean| mean > 0.0)
            .fold(f64::INFINITY, f64::min)
            .min(0.5)
    }

    /// Estimates of the activities, ns, for a tick of that length. Where cycles
    /// had to be left out one by one, the intervals hold what that may have
    /// shifted.
    #[must_use]
    pub fn activities(&self, tick_ns: f64, level: f64) -> Vec<ActivityResult> {
        (self.activities.iter())
            .map(|a| self.widened(a, tick_ns, level))
            .collect()
    }

    /// Estimate of the cycle without its delay, ns.
    #[must_use]
    pub fn cycle(&self, tick_ns: f64, level: f64) -> ActivityResult {
        self.widened(&self.cycle, tick_ns, level)
    }

    fn widened(&self, activity: &Activity, tick_ns: f64, level: f64) -> ActivityResult {
        let mut result = activity.result(tick_ns, level);
        let kept = self.cycle.counts.n();
        if self.is_often_disturbed(kept + self.dropped) {
            let (mean, cycle) = (activity.counts.mean(), self.cycle.counts.mean());
            result.widen(selection(mean, cycle, share(self.dropped, kept)), tick_ns);
        }
        result
    }

    /// Disturbed cycles, each of which cost its block.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Activity {
    fn result(&self, tick_ns: f64, level: f64) -> ActivityResult {
        let b = self.blocks.len() as f64;
        let ticks: i64 = self.blocks.iter().map(|b| b.ticks).sum();
        let cycles: u64 = self.blocks.iter().map(|b| b.cycles).sum();
        let n = cycles as f64;
        let mean = ticks as f64 / n.max(1.0);
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

    /// Bounds of independent counts where only a few ticks were counted: blocks
    /// then say little about their own scatter. Else nothing.
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

    /// The least standard deviation believed, ticks: that of one tick more in
    /// one of the blocks. Where all blocks say the same, less never shows.
    fn finest(&self) -> f64 {
        let cycles: u64 = self.blocks.iter().map(|b| b.cycles).sum();
        1.0 / cycles.max(1) as f64
    }
}
