//! The paths of the report, from the tree.

use undertick_document::{IntervalReport, PathReport};
use undertick_estimate::Distribution;
use undertick_units::{Estimate, Interval};

use crate::tree::{Figures, Node, Tree};

/// What paths are made of.
pub(super) struct PathSource<'a> {
    pub(super) tree: &'a Tree,
    /// The report of each interval, by its index in the tree.
    pub(super) intervals: &'a [IntervalReport],
    /// Which of them had points that were switched off and on.
    pub(super) is_switched: &'a [bool],
    pub(super) ns_per_tick: f64,
    pub(super) knows_switches: bool,
}

/// The sums of each node.
struct Sums {
    /// Its figures with those of its aliases: recursive calls go there.
    all: Vec<Figures>,
    /// The time of its calls, ns; `None` where it is not known.
    totals: Vec<Option<f64>>,
    /// The part of it, aliases included, in no span inside.
    own: Vec<Option<f64>>,
}

impl Sums {
    fn new(nodes: &[Node], names: &Names<'_>) -> Self {
        let totals: Vec<Option<f64>> = nodes.iter().map(|node| names.total_ns(node)).collect();
        let mut all: Vec<Figures> = nodes.iter().map(|node| node.figures.clone()).collect();
        let mut own = totals.clone();
        for (at, node) in nodes.iter().enumerate() {
            let outer = node.alias_of as usize - 1;
            if outer != at {
                all[outer].merge(&node.figures);
                own[outer] = own[outer].zip(totals[at]).map(|(own, more)| own + more);
            }
            if let Some(around) = (node.parent as usize).checked_sub(1) {
                // Of a span whose points were off for a part of the time the rest is not known, and
                // would be time of the one around it.
                let inner = totals[at].filter(|_| !names.is_switched(node));
                own[around] = own[around].zip(inner).map(|(own, inner)| own - inner);
            }
        }
        Self { all, totals, own }
    }

    /// The nodes inside each, the longest first. At 0 are the outermost ones; they are the roles
    /// where several of the first `roles` nodes have spans, and these then have their sums.
    fn inside(&mut self, nodes: &[Node], roles: usize) -> Vec<Vec<usize>> {
        let mut inside: Vec<Vec<usize>> = vec![Vec::new(); nodes.len() + 1];
        // A span that never ended is there if one inside it did.
        let mut is_there = vec![false; nodes.len()];
        for (at, node) in nodes.iter().enumerate().rev() {
            let is_alias = node.alias_of as usize != at + 1;
            is_there[at] |= self.all[at].calls > 0;
            if is_there[at]
                && !is_alias
                && node.interval().is_some()
                && let Some(around) = (node.parent as usize).checked_sub(1)
                && nodes[around].interval().is_some()
            {
                is_there[around] = true;
            }
        }
        for (at, node) in nodes.iter().enumerate() {
            if node.alias_of as usize == at + 1 && is_there[at] {
                inside[node.parent as usize].push(at);
            }
        }
        // Such a span took at least as long as those inside it.
        for at in (roles..nodes.len()).rev() {
            if is_there[at] && self.all[at].calls == 0 {
                let known = inside[at + 1].iter().filter_map(|&at| self.totals[at]);
                self.totals[at] = known.map(|ns| ns.max(0.0)).reduce(|a, b| a + b);
                self.own[at] = None;
            }
        }
        let with_spans: Vec<usize> = (0..roles)
            .filter(|&role| !inside[role + 1].is_empty())
            .collect();
        match with_spans[..] {
            [] => {}
            [only] => inside[0] = std::mem::take(&mut inside[only + 1]),
            _ => {
                for &role in &with_spans {
                    let known = inside[role + 1].iter().filter_map(|&at| self.totals[at]);
                    // A short span may seem to take less than nothing.
                    self.totals[role] = known.map(|ns| ns.max(0.0)).reduce(|a, b| a + b);
                }
                inside[0] = with_spans;
            }
        }
        let order = |&at: &usize| (self.totals[at].unwrap_or(0.0), nodes[at].figures.calls);
        for siblings in &mut inside {
            siblings.sort_by(|a, b| {
                let (a, b) = (order(a), order(b));
                b.0.total_cmp(&a.0).then(b.1.cmp(&a.1))
            });
        }
        inside
    }

