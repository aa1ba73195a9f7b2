//! *Hardware-Assisted Multiprocessor Performance Measurements*: what the recorder,
//! clocks, locks, fork and shared memory cost, on this machine.

use undertick_report::document::Report;
use undertick_report::reproduce::{Item, Reproduction, Table};
use undertick_trace::read::Trace;
use undertick_units::Estimate;

use super::Run;
use super::compared::{
    About, Figures, NOT_PERFORMED, Published, bare, cell, item, published, straight_line, times,
};
use super::tables::words;
use crate::experiment::{Cannot, Ended, Experiment, Performed, Repetition};
use crate::primitives;
use crate::traffic::{Cause, Samples, all_samples};

/// Sizes of the shared memory, KB, and the mean time of a fork with it, ms.
const FORKS: [(f64, Published); 7] = [
    (33.0, published(130.0, "130")),
    (125.0, published(137.0, "137")),
    (490.0, published(161.0, "161")),
    (1096.0, published(198.0, "198")),
    (1941.0, published(254.0, "254")),
    (3026.0, published(329.0, "329")),
    (4351.0, published(410.0, "410")),
];
/// Without shared memory, ms.
const FORK_WITHOUT: Published = published(90.0, "90");
/// Samples to which the published anomalies refer.
const ANOMALIES_IN: f64 = 500.0;
/// The locks that five processes want here; the published one spins.
const KINDS: [&str; 4] = ["spin", "pthread-spin", "ticket", "pthread"];
/// Four others, each for 200 ns and the lock's way from one to the next, ns.
const IN_TURN_NS: f64 = 1_200.0;
const CONTENDED: &str = "contended";

/// The scripts to perform without the kernel's evidence.
#[must_use]
pub fn scripts(run: Run, cpus: &[usize]) -> Vec<(String, String)> {
    let groups = ["recorder", "clocks", "locks", "calls"].map(str::to_owned);
    let mut all = primitives::scripts(&groups, cpus).unwrap_or_default();
    for (_, text) in &mut all {
        *text = text.replace("readers = [1, 2, 4]", "readers = [1]");
    }
    let own = [
        ("loop", include_str!("scripts/loop.toml")),
        ("fork-published", include_str!("scripts/fork.toml")),
        ("fork-nothing", include_str!("scripts/nothing.toml")),
        ("memory-published", include_str!("scripts/memory.toml")),
    ];
    all.extend(own.map(|(name, text)| (name.to_owned(), text.to_owned())));
    with_repetitions(all, run)
}

/// The script to perform with it: locks that five processes want.
#[must_use]
pub fn contended_scripts(run: Run) -> Vec<(String, String)> {
    let text = include_str!("scripts/contended.toml").to_owned();
    with_repetitions(vec![(CONTENDED.to_owned(), text)], run)
}

fn with_repetitions(all: Vec<(String, String)>, run: Run) -> Vec<(String, String)> {
    let repetitions = match run {
        Run::Full => 6,
        Run::Quick => 4,
    };
    (all.into_iter())
        .map(|(name, text)| (name, format!("repetitions = {repetitions}\n{text}")))
        .collect()
}

/// What five that want a lock make of it, by kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Contended {
    /// The kind of lock.
    pub kind: String,
    /// Every wait for it, ns, nothing taken off.
    pub ns: Vec<f64>,
    /// Those over ten times the least of their repetition.
    pub anomalies: u64,
    /// Of them: the one that waited was taken off its CPU.
    pub waiter_off: u64,
    /// Of the others: another process was put on a CPU meanwhile, as a holder is that
    /// had been taken off.
    pub another_came: u64,
    /// Of the others: an interrupt or something else fell into it.
    pub hit: u64,
    /// Of the others: no longer than the rivals hold it one after the other.
    pub in_turn: u64,
    /// Time of the anomalies over that of all.
    pub share_of_time: f64,
}

impl Contended {
    fn unexplained(&self) -> u64 {
        self.anomalies - self.waiter_off - self.another_came - self.hit - self.in_turn
    }

