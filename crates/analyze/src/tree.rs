//! Spans by path: which spans lay around each, from the outermost on.
//!
//! A node of the tree stands for all spans of one name with the same names around them, in all
//! threads of one role ([`crate::roles`]); where there are several roles, each has a node around
//! those of its outermost spans. A span inside a span of the same name belongs to the outer one's node, and so do the
//! spans inside it. It has a node all the same, an alias of the outer one's, because its time is
//! part of the outer one's already.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use undertick_estimate::SignedHistogram;

use crate::cells::MOST_NAMES;

/// Bins per octave of a node's samples, as a power of two: 1.6 % of a value.
pub(crate) const BITS: u32 = 6;
/// Most nodes, 20 KiB each at most; spans on further paths are counted, and their time is in the
/// self time of the spans around them.
pub(crate) const MOST_PATHS: usize = 4096;
/// Entries of the table of recent children.
const RECENT: usize = 1024;

/// Where an open span lies in the tree: in the low half its node, in the high half the one that this
/// is an alias of, or itself. Nodes are numbered from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Path(u32);

impl Path {
    /// Outside all spans.
    pub(crate) const ROOT: Self = Self(0);
    /// There was no room for its node.
    const NOWHERE: Self = Self(u32::MAX);

    fn new(node: u32, alias_of: u32) -> Self {
        Self(node | alias_of << 16)
    }

    pub(crate) fn node(self) -> u32 {
        self.0 & 0xffff
    }

    /// The path of which this is an alias, or itself.
    pub(crate) fn without_recursion(self) -> Self {
        Self::new(self.around(), self.around())
    }

    /// Whether there is a node for it.
    pub(crate) fn has_node(self) -> bool {
        self != Self::NOWHERE && self != Self::ROOT
    }

    /// The node that the spans inside have around them.
    fn around(self) -> u32 {
        self.0 >> 16
    }
}

/// A path by the names of its spans, from the outermost on.
pub(crate) type Names = Vec<String>;
/// The role of a path's threads, if there are several, and the names of its spans.
pub(crate) type WithRole = (Option<String>, Names);

/// What is known of the spans of one node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Executions, of sampled spans also those that were not recorded.
    pub(crate) calls: u64,
    /// Time of all calls, compensated and without that of disturbances, ticks.
    pub(crate) ticks: i128,
    /// The part of `ticks` for which the thread was off the CPU.
    pub(crate) off_cpu_ticks: i128,
    /// The longest call of all, also of those that are not behind the figures of its interval.
    pub(crate) most: Option<i64>,
    /// Samples behind the figures of its interval. Where that has one node only, its tally knows
    /// them, and they are taken over from there.
    pub(crate) kept: SignedHistogram<BITS>,
}

impl Figures {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.ticks += other.ticks;
        self.off_cpu_ticks += other.off_cpu_ticks;
        self.most = self.most.max(other.most);
        self.kept.merge(&other.kept);
    }
}

/// A call of a span, or several alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Its time, compensated and without that of disturbances.
    pub(crate) ticks: i64,
    /// Time for which its thread was off the CPU, ticks.
    pub(crate) off_cpu: i128,
    /// Whether it is behind the figures of its interval.
    pub(crate) is_kept: bool,
    /// The number of calls that it stands for.
    pub(crate) calls: u64,
}

/// Spans of one name with the same names around them, or a role.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Node {
    /// The node around it, which is no alias; 0: none.
    pub(crate) parent: u32,
    /// The node that it is an alias of; itself if it is none.
    pub(crate) alias_of: u32,
    interval: u32,
    pub(crate) figures: Figures,
}

impl Node {
    /// The interval of its spans; `None`: it is a role.
    pub(crate) fn interval(&self) -> Option<u32> {
        (self.interval != ROLE).then_some(self.interval)
    }
}

/// A child that was looked up: the node around it and its interval, in 16 bits each, and its path.
#[derive(Clone, Copy, Debug)]
struct Recent {
    key: u32,
    path: Path,
}

/// The interval of the node of a role.
const ROLE: u32 = u32::MAX;

/// None: no interval has this number.
const NO_CHILD: Recent = Recent {
    key: u32::MAX,
    path: Path::ROOT,
};

const _: () = assert!(MOST_PATHS < 0xffff && MOST_NAMES < 0xffff);

fn key(parent: u32, interval: u32) -> u32 {
    parent << 16 | interval & 0xffff
}

/// Children that were looked up, each at its [`slot`].
#[derive(Clone, Debug)]
struct RecentChildren(Box<[Recent; RECENT]>);

impl Default for RecentChildren {
    fn default() -> Self {
        Self(Box::new([NO_CHILD; RECENT]))
    }
}

/// All nodes; each comes after the node around it, and those of the roles come first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// Number of roles.
    roles: u32,
    children: HashMap<(u32, u32), Path>,
    recent: RecentChildren,
    /// Number of nodes of each interval.
    nodes_of: Vec<u32>,
    /// First nodes of intervals that have a second one now, and have not taken over the samples
    /// before it.
    behind: Vec<u32>,
    beyond: Beyond,
}

