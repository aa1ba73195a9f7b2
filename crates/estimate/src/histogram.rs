//! Histograms of signed ticks: exact up to 2047, three significant digits above.

use serde::{Deserialize, Serialize};

use crate::skewed::Shape;

/// Bins per octave, as a power of two: bins are at most 1/1024 of their value
/// wide, and single integers below 2048.
const BITS: u32 = 10;

/// A histogram over all of `i64`. Negative values are counted, never clamped.
///
/// The layout is that of HdrHistogram with three significant digits (bins of 2^k from 2^(k + 10)
/// on). It is written anew because recording into the library takes 9 ns and is the larger part of
/// the analysis; a test keeps the two equal.
///
/// Memory: 8 KiB per octave that values reached, 16 KiB below 2048.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedHistogram {
    /// Counts of values from 0.
    positive: Vec<u64>,
    /// Counts by magnitude of values below 0.
    negative: Vec<u64>,
}

/// Number of bins whose sum is taken at once in the search for a rank.
const TOGETHER: usize = 64;

/// Returns the bin of a magnitude.
#[inline]
fn index_of(magnitude: u64) -> usize {
    let above = (magnitude | ((2 << BITS) - 1)).ilog2() - BITS;
    ((above as usize) << BITS) + (magnitude >> above) as usize
}

/// Returns the smallest and the largest magnitude of a bin.
fn bounds_of(index: usize) -> (u64, u64) {
    let above = ((index >> BITS) as u32).saturating_sub(1);
    let lo = (index as u64 - (u64::from(above) << BITS)) << above;
    (lo, lo + ((1 << above) - 1))
}

fn add(counts: &mut Vec<u64>, index: usize, n: u64) {
    if counts.len() <= index {
        // Grows by whole octaves, so that a slowly growing maximum seldom moves the array.
        counts.resize(((index >> BITS) + 1) << BITS, 0);
    }
    counts[index] += n;
}

/// Values `lo..=hi` and how many there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Smallest value of the bin.
    pub lo: i64,
    /// Largest value of the bin.
    pub hi: i64,
    /// Number of values in the bin.
    pub count: u64,
}

impl Bin {
    /// Returns the middle of the bin.
    #[must_use]
    pub fn middle(&self) -> f64 {
        (self.lo as f64 + self.hi as f64) / 2.0
    }
}

impl SignedHistogram {
    /// Returns an empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: i64) {
        let index = index_of(value.unsigned_abs());
        match self.positive.get_mut(index) {
            Some(count) if value >= 0 => *count += 1,
            _ => self.record_n(value, 1),
        }
    }

    /// Counts a value `n` times.
    #[cold]
    pub fn record_n(&mut self, value: i64, n: u64) {
        let counts = if value >= 0 {
            &mut self.positive
        } else {
            &mut self.negative
        };
        add(counts, index_of(value.unsigned_abs()), n);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.positive, &other.positive),
            (&mut self.negative, &other.negative),
        ] {
            ours.resize(ours.len().max(theirs.len()), 0);
            ours.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        }
    }

    /// Returns the histogram of the same values plus `delta`; where bins are wider than one value,
    /// exact to the width of a bin.
    #[must_use]
    pub fn shifted(&self, delta: i64) -> Self {
        let mut moved = Self::new();
        for bin in self.bins() {
            let middle = bin.lo + (bin.hi.wrapping_sub(bin.lo)) / 2;
            moved.record_n(middle.saturating_add(delta), bin.count);
        }
        moved
    }

    /// Returns the number of values counted.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.positive.iter().chain(&self.negative).sum()
    }

    /// Returns the bins that are not empty, ascending.
    #[must_use]
    pub fn bins(&self) -> Vec<Bin> {
        let below = self.negative.iter().enumerate().rev().map(|(i, &count)| {
            let (lo, hi) = bounds_of(i);
            Bin {
                lo: negated(hi),
                hi: negated(lo),
                count,
            }
        });
        let above = self.positive.iter().enumerate().map(|(i, &count)| {
            let (lo, hi) = bounds_of(i);
            Bin {
                lo: clamped(lo),
                hi: clamped(hi),
                count,
            }
        });
        below.chain(above).filter(|bin| bin.count > 0).collect()
    }

    /// Returns the largest values of the bins that contain the quantiles `ps` (ascending), in one
    /// pass: for a quantile p, the value of rank p n, rounded up. For an empty histogram they are
    /// 0.
    #[must_use]
    pub fn quantiles<const N: usize>(&self, ps: [f64; N]) -> [i64; N] {
        let n = self.n();
        let ranks = ps.map(|p| ((p * n as f64).ceil() as u64).clamp(1, n.max(1)));
        let mut found = [0; N];
        let mut next = 0;
        let mut passed = 0;
        let below = self.negative.chunks(TOGETHER).enumerate().rev();
        for (chunk, counts) in below {
            let together: u64 = counts.iter().sum();
            if next == N || passed + together < ranks[next] {
                passed += together;
                continue;
            }
            for (i, count) in counts.iter().enumerate().rev() {
                passed += count;
                while next < N && passed >= ranks[next] {
                    found[next] = negated(bounds_of(chunk * TOGETHER + i).0);
                    next += 1;
                }
            }
        }
        for (chunk, counts) in self.positive.chunks(TOGETHER).enumerate() {
            let together: u64 = counts.iter().sum();
            if next == N || passed + together < ranks[next] {
                passed += together;
                continue;
            }
            for (i, count) in counts.iter().enumerate() {
                passed += count;
                while next < N && passed >= ranks[next] {
                    found[next] = clamped(bounds_of(chunk * TOGETHER + i).1);
                    next += 1;
                }
            }
        }
        found
    }

    /// Returns the histogram as a distribution that answers by rank.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        Distribution::new(self.bins())
    }
}

