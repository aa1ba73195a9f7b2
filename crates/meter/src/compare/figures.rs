//! Matches the figures of two documents.

use std::collections::{HashMap, HashSet};

use undertick_document::Warning;
use undertick_estimate::{Versus, versus};
use undertick_report::compare::Side;
use undertick_report::survey::Metric;
use undertick_units::{Estimate, Interval};

use super::{Options, gate};

/// A figure that both sides have.
pub(super) struct Figure {
    /// Describes the figure; the estimate in it is that of the first side.
    pub(super) metric: Metric,
    pub(super) a: Estimate,
    pub(super) b: Estimate,
    pub(super) versus: Versus,
    /// Probability that chance alone makes it look slower than the gate allows.
    pub(super) gate_p: Option<f64>,
    /// Runs of each side, or rounds; `None` for documents.
    pub(super) runs: Option<u64>,
}

/// The matched figures of two sides.
pub(super) struct MatchedFigures {
    pub(super) figures: Vec<Figure>,
    pub(super) are_paired: bool,
    pub(super) only_in_a: Vec<String>,
    pub(super) only_in_b: Vec<String>,
    pub(super) warnings: Vec<Warning>,
}

/// Matches figures by name and compares them by their intervals alone.
pub(super) fn of_documents(a: &Side, b: &Side, options: &Options) -> MatchedFigures {
    let of_b: HashMap<&str, &Metric> = b.metrics.iter().map(|m| (m.id.as_str(), m)).collect();
    let pairs = (a.metrics.iter()).filter_map(|of_a| Some((of_a, *of_b.get(of_a.id.as_str())?)));
    let (same, other): (Vec<_>, Vec<_>) =
        pairs.partition(|(a, b)| a.estimate.unit == b.estimate.unit);
    let ids = |of: &Side| of.metrics.iter().map(|m| m.id.clone()).collect::<Vec<_>>();
    MatchedFigures {
        figures: same.iter().map(|(a, b)| figure(a, b, options)).collect(),
        are_paired: false,
        only_in_a: lonely(&ids(a), &ids(b)),
        only_in_b: lonely(&ids(b), &ids(a)),
        warnings: other.iter().map(|(a, b)| two_units(a, b)).collect(),
    }
}

/// Compares a figure of two documents.
pub(super) fn figure(a: &Metric, b: &Metric, options: &Options) -> Figure {
    let level = options.level;
    let of_a = |factor: f64| Some(versus(&times(&a.estimate, factor), &b.estimate, level));
    Figure {
        metric: a.clone(),
        a: a.estimate.clone(),
        b: b.estimate.clone(),
        versus: versus(&a.estimate, &b.estimate, level),
        gate_p: options.gate.and_then(|share| gate::p(a, share, of_a)),
        runs: None,
    }
}

fn times(estimate: &Estimate, factor: f64) -> Estimate {
    let times = |bound: Option<f64>| bound.map(|bound| bound * factor);
    Estimate {
        value: estimate.value * factor,
        interval: Interval {
            lo: times(estimate.interval.lo),
            hi: times(estimate.interval.hi),
        },
        ..estimate.clone()
    }
}

/// Names that the other side lacks.
pub(super) fn lonely(ids: &[String], others: &[String]) -> Vec<String> {
    let others: HashSet<&String> = others.iter().collect();
    let alone = ids.iter().filter(|id| !others.contains(id));
    alone.cloned().collect()
}

pub(super) fn two_units(a: &Metric, b: &Metric) -> Warning {
    Warning {
        code: "units".to_owned(),
        text: format!(
            "{} is in {:?} in A and in {:?} in B: not compared",
            a.id, a.estimate.unit, b.estimate.unit
        ),
    }
}
