//! Groups peaks by the disturber that caused them.

use undertick_report::interference::{Disturber, Peak};
use undertick_units::{Estimate, Interval};

use super::active::Active;
use super::analysis::mean_over_bursts;
use super::suspects::CpuUser;

/// The disturbers behind the peaks that are not clean. Several peaks of samples with one cause and
/// one name belong to one disturber. For each peak, by index, `shares` has the share of each burst
/// that was in it. A peak without a name stands alone.
///
/// Where a process's activity is known burst by burst, its share and its slow-down come from its
/// activity: others that this machine does not show can also bring samples into a peak of the same
/// speed.
pub(super) fn disturbers(
    peaks: &[Peak],
    active: Option<&Active>,
    level: f64,
    shares: impl Fn(&[usize]) -> Vec<f64>,
) -> Vec<Disturber> {
    let mut all: Vec<Disturber> = Vec::new();
    for (i, peak) in peaks.iter().enumerate().filter(|(_, p)| p.cause != "clean") {
        let name = name(peak);
        let known = |d: &&mut Disturber| {
            name.is_some() && d.name == name && d.cause == peak.cause && peak.of == "samples"
        };
        match all.iter_mut().find(known) {
            Some(disturber) => disturber.peaks.push(i),
            None => all.push(Disturber {
                cause: peak.cause.clone(),
                name,
                time_share: peak.time_share.clone(),
                slowdown: peak.slowdown.clone(),
                peaks: vec![i],
            }),
        }
    }
    let is_active = |disturber: &Disturber| {
        let named = active.map(|active| &active.user);
        disturber.cause == "memory-traffic"
            && named.is_some_and(
                |user| matches!(user, CpuUser::Processes(name) if Some(name) == disturber.name.as_ref()),
            )
    };
    if let (Some(active), Some(disturber)) = (active, all.iter_mut().find(|d| is_active(d))) {
        disturber.time_share = active.time_share.clone();
        disturber.slowdown = active.slowdown.clone();
    }
    for disturber in all
        .iter_mut()
        .filter(|d| d.peaks.len() > 1 && !is_active(d))
    {
        let of: Vec<&Peak> = disturber.peaks.iter().map(|i| &peaks[*i]).collect();
        disturber.slowdown = slowdown(&of, level);
        disturber.time_share = time_share(&of, &shares(&disturber.peaks), level);
    }
    all
}

/// The process that a peak's evidence names.
fn name(peak: &Peak) -> Option<String> {
    let text = |key: &str| peak.evidence.get(key)?.as_str().map(str::to_owned);
    text("process")
        .or_else(|| text("cpu"))
        .or_else(|| text("steal"))
}

/// The sum of the shares. It does not depend on how the peaks are separated, so its interval is
/// that of the bursts' shares of all of them together.
fn time_share(of: &[&Peak], shares: &[f64], level: f64) -> Estimate {
    let value = of.iter().map(|p| p.time_share.value).sum::<f64>();
    let mut estimate = mean_over_bursts(shares, level);
    let by = value - estimate.value;
    let moved = |bound: Option<f64>| bound.map(|b| (b + by).clamp(0.0, 1.0));
    estimate.value = value;
    estimate.interval = Interval {
        lo: moved(estimate.interval.lo),
        hi: moved(estimate.interval.hi),
    };
    "sum of peaks; spaced looks".clone_into(&mut estimate.method);
    estimate
}

/// Time for the work that is done in all of them together, over the time for it in the clean peak.
fn slowdown(of: &[&Peak], level: f64) -> Estimate {
    let time: f64 = of.iter().map(|p| p.time_share.value).sum();
    let by = |slowdown: &dyn Fn(&Estimate) -> Option<f64>| {
        let work = of
            .iter()
            .map(|p| Some(p.time_share.value / slowdown(&p.slowdown)?));
        Some(time / work.sum::<Option<f64>>()?)
    };
    Estimate {
        value: by(&|s| Some(s.value)).unwrap_or(f64::NAN),
        interval: Interval {
            lo: by(&|s| s.interval.lo),
            hi: by(&|s| s.interval.hi),
        },
        level,
        unit: "1".into(),
        method: "peaks weighted by their work".into(),
        n: of.iter().map(|p| p.slowdown.n).sum(),
        n_effective: of.iter().map(|p| p.slowdown.n_effective).sum(),
        notes: Vec::new(),
    }
}
