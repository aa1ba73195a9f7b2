//! Comparison of the surveys of many machines.
//!
//! **Question.** How do the machines of a fleet differ, which of them is unlike the others, and
//! what has changed since the last survey?
//!
//! **Method.** Files are read; nothing is measured. Machines are compared with those of the same
//! CPU model, if there are ten of it, by [`undertick_estimate::fleet`]. The comparison is on
//! logarithms where ratios are meaningful. It uses the scatter and the tails of the fleet itself
//! and each machine's own interval. False discoveries are controlled over machines, then over the
//! metrics of each. With earlier surveys each machine is compared with itself, so types do not
//! matter.
//!
//! **Caveats.** Metrics of single CPUs are not compared, because machines have different numbers of
//! CPUs. The slowest CPU and the spread are included.

mod drift;
mod gather;
mod metrics;

use std::collections::BTreeMap;
use std::path::Path;

use undertick_document::Warning;
use undertick_estimate::fleet::{FEWEST, Outliers, Quantity};
use undertick_report::fleet::{Fleet, HostRow, KIND, Lacking, OutlyingHost, SCHEMA_VERSION, Type};

pub use gather::{Gathered, Host, gather};
use metrics::{Against, Table, reason};

/// Mean share of false discoveries among the machines found, at most.
pub const FALSE_SHARE: f64 = 0.05;
/// A metric counts as lacking only if at least this share of the machines has it.
const USUAL: f64 = 0.5;

/// Compares the fleet in a directory, and with that in another directory if one is given.
///
/// # Errors
/// A directory cannot be read, or no survey is in it.
pub fn fleet(directory: &Path, against: Option<&Path>, level: f64) -> Result<Fleet, String> {
    let now = gather(directory)?;
    let then = against.map(gather).transpose()?;
    Ok(of_gathered(now, then, level))
}

/// Compares fleets whose surveys were already read.
#[must_use]
pub fn of_gathered(now: Gathered, then: Option<Gathered>, level: f64) -> Fleet {
    let table = Table::from_hosts(&now.hosts);
    let mut types = types(&now.hosts);
    let of_type: Vec<usize> = (now.hosts.iter())
        .map(|host| {
            let model = &host.survey.host.cpu_model;
            types
                .iter()
                .position(|t| t.cpu_model == *model)
                .unwrap_or(0)
        })
        .collect();
    let mut found = Judged::default();
    for (index, of) in types.iter_mut().enumerate() {
        of.compared = of.hosts as usize >= FEWEST;
        let members: Vec<usize> = (0..now.hosts.len())
            .filter(|&h| of_type[h] == index)
            .collect();
        let outliers = of.compared.then(|| table.outliers(&members));
        found.parts.push((members, outliers));
    }
    let discovered = found.over_all_types();
    let versions = versions(&now.hosts);
    let hosts: Vec<HostRow> = (now.hosts.iter().enumerate())
        .map(|(h, host)| HostRow {
            host: host.name.clone(),
            file: host.file.clone(),
            of_type: of_type[h],
            slowness: found.score(h, |o| &o.slowness).map(f64::exp),
            noise: found.score(h, |o| &o.noise).map(f64::exp),
            is_outlier: discovered.iter().any(|d| d.machine == h),
            other_version: Some(&host.survey.host.tool_version)
                .filter(|version| versions.first().is_some_and(|(usual, _)| usual != *version))
                .cloned(),
        })
        .collect();
    let outlying = discovered.iter().map(|outlier| OutlyingHost {
        host: now.hosts[outlier.machine].name.clone(),
        of_type: of_type[outlier.machine],
        p: outlier.p,
        adjusted_p: outlier.adjusted,
        reasons: (outlier.findings.iter())
            .map(|finding| reason(&table, finding, outlier.machine, Against::Others))
            .collect(),
    });
    let is_out = |metric: usize, host: usize| {
        (discovered.iter().filter(|d| d.machine == host)).any(|d| {
            d.findings
                .iter()
                .any(|f| f.quantity == Quantity::Column(metric))
        })
    };
    Fleet {
        schema_version: SCHEMA_VERSION,
        kind: KIND.to_owned(),
        directory: now.directory.clone(),
        confidence: level,
        false_share: FALSE_SHARE,
        metrics: table.distributions(&found.parts, is_out),
        outliers: outlying.collect(),
        hosts,
        lacking: lacking(&now.hosts, &table),
        versions,
        drift: then.map(|then| drift::drift(&now, then, level)),
        warnings: warnings(&now, &types),
        unreadable: now.unreadable,
        types,
    }
}

