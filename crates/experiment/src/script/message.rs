//! Errors in a script, with their place.

use undertick_analyze::suggestion;

/// Why a script cannot be used: `LINE:COLUMN: what is wrong, and the mend`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {text}")]
pub struct BadScript {
    line: usize,
    column: usize,
    text: String,
}

impl BadScript {
    /// Makes an error at a byte of a script.
    pub fn at(text: &str, at: usize, why: String) -> Self {
        let (line, column) = Lines::new(text).place(at);
        Self {
            line,
            column,
            text: why,
        }
    }

    /// The line of the error, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column of the error in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// What is wrong, and what would be right.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Where the lines of a text begin.
pub(crate) struct Lines<'t> {
    text: &'t str,
    begins: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, b)| b == b'\n');
        let begins = core::iter::once(0).chain(ends.map(|(i, _)| i + 1));
        Self {
            text,
            begins: begins.collect(),
        }
    }

    /// The line and column of a byte, from 1.
    pub(crate) fn place(&self, at: usize) -> (usize, usize) {
        let line = self.begins.partition_point(|&begin| begin <= at).max(1);
        let begin = self.begins[line - 1];
        let before = self.text.get(begin..at).unwrap_or_default();
        (line, before.chars().count() + 1)
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.begins.partition_point(|&begin| begin <= at).max(1)
    }
}

/// An error at a byte of the script.
#[derive(Debug)]
pub(super) struct Bad {
    pub(super) at: usize,
    pub(super) why: String,
}

impl Bad {
    pub(super) fn new(at: usize, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { at, why }
    }
}

pub(super) type Result<T> = core::result::Result<T, Bad>;

/// The place of a value in the script, and the parameters it contains.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    pub(super) at: usize,
    /// ` (with kind = "pipe")`, or empty.
    pub(super) note: String,
}

impl Origin {
    pub(super) fn bad(&self, why: impl AsRef<str>) -> Bad {
        Bad::new(self.at, format!("{}{}", why.as_ref(), self.note))
    }
}

/// At most this many words are listed.
const LISTED: usize = 40;

/// This many are listed even if one of them is similar.
const FEW: usize = 8;

/// Says that there is none of that name (`head` begins the text, e.g. `there is no lock`), and
/// which there are.
pub fn none_of(head: &str, wrong: &str, known: &[&str]) -> String {
    // Every name of one character is similar to every other.
    let may_be_meant = |k: &&&str| k.chars().count() > 1 || k.eq_ignore_ascii_case(wrong);
    let hint = suggestion(wrong, known.iter().filter(may_be_meant).copied());
    if !hint.is_empty() && known.len() > FEW {
        return format!("{head} {wrong:?}{hint}");
    }
    let more = if known.len() > LISTED { ", ..." } else { "" };
    let list = known[..known.len().min(LISTED)].join(", ");
    format!("{head} {wrong:?}{hint} (there is: {list}{more})")
}

#[cfg(test)]
mod tests;
