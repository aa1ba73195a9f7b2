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
mod tests {
    use super::*;

    fn burst(times: &[(f64, f64)]) -> Burst {
        let samples = times.iter().map(|&(mix_ns, reference_ns)| Sample {
            mix_ns,
            reference_ns,
            taken_off: TakenOff::No,
        });
        Burst {
            begun_ns: 0.0,
            late_ns: 0.0,
            cpu: None,
            samples: samples.collect(),
        }
    }

    #[test]
    fn a_tick_is_a_hit_and_a_slow_while_is_not() {
        let (fast, slow, tick) = ((9e3, 4e3), (22e3, 4e3), (29e3, 4e3));
        let mut times = vec![fast; 10];
        times[5] = tick;
        times.extend([slow; 10]);
        times.extend([fast; 10]);
        let found = apart(&burst(&times));
        assert_eq!(found.hits, [(5, Hit::Short, 20e3)]);
        assert_eq!(found.plain.len(), 30 - 1 - COLD);
        // A hit in the registers, and one during a slow phase.
        let mut times = vec![slow; 10];
        times[4].1 = 30e3;
        times[7].0 = 44e3;
        let found = apart(&burst(&times));
        assert_eq!(found.hits, [(4, Hit::Short, 26e3), (7, Hit::Short, 22e3)]);
    }

    #[test]
    fn a_slow_while_of_two_samples_is_seen_and_one_of_one_is_a_hit() {
        let (fast, slow) = ((9e3, 4e3), (22e3, 4e3));
        let two = [fast, fast, fast, slow, slow, fast, fast];
        assert_eq!(apart(&burst(&two)).hits, []);
        let one = [fast, fast, fast, slow, fast, fast];
        assert_eq!(apart(&burst(&one)).hits, [(3, Hit::Short, 13e3)]);
    }

    #[test]
    fn the_mark_decides_who_it_was() {
        let mut b = burst(&[(9e3, 4e3); 8]);
        b.samples[3].mix_ns = 4e6;
        assert_eq!(apart(&b).hits, [(3, Hit::Long, 4e6 - 9e3)]);
        b.samples[3].taken_off = TakenOff::Yes;
        b.samples[4].taken_off = TakenOff::Yes; // by next to nothing
        let found = apart(&b);
        assert_eq!(
            found.hits,
            [(3, Hit::Switch, 4e6 - 9e3), (4, Hit::Switch, 0.0)]
        );
        assert_eq!(found.taken_ns(Hit::Switch), 4e6 - 9e3);
        assert_eq!(found.taken_ns(Hit::Short), 0.0);
        // Hits at the ends, and where there is too little for a comparison.
        let mut b = burst(&[(9e3, 4e3); 3]);
        b.samples[0].mix_ns = 50e3;
        b.samples[2].mix_ns = 80e3;
        assert_eq!(apart(&b).hits, [(2, Hit::Short, 30e3)]);
        assert_eq!(apart(&burst(&[(9e3, 4e3)])), Apart::default());
        assert_eq!(apart(&burst(&[])), Apart::default());
    }
}
