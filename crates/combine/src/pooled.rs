//! Pooled distributions of several recordings: repetitions of an experiment, runs of a program.

use std::collections::BTreeMap;

use undertick_document::{
    Alternative, Compensation, Culled, Evidence, Histogram, IntervalReport, Mode, Reads,
    SampleStatistics, TakenOff, Valley,
};
use undertick_estimate::{Divide, ModeOptions, Numbers, modes_of_bins};
use undertick_units::{Estimate, Interval};

/// The samples of all repetitions in one histogram, with `null_ns` subtracted from each: the cost of one null
/// step of an experiment, 0 for runs.
///
/// Its bins lie on the lattice of the clock's steps, `granularity_ns` apart.
#[must_use]
pub fn histogram(all: &[&Histogram], granularity_ns: f64, null_ns: f64) -> Histogram {
    let half_step = granularity_ns.max(1e-3) / 2.0;
    // All lie on the lattice of the clock's steps: equal cells have equal edges except for
    // rounding.
    let key = |edge: f64| (edge / half_step).round() as i64;
    let mut cells: BTreeMap<i64, (f64, f64, u64)> = BTreeMap::new();
    for Histogram { edges, counts, .. } in all {
        for (pair, &count) in edges.windows(2).zip(counts) {
            cells.entry(key(pair[0])).or_insert((pair[0], pair[1], 0)).2 += count;
        }
    }
    let mut pooled = Histogram {
        unit: "ns".to_owned(),
        ..Histogram::default()
    };
    for (lo, hi, count) in cells.into_values() {
        let (lo, hi) = (lo - null_ns, hi - null_ns);
        match pooled.edges.last().copied() {
            None => pooled.edges.push(lo),
            // Between the ranges of two repetitions nothing was seen.
            Some(last) if lo > last + half_step => {
                pooled.edges.push(lo);
                pooled.counts.push(0);
            }
            // A repetition whose steps begin elsewhere.
            Some(last) if hi <= last + half_step => {
                if let Some(last) = pooled.counts.last_mut() {
                    *last += count;
                }
                continue;
            }
            Some(_) => {}
        }
        pooled.edges.push(hi);
        pooled.counts.push(count);
    }
    pooled
}

/// Counts, times and properties of one interval in several recordings. Its mean, median and
/// quantiles are left empty; `None` without a recording.
#[must_use]
pub fn summed(of: &[&IntervalReport]) -> Option<IntervalReport> {
    let first = *of.first()?;
    let sum = |count: fn(&IntervalReport) -> u64| of.iter().map(|i| count(i)).sum();
    let time = |time: fn(&IntervalReport) -> Option<f64>| of.iter().map(|i| time(i)).sum();
    let (culled, evidence) = dropped(of);
    Some(IntervalReport {
        name: first.name.clone(),
        count: sum(|i| i.count),
        unmatched: sum(|i| i.unmatched),
        culled,
        evidence,
        unexplained: None,
        mean: None,
        median: None,
        quantiles: BTreeMap::new(),
        statistics: SampleStatistics::default(),
        compensation: Compensation {
            cost: None,
            ..first.compensation.clone()
        },
        of_this_run: None,
        by_run: Vec::new(),
        histogram: Histogram::default(),
        modes: Vec::new(),
        kind: first.kind,
        reads: match of.iter().all(|i| i.reads == first.reads) {
            true => first.reads,
            false => Reads::Mixed,
        },
        unmatched_starts: sum(|i| i.unmatched_starts),
        unmatched_ends: sum(|i| i.unmatched_ends),
        unmatched_by_loss: sum(|i| i.unmatched_by_loss),
        negative: sum(|i| i.negative),
        before_culling: Alternative::default(),
        uncompensated: Alternative::default(),
        share_of: None,
        total_ns: time(|i| i.total_ns),
        on_cpu_ns: time(|i| i.on_cpu_ns),
        off_cpu_ns: time(|i| i.off_cpu_ns),
        taken_off: TakenOff {
            count: sum(|i| i.taken_off.count),
            time_ns: of.iter().map(|i| i.taken_off.time_ns).sum(),
        },
        granularity_ns: first.granularity_ns,
        median_steps: time(|i| i.median_steps).map(|steps| steps / of.len() as f64),
        notes: Vec::new(),
        sampled: None,
        slowed: None,
        repeated: None,
        across_hosts: None,
    })
}

/// Adds up what was dropped in these recordings, and the evidence of their disturbances.
fn dropped(of: &[&IntervalReport]) -> (Culled, Vec<Evidence>) {
    let count: u64 = of.iter().map(|i| i.culled.count).sum();
    let matched = (count + of.iter().map(|i| i.count).sum::<u64>()).max(1) as f64;
    let mut by: BTreeMap<String, u64> = BTreeMap::new();
    for (cause, count) in of.iter().flat_map(|i| &i.culled.by) {
        *by.entry(cause.clone()).or_default() += count;
    }
    let mut evidence = BTreeMap::<&str, Evidence>::new();
    for one in of.iter().flat_map(|i| &i.evidence) {
        let entry = evidence.entry(&one.cause).or_insert_with(|| Evidence {
            count: 0,
            time_ns: 0.0,
            ..one.clone()
        });
        entry.count += one.count;
        entry.time_ns += one.time_ns;
        entry.share = entry.count as f64 / matched;
    }
    let culled = Culled {
        count,
        share: count as f64 / matched,
        by,
    };
    (culled, evidence.into_values().collect())
}

