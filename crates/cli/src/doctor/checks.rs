//! What each finding means for a recording, and its mend.

use std::fs;
use std::io;
use std::path::PathBuf;

use undertick_clock::facts::Facts;
use undertick_clock::{Choice, TscUnavailable, Unavailable, Why};
use undertick_document::figures;
use undertick_format::TraceError;
use undertick_format::manifest::{Descheduled, KernelSource};
use undertick_record::session::Session;
use undertick_report::doctor::{Check, CheckState};

use super::limits::MemoryLimit;

use CheckState::{Fails, Limited};

/// The kernel with which the tests are made, and the one from which growing rings get their pages at
/// once.
const TESTED: (u32, u32) = (4, 18);
const POPULATES: (u32, u32) = (5, 14);
/// Files that a recording has open beside those for each CPU.
const FILES: u64 = 64;
const FILES_OF_A_CPU: u64 = 4;

pub fn kernel(release: &str) -> Check {
    let check = Check::works("kernel", format!("Linux {release}"));
    match version(release) {
        Some(version) if version < TESTED => check.but(
            Limited,
            "Undertick is not tested with this version.",
            "use Linux 4.18 or later (under `setarch --uname-2.6` the version is false: run without it)",
        ),
        Some(version) if version < POPULATES => check.but(
            Limited,
            "Growing rings get their pages from `fallocate`, which takes longer.",
            "use Linux 5.14 or later",
        ),
        _ => check,
    }
}

/// A number of bytes, e.g. `1.5 GiB`.
fn bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes >> shift > 0);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(shift, unit)| format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
    )
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub fn clock(found: Result<&(Choice, Facts), &str>) -> Check {
    let (choice, facts) = match found {
        Ok(found) => found,
        Err(why) => {
            return Check::works("clock", why).but(
                Fails,
                "No clock can be read: nothing can be recorded.",
                "unset UNDERTICK_CLOCK if it is set; `undertick clock` lists the clocks and what is wrong with each",
            );
        }
    };
    let mut words = vec![choice.to_string()];
    if let Some(step) = facts.granularity {
        let step_ns = step.step_ticks * facts.rate.claim.rate.ns_per_tick();
        words.push(format!("step {}", figures::duration(step_ns)));
    }
    if let Some(cost) = facts.read_cost {
        words.push(format!(
            "a reading {}",
            figures::duration(cost.cost_ns_median)
        ));
    }
    let check = Check::works("clock", words.join(", "));
    let Why::Fallback(Unavailable::Tsc(why)) = choice.why else {
        return check;
    };
    let mend = match why {
        TscUnavailable::NotX86 => return check,
        TscUnavailable::Disabled => "run undertick outside the sandbox that sets PR_SET_TSC",
        TscUnavailable::NotInvariant => {
            "in a virtual machine pass the flag on (QEMU: -cpu host,+invtsc), otherwise another CPU"
        }
        TscUnavailable::KernelSaysUnstable => {
            "read the reason: sudo dmesg | grep -i tsc. Only if it is a false alarm, boot with the kernel \
             parameters clocksource=tsc tsc=reliable, which switch the kernel's own check off"
        }
    };
    check.but(
        Limited,
        "Each event costs a reading of the kernel's clock: some times that of the counter, or a hundred times \
         where it is a system call (clocksource hpet or acpi_pm).",
        mend,
    )
}

/// `allowed`: those that this process may use at once, by its affinity and a quota of its cgroup.
pub fn cpus(allowed: usize, by_affinity: usize, online: usize) -> Check {
    let check = Check::works("CPUs", format!("{allowed} of {online} may be used"));
    match (allowed, by_affinity, online) {
        (2.., ..) => check,
        (_, 2.., _) => check.but(
            Limited,
            "The quota of the cgroup stops program and recorder together whenever it is used up.",
            "allow two: docker run --cpus=2, CPUQuota=200% of systemd",
        ),
        (_, _, 2..) => check.but(
            Limited,
            TURNS,
            "allow two: taskset -c 0,1, docker run --cpuset-cpus=0,1, AllowedCPUs=0-1 of systemd",
        ),
        _ => check.but(Limited, TURNS, "use a machine with two CPUs"),
    }
}

