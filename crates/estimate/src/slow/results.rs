//! Computes estimates with confidence intervals from counts.

use std::fmt;

use undertick_units::{Estimate, Interval};

use super::counts::{ActivityCounts, LoopCounts};
use super::ends::two_ends;
use super::independence::{Independence, batch_ratio, chi_squared};
use super::lock::Lock;
use super::variance::Spectrum;
use super::walk::WalkFacts;
use crate::long_run::{normal, student};

/// Jitter, as a part of a tick, from which at most e^-0.8 of the first harmonic remains from cycle
/// to cycle.
const PHASE_LOST: f64 = 0.2;
/// Maximum ratio of a modelled variance to the independent one at which the two count as equal: the
/// interval of independent counts then covers 88.6 % instead of 90 %.
const ALIKE: f64 = 1.1;
/// Probability below which a scatter of batches this large is not taken for chance.
const SURELY: f64 = 0.9995;
/// Maximum share of cycles dropped as disturbed; with more, counting as it is has no interval: see
/// the test `a_few_disturbances_are_in_the_interval`.
const MOST_DISTURBED: f64 = 0.02;
/// Steps of the search for the ends of an interval.
const SEARCH: usize = 48;

/// Estimates of a loop.
#[derive(Clone, Debug)]
pub struct Results {
    /// Estimates of each activity, ns.
    pub activities: Vec<ActivityResult>,
    /// Estimate of the whole cycle, ns.
    pub cycle: ActivityResult,
    /// How the loop moves against the tick; `None` below two cycles.
    pub walk: Option<WalkFacts>,
    /// The lock that the run shows, if any.
    pub lock: Option<Lock>,
    /// Cycles dropped as disturbed.
    pub dropped: u64,
}

/// Why there is no confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refused {
    /// The loop is locked to the tick.
    Locked(Lock),
    /// Too many of the cycles were dropped as disturbed.
    Disturbed {
        /// Share of the dropped cycles.
        share: f64,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked(lock) => lock.fmt(f),
            Self::Disturbed { share } => write!(
                f,
                "{:.1} % of the cycles were preempted: the scheduler keeps step with the clock, so \
                 after each of them the loop goes on at a phase that is not random, and the others \
                 are not fair either",
                100.0 * share
            ),
        }
    }
}

/// The estimate of one activity.
#[derive(Clone, Debug)]
pub struct ActivityResult {
    /// Mean duration, ns; without bounds where the interval is refused.
    pub estimate: Estimate,
    /// Number of ticks counted.
    pub ticks: i64,
    /// Standard deviation of the mean by 10a, ns.
    pub predicted_sd_ns: f64,
    /// Standard deviation of the mean that the interval rests on, ns.
    pub sd_ns: f64,
    /// Tests of the independence of the counts.
    pub independence: Option<Independence>,
    /// Why there is no interval.
    pub refused: Option<Refused>,
}

impl ActivityResult {
    /// Removes the confidence interval.
    fn refuse(&mut self, why: Refused) {
        self.estimate.interval = Interval { lo: None, hi: None };
        self.estimate.notes.push(why.to_string());
        self.refused.get_or_insert(why);
    }

    /// Moves the bounds out by that many ticks down and up.
    pub(super) fn widen(&mut self, (down, up): (f64, f64), tick_ns: f64) {
        let interval = &mut self.estimate.interval;
        interval.lo = interval.lo.map(|lo| (lo - down * tick_ns).max(0.0));
        interval.hi = interval.hi.map(|hi| hi + up * tick_ns);
    }
}

/// Returns the standard deviation of a mean count by 10a, ticks: an activity of `ticks` constant
/// length, counted in `n` independent cycles.
#[must_use]
pub fn count_sd(ticks: f64, n: u64) -> f64 {
    let p = ticks - ticks.floor();
    (p * (1.0 - p) / n.max(1) as f64).sqrt()
}

/// Returns how far dropping the disturbed cycles may have shifted the mean count of the others,
/// ticks down and up, when a share `dropped` of them is gone.
///
/// The disturbance may keep step with the clock and interrupt the loop at one phase. Cycles of
/// `cycle` ticks contain that phase with probability `c`, their length up to a tick. Among these
/// the share of counts that are one more than the whole ticks is at most p/c, and at least 0. So
/// the truth lies between (1 - r) p and (1 - r) p + r p/c where p is what the others show.
pub(super) fn selection(ticks: f64, cycle: f64, dropped: f64) -> (f64, f64) {
    let p = ticks - ticks.floor();
    let most = (p / cycle.clamp(1e-9, 1.0)).min(1.0);
    (dropped * p, dropped * (most - p))
}

