//! The number of peaks: valleys that are proven with the number of independent samples.

use super::PeakOptions;
use super::relative::Run;
use crate::modes::{Axis, Divide, ModeOptions, modes_of_bins};

/// Number of bins per typical difference of neighbours.
const FINE: f64 = 16.0;
/// Maximum number of bins in the search.
const MOST_BINS: f64 = 50_000.0;
/// Relative difference of times below which they count as equal.
const ROUNDING: f64 = 1e-6;
/// Maximum number of searches until peaks and dependence agree.
const ROUNDS: usize = 6;
/// Minimum number of blocks for judging a correlation.
const BLOCKS: usize = 12;
/// Number of samples in the shortest blocks.
const SHORTEST: usize = 4;
/// Minimum number of independent samples in a peak.
const LEAST_SAMPLES: f64 = 5.0;

/// Result of the search.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// Times per work that divide the peaks, ascending, and how well they do.
    pub(super) divides: Vec<Divide>,
    /// Number of independent samples.
    pub(super) n_effective: f64,
}

impl Counted {
    /// Returns the peak that a time belongs to: 0 is the fastest.
    pub(super) fn peak_of(&self, time: f64) -> usize {
        self.divides.partition_point(|divide| divide.at <= time)
    }
}

pub(super) fn count(run: &Run, options: &PeakOptions) -> Counted {
    let bins = Bins::from_run(run);
    let least_share = 0.5 * options.least_share * samples_for_time(run);
    let search = |n_effective: f64| {
        let options = ModeOptions {
            axis: Axis::Logarithmic,
            step: run.step,
            level: options.level,
            false_alarm: options.false_alarm,
            least_share,
            least_samples: LEAST_SAMPLES,
            at_most: options.at_most.max(1),
            ..ModeOptions::default()
        };
        Counted {
            divides: modes_of_bins(&bins.edges, &bins.counts, n_effective, &options).valleys,
            n_effective,
        }
    };
    let mut found = search(run.n() as f64);
    for _ in 0..ROUNDS {
        let within = run.n() as f64 / inflation(run, &found);
        if found.divides.is_empty() || within >= found.n_effective {
            break;
        }
        found = search(within);
    }
    found
}

/// Number of samples in the share `least_share` of the time, over `least_share`: a slow sample
/// counts for more time. 1 where there are no slow samples.
fn samples_for_time(run: &Run) -> f64 {
    let typical = run.samples[run.order[run.n() / 2] as usize].time;
    let (mut slow, mut slow_time, mut time) = (0.0, 0.0, 0.0);
    for sample in &run.samples {
        time += sample.seconds;
        if sample.time > 2.0 * typical {
            slow += 1.0;
            slow_time += sample.seconds;
        }
    }
    if slow == 0.0 {
        return 1.0;
    }
    (slow / run.n() as f64 * (time / slow_time)).min(1.0)
}

/// A fine histogram of the times.
struct Bins {
    edges: Vec<f64>,
    counts: Vec<u64>,
}

impl Bins {
    fn from_run(run: &Run) -> Self {
        let n = run.n();
        let at = |i: usize| run.samples[run.order[i] as usize].time;
        let (first, last) = (at(0).ln(), at(n - 1).ln());
        let range = (last - first).max(ROUNDING);
        let width = (typical_difference(run) / FINE)
            .max(range / MOST_BINS)
            .clamp(1e-3 * ROUNDING, range / 8.0);
        let bins = (range / width).ceil() as usize + 1;
        let from = first - 0.5 * width;
        let edges: Vec<f64> = (0..=bins)
            .map(|i| (from + width * i as f64).exp())
            .collect();
        let mut counts = vec![0; bins];
        for time in run.ascending() {
            let bin = ((time.ln() - from) / width) as usize;
            counts[bin.min(bins - 1)] += 1;
        }
        Self { edges, counts }
    }
}

/// The median of the differences of logarithms of neighbours in a burst.
fn typical_difference(run: &Run) -> f64 {
    let differences: Vec<f64> = (run.bursts.iter())
        .flat_map(|burst| run.samples[burst.clone()].windows(2))
        .map(|pair| (pair[1].time / pair[0].time).ln().abs())
        .collect();
    super::relative::median(differences)
}

/// Number of samples equivalent to one independent sample, within the peaks: the largest
/// correlation of samples of a block, over blocks of all sizes. Within each peak ranks are
/// compared, from -1 to 1.
pub(super) fn inflation(run: &Run, found: &Counted) -> f64 {
    let peaks = found.divides.len() + 1;
    let ranks = ranks(run, found);
    let squares: f64 = ranks.iter().map(|r| r.1 * r.1).sum();
    if squares <= 0.0 {
        return 1.0;
    }
    let mut worst = 1.0_f64;
    let mut judge = |blocks: &mut dyn Iterator<Item = std::ops::Range<usize>>| {
        let mut sums = 0.0;
        let mut seen = 0;
        let mut of_peak = vec![0.0; peaks];
        for block in blocks {
            of_peak.fill(0.0);
            for (peak, rank) in &ranks[block] {
                of_peak[*peak] += rank;
            }
            sums += of_peak.iter().map(|s| s * s).sum::<f64>();
            seen += 1;
        }
        if seen >= BLOCKS {
            worst = worst.max(sums / squares);
        }
        seen >= BLOCKS
    };
    let longest = (run.bursts.iter()).map(ExactSizeIterator::len).max();
    let mut length = SHORTEST;
    while length < longest.unwrap_or(0) {
        judge(&mut run.bursts.iter().flat_map(|burst| pieces(burst, length)));
        length *= 2;
    }
    let mut together = 1;
    let of_bursts = |together| {
        (run.bursts.chunks(together))
            .map(|bursts| bursts[0].start..bursts.last().map_or(0, |b| b.end))
    };
    while judge(&mut of_bursts(together)) {
        together *= 2;
    }
    worst
}

fn pieces(
    burst: &std::ops::Range<usize>,
    length: usize,
) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
    let end = burst.end;
    (burst.clone())
        .step_by(length)
        .map(move |from| from..(from + length).min(end))
}

/// Returns peak and rank within it, in the order of the run.
fn ranks(run: &Run, found: &Counted) -> Vec<(usize, f64)> {
    let mut ranks = vec![(0, 0.0); run.n()];
    let mut from = 0;
    for peak in 0..=found.divides.len() {
        let to = match found.divides.get(peak) {
            Some(divide) => {
                let below = |&i: &u32| run.samples[i as usize].time < divide.at;
                run.order.partition_point(below)
            }
            None => run.n(),
        };
        let inside = (to - from) as f64;
        for (position, &i) in run.order[from..to].iter().enumerate() {
            ranks[i as usize] = (peak, (2.0 * position as f64 + 1.0) / inside - 1.0);
        }
        from = to;
    }
    ranks
}
