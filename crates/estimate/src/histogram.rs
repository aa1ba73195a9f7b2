//! Histograms of signed ticks: exact for small values, a few significant digits for others.

use serde::{Deserialize, Serialize};

use crate::skewed::Shape;

/// A histogram over all of `i64`. Negative values are counted, never clamped. An octave has 2^`BITS`
/// bins: these are at most 1/2^`BITS` of their value wide, and single integers below 2^(`BITS` + 1).
///
/// The layout is that of HdrHistogram, with 10 bits that for three significant digits (bins of 2^k
/// from 2^(k + 10) on). It is written anew because recording into the library takes 9 ns and is the larger part of
/// the analysis; a test keeps the two equal.
///
/// Memory with 10 bits: 8 KiB per octave that values reached, 16 KiB below 2048.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedHistogram<const BITS: u32 = 10> {
    /// Counts of values from 0.
    positive: Vec<u64>,
    /// Counts by magnitude of values below 0.
    negative: Vec<u64>,
}

/// Number of bins whose sum is taken at once in the search for a rank.
const TOGETHER: usize = 64;

/// Returns the bin of a magnitude.
#[inline]
fn index_of<const BITS: u32>(magnitude: u64) -> usize {
    let above = (magnitude | ((2 << BITS) - 1)).ilog2() - BITS;
    ((above as usize) << BITS) + (magnitude >> above) as usize
}

/// Returns the smallest and the largest magnitude of a bin.
fn bounds_of<const BITS: u32>(index: usize) -> (u64, u64) {
    let above = ((index >> BITS) as u32).saturating_sub(1);
    let lo = (index as u64 - (u64::from(above) << BITS)) << above;
    (lo, lo + ((1 << above) - 1))
}

fn add<const BITS: u32>(counts: &mut Vec<u64>, index: usize, n: u64) {
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
    /// Returns an empty histogram of three significant digits; any other is made by `default`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<const BITS: u32> SignedHistogram<BITS> {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: i64) {
        let index = index_of::<BITS>(value.unsigned_abs());
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
        add::<BITS>(counts, index_of::<BITS>(value.unsigned_abs()), n);
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
        let mut moved = Self::default();
        for bin in self.bins() {
            let middle = bin.lo + (bin.hi.wrapping_sub(bin.lo)) / 2;
            moved.record_n(middle.saturating_add(delta), bin.count);
        }
        moved
    }

    /// Returns the histogram of the same values in wider bins.
    #[must_use]
    pub fn coarser<const FEWER: u32>(&self) -> SignedHistogram<FEWER> {
        const { assert!(FEWER <= BITS) };
        let mut coarser = SignedHistogram::default();
        for bin in self.bins() {
            coarser.record_n(bin.lo, bin.count);
        }
        coarser
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
            let (lo, hi) = bounds_of::<BITS>(i);
            Bin {
                lo: negated(hi),
                hi: negated(lo),
                count,
            }
        });
        let above = self.positive.iter().enumerate().map(|(i, &count)| {
            let (lo, hi) = bounds_of::<BITS>(i);
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
                    found[next] = negated(bounds_of::<BITS>(chunk * TOGETHER + i).0);
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
                    found[next] = clamped(bounds_of::<BITS>(chunk * TOGETHER + i).1);
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
mod tests;
