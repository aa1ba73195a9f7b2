//! Comparison with earlier surveys of the same machines.

use std::collections::HashMap;

use undertick_estimate::fleet::{Figure, Wanted, adjusted, change, outliers};
use undertick_report::fleet::{Drift, MetricDrift, OutlyingHost};
use undertick_report::survey::Scale;

use super::gather::Gathered;
use super::metrics::{Against, Table, WANTED, column, figure, reason};

/// Compares each machine that is in both with itself.
pub(super) fn drift(now: &Gathered, then: Gathered, level: f64) -> Drift {
    let before: HashMap<&str, usize> = (then.hosts.iter().enumerate())
        .map(|(h, host)| (host.name.as_str(), h))
        .collect();
    let both: Vec<(usize, usize)> = (now.hosts.iter().enumerate())
        .filter_map(|(h, host)| Some((h, *before.get(host.name.as_str())?)))
        .collect();
    let (table, earlier) = (
        Table::from_hosts(&now.hosts),
        Table::from_hosts(&then.hosts),
    );
    let changes: Vec<Vec<Option<Figure>>> = (0..table.len())
        .map(|metric| {
            let place = earlier.place(table.id(metric));
            let of = |&(h, b): &(usize, usize)| {
                let now = figure(table.metric(metric, h)?)?;
                let then = figure(earlier.metric(place?, b)?)?;
                Some(Figure {
                    value: now.value - then.value,
                    error: now.error.hypot(then.error),
                })
            };
            both.iter().map(of).collect()
        })
        .collect();
    let columns: Vec<_> = (changes.iter().enumerate())
        .map(|(metric, figures)| column(table.about(metric), figures.clone()))
        .collect();
    // A machine with wide intervals is noisy now, which does not show a change.
    let wanted = Wanted {
        noise_floor: None,
        ..WANTED
    };
    let found = outliers(&columns, wanted);
    let changed = found.machines.iter().map(|outlier| {
        let (host, _) = both[outlier.machine];
        OutlyingHost {
            host: now.hosts[host].name.clone(),
            of_type: 0,
            p: outlier.p,
            adjusted_p: outlier.adjusted,
            reasons: (outlier.findings.iter())
                .map(|finding| reason(&table, finding, host, Against::Before))
                .collect(),
        }
    });
    Drift {
        directory: then.directory.clone(),
        hosts: both.len() as u64,
        only_now: (now.hosts.len() - both.len()) as u64,
        only_then: (then.hosts.len() - both.len()) as u64,
        changed: changed.collect(),
        metrics: of_metrics(&table, &changes, level),
        unreadable: then.unreadable,
    }
}

/// The change of the median machine in each metric.
fn of_metrics(table: &Table, changes: &[Vec<Option<Figure>>], level: f64) -> Vec<MetricDrift> {
    let mut all: Vec<MetricDrift> = (changes.iter().enumerate())
        .filter_map(|(metric, figures)| {
            let values: Vec<f64> = figures.iter().flatten().map(|f| f.value).collect();
            let found = change(&values, level)?;
            let about = table.about(metric);
            let back: fn(f64) -> f64 = match about.scale {
                Scale::Ratio => f64::exp,
                Scale::Difference => |x| x,
            };
            Some(MetricDrift {
                id: about.id.clone(),
                name: about.name.clone(),
                hosts: found.n as u64,
                change: back(found.value),
                interval: [found.lo, found.hi].map(|bound| bound.map(back)),
                p: found.p,
                adjusted_p: 1.0,
                changed: false,
                scale: about.scale,
                unit: about.estimate.unit.clone(),
            })
        })
        .collect();
    let adjusted = adjusted(&all.iter().map(|m| m.p).collect::<Vec<_>>());
    for (metric, adjusted_p) in all.iter_mut().zip(adjusted) {
        metric.adjusted_p = adjusted_p;
        metric.changed = adjusted_p <= WANTED.false_share;
    }
    all
}
