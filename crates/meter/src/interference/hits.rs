//! Separates hits on single samples from what slows all samples for a while.
//!
//! An interrupt or a time off the CPU makes one block long and leaves its neighbours as they were;
//! another user of the memory makes all of them long. A sample that is much longer than *both* its
//! neighbours was therefore hit. The cause is a loss of the CPU if the recorder's mark says that
//! the thread was taken off its CPU, and unknown otherwise.

use super::bursts::{Burst, Sample, TakenOff};

/// The cause of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The thread was taken off its CPU: something else ran there on this machine.
    Switch,
    /// It stayed on its CPU, or that is not known, and the sample took at least [`LONG_NS`] longer.
    /// No interrupt of a healthy machine takes that long, so the cause is the hypervisor, the
    /// firmware, or a driver.
    Long,
    /// A shorter hit: interrupts, including the timer's tick.
    Short,
}

/// A hit is [`Hit::Long`] from this excess on, ns.
pub const LONG_NS: f64 = 500_000.0;
/// A block is hit if it takes this many times as long as both neighbours: the blocks of a quiet
/// machine differ by 3 %, and a tick takes 14 to 25 us of a block of 9.
const ISOLATED: f64 = 1.25;
/// Lateness of a burst that the timer and waking an idle CPU explain, ns.
pub const USUAL_LATENESS_NS: f64 = 1_000_000.0;
/// Number of samples at the begin of a burst with cold caches and translations: they are excluded
/// from all rates.
pub const COLD: usize = 2;

/// The samples of a burst, separated into those that show the speed of the machine, and hits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Apart {
    /// Samples that are neither cold nor hit, with their index in the burst.
    pub plain: Vec<(usize, Sample)>,
    /// Index, kind, and by how much longer the sample took, ns.
    pub hits: Vec<(usize, Hit, f64)>,
}

impl Apart {
    /// Total time of the hits of a kind, ns.
    #[must_use]
    pub fn taken_ns(&self, kind: Hit) -> f64 {
        let of_kind = self.hits.iter().filter(|(_, hit, _)| *hit == kind);
        of_kind.map(|(_, _, ns)| ns).sum()
    }
}

/// Separates the samples of a burst.
#[must_use]
pub fn apart(burst: &Burst) -> Apart {
    let samples = &burst.samples;
    let mut apart = Apart::default();
    for (i, sample) in samples.iter().enumerate() {
        let isolated = excess(samples, i);
        let hit = match (sample.taken_off, isolated) {
            (TakenOff::Yes, isolated) => Some((Hit::Switch, isolated.unwrap_or(0.0))),
            (_, Some(ns)) if ns >= LONG_NS => Some((Hit::Long, ns)),
            (_, Some(ns)) => Some((Hit::Short, ns)),
            (_, None) => None,
        };
        match hit {
            Some((hit, ns)) => apart.hits.push((i, hit, ns)),
            None if i >= COLD => apart.plain.push((i, *sample)),
            None => {}
        }
    }
    apart
}

/// By how much longer sample `i` took than its neighbours, if by much.
fn excess(samples: &[Sample], i: usize) -> Option<f64> {
    let of = |time: fn(&Sample) -> f64| {
        let beside = beside(samples, i, time)?;
        let excess = time(&samples[i]) - beside;
        (excess > (ISOLATED - 1.0) * beside).then_some(excess)
    };
    let (mix, reference) = (of(|s| s.mix_ns), of(|s| s.reference_ns));
    (mix.is_some() || reference.is_some()).then(|| mix.unwrap_or(0.0) + reference.unwrap_or(0.0))
}

/// The longer of the nearest samples before and after that were not taken off the CPU; at an end,
/// the longer of two on one side.
fn beside(samples: &[Sample], i: usize, time: fn(&Sample) -> f64) -> Option<f64> {
    let usable = |s: &&Sample| s.taken_off != TakenOff::Yes;
    let mut before = samples[..i].iter().rev().filter(usable).map(time);
    let mut after = samples[i + 1..].iter().filter(usable).map(time);
    let (first, second) = match (before.next(), after.next()) {
        (Some(before), Some(after)) => (before, after),
        (Some(one), None) => (one, before.next()?),
        (None, Some(one)) => (one, after.next()?),
        (None, None) => return None,
    };
    Some(first.max(second))
}

#[cfg(test)]
mod tests;
