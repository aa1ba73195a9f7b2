//! What only the samples of all repetitions together can say.

use std::collections::BTreeMap;

use undertick_estimate::{ModeOptions, Numbers, modes_of_bins};
use undertick_report::document::{Histogram, Mode, Valley};
use undertick_units::{Estimate, Interval};

/// The samples of all repetitions in one histogram, the null step taken off.
pub(super) fn histogram(all: &[&Histogram], granularity_ns: f64, null_ns: f64) -> Histogram {
    let half_step = granularity_ns.max(1e-3) / 2.0;
    // All lie on the lattice of the clock's steps: equal cells have equal edges but
    // for rounding.
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

/// The duration that is exceeded once in so many seconds on average, in samples that
/// took `observed` seconds; `None` if that is less. The interval takes what exceeds it
/// as a Poisson process. As fine as the bins, eight an octave.
pub(super) fn exceeded_once_in(
    seconds: f64,
    observed: f64,
    histogram: &Histogram,
    level: f64,
) -> Option<Estimate> {
    let expected = observed / seconds;
    if expected < 1.0 {
        return None;
    }
    // The middle of the bin that holds the sample of that rank from above.
    let ranked = |rank: f64| {
        let mut above = 0.0;
        for (i, &count) in histogram.counts.iter().enumerate().rev() {
            above += count as f64;
            if above >= rank {
                return Some((histogram.edges[i] + histogram.edges[i + 1]) / 2.0);
            }
        }
        None
    };
    let z = undertick_estimate::normal_quantile(0.5 + level / 2.0);
    let spread = z * expected.sqrt();
    let fewest = expected - spread;
    Some(Estimate {
        value: ranked(expected.round())?,
        interval: Interval {
            lo: ranked(expected + spread + 1.0),
            hi: (fewest >= 1.0).then(|| ranked(fewest)).flatten(),
        },
        level,
        unit: "ns".to_owned(),
        method: format!("exceeded once in {seconds} s on average, in {observed:.2} s"),
        n: histogram.counts.iter().sum(),
        n_effective: expected,
        notes: Vec::new(),
    })
}

/// One repetition's samples, for what modes they lie in.
pub(super) struct Samples<'a> {
    pub(super) histogram: &'a Histogram,
    /// Its null step, ns, which the pooled histogram has taken off.
    pub(super) null_ns: f64,
    /// Independent samples that would say as much.
    pub(super) n_effective: f64,
}

