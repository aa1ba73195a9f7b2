//! The usual distribution of a quantity in a fleet.

use super::FEWEST;
use crate::beta;
use crate::compare_estimates::two_sided;

/// One machine's figure for a quantity, on the scale on which machines are compared (mostly the
/// logarithm).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Standard error of the figure.
    pub error: f64,
}

/// The distribution of a quantity over the machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peers {
    /// Median of the machines.
    pub centre: f64,
    /// Standard deviation between machines, from those in the middle, with their own errors
    /// subtracted.
    pub scatter: f64,
    /// Degrees of the t distribution by which machines are judged: few for heavy tails.
    pub degrees: f64,
    /// Factor by which the outer machines lie farther out than `scatter` and `degrees` imply; 1 or
    /// more.
    pub stretch: f64,
    /// Number of machines.
    pub n: usize,
}

/// The median of the deviations of a normal sample, in standard deviations.
const MIDDLE: f64 = 0.674_49;
/// Standard error of the logarithm of outer over middle deviation for n normal machines, times the
/// root of n: 1.33 where outer is the 95th of a hundred, 1.06 where it is the 80th.
const TAIL_ERROR: f64 = 1.33;
/// Degrees of freedom, per machine, of a scatter taken from the median deviation: its efficiency is
/// 0.37.
const EFFICIENCY: f64 = 0.37;
/// Heaviest tails assumed, in degrees; where machines lie farther out than these imply, the scale
/// is stretched.
const LEAST_DEGREES: f64 = 1.0;
/// Lightest tails assumed, in degrees: the middle of a fleet does not show what its farthest
/// machines do, and no fleet is normal that far out. With this limit, fleets of 1000, 40 and 12
/// machines that are mixtures of normal, t4, t8 and skewed ones keep to the false discoveries that
/// are asked for (tests/fleet.rs); with 200 they do not.
const MOST_DEGREES: f64 = 16.0;

/// Quantile at which the outer machines are examined: farther out with more machines, so that
/// outliers do not make the tails heavy by which they are judged.
const fn outer(n: usize) -> f64 {
    match n {
        100.. => 0.95,
        30.. => 0.9,
        _ => 0.8,
    }
}

impl Peers {
    /// Returns how far out a figure lies, in standard deviations of machine and fleet.
    #[must_use]
    pub fn deviation(&self, figure: Figure) -> f64 {
        let unsure = 1.0 + std::f64::consts::FRAC_PI_2 / self.n as f64;
        let spread = (unsure * self.scatter * self.scatter + figure.error * figure.error).sqrt();
        let apart = figure.value - self.centre;
        if apart == 0.0 {
            return 0.0;
        }
        apart / (spread * self.stretch)
    }

    /// Returns the probability that a machine of this fleet lies this far out.
    #[must_use]
    pub fn p(&self, figure: Figure) -> f64 {
        two_sided(self.deviation(figure), self.degrees)
    }
}

/// Returns what is usual for each quantity; differences below `floor` are insignificant. `None` for
/// a quantity that fewer than [`FEWEST`] machines have.
#[must_use]
pub fn peers(columns: &[(Vec<Option<Figure>>, f64)]) -> Vec<Option<Peers>> {
    let middles: Vec<Option<Middle>> = (columns.iter())
        .map(|(figures, floor)| Middle::from_figures(figures, *floor))
        .collect();
    let tails = Tails::from_middles(middles.iter().flatten());
    (middles.into_iter())
        .map(|middle| Some(middle?.with(tails)))
        .collect()
}

/// A quantity described by its middle machines, and by how far out the outer ones lie.
struct Middle {
    centre: f64,
    scatter: f64,
    n: usize,
    /// Middle and outer deviation, in standard deviations.
    middle: f64,
    outer: f64,
}

impl Middle {
    fn from_figures(figures: &[Option<Figure>], floor: f64) -> Option<Self> {
        let figures: Vec<Figure> = figures.iter().copied().flatten().collect();
        let n = figures.len();
        if n < FEWEST {
            return None;
        }
        let centre = quantile(figures.iter().map(|f| f.value), 0.5);
        let all = quantile(figures.iter().map(|f| (f.value - centre).abs()), 0.5) / MIDDLE;
        let own = quantile(figures.iter().map(|f| f.error * f.error), 0.5);
        let scatter = (all * all - own).max(floor * floor).sqrt();
        let mut found = Peers {
            centre,
            scatter,
            degrees: MOST_DEGREES,
            stretch: 1.0,
            n,
        };
        if !(scatter.is_finite() && scatter > 0.0) {
            // All figures are equal, and nothing says what difference matters: any other figure
            // differs.
            found.scatter = f64::MIN_POSITIVE;
        }
        let deviations = || figures.iter().map(|f| found.deviation(*f).abs());
        Some(Self {
            centre,
            scatter: found.scatter,
            n,
            // Machines that agree to within the floor say nothing about the scale.
            middle: quantile(deviations(), 0.5).max(MIDDLE),
            outer: quantile(deviations(), outer(n)),
        })
    }

