//! The newest version against those since the last change.

use undertick_estimate::fleet::adjusted;
use undertick_estimate::{ChangeOptions, Grouped, change_points, newest};
use undertick_report::history::{BenchmarkHistory, NewestVerdict, NewestVersion};

use super::{Measurement, Names, Options, Versions, ratio};

/// Fewest versions before the newest one that can judge it, of the same machines.
const FEWEST_BEFORE: usize = 5;

/// Compares the newest version of the whole history with those before it that the same machines measured
/// since the last change, in which it has no part; or says why it cannot.
pub(super) fn judge(
    measurements: &[Measurement],
    of: &Versions,
    names: &Names<'_>,
    wanted: &ChangeOptions,
    options: &Options,
) -> (Option<NewestVersion>, Option<String>) {
    match judged(measurements, of, names, wanted, options) {
        Ok(newest) => (Some(newest), None),
        Err(why) => (None, Some(why)),
    }
}

fn judged(
    measurements: &[Measurement],
    of: &Versions,
    names: &Names<'_>,
    wanted: &ChangeOptions,
    options: &Options,
) -> Result<NewestVersion, String> {
    let (_, before) = of.values.split_last().ok_or("it has no measurement")?;
    if of.versions.last().map(|last| last + 1) != Some(names.versions.len()) {
        return Err("the newest version has no measurement of it".to_owned());
    }
    let start = change_points(before, wanted)
        .last()
        .map_or(0, |change| change.at);
    let since = of.versions.get(start).copied().unwrap_or(0);
    let by_machines = on_machines_of_the_last(measurements);
    let values: Vec<Grouped> = (by_machines.iter())
        .filter(|(version, _)| *version >= since)
        .map(|&(_, value)| Grouped { group: 0, value })
        .collect();
    if values.len() <= FEWEST_BEFORE {
        let of_all = by_machines.len() - 1;
        return Err(match of_all {
            0 => "no earlier version was measured on the same machines (--machine gives runners a common name)"
                .to_owned(),
            n if n < FEWEST_BEFORE => format!("{n} earlier versions are too few: {FEWEST_BEFORE} are needed"),
            _ => format!("{} versions since the last change are too few: {FEWEST_BEFORE} are needed", values.len() - 1),
        });
    }
    let compared = |allowed| newest(&values, 1, allowed, wanted.level);
    let none = || "the versions before it have no scatter".to_owned();
    let found = compared(0.0).ok_or_else(none)?;
    let allowed = compared(options.allow.ln_1p()).ok_or_else(none)?;
    let p = (2.0 * found.p_above.min(1.0 - found.p_above)).clamp(0.0, 1.0);
    Ok(NewestVersion {
        version: names.versions[names.versions.len() - 1].to_owned(),
        ratio: ratio(
            found.difference,
            found.interval,
            values.len(),
            wanted.level,
            "mean logarithm of the newest version less that of those before it",
        ),
        p,
        adjusted_p: p,
        allowed_p: allowed.p_above,
        verdict: NewestVerdict::NoChangeFound,
        is_too_slow: false,
    })
}

/// The mean over the machines that measured the last version, of each version that all of them measured.
fn on_machines_of_the_last(of: &[Measurement]) -> Vec<(usize, f64)> {
    let Some(last) = of.last() else {
        return Vec::new();
    };
    let wanted: Vec<usize> = (of.iter().filter(|of| of.version == last.version))
        .map(|of| of.machine)
        .collect();
    of.chunk_by(|a, b| a.version == b.version)
        .filter_map(|of_version| {
            let on = of_version.iter().filter(|of| wanted.contains(&of.machine));
            let times: Vec<f64> = on.map(|of| of.ln_ns).collect();
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            (times.len() == wanted.len()).then_some((of_version[0].version, mean))
        })
        .collect()
}

/// Adjusts the chances for the number of benchmarks, and gives the verdicts.
pub(super) fn adjust(benchmarks: &mut [BenchmarkHistory], options: &Options) {
    let mut judged: Vec<&mut NewestVersion> = (benchmarks.iter_mut())
        .filter_map(|of| of.newest.as_mut())
        .collect();
    let chances = |of: fn(&NewestVersion) -> f64, judged: &[&mut NewestVersion]| {
        adjusted(&judged.iter().map(|one| of(one)).collect::<Vec<_>>())
    };
    let both = chances(|of| of.p, &judged);
    let allowed = chances(|of| of.allowed_p, &judged);
    for ((of, adjusted_p), allowed_p) in judged.iter_mut().zip(both).zip(allowed) {
        of.adjusted_p = adjusted_p;
        of.allowed_p = allowed_p;
        of.is_too_slow = allowed_p <= options.false_share;
        of.verdict = match of.ratio.value {
            _ if adjusted_p > options.false_share => NewestVerdict::NoChangeFound,
            ratio if ratio > 1.0 => NewestVerdict::Slower,
            _ => NewestVerdict::Faster,
        };
    }
}