/// The modes of all samples together. The interval of a share comes from the scatter
/// between repetitions: one may be in one mode from its first sample to its last.
pub(super) fn modes(
    pooled: &Histogram,
    repetitions: &[Samples<'_>],
    granularity_ns: f64,
    level: f64,
) -> Vec<Mode> {
    if pooled.counts.is_empty() {
        return Vec::new();
    }
    let n_effective = repetitions.iter().map(|r| r.n_effective).sum();
    let options = ModeOptions {
        step: granularity_ns,
        level,
        ..ModeOptions::default()
    };
    let found = modes_of_bins(&pooled.edges, &pooled.counts, n_effective, &options);
    let mut valleys = found.valleys.iter();
    (found.modes.iter())
        .map(|mode| {
            let shares = repetitions
                .iter()
                .filter_map(|r| share_in(r, mode.lo, mode.hi));
            let between = Numbers::new(shares.collect()).mean(level);
            Mode {
                at: mode.place.value,
                lo: mode.lo,
                hi: mode.hi,
                share: mode.share.value,
                place: None,
                share_interval: between.map(|between| Estimate {
                    method: format!("mean of {} repetitions, {}", between.n, between.method),
                    ..between
                }),
                valley: valleys.next().map(|valley| Valley {
                    lo: valley.lo,
                    hi: valley.hi,
                    depth: valley.depth,
                    p_value: valley.p_value,
                }),
            }
        })
        .collect()
}

/// Share of a repetition's samples between two values, by the middles of its bins.
fn share_in(of: &Samples<'_>, lo: f64, hi: f64) -> Option<f64> {
    let Histogram { edges, counts, .. } = of.histogram;
    let all: u64 = counts.iter().sum();
    let inside: u64 = (edges.windows(2).zip(counts))
        .filter(|(pair, _)| {
            let middle = (pair[0] + pair[1]) / 2.0 - of.null_ns;
            (lo..=hi).contains(&middle)
        })
        .map(|(_, count)| count)
        .sum();
    (all > 0).then(|| inside as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(edges: &[f64], counts: &[u64]) -> Histogram {
        Histogram {
            unit: "ns".to_owned(),
            edges: edges.to_vec(),
            counts: counts.to_vec(),
        }
    }

    #[test]
    fn cells_of_all_repetitions_add_up() {
        let a = of(&[5.0, 15.0, 25.0], &[1, 2]);
        let b = of(&[15.0, 25.0, 35.0], &[3, 4]);
        // Far away: an empty cell between.
        let c = of(&[95.0, 105.0], &[5]);
        assert_eq!(
            histogram(&[&a, &b, &c], 10.0, 2.0),
            of(&[3.0, 13.0, 23.0, 33.0, 93.0, 103.0], &[1, 5, 4, 0, 5])
        );
    }

    /// Steps that begin elsewhere: nothing is lost, and edges rise.
    #[test]
    fn another_lattice_is_taken_in() {
        let a = of(&[0.0, 10.0, 20.0], &[1, 1]);
        let b = of(&[7.0, 17.0], &[1]);
        let both = histogram(&[&a, &b], 10.0, 0.0);
        assert_eq!(both.counts.iter().sum::<u64>(), 3);
        assert!(both.edges.windows(2).all(|e| e[0] < e[1]), "{both:?}");
        assert_eq!(both.edges.len(), both.counts.len() + 1);
    }

    /// Six repetitions of 7 us, two of 32 us: two modes, and their shares are not
    /// known better than eight repetitions know them.
    #[test]
    fn modes_of_repetitions() {
        let edges = |at: f64| [at - 500.0, at - 100.0, at + 100.0, at + 500.0];
        let of_one = |at: f64| of(&edges(at), &[100, 800, 100]);
        let all: Vec<Histogram> = (0..8)
            .map(|i| of_one(if i < 6 { 7000.0 } else { 32_000.0 }))
            .collect();
        let pooled = histogram(&all.iter().collect::<Vec<_>>(), 10.0, 0.0);
        let samples: Vec<Samples<'_>> = (all.iter())
            .map(|histogram| Samples {
                histogram,
                null_ns: 0.0,
                n_effective: 1000.0,
            })
            .collect();
        let found = modes(&pooled, &samples, 10.0, 0.95);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found[0].at - 7000.0).abs() < 500.0 && (found[1].at - 32_000.0).abs() < 500.0);
        assert!((found[0].share - 0.75).abs() < 1e-9, "{found:?}");
        let interval = found[0].share_interval.as_ref().unwrap();
        assert!((interval.value - 0.75).abs() < 1e-9);
        // Student's t with 7 degrees: 2.365 * 0.463 / sqrt(8) = 0.387; skewness is mended.
        let half = interval.interval.half_width().unwrap();
        assert!((0.25..=0.6).contains(&half), "{half}");
        assert!(found[0].valley.is_some() && found[1].valley.is_none());
    }

    /// 10 s with 90 of 100 ns, 9 of 1000 and 1 of 10 000 (middles of the bins).
    #[test]
    fn once_in_by_hand() {
        let found = of(
            &[95.0, 105.0, 995.0, 1005.0, 9995.0, 10_005.0],
            &[90, 0, 9, 0, 1],
        );
        let level = |seconds| exceeded_once_in(seconds, 10.0, &found, 0.95).map(|e| e.value);
        // Ten in ten seconds: the tenth from above.
        assert_eq!(level(1.0), Some(1000.0));
        assert_eq!(level(10.0), Some(10_000.0));
        assert_eq!(level(0.5), Some(100.0));
        assert_eq!(level(10.1), None);
        let once_a_second = exceeded_once_in(1.0, 10.0, &found, 0.95).unwrap();
        // 10 +- 1.96 times the root of 10, and one more: ranks 17.2 and 3.8.
        assert_eq!(once_a_second.interval, Interval::new(100.0, 1000.0));
        assert_eq!(once_a_second.n, 100);
    }
}