    fn of(kind: &str, all: &[Samples]) -> Self {
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

    fn mean(&self) -> f64 {
        self.ns.iter().sum::<f64>() / self.ns.len().max(1) as f64
    }

    fn median(&self) -> f64 {
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

/// Every wait for a contended lock, from the trace of [`contended_scripts`].
///
/// # Errors
/// The trace cannot be read.
pub fn contended(
    experiment: &Experiment,
    performed: &Performed,
    trace: &Trace,
) -> Result<Vec<Contended>, Cannot> {
    let mut all = Vec::new();
    for (index, (setting, _)) in experiment.settings().enumerate() {
        let done: Vec<&Repetition> = (performed.repetitions.iter())
            .filter(|r| r.setting == index && r.ended == Ended::Done)
            .collect();
        let kind = setting.parameters.iter().find(|(name, _)| name == "kind");
        let kind = kind.map_or("", |(_, value)| value.as_str());
        let samples = all_samples(experiment, &done, trace, 0, 0)?;
        if !samples.is_empty() {
            all.push(Contended::of(kind, &samples));
        }
    }
    Ok(all)
}

/// The published figures beside those of a report of [`scripts`] and one of
/// [`contended_scripts`].
#[must_use]
pub fn reproduction(report: &Report, locks: &Report, contended: &[Contended]) -> Reproduction {
    let mut found = Reproduction {
        schema_version: 1,
        source: "trams".to_owned(),
        title: "Mink, Draper, Roberts, Carpenter, Hardware-Assisted Multiprocessor Performance Measurements, NBSIR \
                87-3585, 1987"
            .to_owned(),
        items: Vec::new(),
        tables: Vec::new(),
        findings: Vec::new(),
        interrupted: false,
    };
    let figures = Figures(report);
    single(&mut found, figures);
    wanted_by_five(&mut found, Figures(locks), contended);
    fork(&mut found, figures);
    memory(&mut found, figures);
    found.findings.extend(conclusions(&found.items, contended));
    found
}

/// A figure that is one step of one script.
struct Single {
    id: &'static str,
    what: &'static str,
    published: Published,
    script: &'static str,
    with: &'static [(&'static str, &'static str)],
    name: &'static str,
    /// So many in one.
    of: f64,
    note: &'static str,
}

const SINGLES: &[Single] = &[
    Single {
        id: "record/constant",
        what: "record a constant",
        published: published(3.0, "3"),
        script: "recorder",
        with: &[],
        name: "record event",
        of: 1.0,
        note: "",
    },
    Single {
        id: "record/variable",
        what: "record a variable",
        published: published(3.5, "3..4"),
        script: "recorder",
        with: &[],
        name: "record event-variable",
        of: 1.0,
        note: "",
    },
    Single {
        id: "record/both",
        what: "record a constant and a variable",
        published: published(6.0, "6"),
        script: "recorder",
        with: &[],
        name: "record event64",
        of: 1.0,
        note: "here: an event with 64 bits, two records",
    },
    Single {
        id: "loop",
        what: "a turn of a loop",
        published: published(4.5, "7..11 with a write of 3..6: about 4.5"),
        script: "loop",
        with: &[],
        name: "10 000 turns of a loop",
        of: 10_000.0,
        note: "here: a ten thousandth of 10 000 turns, each a dependent multiply-add; a turn alone is shorter than a \
               step of the clock",
    },
    Single {
        id: "clock/gettimeofday/mean",
        what: "gettimeofday, mean",
        published: published(672.0, "672"),
        script: "clocks",
        with: &[("readers", "1")],
        name: "read gettimeofday",
        of: 1.0,
        note: "",
    },
    Single {
        id: "clock/gettimeofday/median",
        what: "gettimeofday, median",
        published: published(649.0, "649"),
        script: "clocks",
        with: &[("readers", "1")],
        name: "read gettimeofday",
        of: 1.0,
        note: "",
    },
    Single {
        id: "clock/getrusage/mean",
        what: "getrusage, mean",
        published: published(871.0, "871"),
        script: "clocks",
        with: &[("readers", "1")],
        name: "read getrusage",
        of: 1.0,
        note: "",
    },
    Single {
        id: "clock/getrusage/median",
        what: "getrusage, median",
        published: published(843.0, "843"),
        script: "clocks",
        with: &[("readers", "1")],
        name: "read getrusage",
        of: 1.0,
        note: "",
    },
    Single {
        id: "lock/alone",
        what: "lock, nobody else wants it",
        published: published(35.0, "41, 35 without the write"),
        script: "locks",
        with: &[("kind", "spin")],
        name: "lock",
        of: 1.0,
        note: "",
    },
    Single {
        id: "unlock/alone",
        what: "unlock, nobody else wants it",
        published: published(11.0, "16, 11 without the write"),
        script: "locks",
        with: &[("kind", "spin")],
        name: "unlock",
        of: 1.0,
        note: "",
    },
    Single {
        id: "lock-unlock/alone",
        what: "least synchronisation cost: lock and unlock",
        published: published(46.0, "46"),
        script: "locks",
        with: &[("kind", "spin")],
        name: "lock and unlock",
        of: 1.0,
        note: "",
    },
];

fn single(found: &mut Reproduction, figures: Figures<'_>) {
    let mut rows = Vec::new();
    for single in SINGLES {
        let measured = figures
            .named(single.script, single.with, single.name)
            .and_then(|interval| {
                let of = match single.id.rsplit('/').next() {
                    Some("mean") => interval.mean.clone(),
                    Some("median") => interval.median.clone(),
                    _ => None,
                };
                // A median of few steps of the clock is not given: the figure to quote is.
                of.or_else(|| Some(interval.repeated.as_ref()?.typical.clone()))
            })
            .map(|e| undertick_estimate::scaled(e, 1.0 / single.of, "ns"));
        let about = About {
            id: format!("trams/{}", single.id),
            quantity: single.what.to_owned(),
            unit: "us",
            published: Some(single.published),
            formula: None,
            note: single.note.to_owned(),
        };
        let item = item(about, measured.as_ref(), NOT_PERFORMED);
        rows.push(vec![
            single.what.to_owned(),
            single.published.printed.to_owned(),
            cell(measured.as_ref()),
            interval(measured.as_ref()),
            times(item.ratio),
        ]);
        found.items.push(item);
    }
    found.tables.push(Table {
        title: "Recorder, loops, clocks, locks".to_owned(),
        text: vec!["Locks spin and are free. times: published over measured.".to_owned()],
        columns: words(&["quantity", "published, us", "here", "interval", "times"]),
        rows,
    });
}

fn interval(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(
        || "–".to_owned(),
        |e| {
            let figure = undertick_report::figures::figure(e);
            format!("{} {}", figure.interval(), figure.unit)
        },
    )
}

/// The lock that five processes want.
fn wanted_by_five(found: &mut Reproduction, figures: Figures<'_>, contended: &[Contended]) {
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
        // Few steps of the clock have no median with an interval, but they have one.
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
        let parts: [(&str, &str, &str, Published, Option<Estimate>, &str); 5] = [
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
                "",
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
            let about = About {
                id: format!("trams/five/{id}/{kind}"),
                quantity: format!("{what}, five processes, {kind}"),
                unit: if unit == "us" { "us" } else { "1" },
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
            let item = item(about, measured.as_ref(), NOT_PERFORMED);
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

fn fork(found: &mut Reproduction, figures: Figures<'_>) {
    let with = |kind: &'static str| [("kind", kind)];
    let mut rows = Vec::new();
    let without = figures.typical("fork-nothing", &[], "fork");
    let about = |id: String, quantity: String, value: Published, note: &str| About {
        id,
        quantity,
        unit: "ms",
        published: Some(value),
        formula: None,
        note: note.to_owned(),
    };
    let nothing = item(
        about(
            "trams/fork/0".to_owned(),
            "fork without shared memory".to_owned(),
            FORK_WITHOUT,
            "",
        ),
        without,
        NOT_PERFORMED,
    );
    rows.push(vec![
        "0".to_owned(),
        "90".to_owned(),
        cell(without),
        times(nothing.ratio),
        "–".to_owned(),
    ]);
    found.items.push(nothing);
    for (kb, ms) in FORKS {
        let bytes = format!("{kb}KB");
        let at = |kind| {
            let with = [("kind", kind), ("bytes", bytes.as_str())];
            figures.typical("fork-published", &with, "fork").cloned()
        };
        let (shared, private) = (at("shared"), at("private"));
        let item = item(
            about(
                format!("trams/fork/{kb}KB"),
                format!("fork with {kb} KB of shared memory"),
                ms,
                "24 samples were published",
            ),
            shared.as_ref(),
            NOT_PERFORMED,
        );
        rows.push(vec![
            format!("{kb}"),
            ms.printed.to_owned(),
            cell(shared.as_ref()),
            times(item.ratio),
            cell(private.as_ref()),
        ]);
        found.items.push(item);
    }
    let (at_0, slope) = straight_line(&FORKS.map(|(kb, ms)| (kb, ms.value)));
    for kind in ["shared", "private"] {
        let line = figures.line("fork-published", &with(kind));
        for (id, what, of, value) in [
            (
                "slope",
                "a MiB more",
                line.map(|l| &l.slope),
                slope * 1024.0,
            ),
            ("at-0", "at 0", line.map(|l| &l.intercept), at_0),
        ] {
            let mut item = item(
                About {
                    id: format!("trams/fork/{id}/{kind}"),
                    quantity: format!("fork against {kind} memory, {what}"),
                    unit: "ms",
                    published: None,
                    formula: Some(value),
                    note: format!(
                        "by formula: least squares through the published points{}",
                        line.map_or_else(String::new, bent)
                    ),
                },
                of,
                NOT_PERFORMED,
            );
            item.ratio = super::compared::ratio(item.formula, item.measured.as_ref());
            rows.push(vec![
                format!("{kind}: {what}"),
                format!("{value:.1}, by formula"),
                cell(of),
                times(item.ratio),
                "–".to_owned(),
            ]);
            found.items.push(item);
        }
    }
    found.tables.push(Table {
        title: "Fork against memory".to_owned(),
        text: vec![format!(
            "Published, ms: {at_0:.0} + {:.1} a MiB by least squares through the seven points, 90 without shared memory. \
             Here until the call returns in the parent, with memory touched in 4 KiB pages.",
            slope * 1024.0
        )],
        columns: words(&["KB", "published, ms", "shared", "times", "private"]),
        rows,
    });
}

/// Whether the points lie on the line, in words.
fn bent(line: &undertick_report::document::LineReport) -> String {
    match (line.lack_of_fit_p, line.worst_share) {
        (Some(p), Some(share)) => {
            format!(
                "; here the points are within {:.0} % of a line (p {p:.2})",
                share * 100.0
            )
        }
        _ => String::new(),
    }
}

fn memory(found: &mut Reproduction, figures: Figures<'_>) {
    let ends = [("33KB", 0_usize), ("4351KB", 1)];
    let steps = [
        (
            "initialise",
            "initialise shared memory",
            [published(209.0, "209"), published(2779.0, "2779")],
        ),
        (
            "allocate",
            "allocate shared memory",
            [published(72.0, "72"), published(13_827.0, "13827")],
        ),
    ];
    let mut rows = Vec::new();
    for (step, what, published) in steps {
        for kind in ["sysv", "shared"] {
            for (bytes, end) in ends {
                let with = [("kind", kind), ("bytes", bytes)];
                let measured = figures.typical("memory-published", &with, step);
                let about = About {
                    id: format!("trams/memory/{step}/{kind}/{bytes}"),
                    quantity: format!("{what}, {kind}, {bytes}"),
                    unit: "ms",
                    published: Some(published[end]),
                    formula: None,
                    note: "the least and the largest mean are printed, for the least and the largest size".to_owned(),
                };
                let item = item(about, measured, NOT_PERFORMED);
                rows.push(vec![
                    format!("{what}, {kind}, {bytes}"),
                    published[end].printed.to_owned(),
                    cell(measured),
                    times(item.ratio),
                ]);
                found.items.push(item);
            }
        }
    }
    found.tables.push(Table {
        title: "Shared memory".to_owned(),
        text: vec![
            "sysv: shmget and shmat, as then; shared: anonymous shared memory. Here allocating makes and maps it, and \
             pages come when they are written first, which is part of initialising."
                .to_owned(),
        ],
        columns: words(&["quantity", "published, ms", "here", "times"]),
        rows,
    });
}

/// What the published conclusions look like with these figures.
fn conclusions(items: &[Item], contended: &[Contended]) -> Vec<String> {
    let value = |id: &str| {
        let item = items.iter().find(|item| item.id == format!("trams/{id}"))?;
        let unit = super::compared::ns_of(&item.unit);
        Some(item.measured.as_ref()?.value * unit)
    };
    let mut findings = Vec::new();
    if let (Some(recorder), Some(time), Some(usage)) = (
        value("record/both"),
        value("clock/gettimeofday/median"),
        value("clock/getrusage/median"),
    ) {
        findings.push(clocks(time / recorder, usage / recorder));
    }
    if let (Some(both), Some(turn)) = (value("lock-unlock/alone"), value("loop")) {
        let mean = value("five/mean/spin");
        findings.push(grain(both, turn, mean, value("fork/0")));
    }
    if let (Some(shared), Some(private)) = (value("fork/slope/shared"), value("fork/slope/private"))
    {
        findings.push(forks(shared / 1e3, private / 1e3));
    }
    findings.extend(contended.iter().filter_map(two_modes));
    findings
}

/// Are software clocks still two orders dearer than the recorder?
fn clocks(time: f64, usage: f64) -> String {
    let verdict = |ratio: f64| match ratio {
        r if r >= 50.0 => "still about two orders dearer",
        r if r >= 5.0 => "one order dearer",
        r if r > 1.5 => "dearer, by less than one order",
        _ => "no dearer",
    };
    format!(
        "Are software clocks still two orders dearer than the recorder? Published medians over 6 us: gettimeofday 108, \
         getrusage 140 times. Here gettimeofday is {} ({} times), getrusage {} ({} times).",
        verdict(time),
        times(Some(time)),
        verdict(usage),
        times(Some(usage)),
    )
}

/// Is coarse grain still advised? All ns.
fn grain(both: f64, turn: f64, contended: Option<f64>, fork: Option<f64>) -> String {
    let turns = both / turn;
    let published = 46.0 / 4.5;
    let verdict = match turns {
        t if t > 2.0 * published => "more than then",
        t if t < published / 2.0 => "less than then, but",
        _ => "as then:",
    };
    let mut text = format!(
        "Is coarse grain still advised? A lock and unlock that nobody else wants cost {} turns of a loop then and {} \
         here, {verdict} work of {} turns between two is needed for them to be 1 % of the time.",
        times(Some(published)),
        times(Some(turns)),
        times(Some(turns * 99.0)),
    );
    if let Some(mean) = contended.filter(|mean| *mean > 0.0) {
        text += &format!(
            " With five that want it the mean wait is {} turns (then 41): {}.",
            times(Some(mean / turn)),
            if mean > 4.0 * both {
                "coarse grain is advised"
            } else {
                "grain matters little"
            },
        );
    }
    if let Some(fork) = fork {
        text += &format!(
            " A process made by fork costs {} locks and unlocks (then 1957).",
            times(Some(fork / both))
        );
    }
    text
}

/// Does fork still grow with shared memory? Slopes in us a MiB.
fn forks(shared: f64, private: f64) -> String {
    let verdict = if shared < private / 2.0 {
        "no longer: the kernel leaves the page tables of shared memory to be filled when they are needed"
    } else {
        "yes"
    };
    format!(
        "Does fork still grow with shared memory (66.7 ms a MiB by the published points)? Here by {shared:.1} us a MiB of \
         shared and {private:.1} us a MiB of private memory: {verdict}."
    )
}

/// Does a mean hide two modes?
fn two_modes(samples: &Contended) -> Option<String> {
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
        undertick_report::figures::duration(mean),
        undertick_report::figures::duration(median),
        times(Some(mean / median)),
        share * 100.0,
        samples.share_of_time * 100.0,
    ))
}

#[cfg(test)]
#[path = "trams_tests.rs"]
mod tests;
