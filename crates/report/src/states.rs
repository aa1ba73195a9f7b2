//! States in sentences: what tells the short calls of a path from the long ones.

use undertick_document::{PathStates, StateCondition, StateFact, StateReport, figures};
use undertick_units::Estimate;

use crate::text::{clean, shorten};

/// Most states in a sentence; the others are counted.
const MOST: usize = 4;
/// Most words of a condition.
const MOST_WORDS: usize = 3;
/// Columns of a name.
const NAME_COLUMNS: usize = 30;

/// What is known of the calls of `path`, in a sentence.
pub(crate) fn sentence(path: &str, states: &PathStates) -> String {
    let median = |state: &StateReport| match &state.median {
        Some(median) => match median.interval.half_width() {
            Some(half_ns) => figures::duration_within(median.value, half_ns),
            // Of what no interval is known, two digits.
            None => format!(
                "about {}",
                figures::duration_within(median.value, median.value)
            ),
        },
        None => "an unknown time".to_owned(),
    };
    let is_pair = complementary(&states.states);
    let each = (states.states.iter().zip(0..))
        .take(MOST)
        .map(|(state, at)| {
            let conditions = match is_pair && at == 1 {
                true => otherwise(&state.conditions[0]),
                false => conditions(state),
            };
            let share = share(&state.share);
            let of_calls = if at == 0 { " of calls" } else { "" };
            format!("{} {conditions} ({share}{of_calls})", median(state))
        });
    let mut each: Vec<String> = each.collect();
    if let Some(more @ 1..) = states.states.len().checked_sub(MOST) {
        each.push(format!("{more} more states"));
    }
    format!(
        "{path} takes {}; that explains {} of its scatter.",
        each.join(", "),
        figures::per_cent(states.explained.clamp(0.0, 1.0))
    )
}

/// A share in two digits, or in those that are known.
pub(crate) fn share(share: &Estimate) -> String {
    let (short, known) = (
        figures::per_cent(share.value),
        figures::figure(share).value_and_unit(),
    );
    if known.len() < short.len() {
        known
    } else {
        short
    }
}

/// Whether there are two states, which differ in whether one thing is so.
fn complementary(states: &[StateReport]) -> bool {
    match states {
        [one, other] => match (&one.conditions[..], &other.conditions[..]) {
            ([one], [other]) => one.fact == other.fact && one.is.is_some() && other.is.is_some(),
            _ => false,
        },
        _ => false,
    }
}

/// The second of two such conditions.
fn otherwise(condition: &StateCondition) -> String {
    match (condition.fact, condition.is == Some(true)) {
        (StateFact::With | StateFact::WithEvent, true) => "with it",
        (StateFact::With | StateFact::WithEvent, false) => "without it",
        (StateFact::Beside, true) => "beside it",
        _ => "otherwise",
    }
    .to_owned()
}

/// What is true of the calls of a state, in words, e.g. `beside "compactor"`.
#[must_use]
pub fn conditions(state: &StateReport) -> String {
    all(&state.conditions)
}

/// Conditions that are all true, in words.
pub(crate) fn all(conditions: &[StateCondition]) -> String {
    let each: Vec<String> = conditions.iter().map(condition).collect();
    each.join(" and ")
}

fn condition(condition: &StateCondition) -> String {
    let of = quoted(condition.of.as_deref().unwrap_or(""));
    let is = condition.is == Some(true);
    let whether = |yes: String, no: String| if is { yes } else { no };
    match condition.fact {
        StateFact::Thread => format!("in {}", any_of(condition, quoted)),
        StateFact::Cpu => format!("on CPU {}", any_of(condition, clean)),
        StateFact::Run => format!("in run {}", any_of(condition, clean)),
        StateFact::After => match condition.among.as_slice() {
            [nothing] if nothing == "nothing" => "as the first in its span".to_owned(),
            _ => format!("after {}", any_of(condition, quoted)),
        },
        StateFact::Beside => whether(format!("beside {of}"), format!("while {of} is off its CPU")),
        StateFact::Resumed => whether(
            "right after its thread was off its CPU".to_owned(),
            "with its thread on its CPU before".to_owned(),
        ),
        StateFact::With => whether(format!("with {of} inside"), format!("without {of}")),
        StateFact::WithEvent => whether(format!("with an event {of}"), format!("without {of}")),
        StateFact::Faulted => whether(
            "with a page fault".to_owned(),
            "without a page fault".to_owned(),
        ),
        StateFact::Value => format!("where {of} is {}", range(condition, number)),
        StateFact::Time => match (condition.from, condition.below) {
            (Some(from), None) => format!("from {} on", at(from)),
            (None, Some(below)) => format!("until {}", at(below)),
            _ => range(condition, at),
        },
    }
}

/// A time since the first event.
fn at(ns: f64) -> String {
    format!("{:.3} s", ns / 1e9)
}

/// A number that an event carried.
fn number(number: f64) -> String {
    match number {
        n if n.fract() == 0.0 && (0.0..1e15).contains(&n) => figures::count(n as u64),
        n => format!("{n:.2e}"),
    }
}

fn range(condition: &StateCondition, number: impl Fn(f64) -> String) -> String {
    match (condition.from, condition.below) {
        (Some(from), Some(below)) => format!("from {} to {}", number(from), number(below)),
        (Some(from), None) => format!("{} or more", number(from)),
        (None, Some(below)) => format!("below {}", number(below)),
        (None, None) => "known".to_owned(),
    }
}

fn any_of(condition: &StateCondition, word: impl Fn(&str) -> String) -> String {
    let words = condition.among.iter().take(MOST_WORDS);
    let mut words: Vec<String> = words.map(|one| word(one)).collect();
    if let Some(more @ 1..) = condition.among.len().checked_sub(MOST_WORDS) {
        words.push(format!("{more} others"));
    }
    words.join(" or ")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", shorten(&clean(name), NAME_COLUMNS))
}

#[cfg(test)]
mod tests;
