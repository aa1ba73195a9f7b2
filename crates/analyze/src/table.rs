//! The table: which boundaries make which interval.
//!
//! ```toml
//! [[interval]]
//! name = "commit"            # what the report calls it
//! start = "commit begin"     # event name or number
//! end = "commit end"
//! match = "nested"           # or "key", or "message"
//! within = "transaction"     # only inside this other interval of the table
//!
//! [[frequency]]
//! name = "cache misses"
//! event = 17
//!
//! [[name]]                   # overrides the name that came with the program
//! event = 17
//! name = "miss"
//! ```
//!
//! A start matches an instant, a begin, a pair, or the `next` that enters the stage. An end
//! matches an instant, an end, a pair, or the `next` that leaves it. `nested` pairs the innermost
//! open start of one thread. `key` pairs equal payloads in one thread. `message` pairs equal
//! payloads in any threads, the k-th start with the k-th end. Begins, ends and stages have no
//! payload and so are paired in their order. A table without intervals and frequencies only
//! renames.

use std::collections::HashMap;

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

/// An error in a table, with its place.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}:{line}: {text}")]
pub struct TableError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub text: String,
}

/// A parsed table, not yet checked against a trace.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) file: String,
    pub(crate) intervals: Vec<IntervalRule>,
    pub(crate) frequencies: Vec<FrequencyRule>,
    pub(crate) names: Vec<(u16, String)>,
}

/// A reference to an event, and its line.
#[derive(Clone, Debug)]
pub(crate) struct EventRef {
    pub(crate) event: NameOrNumber,
    pub(crate) line: usize,
}

/// An event by name, or by number where it has none.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum NameOrNumber {
    Number(u16),
    Name(String),
}

#[derive(Clone, Debug)]
pub(crate) struct IntervalRule {
    pub(crate) name: String,
    pub(crate) start: EventRef,
    pub(crate) end: EventRef,
    pub(crate) matching: Matching,
    /// Index of the enclosing interval.
    pub(crate) within: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct FrequencyRule {
    pub(crate) name: String,
    pub(crate) event: EventRef,
    pub(crate) within: Option<usize>,
}

/// How starts and ends are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    Nested,
    Key,
    Message,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    #[serde(default)]
    interval: Vec<RawInterval>,
    #[serde(default)]
    frequency: Vec<RawFrequency>,
    #[serde(default)]
    name: Vec<RawName>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInterval {
    name: Spanned<String>,
    start: Spanned<NameOrNumber>,
    end: Spanned<NameOrNumber>,
    r#match: Option<Spanned<String>>,
    within: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFrequency {
    name: Spanned<String>,
    event: Spanned<NameOrNumber>,
    within: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawName {
    event: u16,
    name: Spanned<String>,
}

/// Most intervals and frequencies of a table; a report shows 4096 of either.
const MOST_ENTRIES: usize = 4096;
/// Longest name, bytes: the same as for the events of a trace.
const MOST_NAME_BYTES: usize = 1024;
/// Most intervals that enclose one.
const MOST_ENCLOSING: usize = 512;

/// Every key a table may have, for suggestions.
const KEYS: [&str; 8] = [
    "interval",
    "frequency",
    "name",
    "start",
    "end",
    "match",
    "within",
    "event",
];

impl Table {
    /// Parses a table; `file` is only its name in errors.
    ///
    /// # Errors
    /// The error names the file, the line and the nearest right word.
    pub fn parse(text: &str, file: &str) -> Result<Self, TableError> {
        let lines = LineIndex::new(text, file);
        let raw: RawTable = toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |s| s.start);
            let mut message = e.message().trim().to_owned();
            if message.contains("untagged") {
                message = "an event is its name in quotes or its number, 0 to 65535".into();
            }
            let unknown = message
                .strip_prefix("unknown field `")
                .and_then(|m| m.split('`').next())
                .and_then(|word| nearest(word, KEYS));
            if let Some(right) = unknown {
                message = format!("{message}; did you mean `{right}`?");
            }
            lines.error(at, message)
        })?;
        check_size(&raw, &lines)?;
        let mut names: HashMap<&str, usize> = HashMap::new();
        for (i, interval) in raw.interval.iter().enumerate() {
            let name = interval.name.get_ref().as_str();
            if names.insert(name, i).is_some() {
                let text = format!("a second interval named {name:?}");
                return Err(lines.error(interval.name.span().start, text));
            }
        }
        let intervals = (raw.interval.iter())
            .map(|i| lines.interval(i, &names))
            .collect::<Result<Vec<_>, _>>()?;
        check_enclosing(&raw.interval, &intervals, &lines)?;
        let frequencies = (raw.frequency.into_iter())
            .map(|f| {
                let within = lines.within(f.within.as_ref(), &names)?;
                if within.is_some_and(|w| intervals[w].matching != Matching::Nested) {
                    let at = f.within.as_ref().map_or(0, |w| w.span().start);
                    return Err(lines.error(at, ONLY_NESTED.into()));
                }
                Ok(FrequencyRule {
                    name: f.name.into_inner(),
                    event: lines.event(&f.event),
                    within,
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            file: file.into(),
            intervals,
            frequencies,
            names: (raw.name.into_iter())
                .map(|n| (n.event, n.name.into_inner()))
                .collect(),
        })
    }

    /// Whether it only renames events.
    pub(crate) fn only_renames(&self) -> bool {
        self.intervals.is_empty() && self.frequencies.is_empty()
    }
}

const ONLY_NESTED: &str = "only an interval with match = \"nested\" can enclose others";

/// Checks that enclosing intervals are nested, and that no interval encloses itself.
fn check_enclosing(
    raw: &[RawInterval],
    intervals: &[IntervalRule],
    lines: &LineIndex<'_>,
) -> Result<(), TableError> {
    for (i, rule) in intervals.iter().enumerate() {
        let at = raw[i].within.as_ref().map_or(0, |w| w.span().start);
        let mut outer = rule.within;
        if let Some(outer) = outer
            && (intervals[outer].matching != Matching::Nested || rule.matching == Matching::Message)
        {
            let text = if rule.matching == Matching::Message {
                "an interval between threads lies within none".into()
            } else {
                ONLY_NESTED.into()
            };
            return Err(lines.error(at, text));
        }
        let mut steps = 0;
        while let Some(enclosing) = outer.filter(|_| steps <= MOST_ENCLOSING) {
            outer = intervals[enclosing].within;
            steps += 1;
        }
        if outer.is_some() && steps < intervals.len() {
            return Err(lines.error(
                at,
                format!(
                    "{:?} lies within more than {MOST_ENCLOSING} others",
                    rule.name
                ),
            ));
        }
        if outer.is_some() {
            return Err(lines.error(at, format!("{:?} ends up within itself", rule.name)));
        }
    }
    Ok(())
}

/// Refuses names that are too long, and too many entries.
fn check_size(raw: &RawTable, lines: &LineIndex<'_>) -> Result<(), TableError> {
    let entries = raw.interval.len() + raw.frequency.len();
    if entries > MOST_ENTRIES {
        let text = format!(
            "{entries} intervals and frequencies, a table has at most {MOST_ENTRIES}; make several tables of it"
        );
        return Err(lines.error(0, text));
    }
    let intervals = raw.interval.iter().map(|i| &i.name);
    let names = intervals
        .chain(raw.frequency.iter().map(|f| &f.name))
        .chain(raw.name.iter().map(|n| &n.name));
    for name in names {
        let bytes = name.get_ref().len();
        if bytes > MOST_NAME_BYTES {
            let text = format!("a name of {bytes} bytes, a name has at most {MOST_NAME_BYTES}");
            return Err(lines.error(name.span().start, text));
        }
    }
    Ok(())
}

/// Offsets of the lines of the text.
struct LineIndex<'a> {
    line_ends: Vec<usize>,
    file: &'a str,
}

impl<'a> LineIndex<'a> {
    fn new(text: &str, file: &'a str) -> Self {
        let bytes = text.bytes().enumerate();
        Self {
            line_ends: bytes
                .filter(|&(_, b)| b == b'\n')
                .map(|(at, _)| at)
                .collect(),
            file,
        }
    }
}

impl LineIndex<'_> {
    fn line(&self, at: usize) -> usize {
        1 + self.line_ends.partition_point(|&end| end < at)
    }