    fn total(&self, of: &[usize]) -> Option<f64> {
        of.iter().map(|&at| self.totals[at]).sum()
    }
}

/// The paths of a tree, each after the one around it, the longest first among its siblings.
/// `roles`: the name of each role, which is the node of its number, and the number of its threads.
pub(super) fn paths(source: &PathSource<'_>, roles: &[(&str, u32)]) -> Vec<PathReport> {
    let nodes = source.tree.nodes();
    let names = Names::new(source);
    let mut sums = Sums::new(nodes, &names);
    let inside = sums.inside(nodes, roles.len());
    // What was not recorded of an outermost span is missing from the sum.
    let outermost = inside[0].iter().flat_map(|at| match nodes[*at].interval() {
        Some(_) => std::slice::from_ref(at),
        None => &inside[at + 1],
    });
    let mut outermost = outermost.map(|&at| &nodes[at]);
    let is_whole = !outermost.any(|node| names.is_switched(node));
    let whole = sums.total(&inside[0]).filter(|_| is_whole);
    // Nodes to visit, with the index of the path around each and their depth.
    let mut open: Vec<(usize, Option<u32>, u32)> =
        inside[0].iter().rev().map(|&at| (at, None, 0)).collect();
    let mut paths: Vec<PathReport> = Vec::new();
    while let Some((at, parent, depth)) = open.pop() {
        let (node, all, total) = (&nodes[at], &sums.all[at], sums.totals[at]);
        let here = paths.len() as u32;
        let children = &inside[at + 1];
        open.extend(children.iter().rev().map(|&at| (at, Some(here), depth + 1)));
        let share = total
            .zip(whole.filter(|whole| *whole > 0.0))
            .map(|(a, b)| a / b);
        paths.push(match node.interval() {
            Some(interval) if all.calls == 0 => PathReport {
                parent,
                depth,
                share,
                ..empty(&source.intervals[interval as usize].name)
            },
            Some(interval) => PathReport {
                parent,
                depth,
                share,
                calls: all.calls,
                recursive_calls: all.calls - node.figures.calls,
                // Where a span around it was not recorded, it has another path.
                is_switched: names.is_switched(node)
                    || parent.is_some_and(|at| paths[at as usize].is_switched),
                total: names.total(node, total),
                self_ns: sums.own[at],
                off_cpu_ns: (source.knows_switches)
                    .then_some(node.figures.off_cpu_ticks as f64 * source.ns_per_tick)
                    .zip(total)
                    .map(|(off, total)| off.min(total)),
                ..names.of_samples(interval as usize, all)
            },
            None => PathReport {
                share,
                threads: Some(roles[at].1),
                ..empty(roles[at].0)
            },
        });
    }
    add_up(&mut paths);
    paths
}

/// Gives each role the sums of its outermost spans, as far as they are known, and each span that never
/// ended those of the spans inside it.
fn add_up(paths: &mut [PathReport]) {
    for at in (0..paths.len()).rev() {
        let is_open = paths[at].is_still_open();
        if paths[at].threads.is_none() && !is_open {
            continue;
        }
        let inside: Vec<&PathReport> = (paths.iter())
            .filter(|path| path.parent == Some(at as u32))
            .collect();
        let totals = inside.iter().filter_map(|path| path.total.as_ref());
        let known: Vec<&Estimate> = totals.filter(|total| total.value >= 0.0).collect();
        let off_cpu_ns = inside.iter().map(|path| path.off_cpu_ns).sum();
        let mut total = sum(&known);
        let is_more = |inner: &&Estimate| inner.interval.hi.is_none();
        let is_part = is_open || known.len() < inside.len() || known.iter().any(is_more);
        if let Some(total) = total.as_mut().filter(|_| is_part) {
            total.interval.hi = None;
        }
        (paths[at].total, paths[at].off_cpu_ns) = (total, off_cpu_ns);
    }
}

