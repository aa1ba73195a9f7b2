//! The search for the best proven valley in a stretch of cells.

use std::ops::Range;

use super::cells::Cells;

/// Requirements for a valley.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Number of independent values that one value counts for, up to 1.
    pub(super) weight: f64,
    /// Minimum number of independent values in a mode.
    pub(super) least: f64,
    /// Maximum density of a valley, as a share of that of the peak beside it.
    pub(super) depth: f64,
    /// Minimum width of a valley.
    pub(super) width: f64,
    /// Evidence that a valley must exceed.
    pub(super) limit: f64,
}

/// A valley: cells `lo..hi`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Valley {
    pub(super) lo: usize,
    pub(super) hi: usize,
    /// Evidence against "no lower than one of its sides", nats.
    pub(super) evidence: f64,
    /// Its density over that of the lower peak.
    pub(super) depth: f64,
}

/// Each window holds this many times the values of the next smaller one.
const GROWTH: f64 = 1.5;

/// A window and the mass in it.
#[derive(Clone, Copy, Debug)]
struct Window {
    mass: f64,
    width: f64,
}

const NOTHING: Window = Window {
    mass: 0.0,
    width: 1.0,
};

impl Window {
    fn density(&self) -> f64 {
        self.mass / self.width
    }

    fn denser(self, other: Self) -> Self {
        match self.density() >= other.density() {
            true => self,
            false => other,
        }
    }
}

/// The densest windows that end at or before each edge, or begin at or after it, for one axis and
/// one minimum mass.
struct Densest {
    before: Vec<Window>,
    after: Vec<Window>,
}

/// The number of values that lie where the density does not exceed a given one.
struct Thin {
    /// Ascending.
    densities: Vec<f64>,
    /// Number of values in places up to each density.
    values: Vec<f64>,
}

impl Thin {
    /// The density of a cell is that of the window of `least` values that ends with it.
    fn new(axis: &[f64], up_to: &[f64], least: f64) -> Self {
        let mut cells: Vec<(f64, f64)> = Vec::with_capacity(axis.len());
        let mut lo = 0;
        for hi in 1..axis.len() {
            while up_to[hi] - up_to[lo + 1] >= least {
                lo += 1;
            }
            let density = (up_to[hi] - up_to[lo]) / (axis[hi] - axis[lo]);
            cells.push((density, up_to[hi] - up_to[hi - 1]));
        }
        cells.sort_by(|a, b| a.0.total_cmp(&b.0));
        let values = (cells.iter())
            .scan(0.0, |sum, cell| {
                *sum += cell.1;
                Some(*sum)
            })
            .collect();
        Self {
            densities: cells.iter().map(|cell| cell.0).collect(),
            values,
        }
    }

    /// Returns the number of values where it is no more than twice as dense as `density`.
    fn places(&self, density: f64) -> f64 {
        let cells = self.densities.partition_point(|&d| d <= 2.0 * density);
        match cells {
            0 => 0.0,
            _ => self.values[cells - 1],
        }
    }
}

impl Densest {
    fn new(axis: &[f64], up_to: &[f64], least: f64) -> Self {
        let edges = axis.len();
        let mut before = vec![NOTHING; edges];
        let mut after = vec![NOTHING; edges];
        let mut lo = 0;
        for hi in 1..edges {
            before[hi] = before[hi - 1];
            if up_to[hi] - up_to[0] < least {
                continue;
            }
            while up_to[hi] - up_to[lo + 1] >= least {
                lo += 1;
            }
            let window = Window {
                mass: up_to[hi] - up_to[lo],
                width: axis[hi] - axis[lo],
            };
            before[hi] = window.denser(before[hi]);
            after[lo] = window.denser(after[lo]);
        }
        for lo in (0..edges - 1).rev() {
            after[lo] = after[lo].denser(after[lo + 1]);
        }
        Self { before, after }
    }
}

/// Returns the best proven valley between cells of `part`; `None` if no stretch of cells meets the
/// rule.
pub(super) fn best_valley(cells: &Cells, part: Range<usize>, rule: &Rule) -> Option<Valley> {
    Search::new(cells, part, rule).best()
}

struct Search<'a> {
    edges: &'a [f64],
    axes: [&'a [f64]; 2],
    /// Independent values below each edge.
    up_to: Vec<f64>,
    /// The densest windows, by mass, then by axis.
    densest: Vec<[Densest; 2]>,
    thin: [Thin; 2],
    first: usize,
    rule: &'a Rule,
}

