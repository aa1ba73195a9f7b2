//! The functions that the time of spans went to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Report;

/// Most nodes of a document, and functions of a stack: the analysis makes fewer.
const MOST_NODES: usize = 1 << 15;
const MOST_DEPTH: usize = 1 << 10;

/// Samples of the program's threads, by the spans and functions that they were in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stacks {
    /// CPU time between two samples, ns.
    pub every_ns: u64,
    /// Whether threads were sampled while they ran in the kernel. Otherwise a share of the samples is one
    /// of the time in the program's own code.
    pub in_kernel: bool,
    /// Whether threads were sampled when they began to wait.
    pub when_waiting: bool,
    /// Why something of this is missing, in plain words; empty if nothing is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Samples of threads on a CPU.
    pub on_cpu: u64,
    /// Samples of threads that began to wait.
    pub waits: u64,
    /// Share of the time that threads waited of which the stack is known: frequent waits are not all
    /// sampled.
    pub waits_known: f64,
    /// Share of all samples whose stack is incomplete: outer functions are missing, or no function is
    /// known.
    pub incomplete: f64,
    /// Functions that occur, in no order.
    pub functions: Vec<StackFunction>,
    /// The samples by path, in the order of [`Report::paths`]. Paths that are not in it because they were
    /// still open come after them, and samples outside of all spans last.
    pub paths: Vec<PathStacks>,
}

/// A function.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct StackFunction {
    /// Its name, or where no symbol covers it, its place in the file.
    pub name: String,
    /// Path of the file that it is from; empty for code made while the program ran.
    pub file: String,
}

/// Samples of which the span of a path was the innermost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathStacks {
    /// Index of the path in [`Report::paths`]; absent outside of all spans, and where no call of it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<u32>,
    /// Names of the spans, from the role or the outermost one on, of a path of which no call ended: it
    /// was still open at the end, and has no figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_open: Vec<String>,
    /// Samples on a CPU.
    pub on_cpu: u64,
    /// Samples of threads that began to wait.
    pub waits: u64,
    /// Time that these threads waited, ns: until they were on a CPU again.
    pub waited_ns: f64,
    /// Functions by their callers, each after its own.
    pub nodes: Vec<StackNode>,
    /// Samples on a CPU that are in no node: those without any function, and those in functions with less
    /// than 0.1 % of the path's samples, or with more if the report had over 16 384 nodes otherwise.
    #[serde(default)]
    pub left_out: u64,
}

/// A function with one way to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackNode {
    /// Index of its caller in [`PathStacks::nodes`]; absent of an outermost function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<u32>,
    /// Index in [`Stacks::functions`].
    pub function: u32,
    /// Samples on a CPU of which it was the innermost function.
    pub on_cpu: u64,
    /// Time that threads waited in it, ns.
    pub waited_ns: f64,
}

/// A function and what of a path's samples it was in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FunctionShare {
    /// Index in [`Stacks::functions`].
    pub function: u32,
    /// Samples on a CPU of which it was the innermost function.
    pub own: u64,
    /// Samples on a CPU in it and what it called.
    pub all: u64,
    /// Time waited in it, ns.
    pub waited_ns: f64,
    /// Time waited in it and what it called, ns.
    pub all_waited_ns: f64,
}

impl Stacks {
    /// The samples of a path and of the spans inside it, as one tree; of `None` those outside of all
    /// spans.
    #[must_use]
    pub fn inside(&self, report: &Report, path: Option<usize>) -> PathStacks {
        let is_inside = |of: &PathStacks| match path {
            None => of.path.is_none() && of.still_open.is_empty(),
            Some(path) => report.is_inside((of.path, &of.still_open), path),
        };
        let mut merged = PathStacks {
            path: path.map(|at| at as u32),
            ..PathStacks::default()
        };
        for of in self.paths.iter().filter(|of| is_inside(of)) {
            merged.add(of);
        }
        merged
    }

    /// The samples of a path that was still open at the end, and of the spans inside it: that with these
    /// names or these last names, with `/` between them.
    #[must_use]
    pub fn still_open(&self, text: &str) -> Option<PathStacks> {
        let end = format!("/{text}");
        let is_it = |names: &[String]| {
            let name = names.join("/");
            name == text || name.ends_with(&end)
        };
        // A span around others may have no samples by itself.
        let found = self.paths.iter().find_map(|of| {
            let lengths = 1..=of.still_open.len();
            lengths
                .map(|n| &of.still_open[..n])
                .find(|names| is_it(names))
        })?;
        let mut merged = PathStacks {
            still_open: found.to_vec(),
            ..PathStacks::default()
        };
        for of in self
            .paths
            .iter()
            .filter(|of| of.still_open.starts_with(found))
        {
            merged.add(of);
        }
        Some(merged)
    }