/// Returns the share of cycles that were dropped.
pub(super) fn share(dropped: u64, kept: u64) -> f64 {
    dropped as f64 / (dropped + kept).max(1) as f64
}

pub(super) fn results(counts: &LoopCounts, tick_ns: f64, level: f64) -> Results {
    let walk = counts.walk.facts();
    let model = walk.map(|facts| Model::new(counts.cycle.n, facts));
    let lock = model.as_ref().and_then(Model::lock);
    let gone = share(counts.dropped, counts.cycle.n);
    let activities = (counts.activities.iter())
        .map(|a| {
            let mut result = activity(a, model.as_ref(), lock, tick_ns, level);
            result.widen(selection(a.mean(), counts.cycle.mean(), gone), tick_ns);
            if gone > MOST_DISTURBED {
                result.refuse(Refused::Disturbed { share: gone });
            }
            result
        })
        .collect();
    let mut cycle = if counts.stretches * 8 <= counts.cycle.n {
        contiguous(counts, walk, tick_ns, level)
    } else {
        activity(&counts.cycle, model.as_ref(), lock, tick_ns, level)
    };
    if gone > MOST_DISTURBED {
        cycle.refuse(Refused::Disturbed { share: gone });
    }
    Results {
        activities,
        cycle,
        walk,
        lock,
        dropped: counts.dropped,
    }
}

/// The spectra of a run at the bounds of its jitter.
struct Model {
    facts: WalkFacts,
    spectra: [Spectrum; 3],
    independent: Spectrum,
}

impl Model {
    fn new(n: u64, facts: WalkFacts) -> Self {
        let walked = |j: f64| {
            if j.is_finite() {
                Spectrum::of_walk(n, &facts, j)
            } else {
                Spectrum::independent(n)
            }
        };
        Self {
            spectra: facts.jitter.map(walked),
            facts,
            independent: Spectrum::independent(n),
        }
    }

    fn lock(&self) -> Option<Lock> {
        Lock::find(&self.facts, &self.spectra[0])
    }

    /// Returns the spectrum to use for an activity of about `ticks`, and its name.
    fn choose(&self, ticks: f64) -> (&Spectrum, &'static str) {
        let of = |s: &Spectrum| s.variance(ticks);
        let widest = (self.spectra.iter())
            .max_by(|a, b| of(a).total_cmp(&of(b)))
            .unwrap_or(&self.independent);
        let independent = of(&self.independent);
        let ratio = of(widest) / independent;
        if self.facts.jitter[0] > PHASE_LOST && (1.0 / ALIKE..ALIKE).contains(&ratio) {
            (&self.independent, "tick counts, independent")
        } else {
            (widest, "tick counts, walking phase")
        }
    }
}

fn activity(
    counts: &ActivityCounts,
    model: Option<&Model>,
    lock: Option<Lock>,
    tick_ns: f64,
    level: f64,
) -> ActivityResult {
    let (n, mean) = (counts.n, counts.mean());
    // Kept away from whole ticks, where a count of nothing would claim certainty.
    let p = mean - mean.floor();
    let inside = mean.floor() + (p * n as f64 + 2.0) / (n as f64 + 4.0);
    let independent = Spectrum::independent(n);
    let (spectrum, method) = model.map_or((&independent, "tick counts, independent"), |m| {
        m.choose(inside)
    });
    let excess = (counts.variance() - p * (1.0 - p)).max(0.0) / n.max(1) as f64;
    let variance = |ticks: f64| spectrum.variance(ticks) + excess;
    let mut sd = variance(inside).sqrt();
    let z = normal(level);
    let (mut lo, mut hi) = (
        bound(mean, z, &variance, -1.0),
        bound(mean, z, &variance, 1.0),
    );
    let mut notes = Vec::new();
    if let Some((wider, degrees)) = more_than_modelled(counts, sd * sd) {
        let half = student(level, degrees) * wider.sqrt();
        (lo, hi, sd) = (lo.min(mean - half), hi.max(mean + half), wider.sqrt());
        notes.push("the counts swing together more than their phase explains: interval from batches of cycles".to_owned());
    }
    let refused = lock
        .filter(|lock| lock.spoils(mean, n))
        .map(Refused::Locked);
    if let Some(why) = refused {
        notes.push(why.to_string());
    }
    let interval = if refused.is_some() || n < 2 {
        Interval { lo: None, hi: None }
    } else {
        Interval::new(lo.max(0.0) * tick_ns, hi * tick_ns)
    };
    let of_one = p * (1.0 - p);
    ActivityResult {
        estimate: Estimate {
            value: mean * tick_ns,
            interval,
            level,
            unit: "ns".into(),
            method: method.into(),
            n,
            n_effective: if sd > 0.0 {
                of_one / (sd * sd)
            } else {
                n as f64
            },
            notes,
        },
        ticks: counts.ticks,
        predicted_sd_ns: count_sd(mean, n) * tick_ns,
        sd_ns: sd * tick_ns,
        independence: Independence::from_counts(counts),
        refused,
    }
}

