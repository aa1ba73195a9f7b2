//! The actual effect of the disturber: the share of the time it ran, and by how much it slowed the
//! probe's blocks. Both come from the blocks themselves and not from the meter.

use serde_json::Value;

use super::{Disturber, meter, slowed};
use crate::bench::csv;

/// The probe's two events.
const MIX: &str = "1";
const REGISTERS: &str = "2";

/// How many times longer the probe's blocks took inside the disturber's phases than outside, right
/// before and after each begin and end of one. `None` for a disturber that takes the CPU itself.
pub fn meanwhile(trace: &str, kind: &str, phases: &[[f64; 3]]) -> Result<Option<f64>, String> {
    if kind != "memory" {
        return Ok(None);
    }
    slower(trace, phases, BESIDE_AN_EDGE_S).map(Some)
}

/// How many times longer the probe's blocks of this trace took inside these phases than outside,
/// over `beside_s` seconds before and after each edge. Durations are relative to the adjacent
/// blocks of registers, and means are geometric.
fn slower(trace: &str, phases: &[[f64; 3]], beside_s: f64) -> Result<f64, String> {
    by_edges(&blocks(trace)?, phases, beside_s)
        .ok_or_else(|| format!("{trace}: no blocks on both sides of an edge of a phase"))
}

/// The probe's undisturbed blocks: the time, s since 1970, and the logarithm of the duration
/// relative to the adjacent block of registers.
fn blocks(trace: &str) -> Result<Vec<(f64, f64)>, String> {
    let (_, text) = csv(trace)?;
    let mut begun = None;
    let mut mix = None;
    let mut blocks = Vec::new();
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split(',').collect();
        let number = |place: usize| {
            let number: Result<i64, _> = words[place].parse();
            number.map_err(|_| format!("{trace}: {line}"))
        };
        let (unix_s, ticks) = (number(0)? as f64 / 1e9, number(1)?);
        match (words[7], words[9]) {
            ("begin_ordered", _) => begun = Some(ticks),
            ("end_ordered", event) => {
                let took = begun.take().map(|begun| (ticks - begun) as f64);
                let took = took.filter(|_| words[8] == "0");
                match (event, took, mix.take()) {
                    (MIX, Some(took), _) => mix = Some(took),
                    (REGISTERS, Some(registers), Some(mix)) => {
                        blocks.push((unix_s, f64::ln(mix / registers)));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(blocks)
}

/// Time that is compared on either side of an edge of a random phase, s. Other guests come and go
/// as well, but hardly just then.
const BESIDE_AN_EDGE_S: f64 = 0.2;
/// Minimum number of blocks on one side of an edge: a part of a burst with fewer says little.
const FEWEST_BLOCKS: usize = 50;

/// Geometric mean of how many times longer blocks took on one side of an edge of a phase than on
/// the other; each edge is weighted by its blocks. Blocks are given by time and logarithm of
/// duration.
fn by_edges(blocks: &[(f64, f64)], phases: &[[f64; 3]], beside_s: f64) -> Option<f64> {
    let is_on = |at: f64| phases.iter().any(|[from, to, _]| *from <= at && at <= *to);
    let mean = |from: f64, to: f64, on: bool| {
        let inside = (blocks.iter()).filter(|(at, _)| from <= *at && *at < to && is_on(*at) == on);
        let (n, sum) = inside.fold((0, 0.0), |(n, sum), (_, log)| (n + 1, sum + log));
        (n >= FEWEST_BLOCKS).then(|| (n as f64, sum / n as f64))
    };
    let edges = phases
        .iter()
        .flat_map(|[from, to, _]| [(*from, true), (*to, false)]);
    let differences = edges.filter_map(|(at, begins)| {
        let (n, before) = mean(at - beside_s, at, !begins)?;
        let (m, after) = mean(at, at + beside_s, begins)?;
        let slower = if begins {
            after - before
        } else {
            before - after
        };
        Some((1.0 / (1.0 / n + 1.0 / m), slower))
    });
    let (weight, sum) = differences.fold((0.0, 0.0), |(weight, sum), (w, slower)| {
        (weight + w, sum + w * slower)
    });
    (weight > 0.0).then(|| (sum / weight).exp())
}

/// Duration of each on and each off phase of the disturber in a reference run, s.
const ON_S: f64 = 1.5;
/// Duration of the whole reference run: four times on.
const REFERENCE: &str = "13s";

/// By how much the disturber slows where it is always on. A disturber of the memory alternates with
/// none in one recording, as the duration of a block changes from run to run by more than a tenth.
pub fn always(program: &str, kind: &str, trace: &str) -> Result<f64, String> {
    if kind != "memory" {
        let disturber = Disturber::start(program, kind, "1", 0, None)?;
        let found = meter(&["--for", "2s"])?;
        disturber.phases()?;
        let slowdown = slowed(&found, kind).map(|p| p.slowdown);
        return slowdown.ok_or_else(|| "a process that always runs is not seen".to_owned());
    }
    let disturber = Disturber::start(program, kind, "0.5", 0, Some(ON_S))?;
    meter(&["--for", REFERENCE, "-o", trace])?;
    slower(trace, &disturber.phases()?, ON_S - 0.1)
}

/// Share of the measurement's time in which the disturber ran: inside a phase, and not kept from
/// its CPU.
pub fn share(phases: &[[f64; 3]], found: &Value) -> Result<f64, String> {
    let number = |name: &str| found["probe"][name].as_f64().ok_or("no time of day");
    let (begun, seconds) = (number("begun_unix_s")?, number("seconds")?);
    let inside = |[from, to, lost]: &[f64; 3]| {
        let inside = (to.min(begun + seconds) - from.max(begun)).max(0.0);
        inside * (1.0 - lost / (to - from))
    };
    Ok(phases.iter().map(inside).sum::<f64>() / seconds)
}
