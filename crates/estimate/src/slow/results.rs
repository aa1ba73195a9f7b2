//! From counts to estimates with intervals.

use std::fmt;

use undertick_units::{Estimate, Interval};

use super::counts::{ActivityCounts, LoopCounts};
use super::ends::two_ends;
use super::independence::{Independence, batch_ratio, chi_squared};
use super::lock::Lock;
use super::variance::Spectrum;
use super::walk::WalkFacts;
use crate::long_run::{normal, student};

/// A jitter of at least this part of a tick leaves at most e^-0.8 of the first
/// harmonic from cycle to cycle.
const PHASE_LOST: f64 = 0.2;
/// A modelled variance up to this many times the independent one is not told
/// from it: the interval of independent counts then covers 88.6 % instead of 90 %.
const ALIKE: f64 = 1.1;
/// Probability below which batches that scatter this much are not believed to
/// be chance.
const SURELY: f64 = 0.9995;
/// With more of the cycles left out as disturbed counting as it is has no
/// interval: see the test `a_few_disturbances_are_in_the_interval`.
const MOST_DISTURBED: f64 = 0.02;
/// Steps of the search for the ends of an interval.
const SEARCH: usize = 48;

/// Estimates of a loop.
#[derive(Clone, Debug)]
pub struct Results {
    /// Of each activity, ns.
    pub activities: Vec<ActivityResult>,
    /// Of the whole cycle, ns.
    pub cycle: ActivityResult,
    /// How the loop moves against the tick; `None` below two cycles.
    pub walk: Option<WalkFacts>,
    /// The lock that the run shows, if any.
    pub lock: Option<Lock>,
    /// Cycles dropped as disturbed.
    pub dropped: u64,
}

/// Why there is no interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refused {
    /// The loop is locked to the tick.
    Locked(Lock),
    /// So many of the cycles were left out as disturbed.
    Disturbed {
        /// Their share.
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
    /// Mean duration, ns; without bounds where it is refused.
    pub estimate: Estimate,
    /// Ticks counted.
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
    /// There is no interval.
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

/// Standard deviation of a mean count by 10a, ticks: an activity of `ticks`
/// constant length, counted in `n` independent cycles.
#[must_use]
pub fn count_sd(ticks: f64, n: u64) -> f64 {
    let p = ticks - ticks.floor();
    (p * (1.0 - p) / n.max(1) as f64).sqrt()
}

/// How far the cycles that were left out as disturbed may have shifted the mean
/// count of the others, ticks down and up, with a share `dropped` of them gone.
///
/// What disturbs may keep step with the clock and hit the loop at one phase.
/// Cycles of `cycle` ticks hold that phase with probability `c`, their length
/// up to a tick; among these the share of counts that are one more than the
/// whole ticks is at most p/c, and at least 0. So the truth lies between
/// (1 - r) p and (1 - r) p + r p/c where p is what the others show.
pub(super) fn selection(ticks: f64, cycle: f64, dropped: f64) -> (f64, f64) {
    let p = ticks - ticks.floor();
    let most = (p / cycle.clamp(1e-9, 1.0)).min(1.0);
    (dropped * p, dropped * (most - p))
}

/// Share of cycles that were dropped.
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

/// The spectra of a run at the bounds of what its jitter may be.
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

    /// The spectrum to use for an activity of about `ticks`, and how.
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
    // Away from whole ticks, where a count of nothing would claim certainty.
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
        independence: Independence::of(counts),
        refused,
    }
}

/// The end of the interval on the side of `sign`: the furthest length whose
/// own spread still reaches the mean that was found (score interval; Wilson's
/// where counts are independent).
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

/// The variance of the mean by batches, and its degrees of freedom, where it is
/// surely above the modelled one.
fn more_than_modelled(counts: &ActivityCounts, modelled: f64) -> Option<(f64, f64)> {
    let of_one = counts.variance();
    let (ratio, degrees) = batch_ratio(counts, of_one)?;
    let variance = ratio * of_one / counts.n as f64;
    (chi_squared(variance / modelled * degrees, degrees) > SURELY).then_some((variance, degrees))
}

