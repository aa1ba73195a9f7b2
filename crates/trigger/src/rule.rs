//! Rules: their grammar, and what they mean.

mod parse;

use std::fmt;
use std::str::FromStr;

/// A rule that a running program can meet, as it was written.
///
/// # Examples
///
/// ```
/// use undertick_trigger::{Condition, Limit, Rule};
///
/// let rule: Rule = "request > 5ms".parse()?;
/// let limit = Limit::Nanoseconds(5e6);
/// assert_eq!(*rule.condition(), Condition::Longer { name: "request".to_owned(), limit });
/// let error = "request > 5 parsecs".parse::<Rule>().unwrap_err();
/// assert_eq!(error.at, 12);
/// # Ok::<(), undertick_trigger::RuleError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    text: String,
    condition: Condition,
}

/// What a rule asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A span of this name took longer: `NAME > LIMIT`.
    Longer {
        /// Name of the span, or its number.
        name: String,
        /// How long it may take.
        limit: Limit,
    },
    /// A span of this name has been open for this long and has not ended: `NAME open for TIME`.
    Open {
        /// Name of the span, or its number.
        name: String,
        /// Nanoseconds.
        for_ns: f64,
    },
    /// An event, or the begin of a span, of this name: `event NAME`.
    Event {
        /// Name of the event, or its number.
        name: String,
    },
    /// Events, or ends of spans, of this name are rarer or more frequent: `rate of NAME < N/s`.
    Rate {
        /// Name of the event, or its number.
        name: String,
        /// Rarer, or more frequent.
        is_below: bool,
        /// The limit, per second.
        per_second: f64,
    },
    /// Events were lost: `lost > 0`.
    Lost,
}

/// How long a span may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Nanoseconds.
    Nanoseconds(f64),
    /// The quantile, 0 to 1, of the spans of that name so far: `p99.9`.
    Quantile(f64),
    /// This many times the median of the spans of that name so far: `4 x median`.
    Medians(f64),
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}\n{:width$}^ {why}", "", width = self.column())]
pub struct RuleError {
    /// The text.
    pub text: String,
    /// The byte at which it stops being a rule.
    pub at: usize,
    /// What was expected there.
    pub why: String,
}

impl RuleError {
    /// Number of characters before the place.
    fn column(&self) -> usize {
        self.text
            .get(..self.at)
            .map_or(0, |text| text.chars().count())
    }
}

impl Rule {
    /// What it asks for.
    #[must_use]
    pub const fn condition(&self) -> &Condition {
        &self.condition
    }

    /// The name of the event that it is about; `None` for `lost > 0`.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.condition {
            Condition::Longer { name, .. }
            | Condition::Open { name, .. }
            | Condition::Event { name }
            | Condition::Rate { name, .. } => Some(name),
            Condition::Lost => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let condition = parse::condition(text)?;
        Ok(Self {
            text: text.trim().to_owned(),
            condition,
        })
    }
}

#[cfg(test)]
mod tests;
