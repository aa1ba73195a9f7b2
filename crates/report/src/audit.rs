//! The document of `undertick clock` and its rendering for a terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::{clean, wrap};

/// Every clock of a machine. The field names are the JSON shape that other
/// programs read; extend, never rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// Version of the document's format: 1.
    pub schema_version: u32,
    /// The clock that Undertick records with here.
    pub chosen: String,
    /// Why it was chosen, in plain words.
    pub why: String,
    /// Every clock; those that may be used come first.
    pub clocks: Vec<Clock>,
    /// Tick that the chosen clock should have at most, and the range that it gives.
    pub tick_worth_having: Option<TickWorthHaving>,
    /// Speed of the core relative to the CPU's counter, where both are known.
    pub core_speed: Option<CoreSpeed>,
    /// The machine underneath.
    pub machine: Machine,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// One clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// Its name.
    pub name: String,
    /// Whether it can be read here.
    pub usable: bool,
    /// Why it is not usable, or what it is good for.
    pub why: String,
    /// Smallest difference that its format can express, ns.
    pub resolution_ns: Option<f64>,
    /// Smallest step that it takes, ns; `None` if it hardly moved while watched.
    pub granularity_ns: Option<f64>,
    /// Smallest step that it takes, in its own ticks.
    pub granularity_ticks: Option<f64>,
    /// Remainder modulo the step that all readings (99 % at least) leave, ticks.
    pub remainder_ticks: Option<u64>,
    /// Cost of one of several reads in a row, ns.
    pub read_cost_ns: Option<ReadCost>,
    /// Cost of a read that is ordered before and after, ns.
    pub read_cost_ordered_ns: Option<ReadCost>,
    /// Median cost of a read on each CPU.
    pub read_cost_by_cpu: Vec<CpuCost>,
    /// Whether it never went back, within a thread or across threads; `None` where not checked.
    pub monotonic: Option<bool>,
    /// The observed steps back behind this conclusion.
    pub backward: Option<Backward>,
    /// Offsets of the clock between CPUs, ns.
    pub cpu_offset_ns: Option<CpuOffset>,
    /// How much faster than `CLOCK_MONOTONIC_RAW` it is, parts per million.
    pub rate_ppm: Option<Estimate>,
    /// Bits of a reading.
    pub width_bits: Option<u32>,
    /// Time after which a reading recurs, s.
    pub wraps_after_s: Option<f64>,
    /// What it does while the machine sleeps.
    pub suspend: String,
}

/// Cost of a read, measured in batches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadCost {
    /// The minimum, ns.
    pub min: f64,
    /// The median, ns.
    pub median: f64,
    /// The 99th percentile, ns.
    pub p99: f64,
}

/// Median cost of a read on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuCost {
    /// The CPU.
    pub cpu: usize,
    /// The median, ns.
    pub median_ns: f64,
}

/// Steps back of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backward {
    /// Number of steps back within one thread.
    pub within_thread: u64,
    /// Number of steps back across threads on different CPUs; `None` with one CPU.
    pub across_threads: Option<u64>,
    /// Number of readings that were compared across threads.
    pub readings: u64,
    /// The largest step back across threads, ns.
    pub worst_ns: u64,
}

/// Offset of a clock between CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuOffset {
    /// The CPU that the others are compared with.
    pub reference_cpu: usize,
    /// Offsets of the other CPUs.
    pub pairs: Vec<PairOffset>,
    /// Whether every interval holds 0, so that equal clocks explain the observations.
    pub holds_zero: bool,
    /// Bound on the distance of all offsets from 0, ns.
    pub bound_ns: f64,
}

/// Offset of one CPU's clock to that of the reference CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairOffset {
    /// The CPU.
    pub cpu: usize,
    /// Lower bound on how far it is ahead, ns.
    pub lo_ns: f64,
    /// Upper bound on how far it is ahead, ns; below `lo_ns` if the offset moved during the
    /// exchanges.
    pub hi_ns: f64,
    /// Number of exchanges behind the bounds.
    pub exchanges: u64,
}

/// The tick worth having: one finer than the uncertainty of a read only shortens the range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TickWorthHaving {
    /// How uncertain the instant of a reading is, ns.
    pub read_uncertainty_ns: f64,
    /// The tick, ns.
    pub tick_ns: f64,
    /// Range of 16 bits of that tick, s.
    pub range_16_bits_s: f64,
    /// Range of 32 bits, s.
    pub range_32_bits_s: f64,
    /// Range of 64 bits, s.
    pub range_64_bits_s: f64,
}

