//! The script as written: tables, keys and values with their places.

use toml::de::{DeTable, DeValue};

use super::message::{Bad, Result, none_of};

/// Maximum length of a script, bytes, so that reading ends soon.
const LONGEST: usize = 1 << 20;

/// Maximum length of a string, bytes, before and after substitution.
pub(super) const LONGEST_STRING: usize = 1000;

/// A value and the byte where it begins.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) at: usize,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Text(String),
    Whole(i128),
    Number(f64),
    Flag(bool),
    Date,
    List(Vec<Value>),
    Table(Table),
}

impl Kind {
    /// Its type in words, for messages.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Whole(_) => "a whole number",
            Self::Number(_) => "a number with a fraction",
            Self::Flag(_) => "true or false",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Keys and their values, in the order of the script.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) at: usize,
    pub(super) entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: usize,
    pub(super) value: Value,
}

/// Parses the TOML.
pub(super) fn parse(text: &str) -> Result<Table> {
    if text.len() > LONGEST {
        let why = format!(
            "the script is {} bytes long; the longest has {LONGEST}",
            text.len()
        );
        return Err(Bad::new(0, why));
    }
    let root = DeTable::parse(text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        let why = e.message().trim().replace('\n', ", ");
        Bad::new(at, format!("this is no TOML: {why}{}", mend_of(&why)))
    })?;
    table(0, root.get_ref())
}

/// The mend for a mistake in the TOML itself.
fn mend_of(why: &str) -> &'static str {
    if why.contains("duplicate") {
        "; a key stands once in a table, and each process and step begins with [[...]]"
    } else if why.contains("extend") {
        "; processes, steps and intervals are [[process]], [[process.step]], [[interval]]"
    } else {
        "; write key = value on each line, strings in quotes"
    }
}

fn table(at: usize, raw: &DeTable<'_>) -> Result<Table> {
    let mut entries = Vec::new();
    for (key, raw) in raw {
        let at = key.span().start;
        let key = checked(at, key.get_ref())?;
        let value = value(raw.span().start, raw.get_ref())?;
        entries.push(Entry { key, at, value });
    }
    entries.sort_by_key(|entry| entry.at);
    Ok(Table { at, entries })
}

fn value(at: usize, raw: &DeValue<'_>) -> Result<Value> {
    let too_large = || Bad::new(at, "this number is too large");
    let kind = match raw {
        DeValue::String(text) => Kind::Text(checked(at, text)?),
        DeValue::Integer(n) => {
            let n = i128::from_str_radix(n.as_str(), n.radix());
            Kind::Whole(n.map_err(|_| too_large())?)
        }
        DeValue::Float(x) => Kind::Number(x.as_str().parse().map_err(|_| too_large())?),
        DeValue::Boolean(flag) => Kind::Flag(*flag),
        DeValue::Datetime(_) => Kind::Date,
        DeValue::Array(values) => {
            let values = values.iter().map(|v| value(v.span().start, v.get_ref()));
            Kind::List(values.collect::<Result<_>>()?)
        }
        DeValue::Table(raw) => Kind::Table(table(at, raw)?),
    };
    Ok(Value { at, kind })
}

fn checked(at: usize, text: &str) -> Result<String> {
    if text.len() > LONGEST_STRING {
        let why = format!(
            "this is {} bytes long; a string or key has at most {LONGEST_STRING}",
            text.len()
        );
        return Err(Bad::new(at, why));
    }
    Ok(text.to_owned())
}

impl Table {
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Checks that there are no other keys than these; `of_top` are those of the script's top,
    /// which often end up below a table by mistake.
    pub(super) fn only(&self, whose: &str, known: &[&str], of_top: &[&str]) -> Result<()> {
        let Some(wrong) = self
            .entries
            .iter()
            .find(|entry| !known.contains(&entry.key.as_str()))
        else {
            return Ok(());
        };
        let mut why = none_of(&format!("{whose} has no key"), &wrong.key, known);
        if of_top.contains(&wrong.key.as_str()) {
            why = format!(
                "{} belongs to the whole script; move it above the first [table]",
                wrong.key
            );
        }
        Err(Bad::new(wrong.at, why))
    }

    /// The tables of `[[key]]`.
    pub(super) fn list(&self, key: &str, header: &str, most: usize) -> Result<Vec<&Table>> {
        let Some(entry) = self.entry(key) else {
            return Ok(Vec::new());
        };
        let no = |at: usize, kind: &Kind| {
            let what = kind.what();
            let why = format!("{key} is {what} here; write each one below a line {header}");
            Bad::new(at, why)
        };
        let Kind::List(values) = &entry.value.kind else {
            return Err(no(entry.at, &entry.value.kind));
        };
        if values.len() > most {
            let why = format!("{} times {header}; at most {most}", values.len());
            return Err(Bad::new(values[most].at, why));
        }
        let tables = values.iter().map(|value| match &value.kind {
            Kind::Table(table) => Ok(table),
            kind => Err(no(value.at, kind)),
        });
        tables.collect()
    }

    /// The tables of `[key.NAME]` with their names.
    pub(super) fn named(&self, key: &str, most: usize) -> Result<Vec<(&Entry, &Table)>> {
        let Some(entry) = self.entry(key) else {
            return Ok(Vec::new());
        };
        let no = |at: usize, kind: &Kind| {
            let what = kind.what();
            Bad::new(
                at,
                format!("{key} is {what} here; write each one below a line [{key}.NAME]"),
            )
        };
        let Kind::Table(all) = &entry.value.kind else {
            return Err(no(entry.at, &entry.value.kind));
        };
        if all.entries.len() > most {
            let why = format!("{} times [{key}.NAME]; at most {most}", all.entries.len());
            return Err(Bad::new(all.entries[most].at, why));
        }
        let tables = all.entries.iter().map(|entry| match &entry.value.kind {
            Kind::Table(table) => Ok((entry, table)),
            kind => Err(no(entry.at, kind)),
        });
        tables.collect()
    }
}
