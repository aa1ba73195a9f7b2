//! Audits every clock of this machine: what it shows, its steps, the cost of a reading, and whether
//! the CPUs agree. Takes about three seconds.
//!
//! Each rate comes from two bracketed readings, one at each end of the audit. Its bounds are
//! therefore not statistical: the truth lies inside them, whatever the load.

mod clocks;
mod machine;

use std::time::{Duration, Instant};

use undertick_clock::{ClockId, Source, best, finer};
use undertick_report::audit::{Audit, Clock, Machine, TickWorthHaving};

use crate::core_speed::CoreSpeedBlocks;
use clocks::Examined;

/// Minimum time between the two readings from which a rate is found.
const RATE_SPAN: Duration = Duration::from_millis(1_500);

/// Blocks of the measurement of core speed, spread over the audit.
const SPEED_BLOCKS: usize = 48;

/// Audits every clock; calls `progress` with the share done.
pub fn run(level: f64, mut progress: impl FnMut(f64)) -> Audit {
    let choice = best();
    let machine_before = machine::Before::look();
    let begun = Instant::now();
    let mut speed = CoreSpeedBlocks::none();
    let mut here = Vec::new();
    let mut lacking = Vec::new();
    for clock in ClockId::ALL {
        match Source::open(clock) {
            Ok(source) => here.push(Examined::begin(source)),
            Err(why) => lacking.push(clocks::lacking(clock.name(), why.to_string())),
        }
    }
    let count = here.len().max(1);
    for (i, examined) in here.iter_mut().enumerate() {
        examined.examine();
        speed.run(SPEED_BLOCKS / (2 * count));
        progress((i + 1) as f64 / (count + 1) as f64 * 0.9);
    }
    while begun.elapsed() < RATE_SPAN || speed.count() < SPEED_BLOCKS {
        speed.run(1);
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut list: Vec<Clock> = here
        .iter()
        .map(|examined| examined.finish(choice.clock))
        .collect();
    lacking.extend(finer::probe().into_iter().map(clocks::finer));
    let (good, bad): (Vec<_>, Vec<_>) = lacking.into_iter().partition(|clock| clock.usable);
    list.extend(good);
    list.extend(bad);
    let machine = machine_before.compare();
    progress(1.0);
    let notes = notes(&list, &machine);
    Audit {
        schema_version: 1,
        chosen: choice.clock.name().to_owned(),
        why: why(&choice.to_string()),
        tick_worth_having: (list.iter())
            .find(|clock| clock.name == choice.clock.name())
            .and_then(tick_worth_having),
        core_speed: speed.finish(level),
        clocks: list,
        machine,
        notes,
    }
}

/// The reason for the choice, without the clock's name in front.
fn why(choice: &str) -> String {
    let cut = choice
        .find([':', ','])
        .map_or(choice, |at| &choice[at + 1..]);
    cut.trim().to_owned()
}

/// The tick below which a finer clock is of no use. The instant of a reading lies somewhere within
/// the reading, so it is known no better than the median read cost or the clock's step.
fn tick_worth_having(clock: &Clock) -> Option<TickWorthHaving> {
    let cost = clock.read_cost_ordered_ns.or(clock.read_cost_ns)?;
    let tick_ns = cost.median.max(clock.granularity_ns.unwrap_or(0.0));
    let range = |bits: i32| 2_f64.powi(bits) * tick_ns / 1e9;
    Some(TickWorthHaving {
        read_uncertainty_ns: cost.median,
        tick_ns,
        range_16_bits_s: range(16),
        range_32_bits_s: range(32),
        range_64_bits_s: range(64),
    })
}

fn notes(clocks: &[Clock], machine: &Machine) -> Vec<String> {
    let mut notes = Vec::new();
    if machine.cpus == 1 {
        notes.push("One CPU only: offsets between CPUs and steps back across threads cannot be looked for, and cannot occur here.".to_owned());
    }
    match &machine.hypervisor {
        Some(name) => notes.push(format!(
            "This is a virtual machine ({name}), its kernel's clock source is {}: the counter may be scaled or stepped when the machine is moved to another host; record again after a move.",
            machine.clocksource.as_deref().unwrap_or("not known")
        )),
        None => notes.extend(machine.clocksource.as_ref().map(|source| format!("The kernel's clock source is {source}."))),
    }
    if let Some(share) = machine.steal_share.filter(|share| *share > 0.001) {
        notes.push(format!(
            "The hypervisor took {:.1} % of the CPUs' time during the audit: read costs and p99 include that.",
            share * 100.0
        ));
    }
    if let Some(shift) = machine.monotonic_shift_s.filter(|shift| *shift != 0.0) {
        notes.push(format!(
            "This is a time namespace that shifts CLOCK_MONOTONIC, _RAW and _COARSE by {shift:+.3} s: their rates are unaffected, their readings are not those of processes outside."
        ));
    }
    match machine.suspended_s {
        Some(slept) if slept > 0.1 => notes.push(format!(
            "The machine has slept for {slept:.1} s since its start; only boottime and realtime count that."
        )),
        _ => {}
    }
    if clocks.iter().any(|c| {
        c.rate_ppm
            .as_ref()
            .is_some_and(|r| r.interval.lo > Some(1.0) || r.interval.hi < Some(-1.0))
    }) {
        notes.push("Rates are against CLOCK_MONOTONIC_RAW; monotonic, boottime and realtime follow the corrections of Unix time, so they may differ.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests;
