//! The audit of clocks as metrics, for the clock used by recordings.

use undertick_report::audit::{Audit, Clock};
use undertick_report::survey::{Better, Metric, Scale};
use undertick_units::{Estimate, Interval};

use super::SurveyResults;

const GROUP: &str = "clocks";
/// The rate by which a step is converted may be wrong by this share: the worst bound of a rate
/// measured over a few milliseconds.
const RATE_ERROR: f64 = 1e-4;

pub(super) fn add(found: &mut SurveyResults, audit: &Audit) {
    let chosen = audit.clocks.iter().find(|c| c.name == audit.chosen);
    let ids = ["clock.step", "clock.rate", "clock.apart"];
    let metrics = match chosen {
        Some(clock) => [step(clock), rate(clock), apart(clock)],
        None => [None, None, None],
    };
    for (id, metric) in ids.into_iter().zip(metrics) {
        match metric {
            Some(metric) => found.add(metric),
            None => found.lack(id, lacking(id, audit)),
        }
    }
    for clock in audit.clocks.iter().filter(|c| c.monotonic == Some(false)) {
        found.warn(
            "clock_goes_back",
            format!("{} went back: undertick clock says how far", clock.name),
        );
    }
    for note in &audit.notes {
        found.warn("clock_note", note.clone());
    }
}

fn lacking(id: &str, audit: &Audit) -> String {
    match id {
        "clock.apart" if audit.machine.cpus < 2 => {
            "one CPU only: there is nothing that its clock could be apart from".to_owned()
        }
        "clock.rate" if audit.chosen == "monotonic_raw" => {
            "the clock is monotonic_raw, which rates are stated against".to_owned()
        }
        _ => format!("the audit of {} does not say", audit.chosen),
    }
}

/// An estimate with certain bounds rather than a confidence interval: the truth lies inside.
fn bounded(value: f64, interval: Interval, unit: &str, n: u64, method: &str) -> Estimate {
    Estimate {
        value,
        interval,
        level: 1.0,
        unit: unit.to_owned(),
        method: method.to_owned(),
        n,
        n_effective: n as f64,
        notes: Vec::new(),
    }
}

fn metric(id: &str, name: &str, estimate: Estimate, includes: &str) -> Metric {
    Metric::new(id, GROUP, name, estimate, includes)
}

fn step(clock: &Clock) -> Option<Metric> {
    let ns = clock.granularity_ns?;
    let interval = Interval::new(ns * (1.0 - RATE_ERROR), ns * (1.0 + RATE_ERROR));
    let readings = clock.backward.map_or(2, |b| b.readings.max(2));
    Some(metric(
        "clock.step",
        "step of the clock",
        bounded(
            ns,
            interval,
            "ns",
            readings,
            "greatest common step of readings, bound of the rate",
        ),
        "the smallest step that the recording clock takes",
    ))
}

fn rate(clock: &Clock) -> Option<Metric> {
    Some(Metric {
        better: Better::Neither,
        scale: Scale::Difference,
        ..metric(
            "clock.rate",
            "rate of the clock against CLOCK_MONOTONIC_RAW",
            clock.rate_ppm.clone()?,
            "how much faster it runs, in millionths",
        )
    })
}

/// The truth lies between the certain offset of the worst pair and the bound.
fn apart(clock: &Clock) -> Option<Metric> {
    let offset = clock.cpu_offset_ns.as_ref()?;
    let certain = |lo: f64, hi: f64| lo.max(-hi).max(0.0);
    let least = (offset.pairs.iter())
        .map(|p| certain(p.lo_ns, p.hi_ns))
        .fold(0.0, f64::max);
    let exchanges = offset.pairs.iter().map(|p| p.exchanges).sum();
    let interval = Interval::new(least.min(offset.bound_ns), offset.bound_ns);
    Some(Metric {
        scale: Scale::Difference,
        ..metric(
            "clock.apart",
            "clocks of CPUs apart at most",
            bounded(
                offset.bound_ns,
                interval,
                "ns",
                exchanges,
                "two-way exchanges, bounds",
            ),
            "the largest offset between two CPUs' clocks that what was seen allows",
        )
    })
}
