//! Runs of one program, alone and against runs of another: each run is one number.
//!
//! Within a run everything shares a fate (where its memory lies, how fast its core runs). So a run
//! tells only its own figure about another run, and a difference has to exceed the scatter of those
//! figures. Some runs are disturbed by other activity of the machine, so ranks decide and not
//! means.

use std::f64::consts::PI;

use undertick_units::{Estimate, Interval};

use crate::compare_estimates::{Versus, two_sided};
use crate::long_run::student;
use crate::mean::MeanOf;
use crate::rank_tails::Tail;
use crate::shift::{ranked, sorted};

/// Maximum number of runs used of each side, the first ones: all pairs of them are examined.
pub const MOST_RUNS: usize = 2000;

/// The figure of a set of runs, with an interval for a repetition: the median of the runs, and the
/// interval that contains the median of as many fresh runs.
///
/// One run in twenty may be disturbed by other activity of the machine (seen: 4.6 times the
/// others), which moves a mean of five and leaves their median. The interval is m +- t s sqrt(2 v),
/// with Student's t of n - 1 degrees, the runs' standard deviation s, and the variance v of the
/// median of n normal numbers with variance 1. That variance is pi / (2 n + 1) for odd n and pi /
/// (2 (n + pi - 2)) for even n, which is within 2.5 % of the exact one (n = 5: 0.2868, Teichroew
/// 1956). The interval assumes normal and independent runs; it holds in 95 to 97 % then, and more
/// often where single runs are far off. One run has no bounds. `None` for no runs, or if one is not
/// a number.
///
/// ```
/// use undertick_estimate::median_of_runs;
///
/// let found = median_of_runs(&[20.0, 20.3, 19.9, 20.1, 20.2], 0.95).unwrap();
/// assert_eq!(found.value, 20.1);
/// assert!((found.interval.half_width().unwrap() - 0.3318).abs() < 1e-3);
/// ```
#[must_use]
pub fn median_of_runs(runs: &[f64], level: f64) -> Option<Estimate> {
    let runs = sorted(first(runs));
    if runs.is_empty() || !runs.iter().all(|run| run.is_finite()) {
        return None;
    }
    let n = runs.len() as f64;
    let median = (runs[(runs.len() - 1) / 2] + runs[runs.len() / 2]) / 2.0;
    let mut interval = Interval { lo: None, hi: None };
    if runs.len() > 1 {
        let mean = runs.iter().sum::<f64>() / n;
        let squares: f64 = runs.iter().map(|run| (run - mean).powi(2)).sum();
        let variance = match runs.len() % 2 {
            0 => PI / (2.0 * (n + PI - 2.0)),
            _ => PI / (2.0 * n + 1.0),
        };
        let half = student(level, n - 1.0) * (2.0 * variance * squares / (n - 1.0)).sqrt();
        interval = Interval::new(median - half, median + half);
    }
    Some(Estimate {
        value: median,
        interval,
        level,
        unit: String::new(),
        method: match runs.len() {
            1 => "of one run".to_owned(),
            n => format!("median of {n} runs, Student's interval for that of {n} fresh ones"),
        },
        n: runs.len() as u64,
        n_effective: n,
        notes: Vec::new(),
    })
}

