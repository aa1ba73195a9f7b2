//! Finds the process with whose activity the probe slows down, burst by burst.

use undertick_estimate::{normal_quantile, student_beyond};
use undertick_units::{Estimate, Interval};

use super::analysis::{Run, Seen};
use super::correlation::{Slope, deviations};
use super::cpu_time::CpuTimes;
use super::suspects::CpuUser;

/// A process with whose activity the probe slows down.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub(super) user: CpuUser,
    /// How far the agreement of its use with the slowness exceeds chance, standard deviations.
    pub(super) deviations: f64,
    /// Number of bursts on which this is based.
    pub(super) bursts: usize,
    /// CPUs that it uses while it is active.
    pub(super) full_use: f64,
    /// Share of the time in which it is active.
    pub(super) time_share: Estimate,
    /// Time per work while it is active over that while it is not.
    pub(super) slowdown: Estimate,
}

/// Number of bursts by which two series are shifted to be taken as unrelated: 0.6 s of the usual
/// schedule.
const APART: usize = 15;
/// Probability at most that the use of any unrelated process agrees so well with the slowness, over
/// all processes together.
const FALSE_ALARM: f64 = 1e-4;
/// Minimum slow-down, as a logarithm.
const LEAST_SLOPE: f64 = 0.03;
/// A process with a lower mean use than this disturbs nothing for long, CPUs.
const LEAST_MEAN_USE: f64 = 0.02;

