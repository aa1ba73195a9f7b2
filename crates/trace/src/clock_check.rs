//! The short audit at the start of a recording: do the CPUs agree on the clock?

use std::time::Instant;

use undertick_clock::Source;
use undertick_clock::across::{self, Across, Effort};
use undertick_clock::facts::Facts;

use crate::manifest::AcrossCpus;

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
mod tests {
    use super::*;
    use undertick_clock::across::Offset;

    #[test]
    fn the_widest_bounds_and_the_cpus_apart_are_kept() {
        let offset = |cpu, lo_ticks, hi_ticks| Offset {
            cpu,
            reference_cpu: 0,
            lo_ticks,
            hi_ticks,
            exchanges: 9,
        };
        let across = Across {
            cpus_allowed: 64,
            cpus: vec![0, 1, 2, 3],
            // One CPU in agreement, one apart by 40 or more, one moving.
            offsets: vec![offset(1, -100, 90), offset(2, 40, 250), offset(3, 20, -20)],
            readings: 10,
            backward: 2,
            worst_backward_ticks: 7,
        };
        let kept = summary(&across, 5);
        assert_eq!(
            (kept.offset_lo_ticks, kept.offset_hi_ticks),
            (Some(-100), Some(250))
        );
        assert_eq!(kept.offsets, 3);
        assert_eq!((kept.cpus, kept.cpus_allowed, kept.cpus_apart), (4, 64, 2));
        assert_eq!(
            (kept.backward, kept.worst_backward_ticks, kept.took_ns),
            (2, 7, 5)
        );
    }
}
