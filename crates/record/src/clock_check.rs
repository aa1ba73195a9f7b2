//! The short audit at the start of a recording: do the CPUs agree on the clock?

use std::time::Instant;

use undertick_clock::Source;
use undertick_clock::across::{self, Across, Effort};
use undertick_clock::facts::Facts;

use undertick_format::manifest::AcrossCpus;

/// Compares the recording clock on several CPUs: this takes 20 ms with eight of them. `None` if
/// the clock cannot be opened.
pub(crate) fn across_cpus(facts: &Facts) -> Option<AcrossCpus> {
    let begun = Instant::now();
    let source = Source::open(facts.clock).ok()?;
    let step = facts.granularity.map_or(1.0, |g| g.step_ticks);
    let across = across::measure(source, step, Effort::SHORT);
    let took_ns = begun.elapsed().as_nanos();
    Some(summary(&across, u64::try_from(took_ns).unwrap_or(u64::MAX)))
}

fn summary(across: &Across, took_ns: u64) -> AcrossCpus {
    let offsets = &across.offsets;
    let apart = offsets
        .iter()
        .filter(|o| !o.is_consistent() || !o.holds_zero());
    AcrossCpus {
        cpus: across.cpus.len() as u32,
        cpus_allowed: across.cpus_allowed as u32,
        offset_lo_ticks: offsets.iter().map(|o| o.lo_ticks).min(),
        offset_hi_ticks: offsets.iter().map(|o| o.hi_ticks).max(),
        offsets: offsets.len() as u32,
        cpus_apart: apart.count() as u32,
        readings: across.readings,
        backward: across.backward,
        worst_backward_ticks: across.worst_backward_ticks,
        took_ns,
    }
}

#[cfg(test)]
mod tests;
