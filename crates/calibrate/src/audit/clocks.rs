//! Examination of a single clock.

use undertick_clock::across::{self, Across, Effort};
use undertick_clock::bracket::{self, Pair};
use undertick_clock::finer::Finer;
use undertick_clock::granularity::{self, Granularity};
use undertick_clock::read_cost::{self, ReadKind};
use undertick_clock::{ClockId, Source, cpus, rate, resolution_ns};
use undertick_report::audit::{Backward, Clock, CpuCost, CpuOffset, PairOffset, ReadCost};
use undertick_units::{Estimate, Interval, TickRate};

/// CPUs on which the cost of a read is measured, 1.5 ms each.
const MOST_CPUS: usize = 32;
/// Smallest share of the readings that must agree on a remainder before it counts as the clock's.
const SHARE: f64 = 0.99;

/// A clock under examination.
pub(super) struct Examined {
    source: Source,
    granularity: Option<Granularity>,
    raw_step_ns: u64,
    first: Option<Pair>,
    rate: Option<TickRate>,
    remainder: Option<u64>,
    cost: Option<ReadCost>,
    cost_ordered: Option<ReadCost>,
    by_cpu: Vec<CpuCost>,
    across: Option<Across>,
}

fn raw() -> Option<Source> {
    Source::open(ClockId::MonotonicRaw).ok()
}

impl Examined {
    /// Takes the first of the two readings from which the rate is found.
    pub(super) fn begin(source: Source) -> Self {
        let step_of = |source| granularity::measure(source).map(|g| g.step_ticks.ceil() as u64);
        let raw_step_ns = raw().and_then(step_of).unwrap_or(1);
        Self {
            source,
            granularity: None,
            raw_step_ns,
            first: raw().and_then(|raw| bracket::pair(source, raw, raw_step_ns)),
            rate: None,
            remainder: None,
            cost: None,
            cost_ordered: None,
            by_cpu: Vec::new(),
            across: None,
        }
    }

    /// Determines everything but the rate.
    pub(super) fn examine(&mut self) {
        let source = self.source;
        self.rate = rate::find(source, rate::SHORTEST_SPAN)
            .ok()
            .map(|found| found.claim.rate);
        self.granularity = granularity::measure(source);
        let step = self.granularity.map_or(1.0, |g| g.step_ticks);
        self.remainder = (source.clock().is_counter())
            .then(|| remainder(source, step))
            .flatten();
        let timer_rate = timer_rate();
        let cost = |kind| {
            timer_rate
                .and_then(|rate| read_cost::measure(source, kind, rate))
                .map(read_cost_of)
        };
        self.cost = cost(ReadKind::Plain);
        self.cost_ordered = cost(ReadKind::Ordered);
        self.by_cpu = timer_rate.map_or_else(Vec::new, |rate| cost_by_cpu(source, rate));
        self.across = Some(across::measure(source, step, Effort::FULL));
    }

    /// Determines the rate, and returns all findings as a row of the document.
    pub(super) fn finish(&self, chosen: ClockId) -> Clock {
        let clock = self.source.clock();
        let ns_per_tick = self.rate.map(|rate| rate.ns_per_tick());
        let step_ns = |g: Granularity| Some(g.step_ticks * ns_per_tick?);
        Clock {
            name: clock.name().to_owned(),
            usable: true,
            why: what_for(clock, chosen).to_owned(),
            resolution_ns: resolution_ns(clock).map(|ns| ns as f64).or(ns_per_tick),
            granularity_ns: self.granularity.and_then(step_ns),
            granularity_ticks: self.granularity.map(|g| g.step_ticks),
            remainder_ticks: self.remainder,
            read_cost_ns: self.cost,
            read_cost_ordered_ns: self.cost_ordered,
            read_cost_by_cpu: self.by_cpu.clone(),
            monotonic: self
                .backward()
                .map(|b| b.within_thread == 0 && b.across_threads.unwrap_or(0) == 0),
            backward: self.backward(),
            cpu_offset_ns: self.offset(),
            rate_ppm: self.rate_ppm(),
            width_bits: Some(u64::BITS),
            wraps_after_s: ns_per_tick.map(|ns| ns * 2_f64.powi(64) / 1e9),
            suspend: suspend(clock).to_owned(),
        }
    }

    fn backward(&self) -> Option<Backward> {
        let across = self.across.as_ref()?;
        let ns_per_tick = self.rate?.ns_per_tick();
        Some(Backward {
            within_thread: self.granularity.map_or(0, |g| g.backward),
            across_threads: (across.readings > 0).then_some(across.backward),
            readings: across.readings,
            worst_ns: (across.worst_backward_ticks as f64 * ns_per_tick).ceil() as u64,
        })
    }

    fn offset(&self) -> Option<CpuOffset> {
        let across = self
            .across
            .as_ref()
            .filter(|across| !across.offsets.is_empty())?;
        let ns_per_tick = self.rate?.ns_per_tick();
        let pairs: Vec<PairOffset> = (across.offsets.iter())
            .map(|offset| PairOffset {
                cpu: offset.cpu,
                lo_ns: offset.lo_ticks as f64 * ns_per_tick,
                hi_ns: offset.hi_ticks as f64 * ns_per_tick,
                exchanges: offset.exchanges,
            })
            .collect();
        Some(CpuOffset {
            reference_cpu: across.offsets[0].reference_cpu,
            holds_zero: across.offsets.iter().all(across::Offset::holds_zero),
            bound_ns: pairs
                .iter()
                .map(|p| p.lo_ns.abs().max(p.hi_ns.abs()))
                .fold(0.0, f64::max),
            pairs,
        })
    }