fn negated(magnitude: u64) -> i64 {
    0_i64.checked_sub_unsigned(magnitude).unwrap_or(i64::MIN)
}

fn clamped(magnitude: u64) -> i64 {
    i64::try_from(magnitude).unwrap_or(i64::MAX)
}

/// Bins with running counts.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    bins: Vec<Bin>,
    /// Values up to and including each bin.
    up_to: Vec<u64>,
}

impl Distribution {
    /// Builds a distribution from ascending bins.
    #[must_use]
    pub fn new(bins: Vec<Bin>) -> Self {
        let up_to = bins
            .iter()
            .scan(0_u64, |sum, bin| {
                *sum += bin.count;
                Some(*sum)
            })
            .collect();
        Self { bins, up_to }
    }

    /// Returns the number of values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.up_to.last().copied().unwrap_or(0)
    }

    /// Returns the bins, ascending.
    #[must_use]
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Returns the bin that contains the value of this rank; the smallest value has rank 1. `None`
    /// outside `1..=n`.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<Bin> {
        if rank == 0 {
            return None;
        }
        let i = self.up_to.partition_point(|&sum| sum < rank);
        self.bins.get(i).copied()
    }

    /// Computes skewness and excess from the bins.
    pub(crate) fn shape(&self) -> Shape {
        Shape::from_weighted(self.bins.iter().map(|b| (b.middle(), b.count as f64)))
    }

    /// Returns bins for drawing, aligned to the steps of the clock so that no bin contains more
    /// steps than its neighbours: eight per octave, single steps below eight. `step` is the clock's
    /// (at least 1), `origin` a value that lies on a step.
    #[must_use]
    pub fn drawn(&self, step: f64, origin: f64) -> Drawn {
        let step = step.max(1.0);
        let mut counts: Vec<(i32, u64)> = Vec::new();
        for bin in &self.bins {
            let steps = ((bin.middle() - origin) / step).round();
            let cell = cell_of(steps);
            match counts.last_mut() {
                Some((last, count)) if *last == cell => *count += bin.count,
                _ => counts.push((cell, bin.count)),
            }
        }
        let (Some(&(first, _)), Some(&(last, _))) = (counts.first(), counts.last()) else {
            return Drawn::default();
        };
        let mut drawn = Drawn {
            edges: (first..=last + 1)
                .map(|cell| origin + (start_of(cell) - 0.5) * step)
                .collect(),
            counts: vec![0; (last - first + 1) as usize],
        };
        for (cell, count) in counts {
            drawn.counts[(cell - first) as usize] += count;
        }
        drawn
    }
}

/// Bins for drawing: `counts[i]` values in `edges[i]..edges[i + 1]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    /// Ascending, one more than `counts`, in ticks.
    pub edges: Vec<f64>,
    /// Values per bin, zeros included.
    pub counts: Vec<u64>,
}

/// Bins per octave in drawings.
const PER_OCTAVE: i32 = 8;

/// The cell of a whole number of steps: itself up to 8, then eight an octave; an odd function of
/// its argument.
fn cell_of(steps: f64) -> i32 {
    if steps < 0.0 {
        return -cell_of(-steps);
    }
    if steps < f64::from(PER_OCTAVE) {
        return steps as i32;
    }
    let octave = (steps / f64::from(PER_OCTAVE)).log2().floor();
    let within = (steps / octave.exp2()) as i32 - PER_OCTAVE;
    PER_OCTAVE * (octave as i32 + 1) + within
}

