//! The call trees of both sides as one.

use std::collections::{BTreeMap, HashMap};

use undertick_report::compare::{PathChange, PathFigure, PathSide, Row, Verdict};
use undertick_report::survey::Metric;
use undertick_units::{Estimate, Interval};

use super::figures::{self, Figure};
use super::input::Input;
use super::sets::{self, RunValues};
use super::{Options, rows};

/// A path, with what each run of both sides has of it.
#[derive(Default)]
struct Node<'a> {
    name: &'a str,
    is_role: bool,
    /// A run has it in several roles, which are left out: no call of it is typical.
    is_mixed: bool,
    parent: Option<usize>,
    depth: u32,
    inside: Vec<usize>,
    /// The names of the runs, and their figures.
    sides: [Vec<(&'a str, &'a PathFigure)>; 2],
}

/// One run of a side: its name and its paths.
type RunPaths<'a> = (&'a str, &'a [PathFigure]);

/// The changes of all paths, each before those inside it; empty where a side has no call tree.
pub(super) fn changes(
    a: &Input,
    b: &Input,
    are_paired: bool,
    options: &Options,
) -> Vec<PathChange> {
    let sides = [runs(a), runs(b)];
    if sides
        .iter()
        .any(|runs| runs.iter().all(|of| of.1.is_empty()))
    {
        return Vec::new();
    }
    // Roles are no way to tell paths apart where a run has none.
    let mut each = sides
        .iter()
        .flatten()
        .filter(|(_, paths)| !paths.is_empty());
    let with_roles = each.all(|(_, paths)| paths.iter().any(|path| path.is_role));
    let nodes = merged(&sides, with_roles);
    let order = outer_first(&nodes);
    let are_sets = matches!((a, b), (Input::Runs(_), Input::Runs(_)));
    let found: Vec<Option<Figure>> = (order.iter())
        .map(|&at| figure(&nodes[at], are_sets, are_paired, options))
        .collect();
    let is_known: Vec<bool> = found.iter().map(Option::is_some).collect();
    let known: Vec<Figure> = found.into_iter().flatten().collect();
    let mut rows = rows(&known, options).into_iter();
    let mut places = vec![0_u32; nodes.len()];
    let mut changes = Vec::with_capacity(nodes.len());
    for (at, is_known) in order.into_iter().zip(is_known) {
        let node = &nodes[at];
        places[at] = changes.len() as u32;
        let row = is_known.then(|| rows.next()).flatten();
        let middle = row.as_ref().map(|row| [row.a.value, row.b.value]);
        let side = |which: usize| {
            let of = &node.sides[which];
            let runs = sides[which].len() as f64;
            (!of.is_empty()).then(|| {
                let side = mean(of, runs, middle.map(|of| of[which]));
                PathSide {
                    call_ns: side.call_ns.filter(|_| !node.is_mixed),
                    ..side
                }
            })
        };
        changes.push(PathChange {
            name: node.name.to_owned(),
            parent: node.parent.map(|parent| places[parent]),
            depth: node.depth,
            a: side(0),
            b: side(1),
            verdict: row.as_ref().map_or(Verdict::CannotTell, |row| row.verdict),
            adjusted_p: row.as_ref().and_then(|row| row.adjusted_p),
            words: words(node, row.as_ref(), are_sets),
            ratio: row.and_then(|row| row.ratio),
        });
    }
    changes
}

fn runs(of: &Input) -> Vec<RunPaths<'_>> {
    match of {
        Input::One(side) => vec![("", &side.paths)],
        Input::Runs(runs) => (runs.runs.iter())
            .map(|run| (run.name.as_str(), run.paths.as_slice()))
            .collect(),
    }
}

