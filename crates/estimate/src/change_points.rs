//! Where in a series the mean changed, and by how much.
//!
//! **Method.** The statistic is the largest reduction of the sum of squares by a step at any place
//! (the likelihood ratio of one step in normal noise). Its distribution without a step comes from
//! permutations of the values, so it is exact whatever their distribution is, as long as they are
//! independent. Where a step is found, both sides are searched in the same way (binary
//! segmentation); at the end, each step is placed again between its neighbours.
//!
//! Values may come from several groups (machines) of different means. The means of the groups are
//! taken out of the step and of the values alike (a linear model), and permutations stay within
//! groups. A step that is at the same place as a change of group cannot be told from it, and is not
//! found.
//!
//! **Intervals.** The place: all places whose sum of squares exceeds the smallest by less than a
//! quantile of the likelihood ratio's distribution, `(1 - exp(-x / 2))^2` for a small step (Hansen
//! 2000). The size: Student's t at the place found.

use std::collections::HashMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::long_run::{student, student_beyond};

/// A value of a series, and the group whose mean it shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grouped {
    /// Number of the group.
    pub group: usize,
    /// The value.
    pub value: f64,
}

/// What is called a change.
#[derive(Clone, Copy, Debug)]
pub struct ChangeOptions {
    /// Level of the intervals.
    pub level: f64,
    /// Chance of finding a change where there is none, for each stretch that is searched.
    pub alpha: f64,
    /// Smallest number of values before a change, and after it.
    pub fewest: usize,
    /// Seed of the permutations: the same seed gives the same answer.
    pub seed: u64,
}

impl Default for ChangeOptions {
    fn default() -> Self {
        Self {
            level: 0.95,
            alpha: 0.001,
            fewest: 3,
            seed: 1,
        }
    }
}

/// A change of the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after it.
    pub at: usize,
    /// First and last index that it may be at.
    pub within: [usize; 2],
    /// The mean after it less the mean before it.
    pub difference: f64,
    /// Bounds of the difference.
    pub interval: [f64; 2],
    /// Chance of so clear a step without a change.
    pub p: f64,
}

/// The last values of a series, compared with those before them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Newest {
    /// Their mean less the mean of those before.
    pub difference: f64,
    /// Bounds of the difference.
    pub interval: [f64; 2],
    /// Chance of a mean that is so much higher if the true one is higher by the given amount.
    pub p_above: f64,
}

/// Permutations per unit of `1 / alpha`: enough to know a chance of alpha within a fifth.
const PERMUTATIONS: f64 = 25.0;
/// A step of a smaller square is at the same place as a change of group, but for rounding.
const LEAST_SQUARE: f64 = 1e-9;
/// Most passes that place the changes again.
const PASSES: usize = 5;

/// Finds the changes of a series, in order.
///
/// ```
/// use undertick_estimate::{ChangeOptions, Grouped, change_points};
///
/// let wobble = [0.1, -0.2, 0.0, 0.2, -0.1, 0.1, 0.0, -0.1];
/// let values: Vec<Grouped> = (0..24)
///     .map(|i| Grouped { group: 0, value: wobble[i % 8] + if i < 10 { 5.0 } else { 6.0 } })
///     .collect();
/// let found = change_points(&values, &ChangeOptions::default());
/// assert_eq!(found.len(), 1);
/// assert_eq!(found[0].at, 10);
/// assert!(found[0].interval[0] < 1.0 && 1.0 < found[0].interval[1]);
/// ```
#[must_use]
pub fn change_points(values: &[Grouped], options: &ChangeOptions) -> Vec<ChangePoint> {
    let mut search = Search {
        values,
        options,
        known: HashMap::new(),
    };
    let mut places = Vec::new();
    let mut stretches = vec![(0, values.len())];
    while let Some((from, until)) = stretches.pop() {
        if let Some((at, _)) = search.tested(from, until) {
            places.push(at);
            stretches.extend([(from, at), (at, until)]);
        }
    }
    places.sort_unstable();
    search.place_again(&mut places);
    let ends = |i: usize| {
        let before = i.checked_sub(1).map_or(0, |before| places[before]);
        (before, places.get(i + 1).copied().unwrap_or(values.len()))
    };
    (0..places.len())
        .filter_map(|i| {
            let (from, until) = ends(i);
            let (_, p) = search.tested(from, until)?;
            change(&values[from..until], places[i] - from, p, options).map(|mut change| {
                change.at += from;
                change.within = change.within.map(|at| at + from);
                change
            })
        })
        .collect()
}

