//! A lock for which five processes contend.

use undertick_document::figures::duration;
use undertick_experiment::{Ended, Experiment, ExperimentError, Performed, Repetition};
use undertick_format::read::Trace;
use undertick_meter::traffic::{Cause, Samples, all_samples};
use undertick_report::reproduce::{Reproduction, Table};
use undertick_units::Estimate;

use crate::compared::{
    Figures, ItemDescription, NOT_PERFORMED, Published, bare, cell, item, published, times,
};
use crate::tables::words;

/// Number of samples to which the published anomalies refer.
const ANOMALIES_IN: f64 = 500.0;

/// The locks for which five processes contend here; the published one spins.
const KINDS: [&str; 4] = ["spin", "pthread-spin", "ticket", "pthread"];

/// Time for four others in turn, each with 200 ns and the lock's handover to the next, ns.
const IN_TURN_NS: f64 = 1_200.0;

pub(super) const CONTENDED: &str = "contended";

/// The waits of five processes that contend for a lock, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Contended {
    /// The kind of lock.
    pub kind: String,
    /// Every wait for it, ns; no cost is taken off.
    pub ns: Vec<f64>,
    /// Number of waits over ten times the minimum of their repetition.
    pub anomalies: u64,
    /// Of these, the number in which the waiter was taken off its CPU.
    pub waiter_off: u64,
    /// Of the others, the number during which another process came onto a CPU, as after the
    /// preemption of a holder.
    pub another_came: u64,
    /// Of the others, the number with an interrupt or another disturbance.
    pub hit: u64,
    /// Of the others, the number no longer than the rivals hold the lock in turn.
    pub in_turn: u64,
    /// Time of the anomalies over that of all waits.
    pub share_of_time: f64,
}

impl Contended {
    pub(super) fn unexplained(&self) -> u64 {
        self.anomalies - self.waiter_off - self.another_came - self.hit - self.in_turn
    }

    pub(super) fn from_samples(kind: &str, all: &[Samples]) -> Self {
        let mut found = Self {
            kind: kind.to_owned(),
            ns: all.iter().flat_map(|s| s.ns.iter().copied()).collect(),
            anomalies: 0,
            waiter_off: 0,
            another_came: 0,
            hit: 0,
            in_turn: 0,
            share_of_time: 0.0,
        };
        let mut slow_ns = 0.0;
        for anomaly in all.iter().flat_map(|s| &s.anomalies) {
            found.anomalies += 1;
            slow_ns += anomaly.ns;
            match anomaly.cause {
                Some(Cause::Preempted | Cause::Switched | Cause::Waited) => found.waiter_off += 1,
                _ if anomaly.another_came => found.another_came += 1,
                Some(_) => found.hit += 1,
                None if anomaly.ns <= IN_TURN_NS => found.in_turn += 1,
                None => {}
            }
        }
        found.share_of_time = slow_ns / found.ns.iter().sum::<f64>().max(1e-9);
        found
    }

    pub(super) fn mean(&self) -> f64 {
        self.ns.iter().sum::<f64>() / self.ns.len().max(1) as f64
    }

    pub(super) fn median(&self) -> f64 {
        let mut sorted = self.ns.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn max(&self) -> f64 {
        self.ns.iter().copied().fold(f64::NAN, f64::max)
    }

    fn in_500(&self) -> f64 {
        self.anomalies as f64 * ANOMALIES_IN / self.ns.len().max(1) as f64
    }
}

/// Every wait for a contended lock, from the trace of [`contended_scripts`](super::contended_scripts).
///
/// # Errors
/// The trace cannot be read.
pub fn contended(
    experiment: &Experiment,
    performed: &Performed,
    trace: &Trace,
) -> Result<Vec<Contended>, ExperimentError> {
    let mut all = Vec::new();
    for (index, (setting, _)) in experiment.settings().enumerate() {
        let done: Vec<&Repetition> = (performed.repetitions.iter())
            .filter(|r| r.setting == index && r.ended == Ended::Done)
            .collect();
        let kind = setting.parameters.iter().find(|(name, _)| name == "kind");
        let kind = kind.map_or("", |(_, value)| value.as_str());
        let samples = all_samples(experiment, &done, trace, 0, 0)?;
        if !samples.is_empty() {
            all.push(Contended::from_samples(kind, &samples));
        }
    }
    Ok(all)
}

/// Id, description, unit, as published, as measured, note.
type Part<'a> = (
    &'a str,
    &'a str,
    &'static str,
    Published,
    Option<Estimate>,
    &'a str,
);

