//! Computes peaks with their figures from the divides.

use undertick_units::{Estimate, Interval};

use super::bursts::{LEAST_BURSTS, OverBursts, over_bursts, over_time, too_few, window};
use super::count::Counted;
use super::location::{Location, absolute, clean, inverse, location, relative};
use super::relative::Run;
use super::{Peak, PeakOptions, Peaks, RateHistogram};
use crate::long_run::student;
use crate::quantile::binomial_ranks;

/// Shares of one peak.
#[derive(Clone, Debug, PartialEq)]
struct Shares {
    samples: Estimate,
    time: Estimate,
    /// Number of bursts that show it.
    bursts: usize,
}

pub(super) fn describe(run: &Run, found: &Counted, options: &PeakOptions) -> Peaks {
    let level = options.level;
    let window = window(run);
    let mut found = found.clone();
    let mut shares = all_shares(run, &found, window, level);
    while let Some(small) = too_small(&shares, run, options) {
        found.divides.remove(nearer(&found, small));
        shares = all_shares(run, &found, window, level);
    }
    let locations: Vec<Location> = (0..shares.len())
        .map(|peak| location(run, &found, peak, level))
        .collect();
    let clean_location = &locations[0];
    let fastest = 1.0 / run.samples[run.order[0] as usize].time;
    let divided = |i: usize| 1.0 / found.divides[i].at / clean_location.value;
    let peaks = (shares.into_iter().enumerate())
        .map(|(i, shares)| {
            let rate = match i {
                0 => clean(clean_location, level),
                _ => relative(&locations[i], clean_location, level),
            };
            Peak {
                slowdown: inverse(&rate),
                rate,
                sample_share: shares.samples,
                time_share: shares.time,
                lo: match i < found.divides.len() {
                    true => divided(i),
                    false => 0.0,
                },
                hi: match i {
                    0 => fastest / clean_location.value,
                    _ => divided(i - 1),
                },
                bursts: shares.bursts,
                p_value: (i > 0).then(|| found.divides[i - 1].p_value),
            }
        })
        .collect();
    let rate_of = |i: usize| 1.0 / run.samples[i].time / clean_location.value;
    let rates = (0..run.n()).map(|i| (rate_of(i), 1, run.samples[i].seconds));
    let work = over_time(run, window, rate_of);
    Peaks {
        peaks,
        clean_rate: absolute(clean_location, level),
        mean_loss: mean_loss(&even(&work), run.n(), clean_location, level),
        reference_drift: drift(&run.references, level),
        histogram: RateHistogram::from_rates(options.bin, rates),
        n: run.n() as u64,
        unusable: run.unusable,
        bursts: run.bursts.len(),
        n_effective: found.n_effective,
    }
}

/// Weights each burst equally.
fn even(values: &[f64]) -> OverBursts {
    over_bursts(values, &vec![1.0; values.len()])
}

fn all_shares(run: &Run, found: &Counted, window: f64, level: f64) -> Vec<Shares> {
    let peak_of: Vec<usize> = (run.samples.iter())
        .map(|sample| found.peak_of(sample.time))
        .collect();
    let counts: Vec<f64> = run.bursts.iter().map(|burst| burst.len() as f64).collect();
    (0..=found.divides.len())
        .map(|peak| {
            let inside = |i: usize| f64::from(u8::from(peak_of[i] == peak));
            let own: Vec<f64> = (run.bursts.iter().zip(&counts))
                .map(|(burst, count)| burst.clone().map(inside).sum::<f64>() / count)
                .collect();
            let samples = over_bursts(&own, &counts);
            let time = even(&over_time(run, window, inside));
            Shares {
                samples: samples.share(
                    run.n(),
                    level,
                    "share of samples, successive differences of bursts",
                ),
                time: time.share(
                    run.n(),
                    level,
                    "mean of the bursts' shares of time, successive differences",
                ),
                bursts: own.iter().filter(|&&share| share > 0.0).count(),
            }
        })
        .collect()
}

/// Returns a peak that does not count: too small a share of samples and of time, or in too few
/// bursts.
fn too_small(shares: &[Shares], run: &Run, options: &PeakOptions) -> Option<usize> {
    if shares.len() < 2 {
        return None;
    }
    let least = options.least_share;
    let enough = |share: &Estimate| {
        share.value >= least / 2.0 && share.interval.hi.unwrap_or(share.value) >= least
    };
    let bursts = options.least_bursts.min(run.bursts.len());
    (0..shares.len())
        .filter(|&i| {
            let peak = &shares[i];
            !(enough(&peak.samples) || enough(&peak.time)) || peak.bursts < bursts
        })
        .min_by(|&a, &b| {
            let of = |i: usize| shares[i].time.value;
            of(a).total_cmp(&of(b))
        })
}

/// Returns the divide beside a peak that is proven less well.
fn nearer(found: &Counted, peak: usize) -> usize {
    let last = found.divides.len() - 1;
    let (before, after) = (peak.saturating_sub(1), peak.min(last));
    match found.divides[before].p_value > found.divides[after].p_value {
        true => before,
        false => after,
    }
}

/// Returns 1 less the mean rate, with the error of the clean rate added.
fn mean_loss(work: &OverBursts, n: usize, clean: &Location, level: f64) -> Estimate {
    let value = 1.0 - work.mean;
    let mut notes = Vec::new();
    let interval = match (work.variance, clean.interval.lo, clean.interval.hi) {
        (Some(variance), Some(lo), Some(hi)) => {
            let half = student(level, work.degrees) * variance.sqrt();
            let (below, above) = (clean.value - lo, hi - clean.value);
            Interval::new(
                value - half.hypot(work.mean * below / clean.value),
                value + half.hypot(work.mean * above / clean.value),
            )
        }
        _ => {
            notes.push(too_few(work.bursts));
            Interval { lo: None, hi: None }
        }
    };
    Estimate {
        value,
        interval,
        level,
        unit: "1".into(),
        method: "mean of the bursts' rates over time, successive differences".into(),
        n: n as u64,
        n_effective: work.bursts as f64,
        notes,
    }
}

/// Returns the interquartile range over the median.
fn drift(references: &[f64], level: f64) -> Estimate {
    let mut sorted = references.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let at = |p: f64| {
        let place = p * (n - 1) as f64;
        let (below, share) = (place.floor() as usize, place.fract());
        sorted[below] + share * (sorted[(below + 1).min(n - 1)] - sorted[below])
    };
    let middle = at(0.5);
    let [lower, upper] = [0.25, 0.75].map(|p| binomial_ranks(n as u64, p, level));
    let value = |rank: Option<u64>| rank.map(|rank| sorted[rank as usize - 1]);
    let range = |from: Option<u64>, to: Option<u64>| {
        (n >= LEAST_BURSTS).then_some(())?;
        Some(((value(to)? - value(from)?) / middle).max(0.0))
    };
    let mut notes = Vec::new();
    if sorted[0] == sorted[n - 1] {
        notes.push("the reference was the same all along, or there was none".into());
    }
    Estimate {
        value: (at(0.75) - at(0.25)) / middle,
        interval: Interval {
            lo: range(lower.hi, upper.lo),
            hi: range(lower.lo, upper.hi),
        },
        level,
        unit: "1".into(),
        method: "interquartile range of the bursts' median reference over its median".into(),
        n: n as u64,
        n_effective: n as f64,
        notes,
    }
}