/// Calls for whose nodes there was no room, and their time, ticks, by interval.
type Beyond = BTreeMap<u32, (u64, i128)>;

/// The nodes of a shard, as they are sent to the process that merges them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TreeOf {
    nodes: Vec<Node>,
    beyond: Beyond,
}

impl Tree {
    /// A tree with this many roles.
    pub(crate) fn with_roles(roles: usize) -> Self {
        let nodes = (1..=roles as u32).map(|node| Node {
            parent: 0,
            alias_of: node,
            interval: ROLE,
            figures: Figures::default(),
        });
        Self {
            nodes: nodes.collect(),
            roles: roles as u32,
            ..Self::default()
        }
    }

    /// The place of the outermost spans of a role, or without one.
    pub(crate) fn root(&self, role: Option<u32>) -> Path {
        let role = role.filter(|role| *role < self.roles);
        role.map_or(Path::ROOT, |role| Path::new(role + 1, role + 1))
    }

    /// The place of a span of `interval` that begins inside `around`.
    #[inline]
    pub(crate) fn child(&mut self, around: Path, interval: u32) -> Path {
        self.child_if(true, around, interval)
    }

    /// As [`Self::child`] if a span begins here, otherwise [`Path::ROOT`]; which of the two it is
    /// need not be predictable.
    #[inline]
    pub(crate) fn child_if(&mut self, begins: bool, around: Path, interval: u32) -> Path {
        let key = key(around.around(), interval);
        let known = self.recent.0[slot(key)];
        if begins & (known.key != key) {
            return self.find(around.around(), interval);
        }
        Path(known.path.0 * u32::from(begins))
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, parent: u32, interval: u32) -> Path {
        let path = match self.children.get(&(parent, interval)) {
            Some(&path) => path,
            None => self.add_child(parent, interval),
        };
        let key = key(parent, interval);
        self.recent.0[slot(key)] = Recent { key, path };
        path
    }

    fn add_child(&mut self, parent: u32, interval: u32) -> Path {
        if parent == Path::NOWHERE.around() || self.nodes.len() >= MOST_PATHS {
            return Path::NOWHERE;
        }
        let mut around = parent;
        let outer = std::iter::from_fn(|| {
            let here = around.checked_sub(1)?;
            let node = &self.nodes[here as usize];
            let found = (around, node.interval);
            around = node.parent;
            Some(found)
        })
        .find(|&(_, of)| of == interval);
        let node = self.nodes.len() as u32 + 1;
        let alias_of = outer.map_or(node, |(outer, _)| outer);
        self.nodes.push(Node {
            parent,
            alias_of,
            interval,
            figures: Figures::default(),
        });
        if self.nodes_of.len() <= interval as usize {
            self.nodes_of.resize(interval as usize + 1, 0);
        }
        let before = &mut self.nodes_of[interval as usize];
        *before += 1;
        if *before == 2 {
            let is_first = |other: &Node| other.interval == interval;
            self.behind
                .extend((self.nodes.iter().position(is_first)).map(|at| at as u32));
        }
        let path = Path::new(node, alias_of);
        self.children.insert((parent, interval), path);
        path
    }

    /// Adds a call of a span.
    #[inline]
    pub(crate) fn add(&mut self, path: Path, interval: u32, call: Call) {
        let Call {
            ticks,
            off_cpu,
            is_kept,
            calls,
        } = call;
        let all = i128::from(ticks) * i128::from(calls);
        let Some(node) =
            (path.node().checked_sub(1)).and_then(|at| self.nodes.get_mut(at as usize))
        else {
            return add_beyond(&mut self.beyond, interval, (calls, all));
        };
        let figures = &mut node.figures;
        figures.calls += calls;
        figures.ticks += all;
        figures.off_cpu_ticks += off_cpu;
        figures.most = figures.most.max(Some(ticks));
        if is_kept && !has_one_node(&self.nodes_of, interval) {
            figures.kept.record(ticks);
        }
    }

    /// As [`Self::add`], for calls of one interval that are kept, in which their threads were on the
    /// CPU.
    pub(crate) fn add_all(&mut self, paths: &[Path], interval: u32, ticks: &[i64]) {
        let Some(&path) = paths.first() else { return };
        let is_one = paths
            .iter()
            .fold(true, |is_one, other| is_one & (*other == path));
        let node = (path.node().checked_sub(1)).and_then(|at| self.nodes.get_mut(at as usize));
        let (true, Some(node)) = (is_one, node) else {
            for (&path, &ticks) in paths.iter().zip(ticks) {
                let call = Call {
                    ticks,
                    off_cpu: 0,
                    is_kept: true,
                    calls: 1,
                };
                self.add(path, interval, call);
            }
            return;
        };
        let figures = &mut node.figures;
        figures.calls += ticks.len() as u64;
        figures.ticks += sum(ticks);
        figures.most = figures.most.max(ticks.iter().copied().max());
        if !has_one_node(&self.nodes_of, interval) {
            ticks.iter().for_each(|&ticks| figures.kept.record(ticks));
        }
    }