/// The stretches that were searched: permutations take time, and the answer is the same.
struct Search<'a> {
    values: &'a [Grouped],
    options: &'a ChangeOptions,
    known: HashMap<(usize, usize), Option<(usize, f64)>>,
}

impl Search<'_> {
    /// The best place of a step in a stretch and its chance, if that is at most alpha.
    fn tested(&mut self, from: usize, until: usize) -> Option<(usize, f64)> {
        let find = || {
            let (at, p) = tested(&self.values[from..until], self.options)?;
            Some((from + at, p))
        };
        *self.known.entry((from, until)).or_insert_with(find)
    }

    /// Places each change where it is best between its neighbours, as they are placed; removes those
    /// that are then none.
    fn place_again(&mut self, places: &mut Vec<usize>) {
        for _ in 0..PASSES {
            let before = places.clone();
            let mut i = 0;
            while i < places.len() {
                let from = i.checked_sub(1).map_or(0, |before| places[before]);
                let until = places.get(i + 1).copied().unwrap_or(self.values.len());
                match self.tested(from, until) {
                    Some((at, _)) => {
                        places[i] = at;
                        i += 1;
                    }
                    None => drop(places.remove(i)),
                }
            }
            if *places == before {
                return;
            }
        }
    }
}

/// The best place of a step and its chance, if that is at most alpha.
fn tested(values: &[Grouped], options: &ChangeOptions) -> Option<(usize, f64)> {
    let model = Model::new(values)?;
    let (at, gain) = model.best(&model.centred, options.fewest)?;
    let permutations = (PERMUTATIONS / options.alpha).ceil() as u64;
    // The series itself is one of the arrangements.
    let most = options.alpha * (permutations + 1) as f64 - 1.0;
    let mut random = ChaCha8Rng::seed_from_u64(options.seed);
    let mut permuted = model.centred.clone();
    let mut above = 0;
    for _ in 0..permutations {
        model.permute(&mut permuted, &mut random);
        // Equal ones, but for rounding, count.
        let other = model
            .best(&permuted, options.fewest)
            .map_or(0.0, |(_, gain)| gain);
        above += u64::from(other >= gain * (1.0 - 1e-9));
        if above as f64 > most {
            return None;
        }
    }
    let p = (above + 1) as f64 / (permutations + 1) as f64;
    Some((at, p))
}

/// The change at a place, with its intervals.
fn change(values: &[Grouped], at: usize, p: f64, options: &ChangeOptions) -> Option<ChangePoint> {
    let model = Model::new(values)?;
    let step = model.step(at)?;
    let critical = -2.0 * (1.0 - options.level.sqrt()).ln();
    let mut within = [at, at];
    model.each_gain(&model.centred, options.fewest, |other, gain| {
        if (step.gain - gain) <= critical * step.variance {
            within = [within[0].min(other), within[1].max(other)];
        }
    });
    let half = student(options.level, step.degrees) * step.error;
    Some(ChangePoint {
        at,
        within,
        difference: step.difference,
        interval: [step.difference - half, step.difference + half],
        p,
    })
}

/// Compares the last `n` values with those before them, in the scatter that both have; `allowed` is the
/// amount by which they may be higher.
#[must_use]
pub fn newest(values: &[Grouped], n: usize, allowed: f64, level: f64) -> Option<Newest> {
    let at = values.len().checked_sub(n).filter(|&at| n > 0 && at > 0)?;
    let step = Model::new(values)?.step(at)?;
    let half = student(level, step.degrees) * step.error;
    Some(Newest {
        difference: step.difference,
        interval: [step.difference - half, step.difference + half],
        p_above: student_beyond((step.difference - allowed) / step.error, step.degrees),
    })
}

/// The values without the means of their groups.
struct Model {
    /// Group of each value, numbered from 0 without gaps.
    groups: Vec<usize>,
    /// Number of values of each group, and where they are.
    counts: Vec<f64>,
    places: Vec<Vec<usize>>,
    centred: Vec<f64>,
    squares: f64,
}

