//! Modes of a distribution: how many peaks are proven, where they lie, and what share each holds.

#[cfg(test)]
mod calibration_tests;
mod cells;
mod of_sample;
mod scan;

use undertick_units::{Estimate, Interval};

use crate::histogram::Distribution;
use crate::proportion::score_interval;
use crate::quantile::binomial_ranks;
use cells::Cells;
use scan::{Rule, best_valley};

/// The nature of the values, which decides between which densities valleys are sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Durations: a mode must be one per nanosecond and one per octave too. So neither outliers
    /// spread evenly over octaves nor outliers spread evenly over time are modes.
    Logarithmic,
    /// Rates and similar values: one density.
    Linear,
}

/// Criteria for a mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModeOptions {
    /// The axis; logarithmic by default.
    pub axis: Axis,
    /// Step of the clock, in the unit of the values; 0 (default) if none is known. A valley is at
    /// least two steps wide.
    pub step: f64,
    /// Level of the intervals; 0.95 by default.
    pub level: f64,
    /// Maximum probability that a distribution with one mode is reported to have more; 0.01 by
    /// default.
    pub false_alarm: f64,
    /// Maximum density of a valley over that of the lower peak; 0.5 by default. Without it a
    /// million values make a mode of every ripple.
    pub depth: f64,
    /// Minimum share of the values in a mode; 0.01 by default.
    pub least_share: f64,
    /// Minimum number of independent values in a mode; 10 by default.
    pub least_samples: f64,
    /// Maximum number of modes; 9 by default. The best proven ones are kept.
    pub at_most: usize,
}

impl Default for ModeOptions {
    fn default() -> Self {
        Self {
            axis: Axis::Logarithmic,
            step: 0.0,
            level: 0.95,
            false_alarm: 0.01,
            depth: 0.5,
            least_share: 0.01,
            least_samples: 10.0,
            at_most: 9,
        }
    }
}

/// One mode: the values between two valleys.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// Median of its values, by order statistics, in their unit.
    pub place: Estimate,
    /// The valley below it, or the smallest value.
    pub lo: f64,
    /// The valley above it, or the largest value.
    pub hi: f64,
    /// Share of the values in it, by the score interval with the effective number of values.
    pub share: Estimate,
}

/// The valley between two modes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Divide {
    /// Where the modes are divided.
    pub at: f64,
    /// Where the valley begins.
    pub lo: f64,
    /// Where it ends.
    pub hi: f64,
    /// Its density over that of the lower of the peaks beside it.
    pub depth: f64,
    /// Maximum probability that a distribution without this valley shows one proven this well
    /// anywhere.
    pub p_value: f64,
}

/// The modes of a distribution, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Modes {
    /// At least one, unless there are no values.
    pub modes: Vec<Mode>,
    /// The valleys between them: one fewer.
    pub valleys: Vec<Divide>,
}

/// Finds the modes of whole numbers (ticks, nanoseconds) in a histogram.
///
/// `n_effective` is the number of independent values to which the sample is equivalent; counts are
/// scaled down to it. A bin wider than a step of the clock is joined to its neighbours until eight
/// steps fit; a narrower one belongs to its step.
///
/// **The test.** A valley is a stretch with a lower density than some window below it and some
/// window above it. Each stretch is tested against the densest windows on either side, of about 10
/// sizes. The statistic is the likelihood ratio of "the valley is less dense than the window" to
/// "as dense". From its logarithm, the logarithms of the numbers of places for such a valley and
/// such a window are subtracted: how often they fit into the part of the sample that is no more
/// than twice as dense as the window. The weaker side counts. The best stretch divides the sample
/// if its evidence is over a limit that was found by simulation of flat, falling and peaked
/// densities (see `docs/book/intervals.md`); both parts are searched again.
///
/// **What a share means.** A share counts the values between two valleys. Where modes overlap each
/// holds part of the other's tail: at 4 standard deviations between equal ones 2.3 % change sides
/// either way. A small mode beside a large one loses or gains more, and the confidence interval
/// does not include this.
#[must_use]
pub fn modes(distribution: &Distribution, n_effective: f64, options: &ModeOptions) -> Modes {
    of_cells(
        Cells::of_distribution(distribution, options.step),
        options.step.max(1.0),
        n_effective,
        options,
    )
}