    /// The logarithm of outer over middle deviation.
    fn tail(&self) -> f64 {
        (self.outer / self.middle).max(f64::MIN_POSITIVE).ln()
    }

    /// Returns how far the tail of a t distribution lies, examined in the same way as this one.
    fn tail_of(&self, degrees: f64) -> f64 {
        tail_of(degrees, outer(self.n))
    }

    fn with(self, tails: Tails) -> Peers {
        let tail = tails.drawn(&self);
        let degrees = degrees_of(tail, outer(self.n));
        // Covers both ranges: neither middle nor outer machines lie farther out than stated.
        let by_middle = self.middle / upper(degrees, 0.5);
        let by_outer = self.outer / upper(degrees, outer(self.n));
        let few = EFFICIENCY * (self.n as f64 - 1.0);
        Peers {
            centre: self.centre,
            scatter: self.scatter,
            degrees: 1.0 / (1.0 / degrees + 1.0 / few),
            stretch: by_middle.max(by_outer).max(1.0),
            n: self.n,
        }
    }
}

/// The tails of all quantities together, as tails beyond those of the normal distribution.
#[derive(Clone, Copy)]
struct Tails {
    pooled: f64,
    /// Variance between quantities.
    between: f64,
    /// Number of quantities.
    n: f64,
}

impl Tails {
    fn from_middles<'a>(all: impl Iterator<Item = &'a Middle>) -> Self {
        let (mut excess, mut own) = (Vec::new(), Vec::new());
        for middle in all {
            excess.push(middle.tail() - middle.tail_of(f64::INFINITY));
            own.push(TAIL_ERROR * TAIL_ERROR / middle.n as f64);
        }
        if excess.is_empty() {
            return Self {
                pooled: 0.0,
                between: 0.0,
                n: 1.0,
            };
        }
        let pooled = quantile(excess.iter().copied(), 0.5);
        let scatter = quantile(excess.iter().map(|e| (e - pooled).abs()), 0.5) / MIDDLE;
        Self {
            pooled,
            between: (scatter * scatter - quantile(own.iter().copied(), 0.5)).max(0.0),
            n: excess.len() as f64,
        }
    }

    /// A quantity's tail, shrunk towards that of all quantities and made a standard error heavier.
    fn drawn(self, of: &Middle) -> f64 {
        let normal = of.tail_of(f64::INFINITY);
        let own = TAIL_ERROR * TAIL_ERROR / of.n as f64;
        let weight = self.between / (self.between + own);
        let drawn = self.pooled + weight * (of.tail() - normal - self.pooled);
        let unsure = (weight * own + (1.0 - weight) * own / self.n).sqrt();
        normal + drawn + unsure
    }
}

/// The logarithm of a t distribution's outer over its middle deviation.
fn tail_of(degrees: f64, outer: f64) -> f64 {
    (upper(degrees, outer) / upper(degrees, 0.5)).ln()
}

/// Returns the deviation that the share `p` of deviations lies below.
fn upper(degrees: f64, p: f64) -> f64 {
    let degrees = degrees.min(1e6);
    beta::student_quantile(degrees, 0.5 + p / 2.0)
}

/// Returns the degrees that have this tail, by bisection.
fn degrees_of(tail: f64, outer: f64) -> f64 {
    const HALVINGS: usize = 40;
    // The search runs on the inverse of the degrees, which is large for heavy tails.
    let (mut light, mut heavy) = (1.0 / MOST_DEGREES, 1.0 / LEAST_DEGREES);
    if tail <= tail_of(1.0 / light, outer) {
        return MOST_DEGREES;
    }
    if tail >= tail_of(1.0 / heavy, outer) {
        return LEAST_DEGREES;
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(light, heavy);
        if tail_of(1.0 / middle, outer) < tail {
            light = middle;
        } else {
            heavy = middle;
        }
    }
    1.0 / heavy
}

/// Quantile interpolated between neighbours by their distance; NaN for no values.
pub(super) fn quantile(values: impl Iterator<Item = f64>, p: f64) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = p * last as f64;
    let (lo, share) = (at.floor() as usize, at.fract());
    let (a, b) = (sorted[lo], sorted[(lo + 1).min(last)]);
    if share == 0.0 { a } else { a + (b - a) * share }
}

#[cfg(test)]
mod tests;
