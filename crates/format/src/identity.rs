//! Identities of clocks: two clocks with one identity need no map.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_clock::ClockId;

/// What distinguishes a clock from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockIdentity {
    /// `tsc`, `monotonic_raw`, ...
    pub clock: String,
    /// The kernel's identifier of this boot; absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The shifts of the kernel's clocks by a time namespace, seconds and nanoseconds. Namespaces
    /// with the same shifts have the same clocks. Where the shifts cannot be read, this is the
    /// namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_namespace: Option<String>,
}

impl ClockIdentity {
    /// The identity of a clock of this machine, read by this process.
    #[must_use]
    pub fn here(clock: ClockId) -> Self {
        let read = |path: &str| {
            let text = std::fs::read_to_string(path).ok()?;
            let words: Vec<&str> = text.split_whitespace().collect();
            (!words.is_empty()).then(|| words.join(" "))
        };
        // Counters are read without the kernel, so it cannot shift them.
        let is_shifted = !matches!(clock, ClockId::Tsc | ClockId::Cntvct);
        let namespace = || {
            read("/proc/self/timens_offsets").or_else(|| {
                let link = std::fs::read_link("/proc/self/ns/time").ok()?;
                Some(link.display().to_string())
            })
        };
        Self {
            clock: clock.name().to_owned(),
            boot_id: read("/proc/sys/kernel/random/boot_id"),
            time_namespace: if is_shifted { namespace() } else { None },
        }
    }

    /// Whether readings of both are certainly readings of one clock.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.boot_id.is_some() && self == other
    }

    /// Whether the rate of this clock is steered, so that it wanders more than a crystal does.
    #[must_use]
    pub fn is_steered(&self) -> bool {
        !matches!(self.clock.as_str(), "tsc" | "cntvct" | "monotonic_raw")
    }
}

#[cfg(test)]
mod tests;