/// Returns the end of the interval on the side of `sign`: the furthest length whose spread still
/// reaches the mean that was found (score interval; Wilson's where counts are independent).
fn bound(mean: f64, z: f64, variance: &impl Fn(f64) -> f64, sign: f64) -> f64 {
    let reaches = |x: f64| x * x <= z * z * variance(mean + sign * x);
    let most =
        z * 0.5_f64.min(3.0 * variance(mean + sign * 0.5 * z * variance(mean).sqrt()).sqrt());
    let far = most.max(4.0 * z * variance(mean).sqrt()).max(1e-9)
        + z * z * variance(mean + sign * 1e-3).sqrt();
    let mut last = 0.0;
    for step in 1..=SEARCH {
        let x = far * (step as f64 / SEARCH as f64).powi(2);
        if reaches(x) {
            last = x;
        }
    }
    let step = ((last / far).sqrt() * SEARCH as f64).round() + 1.0;
    let (mut lo, mut hi) = (last, far * (step / SEARCH as f64).powi(2));
    for _ in 0..30 {
        let middle = 0.5 * (lo + hi);
        if reaches(middle) {
            lo = middle;
        } else {
            hi = middle;
        }
    }
    mean + sign * lo
}

/// Returns the variance of the mean by batches, and its degrees of freedom, where it is surely
/// above the modelled one.
fn more_than_modelled(counts: &ActivityCounts, modelled: f64) -> Option<(f64, f64)> {
    let of_one = counts.variance();
    let (ratio, degrees) = batch_ratio(counts, of_one)?;
    let variance = ratio * of_one / counts.n as f64;
    (chi_squared(variance / modelled * degrees, degrees) > SURELY).then_some((variance, degrees))
}

/// Estimates the cycle from readings that lie end to end.
fn contiguous(
    counts: &LoopCounts,
    walk: Option<WalkFacts>,
    tick_ns: f64,
    level: f64,
) -> ActivityResult {
    let cycle = &counts.cycle;
    let (n, mean) = (cycle.n.max(1) as f64, cycle.mean());
    let jitter = walk.map_or(f64::INFINITY, |w| w.jitter[1]);
    let scatter = jitter * n.sqrt();
    let further = (counts.stretches.saturating_sub(1)) as f64 / 6.0;
    let sd = (scatter * scatter + 1.0 / 6.0 + further).sqrt() / n;
    let half = two_ends((scatter * scatter + further).sqrt(), f64::INFINITY, level) / n;
    let interval = if half.is_finite() {
        Interval::new((mean - half).max(0.0) * tick_ns, (mean + half) * tick_ns)
    } else {
        Interval { lo: None, hi: None }
    };
    ActivityResult {
        estimate: Estimate {
            value: mean * tick_ns,
            interval,
            level,
            unit: "ns".into(),
            method: "contiguous cycles, exact ends".into(),
            n: cycle.n,
            n_effective: n,
            notes: Vec::new(),
        },
        ticks: cycle.ticks,
        predicted_sd_ns: count_sd(mean, cycle.n) * tick_ns,
        sd_ns: sd * tick_ns,
        independence: None,
        refused: None,
    }
}

#[cfg(test)]
mod tests;
