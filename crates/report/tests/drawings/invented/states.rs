//! Invented states of paths.

use undertick_document::{IntervalReport, PathStates, StateCondition, StateFact, StateReport};
use undertick_units::Estimate;

use super::{estimate, within};

/// Edges of the bins of all states, ns: 24 of a tenth of a decade, and the steps of a coarse clock
/// before them.
fn edges_ns() -> Vec<f64> {
    let steps = (1..10).map(|step| 20.0 * f64::from(step));
    let rest = (0..24).map(|tenths| 200.0 * 10_f64.powf(f64::from(tenths) / 10.0));
    steps.chain(rest).collect()
}

/// Calls around a median, most of them within a tenth of a decade.
fn counts(edges_ns: &[f64], calls: f64, median_ns: f64) -> Vec<u64> {
    let below = |ns: f64| 1.0 / (1.0 + (-10.0 * (ns / median_ns).ln()).exp());
    (edges_ns.windows(2))
        .map(|bin| (calls * (below(bin[1]) - below(bin[0]))) as u64)
        .collect()
}

/// States of the first path by what lies inside it and by the time, and of the last by a number.
pub(super) fn states(intervals: &[IntervalReport]) -> Vec<PathStates> {
    let condition = |fact, is, from, below| StateCondition {
        fact,
        of: intervals.last().map(|interval| interval.name.clone()),
        is,
        among: Vec::new(),
        from,
        below,
    };
    let share = |value: f64| Estimate {
        unit: "1".to_owned(),
        ..estimate(value, Some(value - 0.01), Some(value + 0.01), "share", 8000)
    };
    let state = |conditions, of: f64, median_ns: f64| StateReport {
        conditions,
        share: share(of),
        median: Some(within(median_ns, 0.02, "order statistics", 4000)),
        counts: counts(&edges_ns(), 8000.0 * of, median_ns),
    };
    let of = |path: usize, states| PathStates {
        path: path as u32,
        looked_at: 8000,
        explained: 0.62,
        edges_ns: edges_ns(),
        states,
    };
    let with = |is| condition(StateFact::With, Some(is), None, None);
    let time = |from, below| condition(StateFact::Time, None, from, below);
    let first = vec![
        state(vec![with(false), time(None, Some(1.2e9))], 0.5, 810.0),
        state(vec![with(false), time(Some(1.2e9), None)], 0.3, 930.0),
        state(vec![with(true)], 0.2, 5_800.0),
    ];
    let size = |from, below| condition(StateFact::Value, None, from, below);
    let last = vec![
        state(vec![size(None, Some(4096.0))], 0.7, 1_200.0),
        state(vec![size(Some(4096.0), None)], 0.3, 2_600.0),
    ];
    match intervals.len() {
        0 | 1 => Vec::new(),
        n => vec![of(0, first), of(n - 1, last)],
    }
}