    /// Rate between the reading at the begin and a reading taken now, ppm. Each of the two readings
    /// is uncertain by one step of the clock.
    fn rate_ppm(&self) -> Option<Estimate> {
        if self.source.clock() == ClockId::MonotonicRaw {
            return None;
        }
        let (first, last) = (
            self.first?,
            bracket::pair(self.source, raw()?, self.raw_step_ns)?,
        );
        let ns_per_tick = self.rate?.ns_per_tick();
        let step_ns = self.granularity.map_or(1.0, |g| g.step_ticks * ns_per_tick);
        let ns = last.ticks.wrapping_sub(first.ticks).cast_signed() as f64 * ns_per_tick;
        let raw_ns = (last.reference_ns.checked_sub(first.reference_ns)?) as f64;
        let value = (ns / raw_ns - 1.0) * 1e6;
        let bound = (step_ns + (first.error_ns + last.error_ns) as f64) / raw_ns * 1e6;
        Some(Estimate {
            value,
            interval: Interval::new(value - bound, value + bound),
            level: 1.0,
            unit: "1e-6".to_owned(),
            method: "two bracketed readings, bounds".to_owned(),
            n: 2,
            n_effective: 2.0,
            notes: vec![format!("over {:.2} s", raw_ns / 1e9)],
        })
    }
}

fn timer_rate() -> Option<TickRate> {
    rate::find(read_cost::timer()?, rate::SHORTEST_SPAN)
        .ok()
        .map(|found| found.claim.rate)
}

fn read_cost_of(cost: read_cost::ReadCost) -> ReadCost {
    ReadCost {
        min: cost.cost_ns_min,
        median: cost.cost_ns_median,
        p99: cost.cost_ns_p99,
    }
}

fn cost_by_cpu(source: Source, rate: TickRate) -> Vec<CpuCost> {
    let on = |cpu: usize| {
        let measured = std::thread::spawn(move || {
            cpus::pin(cpu).ok()?;
            read_cost::measure(source, ReadKind::Plain, rate)
        });
        let median_ns = measured.join().ok()??.cost_ns_median;
        Some(CpuCost { cpu, median_ns })
    };
    cpus::allowed()
        .into_iter()
        .take(MOST_CPUS)
        .filter_map(on)
        .collect()
}

/// Remainder that nearly all readings leave modulo the step; `None` if they do not agree.
fn remainder(source: Source, step: f64) -> Option<u64> {
    if !(2.0..=65_536.0).contains(&step) || step.fract() != 0.0 {
        return None;
    }
    let step = step as u64;
    let mut counts = vec![0_u32; step as usize];
    const READINGS: u32 = 4_096;
    for _ in 0..READINGS {
        counts[(source.read_ticks() % step) as usize] += 1;
    }
    let (remainder, most) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
    (f64::from(*most) >= SHARE * f64::from(READINGS)).then_some(remainder as u64)
}

fn what_for(clock: ClockId, chosen: ClockId) -> &'static str {
    if clock == chosen {
        return "recordings are made with it";
    }
    match clock {
        ClockId::Tsc | ClockId::Cntvct => "can be asked for with UNDERTICK_CLOCK",
        ClockId::Realtime => "can be set, so nothing is timed with it; ties traces to Unix time",
        ClockId::MonotonicCoarse => "moves only with the kernel's tick; for undertick slow",
        _ => "the kernel's; dearer than the counter, or as fine",
    }
}

const fn suspend(clock: ClockId) -> &'static str {
    match clock {
        ClockId::Boottime | ClockId::Realtime => "counts on",
        ClockId::Monotonic | ClockId::MonotonicRaw | ClockId::MonotonicCoarse => "stands still",
        ClockId::Tsc => {
            "goes on or starts anew, as the firmware likes: do not record across a suspend"
        }
        ClockId::Cntvct => "goes on in most machines; not promised",
    }
}

/// A row for a clock that cannot be read here.
pub(super) fn lacking(name: &str, why: String) -> Clock {
    Clock {
        name: name.to_owned(),
        usable: false,
        why,
        resolution_ns: None,
        granularity_ns: None,
        granularity_ticks: None,
        remainder_ticks: None,
        read_cost_ns: None,
        read_cost_ordered_ns: None,
        read_cost_by_cpu: Vec::new(),
        monotonic: None,
        backward: None,
        cpu_offset_ns: None,
        rate_ppm: None,
        width_bits: None,
        wraps_after_s: None,
        suspend: String::new(),
    }
}

/// A row for a finer clock: that it is readable, or why it is not.
pub(super) fn finer(finer: Finer) -> Clock {
    match finer.counts_per_megatick {
        Err(why) => lacking(finer.name, why.to_string()),
        Ok(counts) => Clock {
            usable: true,
            ..lacking(
                finer.name,
                format!(
                    "{:.4} counts for a tick of the counter while busy",
                    counts as f64 / 1e6
                ),
            )
        },
    }
}