/// Speed of the core, from the time that instructions of known latency take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoreSpeed {
    /// Core cycles in a tick of the CPU's counter.
    pub cycles_per_tick: Estimate,
    /// Core cycles in a nanosecond, GHz.
    pub ghz: Estimate,
    /// Duration of a multiplication relative to an addition, cycles: 3 where both latencies are as
    /// assumed.
    pub multiply_cycles: f64,
}

/// The machine underneath.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Name that the hypervisor gives itself, if there is one.
    pub hypervisor: Option<String>,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// Share of the CPUs' time that the hypervisor took during the audit.
    pub steal_share: Option<f64>,
    /// Time that the machine has been suspended since its start, s.
    pub suspended_s: Option<f64>,
    /// Shift of `CLOCK_MONOTONIC` in this time namespace, s.
    pub monotonic_shift_s: Option<f64>,
}

/// The audit as text in at most `columns` columns.
#[must_use]
pub fn render(audit: &Audit, columns: usize) -> String {
    let legend = "unit: what a reading is counted in; step: how it really moves; back: it went back; apart: bound on the offset between CPUs; ppm: rate against monotonic_raw, with bounds; *: recordings are made with it";
    let mut parts = vec![format!(
        "{}\n\n{}",
        clocks(audit, columns),
        wrap(legend, columns, 2)
    )];
    let mut lines = vec![format!(
        "Use {}: {}.",
        clean(&audit.chosen),
        clean(&audit.why)
    )];
    lines.extend(steps(&audit.clocks));
    lines.extend(audit.clocks.iter().filter(|c| c.usable).flat_map(verdicts));
    lines.extend(audit.tick_worth_having.map(worth));
    lines.extend(audit.core_speed.as_ref().map(speed));
    lines.extend(audit.notes.iter().map(|note| clean(note)));
    lines.extend(suspend(&audit.clocks));
    let unusable = audit.clocks.iter().filter(|c| !c.usable);
    lines.extend(unusable.map(|c| format!("Not here: {}: {}.", clean(&c.name), clean(&c.why))));
    parts.push(
        lines
            .iter()
            .map(|line| wrap(line, columns, 2))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    parts.join("\n\n") + "\n"
}

fn clocks(audit: &Audit, columns: usize) -> String {
    fn given<'a>(text: Option<String>) -> Cell<'a> {
        text.map_or(Cell::Nothing, Cell::text)
    }
    let cost = |part: fn(&ReadCost) -> f64| {
        move |clock: &Clock| given(clock.read_cost_ns.as_ref().map(|c| ns(part(c))))
    };
    let table = Columns::<&Clock>::new()
        .column("clock", |clock| {
            let mark = if clock.name == audit.chosen { " *" } else { "" };
            Cell::text(format!("{}{mark}", clock.name))
        })
        .column("unit", |clock| given(clock.resolution_ns.map(ns)))
        .column("step", |clock| given(clock.granularity_ns.map(ns)))
        .column("read min", cost(|c| c.min))
        .column("median", cost(|c| c.median))
        .column("p99", cost(|c| c.p99))
        .column("back", |clock| match clock.monotonic {
            None => Cell::Nothing,
            Some(good) => Cell::text(if good { "never" } else { "YES" }),
        })
        .column("apart", |clock| {
            let bound = clock.cpu_offset_ns.as_ref().map(|o| o.bound_ns);
            given(bound.map(|bound| format!("<{}", ns(bound))))
        })
        .column("ppm", |clock| given(clock.rate_ppm.as_ref().map(ppm)))
        .column("wraps", |clock| given(clock.wraps_after_s.map(seconds)));
    draw(&table, audit.clocks.iter().filter(|c| c.usable), columns)
}

/// Describes the clocks that move in steps longer than their unit, grouped by step.
fn steps(clocks: &[Clock]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut by_step: Vec<(String, Vec<String>)> = Vec::new();
    for clock in clocks.iter().filter(|c| c.usable) {
        let (Some(unit), Some(step), Some(ticks)) = (
            clock.resolution_ns,
            clock.granularity_ns,
            clock.granularity_ticks,
        ) else {
            continue;
        };
        let name = clean(&clock.name);
        if step < 1.5 * unit {
            continue;
        }
        if let Some(remainder) = clock.remainder_ticks {
            lines.push(format!(
                "{name} moves {ticks} ticks at a time, {}: all readings were congruent to {remainder} modulo {ticks} just now.",
                ns(step)
            ));
            continue;
        }
        match by_step.iter_mut().find(|(known, _)| *known == ns(step)) {
            Some((_, names)) => names.push(name),
            None => by_step.push((ns(step), vec![name])),
        }
    }
    lines.extend(by_step.into_iter().map(|(step, names)| {
        format!("In steps of {step}, not of the unit: {}.", names.join(", "))
    }));
    lines
}

/// What the user of a clock must know about its behaviour.
fn verdicts(clock: &Clock) -> Vec<String> {
    let name = clean(&clock.name);
    let mut lines = Vec::new();
    if let Some(back) = clock.backward.filter(|_| clock.monotonic == Some(false)) {
        lines.push(format!(
            "{name} WENT BACK: {} times within a thread, {} times across CPUs, by up to {}. Intervals across threads may be wrong by that.",
            back.within_thread,
            back.across_threads.unwrap_or(0),
            ns(back.worst_ns as f64)
        ));
    }
    if let Some(offset) = &clock.cpu_offset_ns {
        for pair in offset.pairs.iter().filter(|p| p.lo_ns > p.hi_ns) {
            lines.push(format!(
                "{name} on CPU {} moved against CPU {} while it was compared: no one offset fits.",
                pair.cpu, offset.reference_cpu
            ));
        }
        for pair in offset
            .pairs
            .iter()
            .filter(|p| p.lo_ns <= p.hi_ns && (p.lo_ns > 0.0 || p.hi_ns < 0.0))
        {
            lines.push(format!(
                "{name} on CPU {} is ahead of CPU {} by {} to {}.",
                pair.cpu,
                offset.reference_cpu,
                ns(pair.lo_ns),
                ns(pair.hi_ns)
            ));
        }
    }
    let costs = || clock.read_cost_by_cpu.iter().map(|c| c.median_ns);
    let (least, most) = (
        costs().fold(f64::INFINITY, f64::min),
        costs().fold(0.0, f64::max),
    );
    if clock.read_cost_by_cpu.len() > 1 && most > 1.2 * least {
        lines.push(format!(
            "A read of {name} costs {} on one CPU and {} on another.",
            ns(least),
            ns(most)
        ));
    }
    lines
}

/// What the clocks do while the machine sleeps, with clocks that do the same grouped.
fn suspend(clocks: &[Clock]) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for clock in clocks.iter().filter(|c| c.usable && !c.suspend.is_empty()) {
        match groups.iter_mut().find(|(what, _)| *what == clock.suspend) {
            Some((_, names)) => names.push(clean(&clock.name)),
            None => groups.push((&clock.suspend, vec![clean(&clock.name)])),
        }
    }
    let line = |(what, names): (&str, Vec<String>)| {
        format!("In suspend: {}: {}.", names.join(", "), clean(what))
    };
    groups.into_iter().map(line).collect()
}

