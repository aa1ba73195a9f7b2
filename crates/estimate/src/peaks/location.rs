//! The location of a peak: the middle of the shortest stretch that holds half of it.

use undertick_units::{Estimate, Interval};

use super::count::Counted;
use super::relative::Run;
use crate::long_run::{student, variance_and_lag1};

/// Number of groups from which the scatter of a location is computed.
const GROUPS: std::ops::RangeInclusive<usize> = 6..=32;
/// Minimum number of samples in a group.
const GROUP: usize = 24;
/// Minimum number of samples for a confidence interval.
const FEW: usize = 10;

/// A location, in the unit of the values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Location {
    pub(super) value: f64,
    pub(super) interval: Interval,
    pub(super) n: usize,
    pub(super) method: &'static str,
}

/// Returns the shortest stretch that holds half of ascending values.
pub(super) fn shortest_half(values: &[f64]) -> (f64, f64) {
    let more = values.len() / 2;
    (values.windows(more + 1))
        .map(|w| (w[0], w[more]))
        .min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)))
        .unwrap_or((f64::NAN, f64::NAN))
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let (lo, hi) = shortest_half(values);
    f64::midpoint(lo, hi)
}

/// Estimates the rate of a peak.
///
/// Its confidence interval comes from the scatter of the same figure over groups of successive
/// bursts. The scatter falls as the cube root of the number of samples (Kim and Pollard 1990), so
/// that of all samples is the groups' over the cube root of their number. Where there are too few
/// samples for groups, the shortest half itself is the interval: at 30 to 150 samples that covers
/// 95 % or more.
pub(super) fn location(run: &Run, found: &Counted, peak: usize, level: f64) -> Location {
    let mut bursts: Vec<Vec<f64>> = Vec::new();
    for burst in &run.bursts {
        let rates: Vec<f64> = (run.samples[burst.clone()].iter())
            .filter(|sample| found.peak_of(sample.time) == peak)
            .map(|sample| 1.0 / sample.time)
            .collect();
        if !rates.is_empty() {
            bursts.push(rates);
        }
    }
    let mut all: Vec<f64> = bursts.concat();
    all.sort_unstable_by(f64::total_cmp);
    let (lo, hi) = shortest_half(&all);
    let value = f64::midpoint(lo, hi);
    let n = all.len();
    let groups = (n / GROUP).min(bursts.len()).min(*GROUPS.end());
    let (interval, method) = match (groups >= *GROUPS.start(), n >= FEW) {
        (true, _) => {
            let each = of_groups(bursts, n, groups);
            let count = each.len() as f64;
            let half =
                student(level, count - 1.0) * variance_and_lag1(&each).0.sqrt() / count.cbrt();
            let lowest = all[0];
            (
                Interval::new((value - half).max(lowest), value + half),
                "middle of the shortest half, scatter of groups of bursts",
            )
        }
        (false, true) => (
            Interval::new(lo, hi),
            "middle of the shortest half, which is the interval",
        ),
        (false, false) => (
            Interval { lo: None, hi: None },
            "middle of the shortest half, too few samples for an interval",
        ),
    };
    Location {
        value,
        interval,
        n,
        method,
    }
}

/// Returns the locations of groups of about equal numbers of samples.
fn of_groups(bursts: Vec<Vec<f64>>, n: usize, groups: usize) -> Vec<f64> {
    let mut locations = Vec::with_capacity(groups);
    let (mut group, mut seen) = (Vec::new(), 0);
    for burst in bursts {
        seen += burst.len();
        group.extend(burst);
        if seen * groups >= n * (locations.len() + 1) {
            locations.push(middle(&mut group));
            group.clear();
        }
    }
    locations
}

/// Returns the rate at a location over that of the clean one.
pub(super) fn relative(location: &Location, clean: &Location, level: f64) -> Estimate {
    let logarithm = |of: f64, over: f64| (of > 0.0 && over > 0.0).then(|| (of / over).ln());
    let down = (location.interval.lo).and_then(|lo| logarithm(location.value, lo));
    let up = (location.interval.hi).and_then(|hi| logarithm(hi, location.value));
    let clean_down = (clean.interval.lo).and_then(|lo| logarithm(clean.value, lo));
    let clean_up = (clean.interval.hi).and_then(|hi| logarithm(hi, clean.value));
    let value = location.value / clean.value;
    Estimate {
        value,
        interval: Interval {
            lo: (down.zip(clean_up)).map(|(a, b)| value * (-a.hypot(b)).exp()),
            hi: (up.zip(clean_down)).map(|(a, b)| value * a.hypot(b).exp()),
        },
        unit: "1".into(),
        ..absolute(location, level)
    }
}

/// Returns the clean peak's rate, to which all others are relative.
pub(super) fn clean(location: &Location, level: f64) -> Estimate {
    Estimate {
        value: 1.0,
        interval: Interval::new(1.0, 1.0),
        unit: "1".into(),
        method: "by definition".into(),
        ..absolute(location, level)
    }
}

/// Returns the location itself as an estimate.
pub(super) fn absolute(location: &Location, level: f64) -> Estimate {
    Estimate {
        value: location.value,
        interval: location.interval,
        level,
        unit: "rate over that of the reference".into(),
        method: location.method.into(),
        n: location.n as u64,
        n_effective: location.n as f64,
        notes: Vec::new(),
    }
}

/// Returns the reciprocal of an estimate.
pub(super) fn inverse(estimate: &Estimate) -> Estimate {
    let over = |x: f64| (x > 0.0).then(|| 1.0 / x);
    Estimate {
        value: 1.0 / estimate.value,
        interval: Interval {
            lo: estimate.interval.hi.and_then(over),
            hi: estimate.interval.lo.and_then(over),
        },
        ..estimate.clone()
    }
}
