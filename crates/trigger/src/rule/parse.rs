//! Reads a rule from left to right; an error is at the word that cannot stand where it stands.

use super::{Condition, Limit, RuleError};

/// All forms of a rule, for the errors.
const FORMS: &str = "a rule is NAME > TIME, NAME > p99.9, NAME > 4 x median, NAME open for TIME, \
                     event NAME, rate of NAME < N/s, or lost > 0";

/// A word of a rule: a name in quotation marks, a comparison, or what lies between spaces.
#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    /// Without quotation marks.
    text: &'a str,
    /// The byte at which it begins.
    at: usize,
    is_quoted: bool,
}

impl Word<'_> {
    /// Whether it is this word of the grammar, which a quoted name never is.
    fn is(&self, word: &str) -> bool {
        !self.is_quoted && self.text.eq_ignore_ascii_case(word)
    }
}

struct Words<'a> {
    text: &'a str,
    words: Vec<Word<'a>>,
    next: usize,
}

/// Reads what a rule asks for.
///
/// # Errors
/// The text is no rule.
pub(super) fn condition(text: &str) -> Result<Condition, RuleError> {
    let mut words = Words::of_text(text)?;
    let first = words.next(FORMS)?;
    let condition = match words.peek() {
        Some(second) if first.is("rate") && second.is("of") => rate(&mut words)?,
        Some(second) if first.is("event") && !is_operator(second) => Condition::Event {
            name: words.name()?,
        },
        Some(second) if first.is("lost") && second.is(">") => lost(&mut words)?,
        _ => of_span(first, &mut words)?,
    };
    match words.peek() {
        None => Ok(condition),
        Some(word) => Err(words.error(word.at, "nothing more is expected here")),
    }
}

fn is_operator(word: Word<'_>) -> bool {
    word.is(">") || word.is("<") || word.is("open")
}

/// `NAME > LIMIT` or `NAME open for TIME`.
fn of_span(first: Word<'_>, words: &mut Words<'_>) -> Result<Condition, RuleError> {
    let name = words.is_name(first)?;
    let operator = words.next("a comparison is missing: > and a time, or open for and a time")?;
    if operator.is("open") {
        let word = words.next("\"for\" and a time are missing, for example open for 1s")?;
        if !word.is("for") {
            return Err(words.error(word.at, "\"for\" and a time are expected here"));
        }
        let for_ns = words.time()?;
        return Ok(Condition::Open { name, for_ns });
    }
    if !operator.is(">") {
        return Err(words.error(operator.at, FORMS));
    }
    let limit = words.limit()?;
    Ok(Condition::Longer { name, limit })
}

/// `rate of NAME < N/s`.
fn rate(words: &mut Words<'_>) -> Result<Condition, RuleError> {
    words.next("")?;
    let name = words.name()?;
    let operator = words.next("< or > and a rate are missing, for example < 100/s")?;
    if !operator.is("<") && !operator.is(">") {
        return Err(words.error(operator.at, "< or > is expected here"));
    }
    let word = words.next("a rate is missing, for example 100/s")?;
    let mut text = word.text.to_owned();
    // Spaces around the slash are allowed.
    while let Some(more) = words.peek() {
        text.push_str(more.text);
        words.next("")?;
    }
    let example = "a rate is expected here, for example 100/s, 5/min or 2/h";
    let Some((number, unit)) = text.split_once('/') else {
        return Err(words.error(word.at, example));
    };
    let seconds = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(words.error(word.at, example)),
    };
    let per_second = positive(number).ok_or_else(|| words.error(word.at, example))? / seconds;
    Ok(Condition::Rate {
        name,
        is_below: operator.is("<"),
        per_second,
    })
}

/// `lost > 0`.
fn lost(words: &mut Words<'_>) -> Result<Condition, RuleError> {
    words.next("")?;
    let number = words.next("0 is missing: lost > 0")?;
    match number.is("0") {
        true => Ok(Condition::Lost),
        false => Err(words.error(number.at, "0 is expected here: lost > 0")),
    }
}

