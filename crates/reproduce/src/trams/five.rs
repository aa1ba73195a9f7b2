//! The tables of a lock for which several processes contend.

use undertick_document::figures::duration;
use undertick_report::reproduce::{Reproduction, Table};
use undertick_units::Estimate;

use super::contended::{ALONE_NS, CONTENDED, CROWD, Contended, HOLD_NS, KINDS};
use super::summaries::{Row, rows};
use crate::compared::{
    Figures, ItemDescription, Published, bare, cell, item, published, shown, times,
};
use crate::tables::words;

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
    let described = at_once.map_or_else(
        || "several processes, each on its own CPU".to_owned(),
        |c| format!("{} processes, each on its own CPU", c.processes),
    );
    let text = format!(
        "Published, a spin lock, us: median 123..130, mean 172.29..197.85, largest 2477, 17..32 anomalies in 500 (over ten \
         times the least), unlock 19, 13 without the write; five wanted it, each with a processor. Here: {described}; each \
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
        let name = format!("{described}, {kind}");
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
        rows.push(items(
            found,
            ("crowd", &name),
            &samples.kind,
            Some(samples),
            parts,
        ));
    }
    if rows.is_empty() {
        return;
    }
    found.tables.push(Table {
        title: "A lock that more processes want than there are CPUs".to_owned(),
        text: vec![
            "Here they run in time slices, as many at once as there are CPUs; a wait for one that lost its CPU lasts \
             until that has it again. Not published: there each process had a processor."
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
    let lock = figures.named(script, &with, "lock");
    let unlock = figures.named(script, &with, "unlock");
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
            Some(published(185.07, "172.29..197.85")),
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

/// Adds the items of one kind of lock, and returns the row of the table; what is not published has no
/// ratio.
fn items(
    found: &mut Reproduction,
    (group, described): (&str, &str),
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
            quantity: format!("{what}, {described}"),
            unit,
            published,
            formula: None,
            note: notes.join("; "),
        };
        let item = item(description, measured.as_ref(), missing);
        if id != "taken" {
            row.push(match unit {
                "us" => cell(shown(&item, measured.as_ref())),
                _ => (measured.as_ref())
                    .map_or_else(|| "–".to_owned(), |e| format!("{:.1}", e.value)),
            });
            row.extend(published.map(|_| times(item.ratio)));
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
         taken off), {} an interrupt or fault, {} no longer than the others hold it in turn, {} without evidence \
         (a guest's host, firmware, caches: no kernel sees them)",
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
    // One verdict on all repetitions would differ from run to run.
    let verdict = match samples.with_two_modes {
        0 => "no".to_owned(),
        n if n == samples.repetitions => "yes".to_owned(),
        n => format!("in {n} of {} repetitions", samples.repetitions),
    };
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