/// The sum of totals, all of which are wrong in the same direction; `None` for none.
fn sum(of: &[&Estimate]) -> Option<Estimate> {
    let bound = |bound: fn(&Interval) -> Option<f64>| -> Option<f64> {
        of.iter().map(|total| bound(&total.interval)).sum()
    };
    Some(Estimate {
        value: of.iter().map(|total| total.value).sum(),
        interval: Interval {
            lo: bound(|interval| interval.lo),
            hi: bound(|interval| interval.hi),
        },
        n: of.iter().map(|total| total.n).sum(),
        n_effective: of.iter().map(|total| total.n_effective).sum(),
        ..(*of.first()?).clone()
    })
}

/// A path of which nothing is known yet.
fn empty(name: &str) -> PathReport {
    PathReport {
        name: name.to_owned(),
        threads: None,
        parent: None,
        depth: 0,
        calls: 0,
        recursive_calls: 0,
        is_switched: false,
        total: None,
        self_ns: None,
        off_cpu_ns: None,
        share: None,
        median_ns: None,
        p99_ns: None,
        max_ns: None,
    }
}

/// What the intervals know of their nodes.
struct Names<'a> {
    intervals: &'a [IntervalReport],
    is_switched: &'a [bool],
    /// What each call has beyond its ticks, ns: costs are subtracted from these in whole ticks, and
    /// the rest from the figures. With a sampled span it also makes up for the calls that no record
    /// stands for. `None` where the interval has no total.
    beyond_ticks_ns: Vec<Option<f64>>,
    /// The number of nodes of each.
    nodes: Vec<u32>,
    ns_per_tick: f64,
}

impl<'a> Names<'a> {
    fn new(source: &PathSource<'a>) -> Self {
        let PathSource {
            tree,
            intervals,
            is_switched,
            ns_per_tick,
            ..
        } = *source;
        let mut sums: Vec<(u64, i128)> = (0..intervals.len())
            .map(|at| tree.beyond(at as u32))
            .collect();
        let mut nodes = vec![0; intervals.len()];
        for (node, at) in tree.nodes().iter().zip(1..) {
            let Some(interval) = node.interval() else {
                continue;
            };
            let (calls, ticks) = &mut sums[interval as usize];
            *calls += node.figures.calls;
            *ticks += node.figures.ticks;
            nodes[interval as usize] += u32::from(node.alias_of == at);
        }
        let beyond_ticks_ns = (sums.iter().zip(intervals))
            .map(|(&(calls, ticks), interval)| {
                let total = interval.total_ns?;
                Some((total - ticks as f64 * ns_per_tick) / calls.max(1) as f64)
            })
            .collect();
        Self {
            intervals,
            is_switched,
            beyond_ticks_ns,
            nodes,
            ns_per_tick,
        }
    }

    fn is_switched(&self, node: &Node) -> bool {
        (node.interval()).is_some_and(|interval| self.is_switched[interval as usize])
    }

    fn total_ns(&self, node: &Node) -> Option<f64> {
        let calls = node.figures.calls as f64;
        let beyond = self.beyond_ticks_ns[node.interval()? as usize]?;
        Some(node.figures.ticks as f64 * self.ns_per_tick + calls * beyond)
    }