/// The items for the lock for which five processes contend.
pub(super) fn wanted_by_five(
    found: &mut Reproduction,
    figures: Figures<'_>,
    contended: &[Contended],
) {
    let mut rows = Vec::new();
    let mut text = vec![
        "Published, a spin lock, us: median 123..130, mean 172..198, largest 2477, 17..32 anomalies in 500 (over ten \
         times the least), unlock 19, 13 without the write. There every process had a processor; here five share those \
         there are. pthread sleeps. Largest and anomalies are as stamped, the others without the null step."
            .to_owned(),
    ];
    for kind in KINDS {
        let with = [("kind", kind)];
        let lock = figures.named(CONTENDED, &with, "lock");
        let unlock = figures.typical(CONTENDED, &with, "unlock").cloned();
        let samples = contended.iter().find(|c| c.kind == kind);
        let n = samples.map_or(0, |s| s.ns.len() as u64);
        let plain = |value: f64, what: &str| bare(value, "ns", what, n);
        // With few steps of the clock a median has no interval, but it exists.
        let median = lock
            .and_then(|l| l.median.clone())
            .or_else(|| samples.map(|s| plain(s.median(), "median of all samples, as stamped")));
        let mean = lock.and_then(|l| l.mean.clone());
        let max = samples.map(|s| plain(s.max(), "largest of all samples, as stamped"));
        let anomalies = samples.map(|s| {
            let value = s.in_500();
            bare(
                value,
                "1",
                "samples over ten times the least of their repetition",
                n,
            )
        });
        let explained = samples.map_or_else(String::new, explained);
        let parts: [Part<'_>; 5] = [
            (
                "median",
                "lock, median",
                "us",
                published(126.5, "123..130"),
                median,
                "",
            ),
            (
                "mean",
                "lock, mean",
                "us",
                published(185.0, "172..198"),
                mean,
                "of the middle repetition",
            ),
            (
                "max",
                "lock, largest",
                "us",
                published(2477.0, "up to 2477"),
                max,
                "the largest of so many, which grows with their number",
            ),
            (
                "anomalies",
                "anomalies in 500",
                "1",
                published(24.5, "17..32"),
                anomalies,
                explained.as_str(),
            ),
            (
                "unlock",
                "unlock",
                "us",
                published(13.0, "19, 13 without the write"),
                unlock,
                "",
            ),
        ];
        let mut row = vec![kind.to_owned()];
        for (id, what, unit, published, measured, note) in parts {
            let description = ItemDescription {
                id: format!("trams/five/{id}/{kind}"),
                quantity: format!("{what}, five processes, {kind}"),
                unit,
                published: Some(published),
                formula: None,
                note: note.to_owned(),
            };
            row.push(match unit {
                "us" => cell(measured.as_ref()),
                _ => measured
                    .as_ref()
                    .map_or_else(|| "–".to_owned(), |e| format!("{:.1}", e.value)),
            });
            let item = item(description, measured.as_ref(), NOT_PERFORMED);
            row.push(times(item.ratio));
            found.items.push(item);
        }
        rows.push(row);
        if !explained.is_empty() {
            text.push(format!("Anomalies, {kind}: {explained}."));
        }
    }
    let mut columns = words(&["lock"]);
    for what in ["median", "mean", "largest", "anomalies in 500", "unlock"] {
        columns.extend([what.to_owned(), "times".to_owned()]);
    }
    found.tables.push(Table {
        title: "A lock that five processes want".to_owned(),
        text,
        columns,
        rows,
    });
}

/// The anomalies, in words.
fn explained(samples: &Contended) -> String {
    if samples.anomalies == 0 {
        return "none".to_owned();
    }
    let share = |n: u64| format!("{:.0} %", 100.0 * n as f64 / samples.anomalies as f64);
    format!(
        "{} of {}: {} the waiter was off its CPU, {} another process came onto one meanwhile (a holder that had been \
         taken off), {} an interrupt or fault, {} no longer than the others hold it in turn, {} without evidence",
        samples.anomalies,
        samples.ns.len(),
        share(samples.waiter_off),
        share(samples.another_came),
        share(samples.hit),
        share(samples.in_turn),
        share(samples.unexplained()),
    )
}

/// Does a mean hide two modes?
pub(super) fn two_modes(samples: &Contended) -> Option<String> {
    if samples.ns.is_empty() {
        return None;
    }
    let (mean, median) = (samples.mean(), samples.median());
    let share = samples.anomalies as f64 / samples.ns.len() as f64;
    let hides = mean > 1.25 * median && samples.share_of_time > 0.1;
    let verdict = if hides { "yes" } else { "no" };
    Some(format!(
        "Does a mean hide two modes? {}: {verdict}; mean {} and median {} ({} times; published 1.5), as stamped; {:.2} % of \
         the waits are over ten times the least and hold {:.0} % of the time.",
        samples.kind,
        duration(mean),
        duration(median),
        times(Some(mean / median)),
        share * 100.0,
        samples.share_of_time * 100.0,
    ))
}
