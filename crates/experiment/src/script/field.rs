//! Typed values of one table at one setting.

use core::ops::RangeInclusive;
use std::time::Duration;

use super::amount;
use super::message::{Bad, Origin, Result, none_of};
use super::raw::{Kind, Table, Value};
use super::sweep::Scope;
use super::verb::Words;

/// Maximum of any time in a script.
const LONGEST_NS: f64 = 3600e9;

/// Maximum size of a region, bytes.
const MOST_BYTES: u64 = 1 << 36;

/// A value and where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Given<T> {
    pub(super) value: T,
    pub(super) from: Origin,
}

/// One table at one setting.
#[derive(Clone, Copy)]
pub(super) struct Fields<'s> {
    pub(super) table: &'s Table,
    pub(super) scope: &'s Scope<'s>,
}

impl Fields<'_> {
    fn given(&self, key: &str) -> Result<Option<Given<Kind>>> {
        let Some(value) = self.table.value(key) else {
            return Ok(None);
        };
        self.resolved(value).map(Some)
    }

    fn resolved(&self, value: &Value) -> Result<Given<Kind>> {
        let (value, from) = self.scope.resolve(value)?;
        Ok(Given { value, from })
    }

    /// Reads a value with a function that reports what is wrong.
    fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Kind) -> core::result::Result<T, String>,
    ) -> Result<Option<Given<T>>> {
        let Some(Given { value, from }) = self.given(key)? else {
            return Ok(None);
        };
        match read(&value) {
            Ok(value) => Ok(Some(Given { value, from })),
            Err(why) => Err(from.bad(why)),
        }
    }

    /// A required value; `example` shows how to write it.
    pub(super) fn need<T>(
        &self,
        found: Option<Given<T>>,
        whose: &str,
        example: &str,
    ) -> Result<Given<T>> {
        found.ok_or_else(|| {
            let key = example.split(' ').next().unwrap_or(example);
            let why = format!("{whose} lacks the key {key}; add {example}");
            Bad::new(self.table.at, why)
        })
    }

    /// A string.
    pub(super) fn text(&self, key: &str, example: &str) -> Result<Option<Given<String>>> {
        self.read(key, |kind| match kind {
            Kind::Text(text) => Ok(text.clone()),
            other => Err(format!(
                "{key} is {} here; write a string, {key} = {example:?}",
                other.what()
            )),
        })
    }

    /// A name: not empty, not too long, and without characters in `barred`.
    pub(super) fn name(&self, barred: &str) -> Result<Option<Given<String>>> {
        let Some(name) = self.text("name", "A")? else {
            return Ok(None);
        };
        match bad_name(&name.value, barred) {
            Some(why) => Err(name.from.bad(why)),
            None => Ok(Some(name)),
        }
    }

    /// What a time includes, in words.
    pub(super) fn includes(&self) -> Result<String> {
        let given = self.text("includes", "two system calls")?;
        Ok(given.map_or_else(String::new, |text| text.value))
    }

    /// true or false.
    pub(super) fn flag(&self, key: &str) -> Result<Option<Given<bool>>> {
        self.read(key, |kind| match kind {
            Kind::Flag(flag) => Ok(*flag),
            other => Err(format!(
                "{key} is {} here; write {key} = true or {key} = false, without quotes",
                other.what()
            )),
        })
    }

    /// A key whose only valid value is true.
    pub(super) fn only_true(&self, key: &str) -> Result<Option<Given<()>>> {
        self.read(key, |kind| match kind {
            Kind::Flag(true) => Ok(()),
            Kind::Flag(false) => Err(format!(
                "{key} = true is all that {key} can be; without it, leave the step out"
            )),
            other => Err(format!(
                "{key} is {} here; write {key} = true",
                other.what()
            )),
        })
    }

    /// A whole number.
    pub(super) fn whole(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<Given<u64>>> {
        self.read(key, |kind| whole(key, kind, &range))
    }

    /// Bytes: a size in quotes, or a number.
    pub(super) fn bytes(&self, key: &str) -> Result<Option<Given<u64>>> {
        let checked = |n: i128| {
            let bytes = u64::try_from(n).ok();
            let bytes = bytes.filter(|n| (1..=MOST_BYTES).contains(n));
            bytes.ok_or_else(|| {
                let most = MOST_BYTES >> 30;
                format!("{key} = {n} is out of range; from 1 byte to {most}GiB")
            })
        };
        self.read(key, |kind| match kind {
            Kind::Text(text) => {
                let no = || {
                    format!("{text:?} is no size; write a whole number and KiB, MiB or GiB: {key} = \"4MiB\"")
                };
                let bytes = amount::bytes(text).ok_or_else(no)?;
                checked(bytes.into())
            }
            Kind::Whole(n) => checked(*n),
            other => Err(format!(
                "{key} is {} here; write a size, {key} = \"4MiB\"",
                other.what()
            )),
        })
    }

    /// Seconds, as a number.
    pub(super) fn seconds(&self, key: &str) -> Result<Option<Given<f64>>> {
        self.read(key, |kind| {
            let seconds = match kind {
                Kind::Whole(n) => *n as f64,
                Kind::Number(x) => *x,
                other => {
                    let what = other.what();
                    return Err(format!(
                        "{key} is {what} here; write a number of seconds, {key} = 0.2"
                    ));
                }
            };
            seconds_in_range(key, seconds)
        })
    }

    /// A time in nanoseconds; `may_be_zero` if zero is meaningful.
    pub(super) fn nanos(&self, key: &str, may_be_zero: bool) -> Result<Option<Given<f64>>> {
        self.read(key, |kind| nanos(key, kind, may_be_zero))
    }

    /// A time; `may_be_zero` if zero is meaningful.
    pub(super) fn time(&self, key: &str, may_be_zero: bool) -> Result<Option<Given<Duration>>> {
        self.read(key, |kind| {
            let ns = nanos(key, kind, may_be_zero)?;
            if ns > 0.0 && ns < 1.0 {
                return Err(format!("{key} is below a nanosecond; write 1ns or more"));
            }
            Ok(Duration::from_nanos(ns.round() as u64))
        })
    }

    /// One of the words of this kind.
    pub(super) fn word<K: Words>(&self, key: &str, what: &str) -> Result<Option<Given<K>>> {
        self.one_of(key, what, K::WORDS)
    }

    /// One of these words.
    pub(super) fn one_of<T: Copy>(
        &self,
        key: &str,
        what: &str,
        words: &[(&str, T)],
    ) -> Result<Option<Given<T>>> {
        self.read(key, |kind| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let Kind::Text(text) = kind else {
                let list = known.join(", ");
                return Err(format!(
                    "{key} is {} here; write one of these words in quotes: {list}",
                    kind.what()
                ));
            };
            let found = words.iter().find(|(word, _)| word == text);
            found
                .map(|(_, value)| *value)
                .ok_or_else(|| none_of(&format!("there is no {what}"), text, &known))
        })
    }
}