    /// The total with the interval that the clock and the cost of recording give each call.
    fn total(&self, node: &Node, total_ns: Option<f64>) -> Option<Estimate> {
        let interval = &self.intervals[node.interval()? as usize];
        let outer = node.figures.calls;
        let each = (interval.of_this_run.as_ref())
            .and_then(|own| own.mean.as_ref())
            .or(interval.mean.as_ref())?;
        let value = total_ns?;
        let reach = |bound: Option<f64>| Some(value + (bound? - each.value) * outer as f64);
        Some(Estimate {
            value,
            interval: Interval {
                lo: reach(each.interval.lo).map(|lo| lo.max(0.0).min(value)),
                hi: reach(each.interval.hi),
            },
            method: "sum of all calls".to_owned(),
            n: outer,
            n_effective: outer as f64,
            notes: Vec::new(),
            ..each.clone()
        })
    }

    /// Quantiles of the samples, and the longest of all calls: a call whose sample was dropped because
    /// it was disturbed for an unknown time is in the total, and so is the longest.
    fn of_samples(&self, place: usize, figures: &Figures) -> PathReport {
        let interval = &self.intervals[place];
        let beyond = self.beyond_ticks_ns[place].unwrap_or(0.0);
        let value = |estimate: Option<&Estimate>| estimate.map(|estimate| estimate.value);
        let ns = |ticks: f64| ticks * self.ns_per_tick + beyond;
        let longest = figures.most.map(|most| ns(most as f64));
        let (median_ns, p99_ns, max_ns) = match self.nodes[place] {
            1 => (
                value(interval.median.as_ref()),
                value(interval.quantiles.get("0.99")),
                // What is subtracted from a sample is known to less than a tick.
                (interval.statistics.max)
                    .filter(|max| longest.is_none_or(|longest| longest < max + self.ns_per_tick))
                    .or(longest),
            ),
            _ => {
                let distribution = figures.kept.distribution();
                (
                    quantile(&distribution, 0.5).map(ns),
                    quantile(&distribution, 0.99).map(ns),
                    longest,
                )
            }
        };
        PathReport {
            median_ns,
            p99_ns,
            max_ns,
            ..empty(&interval.name)
        }
    }
}

/// The middle of the bin that the quantile lies in.
fn quantile(of: &Distribution, p: f64) -> Option<f64> {
    let rank = (p * of.n() as f64).ceil() as u64;
    Some(of.at_rank(rank.clamp(1, of.n().max(1)))?.middle())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(total: Option<f64>) -> PathReport {
        PathReport {
            parent: Some(0),
            depth: 1,
            total: total.map(|value| Estimate {
                value,
                interval: Interval::new(value - 1.0, value + 1.0),
                level: 0.95,
                unit: "ns".to_owned(),
                method: String::new(),
                n: 2,
                n_effective: 2.0,
                notes: Vec::new(),
            }),
            off_cpu_ns: Some(3.0),
            calls: 1,
            ..empty("span")
        }
    }

    fn role_of(totals: &[Option<f64>]) -> PathReport {
        let role = PathReport {
            threads: Some(2),
            ..empty("role")
        };
        let mut paths = vec![role];
        paths.extend(totals.iter().map(|&total| span(total)));
        add_up(&mut paths);
        paths.swap_remove(0)
    }

    /// A span of which nothing is known, or that seems to take less than nothing, takes nothing from
    /// the others of its role.
    #[test]
    fn a_role_has_what_is_known_of_its_spans() {
        let bounds = |role: &PathReport| {
            let total = role.total.as_ref().unwrap();
            (total.value, total.interval.lo, total.interval.hi)
        };
        let role = role_of(&[Some(10.0), Some(5.0)]);
        assert_eq!(bounds(&role), (15.0, Some(13.0), Some(17.0)));
        assert_eq!((role.total.unwrap().n, role.off_cpu_ns), (4, Some(6.0)));
        for other in [None, Some(-3.0)] {
            let role = role_of(&[Some(10.0), other]);
            assert_eq!(bounds(&role), (10.0, Some(9.0), None));
        }
        assert_eq!(role_of(&[None]).total, None);
    }
}
