//! Straight lines through the figures of several settings.

use std::collections::{BTreeMap, HashMap};

use undertick_document::{IntervalReport, LineReport};
use undertick_estimate::{RepeatedLine, repeated_line};
use undertick_units::{Estimate, Interval};

use super::Experiment;
use crate::script::{Line, Timed};

/// The settings through which one line goes.
struct Group<'a> {
    line: &'a Line,
    script: &'a str,
    /// The parameters that are constant along the line.
    others: BTreeMap<String, String>,
    /// The parameter's value and the figure, by setting.
    points: Vec<(f64, &'a IntervalReport)>,
}

/// The lines that the scripts ask for; `figures` says where the intervals of each setting lie.
pub(super) fn lines(
    experiment: &Experiment,
    figures: &HashMap<(usize, Timed), usize>,
    intervals: &[IntervalReport],
    level: f64,
) -> Vec<LineReport> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (index, (setting, _)) in experiment.settings().enumerate() {
        let script = experiment.script_of(index);
        for line in &setting.plan.lines {
            let Some(&at) = figures.get(&(index, line.of)) else {
                continue;
            };
            let others: BTreeMap<String, String> = (setting.parameters.iter())
                .filter(|(name, _)| *name != line.against)
                .cloned()
                .collect();
            let point = (line.x, &intervals[at]);
            let is_its = |g: &&mut Group<'_>| {
                g.line.name == line.name && g.script == script && g.others == others
            };
            match groups.iter_mut().find(is_its) {
                Some(group) => group.points.push(point),
                None => groups.push(Group {
                    line,
                    script,
                    others,
                    points: vec![point],
                }),
            }
        }
    }
    groups
        .iter()
        .filter_map(|group| report(group, level))
        .collect()
}

fn report(group: &Group<'_>, level: f64) -> Option<LineReport> {
    let common = common(group);
    let points: Vec<(f64, Vec<f64>)> = (group.points.iter())
        .map(|(x, interval)| (*x, values(interval, &common)))
        .collect();
    let found: RepeatedLine = repeated_line(&points, level)?;
    let line = group.line;
    let repetitions = common.len();
    let named = |estimate: Estimate, by: f64| Estimate {
        value: estimate.value * by,
        interval: Interval {
            lo: estimate.interval.lo.map(|lo| lo * by),
            hi: estimate.interval.hi.map(|hi| hi * by),
        },
        unit: "ns".to_owned(),
        method: format!(
            "weighted least squares in each of {repetitions} repetitions, {}",
            estimate.method
        ),
        ..estimate
    };
    Some(LineReport {
        name: line.name.clone(),
        script: group.script.to_owned(),
        parameters: group.others.clone(),
        of: group.points.first()?.1.name.clone(),
        against: line.against.clone(),
        per: line.per,
        slope: named(found.slope, line.per),
        intercept: named(found.intercept, 1.0),
        points: points.len() as u64,
        lack_of_fit_p: found.lack_of_fit.map(|lack| lack.p),
        worst_at: found.lack_of_fit.map(|lack| lack.worst_x),
        worst_share: found.lack_of_fit.map(|lack| lack.worst_share),
        includes: line.includes.clone(),
    })
}

/// Repetitions that all points have.
fn common(group: &Group<'_>) -> Vec<u32> {
    let of = |interval: &IntervalReport| -> Vec<u32> {
        let repeated = interval.repeated.iter();
        repeated
            .flat_map(|r| r.repetitions.iter().map(|f| f.repetition))
            .collect()
    };
    let mut all = group.points.iter().map(|(_, interval)| of(interval));
    let mut common = all.next().unwrap_or_default();
    for other in all {
        common.retain(|repetition| other.contains(repetition));
    }
    common
}

/// The figure to quote, in each of these repetitions.
fn values(interval: &IntervalReport, repetitions: &[u32]) -> Vec<f64> {
    let Some(repeated) = &interval.repeated else {
        return Vec::new();
    };
    let is_median = repeated.typical_is == "median";
    (repeated.repetitions.iter())
        .filter(|figure| repetitions.contains(&figure.repetition))
        .map(|figure| {
            if is_median {
                figure.median_ns
            } else {
                figure.mean_ns
            }
        })
        .collect()
}
