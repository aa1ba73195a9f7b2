//! CPU time of processes, to the nanosecond, sampled frequently.
//!
//! The kernel's files give it in ticks of 10 ms. The CPU clock of a process gives it exactly, to
//! any user, by one system call. Processes that use a CPU can therefore be read every few
//! milliseconds, and their activity is known burst by burst.

use std::collections::{BTreeMap, HashMap};

use super::suspects::{CpuUser, Look};

/// CPU time of one process at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Glance {
    pub(super) pid: i32,
    /// Time of the reading, ns of the trace clock.
    pub(super) at_ns: f64,
    pub(super) used_ns: f64,
}

/// CPU time so far of a process and all its threads, ns; `None` where there is no such process.
pub(super) fn cpu_time_ns(pid: i32) -> Option<f64> {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both write to live locals alone.
    let is_told = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    is_told.then_some(time.tv_sec as f64 * 1e9 + time.tv_nsec as f64)
}

/// Maximum number of processes that are read.
const MOST: usize = 32;
/// A process becomes a candidate after an interval in which it used this much, CPUs.
const LEAST_USE: f64 = 0.01;

/// The processes that have used a CPU, and their readings over time.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Total use of each.
    used_ns: HashMap<i32, f64>,
    pub(super) glances: Vec<Glance>,
}

impl Candidates {
    /// Adds every process that used a CPU between these two looks. If there are too many, those
    /// with the highest use stay.
    pub(super) fn choose(&mut self, before: &Look, after: &Look) {
        let ns = after.at_ns - before.at_ns;
        self.used_ns
            .retain(|pid, _| after.processes.contains_key(pid));
        for (pid, now) in &after.processes {
            let then = before.processes.get(pid).map_or(0.0, |process| process.ns);
            let used = (now.ns - then).max(0.0);
            if used >= LEAST_USE * ns || self.used_ns.contains_key(pid) {
                *self.used_ns.entry(*pid).or_default() += used;
            }
        }
        if self.used_ns.len() > MOST {
            let mut all: Vec<(i32, f64)> = self.used_ns.drain().collect();
            all.sort_by(|a, b| b.1.total_cmp(&a.1));
            self.used_ns.extend(all.into_iter().take(MOST));
        }
    }

    /// Reads the CPU time of all candidates.
    pub(super) fn glance(&mut self, at_ns: impl Fn() -> f64) {
        let asked = self.used_ns.keys().filter_map(|&pid| {
            Some(Glance {
                pid,
                at_ns: at_ns(),
                used_ns: cpu_time_ns(pid)?,
            })
        });
        self.glances.extend(asked);
    }
}

/// CPU time used between two moments by one process.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    from_ns: f64,
    to_ns: f64,
    used_ns: f64,
}

/// Time of the reading, total use so far, ns, and the name if a look gave it.
type Reading<'a> = (f64, f64, Option<&'a str>);

/// The use of the processes of each name, piece by piece.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuTimes(BTreeMap<CpuUser, Vec<Piece>>);

impl CpuTimes {
    pub(super) fn from_readings(looks: &[Look], glances: &[Glance]) -> Self {
        let mut readings: HashMap<i32, Vec<Reading<'_>>> = HashMap::new();
        let mut before = f64::NAN;
        for look in looks {
            for (pid, process) in &look.processes {
                let of = readings.entry(*pid).or_default();
                if of.is_empty() && !before.is_nan() {
                    of.push((before, 0.0, None)); // it has begun since
                }
                of.push((process.at_ns, process.ns, Some(&process.name)));
            }
            before = look.at_ns;
        }
        for glance in glances {
            let of = readings.entry(glance.pid).or_default();
            of.push((glance.at_ns, glance.used_ns, None));
        }
        let mut times: BTreeMap<CpuUser, Vec<Piece>> = BTreeMap::new();
        for of in readings.values_mut() {
            of.sort_by(|a, b| a.0.total_cmp(&b.0));
            // A kernel worker changes its name with its work. What it used before a look belongs to
            // the name it had at that look.
            let mut name = of.iter().rev().find_map(|reading| reading.2);
            for pair in of.windows(2).rev() {
                name = pair[1].2.or(name);
                let ((from_ns, then, _), (to_ns, now, _)) = (pair[0], pair[1]);
                // If the use has decreased, another process has the same number.
                let used_ns = if now < then { now } else { now - then };
                if let Some(name) = name.filter(|_| used_ns > 0.0 && to_ns > from_ns) {
                    let user = CpuUser::Processes(name.to_owned());
                    times.entry(user).or_default().push(Piece {
                        from_ns,
                        to_ns,
                        used_ns,
                    });
                }
            }
        }
        Self(times)
    }

    /// All processes that used CPU time.
    pub(super) fn everybody(&self) -> impl Iterator<Item = &CpuUser> {
        self.0.keys()
    }

    /// CPUs used in each of these successive times, given as from and to, ns.
    pub(super) fn used(&self, user: &CpuUser, times: &[(f64, f64)]) -> Vec<f64> {
        let mut used = vec![0.0; times.len()];
        for piece in self.0.get(user).into_iter().flatten() {
            let first = times.partition_point(|(_, to)| *to <= piece.from_ns);
            let inside = times[first..].iter().zip(&mut used[first..]);
            for ((from, to), used) in inside.take_while(|((from, _), _)| *from < piece.to_ns) {
                let both_ns = to.min(piece.to_ns) - from.max(piece.from_ns);
                *used += both_ns / (piece.to_ns - piece.from_ns) * piece.used_ns / (to - from);
            }
        }
        used
    }

    /// Of the CPUs used from one time to another, the amount that may have been used before or
    /// after: the use between two readings cannot be located.
    pub(super) fn unsure(&self, user: &CpuUser, (from, to): (f64, f64)) -> f64 {
        let pieces = self.0.get(user).into_iter().flatten();
        let cut = pieces.filter(|piece| {
            let lies_across = |at: f64| piece.from_ns < at && at < piece.to_ns;
            lies_across(from) || lies_across(to)
        });
        cut.map(|piece| piece.used_ns).sum::<f64>() / (to - from)
    }
}

#[cfg(test)]
mod tests;