    /// Takes out what cannot be true, or refers to nothing; returns whether anything is left.
    pub(crate) fn is_possible(&mut self, paths: usize) -> bool {
        let functions = self.functions.len();
        for share in [&mut self.incomplete, &mut self.waits_known] {
            if !(0.0..=1.0).contains(share) {
                *share = 0.0;
            }
        }
        self.paths.retain(|of| {
            let is_time = |ns: f64| ns.is_finite() && ns >= 0.0;
            let is_node = |(at, node): (usize, &StackNode)| {
                node.caller.is_none_or(|caller| (caller as usize) < at)
                    && (node.function as usize) < functions
                    && is_time(node.waited_ns)
            };
            of.path.is_none_or(|path| (path as usize) < paths)
                && of.depth() <= MOST_DEPTH
                && is_time(of.waited_ns)
                && of.nodes.iter().enumerate().all(is_node)
                && sum(of.nodes.iter().map(|node| node.on_cpu).chain([of.left_out]))
                    .is_some_and(|known| known <= of.on_cpu)
        });
        let is_part = |known: Option<u64>, of: u64| known.is_some_and(|known| known <= of);
        let nodes: usize = self.paths.iter().map(|of| of.nodes.len()).sum();
        is_part(sum(self.paths.iter().map(|of| of.on_cpu)), self.on_cpu)
            && is_part(sum(self.paths.iter().map(|of| of.waits)), self.waits)
            && self.every_ns > 0
            && nodes <= MOST_NODES
    }
}

/// The sum; `None` on overflow.
fn sum(mut counts: impl Iterator<Item = u64>) -> Option<u64> {
    counts.try_fold(0, u64::checked_add)
}

impl PathStacks {
    /// Number of functions of the deepest stack; nodes must be in order.
    fn depth(&self) -> usize {
        let mut depths: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let caller = node.caller.and_then(|at| depths.get(at as usize));
            depths.push(caller.map_or(1, |depth| depth + 1));
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Adds those of another path.
    fn add(&mut self, other: &Self) {
        self.on_cpu += other.on_cpu;
        self.waits += other.waits;
        self.waited_ns += other.waited_ns;
        self.left_out += other.left_out;
        let mut place: Vec<u32> = Vec::with_capacity(other.nodes.len());
        let mut known: std::collections::HashMap<(Option<u32>, u32), u32> =
            (self.nodes.iter().zip(0..))
                .map(|(node, at)| ((node.caller, node.function), at))
                .collect();
        for node in &other.nodes {
            let caller = node.caller.and_then(|at| place.get(at as usize).copied());
            let at = *known.entry((caller, node.function)).or_insert_with(|| {
                self.nodes.push(StackNode {
                    caller,
                    function: node.function,
                    ..StackNode::default()
                });
                self.nodes.len() as u32 - 1
            });
            let ours = &mut self.nodes[at as usize];
            ours.on_cpu += node.on_cpu;
            ours.waited_ns += node.waited_ns;
            place.push(at);
        }
    }

    /// Of each node, samples on a CPU and time waited, ns, in it and in what it called.
    #[must_use]
    pub fn totals(&self) -> Vec<(u64, f64)> {
        let mut all: Vec<(u64, f64)> = (self.nodes.iter())
            .map(|node| (node.on_cpu, node.waited_ns))
            .collect();
        for at in (0..self.nodes.len()).rev() {
            if let Some(caller) = self.nodes[at]
                .caller
                .filter(|caller| (*caller as usize) < at)
            {
                let (on_cpu, waited_ns) = all[at];
                let outer = &mut all[caller as usize];
                *outer = (outer.0 + on_cpu, outer.1 + waited_ns);
            }
        }
        all
    }

    /// The samples by function, most samples of the function itself first. What a function calls through
    /// itself counts once.
    #[must_use]
    pub fn by_function(&self) -> Vec<FunctionShare> {
        let mut by: std::collections::BTreeMap<u32, FunctionShare> =
            std::collections::BTreeMap::new();
        let totals = self.totals();
        for (at, node) in self.nodes.iter().enumerate() {
            let share = by.entry(node.function).or_default();
            share.function = node.function;
            share.own += node.on_cpu;
            share.waited_ns += node.waited_ns;
            let outer = |&at: &u32| self.nodes[at as usize].caller.filter(|up| *up < at);
            let is_inside_itself = std::iter::successors(node.caller, outer)
                .any(|at| self.nodes[at as usize].function == node.function);
            if !is_inside_itself {
                share.all += totals[at].0;
                share.all_waited_ns += totals[at].1;
            }
        }
        let mut by: Vec<FunctionShare> = by.into_values().collect();
        by.sort_by(|a, b| {
            (b.own.cmp(&a.own))
                .then(b.waited_ns.total_cmp(&a.waited_ns))
                .then(b.all.cmp(&a.all))
                .then(a.function.cmp(&b.function))
        });
        by
    }
}

#[cfg(test)]
mod tests;
