//! A lock for which several processes contend.

use std::fmt::Write as _;

use undertick_document::figures::duration;
use undertick_experiment::{Ended, Experiment, ExperimentError, Performed, Repetition};
use undertick_format::read::Trace;
use undertick_meter::traffic::{Cause, Samples, all_samples};
use undertick_report::reproduce::{Reproduction, Table};
use undertick_units::Estimate;

use super::summaries::{Row, rows};
use crate::compared::{Figures, ItemDescription, Published, bare, cell, item, published, times};
use crate::tables::words;

/// Number of samples to which the published anomalies refer.
const ANOMALIES_IN: f64 = 500.0;

/// The kinds of lock; the published one spins.
const KINDS: [&str; 4] = ["spin", "pthread-spin", "ticket", "pthread"];
/// Those for which more processes than CPUs contend.
const CROWD_KINDS: [&str; 2] = ["spin", "pthread"];

/// Number of processes that want the published lock at the same time, beside the one that has it.
const WANT: usize = 5;

/// Time for which a process holds the lock, and for which it then lets it alone, ns.
const HOLD_NS: f64 = 2_000.0;
const ALONE_NS: f64 = 200.0;
/// A hand-over takes less than this, ns.
const HAND_OVER_NS: f64 = 500.0;

/// Each process has a CPU of its own.
pub(super) const CONTENDED: &str = "contended";
/// More processes than CPUs.
const CROWD: &str = "contended-crowd";

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
            let script = experiment.script_of(index);
            let processes = setting.plan.processes.len();
            all.push(Contended::from_samples(script, (kind, processes), &samples));
        }
    }
    Ok(all)
}

/// Id, description, unit, as published, as measured, note.
type Part<'a> = (
    &'a str,
    &'a str,
    &'static str,
    Option<Published>,
    Option<Estimate>,
    &'a str,
);

/// The items for a lock that several processes want.
pub(super) fn wanted_by_five(
    found: &mut Reproduction,
    figures: Figures<'_>,
    contended: &[Contended],
) {
    let at_once = contended.iter().find(|c| c.script == CONTENDED);
    let who = at_once.map_or_else(
        || "several processes, each on its own CPU".to_owned(),
        |c| format!("{} processes, each on its own CPU", c.processes),
    );
    let text = format!(
        "Published, a spin lock, us: median 123..130, mean 172..198, largest 2477, 17..32 anomalies in 500 (over ten \
         times the least), unlock 19, 13 without the write; five wanted it, each with a processor. Here: {who}; each \
         holds the lock for {} and lets it alone for {}. An anomaly here is over ten times the median. Largest and \
         anomalies are as stamped, the others without the null step.",
        duration(HOLD_NS),
        duration(ALONE_NS)
    );
    let mut table = Table {
        title: "A lock that several processes want".to_owned(),
        text: vec![text],
        columns: words(&["lock", "found taken"]),
        rows: Vec::new(),
    };
    for what in ["median", "mean", "largest", "anomalies in 500", "unlock"] {
        table.columns.extend([what.to_owned(), "times".to_owned()]);
    }
    for kind in KINDS {
        let samples = contended
            .iter()
            .find(|c| c.script == CONTENDED && c.kind == kind);
        let parts = parts(figures, CONTENDED, kind, samples);
        let name = format!("{who}, {kind}");
        table
            .rows
            .push(items(found, ("five", &name), kind, samples, parts));
        if let Some(samples) = samples.filter(|samples| samples.anomalies > 0) {
            table
                .text
                .push(format!("Anomalies, {kind}: {}.", explained(samples)));
        }
    }
    found.tables.push(table);
    printed(found);
    crowd(found, figures, contended);
}

/// Tables 3a and 3b as printed: seven programs, which differ by what they parse and take the same
/// lock.
fn printed(found: &mut Reproduction) {
    let cells = |row: &Row| {
        let figures = [row.max, row.min, row.mean].map(|figure| figure.printed.to_owned());
        let median = row.median.map_or("–", |median| median.printed).to_owned();
        let anomalies = row
            .anomalies
            .map_or_else(|| "–".to_owned(), |n| n.to_string());
        [row.n.to_string(), anomalies]
            .into_iter()
            .chain(figures)
            .chain([median])
            .collect::<Vec<_>>()
    };
    let lines = (rows("3a").zip(rows("3b"))).map(|(lock, unlock)| {
        let name = [lock.name.to_owned()].into_iter();
        name.chain(cells(&lock)).chain(cells(&unlock)).collect()
    });
    let each = ["n", "anomalies", "max", "min", "mean", "median"];
    found.tables.push(Table {
        title: "Tables 3a and 3b as printed".to_owned(),
        text: vec![
            "Locking, then unlocking, us, each with a write of 6 us. The seven programs differ by the longest string \
             that they can parse, not by their lock, so they are one experiment here."
                .to_owned(),
        ],
        columns: words(&["longest string"])
            .into_iter()
            .chain(words(&each))
            .chain(each.map(|what| format!("unlock {what}")))
            .collect(),
        rows: lines.collect(),
    });
}