impl<'a> Search<'a> {
    fn new(cells: &'a Cells, part: Range<usize>, rule: &'a Rule) -> Self {
        let of = |all: &'a [f64]| &all[part.start..=part.end];
        let axes = [of(&cells.edges), of(&cells.stretched)];
        let up_to: Vec<f64> = (of(&cells.up_to).iter())
            .map(|&sum| sum * rule.weight)
            .collect();
        let all = up_to[up_to.len() - 1] - up_to[0];
        let thin = axes.map(|axis| Thin::new(axis, &up_to, rule.least));
        let mut densest = Vec::new();
        let mut least = rule.least;
        while least <= all {
            densest.push(axes.map(|axis| Densest::new(axis, &up_to, least)));
            least *= GROWTH;
        }
        Self {
            edges: axes[0],
            axes,
            up_to,
            densest,
            thin,
            first: part.start,
            rule,
        }
    }

    fn best(&self) -> Option<Valley> {
        let cells = self.edges.len() - 1;
        let all = self.up_to[cells] - self.up_to[0];
        let mut best: Option<Valley> = None;
        for lo in 1..cells {
            if self.up_to[lo] - self.up_to[0] < self.rule.least {
                continue;
            }
            let mut length = 1;
            while lo + length < cells {
                let hi = lo + length;
                length += (length / 3).max(1);
                if all - self.up_to[hi] + self.up_to[0] < self.rule.least {
                    break;
                }
                if self.edges[hi] - self.edges[lo] < self.rule.width {
                    continue;
                }
                let beat = best.map_or(self.rule.limit, |best| best.evidence);
                if let Some((evidence, depth)) = self.evidence(lo, hi, beat) {
                    best = Some(Valley {
                        lo: self.first + lo,
                        hi: self.first + hi,
                        evidence,
                        depth,
                    });
                }
            }
        }
        best
    }

    /// Returns evidence and depth of the valley between two edges; `None` where it is not deep
    /// enough, or its evidence does not exceed `beat`.
    fn evidence(&self, lo: usize, hi: usize, beat: f64) -> Option<(f64, f64)> {
        let smallest = self.densest.first()?;
        let mass = self.up_to[hi] - self.up_to[lo];
        let valley = [0, 1].map(|axis| Window {
            mass,
            width: self.axes[axis][hi] - self.axes[axis][lo],
        });
        let mut depth = 0.0_f64;
        for axis in 0..2 {
            for peak in [smallest[axis].before[lo], smallest[axis].after[hi]] {
                if peak.mass <= 0.0 {
                    return None;
                }
                depth = depth.max(valley[axis].density() / peak.density());
                if depth > self.rule.depth {
                    return None;
                }
            }
        }
        let mut weakest = f64::INFINITY;
        for axis in 0..2 {
            for before in [true, false] {
                let strongest = (self.densest.iter())
                    .map(|windows| match before {
                        true => windows[axis].before[lo],
                        false => windows[axis].after[hi],
                    })
                    .fold(beat, |strongest, peak| {
                        self.stronger(strongest, peak, valley[axis], axis)
                    });
                weakest = weakest.min(strongest);
                if weakest <= beat {
                    return None;
                }
            }
        }
        Some((weakest, depth))
    }

    /// Returns the larger of `than` and the evidence of a peak: the logarithm of the likelihood
    /// ratio of "the valley is less dense than the peak" to "as dense", less the cost of choosing
    /// among many similar stretches.
    fn stronger(&self, than: f64, peak: Window, valley: Window, axis: usize) -> f64 {
        // Windows are cut at values: one of these is the window's edge.
        let (a, v) = (peak.mass - 1.0, valley.mass);
        let deep = valley.density() <= self.rule.depth * peak.density();
        if a <= 0.0 || !deep || v * peak.width >= a * valley.width {
            return than;
        }
        let share = valley.width / (peak.width + valley.width);
        let expected = [(a + v) * (1.0 - share), (a + v) * share];
        let part = |x: f64, expected: f64| match x > 0.0 {
            true => x * (x / expected).ln(),
            false => 0.0,
        };
        let ratio = part(a, expected[0]) + part(v, expected[1]);
        if ratio <= than {
            return than;
        }
        let places = self.thin[axis].places(peak.density());
        let chosen: f64 = expected.iter().map(|e| (places / e).ln().max(0.0)).sum();
        than.max(ratio - chosen)
    }
}
