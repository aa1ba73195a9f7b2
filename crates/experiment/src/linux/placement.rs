//! Assigns a CPU to each process of a repetition.

use std::path::Path;

use crate::script::{Placement, Plan};

/// The placement of one replica of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CpuPlacement {
    /// Wherever the scheduler puts it.
    Free,
    /// On this CPU.
    One(usize),
    /// On one of these CPUs.
    Among(Vec<usize>),
}

impl CpuPlacement {
    /// The CPU, where it is fixed.
    pub(crate) fn cpu(&self) -> Option<usize> {
        match self {
            Self::One(cpu) => Some(*cpu),
            _ => None,
        }
    }
}

/// The CPUs of a machine, as far as a script can refer to them.
#[derive(Clone, Debug)]
pub(crate) struct Cpus {
    /// CPUs that this process may use, ascending.
    allowed: Vec<usize>,
    /// Per allowed CPU: the CPUs of its core, itself included.
    cores: Vec<Vec<usize>>,
    /// The allowed CPUs that share a last-level cache, by their lowest.
    clusters: Vec<Vec<usize>>,
}

impl Cpus {
    pub(crate) fn here() -> std::io::Result<Self> {
        let set = rustix::thread::sched_getaffinity(None)?;
        let allowed: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect();
        let cores = allowed.iter().map(|&cpu| core_of(cpu)).collect();
        let clusters = clusters(&allowed, shares_last_cache);
        Ok(Self {
            allowed,
            cores,
            clusters,
        })
    }

    #[cfg(test)]
    pub(crate) fn from_cores(cores: &[&[usize]]) -> Self {
        let mut all: Vec<(usize, Vec<usize>)> = (cores.iter())
            .flat_map(|core| core.iter().map(|&cpu| (cpu, core.to_vec())))
            .collect();
        all.sort();
        let (allowed, cores): (Vec<usize>, _) = all.into_iter().unzip();
        Self {
            clusters: vec![allowed.clone()],
            allowed,
            cores,
        }
    }

    /// CPUs that can be used, ascending.
    pub(crate) fn all(&self) -> &[usize] {
        &self.allowed
    }

    pub(crate) fn count(&self) -> usize {
        self.allowed.len()
    }

    /// Returns the placement of each replica of each process. A free place to which others refer
    /// changes from repetition to repetition.
    ///
    /// # Errors
    /// What the machine lacks.
    pub(crate) fn assign(
        &self,
        plan: &Plan,
        repetition: u32,
    ) -> Result<Vec<Vec<CpuPlacement>>, String> {
        (0..plan.processes.len())
            .map(|p| {
                (0..plan.processes[p].replicas)
                    .map(|n| self.placement(plan, p, n as usize, repetition as usize))
                    .collect()
            })
            .collect()
    }

    fn placement(
        &self,
        plan: &Plan,
        p: usize,
        n: usize,
        repetition: usize,
    ) -> Result<CpuPlacement, String> {
        let referred = plan
            .processes
            .iter()
            .any(|other| reference(&other.place) == Some(p));
        let beside = |q: usize| {
            let placement = self.placement(plan, q, n, repetition)?;
            placement
                .cpu()
                .ok_or_else(|| format!("process {} has no CPU of its own", plan.processes[q].name))
        };
        let of = &plan.processes[p];
        // One of several CPUs, where others refer to it.
        let among = |cpus: &[usize]| match cpus {
            [cpu] => CpuPlacement::One(*cpu),
            _ if referred => CpuPlacement::One(cpus[(repetition + n) % cpus.len()]),
            _ => CpuPlacement::Among(cpus.to_vec()),
        };
        Ok(CpuPlacement::One(match &of.place {
            Placement::Any if !referred => return Ok(CpuPlacement::Free),
            Placement::Any => self.allowed[(repetition + n) % self.allowed.len()],
            Placement::Cpus(cpus) => {
                if let Some(missing) = cpus.iter().find(|cpu| !self.allowed.contains(cpu)) {
                    return Err(format!(
                        "process {} is to run on CPU {missing}; CPUs that can be used here: {:?}",
                        of.name, self.allowed
                    ));
                }
                return Ok(among(cpus));
            }
            Placement::Cluster(cluster) => {
                let cpus = self.clusters.get(*cluster).ok_or_else(|| {
                    format!(
                        "process {} is to run in cluster {cluster}, and CPUs that share a last-level cache form {} here: {:?}",
                        of.name,
                        self.clusters.len(),
                        self.clusters
                    )
                })?;
                return Ok(among(cpus));
            }
            Placement::SameCpu(q) => beside(*q)?,
            Placement::OtherCpu(q) => self.next(beside(*q)?, |_| true).ok_or_else(|| {
                format!(
                    "process {} is to run on another CPU, and there is only one that can be used",
                    of.name
                )
            })?,
            Placement::SameCore(q) => {
                let cpu = beside(*q)?;
                let core = self.core(cpu);
                self.next(cpu, |other| core.contains(&other)).ok_or_else(|| {
                    format!("process {} is to run on another thread of the core of CPU {cpu}, which has only one here", of.name)
                })?
            }
            Placement::OtherCore(q) => {
                let cpu = beside(*q)?;
                let core = self.core(cpu);
                self.next(cpu, |other| !core.contains(&other)).ok_or_else(|| {
                    format!("process {} is to run on another core than CPU {cpu}, and there is none that can be used", of.name)
                })?
            }
        }))
    }