const TURNS: &str =
    "Program and recorder take turns on one CPU: the program is interrupted to empty the rings.";
/// A budget from which on most bursts of events find room.
const AMPLE_BYTES: u64 = 128 << 20;

/// `is_asked`: UNDERTICK_DIR names the directory.
pub fn rings(session: Result<&Session, &TraceError>, is_asked: bool) -> Check {
    const NAME: &str = "rings";
    let mend = match is_asked {
        true => "unset UNDERTICK_DIR, or set it to a writable directory on a tmpfs with more room",
        false => {
            "docker run --shm-size=2g; mount -o remount,size=2g /dev/shm (root); or set UNDERTICK_DIR to a \
             directory on another tmpfs"
        }
    };
    match session {
        Ok(session) => {
            let parent = session.dir().parent().unwrap_or(session.dir());
            let budget = session.budget_bytes();
            let found = format!("in {}, up to {} together", parent.display(), bytes(budget));
            match session.warnings.as_slice() {
                [] if budget >= AMPLE_BYTES => Check::works(NAME, found),
                [] => Check::works(NAME, found).but(
                    Limited,
                    format!("A burst of over {} million events loses some.", (budget >> 20) / 16),
                    mend,
                ),
                warnings => Check::works(NAME, format!("{found}: {}", warnings.join("; "))).but(
                    Limited,
                    "If that directory is on a disk, the program may wait for it; small rings lose events.",
                    mend,
                ),
            }
        }
        Err(error) => Check::works(NAME, error.to_string()).but(
            Fails,
            "A program has no memory to record to.",
            mend,
        ),
    }
}

pub fn memory(limit: Option<MemoryLimit>, budget_bytes: u64) -> Check {
    const NAME: &str = "memory limit";
    let Some(limit) = limit else {
        return Check::works(NAME, "none for this cgroup");
    };
    let free = limit.most_bytes.saturating_sub(limit.used_bytes);
    let (most, available) = (bytes(limit.most_bytes), bytes(free));
    let found = format!("{most} for this cgroup, {available} available");
    match free < budget_bytes {
        true => Check::works(NAME, found).but(
            Limited,
            format!(
                "Rings may grow to {}: after a burst of events the OOM killer may end the program.",
                bytes(budget_bytes)
            ),
            format!(
                "undertick record --budget {}M, or a higher limit (docker run --memory=4g, MemoryMax=4G of \
                 systemd)",
                (free >> 22).max(1)
            ),
        ),
        false => Check::works(NAME, found),
    }
}

pub fn open_files(most: Option<u64>, cpus: usize) -> Check {
    const NAME: &str = "open files";
    let needed = FILES + FILES_OF_A_CPU * cpus as u64;
    match most {
        Some(most) if most < needed => Check::works(NAME, format!("at most {most}")).but(
            Limited,
            format!("Kernel events on {cpus} CPUs need about {needed}: beyond the limit there are none."),
            format!(
                "ulimit -n {}; where the hard limit is lower: docker run --ulimit nofile=4096, LimitNOFILE=4096 \
                 of systemd",
                needed.max(1024)
            ),
        ),
        Some(most) => Check::works(NAME, format!("at most {most}")),
        None => Check::works(NAME, "no limit"),
    }
}

pub fn descheduled(flag: Descheduled, tunables: Option<&str>) -> Check {
    const NAME: &str = "descheduled flag";
    match flag {
        Descheduled::AnyDeschedule => Check::works(
            NAME,
            "marks each record before which its thread left its CPU",
        ),
        Descheduled::PreemptionOnly => Check::works(
            NAME,
            "marks each record before which its thread was preempted",
        ),
        Descheduled::Unavailable => {
            let is_off = tunables.is_some_and(|text| text.contains("glibc.pthread.rseq=0"));
            Check::works(NAME, "none: the C library has not registered rseq").but(
                Limited,
                "Without kernel events it is not known whether a thread left its CPU during a span.",
                match is_off {
                    true => "remove glibc.pthread.rseq=0 from GLIBC_TUNABLES",
                    false => {
                        "use glibc 2.35 and Linux 4.18, or later ones, for undertick and for the program; a \
                         sandbox must allow rseq"
                    }
                },
            )
        }
    }
}

