//! A histogram as cells without gaps, on two axes.

use crate::histogram::{Bin, Distribution};

/// Minimum number of clock steps in a cell made of bins wider than a step: one step more or less is
/// then no more than an eighth of the cell.
const STEPS: f64 = 8.0;

/// Approximate maximum number of cells in the search: one cell is then a tenth of the smallest
/// window that it compares.
const MOST: usize = 2000;

/// Values between `edges[i]` and `edges[i + 1]`: `up_to[i + 1] - up_to[i]`.
/// Empty stretches are cells too; the outermost cells are not empty.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cells {
    /// Ascending.
    pub(super) edges: Vec<f64>,
    /// The same on the logarithmic axis; equal to `edges` on a linear one.
    pub(super) stretched: Vec<f64>,
    /// Values below each edge.
    pub(super) up_to: Vec<f64>,
}

/// A cell that is not empty.
#[derive(Clone, Copy, Debug)]
struct Filled {
    lo: f64,
    hi: f64,
    count: u64,
}

impl Cells {
    /// Builds cells from a distribution of whole numbers, read on a clock that moves by `step`.
    pub(super) fn of_distribution(distribution: &Distribution, step: f64) -> Self {
        let bins = distribution.bins();
        let step = step.max(1.0);
        let origin = (bins.iter())
            .filter(|bin| width(bin) <= step)
            .max_by_key(|bin| bin.count)
            .map_or(0.0, Bin::middle);
        let mut filled: Vec<Filled> = Vec::new();
        // How far the cell being filled may reach.
        let mut reach = f64::NEG_INFINITY;
        for bin in bins {
            let (lo, hi) = (bin.lo as f64 - 0.5, bin.hi as f64 + 0.5);
            let fine = width(bin) <= step;
            let on_step = origin + ((bin.middle() - origin) / step).round() * step;
            match filled.last_mut() {
                Some(last) if fine && on_step < last.hi => last.count += bin.count,
                Some(last) if !fine && hi <= reach => {
                    last.hi = hi;
                    last.count += bin.count;
                }
                last => {
                    let ended = last.map_or(f64::NEG_INFINITY, |last| last.hi);
                    let start = if fine { on_step - step / 2.0 } else { lo };
                    let end = if fine { on_step + step / 2.0 } else { hi };
                    filled.push(Filled {
                        lo: ended.max(start),
                        hi: end,
                        count: bin.count,
                    });
                    reach = if fine || step <= 1.0 {
                        f64::NEG_INFINITY
                    } else {
                        lo + (STEPS * step).max(width(bin))
                    };
                }
            }
        }
        Self::of_filled(&filled)
    }

    /// Builds cells from bins; neighbours are joined until they are as wide as a step.
    pub(super) fn of_bins(edges: &[f64], counts: &[u64], step: f64) -> Self {
        let mut filled: Vec<Filled> = Vec::new();
        let mut from = 0;
        for i in 0..counts.len() {
            let (lo, hi) = (edges[from], edges[i + 1]);
            if hi - lo < step * (1.0 - 1e-9) && i + 1 < counts.len() {
                continue;
            }
            filled.push(Filled {
                lo,
                hi,
                count: counts[from..=i].iter().sum(),
            });
            from = i + 1;
        }
        filled.retain(|cell| cell.count > 0);
        Self::of_filled(&filled)
    }

    fn of_filled(filled: &[Filled]) -> Self {
        let mut cells = Self {
            edges: Vec::with_capacity(2 * filled.len() + 1),
            stretched: Vec::new(),
            up_to: Vec::with_capacity(2 * filled.len() + 1),
        };
        let mut sum = 0;
        for cell in filled {
            if cells.edges.last().is_none_or(|&edge| edge < cell.lo) {
                cells.edges.push(cell.lo);
                cells.up_to.push(sum as f64);
            }
            sum += cell.count;
            cells.edges.push(cell.hi);
            cells.up_to.push(sum as f64);
        }
        cells.stretched.clone_from(&cells.edges);
        cells
    }

    /// Sets the second axis: the inverse hyperbolic sine of multiples of `scale`, a logarithm that
    /// passes through zero.
    pub(super) fn stretch(&mut self, scale: f64) {
        self.stretched = self.edges.iter().map(|x| (x / scale).asinh()).collect();
    }

    /// Returns fewer cells of the same values where there are more than the search needs.
    pub(super) fn coarse(&self) -> Self {
        if self.len() <= MOST {
            return self.clone();
        }
        let most = self.n() / MOST as f64;
        let mut coarse = Self {
            edges: vec![self.edges[0]],
            stretched: vec![self.stretched[0]],
            up_to: vec![0.0],
        };
        let mut from = 0.0;
        for i in 1..self.edges.len() {
            // Closed before it would contain too much.
            if i + 1 < self.edges.len() && self.up_to[i + 1] - from <= most {
                continue;
            }
            coarse.edges.push(self.edges[i]);
            coarse.stretched.push(self.stretched[i]);
            coarse.up_to.push(self.up_to[i]);
            from = self.up_to[i];
        }
        coarse
    }

    /// Returns the number of cells.
    pub(super) fn len(&self) -> usize {
        self.edges.len().saturating_sub(1)
    }

    /// Returns the number of values.
    pub(super) fn n(&self) -> f64 {
        self.up_to.last().copied().unwrap_or(0.0)
    }

    /// Returns the number of values below `x`; within a cell it uses the nearer edge.
    pub(super) fn below(&self, x: f64) -> f64 {
        let next = self.edges.partition_point(|&edge| edge < x);
        match next {
            0 => 0.0,
            i if i == self.edges.len() => self.n(),
            i if x - self.edges[i - 1] < self.edges[i] - x => self.up_to[i - 1],
            i => self.up_to[i],
        }
    }

    /// Returns the edges of the cell that contains the value of this rank (the smallest has 1).
    pub(super) fn at_rank(&self, rank: f64) -> (f64, f64) {
        let i = (self.up_to.partition_point(|&sum| sum < rank)).clamp(1, self.len());
        (self.edges[i - 1], self.edges[i])
    }
}

fn width(bin: &Bin) -> f64 {
    bin.hi as f64 - bin.lo as f64 + 1.0
}
