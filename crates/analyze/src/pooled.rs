//! Pooled distributions of several recordings: repetitions of an experiment, runs of a program.

use std::collections::BTreeMap;

use undertick_estimate::{Divide, ModeOptions, Numbers, modes_of_bins};
use undertick_report::document::{
    Culled, Evidence, Histogram, IntervalReport, Mode, TakenOff, Valley,
};
use undertick_units::{Estimate, Interval};

/// The samples of all repetitions in one histogram, with `null_ns` subtracted from each.
///
/// Their bins lie on the lattice of the clock's steps, `granularity_ns` apart.
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

/// Sums of the times of recordings of the same interval.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// As [`IntervalReport::total_ns`]; `None` where one recording does not have it.
    pub total_ns: Option<f64>,
    /// As [`IntervalReport::on_cpu_ns`]; likewise.
    pub on_cpu_ns: Option<f64>,
    /// As [`IntervalReport::off_cpu_ns`]; likewise.
    pub off_cpu_ns: Option<f64>,
    /// As [`IntervalReport::taken_off`].
    pub taken_off: TakenOff,
}

/// Adds up the times of these recordings.
#[must_use]
pub fn times(of: &[&IntervalReport]) -> Times {
    let sum = |time: fn(&IntervalReport) -> Option<f64>| of.iter().map(|i| time(i)).sum();
    Times {
        total_ns: sum(|i| i.total_ns),
        on_cpu_ns: sum(|i| i.on_cpu_ns),
        off_cpu_ns: sum(|i| i.off_cpu_ns),
        taken_off: TakenOff {
            count: of.iter().map(|i| i.taken_off.count).sum(),
            time_ns: of.iter().map(|i| i.taken_off.time_ns).sum(),
        },
    }
}

/// Adds up what was dropped in these recordings, and the evidence of their disturbances.
#[must_use]
pub fn dropped(of: &[&IntervalReport]) -> (Culled, Vec<Evidence>) {
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

/// A repetition has samples in a mode if at least this share lies there.
const SEEN: f64 = 0.05;

/// The modes of all samples together; `repetitions` are their histograms, which still include the
/// null step. Two modes are distinguished if each is a mode of at least two repetitions. Where
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
mod tests {
    use super::*;

    fn histogram_of(edges: &[f64], counts: &[u64]) -> Histogram {
        Histogram {
            unit: "ns".to_owned(),
            edges: edges.to_vec(),
            counts: counts.to_vec(),
        }
    }

    #[test]
    fn cells_of_all_repetitions_add_up() {
        let a = histogram_of(&[5.0, 15.0, 25.0], &[1, 2]);
        let b = histogram_of(&[15.0, 25.0, 35.0], &[3, 4]);
        // Far away: with an empty cell between.
        let c = histogram_of(&[95.0, 105.0], &[5]);
        assert_eq!(
            histogram(&[&a, &b, &c], 10.0, 2.0),
            histogram_of(&[3.0, 13.0, 23.0, 33.0, 93.0, 103.0], &[1, 5, 4, 0, 5])
        );
    }

    /// Steps that begin elsewhere: nothing is lost, and edges ascend.
    #[test]
    fn another_lattice_is_taken_in() {
        let a = histogram_of(&[0.0, 10.0, 20.0], &[1, 1]);
        let b = histogram_of(&[7.0, 17.0], &[1]);
        let both = histogram(&[&a, &b], 10.0, 0.0);
        assert_eq!(both.counts.iter().sum::<u64>(), 3);
        assert!(both.edges.windows(2).all(|e| e[0] < e[1]), "{both:?}");
        assert_eq!(both.edges.len(), both.counts.len() + 1);
    }

    /// Six repetitions of 7 us, two of 32 us: two modes, whose shares are known no better than
    /// from eight repetitions.
    #[test]
    fn modes_of_repetitions() {
        let edges = |at: f64| [at - 500.0, at - 100.0, at + 100.0, at + 500.0];
        let of_one = |at: f64| histogram_of(&edges(at), &[100, 800, 100]);
        let all: Vec<Histogram> = (0..8)
            .map(|i| of_one(if i < 6 { 7000.0 } else { 32_000.0 }))
            .collect();
        let pooled = histogram(&all.iter().collect::<Vec<_>>(), 10.0, 0.0);
        let each: Vec<&Histogram> = all.iter().collect();
        let found = modes(&pooled, &each, 0.0, 8000.0, 10.0, 0.95);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found[0].at - 7000.0).abs() < 500.0 && (found[1].at - 32_000.0).abs() < 500.0);
        assert!((found[0].share - 0.75).abs() < 1e-9, "{found:?}");
        let interval = found[0].share_interval.as_ref().unwrap();
        assert!((interval.value - 0.75).abs() < 1e-9);
        // Student's t with 7 degrees: 2.365 * 0.463 / sqrt(8) = 0.387; skewness is corrected.
        let half = interval.interval.half_width().unwrap();
        assert!((0.25..=0.6).contains(&half), "{half}");
        assert!(found[0].valley.is_some() && found[1].valley.is_none());
    }

    /// Eight repetitions at eight places: no modes.
    #[test]
    fn what_scatters_has_one_mode() {
        let at = [
            5000.0, 9000.0, 15_000.0, 25_000.0, 40_000.0, 70_000.0, 120_000.0, 200_000.0,
        ];
        let one = |at: f64| histogram_of(&[at * 0.99, at, at * 1.01], &[500, 500]);
        let all: Vec<Histogram> = at.map(one).to_vec();
        let each: Vec<&Histogram> = all.iter().collect();
        let pooled = histogram(&each, 10.0, 0.0);
        let found = modes(&pooled, &each, 0.0, 8000.0, 10.0, 0.95);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].share - 1.0).abs() < 1e-9);
    }
}
