//! The peaks of a printed histogram.

use undertick_units::{Estimate, Interval};

use super::bursts::score;
use super::location::{Location, absolute, clean, inverse, relative};
use super::{Peak, PeakOptions, Peaks, RateHistogram};
use crate::long_run::normal;
use crate::modes::{Axis, Divide, ModeOptions, modes_of_bins};

/// A bin: its middle, its edges, and its count.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bin {
    rate: f64,
    lo: f64,
    hi: f64,
    count: f64,
}

impl Bin {
    /// Returns the time per work of its samples.
    fn time(&self) -> f64 {
        self.count / self.rate
    }
}

/// Finds the peaks of independent samples in a histogram of rates, as [`peaks()`](super::peaks())
/// does: `rates` are the middles of bins, `counts` their contents.
///
/// Empty bins have to be given, with a count of 0: a bin that is not given is taken as illegible,
/// and its neighbours extend to its middle. Every sample stands for the same work, so it weighs 1 /
/// rate in time. `None` without a sample of positive rate.
#[must_use]
pub fn peaks_of_histogram(rates: &[f64], counts: &[u64], options: &PeakOptions) -> Option<Peaks> {
    let bins = bins_of(rates, counts);
    let n: f64 = bins.iter().map(|bin| bin.count).sum();
    if n <= 0.0 {
        return None;
    }
    let options = &options.sane();
    let level = options.level;
    let mut divides = divides(&bins, options);
    let parts = loop {
        let parts = parts(&bins, &divides);
        let time: f64 = bins.iter().map(Bin::time).sum();
        let small = (0..parts.len()).find(|&i| {
            let samples: f64 = parts[i].iter().map(|bin| bin.count).sum();
            let own_time: f64 = parts[i].iter().map(Bin::time).sum();
            (samples / n).max(own_time / time) < options.least_share / 2.0
        });
        match small {
            Some(i) if !divides.is_empty() => divides.remove(i.min(divides.len() - 1)),
            _ => break parts,
        };
    };
    let locations: Vec<Location> = parts.iter().map(|part| location(part)).collect();
    let at = |i: usize| 1.0 / divides[i].at / locations[0].value;
    let peaks = (0..parts.len())
        .map(|i| {
            let rate = match i {
                0 => clean(&locations[0], level),
                _ => relative(&locations[i], &locations[0], level),
            };
            Peak {
                slowdown: inverse(&rate),
                rate,
                sample_share: share(&bins, parts[i], |_| 1.0, level, "share of samples"),
                time_share: share(
                    &bins,
                    parts[i],
                    |bin| 1.0 / bin.rate,
                    level,
                    "share of time, each sample the same work",
                ),
                lo: match i < divides.len() {
                    true => at(i),
                    false => 0.0,
                },
                hi: match i {
                    0 => bins.last().map_or(1.0, |bin| bin.hi) / locations[0].value,
                    _ => at(i - 1),
                },
                bursts: 0,
                p_value: (i > 0).then(|| divides[i - 1].p_value),
            }
        })
        .collect();
    let clean_rate = locations[0].value;
    let rates = (bins.iter()).map(|bin| {
        let rate = bin.rate / clean_rate;
        (rate, bin.count as u64, bin.count / rate)
    });
    Some(Peaks {
        peaks,
        clean_rate: absolute(&locations[0], level),
        mean_loss: mean_loss(&bins, &locations[0], level),
        reference_drift: no_reference(level),
        histogram: RateHistogram::from_rates(options.bin, rates),
        n: n as u64,
        unusable: 0,
        bursts: 0,
        n_effective: n,
    })
}

/// Returns bins by rate, ascending, each up to the middle between it and the next.
fn bins_of(rates: &[f64], counts: &[u64]) -> Vec<Bin> {
    let mut given: Vec<(f64, f64)> = (rates.iter().zip(counts))
        .filter(|(rate, _)| (1e-90..1e90).contains(*rate))
        .map(|(&rate, &count)| (rate, count as f64))
        .collect();
    given.sort_by(|a, b| a.0.total_cmp(&b.0));
    given.dedup_by(|next, kept| {
        let same = next.0 <= kept.0 * (1.0 + 1e-9);
        if same {
            kept.1 += next.1;
        }
        same
    });
    let n = given.len();
    let rate = |i: usize| given[i].0;
    (0..n)
        .map(|i| {
            // The outermost bins are as wide to the outside as to the inside.
            let half_below = match (i, n) {
                (_, 1) => 0.005 * rate(0),
                (0, _) => (rate(1) - rate(0)) / 2.0,
                _ => (rate(i) - rate(i - 1)) / 2.0,
            };
            let half_above = match n - 1 - i {
                0 => half_below,
                _ => (rate(i + 1) - rate(i)) / 2.0,
            };
            Bin {
                rate: rate(i),
                lo: (rate(i) - half_below).max(rate(i) / 2.0),
                hi: rate(i) + half_above,
                count: given[i].1,
            }
        })
        .collect()
}

/// Divides in time per work, ascending.
fn divides(bins: &[Bin], options: &PeakOptions) -> Vec<Divide> {
    let mut edges: Vec<f64> = bins.iter().rev().map(|bin| 1.0 / bin.hi).collect();
    edges.extend(bins.first().map(|bin| 1.0 / bin.lo));
    if edges.windows(2).any(|e| e[0] >= e[1]) {
        return Vec::new();
    }
    let counts: Vec<u64> = bins.iter().rev().map(|bin| bin.count as u64).collect();
    let n: u64 = counts.iter().sum();
    let options = ModeOptions {
        axis: Axis::Logarithmic,
        level: options.level,
        false_alarm: options.false_alarm,
        least_share: options.least_share / 2.0,
        at_most: options.at_most.max(1),
        ..ModeOptions::default()
    };
    modes_of_bins(&edges, &counts, n as f64, &options).valleys
}

