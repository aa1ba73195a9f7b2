//! The probe: a process that executes its mix in bursts and times each sample.

use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use super::mix::{Mix, Ready};
use undertick_experiment::counted_work;

/// Event numbers.
pub(super) mod event {
    /// A block of the mix.
    pub const MIX: u16 = 1;
    /// A block of registers.
    pub const REFERENCE: u16 = 2;
    /// A burst is about to begin; its payload is how late it is, ns.
    pub const LATE: u16 = 3;
    /// A burst has ended.
    pub const OVER: u16 = 7;
    /// Units of the mix in a block, in a 64-bit payload.
    pub const MIX_UNITS: u16 = 4;
    /// Turns in a block of registers.
    pub const REFERENCE_TURNS: u16 = 5;
    /// Bytes of memory that the mix goes through.
    pub const FOOTPRINT: u16 = 6;
}

/// The schedule of the probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// The mix to execute.
    pub mix: Mix,
    /// Bytes of memory to go through; `None`: the mix's default.
    pub footprint_bytes: Option<u64>,
    /// CPU to stay on; `None`: wherever the scheduler puts it.
    pub cpu: Option<usize>,
    /// Length of a burst.
    pub burst: Duration,
    /// Period of the bursts; each begins at a random moment of its period.
    pub every: Duration,
    /// Total duration; `None`: until it is stopped.
    pub total: Option<Duration>,
    /// Nominal times of the two blocks of a sample.
    pub blocks: (Duration, Duration),
    /// Seed of the random moments, and of a chain's order.
    pub seed: u64,
    /// Units and turns of a block, if known from an earlier probe.
    pub units: Option<(u64, u64)>,
}

impl Schedule {
    /// The usual schedule: samples of 50 us, and one burst of 12 ms in 40 ms. A burst is as long as
    /// two time slices of a kernel whose timer ticks each 4 ms.
    #[must_use]
    pub fn new(mix: Mix) -> Self {
        Self {
            mix,
            footprint_bytes: None,
            cpu: None,
            burst: Duration::from_millis(12),
            every: Duration::from_millis(40),
            total: Some(Duration::from_secs(30)),
            blocks: (Duration::from_micros(40), Duration::from_micros(10)),
            seed: 1,
            units: None,
        }
    }

    /// The schedule of 1971 (MPL-55): 50 runs of about 290 us of a mix within one page, then a sleep
    /// of 10 s, 100 times; 5000 samples in 17 minutes.
    #[must_use]
    pub fn published() -> Self {
        let blocks = (Duration::from_micros(290), Duration::from_micros(10));
        Self {
            burst: 50 * (blocks.0 + blocks.1),
            every: Duration::from_secs(10),
            total: Some(Duration::from_secs(1000)),
            blocks,
            ..Self::new(Mix::Page)
        }
    }

    /// As [`new`](Self::new) but with almost no load: one burst of 8 ms in 1.6 s, until it is
    /// stopped.
    #[must_use]
    pub fn continuous(mix: Mix) -> Self {
        Self {
            burst: Duration::from_millis(8),
            every: Duration::from_millis(1600),
            total: None,
            ..Self::new(mix)
        }
    }
}

/// Executes the schedule, in a process that is being recorded. When `total` is over, it ends with
/// the current burst.
pub fn probe(schedule: &Schedule) {
    if let Some(cpu) = schedule.cpu {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        // If this is not permitted, the records still show the CPU.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
    let wanted = schedule
        .footprint_bytes
        .unwrap_or_else(|| schedule.mix.footprint_bytes(&super::mix::caches()));
    let footprint = wanted.min(room_bytes() / 8);
    let mut ready = Ready::new(schedule.mix, footprint, schedule.seed);
    let (mix_units, turns) = schedule.units.unwrap_or_else(|| {
        let units = units_for(schedule.blocks.0, |units| ready.work(units));
        (units, units_for(schedule.blocks.1, counted_work::turns))
    });
    undertick::name(event::MIX, schedule.mix.word());
    undertick::name(event::REFERENCE, "registers");
    undertick::thread_name("probe");
    undertick::event64(event::MIX_UNITS, mix_units);
    undertick::event64(event::REFERENCE_TURNS, turns);
    undertick::event64(event::FOOTPRINT, footprint);
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(schedule.seed);
    let begun = Instant::now();
    let mut period = Duration::ZERO;
    while schedule.total.is_none_or(|total| period < total) {
        let free = schedule.every.saturating_sub(schedule.burst);
        let at = begun + period + free.mul_f64(random.random::<f64>());
        // A burst that would begin in the next period is skipped. What kept the probe from its CPU
        // shows in the one before, which was as late.
        let now = Instant::now();
        if now < at + schedule.every {
            std::thread::sleep(at.saturating_duration_since(now));
            let late = Instant::now().saturating_duration_since(at);
            burst(&mut ready, (mix_units, turns), late, schedule.burst);
        }
        period += schedule.every;
    }
}

/// Executes samples until `long` has passed.
fn burst(ready: &mut Ready, (mix_units, turns): (u64, u64), late: Duration, long: Duration) {
    let late_ns = u32::try_from(late.as_nanos()).unwrap_or(u32::MAX);
    undertick::event(event::LATE, late_ns);
    let begun = Instant::now();
    // This reading of another clock only decides when to end.
    while begun.elapsed() < long {
        // Serialised readings: a core continues past a plain one while hundreds of nanoseconds of
        // loads are still in progress, and they would count towards the registers.
        undertick::begin_ordered(event::MIX);
        ready.work(mix_units);
        undertick::end_ordered(event::MIX);
        undertick::begin_ordered(event::REFERENCE);
        counted_work::turns(turns);
        undertick::end_ordered(event::REFERENCE);
    }
    undertick::event(event::OVER, 0);
}

/// Number of units that take about `time`: from the quickest of some trials, each longer than the
/// one before.
fn units_for(time: Duration, mut work: impl FnMut(u64)) -> u64 {
    let mut units = 8;
    loop {
        let quickest = (0..20)
            .map(|_| {
                let begun = Instant::now();
                work(units);
                begun.elapsed()
            })
            .min()
            .unwrap_or_default();
        if quickest >= time / 2 || units > 1 << 40 {
            let share = time.as_secs_f64() / quickest.as_secs_f64().max(1e-9);
            return ((units as f64 * share) as u64).max(1);
        }
        units *= 2;
    }
}

/// Free memory, bytes, on the machine and in the control group.
fn room_bytes() -> u64 {
    let number = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let free = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
            let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
            Some(kib * 1024)
        });
    let of_group = number("/sys/fs/cgroup/memory.max")
        .map(|most| most.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or(0)));
    (free.into_iter().chain(of_group).min()).unwrap_or(1 << 30)
}

#[cfg(test)]
mod tests;
