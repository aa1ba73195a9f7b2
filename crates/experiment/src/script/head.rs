//! Reads the top of a script, and its locks, channels and regions.

use std::time::Duration;

use super::field::{Fields, Given, bad_name};
use super::message::{Bad, Origin, Result, none_of};
use super::plan::{Channel, Length, Lock, Region, Stamps};
use super::raw::Table;
use super::sweep::Scope;
use super::verb::{Backend, Pages, Policy, RegionKind, Words};

/// The keys of the top; tables come last.
pub(super) const TOP: &[&str] = &[
    "title",
    "passes",
    "seconds",
    "warm_up",
    "repetitions",
    "seed",
    "timeout",
    "settle",
    "stamps",
    "backend",
    "policy",
    "sweep",
    "lock",
    "channel",
    "region",
    "process",
    "interval",
    "line",
];

/// Number of the keys of the top that are tables.
const TABLES: usize = 7;
/// Top-level keys that are not tables.
pub(super) const TOP_VALUES: &[&str] = TOP.split_at(TOP.len() - TABLES).0;

/// Maximum number of passes, of the warm-up or counted.
pub const MOST_PASSES: u64 = 1_000_000_000;

/// Maximum number of locks, channels or regions.
const MOST_SHARED: usize = 256;

/// Default duration of a repetition, seconds.
const USUAL_SECONDS: f64 = 0.2;

/// Default number of passes of the warm-up.
const USUAL_WARM_UP: u64 = 20;

/// Default timeout of a repetition.
const USUAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Default time after which a process counts as blocked.
const USUAL_SETTLE: Duration = Duration::from_micros(50);

impl Words for Stamps {
    const WORDS: &'static [(&'static str, Self)] =
        &[("between", Self::Between), ("around", Self::Around)];
}

/// Contents of the top of a script at one setting.
pub(super) struct Head {
    pub(super) length: Length,
    pub(super) warm_up: u64,
    pub(super) timeout: Duration,
    pub(super) settle: Duration,
    pub(super) stamps: Stamps,
    pub(super) backend: Option<Given<Backend>>,
    pub(super) policies: Vec<Policy>,
}

impl Head {
    pub(super) fn read(fields: Fields<'_>) -> Result<Self> {
        let timeout = fields.time("timeout", false)?;
        let timeout = timeout.map_or(USUAL_TIMEOUT, |t| t.value);
        let warm_up = fields.whole("warm_up", 0..=MOST_PASSES)?;
        let settle = fields.time("settle", true)?;
        let stamps = fields.word("stamps", "way of stamping")?;
        Ok(Self {
            length: length(fields, timeout)?,
            warm_up: warm_up.map_or(USUAL_WARM_UP, |n| n.value),
            timeout,
            settle: settle.map_or(USUAL_SETTLE, |t| t.value),
            stamps: stamps.map_or(Stamps::Between, |s| s.value),
            backend: fields.word("backend", "backend")?,
            policies: policies(fields)?,
        })
    }
}

/// Separates a policy from the one in its place where it is not permitted.
const ELSE: &str = " else ";

/// Reads `policy = "fifo else batch"`.
fn policies(fields: Fields<'_>) -> Result<Vec<Policy>> {
    let Some(given) = fields.text("policy", "fifo else batch")? else {
        return Ok(vec![Policy::Other]);
    };
    let mut all = Vec::new();
    for word in given.value.split(ELSE).map(str::trim) {
        let policy = Policy::from_word(word).ok_or_else(|| {
            let known: Vec<&str> = Policy::WORDS.iter().map(|(word, _)| *word).collect();
            (given.from).bad(none_of("there is no scheduling policy", word, &known))
        })?;
        if all.contains(&policy) {
            let why = format!(
                "{:?} names the policy {word:?} twice; leave one of them out",
                given.value
            );
            return Err(given.from.bad(why));
        }
        all.push(policy);
    }
    Ok(all)
}

