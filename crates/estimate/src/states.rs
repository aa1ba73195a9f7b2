//! States: what is known of each sample beforehand, and what of it explains the scatter.
//!
//! **Question.** Samples scatter. Which facts that were known when each began tell the short ones
//! from the long ones, and how long are those of each kind?
//!
//! **Method.** A regression tree of a few levels over the logarithms of the samples (Breiman,
//! Friedman, Olshen and Stone 1984), honest in the sense of Athey and Imbens (2016): time is cut
//! into blocks; every other block proposes the splits, the rest confirms them, and only the rest
//! gives the figures. A fact is confirmed if it separates the samples far better than the same fact
//! does when it is shifted against them in time: shifted facts keep what connects neighbours, in the
//! samples and in the fact. Time itself is confirmed by blocks.
//!
//! **Caveats.** That a fact tells samples apart does not make it their cause. Two facts that always
//! come together cannot be told apart: the one that was passed first is named.

mod confirm;
mod median;
mod split;

use undertick_units::Estimate;

use split::Split;

/// Blocks of time, as many samples in each: an even number.
const BLOCKS: usize = 64;
/// Fewest samples in which states are sought.
pub const FEWEST: usize = 512;
/// Fewest samples of a state in each half.
const FEWEST_IN_STATE: usize = 16;
/// Splits on the way to a state.
const DEPTH: u32 = 3;
/// Most of the sampled scatter that one sample may hold: it counts as this many standard
/// deviations (of the middle) from the median.
const FARTHEST: f64 = 8.0;
/// Facts that are tried at a node, the best first.
const MOST_TRIED: usize = 4;
/// Time is chosen where it explains this many times what the best fact does: a fact says more.
const TIME_OVER_FACT: f64 = 1.5;

/// A fact of each sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// Which of several kinds, numbered from 0.
    Kind(Vec<u32>),
    /// A quantity.
    Number(Vec<f64>),
}

/// Samples in the order in which they began.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// When each began.
    pub times: &'a [f64],
    /// How long each took.
    pub values: &'a [f64],
    /// The clock's step: what is shorter counts as this.
    pub step: f64,
    /// What is known of them, one entry for each sample.
    pub facts: &'a [Fact],
}

/// What is true of the samples of a state.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A fact is one of these kinds.
    Among {
        /// Index of the fact.
        fact: usize,
        /// The kinds, ascending; those that no sample of the proposing blocks had are not among
        /// them.
        kinds: Vec<u32>,
    },
    /// A fact is a number in this range.
    Within {
        /// Index of the fact.
        fact: usize,
        /// The least, if there is one.
        from: Option<f64>,
        /// What it is below, if anything.
        below: Option<f64>,
    },
    /// It began in this range of time.
    During {
        /// The first time, if there is one.
        from: Option<f64>,
        /// The time before which it began, if there is one.
        before: Option<f64>,
    },
}

/// Samples that the same is true of.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// What is true of them, the strongest first.
    pub conditions: Vec<Condition>,
    /// Indices of the samples, ascending.
    pub samples: Vec<usize>,
    /// Those of them in the blocks that did not propose it, ascending.
    pub confirming: Vec<usize>,
    /// Their median, in the unit of the values; `None` where the blocks give it no interval.
    pub median: Option<Estimate>,
}

/// States of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct States {
    /// At least two, that with most samples first.
    pub states: Vec<State>,
    /// Share of the scatter (the variance of the logarithms) that they explain, in the blocks
    /// that did not propose them.
    pub explained: f64,
}

/// Finds what explains the scatter of samples; `None` where nothing does, or there are fewer than
/// [`FEWEST`]. `level` is that of the medians' intervals, in `unit`.
#[must_use]
pub fn states(observed: &Observed<'_>, level: f64, unit: &str) -> Option<States> {
    let n = observed.values.len();
    let logs = logs(observed)?;
    let tree = Tree {
        observed,
        logs: &logs,
    };
    let whole = Node {
        conditions: Vec::new(),
        proposing: (0..n).filter(|&at| !confirms(at, n)).collect(),
        confirming: (0..n).filter(|&at| confirms(at, n)).collect(),
    };
    let scatter = tree.squares(&whole.confirming);
    let mut leaves = Vec::new();
    tree.grow(whole, DEPTH, scatter, &mut leaves);
    if leaves.len() < 2 || scatter <= 0.0 {
        return None;
    }
    let left: f64 = (leaves.iter())
        .map(|leaf| tree.squares(&leaf.confirming))
        .sum();
    let mut states: Vec<State> = (leaves.into_iter())
        .map(|leaf| {
            let median = median::median(observed.values, &leaf.confirming, level, unit);
            let mut samples = leaf.proposing;
            samples.extend(&leaf.confirming);
            samples.sort_unstable();
            State {
                samples,
                confirming: leaf.confirming,
                median,
                conditions: leaf.conditions,
            }
        })
        .collect();
    states.sort_by_key(|state| std::cmp::Reverse(state.samples.len()));
    Some(States {
        states,
        explained: 1.0 - left / scatter,
    })
}

