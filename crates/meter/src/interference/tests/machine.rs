//! A simulated machine whose disturbers have known activity.
//!
//! It has a clock without steps, a timer that ticks each 4 ms, a core whose speed drifts, and
//! disturbers that are on and off at random. One takes bandwidth from the mix, the other one takes
//! the CPU, a slice at a time. It shares no formula with the analysis.

use std::collections::HashMap;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::super::bursts::{Burst, ProbeInfo, Sample, TakenOff};
use super::super::cpu_time::Glance;
use super::super::suspects::{Look, Process};

pub(super) const MS: f64 = 1e6;
pub(super) const EVERY: f64 = 40.0 * MS;
pub(super) const BURST: f64 = 12.0 * MS;
pub(super) const SLICE: f64 = 4.0 * MS;

/// The on-phases of a disturber, ns, ascending.
#[derive(Clone)]
pub(super) struct Phases(pub(super) Vec<(f64, f64)>);

impl Phases {
    /// Random phases that are on for the share `duty` in the long run. `mean` is that of an
    /// on-phase.
    pub(super) fn new(random: &mut ChaCha8Rng, duty: f64, mean: f64, total: f64) -> Self {
        let mut phases = Vec::new();
        if duty >= 1.0 {
            return Self(vec![(0.0, 2.0 * total)]);
        }
        let long = |random: &mut ChaCha8Rng, mean: f64| mean * (0.3 + 1.4 * random.random::<f64>());
        let mut at = if duty > 0.0 {
            -long(random, mean) * random.random::<f64>()
        } else {
            f64::MAX
        };
        while at < total {
            let end = at + long(random, mean);
            phases.push((at.max(0.0), end));
            at = end + long(random, mean * (1.0 - duty) / duty);
        }
        Self(phases)
    }

    pub(super) fn on(&self, at: f64) -> bool {
        self.0.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// Total time on before `at`.
    pub(super) fn on_before(&self, at: f64) -> f64 {
        let inside = |(from, to): &(f64, f64)| (to.min(at) - from).max(0.0);
        self.0.iter().map(inside).sum()
    }
}

pub(super) struct Simulated {
    pub(super) bursts: Vec<Burst>,
    pub(super) looks: Vec<Look>,
    pub(super) glances: Vec<Glance>,
    pub(super) probe_info: ProbeInfo,
    pub(super) memory_share: f64,
    pub(super) cpu_share: f64,
}

/// The activity of the machine's disturbers.
#[derive(Clone, Copy)]
pub(super) struct Duty {
    pub(super) memory: f64,
    pub(super) cpu: f64,
}

pub(super) const SLOWED_BY: f64 = 2.4;

/// Slow-down while the disturber and a tenant that this machine does not show both run: slower
/// still.
pub(super) const SLOWED_BY_BOTH: f64 = 3.6;

pub(super) fn simulate(seed: u64, duty: Duty, slots: usize) -> Simulated {
    simulate_beside(seed, duty, slots, 0.0)
}

/// Simulates beside a tenant that is active for that share of the time, and has an effect only
/// while the memory is busy.
pub(super) fn simulate_beside(seed: u64, duty: Duty, slots: usize, tenant: f64) -> Simulated {
    let total = slots as f64 * EVERY;
    let mut other = ChaCha8Rng::seed_from_u64(!seed);
    let tenant = Phases::new(&mut other, tenant, 1000.0 * MS, total);
    simulate_with(seed, duty, slots, |at, busy| match (busy, tenant.on(at)) {
        (false, _) => 1.0,
        (true, false) => SLOWED_BY,
        (true, true) => SLOWED_BY_BOTH,
    })
}

/// Slow-down of everything by the memory hog beside busy guests.
pub(super) const SLOWED_BUSY: f64 = 1.5;

/// Simulates beside guests that slow the memory down by a fifth more or less all the time, for some
/// tenths of a second each: the states of the machine cannot be separated.
pub(super) fn simulate_busy(seed: u64, duty: Duty, slots: usize, slowed_by: f64) -> Simulated {
    const STEP: f64 = 10.0 * MS;
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0xb5e1);
    let mut now = 0.0;
    let guests: Vec<f64> = (0..(slots as f64 * EVERY / STEP) as usize + 10)
        .map(|_| {
            let uniform = |random: &mut ChaCha8Rng| random.random::<f64>() - 0.5;
            let normal: f64 = (0..12).map(|_| uniform(&mut random)).sum();
            now = 0.92 * now + 0.2 * (1.0_f64 - 0.92 * 0.92).sqrt() * normal;
            f64::exp(now)
        })
        .collect();
    simulate_with(seed, duty, slots, |at, busy| {
        let guests = guests[((at / STEP) as usize).min(guests.len() - 1)];
        if busy { slowed_by * guests } else { guests }
    })
}