/// Finds modes as [`modes`] does, from bins: `counts[i]` values from `edges[i]` to `edges[i + 1]`,
/// any finite numbers. Details narrower than a bin cannot be seen.
///
/// # Panics
/// If `edges` is not one longer than `counts`, not ascending or not finite.
#[must_use]
pub fn modes_of_bins(
    edges: &[f64],
    counts: &[u64],
    n_effective: f64,
    options: &ModeOptions,
) -> Modes {
    assert_eq!(edges.len(), counts.len() + 1, "one edge more than counts");
    assert!(
        edges.iter().all(|edge| edge.is_finite()) && edges.windows(2).all(|e| e[0] < e[1]),
        "edges are finite and ascend"
    );
    let narrowest = (edges.windows(2)).fold(f64::INFINITY, |least, e| least.min(e[1] - e[0]));
    of_cells(
        Cells::of_bins(edges, counts, options.step),
        options.step.max(narrowest),
        n_effective,
        options,
    )
}

/// Finds modes in cells; `scale` is where the logarithmic axis passes into a linear one.
fn of_cells(mut cells: Cells, scale: f64, n_effective: f64, options: &ModeOptions) -> Modes {
    if cells.n() <= 0.0 {
        return Modes::default();
    }
    if options.axis == Axis::Logarithmic {
        cells.stretch(scale);
    }
    let divides = divides(&cells.coarse(), n_effective, options);
    let describe = Describe {
        cells: &cells,
        n_effective: n_effective.min(cells.n()),
        level: options.level,
    };
    describe.modes(divides)
}

/// Returns all proven valleys, ascending.
fn divides(cells: &Cells, n_effective: f64, options: &ModeOptions) -> Vec<Divide> {
    let n = n_effective.min(cells.n());
    let least = options.least_samples.max(options.least_share * n);
    let rule = Rule {
        weight: n / cells.n(),
        least,
        depth: options.depth,
        width: 2.0 * options.step,
        limit: limit(options.false_alarm, n / least),
    };
    let search = |part: std::ops::Range<usize>| (part.clone(), best_valley(cells, part, &rule));
    let mut parts = vec![search(0..cells.len())];
    let mut found = Vec::new();
    while found.len() + 1 < options.at_most {
        let best = (0..parts.len())
            .filter_map(|i| Some((i, parts[i].1?)))
            .max_by(|a, b| a.1.evidence.total_cmp(&b.1.evidence));
        let Some((i, valley)) = best else { break };
        let (part, _) = parts.swap_remove(i);
        let at = emptiest(cells, valley.lo, valley.hi);
        let cut = (cells.edges.partition_point(|&edge| edge < at)).clamp(valley.lo, valley.hi);
        parts.push(search(part.start..cut));
        parts.push(search(cut..part.end));
        found.push(Divide {
            at,
            lo: cells.edges[valley.lo],
            hi: cells.edges[valley.hi],
            depth: valley.depth,
            p_value: p_value(valley.evidence, n / least),
        });
    }
    found.sort_by(|a, b| a.at.total_cmp(&b.at));
    found
}

/// Rate at which p falls with each nat of evidence, as a power of e.
const SLOPE: f64 = 0.75;

/// Bounds the probability that the best valley of a density without any has this much evidence:
/// fitted to the upper 1 % of ten densities at 30 to 10 000 values (`calibration`). `places` is how
/// often the smallest mode fits into the sample.
fn p_value(evidence: f64, places: f64) -> f64 {
    (-SLOPE * (evidence - start(places))).exp().min(1.0)
}

/// Returns the evidence that corresponds to a p-value.
fn limit(p_value: f64, places: f64) -> f64 {
    start(places) - p_value.ln() / SLOPE
}

/// Returns the evidence up to which p is 1.
fn start(places: f64) -> f64 {
    1.86 + 1.3 * (places / 30.0).min(1.0).ln()
}

