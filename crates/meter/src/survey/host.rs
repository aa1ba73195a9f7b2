//! The machine, as the kernel describes it.

use undertick_clock::cpus;
use undertick_report::audit::Audit;
use undertick_report::survey::Host;

pub(super) fn here(audit: &Audit) -> Host {
    Host {
        hypervisor: audit.machine.hypervisor.clone(),
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        clock: audit.chosen.clone(),
        ..machine()
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The machine without what an audit of its clocks knows.
pub(crate) fn machine() -> Host {
    let uname = rustix::system::uname();
    let text = |c: &std::ffi::CStr| c.to_string_lossy().into_owned();
    Host {
        name: text(uname.nodename()),
        cpus: cpus::allowed().len() as u32,
        cpu_model: cpu_model(&read("/proc/cpuinfo")),
        arch: text(uname.machine()),
        kernel: text(uname.release()),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Host::default()
    }
}

/// The CPU model. x86 has a name; aarch64 has numbers for implementer and part, which distinguish
/// models equally well.
fn cpu_model(cpuinfo: &str) -> String {
    let value = |key: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(name, _)| name.trim() == key)?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    value("model name").unwrap_or_else(|| match (value("CPU implementer"), value("CPU part")) {
        (Some(implementer), Some(part)) => format!("implementer {implementer} part {part}"),
        _ => String::new(),
    })
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests;