/// Paths of the same names in the same places are one.
fn merged<'a>(sides: &[Vec<RunPaths<'a>>; 2], with_roles: bool) -> Vec<Node<'a>> {
    let mut nodes: Vec<Node<'a>> = Vec::new();
    let mut places: HashMap<(Option<usize>, &str), usize> = HashMap::new();
    for (which, runs) in sides.iter().enumerate() {
        for (run, paths) in runs {
            let mut here: Vec<Option<usize>> = Vec::with_capacity(paths.len());
            for path in *paths {
                if path.is_role && !with_roles {
                    here.push(None);
                    continue;
                }
                let parent = path.parent.and_then(|parent| *here.get(parent)?);
                let at = *places.entry((parent, &path.name)).or_insert_with(|| {
                    let depth = parent.map_or(0, |parent: usize| nodes[parent].depth + 1);
                    nodes.push(Node {
                        name: &path.name,
                        is_role: path.is_role,
                        parent,
                        depth,
                        ..Node::default()
                    });
                    if let Some(parent) = parent {
                        let at = nodes.len() - 1;
                        nodes[parent].inside.push(at);
                    }
                    nodes.len() - 1
                });
                let of_side = &mut nodes[at].sides[which];
                let is_again = of_side.last().is_some_and(|(before, _)| before == run);
                of_side.push((run, path));
                nodes[at].is_mixed |= is_again;
                here.push(Some(at));
            }
        }
    }
    nodes
}

/// Places of the nodes, each before those inside it, which follow it.
fn outer_first(nodes: &[Node<'_>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let mut open: Vec<usize> = (0..nodes.len())
        .rev()
        .filter(|&at| nodes[at].parent.is_none())
        .collect();
    while let Some(at) = open.pop() {
        order.push(at);
        open.extend(nodes[at].inside.iter().rev());
    }
    order
}

/// The typical time of a call in both; `None` where a side does not have it.
fn figure(node: &Node<'_>, are_sets: bool, are_paired: bool, options: &Options) -> Option<Figure> {
    if node.is_mixed {
        return None;
    }
    if are_sets {
        let values = |which: usize| -> BTreeMap<&str, f64> {
            let runs = node.sides[which].iter();
            runs.filter_map(|(run, path)| Some((*run, path.side.call_ns?)))
                .collect()
        };
        let (a, b) = (values(0), values(1));
        let metric = metric(node.name, without_interval(*a.values().next()?));
        let of = |values| RunValues {
            metric: &metric,
            values,
        };
        return sets::figure(of(a), of(b), are_paired, options);
    }
    let metric_of = |which: usize| {
        let path = node.sides[which].first()?.1;
        let plain = without_interval(path.side.call_ns?);
        Some(metric(node.name, path.typical.clone().unwrap_or(plain)))
    };
    Some(figures::figure(&metric_of(0)?, &metric_of(1)?, options))
}

fn metric(name: &str, estimate: Estimate) -> Metric {
    Metric::new(name, "paths", name, estimate, "")
}

fn without_interval(ns: f64) -> Estimate {
    Estimate {
        value: ns,
        interval: Interval { lo: None, hi: None },
        level: 0.95,
        unit: "ns".to_owned(),
        method: String::new(),
        n: 0,
        n_effective: 0.0,
        notes: Vec::new(),
    }
}

/// Means over all runs of a side; a run without the path counts as 0.
fn mean(of: &[(&str, &PathFigure)], runs: f64, middle: Option<f64>) -> PathSide {
    let sides = || of.iter().map(|(_, path)| &path.side);
    let sum = |figure: fn(&PathSide) -> Option<f64>| sides().map(figure).sum::<Option<f64>>();
    PathSide {
        calls: sides().map(|side| side.calls).sum::<f64>() / runs,
        total_ns: sum(|side| side.total_ns).map(|sum| sum / runs),
        self_ns: sum(|side| side.self_ns).map(|sum| sum / runs),
        call_ns: middle.or_else(|| sides().next()?.call_ns.filter(|ns| *ns >= 0.0)),
    }
}

/// The verdict in words, or why there is none.
fn words(node: &Node<'_>, row: Option<&Row>, are_sets: bool) -> String {
    let [a, b] = &node.sides;
    let shares_name = || a.iter().chain(b).any(|(_, path)| path.shares_name);
    match row {
        _ if b.is_empty() => "only in A".to_owned(),
        _ if a.is_empty() => "only in B".to_owned(),
        // A name's interval is that of all its paths together.
        Some(row) if row.p.is_none() && !are_sets && shares_name() => {
            "cannot tell from one run: several paths have this name".to_owned()
        }
        Some(row) => row.words.clone(),
        None if node.is_role => "threads".to_owned(),
        None if node.is_mixed => "not compared: several roles on one side".to_owned(),
        None => "not compared".to_owned(),
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