/// The findings for each type.
#[derive(Default)]
struct Judged {
    /// Machines of the type, and the findings about them.
    parts: Vec<(Vec<usize>, Option<Outliers>)>,
}

impl Judged {
    fn score(&self, host: usize, of: fn(&Outliers) -> &Vec<Option<f64>>) -> Option<f64> {
        self.parts.iter().find_map(|(members, found)| {
            let at = members.iter().position(|&m| m == host)?;
            *of(found.as_ref()?).get(at)?
        })
    }

    /// The control of false discoveries holds within each type, and so over all.
    fn over_all_types(&self) -> Vec<undertick_estimate::fleet::Outlier> {
        let mut all: Vec<_> = (self.parts.iter())
            .filter_map(|(members, found)| Some((members, found.as_ref()?)))
            .flat_map(|(members, found)| {
                found.machines.iter().map(|outlier| {
                    let mut outlier = outlier.clone();
                    outlier.machine = members[outlier.machine];
                    outlier
                })
            })
            .collect();
        all.sort_by(|a, b| a.adjusted.total_cmp(&b.adjusted).then(a.p.total_cmp(&b.p)));
        all
    }
}

/// CPU models, the most frequent first.
fn types(hosts: &[Host]) -> Vec<Type> {
    let models = hosts.iter().map(|h| h.survey.host.cpu_model.clone());
    let counted = counted(models);
    (counted.into_iter())
        .map(|(cpu_model, hosts)| Type {
            cpu_model,
            hosts,
            compared: false,
        })
        .collect()
}

fn versions(hosts: &[Host]) -> Vec<(String, u64)> {
    counted(hosts.iter().map(|h| h.survey.host.tool_version.clone()))
}

/// How often each text occurs, the most frequent first.
fn counted(texts: impl Iterator<Item = String>) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    let mut all: Vec<(String, u64)> = counts.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    all
}

/// Machines that lack metrics that most machines have.
fn lacking(hosts: &[Host], table: &Table) -> Vec<Lacking> {
    let usual = table.usual(USUAL);
    (hosts.iter().enumerate())
        .filter_map(|(h, host)| {
            let metrics: Vec<String> = (usual.iter())
                .filter(|&&metric| !table.has(metric, h))
                .map(|&metric| table.id(metric).to_owned())
                .collect();
            let survey = &host.survey;
            let why = metrics.first().map(|id| match survey.interrupted {
                true => "its survey was interrupted".to_owned(),
                false => survey
                    .missing
                    .iter()
                    .find(|m| covers(&m.id, id))
                    .map_or(String::new(), |m| m.why.clone()),
            })?;
            Some(Lacking {
                host: host.name.clone(),
                metrics,
                why,
            })
        })
        .collect()
}

/// Whether a missing entry covers this metric: the same id, or `group.*`.
fn covers(missing: &str, id: &str) -> bool {
    missing == id
        || missing
            .strip_suffix('*')
            .is_some_and(|group| id.starts_with(group))
}

fn warnings(now: &Gathered, types: &[Type]) -> Vec<Warning> {
    let mut warnings = now.warnings.clone();
    let mut warn = |code: &str, text: String| {
        warnings.push(Warning {
            code: code.to_owned(),
            text,
        });
    };
    if !types.iter().any(|t| t.compared) {
        warn(
            "too_few",
            format!(
                "no type has {FEWEST} machines: who is out of the ordinary cannot be told; gather more surveys"
            ),
        );
    }
    let interrupted = now.hosts.iter().filter(|h| h.survey.interrupted).count();
    if interrupted > 0 {
        warn(
            "interrupted",
            format!(
                "{interrupted} surveys were interrupted: their machines lack metrics or have fewer repetitions"
            ),
        );
    }
    warnings
}

#[cfg(test)]
mod tests;