impl<'a> Words<'a> {
    fn of_text(text: &'a str) -> Result<Self, RuleError> {
        let mut words = Vec::new();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let is_end = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"');
            let (from, to, after, is_quoted) = match c {
                _ if c.is_whitespace() => {
                    at += c.len_utf8();
                    continue;
                }
                '"' => {
                    let Some(length) = rest[1..].find('"') else {
                        return Err(RuleError {
                            text: text.to_owned(),
                            at,
                            why: "the second quotation mark is missing".to_owned(),
                        });
                    };
                    (at + 1, at + 1 + length, at + 2 + length, true)
                }
                '<' | '>' => (at, at + 1, at + 1, false),
                _ => {
                    let length = rest.find(is_end).unwrap_or(rest.len());
                    (at, at + length, at + length, false)
                }
            };
            words.push(Word {
                text: &text[from..to],
                at,
                is_quoted,
            });
            at = after;
        }
        Ok(Self {
            text,
            words,
            next: 0,
        })
    }

    fn error(&self, at: usize, why: &str) -> RuleError {
        RuleError {
            text: self.text.to_owned(),
            at,
            why: why.to_owned(),
        }
    }

    fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    /// The next word, or that something is missing.
    fn next(&mut self, missing: &str) -> Result<Word<'a>, RuleError> {
        let word = self
            .peek()
            .ok_or_else(|| self.error(self.text.trim_end().len(), missing))?;
        self.next += 1;
        Ok(word)
    }

    fn name(&mut self) -> Result<String, RuleError> {
        let word = self.next("a name is missing")?;
        self.is_name(word)
    }

    fn is_name(&self, word: Word<'_>) -> Result<String, RuleError> {
        match word.text {
            "" => Err(self.error(word.at, "a name is empty")),
            "<" | ">" if !word.is_quoted => Err(self.error(word.at, "a name is expected here")),
            name => Ok(name.to_owned()),
        }
    }

    /// A time, `p99.9`, or `4 x median`.
    fn limit(&mut self) -> Result<Limit, RuleError> {
        let word = self.next("a time is missing, for example 5ms, p99.9 or 4 x median")?;
        let of_median = |text: &str| text.eq_ignore_ascii_case("median");
        if let Some(percent) = word.text.strip_prefix(['p', 'P']) {
            let quantile = positive(percent).filter(|percent| *percent < 100.0);
            return quantile
                .map(|percent| Limit::Quantile(percent / 100.0))
                .ok_or_else(|| {
                    self.error(
                        word.at,
                        "a percentile below 100 is expected here, for example p99.9",
                    )
                });
        }
        if let Some(by) = self.peek()
            && matches!(by.text, "x" | "X" | "*" | "times")
        {
            self.next("")?;
            let median = self.next("\"median\" is missing: 4 x median")?;
            let number = positive(word.text)
                .ok_or_else(|| self.error(word.at, "a number above 0 is expected here"))?;
            return match of_median(median.text) {
                true => Ok(Limit::Medians(number)),
                false => Err(self.error(median.at, "\"median\" is expected here")),
            };
        }
        self.next -= 1;
        self.time().map(Limit::Nanoseconds)
    }

    /// A number with its unit, ns.
    fn time(&mut self) -> Result<f64, RuleError> {
        let word = self.next("a time is missing, for example 5ms")?;
        let digits = word
            .text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(word.text.len());
        let (number, unit) = word.text.split_at(digits);
        let number = positive(number).ok_or_else(|| {
            self.error(
                word.at,
                "a time above 0 is expected here, for example 5ms, 250us or 1s",
            )
        })?;
        let (unit, at) = match self.peek() {
            Some(after) if unit.is_empty() => {
                self.next("")?;
                (after.text, after.at)
            }
            _ => (unit, word.at + digits),
        };
        let ns = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            _ => {
                let why = "a unit is expected here: ns, us, ms, s, min or h";
                return Err(self.error(at, why));
            }
        };
        Ok(number * ns)
    }
}

/// A finite number above 0.
fn positive(text: &str) -> Option<f64> {
    let is_digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number: f64 = text.parse().ok().filter(|_| is_digits)?;
    (number.is_finite() && number > 0.0).then_some(number)
}