/// What decides whether the kernel allows perf events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfRights {
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Option<i32>,
    /// A seccomp filter is around this process.
    pub is_filtered: bool,
}

impl PerfRights {
    pub fn here() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            paranoid: text("/proc/sys/kernel/perf_event_paranoid")
                .trim()
                .parse()
                .ok(),
            is_filtered: (text("/proc/self/status").lines())
                .any(|line| line.starts_with("Seccomp:") && line.trim_end().ends_with('2')),
        }
    }

    /// The mend for a refusal in these words.
    fn mend(&self, why: &str) -> &'static str {
        let is_strict = self.paranoid.is_some_and(|level| level > 2);
        // EACCES comes from the setting, and a filter gives EPERM or ENOSYS.
        let is_by_setting = is_strict && (why.contains("os error 13") || !self.is_filtered);
        match why {
            _ if why.contains("too many open files") => "ulimit -n 4096",
            _ if why.contains("locked") => MORE_LOCKED,
            _ if is_by_setting => {
                "sysctl -w kernel.perf_event_paranoid=2 (root; on the host, not in a container), or record as \
                 root"
            }
            _ if self.is_filtered => {
                "allow perf_event_open in the seccomp filter: docker run --cap-add PERFMON (Docker 23, Linux \
                 5.8), or --security-opt seccomp=FILE with a profile that allows it"
            }
            _ if why.contains("no perf events") => "use a kernel with CONFIG_PERF_EVENTS",
            _ => "record as root, or with CAP_PERFMON (Linux 5.8)",
        }
    }
}

const MORE_LOCKED: &str =
    "ulimit -l unlimited, or sysctl -w kernel.perf_event_mlock_kb=16384 (root)";

/// A source of kernel events.
pub fn source(source: &KernelSource, rights: &PerfRights) -> Check {
    let why = source.why.as_str();
    let (name, works, consequence) = match source.name.as_str() {
        "perf" => (
            "perf",
            "context switches of the program's threads",
            "Without tracefs either, it is not known for how long a thread lost its CPU: that time is not \
             subtracted.",
        ),
        "tracefs" => (
            "tracefs",
            "switches, wake-ups, interrupts, softirqs, page faults, with names",
            "No interrupts, softirqs, wake-ups or page faults as evidence.",
        ),
        _ => (
            "steal time",
            "counters of /proc/stat, 0 where the hypervisor reports none",
            "Time that a hypervisor takes cannot be seen.",
        ),
    };
    match (source.used, name) {
        (true, "perf") if !why.is_empty() => Check::works(name, format!("{works}; {why}")).but(
            Limited,
            "Context switches are missing after bursts of them.",
            MORE_LOCKED,
        ),
        (true, _) if why.is_empty() => Check::works(name, works),
        (true, _) => Check::works(name, format!("{works}; {why}")),
        (false, _) => {
            let mend = match name {
                "perf" => rights.mend(why),
                "tracefs" if why.contains("container") => {
                    "run undertick and the program on the host, or docker run --pid=host --privileged"
                }
                "tracefs" if why.contains("cannot be mounted") => {
                    "mount -t tracefs nodev /sys/kernel/tracing (root), and record as root; a kernel with \
                     CONFIG_TRACING"
                }
                "tracefs" => "record as root",
                _ => "use a kernel whose /proc/stat has the steal column",
            };
            Check::works(name, format!("not used: {why}")).but(Limited, consequence, mend)
        }
    }
}

/// The directory in which the costs of recording are kept, and whether it can be written;
/// `None`: there is none.
pub fn calibration(kept: Option<(PathBuf, io::Result<()>)>) -> Check {
    const NAME: &str = "calibration";
    let found = match kept {
        Some((directory, Ok(()))) => {
            let found = format!("kept in {} until the next boot", directory.display());
            return Check::works(NAME, found);
        }
        Some((directory, Err(error))) => {
            format!("cannot be kept in {}: {error}", directory.display())
        }
        None => "cannot be kept: neither HOME nor XDG_CACHE_HOME is an absolute path".to_owned(),
    };
    Check::works(NAME, found).but(
        Limited,
        "Each recording measures its cost again, for about a second.",
        "set XDG_CACHE_HOME to the absolute path of a writable directory",
    )
}

#[cfg(test)]
mod tests;