/// A step at a place, fitted.
struct Step {
    difference: f64,
    /// Standard error of the difference.
    error: f64,
    /// Variance of the values beside the step.
    variance: f64,
    degrees: f64,
    /// By how much the step reduces the sum of squares.
    gain: f64,
}

impl Model {
    /// `None` if a value is not finite.
    fn new(values: &[Grouped]) -> Option<Self> {
        let mut numbers = Vec::new();
        let mut groups = Vec::with_capacity(values.len());
        for of in values {
            let known = numbers.iter().position(|&number| number == of.group);
            groups.push(known.unwrap_or(numbers.len()));
            if known.is_none() {
                numbers.push(of.group);
            }
        }
        let mut counts = vec![0.0; numbers.len()];
        let mut sums = vec![0.0; numbers.len()];
        let mut places = vec![Vec::new(); numbers.len()];
        for (place, (of, &group)) in values.iter().zip(&groups).enumerate() {
            places[group].push(place);
            counts[group] += 1.0;
            sums[group] += of.value;
        }
        let centred: Vec<f64> = (values.iter().zip(&groups))
            .map(|(of, &group)| of.value - sums[group] / counts[group])
            .collect();
        let squares = centred.iter().map(|value| value * value).sum();
        (centred.iter().all(|value| value.is_finite())).then_some(Self {
            groups,
            counts,
            places,
            centred,
            squares,
        })
    }

    /// Visits each place, from the last to the first, with a step there without the means of the groups:
    /// its square, and its product with the values.
    fn each_step(&self, centred: &[f64], mut visit: impl FnMut(usize, f64, f64)) {
        let (mut square, mut product) = (0.0, 0.0);
        let mut after = vec![0.0; self.counts.len()];
        for at in (1..centred.len()).rev() {
            let group = self.groups[at];
            square += 1.0 - (2.0 * after[group] + 1.0) / self.counts[group];
            after[group] += 1.0;
            product += centred[at];
            visit(at, square, product);
        }
    }

    /// Visits each place with at least so many values on both sides, and the reduction of the sum of
    /// squares by a step there.
    fn each_gain(&self, centred: &[f64], fewest: usize, mut visit: impl FnMut(usize, f64)) {
        let n = centred.len();
        self.each_step(centred, |at, square, product| {
            if at >= fewest && n - at >= fewest && square > LEAST_SQUARE {
                visit(at, product * product / square);
            }
        });
    }

    fn best(&self, centred: &[f64], fewest: usize) -> Option<(usize, f64)> {
        let mut best: Option<(usize, f64)> = None;
        self.each_gain(centred, fewest.max(1), |at, gain| {
            if best.is_none_or(|(_, most)| gain > most) {
                best = Some((at, gain));
            }
        });
        best.filter(|(_, gain)| *gain > 0.0)
    }

    /// Permutes the values within their groups.
    fn permute(&self, centred: &mut [f64], random: &mut ChaCha8Rng) {
        if self.counts.len() == 1 {
            return shuffle(centred, random);
        }
        let mut values = Vec::new();
        for places in &self.places {
            values.clear();
            values.extend(places.iter().map(|&place| centred[place]));
            shuffle(&mut values, random);
            for (&place, &value) in places.iter().zip(&values) {
                centred[place] = value;
            }
        }
    }

    /// A step at a place; `None` if it cannot be told from the groups, or if nothing says how much
    /// the values scatter.
    fn step(&self, at: usize) -> Option<Step> {
        let mut found = None;
        self.each_step(&self.centred, |place, square, product| {
            if place == at {
                found = Some((square, product));
            }
        });
        let (square, product) = found.filter(|(square, _)| *square > LEAST_SQUARE)?;
        let degrees = self.centred.len() as f64 - self.counts.len() as f64 - 1.0;
        if degrees < 1.0 {
            return None;
        }
        let gain = product * product / square;
        let variance = (self.squares - gain).max(0.0) / degrees;
        Some(Step {
            difference: product / square,
            error: (variance / square).sqrt().max(f64::MIN_POSITIVE),
            variance,
            degrees,
            gain,
        })
    }
}

/// Fisher and Yates.
fn shuffle(values: &mut [f64], random: &mut ChaCha8Rng) {
    for last in (1..values.len()).rev() {
        let other = ((u64::from(random.next_u32()) * (last as u64 + 1)) >> 32) as usize;
        values.swap(last, other);
    }
}

#[cfg(test)]
mod tests;
