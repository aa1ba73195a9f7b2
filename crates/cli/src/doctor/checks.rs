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
            "take Linux 4.18 or later; if this is one, `setarch --uname-2.6` is around this program: \
             leave it out",
        ),
        Some(version) if version < POPULATES => check.but(
            Limited,
            "Growing rings get their pages from `fallocate`, which takes longer.",
            "take Linux 5.14 or later",
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
                "There is no time to record.",
                "unset UNDERTICK_CLOCK, or name another clock in it; undertick clock lists them",
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
        TscUnavailable::Disabled => "start undertick outside of the sandbox that sets PR_SET_TSC",
        TscUnavailable::NotInvariant => {
            "in a virtual machine pass the flag on (QEMU: -cpu host,+invtsc), otherwise another CPU"
        }
        TscUnavailable::KernelSaysUnstable => {
            "see why in `dmesg | grep -i tsc`; clocksource=tsc tsc=reliable at boot if the counters of \
             the CPUs agree"
        }
    };
    check.but(
        Limited,
        "A reading costs two to four times that of the counter.",
        mend,
    )
}

pub fn cpus(allowed: usize, online: usize) -> Check {
    let check = Check::works("CPUs", format!("{allowed} of {online} may be used"));
    match allowed {
        0 | 1 => check.but(
            Limited,
            "Program and recorder take turns on one CPU: the program is interrupted to empty the rings.",
            match online {
                0 | 1 => "take a machine with two CPUs",
                _ => "allow two (taskset, docker --cpus or --cpuset-cpus, CPUQuota= of systemd)",
            },
        ),
        _ => check,
    }
}

pub fn rings(session: Result<&Session, &TraceError>) -> Check {
    const NAME: &str = "rings";
    let more_room = "mount -o remount,size=2g /dev/shm (root), docker run --shm-size=2g, or a directory \
                     in memory in UNDERTICK_DIR";
    match session {
        Ok(session) => {
            let parent = session.dir().parent().unwrap_or(session.dir());
            let budget = bytes(session.budget_bytes());
            let found = format!("in {}, up to {budget} together", parent.display());
            match session.warnings.as_slice() {
                [] => Check::works(NAME, found),
                warnings => Check::works(NAME, format!("{found}: {}", warnings.join("; "))).but(
                    Limited,
                    "Rings on a disk may make the program wait for it, and small ones lose events.",
                    more_room,
                ),
            }
        }
        Err(error) => Check::works(NAME, error.to_string()).but(
            Fails,
            "A program has no memory to record to.",
            more_room,
        ),
    }
}

pub fn memory(limit: Option<MemoryLimit>, budget_bytes: u64) -> Check {
    const NAME: &str = "memory limit";
    let Some(limit) = limit else {
        return Check::works(NAME, "none for this control group");
    };
    let free = limit.most_bytes.saturating_sub(limit.used_bytes);
    let check = Check::works(
        NAME,
        format!(
            "{} for this control group, {} of them free",
            bytes(limit.most_bytes),
            bytes(free)
        ),
    );
    match free < budget_bytes {
        true => check.but(
            Limited,
            format!(
                "Rings may grow to {}: a burst of events may end the program for lack of memory.",
                bytes(budget_bytes)
            ),
            format!(
                "record --budget {}M, or a higher limit (memory.max, docker --memory, MemoryMax=)",
                (free >> 22).max(1)
            ),
        ),
        false => check,
    }
}

pub fn open_files(most: Option<u64>, cpus: usize) -> Check {
    const NAME: &str = "open files";
    let needed = FILES + FILES_OF_A_CPU * cpus as u64;
    match most {
        Some(most) if most < needed => Check::works(NAME, format!("at most {most}")).but(
            Limited,
            format!("A recording with kernel events on {cpus} CPUs needs about {needed}."),
            format!("ulimit -n {}", needed.max(1024)),
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
                    false => "take Linux 4.18 with glibc 2.35, or later ones, for the program as well",
                },
            )
        }
    }
}

/// What the kernel allows this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Option<i32>,
    /// A filter of system calls (seccomp) is around this process.
    pub is_filtered: bool,
    /// Process numbers are those of the machine.
    pub has_own_numbers: bool,
}

impl Rights {
    pub fn here() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let status = text("/proc/self/status");
        let namespaces = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        Self {
            paranoid: text("/proc/sys/kernel/perf_event_paranoid")
                .trim()
                .parse()
                .ok(),
            is_filtered: (status.lines())
                .any(|line| line.starts_with("Seccomp:") && line.trim_end().ends_with('2')),
            has_own_numbers: namespaces.is_some_and(|ids| ids.split_whitespace().count() > 1),
        }
    }
}

/// A source of kernel events.
pub fn source(source: &KernelSource, rights: &Rights) -> Check {
    let (name, works, consequence) = match source.name.as_str() {
        "perf" => (
            "perf",
            "context switches of the program's threads",
            "Without tracefs either, a slow span cannot be distinguished from a disturbed one.",
        ),
        "tracefs" => (
            "tracefs",
            "switches, wake-ups, interrupts, softirqs, page faults, with names",
            "No interrupts, softirqs, wake-ups or page faults as evidence.",
        ),
        _ => (
            "steal time",
            "time that the hypervisor took",
            "Time that a hypervisor takes cannot be seen.",
        ),
    };
    if source.used {
        let found = match source.why.as_str() {
            "" => works.to_owned(),
            why => format!("{works} ({why})"),
        };
        return Check::works(name, found);
    }
    let mend = match name {
        "perf" if rights.is_filtered => {
            "allow perf_event_open in the filter of system calls (docker run --security-opt \
             seccomp=PROFILE, or --cap-add PERFMON)"
        }
        "perf" if rights.paranoid.is_some_and(|level| level > 2) => {
            "sysctl kernel.perf_event_paranoid=2 (root)"
        }
        "perf" => "record as root, or with CAP_PERFMON; a kernel with CONFIG_PERF_EVENTS",
        "tracefs" if rights.has_own_numbers || source.why.contains("container") => {
            "record outside of the container, or docker run --pid=host --privileged"
        }
        "tracefs" if source.why.contains("not mounted") => {
            "mount -t tracefs nodev /sys/kernel/tracing (root)"
        }
        "tracefs" => {
            "record as root, or give a group the right (root, until the next boot): chgrp -R GROUP \
             /sys/kernel/tracing; chmod -R g+rwX /sys/kernel/tracing"
        }
        _ => {
            "nothing where there is no hypervisor; otherwise a kernel that counts it in /proc/stat"
        }
    };
    Check::works(name, format!("not used: {}", source.why)).but(Limited, consequence, mend)
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
        None => "cannot be kept: neither HOME nor XDG_CACHE_HOME names a directory".to_owned(),
    };
    Check::works(NAME, found).but(
        Limited,
        "Each recording measures its own cost again, for some seconds.",
        "name a directory that can be written in XDG_CACHE_HOME",
    )
}

#[cfg(test)]
mod tests;