fn worth(tick: TickWorthHaving) -> String {
    format!(
        "A tick worth having is {}: the instant of a reading is no surer than that. A finer one buys only a shorter range; this one gives {} in 16 bits, {} in 32, {} in 64.",
        ns(tick.tick_ns),
        seconds(tick.range_16_bits_s),
        seconds(tick.range_32_bits_s),
        seconds(tick.range_64_bits_s)
    )
}

fn speed(speed: &CoreSpeed) -> String {
    let range = |e: &Estimate| match (e.interval.lo, e.interval.hi) {
        (Some(lo), Some(hi)) => format!(" ({lo:.4} .. {hi:.4} at {} %)", e.level * 100.0),
        _ => String::new(),
    };
    format!(
        "The core makes {:.4} cycles in a tick of the counter{}, {:.3} GHz.",
        speed.cycles_per_tick.value,
        range(&speed.cycles_per_tick),
        speed.ghz.value
    )
}

fn ns(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    let size = ns.abs();
    let (value, unit) = match size {
        s if s >= 1e9 => (s / 1e9, "s"),
        s if s >= 1e6 => (s / 1e6, "ms"),
        s if s >= 1e4 => (s / 1e3, "us"),
        s => (s, "ns"),
    };
    let digits = if value >= 100.0 || value == value.round() {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{sign}{value:.digits$} {unit}")
}

fn seconds(s: f64) -> String {
    match s {
        s if s >= 2.0 * 365.25 * 86_400.0 => format!("{:.0} years", s / (365.25 * 86_400.0)),
        s if s >= 2.0 * 86_400.0 => format!("{:.1} days", s / 86_400.0),
        s if s >= 7_200.0 => format!("{:.1} h", s / 3_600.0),
        s if s >= 120.0 => format!("{:.1} min", s / 60.0),
        s => ns(s * 1e9),
    }
}

fn ppm(rate: &Estimate) -> String {
    let half = rate.interval.half_width().unwrap_or(f64::NAN);
    if half >= 10.0 {
        format!("{:+.0}±{half:.0}", rate.value)
    } else {
        format!("{:+.2}±{half:.2}", rate.value)
    }
}

#[cfg(test)]
mod tests;
