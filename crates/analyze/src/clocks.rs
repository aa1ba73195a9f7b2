//! How the uncertainty of the hosts' clocks widens intervals from one host to another.

use serde::{Deserialize, Serialize};
use undertick_document::{AcrossHosts, IntervalReport};
use undertick_format::manifest::{HostMap, Manifest};
use undertick_units::Estimate;

/// The maps of a trace of several hosts; empty for a trace of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks(Vec<Option<HostMap>>);

impl Clocks {
    pub(crate) fn from_manifest(manifest: &Manifest) -> Self {
        let maps = manifest.hosts.iter().map(|host| host.map.clone());
        Self(maps.collect())
    }

    /// Bound on the error of the time from one reading to another, ticks: `None` on one host.
    pub(crate) fn doubt(&self, start: (i16, i64), end: (i16, i64)) -> Option<i64> {
        if start.0 == end.0 {
            return None;
        }
        let of = |(host, ts): (i16, i64)| -> i64 {
            let map = usize::try_from(host).ok().and_then(|host| self.0.get(host));
            (map.and_then(Option::as_ref)).map_or(0, |map| map.half_width_at(ts))
        };
        Some(of(start).saturating_add(of(end)))
    }
}

/// The uncertainty of an interval's samples that comes from the clocks.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Doubt {
    samples: u64,
    /// Sum of half-widths, ticks.
    sum: i128,
    max: i64,
    /// Samples of uncertain sign.
    concurrent: u64,
}

impl Doubt {
    pub(crate) fn add(&mut self, ticks: i64, half_width: i64) {
        self.samples += 1;
        self.sum += i128::from(half_width);
        self.max = self.max.max(half_width);
        self.concurrent += u64::from(ticks.unsigned_abs() <= half_width.unsigned_abs());
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.samples += other.samples;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.concurrent += other.concurrent;
    }

    /// Widens the estimates of the interval. The clocks' error is the same for neighbouring
    /// samples, so more samples do not make it smaller. A mean is off by at most the mean of the
    /// half-widths, a quantile by the largest.
    pub(crate) fn tell(&self, report: &mut IntervalReport, ns_per_tick: f64) {
        if self.samples == 0 {
            return;
        }
        let max_ns = self.max as f64 * ns_per_tick;
        let sum_ns = self.sum as f64 * ns_per_tick;
        let mean_ns = sum_ns / self.samples as f64;
        let over = |count: u64| (sum_ns / count.max(1) as f64).min(max_ns);
        let count = report.count;
        for (mean, count) in [
            (&mut report.mean, count),
            (&mut report.before_culling.mean, count),
            (&mut report.uncompensated.mean, count),
        ] {
            widen(mean, over(count));
        }
        let quantiles = report.quantiles.values_mut();
        quantiles.for_each(|quantile| widen_one(quantile, max_ns));
        widen(&mut report.median, max_ns);
        widen(&mut report.before_culling.median, max_ns);
        widen(&mut report.uncompensated.median, max_ns);
        report.notes.push(format!(
            "{} samples go from one host to another: intervals are widened by what the hosts' clocks \
             leave open, {:.0} ns on average and {:.0} ns at most; {} samples are shorter than that, so \
             which of their ends came first is not certain (concurrent)",
            self.samples, mean_ns, max_ns, self.concurrent
        ));
        report.across_hosts = Some(AcrossHosts {
            samples: self.samples,
            half_width_ns_mean: mean_ns,
            half_width_ns_max: max_ns,
            concurrent: self.concurrent,
        });
    }
}

fn widen(estimate: &mut Option<Estimate>, by: f64) {
    if let Some(estimate) = estimate {
        widen_one(estimate, by);
    }
}

fn widen_one(estimate: &mut Estimate, by: f64) {
    estimate.interval.lo = estimate.interval.lo.map(|lo| lo - by);
    estimate.interval.hi = estimate.interval.hi.map(|hi| hi + by);
}

#[cfg(test)]
mod tests;
