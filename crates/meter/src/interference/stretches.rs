//! The times between two looks at the use of the CPUs, and the bursts in each.

use std::collections::BTreeMap;

use super::analysis::Seen;
use super::suspects::{CpuUser, Look, Suspect, suspects, use_between};

/// A process that used less of the probe's CPU than this is not reported as the busiest, CPUs.
const LEAST_NAMED: f64 = 0.002;

/// The times between looks at the use of the CPUs, with the bursts in each.
pub(super) struct Stretches {
    /// Indices of bursts, and CPU use.
    all: Vec<(Vec<usize>, BTreeMap<CpuUser, f64>)>,
    /// CPU on which processes of a name were seen most.
    pub(super) cpus: BTreeMap<CpuUser, usize>,
}

impl Stretches {
    pub(super) fn new(looks: &[Look], seen: &[Seen<'_>]) -> Self {
        let all = looks.windows(2).map(|pair| {
            let (from, to) = (pair[0].at_ns, pair[1].at_ns);
            let inside = |s: &Seen<'_>| (from..to).contains(&s.burst.begun_ns);
            let bursts = (0..seen.len()).filter(|&i| inside(&seen[i])).collect();
            (bursts, use_between(&pair[0], &pair[1]))
        });
        let mut counts: BTreeMap<(CpuUser, usize), f64> = BTreeMap::new();
        for pair in looks.windows(2) {
            for (pid, process) in &pair[1].processes {
                let then = pair[0].processes.get(pid).map_or(0.0, |p| p.ns);
                if let Some(cpu) = process.cpu {
                    let user = CpuUser::Processes(process.name.clone());
                    *counts.entry((user, cpu)).or_default() += (process.ns - then).max(0.0);
                }
            }
        }
        let mut cpus: BTreeMap<CpuUser, (usize, f64)> = BTreeMap::new();
        for ((user, cpu), ns) in counts {
            let best = cpus.entry(user).or_insert((cpu, ns));
            if ns > best.1 {
                *best = (cpu, ns);
            }
        }
        Self {
            all: all.collect(),
            cpus: cpus
                .into_iter()
                .map(|(user, (cpu, _))| (user, cpu))
                .collect(),
        }
    }

    /// The process that used most of a CPU, and how much of it, CPUs.
    pub(super) fn busiest_on(&self, cpu: Option<usize>) -> Option<(&str, f64)> {
        let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
        for (user, used) in self.all.iter().flat_map(|(_, uses)| uses) {
            if let (CpuUser::Processes(name), true) = (user, self.cpus.get(user) == cpu.as_ref()) {
                *totals.entry(name).or_insert(0.0) += used / self.all.len() as f64;
            }
        }
        let busiest = totals.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        busiest.filter(|(_, used)| *used >= LEAST_NAMED)
    }

    /// Suspects for a state of which each burst has a share.
    pub(super) fn suspects(&self, state: &[f64]) -> Vec<Suspect> {
        suspects(&self.with(state))
    }

    /// The times that contain bursts, with the mean of a quantity of these bursts.
    fn with(&self, state: &[f64]) -> Vec<(f64, BTreeMap<CpuUser, f64>)> {
        let with_bursts = self.all.iter().filter(|(bursts, _)| !bursts.is_empty());
        with_bursts
            .map(|(bursts, uses)| {
                let mean = bursts.iter().map(|&i| state[i]).sum::<f64>() / bursts.len() as f64;
                (mean, uses.clone())
            })
            .collect()
    }
}
