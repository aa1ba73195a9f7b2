//! Fills [`SampleStatistics`]: for one recording, and for several together.

use undertick_document::{IntervalReport, SampleStatistics};
use undertick_estimate::Sample;

/// The statistics of a sample of ticks; `residue` ticks are added to each duration.
pub(crate) fn from_sample(sample: &Sample, residue: f64, ns_per_tick: f64) -> SampleStatistics {
    let moments = sample.moments();
    let in_ns = |ticks: Option<i64>| ticks.map(|t| (t as f64 + residue) * ns_per_tick);
    SampleStatistics {
        min: in_ns(moments.min()),
        max: in_ns(moments.max()),
        sd: moments.sd().map(|sd| sd * ns_per_tick),
    }
}

/// The statistics of all samples of several recordings: each interval with the time in ns that is
/// subtracted from its samples.
#[must_use]
pub fn pooled(all: &[(&IntervalReport, f64)]) -> SampleStatistics {
    let each = |figure: fn(&SampleStatistics) -> Option<f64>| {
        (all.iter()).filter_map(move |(i, less)| Some(figure(&i.statistics)? - less))
    };
    SampleStatistics {
        min: each(|s| s.min).reduce(f64::min),
        max: each(|s| s.max).reduce(f64::max),
        sd: sd(all),
    }
}

/// Standard deviation of all samples, from each recording's and from the differences of their
/// means.
fn sd(all: &[(&IntervalReport, f64)]) -> Option<f64> {
    let each: Option<Vec<(f64, f64, f64)>> = (all.iter())
        .filter(|(i, _)| i.count > 1)
        .map(|(i, less)| {
            let mean = i.mean.as_ref()?.value - less;
            Some((i.count as f64, mean, i.statistics.sd?))
        })
        .collect();
    let each = each.filter(|each| !each.is_empty())?;
    let n: f64 = each.iter().map(|(n, ..)| n).sum();
    let mean = each.iter().map(|(n, mean, _)| n * mean).sum::<f64>() / n;
    let squares: f64 = (each.iter())
        .map(|(n, own, sd)| (n - 1.0) * sd * sd + n * (own - mean) * (own - mean))
        .sum();
    Some((squares / (n - 1.0)).sqrt())
}