/// Compares the second set of runs with the first one; the runs are not paired.
///
/// The ratio is the median of all ratios of a run of `b` to one of `a` (Hodges and Lehmann 1963, on
/// logarithms), with the interval of Mann and Whitney's test. `p` is from the same test, its
/// distribution counted and not approximated. So of two sets of equal programs at most the share
/// 1 - level is called different, however the runs are distributed. Equal numbers count against a
/// difference. The interval assumes that both sets scatter alike.
///
/// Where there are so few runs that no ranks reach the level (below 4 and 4 at 95 %), Student's t
/// by Welch is used, which assumes normal runs. `None` for an empty set.
///
/// ```
/// use undertick_estimate::runs_versus;
///
/// let a = [20.0, 20.3, 19.9, 20.1, 20.2, 23.0];
/// let b = [20.9, 20.6, 20.8, 20.7, 21.0, 20.5];
/// let found = runs_versus(&a, &b, 0.95).unwrap();
/// let ratio = found.ratio.unwrap();
/// assert!((ratio.value - 1.03).abs() < 0.01 && ratio.interval.hi.unwrap() < 1.06);
/// ```
#[must_use]
pub fn runs_versus(a: &[f64], b: &[f64], level: f64) -> Option<Versus> {
    let (a, b) = (first(a), first(b));
    let tail = Tail::of_two(a.len(), b.len());
    let n = (a.len() + b.len()) as u64;
    let shift_of = |a: &[f64], b: &[f64]| -> Option<RunShift> {
        if let Some(rank) = tail.rank(level) {
            return Some(by_differences(&sorted(a), &sorted(b), &tail, rank));
        }
        let difference = MeanOf::from_values(b)?.less(1.0, &MeanOf::from_values(a)?);
        Some(by_student(&difference, level))
    };
    let method = match tail.rank(level) {
        Some(_) => "median of all differences between runs, Mann and Whitney",
        None => "mean difference of runs, Welch",
    };
    versus(shift_of, a, b, &Basis { n, level, method })
}

/// Compares runs in pairs, one of each in every round: what is common to a round cancels.
///
/// The ratio is the median of the means of any two rounds' ratios (Hodges and Lehmann 1963, on
/// logarithms), with the interval of Wilcoxon's signed ranks; `p` is from the same test, counted.
/// Where a coin decides which of the two runs first in a round, equal programs are as likely to be
/// slower as faster in it by any amount. The test needs nothing else: at most the share 1 - level
/// of pairs of equal programs is called different.
///
/// Below 6 rounds (at 95 %) Student's t is used. `None` for empty series, and for series of unequal
/// length.
#[must_use]
pub fn paired_runs_versus(a: &[f64], b: &[f64], level: f64) -> Option<Versus> {
    if a.len() != b.len() {
        return None;
    }
    let (a, b) = (first(a), first(b));
    let tail = Tail::of_pairs(a.len());
    let n = a.len() as u64;
    let shift_of = |a: &[f64], b: &[f64]| -> Option<RunShift> {
        let each: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
        match tail.rank(level) {
            Some(rank) => Some(by_means_of_two(&each, &tail, rank)),
            None => Some(by_student(&MeanOf::from_values(&each)?, level)),
        }
    };
    let method = match tail.rank(level) {
        Some(_) => "median of the means of any two rounds' differences, Wilcoxon",
        None => "mean difference of rounds, Student",
    };
    versus(shift_of, a, b, &Basis { n, level, method })
}

/// Returns the minimum number of runs of each side, or of rounds, for which chance may call one of
/// `figures` figures different while false discoveries are controlled.
#[must_use]
pub fn fewest_runs(figures: u64, are_paired: bool, level: f64) -> usize {
    let beyond = (1.0 - level) / figures.max(1) as f64;
    let least_p = |n: usize| match are_paired {
        true => 2.0 * Tail::of_pairs(n).up_to(0),
        false => 2.0 * Tail::of_two(n, n).up_to(0),
    };
    (2..MOST_RUNS)
        .find(|&n| least_p(n) <= beyond)
        .unwrap_or(MOST_RUNS)
}

fn first(runs: &[f64]) -> &[f64] {
    &runs[..runs.len().min(MOST_RUNS)]
}

/// What all estimates of a comparison have in common.
struct Basis {
    n: u64,
    level: f64,
    method: &'static str,
}

/// A shift on some scale.
struct RunShift {
    value: f64,
    interval: Interval,
    p: Option<f64>,
}

