//! Locks for which several processes contend: the scripts, and the waits that they give.

use std::fmt::Write as _;

use undertick_experiment::{Ended, Experiment, ExperimentError, Performed, Repetition};
use undertick_format::read::Trace;
use undertick_meter::traffic::{Cause, Samples, all_samples};

/// Number of samples to which the published anomalies refer.
const ANOMALIES_IN: f64 = 500.0;

/// The kinds of lock; the published one spins.
pub(super) const KINDS: [&str; 4] = ["spin", "pthread-spin", "ticket", "pthread"];
/// Those for which more processes than CPUs contend.
const CROWD_KINDS: [&str; 2] = ["spin", "pthread"];

/// Number of processes that want the published lock at the same time, beside the one that has it.
const WANT: usize = 5;

/// Time for which a process holds the lock, and for which it then lets it alone, ns.
pub(super) const HOLD_NS: f64 = 2_000.0;
pub(super) const ALONE_NS: f64 = 200.0;
/// A hand-over takes less than this, ns.
const HAND_OVER_NS: f64 = 500.0;

/// Each process has a CPU of its own.
pub(super) const CONTENDED: &str = "contended";
/// More processes than CPUs.
pub(super) const CROWD: &str = "contended-crowd";

/// Returns the scripts: as many processes as CPUs, up to five; and five where that is more.
pub(super) fn scripts(cpus: &[usize]) -> Vec<(String, String)> {
    let at_once = cpus.len().min(WANT);
    let mut all = Vec::new();
    if at_once > 1 {
        let places = cpus[..at_once].iter().map(|cpu| format!("cpu {cpu}"));
        all.push((CONTENDED.to_owned(), script(places)));
    }
    if at_once < WANT {
        let text = script((0..WANT).map(|_| "any".to_owned()));
        let kinds = KINDS.map(|kind| format!("{kind:?}")).join(", ");
        let fewer = CROWD_KINDS.map(|kind| format!("{kind:?}")).join(", ");
        all.push((CROWD.to_owned(), text.replace(&kinds, &fewer)));
    }
    all
}

fn script(places: impl Iterator<Item = String>) -> String {
    let mut text = include_str!("../scripts/contended.toml").to_owned();
    for (name, place) in ["A", "B", "C", "D", "E"].into_iter().zip(places) {
        let _ = write!(
            text,
            "\n[[process]]\nname = {name:?}\nplace = {place:?}\n\
             [[process.step]]\nlock = \"m\"\nname = \"lock\"\n\
             [[process.step]]\nwork = \"{HOLD_NS}ns\"\ntimed = false\n\
             [[process.step]]\nunlock = \"m\"\nname = \"unlock\"\n\
             [[process.step]]\nwork = \"{ALONE_NS}ns\"\ntimed = false\n"
        );
    }
    text
}

/// The waits of a process for a lock that others want as well, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Contended {
    /// Name of the script.
    pub script: String,
    /// The kind of lock.
    pub kind: String,
    /// Number of processes.
    pub processes: usize,
    /// Every wait for it, ns; no cost is taken off.
    pub ns: Vec<f64>,
    /// Number of waits at whose begin another process had the lock.
    pub found_taken: u64,
    /// Number of waits over ten times the median of their repetition.
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
    /// Number of repetitions.
    pub repetitions: u64,
    /// Of these, the number in which the mean hides two modes: it is far over the median, and the
    /// anomalies hold much of the time.
    pub with_two_modes: u64,
}

/// A mean of over this times the median, with anomalies of over this share of the time, hides two modes.
const HIDDEN_TIMES: f64 = 1.25;
const HIDDEN_SHARE: f64 = 0.1;

fn hides_two_modes(samples: &Samples) -> bool {
    let time: f64 = samples.ns.iter().sum();
    let slow: f64 = samples.anomalies.iter().map(|a| a.ns).sum();
    let mean = time / samples.ns.len().max(1) as f64;
    mean > HIDDEN_TIMES * median(&samples.ns) && slow > HIDDEN_SHARE * time
}

fn median(ns: &[f64]) -> f64 {
    let mut sorted = ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Contended {
    pub(super) fn unexplained(&self) -> u64 {
        self.anomalies - self.waiter_off - self.another_came - self.hit - self.in_turn
    }

    pub(super) fn from_samples(
        script: &str,
        (kind, processes): (&str, usize),
        all: &[Samples],
    ) -> Self {
        let mut found = Self {
            script: script.to_owned(),
            kind: kind.to_owned(),
            processes,
            ns: all.iter().flat_map(|s| s.ns.iter().copied()).collect(),
            found_taken: all.iter().map(|s| s.found_taken).sum(),
            anomalies: 0,
            waiter_off: 0,
            another_came: 0,
            hit: 0,
            in_turn: 0,
            share_of_time: 0.0,
            repetitions: all.len() as u64,
            with_two_modes: all.iter().filter(|s| hides_two_modes(s)).count() as u64,
        };
        // The others hold it one after the other.
        let in_turn_ns = processes.saturating_sub(1) as f64 * (HOLD_NS + HAND_OVER_NS);
        let mut slow_ns = 0.0;
        for anomaly in all.iter().flat_map(|s| &s.anomalies) {
            found.anomalies += 1;
            slow_ns += anomaly.ns;
            match anomaly.cause {
                Some(Cause::Preempted | Cause::Switched | Cause::Waited) => found.waiter_off += 1,
                _ if anomaly.another_came => found.another_came += 1,
                Some(_) => found.hit += 1,
                None if anomaly.ns <= in_turn_ns => found.in_turn += 1,
                None => {}
            }
        }
        found.share_of_time = slow_ns / found.ns.iter().sum::<f64>().max(1e-9);
        found
    }

    /// Share of the waits that found the lock taken.
    pub(super) fn share_taken(&self) -> f64 {
        self.found_taken as f64 / self.ns.len().max(1) as f64
    }

    /// What passing the lock on costs if it is always wanted: the waits of those that take it in
    /// turn are the others' holds and hand-overs, less the time in which it was let alone.
    pub(super) fn hand_over(&self) -> f64 {
        (self.mean() + ALONE_NS) / (self.processes.max(2) - 1) as f64 - HOLD_NS
    }

    pub(super) fn mean(&self) -> f64 {
        self.ns.iter().sum::<f64>() / self.ns.len().max(1) as f64
    }

    pub(super) fn median(&self) -> f64 {
        median(&self.ns)
    }

    pub(super) fn max(&self) -> f64 {
        self.ns.iter().copied().fold(f64::NAN, f64::max)
    }

    pub(super) fn in_500(&self) -> f64 {
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
            let script = experiment.script_of(index);
            let processes = setting.plan.processes.len();
            all.push(Contended::from_samples(script, (kind, processes), &samples));
        }
    }
    Ok(all)
}
