//! Planning: the cycles and the time needed, before any measurement (eq. 14).

use super::stepped::{GOLDEN, lattice};
use super::variance::Spectrum;
use super::walk::WalkFacts;
use crate::long_run::{normal, student};

/// Maximum number of cycles of a lock that a plan warns about.
const MOST_CYCLES: u32 = 24;
/// Passes of the phase over a q-th of the tick from which a lock is resolved.
const PASSES: f64 = 4.0;
/// Number of blocks of a stepped run.
pub(super) const BLOCKS: u64 = 40;
/// Share of a block added so that the last one is whole when the run ends.
pub(super) const PART_OF_A_BLOCK: f64 = 0.4;
/// Number of cycles before the first block, in which the loop's length is learned.
pub(super) const PILOT: u64 = 64;
/// Jitter of a cycle that the figures for stepping assume, ticks.
const ASSUMED_JITTER: f64 = 0.002;
/// Minimum number of shots at tick edges: about half of all ticks of 1 ms meet an interrupt, and
/// the interval then needs this many to lie among the others.
const FEWEST_SHOTS: u64 = 24;

/// The measurement to be planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// Expected duration of the activity, ns; if there are several, the smallest.
    pub duration_ns: f64,
    /// Length of a tick, ns.
    pub tick_ns: f64,
    /// Level of the interval.
    pub level: f64,
    /// Total width of the interval, as a share of the duration.
    pub precision: f64,
    /// Length of the loop's cycle, ns.
    pub loop_ns: Option<f64>,
    /// Cost of one poll of the clock, ns, for the shots at edges.
    pub poll_ns: f64,
}

/// The plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Number of cycles by 14a, independent counts.
    pub cycles: u64,
    /// Time for them, seconds.
    pub seconds: Option<f64>,
    /// Tick length as a multiple of the duration.
    pub tick_over_duration: f64,
    /// Number of cycles if the phase is stepped, at a jitter of 0.2 % of the tick.
    pub stepped_cycles: u64,
    /// Time for them, delays included, seconds.
    pub stepped_seconds: Option<f64>,
    /// Number of shots if the loop may wait for tick edges.
    pub edge_samples: u64,
    /// Time for them, with one calibrating shot each, seconds.
    pub edge_seconds: f64,
    /// Delay to add to each cycle so that the phase steps by the golden
    /// section, ns.
    pub delay_ns: Option<f64>,
    /// Objections to plain counting in this loop.
    pub warnings: Vec<String>,
}

/// Returns the number of cycles by 14a (14b where the activity is shorter than a tick), for an
/// interval `width_sds` standard deviations wide. The report rounds these: 3.30 at 90 %, 3.94 (3.92
/// by the normal quantile) at 95 %, 5.16 (5.15) at 99 %.
#[must_use]
pub fn cycles_needed(width_sds: f64, precision: f64, tick_over_duration: f64) -> f64 {
    let whole = (1.0 / tick_over_duration).floor();
    let below = 1.0 - whole * tick_over_duration;
    let above = (1.0 + whole) * tick_over_duration - 1.0;
    (width_sds / precision).powi(2) * below * above
}

impl Plan {
    /// Computes the plan. `None` unless durations and tick are positive and finite, the level lies
    /// between 0 and 1 and the precision above 0.
    #[must_use]
    pub fn for_question(q: &Question) -> Option<Self> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let lengths = [
            q.duration_ns,
            q.tick_ns,
            q.precision,
            q.loop_ns.unwrap_or(1.0),
            q.poll_ns,
        ];
        if !(lengths.into_iter().all(positive) && positive(q.level) && q.level < 1.0) {
            return None;
        }
        let ratio = q.tick_ns / q.duration_ns;
        let width = 2.0 * normal(q.level);
        let cycles = cycles_needed(width, q.precision, ratio).ceil().max(1.0) as u64;
        let seconds = |n: u64, extra: f64| q.loop_ns.map(|l| n as f64 * (l + extra) / 1e9);
        let step = q.loop_ns.map(|l| golden_delay(l / q.tick_ns));
        let delay_ns = step.map(|s| s * q.tick_ns);
        let stepped_cycles = stepped(q).min(cycles);
        let edge_samples = edges(q, width);
        Some(Self {
            cycles,
            seconds: seconds(cycles, 0.0),
            tick_over_duration: ratio,
            stepped_cycles,
            stepped_seconds: seconds(stepped_cycles, delay_ns.unwrap_or(0.0)),
            edge_samples,
            edge_seconds: edge_samples as f64 * (q.duration_ns + 3.5 * q.tick_ns) / 1e9,
            delay_ns,
            warnings: warnings(q, cycles, delay_ns),
        })
    }
}

