//! Compares the figures of two sets of runs.

use std::collections::{BTreeMap, HashSet};

use undertick_document::Warning;
use undertick_estimate::{Numbers, Versus, fewest_runs, paired_runs_versus, runs_versus};
use undertick_experiment::over;
use undertick_report::compare::FEW_RUNS;
use undertick_report::survey::Metric;
use undertick_units::{Estimate, Interval};

use super::figures::{Figure, MatchedFigures, lonely, two_units};
use super::input::{Run, Runs};
use super::{Options, gate, rounds};

/// Maximum number of figures that a warning names.
const MOST_NAMED: usize = 5;

/// Matches figures by name and compares them by the scatter between runs, or between rounds where
/// the two sides were recorded in turn.
pub(super) fn figures(a: &Runs, b: &Runs, options: &Options) -> MatchedFigures {
    let are_paired = rounds::are_of_one(&a.dir, &b.dir);
    let (ids_a, ids_b) = (ids(&a.runs), ids(&b.runs));
    let of_b: HashSet<&String> = ids_b.iter().collect();
    let mut found = MatchedFigures {
        figures: Vec::new(),
        are_paired,
        only_in_a: lonely(&ids_a, &ids_b),
        only_in_b: lonely(&ids_b, &ids_a),
        warnings: Vec::new(),
    };
    let (mut incomplete, mut below_cost) = (Vec::new(), Vec::new());
    for id in ids_a.iter().filter(|id| of_b.contains(id)) {
        let (in_a, in_b) = (RunValues::find(&a.runs, id), RunValues::find(&b.runs, id));
        let (Some(in_a), Some(in_b)) = (in_a, in_b) else {
            continue;
        };
        if in_a.metric.estimate.unit != in_b.metric.estimate.unit {
            found.warnings.push(two_units(in_a.metric, in_b.metric));
            continue;
        }
        if in_a.values.len() < a.runs.len() || in_b.values.len() < b.runs.len() {
            incomplete.push(id.clone());
        }
        if in_a.is_below_cost() && in_b.is_below_cost() {
            below_cost.push(id.clone());
            continue;
        }
        (found.figures).extend(figure(in_a, in_b, are_paired, options));
    }
    (found.warnings).extend(not_in_all(&incomplete));
    (found.warnings).extend(shorter_than_known(&below_cost));
    (found.warnings).extend(too_few(&found, 1.0 - options.alpha()));
    found
}

/// Names of figures, in the order in which runs first have them.
fn ids(runs: &[Run]) -> Vec<String> {
    let mut seen = HashSet::new();
    let all = runs.iter().flat_map(|run| &run.metrics);
    all.filter(|metric| seen.insert(&metric.id))
        .map(|metric| metric.id.clone())
        .collect()
}

/// The values of a figure in the runs that have it.
pub(super) struct RunValues<'a> {
    pub(super) metric: &'a Metric,
    /// Values by the name of the run.
    pub(super) values: BTreeMap<&'a str, f64>,
}

impl<'a> RunValues<'a> {
    fn find(runs: &'a [Run], id: &str) -> Option<Self> {
        let each = runs.iter().filter_map(|run| {
            let metric = run.metrics.iter().find(|metric| metric.id == id)?;
            (metric.estimate.value.is_finite()).then_some((run.name.as_str(), metric))
        });
        let each: Vec<(&str, &Metric)> = each.collect();
        Some(Self {
            metric: each.first()?.1,
            values: (each
                .iter()
                .map(|(name, metric)| (*name, metric.estimate.value)))
            .collect(),
        })
    }

    /// Whether more is subtracted for recording than was measured, in most runs: how much it took is
    /// not known, and twice of that is nothing either.
    fn is_below_cost(&self) -> bool {
        let below = self.values.values().filter(|value| **value < 0.0).count();
        self.metric.estimate.unit == "ns" && 2 * below >= self.values.len()
    }

