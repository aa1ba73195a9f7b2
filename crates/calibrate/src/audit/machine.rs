//! What the clocks depend on: hypervisor, clock source, suspend, time namespace.

use undertick_clock::{ClockId, Source, cpus};
use undertick_report::audit::Machine;

/// The machine at the begin of the audit.
pub(super) struct Before {
    cpu_times: Option<CpuTimes>,
}

impl Before {
    pub(super) fn look() -> Self {
        Self {
            cpu_times: CpuTimes::now(),
        }
    }

    /// Describes the machine, and what changed since the begin.
    pub(super) fn compare(&self) -> Machine {
        let steal_share = self.cpu_times.as_ref().and_then(|before| {
            let now = CpuTimes::now()?;
            let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
            Some(now.steal.saturating_sub(before.steal) as f64 / all as f64)
        });
        let shifts = read("/proc/self/timens_offsets").map(|text| Shifts::parse(&text));
        Machine {
            cpus: cpus::allowed().len(),
            hypervisor: hypervisor(),
            clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .map(|text| text.trim().to_owned()),
            steal_share,
            suspended_s: suspended_s(shifts),
            monotonic_shift_s: shifts.map(|shifts| shifts.monotonic_s),
        }
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Shifts of the clocks in a time namespace, s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Shifts {
    monotonic_s: f64,
    boottime_s: f64,
}

impl Shifts {
    /// Parses lines of the form `monotonic SECONDS NANOSECONDS`.
    fn parse(text: &str) -> Self {
        let mut shifts = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, s, ns] = words[..] else { continue };
            let (Ok(s), Ok(ns)) = (s.parse::<f64>(), ns.parse::<f64>()) else {
                continue;
            };
            match name {
                "monotonic" => shifts.monotonic_s = s + ns / 1e9,
                "boottime" => shifts.boottime_s = s + ns / 1e9,
                _ => {}
            }
        }
        shifts
    }
}

/// Time spent suspended, s: boot time less monotonic time, each without the shift of the namespace.
fn suspended_s(shifts: Option<Shifts>) -> Option<f64> {
    let shifts = shifts.unwrap_or_default();
    let now_s = |clock| Some(Source::open(clock).ok()?.read_ticks() as f64 / 1e9);
    let monotonic_s = now_s(ClockId::Monotonic)? - shifts.monotonic_s;
    let boottime_s = now_s(ClockId::Boottime)? - shifts.boottime_s;
    Some((boottime_s - monotonic_s).max(0.0)).map(|s| if s < 1e-3 { 0.0 } else { s })
}

/// The first line of `/proc/stat`.
struct CpuTimes {
    all: u64,
    steal: u64,
}

impl CpuTimes {
    fn now() -> Option<Self> {
        Self::parse(&read("/proc/stat")?)
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| line.starts_with("cpu "))?;
        let times: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .filter_map(|word| word.parse().ok())
            .collect();
        // Guest times, from the ninth column on, are already contained in the user times.
        Some(Self {
            all: times.iter().take(8).sum(),
            steal: *times.get(7)?,
        })
    }
}

/// The hypervisor's name as CPUID gives it.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    const PRESENT: u32 = 1 << 31;
    if __cpuid(1).ecx & PRESENT == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let name = [leaf.ebx, leaf.ecx, leaf.edx]
        .map(u32::to_le_bytes)
        .concat();
    let name: String = name
        .iter()
        .filter(|b| b.is_ascii_graphic())
        .map(|b| char::from(*b))
        .collect();
    Some(usual_name(&name).to_owned())
}

/// The usual name of a hypervisor that identifies itself by this string.
#[cfg(target_arch = "x86_64")]
fn usual_name(name: &str) -> &str {
    match name {
        "" => "a hypervisor without a name",
        "KVMKVMKVM" => "KVM",
        "MicrosoftHv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        other => other,
    }
}

/// The hypervisor's name as the device tree or the firmware gives it.
#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<String> {
    read("/sys/hypervisor/type").map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests;