fn length(fields: Fields<'_>, timeout: Duration) -> Result<Length> {
    let passes = fields.whole("passes", 1..=MOST_PASSES)?;
    let seconds = fields.seconds("seconds")?;
    match (passes, seconds) {
        (Some(passes), Some(seconds)) => {
            let at = passes.from.at.max(seconds.from.at);
            let why = "passes and seconds both say how long; leave one of them out";
            Err(Bad::new(at, why))
        }
        (Some(passes), None) => Ok(Length::Passes(passes.value)),
        (None, Some(seconds)) if seconds.value >= timeout.as_secs_f64() => {
            let why = format!(
                "seconds = {} leaves no time before the timeout of {timeout:?}; set timeout = \"{}s\"",
                seconds.value,
                (seconds.value * 2.0).ceil().min(3600.0)
            );
            Err(seconds.from.bad(why))
        }
        (None, Some(seconds)) => Ok(Length::Seconds(seconds.value)),
        (None, None) => Ok(Length::Seconds(USUAL_SECONDS)),
    }
}

/// Names that steps use, and where they are declared.
pub(super) struct Names {
    pub(super) what: &'static str,
    pub(super) names: Vec<String>,
    /// Where each name is declared.
    pub(super) from: Vec<Origin>,
}

impl Names {
    /// The index of the object that a step names.
    pub(super) fn find(&self, given: &Given<String>) -> Result<usize> {
        let found = self.names.iter().position(|name| *name == given.value);
        found.ok_or_else(|| {
            let (what, wrong) = (self.what, &given.value);
            if self.names.is_empty() {
                let why = format!(
                    "there is no {what} {wrong:?}; declare it above the processes: a line [{what}.{wrong}]"
                );
                return given.from.bad(why);
            }
            let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
            given.from.bad(none_of(&format!("there is no {what}"), wrong, &known))
        })
    }
}

/// Reads all tables `[what.NAME]`.
fn declared<'s, T>(
    root: &'s Table,
    scope: &'s Scope<'s>,
    (what, keys): (&'static str, &[&str]),
    read: impl Fn(Fields<'s>, String) -> Result<T>,
) -> Result<(Vec<T>, Names)> {
    let mut all = Vec::new();
    let mut names = Names {
        what,
        names: Vec::new(),
        from: Vec::new(),
    };
    for (entry, table) in root.named(what, MOST_SHARED)? {
        if let Some(why) = bad_name(&entry.key, "") {
            return Err(Bad::new(entry.at, why));
        }
        table.only(&format!("a {what}"), keys, TOP_VALUES)?;
        all.push(read(Fields { table, scope }, entry.key.clone())?);
        names.names.push(entry.key.clone());
        names.from.push(Origin {
            at: entry.at,
            note: String::new(),
        });
    }
    Ok((all, names))
}

pub(super) fn locks(root: &Table, scope: &Scope<'_>) -> Result<(Vec<Lock>, Names)> {
    declared(root, scope, ("lock", &["kind"]), |fields, name| {
        let kind = fields.word("kind", "kind of lock")?;
        let kind = fields.need(kind, "a lock", "kind = \"pthread\"")?.value;
        Ok(Lock { name, kind })
    })
}

pub(super) fn channels(root: &Table, scope: &Scope<'_>) -> Result<(Vec<Channel>, Names)> {
    declared(root, scope, ("channel", &["kind"]), |fields, name| {
        let kind = fields.word("kind", "kind of channel")?;
        let kind = fields.need(kind, "a channel", "kind = \"pipe\"")?.value;
        Ok(Channel { name, kind })
    })
}

pub(super) fn regions(root: &Table, scope: &Scope<'_>) -> Result<(Vec<Region>, Names)> {
    let keys = ["bytes", "kind", "pages", "ready"];
    declared(root, scope, ("region", &keys), |fields, name| {
        let bytes = fields.bytes("bytes")?;
        let kind = fields.word("kind", "kind of region")?;
        let pages = fields.word("pages", "kind of pages")?;
        let ready = fields.flag("ready")?;
        Ok(Region {
            name,
            bytes: fields.need(bytes, "a region", "bytes = \"4MiB\"")?.value,
            kind: kind.map_or(RegionKind::Private, |k| k.value),
            pages: pages.map_or(Pages::Default, |p| p.value),
            ready: ready.is_none_or(|r| r.value),
        })
    })
}