    fn all(&self) -> Vec<f64> {
        self.values.values().copied().collect()
    }

    /// Values in the order of the rounds that both have.
    fn of_rounds(&self, other: &Self) -> Vec<f64> {
        let both = self
            .values
            .iter()
            .filter(|(name, _)| other.values.contains_key(*name));
        both.map(|(_, &value)| value).collect()
    }
}

/// Compares a figure of two sets; `None` where they have too few runs in common, or both are
/// shorter than the cost of recording is known.
pub(super) fn figure(
    a: RunValues<'_>,
    b: RunValues<'_>,
    are_paired: bool,
    options: &Options,
) -> Option<Figure> {
    if a.is_below_cost() && b.is_below_cost() {
        return None;
    }
    let (of_a, of_b) = match are_paired {
        true => (a.of_rounds(&b), b.of_rounds(&a)),
        false => (a.all(), b.all()),
    };
    let versus = |factor: f64| -> Option<Versus> {
        let times: Vec<f64> = of_a.iter().map(|x| x * factor).collect();
        match are_paired {
            true => paired_runs_versus(&times, &of_b, options.level),
            false => runs_versus(&times, &of_b, options.level),
        }
    };
    let unit = &a.metric.estimate.unit;
    let middle = |values: &[f64]| -> Option<Estimate> {
        let n = values.len() as u64;
        let found = over(&Numbers::new(values.to_vec()), n, options.level)?;
        let is_duration = a.metric.estimate.unit == "ns";
        Some(match is_duration && found.value < 0.0 {
            // The difference is not touched by this.
            true => Estimate {
                value: 0.0,
                interval: Interval {
                    lo: Some(0.0),
                    hi: found.interval.hi.map(|hi| hi.max(0.0)),
                },
                unit: unit.clone(),
                notes: vec!["more was subtracted for recording than it took".to_owned()],
                ..found
            },
            false => Estimate {
                unit: unit.clone(),
                ..found
            },
        })
    };
    let mut found = versus(1.0)?;
    found.difference.unit = unit.clone();
    Some(Figure {
        a: middle(&of_a)?,
        b: middle(&of_b)?,
        versus: found,
        gate_p: (options.gate).and_then(|share| gate::p(a.metric, share, versus)),
        runs: Some(of_a.len().min(of_b.len()) as u64),
        metric: a.metric.clone(),
    })
}

fn not_in_all(ids: &[String]) -> Option<Warning> {
    Some(Warning {
        code: "not_in_all_runs".to_owned(),
        text: format!(
            "not in every run, so fewer runs stand behind it: {}",
            listed(ids)?
        ),
    })
}

fn shorter_than_known(ids: &[String]) -> Option<Warning> {
    Some(Warning {
        code: "below_cost".to_owned(),
        text: format!(
            "below 0 in most runs of both sides, because more was subtracted than it took, so not compared: {}",
            listed(ids)?
        ),
    })
}

/// The first of these names, and how many more there are; `None` without any.
fn listed(ids: &[String]) -> Option<String> {
    let named: Vec<&str> = ids.iter().take(MOST_NAMED).map(String::as_str).collect();
    let more = match ids.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    (!ids.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

/// Warns that with few runs no figure among many can be called different.
fn too_few(found: &MatchedFigures, level: f64) -> Option<Warning> {
    let runs = found
        .figures
        .iter()
        .filter_map(|figure| figure.runs)
        .max()?;
    let figures = found.figures.len() as u64;
    let fewest = fewest_runs(figures, found.are_paired, level) as u64;
    let what = if found.are_paired { "rounds" } else { "runs" };
    (runs < fewest).then(|| Warning {
        code: FEW_RUNS.to_owned(),
        text: format!(
            "{runs} {what} are few: for one of {figures} figures to be called different by ranks it takes {fewest} at \
             least; make more, or look at fewer figures with --only"
        ),
    })
}

#[cfg(test)]
#[path = "sets_tests.rs"]
mod tests;