/// Why a name is not valid.
pub(super) fn bad_name(name: &str, barred: &str) -> Option<String> {
    if name.trim() != name || name.is_empty() {
        return Some(
            "a name is not empty and has no spaces at its ends; write name = \"A\"".into(),
        );
    }
    if name.chars().count() > 60 {
        return Some("this name is longer than 60 letters; shorten it".into());
    }
    let wrong = name
        .chars()
        .find(|&c| c.is_control() || barred.contains(c))?;
    Some(format!("a name cannot hold {wrong:?}; leave it out"))
}

fn whole(key: &str, kind: &Kind, range: &RangeInclusive<u64>) -> core::result::Result<u64, String> {
    match kind {
        Kind::Whole(n) => in_range(key, *n, range),
        other => Err(format!(
            "{key} is {} here; write a whole number from {} to {}, without quotes",
            other.what(),
            range.start(),
            range.end()
        )),
    }
}

/// Checks that a run may last this many seconds.
///
/// # Errors
/// Names the permitted range.
pub fn seconds_in_range(key: &str, seconds: f64) -> core::result::Result<f64, String> {
    if seconds > 0.0 && seconds <= LONGEST_NS / 1e9 {
        Ok(seconds)
    } else {
        Err(format!(
            "{key} = {seconds} is out of range; above 0, up to 3600 (an hour)"
        ))
    }
}

/// Checks that a key may have this number.
///
/// # Errors
/// Names the permitted range.
pub fn in_range(
    key: &str,
    n: i128,
    range: &RangeInclusive<u64>,
) -> core::result::Result<u64, String> {
    let found = u64::try_from(n).ok().filter(|n| range.contains(n));
    found.ok_or_else(|| {
        format!(
            "{key} = {n} is out of range; from {} to {}",
            range.start(),
            range.end()
        )
    })
}

fn nanos(key: &str, kind: &Kind, may_be_zero: bool) -> core::result::Result<f64, String> {
    let usual = match key {
        "timeout" => "10s",
        "every" | "after" => "10ms",
        "sleep" => "1ms",
        _ => "50us",
    };
    let Kind::Text(text) = kind else {
        return Err(format!(
            "{key} is {} here; write a time with its unit, {key} = {usual:?}",
            kind.what()
        ));
    };
    let Some(ns) = amount::nanos(text) else {
        return Err(format!(
            "{text:?} is no time; write a number and ns, us, ms or s: {key} = {usual:?}"
        ));
    };
    if ns < 0.0 {
        return Err(format!("{key} = {text:?} is below 0; write {usual:?}, say"));
    }
    if ns == 0.0 && !may_be_zero {
        return Err(format!("{key} must be above 0; write {usual:?}, say"));
    }
    if ns > LONGEST_NS {
        return Err(format!(
            "{key} = {text:?} is longer than an hour; at most \"3600s\""
        ));
    }
    Ok(ns)
}