/// The statistics of all samples of several recordings: each interval with the time in ns that is
/// subtracted from its samples.
#[must_use]
pub fn statistics(all: &[(&IntervalReport, f64)]) -> SampleStatistics {
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

/// A repetition has samples in a mode if at least this share lies there.
const SEEN: f64 = 0.05;

/// The modes of all samples together; `repetitions` are their histograms, which still include
/// `null_ns`, the cost of a null step. Two modes are distinguished if each is a mode of at least two repetitions. Where
/// every repetition lies at a different place, these are not modes but the scatter that the
/// confidence interval shows. The interval of a share comes from the scatter between repetitions:
/// one may be in one mode from its first sample to its last.
#[must_use]
pub fn modes(
    pooled: &Histogram,
    repetitions: &[&Histogram],
    null_ns: f64,
    n_effective: f64,
    granularity_ns: f64,
    level: f64,
) -> Vec<Mode> {
    if pooled.counts.iter().all(|&count| count == 0) {
        return Vec::new();
    }
    let options = ModeOptions {
        step: granularity_ns,
        level,
        ..ModeOptions::default()
    };
    let found = modes_of_bins(&pooled.edges, &pooled.counts, n_effective, &options);
    let shares = |lo: f64, hi: f64| -> Vec<f64> {
        (repetitions.iter())
            .filter_map(|r| share_in(r, lo + null_ns, hi + null_ns))
            .collect()
    };
    let ends = (pooled.edges[0], pooled.edges[pooled.edges.len() - 1]);
    let is_of_several = |&(lo, hi): &(f64, f64)| {
        let seen = shares(lo, hi)
            .iter()
            .filter(|&&share| share >= SEEN)
            .count();
        seen >= 2.min(repetitions.len())
    };
    let several: Vec<bool> = between(&found.valleys, ends)
        .iter()
        .map(is_of_several)
        .collect();
    let valleys: Vec<Divide> = (found.valleys.into_iter().zip(several.windows(2)))
        .filter(|(_, beside)| beside[0] && beside[1])
        .map(|(valley, _)| valley)
        .collect();
    (between(&valleys, ends).into_iter().enumerate())
        .map(|(i, (lo, hi))| Mode {
            at: middle(pooled, lo, hi),
            lo,
            hi,
            share: share_in(pooled, lo, hi).unwrap_or(0.0),
            place: None,
            share_interval: Numbers::new(shares(lo, hi)).mean(level).map(as_share),
            valley: valleys.get(i).map(|valley| Valley {
                lo: valley.lo,
                hi: valley.hi,
                depth: valley.depth,
                p_value: valley.p_value,
            }),
        })
        .collect()
}

/// The ranges from each valley to the next.
fn between(valleys: &[Divide], (first, last): (f64, f64)) -> Vec<(f64, f64)> {
    let inner: Vec<f64> = valleys.iter().map(|valley| valley.at).collect();
    let from = std::iter::once(first).chain(inner.iter().copied());
    from.zip(inner.iter().copied().chain([last])).collect()
}

/// Limits the estimate to 0 to 1, as for a share.
fn as_share(between: Estimate) -> Estimate {
    let bound = |b: Option<f64>| b.map(|b| b.clamp(0.0, 1.0));
    Estimate {
        interval: Interval {
            lo: bound(between.interval.lo),
            hi: bound(between.interval.hi),
        },
        method: format!("mean of {} repetitions, {}", between.n, between.method),
        ..between
    }
}

/// The bins whose middles lie between two values.
fn bins(of: &Histogram, lo: f64, hi: f64) -> impl Iterator<Item = (f64, u64)> {
    (of.edges.windows(2).zip(&of.counts))
        .map(|(pair, &count)| (f64::midpoint(pair[0], pair[1]), count))
        .filter(move |(middle, _)| (lo..hi).contains(middle))
}

/// Share of a histogram's samples between two values.
fn share_in(of: &Histogram, lo: f64, hi: f64) -> Option<f64> {
    let all: u64 = of.counts.iter().sum();
    let inside: u64 = bins(of, lo, hi).map(|(_, count)| count).sum();
    (all > 0).then(|| inside as f64 / all as f64)
}

/// The middle of the bin that holds the median of the samples between two values.
fn middle(of: &Histogram, lo: f64, hi: f64) -> f64 {
    let all: u64 = bins(of, lo, hi).map(|(_, count)| count).sum();
    let mut below = 0;
    let mut found = bins(of, lo, hi).skip_while(|(_, count)| {
        below += count;
        2 * below < all
    });
    found.next().map_or(lo, |(middle, _)| middle)
}

#[cfg(test)]
mod tests;