/// More processes than CPUs: no published figure is of that.
fn crowd(found: &mut Reproduction, figures: Figures<'_>, contended: &[Contended]) {
    let mut rows = Vec::new();
    let all = contended.iter().filter(|c| c.script == CROWD);
    for samples in all {
        let name = format!(
            "{} processes that share the CPUs, {}",
            samples.processes, samples.kind
        );
        let parts = parts(figures, CROWD, &samples.kind, Some(samples)).map(|mut part| {
            part.3 = None;
            part
        });
        let row = items(found, ("crowd", &name), &samples.kind, Some(samples), parts);
        // Nothing is published, so nothing is compared.
        let compared = (3..row.len()).step_by(2);
        rows.push(
            (row.iter().enumerate())
                .filter(|(i, _)| !compared.clone().any(|c| c == *i))
                .map(|(_, cell)| cell.clone())
                .collect(),
        );
    }
    if rows.is_empty() {
        return;
    }
    found.tables.push(Table {
        title: "A lock that more processes want than there are CPUs".to_owned(),
        text: vec![
            "Here they run in time slices: most find the lock free, because the others do not run, and a wait for one \
             that lost its CPU lasts until that has it again. Not published: there each process had a processor."
                .to_owned(),
        ],
        columns: words(&[
            "lock",
            "found taken",
            "median",
            "mean",
            "largest",
            "anomalies in 500",
            "unlock",
        ]),
        rows,
    });
}

/// The figures of one kind of lock.
fn parts<'a>(
    figures: Figures<'a>,
    script: &'a str,
    kind: &str,
    samples: Option<&Contended>,
) -> [Part<'static>; 5] {
    let with = [("kind", kind)];
    let lock = figures.one(script, &with, "lock");
    let unlock = figures.one(script, &with, "unlock");
    let n = samples.map_or(0, |s| s.ns.len() as u64);
    let plain = |value: f64, what: &str| bare(value, "ns", what, n);
    // With few steps of the clock a median has no interval, but it exists.
    let median = lock
        .and_then(|l| l.median.clone())
        .or_else(|| samples.map(|s| plain(s.median(), "median of all samples, as stamped")));
    let anomalies = samples.map(|s| {
        bare(
            s.in_500(),
            "1",
            "samples over ten times the median of their repetition",
            n,
        )
    });
    [
        (
            "median",
            "lock, median",
            "us",
            Some(published(126.5, "123..130")),
            median,
            "",
        ),
        (
            "mean",
            "lock, mean",
            "us",
            Some(published(185.0, "172..198")),
            lock.and_then(|l| l.mean.clone()),
            "of the middle repetition",
        ),
        (
            "max",
            "lock, largest",
            "us",
            Some(published(2477.0, "up to 2477")),
            samples.map(|s| plain(s.max(), "largest of all samples, as stamped")),
            "the largest of all, which grows with their number",
        ),
        (
            "anomalies",
            "anomalies in 500",
            "1",
            Some(published(24.5, "17..32")),
            anomalies,
            "",
        ),
        (
            "unlock",
            "unlock",
            "us",
            Some(published(13.0, "19, 13 without the write")),
            unlock.and_then(|i| Some(i.repeated.as_ref()?.typical.clone())),
            "",
        ),
    ]
}

/// Adds the items of one kind of lock, and returns the row of the table.
fn items(
    found: &mut Reproduction,
    (group, who): (&str, &str),
    kind: &str,
    samples: Option<&Contended>,
    parts: [Part<'_>; 5],
) -> Vec<String> {
    let missing = match samples {
        None => {
            "not measured: two processes cannot run at once on one CPU, or the script failed (see the findings)"
        }
        Some(_) => "not measured: too few values",
    };
    let taken = samples.map(|s| {
        let n = s.ns.len() as u64;
        bare(
            s.share_taken(),
            "1",
            "by the order of the stamps of all processes",
            n,
        )
    });
    let mut row = vec![
        kind.to_owned(),
        taken
            .as_ref()
            .map_or_else(|| "–".to_owned(), |t| format!("{:.1} %", 100.0 * t.value)),
    ];
    let explained = samples.map_or_else(String::new, explained);
    let share: Part<'_> = (
        "taken",
        "share of waits that found the lock taken",
        "1",
        None,
        taken,
        "not published",
    );
    for (id, what, unit, published, measured, note) in [share].into_iter().chain(parts) {
        let mut notes = vec![match id {
            "anomalies" => explained.as_str(),
            _ => note,
        }];
        if published.is_none() {
            notes.push("not published");
        }
        notes.retain(|note| !note.is_empty());
        let description = ItemDescription {
            id: format!("trams/{group}/{id}/{kind}"),
            quantity: format!("{what}, {who}"),
            unit,
            published,
            formula: None,
            note: notes.join("; "),
        };
        let item = item(description, measured.as_ref(), missing);
        if id != "taken" {
            row.push(match unit {
                "us" => cell(measured.as_ref()),
                _ => (measured.as_ref())
                    .map_or_else(|| "–".to_owned(), |e| format!("{:.1}", e.value)),
            });
            row.push(times(item.ratio));
        }
        found.items.push(item);
    }
    row
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

/// Does a mean hide two modes? Asked where each process has a CPU.
pub(super) fn two_modes(samples: &Contended) -> Option<String> {
    if samples.ns.is_empty() || samples.script != CONTENDED {
        return None;
    }
    let (mean, median) = (samples.mean(), samples.median());
    let share = samples.anomalies as f64 / samples.ns.len() as f64;
    let hides = mean > 1.25 * median && samples.share_of_time > 0.1;
    let verdict = if hides { "yes" } else { "no" };
    Some(format!(
        "Does a mean hide two modes? {}: {verdict}; mean {} and median {} ({} times; published 1.5), as stamped; {:.2} % of \
         the waits are over ten times the median and hold {:.0} % of the time.",
        samples.kind,
        duration(mean),
        duration(median),
        times(Some(mean / median)),
        share * 100.0,
        samples.share_of_time * 100.0,
    ))
}