/// The block of a sample.
fn block(at: usize, n: usize) -> usize {
    at * BLOCKS / n
}

/// Whether a sample lies in a block that confirms.
fn confirms(at: usize, n: usize) -> bool {
    block(at, n) % 2 == 1
}

/// Logarithms of the samples, without what is so far from the median that it would hide the rest.
/// `None` where there are too few, or they do not scatter.
fn logs(observed: &Observed<'_>) -> Option<Vec<f64>> {
    let least = observed.step.max(f64::MIN_POSITIVE);
    let logs: Vec<f64> = (observed.values.iter())
        .map(|value| value.max(least).ln())
        .collect();
    let facts_fit = observed.facts.iter().all(|fact| match fact {
        Fact::Kind(kinds) => kinds.len() == logs.len(),
        Fact::Number(numbers) => numbers.len() == logs.len(),
    });
    if logs.len() < FEWEST || !facts_fit || observed.times.len() != logs.len() {
        return None;
    }
    let mut sorted = logs.clone();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    let mut away: Vec<f64> = sorted.iter().map(|log| (log - middle).abs()).collect();
    away.sort_by(f64::total_cmp);
    // 1.4826 median deviations are a standard deviation of normal values; a clock with coarse
    // steps may show none.
    let sd = (1.4826 * away[away.len() / 2]).max(0.01);
    let (lo, hi) = (middle - FARTHEST * sd, middle + FARTHEST * sd);
    (sorted[0] < sorted[sorted.len() - 1])
        .then(|| logs.iter().map(|log| log.clamp(lo, hi)).collect())
}

/// Samples of a node, by their places, ascending.
#[derive(Clone, Debug)]
struct Node {
    conditions: Vec<Condition>,
    proposing: Vec<usize>,
    confirming: Vec<usize>,
}

struct Tree<'a> {
    observed: &'a Observed<'a>,
    logs: &'a [f64],
}

impl Tree<'_> {
    /// The sum of the squares of what these samples are off their mean.
    fn squares(&self, samples: &[usize]) -> f64 {
        let n = samples.len().max(1) as f64;
        let mean = samples.iter().map(|&at| self.logs[at]).sum::<f64>() / n;
        (samples.iter())
            .map(|&at| (self.logs[at] - mean).powi(2))
            .sum()
    }

    /// Splits a node as long as something explains it. `scatter` is that of all samples.
    fn grow(&self, node: Node, depth: u32, scatter: f64, leaves: &mut Vec<Node>) {
        let split = (depth > 0).then(|| self.split(&node, scatter)).flatten();
        let Some(split) = split else {
            return leaves.push(node);
        };
        let (below, above) = split.conditions();
        let part = |condition: Condition, is_above: bool| {
            let these = |samples: &[usize]| -> Vec<usize> {
                let sides = samples.iter().copied();
                sides
                    .filter(|&at| split.is_above(self.observed, at) == is_above)
                    .collect()
            };
            Node {
                conditions: narrowed(&node.conditions, condition),
                proposing: these(&node.proposing),
                confirming: these(&node.confirming),
            }
        };
        for part in [part(below, false), part(above, true)] {
            self.grow(part, depth - 1, scatter, leaves);
        }
    }

    /// The split that explains most of a node and is confirmed.
    fn split(&self, node: &Node, scatter: f64) -> Option<Split> {
        let mut facts: Vec<Split> = (0..self.observed.facts.len())
            .filter_map(|fact| split::by_fact(self.observed, self.logs, &node.proposing, fact))
            .collect();
        facts.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        let time = split::by_time(self.observed, self.logs, &node.proposing);
        let is_confirmed = |split: &Split| {
            confirm::is_confirmed(self.observed, self.logs, &node.confirming, split, scatter)
        };
        let fact = facts.into_iter().take(MOST_TRIED).find(is_confirmed);
        let time = time.filter(|time| {
            let beside = fact.as_ref().map_or(0.0, |fact| fact.gain);
            time.gain > TIME_OVER_FACT * beside && is_confirmed(time)
        });
        time.or(fact)
    }
}

/// The conditions with another one, which narrows an earlier one about the same.
fn narrowed(conditions: &[Condition], more: Condition) -> Vec<Condition> {
    let mut all = conditions.to_vec();
    for before in &mut all {
        match (&mut *before, &more) {
            (
                Condition::Among { fact, kinds },
                Condition::Among {
                    fact: of,
                    kinds: fewer,
                },
            ) if fact == of => {
                kinds.retain(|kind| fewer.contains(kind));
                return all;
            }
            (
                Condition::Within { fact, from, below },
                Condition::Within {
                    fact: of,
                    from: least,
                    below: most,
                },
            ) if fact == of => {
                (*from, *below) = (least.or(*from), most.or(*below));
                return all;
            }
            (
                Condition::During { from, before },
                Condition::During {
                    from: first,
                    before: last,
                },
            ) => {
                (*from, *before) = (first.or(*from), last.or(*before));
                return all;
            }
            _ => {}
        }
    }
    all.push(more);
    all
}