/// Computes the shift of numbers and, where all are above 0, of their logarithms.
fn versus(
    shift_of: impl Fn(&[f64], &[f64]) -> Option<RunShift>,
    a: &[f64],
    b: &[f64],
    basis: &Basis,
) -> Option<Versus> {
    let difference = shift_of(a, b)?;
    let is_positive = a.iter().chain(b).all(|&x| x > 0.0);
    let on_logarithms = match is_positive {
        true => shift_of(&logarithms(a), &logarithms(b)),
        false => None,
    };
    let estimate = |value: f64, interval: Interval, unit: &str| Estimate {
        value,
        interval,
        level: basis.level,
        unit: unit.to_owned(),
        method: basis.method.to_owned(),
        n: basis.n,
        n_effective: basis.n as f64,
        notes: Vec::new(),
    };
    Some(Versus {
        p: on_logarithms.as_ref().map_or(difference.p, |found| found.p),
        difference: estimate(difference.value, difference.interval, ""),
        ratio: on_logarithms.map(|found| {
            let back = Interval {
                lo: found.interval.lo.map(f64::exp),
                hi: found.interval.hi.map(f64::exp),
            };
            estimate(found.value.exp(), back, "1")
        }),
    })
}

fn logarithms(of: &[f64]) -> Vec<f64> {
    of.iter().map(|x| x.ln()).collect()
}

/// Computes the shift from all differences `b - a`; both ascending.
fn by_differences(a: &[f64], b: &[f64], tail: &Tail, rank: u64) -> RunShift {
    let all = (a.len() * b.len()) as u64;
    let at = |rank: u64| ranked(a, b, rank);
    let beside = |is: fn(f64) -> bool| {
        let of = |b: &f64| a.iter().filter(|&a| is(b - a)).count() as u64;
        b.iter().map(of).sum::<u64>()
    };
    shift_by_ranks(all, tail, rank, at, beside)
}

/// Computes the shift from the means of any two of `each`, each with itself too (Walsh's averages).
fn by_means_of_two(each: &[f64], tail: &Tail, rank: u64) -> RunShift {
    let mut means = Vec::with_capacity(each.len() * (each.len() + 1) / 2);
    for (i, x) in each.iter().enumerate() {
        means.extend(each[i..].iter().map(|y| 0.5 * (x + y)));
    }
    means.sort_unstable_by(f64::total_cmp);
    let all = means.len() as u64;
    let at = |rank: u64| means[rank as usize - 1];
    let beside = |is: fn(f64) -> bool| means.iter().filter(|&&d| is(d)).count() as u64;
    shift_by_ranks(all, tail, rank, at, beside)
}

/// Computes the shift from `all` figures: `at` gives one by its rank, `beside` counts those of a
/// sign.
fn shift_by_ranks(
    all: u64,
    tail: &Tail,
    rank: u64,
    at: impl Fn(u64) -> f64,
    beside: impl Fn(fn(f64) -> bool) -> u64,
) -> RunShift {
    RunShift {
        value: 0.5 * (at(all.div_ceil(2)) + at(all / 2 + 1)),
        interval: Interval::new(at(rank), at(all + 1 - rank)),
        p: Some(of_ranks(
            tail,
            all,
            [beside(|d| d > 0.0), beside(|d| d < 0.0)],
        )),
    }
}

/// Probability that chance alone leaves so few on one side; figures on neither side count as if
/// they were on that one.
fn of_ranks(tail: &Tail, all: u64, [above, below]: [u64; 2]) -> f64 {
    let other = all - above.max(below);
    (2.0 * tail.up_to(other)).min(1.0)
}

/// Student's t for few numbers; nothing can be inferred from numbers that do not scatter.
fn by_student(difference: &MeanOf, level: f64) -> RunShift {
    let scatters = difference.variance > 0.0;
    let none = Interval { lo: None, hi: None };
    RunShift {
        value: difference.value,
        interval: match scatters {
            true => difference.interval(level),
            false => none,
        },
        p: scatters.then(|| {
            let t = difference.value / difference.variance.sqrt();
            two_sided(t, difference.degrees)
        }),
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