    fn core(&self, cpu: usize) -> &[usize] {
        let at = self.allowed.iter().position(|&c| c == cpu);
        at.map_or(&[], |at| &self.cores[at])
    }

    /// The next suitable CPU after this one, cyclically.
    fn next(&self, cpu: usize, good: impl Fn(usize) -> bool) -> Option<usize> {
        let at = self.allowed.iter().position(|&c| c == cpu)?;
        let n = self.allowed.len();
        (1..n)
            .map(|i| self.allowed[(at + i) % n])
            .find(|&c| good(c))
    }
}

const fn reference(place: &Placement) -> Option<usize> {
    match place {
        Placement::SameCpu(q)
        | Placement::OtherCpu(q)
        | Placement::SameCore(q)
        | Placement::OtherCore(q) => Some(*q),
        Placement::Any | Placement::Cpus(_) | Placement::Cluster(_) => None,
    }
}

/// The CPUs of this CPU's core, as the kernel reports them; only itself if it does not.
fn core_of(cpu: usize) -> Vec<usize> {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let text = std::fs::read_to_string(Path::new(&file)).unwrap_or_default();
    let cpus = list(text.trim());
    if cpus.contains(&cpu) { cpus } else { vec![cpu] }
}

/// Groups CPUs, ascending, by the list of CPUs that each shares its last-level cache with. CPUs of
/// which that is not known form one group.
fn clusters(allowed: &[usize], shares: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for &cpu in allowed {
        let with = shares(cpu);
        match groups.iter_mut().find(|(of, _)| *of == with) {
            Some((_, cpus)) => cpus.push(cpu),
            None => groups.push((with, vec![cpu])),
        }
    }
    groups.into_iter().map(|(_, cpus)| cpus).collect()
}

/// The CPUs with which this one shares its highest cache, as the kernel reports them; none if it
/// does not.
fn shares_last_cache(cpu: usize) -> Vec<usize> {
    let read = |index: usize, file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{file}");
        std::fs::read_to_string(path).ok()
    };
    let level = |index: usize| read(index, "level")?.trim().parse::<u32>().ok();
    let last = (0..).map_while(|index| Some((level(index)?, index))).max();
    let shared = last.and_then(|(_, index)| read(index, "shared_cpu_list"));
    shared.map_or_else(Vec::new, |text| list(text.trim()))
}

/// CPUs of a list like `0,2-3`; entries that are not numbers are ignored.
fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        match part.split_once('-') {
            Some((from, to)) => Some(from.parse().ok()?..=to.parse().ok()?),
            None => part.parse().ok().map(|cpu| cpu..=cpu),
        }
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Restricts the calling thread to this placement.
pub(crate) fn restrict_to(placement: &CpuPlacement) -> std::io::Result<()> {
    let cpus: &[usize] = match placement {
        CpuPlacement::Free => return Ok(()),
        CpuPlacement::One(cpu) => std::slice::from_ref(cpu),
        CpuPlacement::Among(cpus) => cpus,
    };
    let mut set = rustix::thread::CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests;