/// Returns the smallest number of steps in a cell.
fn start_of(cell: i32) -> f64 {
    if cell < 0 {
        // The cells below zero mirror those above.
        return 1.0 - start_of(1 - cell);
    }
    if cell < PER_OCTAVE {
        return f64::from(cell);
    }
    let octave = cell / PER_OCTAVE - 1;
    f64::from(PER_OCTAVE + cell % PER_OCTAVE) * f64::from(octave).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram_of(values: &[i64]) -> SignedHistogram {
        let mut h = SignedHistogram::new();
        values.iter().for_each(|&v| h.record(v));
        h
    }

    #[test]
    fn small_values_are_exact_and_negative_ones_kept() {
        let d = histogram_of(&[2047, -2, 5, 0, -2, -2047]).distribution();
        let at = |rank| d.at_rank(rank).map(|b| (b.lo, b.hi));
        assert_eq!(at(0), None);
        assert_eq!(at(1), Some((-2047, -2047)));
        assert_eq!(at(2), Some((-2, -2)));
        assert_eq!(at(3), Some((-2, -2)));
        assert_eq!(at(4), Some((0, 0)));
        assert_eq!(at(5), Some((5, 5)));
        assert_eq!(at(6), Some((2047, 2047)));
        assert_eq!(at(7), None);
        assert_eq!((d.n(), d.bins().len(), d.bins()[1].count), (6, 5, 2));
    }

    #[test]
    fn large_values_lie_in_their_bin_within_a_thousandth() {
        for v in [2049_i64, 123_457, -1_000_003, 1 << 40, i64::MAX, i64::MIN] {
            let b = histogram_of(&[v]).bins()[0];
            assert!(b.lo <= v && v <= b.hi, "{v} not in {b:?}");
            let width = b.hi as f64 - b.lo as f64;
            assert!(width <= (v as f64).abs() / 1000.0, "{v}: {b:?}");
        }
    }

    #[test]
    fn merge_and_shift() {
        let mut a = histogram_of(&[1, 2]);
        a.merge(&histogram_of(&[-5, 2]));
        assert_eq!(a.n(), 4);
        let bins = a.shifted(-2).bins();
        let expect = |lo, count| Bin { lo, hi: lo, count };
        assert_eq!(bins, [expect(-7, 1), expect(-1, 1), expect(0, 2)]);
    }

    /// The single pass finds the same as the ordered bins.
    #[test]
    fn quantiles_are_those_of_the_bins() {
        let ps = [0.0, 0.001, 0.25, 0.5, 0.9, 0.999, 1.0];
        let mut mix = 1_u64;
        for n in [0, 1, 2, 7, 1000, 20_000] {
            for (shift, off) in [(60, 0), (50, 4000), (40, 1 << 20), (30, 1 << 33)] {
                let mut h = SignedHistogram::new();
                for _ in 0..n {
                    mix = mix
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(99_991);
                    h.record((mix >> shift) as i64 - off);
                }
                let ordered = h.distribution();
                let expected = ps.map(|p| {
                    let rank = (p * ordered.n() as f64).ceil() as u64;
                    ordered.at_rank(rank.max(1)).map_or(0, |bin| bin.hi)
                });
                assert_eq!(h.quantiles(ps), expected, "{n} values, {shift}");
            }
        }
    }

    #[test]
    fn cells_tile_the_line() {
        for cell in -60..60 {
            let (lo, next) = (start_of(cell), start_of(cell + 1));
            assert!(lo < next, "{cell}");
            for steps in [lo, next - 1.0] {
                assert_eq!(cell_of(steps), cell, "{steps} steps");
            }
        }
    }

    /// Steps of 26 from 13: readings 13, 39, 65 (two) and -13.
    #[test]
    fn drawing_puts_every_step_in_the_middle_of_its_bin() {
        let drawn = histogram_of(&[13, 39, 65, 65, -13])
            .distribution()
            .drawn(26.0, 13.0);
        assert_eq!(drawn.edges, [-26.0, 0.0, 26.0, 52.0, 78.0]);
        assert_eq!(drawn.counts, [1, 1, 1, 2]);
        assert_eq!(
            SignedHistogram::new()
                .distribution()
                .drawn(1.0, 0.0)
                .edges
                .len(),
            0
        );
    }

    /// 0 and 1 with counts 3 and 1: mean 1/4, m2 3/16, m3 3/32.
    #[test]
    fn skewness_by_hand() {
        let d = histogram_of(&[0, 0, 0, 1]).distribution();
        let expected = (3.0 / 32.0) / (3.0_f64 / 16.0).powf(1.5);
        assert!((d.shape().skewness - expected).abs() < 1e-12);
        assert_eq!(
            histogram_of(&[4, 4]).distribution().shape(),
            Shape::default()
        );
    }

    /// Another implementation with the same layout: every bin of 60 000 magnitudes spread over all
    /// octaves.
    #[test]
    fn bins_are_those_of_hdrhistogram() {
        let mut theirs = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        theirs.auto(true);
        let mut ours = SignedHistogram::new();
        for i in 0..60_000_u64 {
            let v = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (i % 63)) >> 1;
            theirs.record(v).unwrap();
            ours.record(v as i64);
        }
        let theirs: Vec<(u64, u64, u64)> = (theirs.iter_recorded())
            .map(|step| {
                let v = step.value_iterated_to();
                (
                    theirs.lowest_equivalent(v),
                    theirs.highest_equivalent(v),
                    step.count_at_value(),
                )
            })
            .collect();
        let ours: Vec<(u64, u64, u64)> = (ours.bins().iter())
            .map(|b| (b.lo as u64, b.hi as u64, b.count))
            .collect();
        assert_eq!(ours, theirs);
    }
}