/// Returns the middle of the emptiest third of cells `lo..hi`.
fn emptiest(cells: &Cells, lo: usize, hi: usize) -> f64 {
    let (from, to) = (cells.edges[lo], cells.edges[hi]);
    let third = (to - from) / 3.0;
    let middle = (from + to) / 2.0;
    (0..=16)
        .map(|i| from + third * (0.5 + f64::from(i) / 8.0))
        .map(|x| (x, mass_between(cells, x - third / 2.0, x + third / 2.0)))
        .min_by(|a, b| {
            let from_middle = |x: f64| (x - middle).abs();
            a.1.total_cmp(&b.1)
                .then(from_middle(a.0).total_cmp(&from_middle(b.0)))
        })
        .map_or(middle, |(x, _)| x)
}

fn mass_between(cells: &Cells, from: f64, to: f64) -> f64 {
    cells.below(to) - cells.below(from)
}

/// Turns valleys into modes.
struct Describe<'a> {
    cells: &'a Cells,
    n_effective: f64,
    level: f64,
}

impl Describe<'_> {
    fn modes(&self, mut divides: Vec<Divide>) -> Modes {
        for divide in &mut divides {
            divide.at = self.to_edge(divide.at);
        }
        let last = self.cells.edges[self.cells.len()];
        let first = self.cells.edges[0];
        // Values below each divide; two divides at one edge would leave nothing between them. The
        // ends are not checked: near the largest representable numbers, edges may be equal.
        let (mut before, all) = (0.0, self.cells.n());
        divides.retain(|divide| {
            let below = self.cells.below(divide.at);
            let holds = below > before && below < all;
            before = if holds { below } else { before };
            holds
        });
        let mut modes = Vec::new();
        let (mut lo, mut before) = (first, 0.0);
        for divide in &divides {
            let below = self.cells.below(divide.at);
            modes.push(self.mode((lo, divide.at), (before, below - before)));
            (lo, before) = (divide.at, below);
        }
        modes.push(self.mode((lo, last), (before, all - before)));
        Modes {
            modes,
            valleys: divides,
        }
    }

    /// Moves a divide off a cell that holds values, to its nearer edge.
    fn to_edge(&self, at: f64) -> f64 {
        let (edges, up_to) = (&self.cells.edges, &self.cells.up_to);
        let next = edges
            .partition_point(|&edge| edge < at)
            .clamp(1, self.cells.len());
        let (lo, hi) = (edges[next - 1], edges[next]);
        match (up_to[next] > up_to[next - 1], at - lo < hi - at) {
            (false, _) => at,
            (true, true) => lo,
            (true, false) => hi,
        }
    }

    /// Describes the mode from `lo` to `hi`, with `before` values below it and `inside` values in
    /// it.
    fn mode(&self, (lo, hi): (f64, f64), (before, inside): (f64, f64)) -> Mode {
        let cells = self.cells;
        let weight = self.n_effective / cells.n();
        // Ranks of the independent values, stretched to all values.
        let independent = ((inside * weight).floor() as u64).max(1);
        let stretch = inside / independent as f64;
        let ranks = binomial_ranks(independent, 0.5, self.level);
        let at = |rank: f64| cells.at_rank(before + rank.clamp(1.0, inside));
        let (from, to) = at((inside / 2.0).ceil());
        Mode {
            place: Estimate {
                value: f64::midpoint(from, to),
                interval: Interval {
                    lo: (ranks.lo).map(|r| at((r as f64 * stretch).floor()).0),
                    hi: (ranks.hi).map(|r| at(((r - 1) as f64 * stretch).ceil() + 1.0).1),
                },
                level: self.level,
                unit: "1".into(),
                method: "median of the mode, order statistics".into(),
                n: inside as u64,
                n_effective: inside * weight,
                notes: Vec::new(),
            },
            lo,
            hi,
            share: share(inside, cells.n(), self.n_effective, self.level),
        }
    }
}

/// Share of `seen` values that were `inside` (the score interval), where all are equivalent to
/// `n_effective` independent ones.
pub(crate) fn share(inside: f64, seen: f64, n_effective: f64, level: f64) -> Estimate {
    let p = inside / seen;
    Estimate {
        value: p,
        interval: score_interval(p, n_effective, level),
        level,
        unit: "1".into(),
        method: "share between valleys, score interval".into(),
        n: seen as u64,
        n_effective,
        notes: Vec::new(),
    }
}