/// The bins of each peak, fastest first; the bins of one ascend.
fn parts<'a>(bins: &'a [Bin], divides: &[Divide]) -> Vec<&'a [Bin]> {
    let mut rest = bins;
    let mut parts: Vec<&[Bin]> = (divides.iter())
        .map(|divide| {
            let slower = rest.partition_point(|bin| 1.0 / bin.rate > divide.at);
            let (slow, fast) = rest.split_at(slower);
            rest = slow;
            fast
        })
        .collect();
    parts.push(rest);
    parts
}

/// Returns the middle of the shortest stretch that holds half, with each bin filled evenly. That
/// stretch is also the confidence interval.
fn location(part: &[Bin]) -> Location {
    let n: f64 = part.iter().map(|bin| bin.count).sum();
    // Such a stretch begins or ends at an edge.
    let mut stretches = Vec::new();
    let mut below = 0.0;
    for bin in part {
        stretches.extend(at_rank(part, below + n / 2.0).map(|hi| (bin.lo, hi)));
        below += bin.count;
        stretches.extend(at_rank(part, below - n / 2.0).map(|lo| (lo, bin.hi)));
    }
    let width = |stretch: &(f64, f64)| stretch.1 - stretch.0;
    let shortest = (stretches.iter().map(width)).fold(f64::INFINITY, f64::min);
    // Where half a bin holds half, any part of it does: its middle is used.
    let best = (stretches.iter())
        .filter(|stretch| width(stretch) <= shortest * (1.0 + 1e-9))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |all, stretch| {
            (all.0.min(stretch.0), all.1.max(stretch.1))
        });
    Location {
        value: f64::midpoint(best.0, best.1),
        interval: Interval::new(best.0, best.1),
        n: n as usize,
        method: "middle of the shortest half, which is the interval",
    }
}

/// Returns the place below which `rank` lies.
fn at_rank(part: &[Bin], rank: f64) -> Option<f64> {
    let n: f64 = part.iter().map(|bin| bin.count).sum();
    if !(0.0..=n * (1.0 + 1e-12)).contains(&rank) {
        return None;
    }
    let mut below = 0.0;
    for bin in part {
        if bin.count > 0.0 && rank <= below + bin.count {
            return Some(bin.lo + (rank - below) / bin.count * (bin.hi - bin.lo));
        }
        below += bin.count;
    }
    part.last().map(|bin| bin.hi)
}

/// Share of `part` where each sample has a weight: a ratio of two sums of independent samples. Its
/// variance comes from their residuals, as a score interval.
fn share(
    bins: &[Bin],
    part: &[Bin],
    weight: impl Fn(&Bin) -> f64,
    level: f64,
    method: &str,
) -> Estimate {
    let total = |bins: &[Bin]| -> f64 { bins.iter().map(|bin| bin.count * weight(bin)).sum() };
    let (all, inside) = (total(bins), total(part));
    let p = inside / all;
    let squares = |bins: &[Bin]| -> f64 {
        (bins.iter())
            .map(|bin| bin.count * weight(bin) * weight(bin))
            .sum()
    };
    let (all_squares, own_squares) = (squares(bins), squares(part));
    let variance =
        ((1.0 - p) * (1.0 - p) * own_squares + p * p * (all_squares - own_squares)) / (all * all);
    let n: f64 = bins.iter().map(|bin| bin.count).sum();
    let effective = match p > 0.0 && p < 1.0 && variance > 0.0 {
        true => p * (1.0 - p) / variance,
        false => n,
    };
    Estimate {
        value: p,
        interval: score(p, effective, normal(level)),
        level,
        unit: "1".into(),
        method: format!("{method}, score interval"),
        n: n as u64,
        n_effective: effective,
        notes: Vec::new(),
    }
}

/// Returns 1 less work over time and clean rate.
fn mean_loss(bins: &[Bin], clean: &Location, level: f64) -> Estimate {
    let n: f64 = bins.iter().map(|bin| bin.count).sum();
    let time = bins.iter().map(Bin::time).sum::<f64>() / n;
    let squares: f64 = (bins.iter())
        .map(|bin| bin.count * (1.0 / bin.rate - time).powi(2))
        .sum();
    let rate = 1.0 / (time * clean.value);
    let half = normal(level) * (squares / n / n).sqrt() / time * rate;
    let of_clean = |bound: Option<f64>| bound.map(|b| rate * (b / clean.value - 1.0));
    let value = 1.0 - rate;
    Estimate {
        value,
        interval: Interval {
            lo: of_clean(clean.interval.lo).map(|by| value - half.hypot(by)),
            hi: of_clean(clean.interval.hi).map(|by| value + half.hypot(by)),
        },
        level,
        unit: "1".into(),
        method: "work over time, each sample the same work".into(),
        n: n as u64,
        n_effective: n,
        notes: Vec::new(),
    }
}

fn no_reference(level: f64) -> Estimate {
    Estimate {
        value: 0.0,
        interval: Interval { lo: None, hi: None },
        level,
        unit: "1".into(),
        method: "none".into(),
        n: 0,
        n_effective: 0.0,
        notes: vec!["a histogram has no reference".into()],
    }
}