/// Returns the smallest delay, ticks, that makes a loop of `period` ticks step by the golden
/// section of a tick, forwards or backwards.
fn golden_delay(period: f64) -> f64 {
    delay_to(period, GOLDEN)
}

/// Returns the smallest delay, ticks, that makes a loop of `period` ticks step by `step` of a tick,
/// forwards or backwards.
pub(super) fn delay_to(period: f64, step: f64) -> f64 {
    let to = |target: f64| (target - period).rem_euclid(1.0);
    to(step).min(to(1.0 - step))
}

/// Returns the fraction r/q that a loop of `period` ticks is too near to for `cycles` cycles to
/// tell them apart.
fn near_fraction(period: f64, cycles: u64) -> Option<(u64, u32, f64)> {
    (1..=MOST_CYCLES).find_map(|q| {
        let multiple = f64::from(q) * period;
        let off = (multiple - multiple.round()).abs();
        let passes = off * cycles as f64;
        (passes < PASSES).then_some((multiple.round() as u64, q, off))
    })
}

fn warnings(q: &Question, cycles: u64, delay_ns: Option<f64>) -> Vec<String> {
    let mut warnings = Vec::new();
    let (Some(loop_ns), Some(delay)) = (q.loop_ns, delay_ns) else {
        return warnings;
    };
    let period = loop_ns / q.tick_ns;
    if let Some((ticks, of, _)) = near_fraction(period, cycles) {
        warnings.push(format!(
            "the loop is nearly locked to the tick: {of} cycles take {ticks} ticks, so counting may \
             be wrong by up to {:.0} ns however long it runs; a delay of {delay:.0} ns in each \
             cycle, or --estimator stepped, breaks that",
            q.tick_ns / f64::from(of)
        ));
    }
    if q.duration_ns > loop_ns {
        warnings.push("the activity is longer than its loop".to_owned());
    }
    warnings
}

/// Returns the number of cycles of a stepped run: blocks of even steps with random starts.
fn stepped(q: &Question) -> u64 {
    let ticks = q.duration_ns / q.tick_ns;
    let wanted = q.precision * ticks / 2.0;
    let of_block = |cycles: u64| {
        let (cycles, step) = lattice(cycles, ticks);
        let facts = WalkFacts::known(cycles, step, ASSUMED_JITTER);
        let spectrum = Spectrum::of_walk(cycles, &facts, ASSUMED_JITTER);
        let sd = (spectrum.variance(ticks) / BLOCKS as f64).sqrt();
        student(q.level, (BLOCKS - 1) as f64) * sd
    };
    let mut cycles = 5.0_f64;
    while of_block(cycles as u64) > wanted && cycles < 1e7 {
        cycles = (cycles * 1.03).ceil();
    }
    let counted = (cycles.floor() * (BLOCKS as f64 + PART_OF_A_BLOCK)).ceil();
    counted as u64 + PILOT
}

/// Returns the number of shots at edges: each is off by a poll at either end, and so is the
/// calibrating one.
fn edges(q: &Question, width: f64) -> u64 {
    let sd = q.poll_ns * (2.0_f64 / 6.0).sqrt();
    let n = (width * sd / (q.precision * q.duration_ns)).powi(2).ceil();
    (n as u64).max(FEWEST_SHOTS)
}

#[cfg(test)]
mod tests;