/// The cycle, from readings that lie end to end.
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
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    fn counted(counts: impl Iterator<Item = i64>) -> ActivityCounts {
        let mut of = ActivityCounts::default();
        counts.for_each(|count| of.push(count));
        of
    }

    /// 2.3 ticks in a cycle of 0.6: the phase that disturbs is in 0.6 of the
    /// cycles, of which at most half hold one more; in a cycle of 0.2 all may.
    #[test]
    fn what_dropping_may_shift_by_hand() {
        for (cycle, up) in [(0.6, 0.002), (5.0, 0.0), (1.0, 0.0), (0.2, 0.007)] {
            let (down, found) = selection(2.3, cycle, 0.01);
            assert!(close(down, 0.003) && close(found, up), "{cycle}: {found}");
        }
        assert_eq!((share(0, 0), share(1, 3), share(5, 5)), (0.0, 0.25, 0.5));
        assert!(close(count_sd(2.3, 100), 0.0021_f64.sqrt()));
    }

    /// With independent counts the score interval is Wilson's, in closed form.
    #[test]
    fn bounds_are_wilsons() {
        for (p, n, z) in [
            (0.3, 100.0, 1.645),
            (0.02, 50.0, 1.96),
            (0.5, 10_000.0, 1.0),
        ] {
            let variance = |t: f64| {
                let t: f64 = t - t.floor();
                t * (1.0 - t) / n
            };
            let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
            let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
            let lo = bound(4.0 + p, z, &variance, -1.0) - 4.0;
            let hi = bound(4.0 + p, z, &variance, 1.0) - 4.0;
            assert!((lo - (middle - half)).abs() < 1e-6, "{p}: {lo}");
            assert!((hi - (middle + half)).abs() < 1e-6, "{p}: {hi}");
        }
        // A variance that is the same everywhere: z standard deviations.
        assert!((bound(0.5, 1.5, &|_| 0.0004, 1.0) - 0.53).abs() < 1e-6);
        assert!((bound(0.5, 1.5, &|_| 0.0004, -1.0) - 0.47).abs() < 1e-6);
    }

    /// 30 ones in 100: pulled to 32 of 104, 0.3077 of a tick. 0 and 2 in turns
    /// irregular: their variance of 1 is all beyond that of a fixed length.
    #[test]
    fn an_activity_by_hand() {
        let counts = counted((0..100).map(|i| i64::from(i * 37 % 100 < 30)));
        let found = activity(&counts, None, None, 10.0, 0.9);
        let p = 32.0 / 104.0;
        let sd = (p * (1.0 - p) / 100.0_f64).sqrt();
        assert!(close(found.estimate.value, 3.0) && found.ticks == 30);
        assert!(close(found.sd_ns, 10.0 * sd), "{}", found.sd_ns);
        assert!(close(found.predicted_sd_ns, 10.0 * 0.0021_f64.sqrt()));
        assert!(close(found.estimate.n_effective, 0.21 / (sd * sd)));
        let (lo, hi) = (
            found.estimate.interval.lo.unwrap(),
            found.estimate.interval.hi.unwrap(),
        );
        assert!(
            lo < 3.0 && (hi - lo) / 2.0 > 1.5 * found.sd_ns * 0.98,
            "{lo} {hi}"
        );

        let counts = counted((0..100).map(|i| 2 * i64::from(i * 37 % 100 < 50)));
        let found = activity(&counts, None, None, 10.0, 0.9);
        let p = 2.0 / 104.0;
        let sd = (p * (1.0 - p) / 100.0 + 0.01_f64).sqrt();
        assert!(close(found.sd_ns, 10.0 * sd), "{}", found.sd_ns);
        // One count has no interval.
        let one = activity(&counted([3].into_iter()), None, None, 10.0, 0.9);
        assert_eq!(
            (one.estimate.interval.lo, one.estimate.interval.hi),
            (None, None)
        );
    }

    /// 32 zeros, 32 ones in turns: batches scatter far more than independent
    /// counts; 0 and 1 in turns do not.
    #[test]
    fn swinging_counts_are_seen() {
        let swings = counted((0..1024).map(|i| i / 32 % 2));
        let (variance, degrees) = more_than_modelled(&swings, 0.25 / 1024.0).unwrap();
        let (ratio, same) = batch_ratio(&swings, 0.25).unwrap();
        assert!(close(variance, ratio * 0.25 / 1024.0) && degrees == same);
        assert_eq!(more_than_modelled(&swings, 2.0 * variance), None);
        assert_eq!(more_than_modelled(&swings, variance), None);
        // Four times the modelled variance is not chance with 15 degrees or more.
        assert!(degrees >= 15.0 && more_than_modelled(&swings, variance / 4.0).is_some());
        let found = activity(&swings, None, None, 10.0, 0.9);
        assert!(close(found.sd_ns, 10.0 * variance.sqrt()));
        let half = student(0.9, degrees) * variance.sqrt() * 10.0;
        let hi = found.estimate.interval.hi.unwrap();
        let lo = found.estimate.interval.lo.unwrap();
        assert!(close(hi, 5.0 + half) && close(lo, 5.0 - half), "{lo} {hi}");
        let balances = counted((0..1024).map(|i| i % 2));
        assert_eq!(more_than_modelled(&balances, 0.25 / 1024.0), None);
    }

    /// Where the phase is lost and the spectra are those of independent counts, they
    /// are these; with ten times the variance, or a phase that is kept, they are not.
    #[test]
    fn the_spectrum_by_hand() {
        for (jitter, n, method) in [
            (0.5, 1000, "independent"),
            (0.5, 100, "walking phase"),
            (0.1, 1000, "walking phase"),
        ] {
            let spectrum = || Spectrum::independent(n);
            let model = Model {
                facts: WalkFacts::known(1000, 2.618, jitter),
                spectra: [spectrum(), spectrum(), spectrum()],
                independent: Spectrum::independent(1000),
            };
            let (chosen, how) = model.choose(2.3);
            assert!(how.ends_with(method), "{jitter} {n}: {how}");
            assert!(close(chosen.variance(2.3), 0.21 / n as f64));
        }
    }

    /// Ten cycles of 2 and 3 ticks end to end, a jitter of 0.1: the ends' variance
    /// of 1/6 and a scatter of 0.1 over all ten; three more stretches add 3/6.
    #[test]
    fn contiguous_cycles_by_hand() {
        let facts = WalkFacts::known(10, 2.5, 0.1);
        for (breaks, further) in [(false, 0.0_f64), (true, 0.5)] {
            let mut counts = LoopCounts::new(1);
            let mut at = 0;
            for i in 0..10 {
                let next = at + 2 + i % 2;
                counts.push(&[at, next], true);
                at = next + i64::from(breaks && i % 3 == 0 && i < 9);
            }
            let found = contiguous(&counts, Some(facts), 10.0, 0.9);
            assert!(close(found.estimate.value, 25.0) && found.ticks == 25);
            let sd = (0.1 + 1.0 / 6.0 + further).sqrt() / 10.0;
            assert!(close(found.sd_ns, 10.0 * sd), "{}", found.sd_ns);
            let half = two_ends((0.1 + further).sqrt(), f64::INFINITY, 0.9);
            assert!(close(found.estimate.interval.half_width().unwrap(), half));
            assert!(close(found.predicted_sd_ns, 10.0 * 0.025_f64.sqrt()));
            assert_eq!(found.estimate.n_effective, 10.0);
        }
        let mut counts = LoopCounts::new(1);
        counts.push(&[0, 2], true);
        let unknown = contiguous(&counts, None, 10.0, 0.9);
        assert_eq!(unknown.estimate.interval.lo, None);
    }

    /// A loop of 2.5 ticks sees two phases only: there is no interval. At 2.618
    /// ticks it sees all.
    #[test]
    fn a_locked_loop_is_refused() {
        for (period, is_locked) in [(2.5, true), (2.618_034, false)] {
            let mut counts = LoopCounts::new(2);
            for i in 0..2000 {
                let at = 0.1 + period * f64::from(i);
                let readings = [at, at + 0.3, at + period].map(|t| t.floor() as i64);
                counts.push(&readings, true);
            }
            let found = results(&counts, 10.0, 0.9);
            assert_eq!(found.lock.is_some(), is_locked, "{period}");
            let small = &found.activities[0];
            assert_eq!(small.refused.is_some(), is_locked, "{period}");
            assert_eq!(small.estimate.interval.lo.is_none(), is_locked, "{period}");
        }
    }

    /// Two cycles of a hundred dropped are borne, three are not.
    #[test]
    fn too_many_disturbed_cycles_are_refused() {
        for (dropped, is_refused) in [(0, false), (2, false), (3, true), (50, true)] {
            let mut counts = LoopCounts::new(1);
            for i in 0..100 - dropped {
                let at = 2.618_034 * f64::from(i);
                counts.push(&[at, at + 0.4].map(|t| t.floor() as i64), true);
            }
            (0..dropped).for_each(|_| counts.drop_cycle());
            let found = results(&counts, 10.0, 0.9);
            let disturbed =
                |r: &ActivityResult| matches!(r.refused, Some(Refused::Disturbed { .. }));
            assert_eq!(disturbed(&found.activities[0]), is_refused, "{dropped}");
            assert_eq!(disturbed(&found.cycle), is_refused, "{dropped}");
        }
    }

    /// Sixteen cycles in two stretches are end to end, in three they are counts.
    #[test]
    fn stretches_decide_how_the_cycle_is_found() {
        for (breaks, method) in [(1, "contiguous cycles"), (2, "tick counts")] {
            let mut counts = LoopCounts::new(1);
            let mut at = 0;
            for i in 0..16 {
                let next = at + 2 + i % 2;
                counts.push(&[at, next], true);
                at = next + i64::from(i < breaks);
            }
            let found = results(&counts, 10.0, 0.9).cycle.estimate.method;
            assert!(found.starts_with(method), "{breaks}: {found}");
        }
        let text = Refused::Disturbed { share: 0.25 }.to_string();
        assert!(text.contains("25"), "{text}");
    }

    #[test]
    fn bounds_move_out_and_not_below_nothing() {
        let counts = counted((0..100).map(|i| i64::from(i * 37 % 100 < 30)));
        let mut found = activity(&counts, None, None, 10.0, 0.9);
        let before = found.estimate.interval;
        found.widen((0.01, 0.02), 10.0);
        let after = found.estimate.interval;
        assert!(close(after.lo.unwrap(), before.lo.unwrap() - 0.1));
        assert!(close(after.hi.unwrap(), before.hi.unwrap() + 0.2));
        found.widen((100.0, 0.0), 10.0);
        assert_eq!(found.estimate.interval.lo, Some(0.0));
    }
}