    fn error(&self, at: usize, text: String) -> TableError {
        TableError {
            file: self.file.into(),
            line: self.line(at),
            text,
        }
    }

    fn event(&self, event: &Spanned<NameOrNumber>) -> EventRef {
        EventRef {
            event: event.get_ref().clone(),
            line: self.line(event.span().start),
        }
    }

    fn interval(
        &self,
        raw: &RawInterval,
        names: &HashMap<&str, usize>,
    ) -> Result<IntervalRule, TableError> {
        const WORDS: [&str; 3] = ["nested", "key", "message"];
        let word = raw
            .r#match
            .as_ref()
            .map_or("nested", |m| m.get_ref().as_str());
        let matching = match word {
            "nested" => Matching::Nested,
            "key" => Matching::Key,
            "message" => Matching::Message,
            _ => {
                let at = raw.r#match.as_ref().map_or(0, |m| m.span().start);
                let hint = suggestion(word, WORDS);
                let text = format!("match = {word:?}: use nested, key or message{hint}");
                return Err(self.error(at, text));
            }
        };
        Ok(IntervalRule {
            name: raw.name.get_ref().clone(),
            start: self.event(&raw.start),
            end: self.event(&raw.end),
            matching,
            within: self.within(raw.within.as_ref(), names)?,
        })
    }

    fn within(
        &self,
        within: Option<&Spanned<String>>,
        names: &HashMap<&str, usize>,
    ) -> Result<Option<usize>, TableError> {
        let Some(word) = within else { return Ok(None) };
        let found = names.get(word.get_ref().as_str()).copied();
        found.map(Some).ok_or_else(|| {
            let hint = suggestion(word.get_ref(), names.keys().copied());
            let text = format!("no interval named {:?} in this table{hint}", word.get_ref());
            self.error(word.span().start, text)
        })
    }
}

/// `; did you mean "right"?` with the nearest of these words, or nothing if none
/// is near.
pub fn suggestion<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, among).map_or_else(String::new, |right| format!("; did you mean {right:?}?"))
}

/// The nearest of these words, if it is near: at most a third of its letters wrong. A word that
/// is longer than any name has none.
fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let is_long = |letters: usize| letters > MOST_NAME_BYTES;
    among
        .into_iter()
        .filter(|candidate| {
            // At least as many letters are wrong as the lengths differ by.
            let letters = candidate.chars().count();
            !is_long(length) && !is_long(letters) && letters.abs_diff(length) <= 1.max(letters / 3)
        })
        .map(|candidate| (edits(word, candidate), candidate))
        .filter(|&(d, candidate)| d <= 1.max(candidate.chars().count() / 3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, delete, change, or swap with a neighbour (Damerau's
/// distance, no letter touched twice); letter case ignored.
fn edits(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut d = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            d[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = d[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let least = change.min(d[i - 1][j] + 1).min(d[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least.min(d[i - 2][j - 2] + 1)
                } else {
                    least
                }
            };
        }
    }
    d[a.len()][b.len()]
}

#[cfg(test)]
mod tests;
