//! Conversion of samples to times per work, relative to the reference.

use std::ops::Range;

use super::RateSample;

/// Maximum step of the clock, as a share of a sample's time, that is derived from the samples: two
/// values that are further apart are two peaks.
const COARSEST: f64 = 0.05;

/// Number of neighbours on either side whose references are combined with a sample's own.
const NEIGHBOURS: usize = 4;

/// A usable sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Timed {
    /// Number of its burst, from 0 without gaps.
    pub(super) burst: usize,
    /// Time per work over that of the reference. Within a step of the clock it is spread evenly.
    pub(super) time: f64,
    pub(super) seconds: f64,
}

/// A run of the probe, in the order of measurement.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) samples: Vec<Timed>,
    /// The samples of each burst.
    pub(super) bursts: Vec<Range<usize>>,
    /// The median reference of each burst.
    pub(super) references: Vec<f64>,
    /// Step of the clock in `time`, 0 where none shows.
    pub(super) step: f64,
    pub(super) unusable: u64,
    /// Indices of `samples` by `time`, ascending.
    pub(super) order: Vec<u32>,
}

impl Run {
    /// Prepares a run; `step` of the clock is a share of the time of a typical sample, 0 to derive
    /// it.
    pub(super) fn from_samples(samples: &[RateSample], step: f64) -> Option<Self> {
        let usable: Vec<RateSample> = samples.iter().copied().filter(is_usable).collect();
        if usable.is_empty() || u32::try_from(usable.len()).is_err() {
            return None;
        }
        let bursts = bursts_of(&usable);
        let smooth = smoothed(&usable, &bursts, NEIGHBOURS);
        let step = match step > 0.0 && step.is_finite() {
            true => step * median(usable.iter().map(|s| 1.0 / s.rate).collect()),
            false => step_of(&usable),
        };
        let mut run = Self {
            samples: Vec::with_capacity(usable.len()),
            references: (bursts.iter())
                .map(|burst| median(usable[burst.clone()].iter().map(|s| s.reference).collect()))
                .collect(),
            bursts,
            step: 0.0,
            unusable: (samples.len() - usable.len()) as u64,
            order: (0..usable.len() as u32).collect(),
        };
        for (burst, range) in run.bursts.iter().enumerate() {
            for i in range.clone() {
                let within = (1.0 / usable[i].rate + step * spread_evenly(i)) * smooth[i];
                let time = match within > 0.0 && within.is_finite() {
                    true => within,
                    false => smooth[i] / usable[i].rate,
                };
                run.samples.push(Timed {
                    burst,
                    time,
                    seconds: usable[i].seconds,
                });
            }
        }
        let times = &run.samples;
        run.order
            .sort_unstable_by(|&a, &b| times[a as usize].time.total_cmp(&times[b as usize].time));
        run.step = step * median(smooth);
        Some(run)
    }

    pub(super) fn n(&self) -> usize {
        self.samples.len()
    }

    /// Returns the times in ascending order.
    pub(super) fn ascending(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.order.iter().map(|&i| self.samples[i as usize].time)
    }
}

fn is_usable(sample: &RateSample) -> bool {
    let positive = |x: f64| x.is_finite() && x > 0.0;
    // The range stays far from where a quotient overflows.
    let moderate = |x: f64| positive(x) && (1e-90..1e90).contains(&x);
    moderate(sample.rate) && moderate(sample.reference) && moderate(sample.seconds)
}

/// Returns the stretches of equal burst numbers.
fn bursts_of(samples: &[RateSample]) -> Vec<Range<usize>> {
    let mut from = 0;
    (samples.chunk_by(|a, b| a.burst == b.burst))
        .map(|burst| {
            let range = from..from + burst.len();
            from = range.end;
            range
        })
        .collect()
}

/// Returns the reference beside each sample: the median of its own and its neighbours' in the
/// burst. Their noise is then a third, and an interrupt in one of them has no effect. A core that
/// changes its speed within a burst is still followed.
pub(super) fn smoothed(
    samples: &[RateSample],
    bursts: &[Range<usize>],
    neighbours: usize,
) -> Vec<f64> {
    let mut smooth = Vec::with_capacity(samples.len());
    for burst in bursts {
        for i in burst.clone() {
            let from = i.saturating_sub(neighbours).max(burst.start);
            let to = (i + neighbours + 1).min(burst.end);
            let near = &samples[from..to];
            smooth.push(median(near.iter().map(|s| s.reference).collect()));
        }
    }
    smooth
}

/// Derives the step of the clock in times per work, where it shows: most times equal some other
/// time, and the middle half lies on few values. Only the middle half is examined, as two peaks lie
/// far apart.
fn step_of(samples: &[RateSample]) -> f64 {
    let mut times: Vec<f64> = samples.iter().map(|s| 1.0 / s.rate).collect();
    times.sort_unstable_by(f64::total_cmp);
    let mut gaps: Vec<f64> = (times.windows(2))
        .map(|pair| pair[1] - pair[0])
        .filter(|&gap| gap > 0.0)
        .collect();
    // Most times are equal to the one before.
    if gaps.is_empty() || 2 * gaps.len() >= times.len() {
        return 0.0;
    }
    // Differences due to the rounding of a quotient are not gaps.
    let least = times[times.len() / 2] * 1e-9;
    gaps.retain(|&gap| gap > least);
    match gaps.is_empty() {
        true => 0.0,
        // Gaps in the tails are wider than a step; none is narrower.
        false => {
            gaps.sort_unstable_by(f64::total_cmp);
            let step = gaps[gaps.len() / 10];
            match step <= COARSEST * times[times.len() / 2] {
                true => step,
                false => 0.0,
            }
        }
    }
}

/// Returns offsets of -1/2 .. 1/2, evenly spread, however the samples are divided: multiples of the
/// golden section.
fn spread_evenly(i: usize) -> f64 {
    (i as f64 * 0.618_033_988_749_894_9).fract() - 0.5
}

/// Returns the median, the mean of the middle two for an even number; 0 for no values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    let n = values.len();
    if n == 0 {
        return 0.0;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    match n % 2 {
        1 => upper,
        _ => {
            let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            f64::midpoint(lower, upper)
        }
    }
}