    /// Takes over the samples so far where an interval has got a second node. Call it before an
    /// interval gets more of them. `samples` gives those of an interval.
    #[inline]
    pub(crate) fn catch_up(&mut self, samples: impl FnMut(u32) -> Samples) {
        if !self.behind.is_empty() {
            let behind = std::mem::take(&mut self.behind);
            self.take_over(behind, samples);
        }
    }

    /// Takes over the samples of intervals with one node, after the last of them.
    pub(crate) fn finish(&mut self, samples: impl FnMut(u32) -> Samples) {
        let single = (self.nodes.iter().zip(0..))
            .filter(|(node, _)| has_one_node(&self.nodes_of, node.interval))
            .map(|(_, at)| at)
            .collect();
        self.take_over(single, samples);
    }

    #[cold]
    fn take_over(&mut self, nodes: Vec<u32>, mut samples: impl FnMut(u32) -> Samples) {
        for at in nodes {
            let node = &mut self.nodes[at as usize];
            node.figures.kept = samples(node.interval);
        }
    }

    /// Forgets all figures.
    pub(crate) fn restart(&mut self) {
        (self.nodes.iter_mut()).for_each(|node| node.figures = Figures::default());
        self.beyond.clear();
    }

    pub(crate) fn take(self) -> TreeOf {
        TreeOf {
            nodes: self.nodes,
            beyond: self.beyond,
        }
    }

    /// Merges the nodes of a shard; `here` gives the index here of one of its intervals.
    ///
    /// All of them have their samples.
    pub(crate) fn merge(&mut self, other: TreeOf, here: impl Fn(u32) -> Option<u32>) {
        for (interval, more) in other.beyond {
            if let Some(interval) = here(interval) {
                add_beyond(&mut self.beyond, interval, more);
            }
        }
        let mut paths = vec![Path::ROOT];
        for (node, at) in other.nodes.into_iter().zip(0..) {
            let around = paths.get(node.parent as usize).copied();
            let interval = node.interval().and_then(&here);
            let path = match (around, interval) {
                (_, None) if node.interval == ROLE && at < self.roles => self.root(Some(at)),
                (Some(around), Some(interval)) => self.child(around, interval),
                _ => Path::NOWHERE,
            };
            paths.push(path);
            let ours = (path.node().checked_sub(1)).and_then(|at| self.nodes.get_mut(at as usize));
            match (ours, interval) {
                (Some(ours), _) => ours.figures.merge(&node.figures),
                (None, Some(interval)) => {
                    let all = (node.figures.calls, node.figures.ticks);
                    add_beyond(&mut self.beyond, interval, all);
                }
                (None, None) => {}
            }
        }
        self.behind.clear();
    }

    /// Its nodes, each after the one around it.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The role of a path, if there are roles, and its intervals from the outermost on; neither
    /// where there was no room for its node.
    pub(crate) fn names(&self, path: Path) -> (Option<u32>, Vec<u32>) {
        let (mut role, mut intervals) = (None, Vec::new());
        let mut at = path.node();
        while let Some(here) = at.checked_sub(1)
            && let Some(node) = self.nodes.get(here as usize)
        {
            match node.interval() {
                Some(interval) => intervals.push(interval),
                None => role = Some(here),
            }
            at = node.parent;
        }
        intervals.reverse();
        (role, intervals)
    }

    /// The calls of an interval for whose nodes there was no room, and their time, ticks.
    pub(crate) fn beyond(&self, interval: u32) -> (u64, i128) {
        self.beyond.get(&interval).copied().unwrap_or_default()
    }
}

/// Samples behind the figures of an interval.
pub(crate) type Samples = SignedHistogram<BITS>;

fn has_one_node(nodes_of: &[u32], interval: u32) -> bool {
    nodes_of.get(interval as usize) == Some(&1)
}

/// The sum of at most 2^32 values.
fn sum(ticks: &[i64]) -> i128 {
    // In two halves, neither of which overflows: vectors have no 128 bits.
    let high: i64 = ticks.iter().map(|ticks| ticks >> 32).sum();
    let low: i64 = ticks.iter().map(|ticks| ticks & 0xffff_ffff).sum();
    (i128::from(high) << 32) + i128::from(low)
}

#[cold]
fn add_beyond(beyond: &mut Beyond, interval: u32, (calls, ticks): (u64, i128)) {
    let entry = beyond.entry(interval).or_default();
    entry.0 += calls;
    entry.1 += ticks;
}

/// The entry of the table of recent children.
#[inline]
fn slot(key: u32) -> usize {
    (key.wrapping_mul(0x9e37_79b1) >> 22) as usize % RECENT
}

#[cfg(test)]
mod tests;