/// Of all processes whose CPU time rises with the time per work, the one for which this is most
/// certain ([`deviations`], the false alarm shared among all candidates).
///
/// Its share of the time is its total CPU time over its use while it is active. The slow-down is
/// the slope of a line through the bursts ([`Slope::beside_drift`]). It does not need two peaks,
/// only that other causes of slowness do not come and go with this process.
pub(super) fn active(times: &CpuTimes, seen: &[Seen<'_>], run: &Run<'_>) -> Option<Active> {
    let bursts: Vec<(f64, f64)> = (seen.iter())
        .map(|s| (s.burst.begun_ns, s.burst.begun_ns + s.burst.wall_ns()))
        .collect();
    let slow: Vec<f64> = seen.iter().map(slowness).collect();
    let all = (bursts.first()?.0, bursts.last()?.1);
    let looked: Vec<(&CpuUser, f64, Vec<f64>)> = (times.everybody())
        .map(|user| (user, times.used(user, &[all])[0], times.used(user, &bursts)))
        .filter(|(_, mean, _)| *mean >= LEAST_MEAN_USE)
        .collect();
    let limit = FALSE_ALARM / looked.len().max(1) as f64;
    // Of autocorrelated values every fourth counts, which is a rough choice.
    let degrees = (seen.len() / 4) as f64;
    let related = looked.into_iter().filter_map(|(user, mean, uses)| {
        let deviations = deviations(&uses, &slow, APART)?;
        (student_beyond(deviations, degrees) < limit).then_some((user, mean, uses, deviations))
    });
    let (user, mean, uses, deviations) = related.max_by(|a, b| a.3.total_cmp(&b.3))?;
    let full = Full::from_uses(&uses);
    let slope = Slope::beside_drift(&uses, &slow)?;
    let slower = slope.value * full.use_cpus();
    if slower.is_nan() || slower < LEAST_SLOPE {
        return None;
    }
    Some(Active {
        user: user.clone(),
        deviations,
        bursts: uses.len(),
        full_use: full.use_cpus(),
        time_share: full.share(mean, times.unsure(user, all), run.level),
        slowdown: within_what_was_seen(slowdown(&slope, &full, &uses, run.level), &slow),
    })
}

/// Limits a slow-down to that of the slowest burst: a line through bursts in which the process used
/// little cannot show more.
fn within_what_was_seen(mut slowdown: Estimate, slow: &[f64]) -> Estimate {
    let least = slow.iter().copied().fold(f64::INFINITY, f64::min);
    let most = slow.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let seen = (most - least).exp();
    if slowdown.value > seen {
        slowdown.value = seen;
        slowdown.interval.lo = slowdown.interval.lo.map(|lo| lo.min(seen));
        slowdown.interval.hi = None;
        (slowdown.notes).push("as slow as the slowest burst, or slower".to_owned());
    } else if slowdown.interval.hi.is_some_and(|hi| hi > seen) {
        slowdown.interval.hi = None;
    }
    slowdown
}

/// Mean logarithm of the time of the mix over the time of the registers.
fn slowness(seen: &Seen<'_>) -> f64 {
    let plain = seen.apart.plain.iter();
    let ratios: f64 = plain.map(|(_, x)| (x.mix_ns / x.reference_ns).ln()).sum();
    ratios / seen.apart.plain.len() as f64
}

fn slowdown(slope: &Slope, full: &Full, uses: &[f64], level: f64) -> Estimate {
    let (value, half) = (
        slope.value * full.use_cpus(),
        normal_quantile(level) * slope.error * full.use_cpus(),
    );
    Estimate {
        value: value.exp(),
        interval: Interval::new((value - half).exp(), (value + half).exp()),
        level,
        unit: "1".into(),
        method: "line of the time per work on the use of a CPU, beside a drift".into(),
        n: uses.len() as u64,
        n_effective: uses.len() as f64,
        notes: vec!["what else slows the machine is taken not to come and go with it".into()],
    }
}

/// The uses of a process in bursts in which it is active all the time, CPUs, ascending.
struct Full(Vec<f64>);

impl Full {
    /// A process that never uses this much in a burst is assumed to get a whole CPU when active: it
    /// is on and off in less than a burst.
    const SURELY: f64 = 0.5;
    /// Fraction of the usual use: in a burst with less, the process started or stopped.
    const MOST_OF_IT: f64 = 0.75;
    /// With fewer bursts than these the median says little.
    const FEWEST: usize = 4;

    /// Selects bursts between two in which the process was also active.
    fn from_uses(uses: &[f64]) -> Self {
        let ascending = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values
        };
        let mut active = ascending(
            uses.iter()
                .copied()
                .filter(|u| *u >= Self::SURELY)
                .collect(),
        );
        let usual = active.get(active.len() / 2).copied().unwrap_or(1.0);
        let much = |used: f64| used >= Self::MOST_OF_IT * usual;
        let between = (uses.windows(3))
            .filter(|near| near.iter().all(|used| much(*used)))
            .map(|near| near[1]);
        let between = ascending(between.collect());
        if between.len() >= Self::FEWEST {
            return Self(between);
        }
        active.retain(|used| much(*used));
        Self(active)
    }

    /// The median use. A process that is kept from its CPU for long in a few bursts is not active
    /// there; one that shares the CPU all the time, with the host or with others, is active.
    fn use_cpus(&self) -> f64 {
        let (n, of) = (self.0.len(), &self.0);
        match n {
            0 => 1.0,
            _ => f64::midpoint(of[(n - 1) / 2], of[n / 2]),
        }
    }

    /// Share of the time in which a process is active that used `used` CPUs; of that, `unsure` may
    /// have been used before or after.
    ///
    /// Whether a process was active while it was briefly kept from its CPU is a matter of
    /// definition. It was active at least as long as it had its CPUs. At most it was active as if
    /// it always used as little as in the bursts of its minimum use.
    fn share(&self, used: f64, unsure: f64, level: f64) -> Estimate {
        let by = |used: f64, full: f64| (used / full).clamp(0.0, 1.0);
        let usual = self.use_cpus();
        let least = ((1.0 - level) * self.0.len() as f64) as usize;
        let least = self.0.get(least).copied().unwrap_or(usual);
        Estimate {
            value: by(used, usual),
            interval: Interval::new(
                by(used - unsure, usual.ceil()),
                by(used + unsure, least.min(usual)),
            ),
            level,
            unit: "1".into(),
            method: "CPU time used over the median of that used in a burst when active".into(),
            n: self.0.len() as u64,
            n_effective: self.0.len() as f64,
            notes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