/// Simulates with a slow-down that `slowed` gives for each time, and with the memory hog.
pub(super) fn simulate_with(
    seed: u64,
    duty: Duty,
    slots: usize,
    slowed: impl Fn(f64, bool) -> f64,
) -> Simulated {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let total = slots as f64 * EVERY;
    let memory = Phases::new(&mut random, duty.memory, 300.0 * MS, total);
    let cpu = Phases::new(&mut random, duty.cpu, 300.0 * MS, total);
    let drift = 0.03 * random.random::<f64>();
    let slowed = |at| slowed(at, memory.on(at));
    let bursts: Vec<Burst> = (0..slots)
        .map(|slot| {
            let due = slot as f64 * EVERY + random.random::<f64>() * (EVERY - BURST);
            burst(&mut random, due, slowed, &cpu, |at| {
                1.0 + drift * (6.0 * at / total).sin()
            })
        })
        .collect();
    let looks = (0..=(total / (200.0 * MS)) as usize)
        .map(|i| {
            let at_ns = 200.0 * MS * i as f64;
            let process = |name: &str, pid, ns: f64, cpu| {
                let process = Process {
                    name: name.to_owned(),
                    ns,
                    at_ns,
                    cpu: Some(cpu),
                };
                (pid, process)
            };
            let processes = HashMap::from([
                process("memory hog", 7, memory.on_before(at_ns), 0),
                process("cpu hog", 8, 0.5 * cpu.on_before(at_ns), 1),
                process("innocent", 9, 0.7 * at_ns, 0),
            ]);
            Look {
                at_ns,
                processes,
                cpus: Vec::new(),
            }
        })
        .collect();
    let glances = (0..(total / (10.0 * MS)) as usize)
        .flat_map(|i| {
            let at_ns = 10.0 * MS * i as f64 + 30e3;
            let used = [
                (7, memory.on_before(at_ns)),
                (8, 0.5 * cpu.on_before(at_ns)),
                (9, 0.7 * at_ns),
            ];
            used.map(|(pid, used_ns)| Glance {
                pid,
                at_ns,
                used_ns,
            })
        })
        .collect();
    let ends = bursts.first().zip(bursts.last());
    let span = ends.map(|(first, last)| (first.begun_ns, last.begun_ns + last.wall_ns()));
    let share = |phases: &Phases| {
        span.map_or(0.0, |(from, to)| {
            (phases.on_before(to) - phases.on_before(from)) / (to - from)
        })
    };
    Simulated {
        memory_share: share(&memory),
        cpu_share: share(&cpu),
        bursts,
        looks,
        glances,
        probe_info: ProbeInfo {
            mix_units: 5800,
            reference_turns: 3000,
            footprint_bytes: 1 << 27,
        },
    }
}

fn burst(
    random: &mut ChaCha8Rng,
    due: f64,
    slowed: impl Fn(f64) -> f64,
    cpu: &Phases,
    core: impl Fn(f64) -> f64,
) -> Burst {
    let late_ns = 60e3 * random.random::<f64>();
    let begun_ns = due + late_ns;
    let mut at = begun_ns;
    let mut samples = Vec::new();
    // Time since which it has had the CPU.
    let mut since = at;
    while at < begun_ns + BURST {
        let mut taken_off = TakenOff::No;
        let mut block = |at: &mut f64, nominal: f64, random: &mut ChaCha8Rng| {
            let from = *at;
            *at += nominal;
            let ticks = |t: f64| (t / SLICE).floor();
            if ticks(*at) > ticks(from) {
                *at += random.random_range(14e3..25e3);
                // At a tick the scheduler checks whether a slice is over.
                if *at - since > 0.7 * SLICE && cpu.on(*at) {
                    *at += SLICE * random.random_range(0.95..1.05);
                    since = *at;
                    taken_off = TakenOff::Yes;
                }
            }
            *at - from
        };
        let u: f64 = random.random();
        let noise = 1.0 + 0.02 * (random.random::<f64>() - 0.5) + 0.03 * u * u * u;
        let slow = match slowed(at) {
            1.0 => 1.0,
            slow => slow * (0.97 + 0.06 * random.random::<f64>()),
        };
        let nominal_ns = 9e3 * core(at) * noise * slow;
        let mix_ns = block(&mut at, nominal_ns, random);
        let steady = 1.0 + 0.004 * random.random::<f64>();
        let nominal_ns = 4e3 * core(at) * steady;
        let reference_ns = block(&mut at, nominal_ns, random);
        samples.push(Sample {
            mix_ns,
            reference_ns,
            taken_off,
        });
    }
    Burst {
        begun_ns,
        late_ns,
        cpu: Some(1),
        samples,
    }
}
