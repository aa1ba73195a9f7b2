//! The best split of samples by one fact.

use super::{Condition, FEWEST_IN_STATE, Fact, Observed};

/// Places at which a number or the time may be cut at first.
const CUTS: usize = 64;

/// A division of samples in two.
#[derive(Clone, Debug)]
pub(super) struct Split {
    pub(super) by: By,
    /// By how much the sum of squares falls in the blocks that proposed it.
    pub(super) gain: f64,
}

#[derive(Clone, Debug)]
pub(super) enum By {
    /// The kinds of the fact on either side, ascending.
    Kinds {
        fact: usize,
        below: Vec<u32>,
        above: Vec<u32>,
    },
    /// Where a fact's number reaches this.
    Number {
        fact: usize,
        from: f64,
    },
    Time {
        from: f64,
    },
}

impl Split {
    /// The side of a sample. A kind that nobody proposed belongs to the lower one.
    pub(super) fn is_above(&self, observed: &Observed<'_>, at: usize) -> bool {
        match &self.by {
            By::Kinds { fact, above, .. } => match &observed.facts[*fact] {
                Fact::Kind(kinds) => above.binary_search(&kinds[at]).is_ok(),
                Fact::Number(_) => false,
            },
            By::Number { fact, from } => match &observed.facts[*fact] {
                Fact::Number(numbers) => numbers[at] >= *from,
                Fact::Kind(_) => false,
            },
            By::Time { from } => observed.times[at] >= *from,
        }
    }

    /// What is true of the lower and of the upper side.
    pub(super) fn conditions(&self) -> (Condition, Condition) {
        match &self.by {
            By::Kinds { fact, below, above } => {
                let among = |kinds: &[u32]| Condition::Among {
                    fact: *fact,
                    kinds: kinds.to_vec(),
                };
                (among(below), among(above))
            }
            By::Number { fact, from } => {
                let within = |from, below| Condition::Within {
                    fact: *fact,
                    from,
                    below,
                };
                (within(None, Some(*from)), within(Some(*from), None))
            }
            By::Time { from } => {
                let during = |from, before| Condition::During { from, before };
                (during(None, Some(*from)), during(Some(*from), None))
            }
        }
    }
}

/// Samples that stay on one side together.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    n: usize,
    sum: f64,
}

impl Group {
    fn mean(self) -> f64 {
        self.sum / self.n.max(1) as f64
    }
}

/// The best split by a fact.
pub(super) fn by_fact(
    observed: &Observed<'_>,
    logs: &[f64],
    samples: &[usize],
    fact: usize,
) -> Option<Split> {
    match &observed.facts[fact] {
        Fact::Kind(kinds) => by_kinds(kinds, logs, samples, fact),
        Fact::Number(numbers) => {
            let (from, gain) = by_number(numbers, logs, samples)?;
            let by = By::Number { fact, from };
            Some(Split { by, gain })
        }
    }
}

/// The best split by the time.
pub(super) fn by_time(observed: &Observed<'_>, logs: &[f64], samples: &[usize]) -> Option<Split> {
    let (from, gain) = by_number(observed.times, logs, samples)?;
    let by = By::Time { from };
    Some(Split { by, gain })
}

/// Kinds in the order of their means: one of the divisions along it is the best of all (Breiman et
/// al. 1984, theorem 4.5).
fn by_kinds(kinds: &[u32], logs: &[f64], samples: &[usize], fact: usize) -> Option<Split> {
    let most = samples.iter().map(|&at| kinds[at]).max()?;
    let mut groups = vec![Group::default(); most as usize + 1];
    for &at in samples {
        let group = &mut groups[kinds[at] as usize];
        group.n += 1;
        group.sum += logs[at];
    }
    let mut seen: Vec<(u32, Group)> = (0..).zip(groups).filter(|(_, group)| group.n > 0).collect();
    seen.sort_by(|a, b| a.1.mean().total_cmp(&b.1.mean()));
    let ordered: Vec<Group> = seen.iter().map(|(_, group)| *group).collect();
    let (cut, gain) = best(&ordered)?;
    let side = |of: &[(u32, Group)]| {
        let mut kinds: Vec<u32> = of.iter().map(|(kind, _)| *kind).collect();
        kinds.sort_unstable();
        kinds
    };
    let (below, above) = (side(&seen[..cut]), side(&seen[cut..]));
    let by = By::Kinds { fact, below, above };
    Some(Split { by, gain })
}

/// The best cut of a number, and what it gains.
fn by_number(numbers: &[f64], logs: &[f64], samples: &[usize]) -> Option<(f64, f64)> {
    let mut ordered: Vec<(f64, f64)> = (samples.iter())
        .filter(|&&at| numbers[at].is_finite())
        .map(|&at| (numbers[at], logs[at]))
        .collect();
    ordered.sort_by(|a, b| a.0.total_cmp(&b.0));
    if ordered.len() < samples.len() {
        return None;
    }
    let mut coarse: Vec<f64> = (1..CUTS)
        .map(|i| ordered[i * ordered.len() / CUTS].0)
        .filter(|&cut| cut > ordered[0].0)
        .collect();
    coarse.dedup();
    let (at, gain) = best_cut(&ordered, &coarse)?;
    // Every number between the neighbours of the best one: a rare kind of samples may begin anywhere.
    let from = at.checked_sub(1).map_or(ordered[0].0, |at| coarse[at]);
    let until = coarse.get(at + 1).copied().unwrap_or(f64::INFINITY);
    let first = ordered.partition_point(|(number, _)| *number <= from);
    let last = ordered.partition_point(|(number, _)| *number < until);
    let mut fine: Vec<f64> = ordered[first..last]
        .iter()
        .map(|(number, _)| *number)
        .collect();
    fine.dedup();
    match best_cut(&ordered, &fine) {
        Some((at, finer)) if finer > gain => Some((fine[at], finer)),
        _ => Some((coarse[at], gain)),
    }
}

/// Which of these cuts of samples, both ascending, is the best one, and what it gains.
fn best_cut(ordered: &[(f64, f64)], cuts: &[f64]) -> Option<(usize, f64)> {
    let mut groups = vec![Group::default(); cuts.len() + 1];
    for (number, log) in ordered {
        let group = &mut groups[cuts.partition_point(|cut| cut <= number)];
        group.n += 1;
        group.sum += log;
    }
    let (cut, gain) = best(&groups)?;
    Some((cut - 1, gain))
}

/// The number of groups below the best cut between groups in their order, and what it gains.
fn best(groups: &[Group]) -> Option<(usize, f64)> {
    let (n, sum) = (groups.iter()).fold((0, 0.0), |(n, sum), group| (n + group.n, sum + group.sum));
    let mut below = Group::default();
    let mut found: Option<(usize, f64)> = None;
    for (cut, group) in (1..groups.len()).zip(groups) {
        below = Group {
            n: below.n + group.n,
            sum: below.sum + group.sum,
        };
        let above = Group {
            n: n - below.n,
            sum: sum - below.sum,
        };
        if below.n < FEWEST_IN_STATE || above.n < FEWEST_IN_STATE {
            continue;
        }
        let apart = above.mean() - below.mean();
        let gain = below.n as f64 * above.n as f64 / n as f64 * apart * apart;
        if gain > found.map_or(0.0, |(_, gain)| gain) {
            found = Some((cut, gain));
        }
    }
    found
}
