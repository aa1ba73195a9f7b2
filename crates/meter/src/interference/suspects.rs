//! Records the CPU use of processes, and finds those whose use goes with the probe's slowness.
//!
//! The CPU time of every process and the busy time of every CPU are read from time to time (from
//! `/proc`, which any user may read). Between two looks each has a use, and the probe has a state:
//! the share of its bursts that were slowed. A process that slows the probe uses more while it is
//! slow. That is association, not proof: a process that runs in step with the real disturber looks
//! the same. The figures on which a name rests are therefore reported with it.

use std::collections::{BTreeMap, HashMap};

use super::correlation::Regression;
use super::cpu_time::cpu_time_ns;

/// A possible user of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuUser {
    /// The processes of that name.
    Processes(String),
    /// Everything that ran on that CPU, whether its process was seen or not.
    Cpu(usize),
    /// What the hypervisor ran in place of that CPU.
    Steal(usize),
}

/// A look: CPU time used so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// Time of the look, ns of the trace clock.
    pub at_ns: f64,
    /// CPU time of each process, by its number, because a kernel worker changes its name with its
    /// work.
    pub processes: HashMap<i32, Process>,
    /// For each CPU: how long it was busy, and stolen, ns.
    pub cpus: Vec<(CpuUser, f64)>,
}

/// A process.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// CPU time, ns; in the kernel's ticks where the process's clock cannot be read.
    pub ns: f64,
    /// Time of the reading, ns of the trace clock.
    pub at_ns: f64,
    /// CPU on which it last ran.
    pub cpu: Option<usize>,
}

/// Looks at all processes except this one and its children; calls `at_ns` before and after.
#[must_use]
pub fn look(mut at_ns: impl FnMut() -> f64) -> Look {
    let us = std::process::id() as i32;
    let tick_ns = 1e9 / rustix::param::clock_ticks_per_second() as f64;
    let before = at_ns();
    let mut processes = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat"));
        if let Some((process, parent)) = stat.ok().and_then(|text| parse_stat(&text, tick_ns))
            && pid != us
            && parent != us
        {
            let at_ns = at_ns();
            let ns = cpu_time_ns(pid).unwrap_or(process.ns);
            processes.insert(
                pid,
                Process {
                    ns,
                    at_ns,
                    ..process
                },
            );
        }
    }
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    Look {
        at_ns: f64::midpoint(before, at_ns()),
        processes,
        cpus: parse_cpu_times(&stat, tick_ns).collect(),
    }
}

/// Parses a process and its parent from the text of `/proc/PID/stat`. A name may contain any
/// character, so the fields are counted from its last bracket.
fn parse_stat(text: &str, tick_ns: f64) -> Option<(Process, i32)> {
    let (head, fields) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |i: usize| fields.get(i)?.parse::<f64>().ok();
    let process = Process {
        name: name.to_owned(),
        ns: (number(11)? + number(12)?) * tick_ns,
        at_ns: f64::NAN,
        cpu: fields.get(36).and_then(|f| f.parse().ok()),
    };
    Some((process, fields.get(1)?.parse().ok()?))
}

/// Busy and stolen time of each CPU, ns.
fn parse_cpu_times(text: &str, tick_ns: f64) -> impl Iterator<Item = (CpuUser, f64)> {
    text.lines().flat_map(move |line| {
        let mut words = line.split_whitespace();
        let number =
            (words.next()).and_then(|word| word.strip_prefix("cpu")?.parse::<usize>().ok());
        let values: Vec<f64> = words.map_while(|w| w.parse().ok()).collect();
        let of = number.filter(|_| values.len() >= 8).map(|cpu| {
            // user, nice, system, idle, iowait, irq, softirq, steal.
            let busy = values[0] + values[1] + values[2] + values[5] + values[6];
            [
                (CpuUser::Cpu(cpu), busy * tick_ns),
                (CpuUser::Steal(cpu), values[7] * tick_ns),
            ]
        });
        of.into_iter().flatten()
    })
}

/// CPU use between two looks, CPUs; processes of one name are added up.
#[must_use]
pub fn use_between(before: &Look, after: &Look) -> BTreeMap<CpuUser, f64> {
    let ns = after.at_ns - before.at_ns;
    let mut uses = BTreeMap::new();
    if ns <= 0.0 {
        return uses;
    }
    for (pid, now) in &after.processes {
        // A process that was not there before has used all of it since. If the use has decreased,
        // another process has the same number.
        let then = before.processes.get(pid).map_or(0.0, |process| process.ns);
        let used = if now.ns < then { now.ns } else { now.ns - then };
        let user = CpuUser::Processes(now.name.clone());
        *uses.entry(user).or_insert(0.0) += used / ns;
    }
    for (user, now) in &after.cpus {
        if let Some((_, then)) = before.cpus.iter().find(|(cpu, _)| cpu == user) {
            uses.insert(user.clone(), (now - then) / ns);
        }
    }
    uses
}

/// A process or CPU whose use goes with the slowness.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspect {
    /// The process or CPU.
    pub user: CpuUser,
    /// CPUs used while all bursts were slowed, by a straight line.
    pub use_when_slow: f64,
    /// CPUs used while none was.
    pub use_when_clean: f64,
    /// Correlation between use and slowness.
    pub correlation: f64,
    /// Number of intervals between looks on which this is based.
    pub stretches: usize,
}

/// Minimum excess of use in slow intervals, CPUs: below it there is no suspect.
const LEAST_USE: f64 = 0.1;
/// Minimum correlation.
const LEAST_CORRELATION: f64 = 0.5;
/// Probability at most that an unrelated use agrees so well with the slowness, for each candidate.
const FALSE_ALARM: f64 = 1e-4;

/// Finds the processes and CPUs that are used more while the probe is slowed. Each of the
/// `stretches` has a share of slowed time and the use of each. The best comes first; the list is
/// empty if nothing changed ([`Regression::fit`]).
#[must_use]
pub fn suspects(stretches: &[(f64, BTreeMap<CpuUser, f64>)]) -> Vec<Suspect> {
    let everybody: std::collections::BTreeSet<&CpuUser> =
        stretches.iter().flat_map(|(_, uses)| uses.keys()).collect();
    let slow: Vec<f64> = stretches.iter().map(|(slow, _)| *slow).collect();
    let mut found: Vec<Suspect> = (everybody.into_iter())
        .filter_map(|user| {
            let uses: Vec<f64> = (stretches.iter())
                .map(|(_, uses)| uses.get(user).copied().unwrap_or(0.0))
                .collect();
            let line = Regression::fit(&slow, &uses)?;
            let suspect = Suspect {
                user: user.clone(),
                use_when_slow: line.at(1.0),
                use_when_clean: line.at(0.0),
                correlation: line.correlation,
                stretches: slow.len(),
            };
            let much = suspect.use_when_slow - suspect.use_when_clean >= LEAST_USE;
            (much && line.correlation >= LEAST_CORRELATION && line.p_value < FALSE_ALARM)
                .then_some(suspect)
        })
        .collect();
    found.sort_by(|a, b| b.correlation.total_cmp(&a.correlation));
    found
}

#[cfg(test)]
mod tests;
