//! A table fitted to a trace: the action of each event's rows.

use std::collections::HashSet;

use crate::names::Names;
use crate::table::{EventRef, Matching, NameOrNumber, Table, TableError, suggestion};

/// An interval of the table.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) matching: Matching,
    pub(crate) within: Option<u32>,
    /// Start and end are the same event.
    pub(crate) period: bool,
    start: NameOrNumber,
    end: NameOrNumber,
    /// Number of enclosing intervals.
    pub(crate) depth: usize,
}

/// The action of an event's row, in this order: inner ends, outer ends, outer starts, inner
/// starts, counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    End(u32),
    Start(u32),
    Count(u32),
}

/// The rules of a table.
///
/// # Errors
/// A name that no event of the trace has.
pub(crate) fn rules(table: &Table, names: &Names) -> Result<Vec<Rule>, TableError> {
    let depth_of = |mut i: usize| {
        let mut depth = 0;
        while let Some(outer) = table.intervals[i].within {
            i = outer;
            depth += 1;
        }
        depth
    };
    let events = (table.intervals.iter().flat_map(|i| [&i.start, &i.end]))
        .chain(table.frequencies.iter().map(|f| &f.event));
    let all: HashSet<&str> = names.all().collect();
    for event in events {
        known(event, &all, table)?;
    }
    Ok((table.intervals.iter().enumerate())
        .map(|(i, rule)| Rule {
            matching: rule.matching,
            within: rule.within.map(|w| w as u32),
            period: rule.start.event == rule.end.event,
            start: rule.start.event.clone(),
            end: rule.end.event.clone(),
            depth: depth_of(i),
        })
        .collect())
}

/// Refuses an event that has none of these names.
///
/// # Errors
/// The line of the table, and the nearest name.
pub(crate) fn known(
    event: &EventRef,
    names: &HashSet<&str>,
    table: &Table,
) -> Result<(), TableError> {
    let NameOrNumber::Name(name) = &event.event else {
        return Ok(());
    };
    if names.contains(name.as_str()) {
        return Ok(());
    }
    Err(TableError {
        file: table.file.clone(),
        line: event.line,
        text: format!(
            "no event named {name:?} in this trace{}",
            suggestion(name, names.iter().copied())
        ),
    })
}

/// The actions of an event, by its number and the name that it has.
pub(crate) fn actions(
    rules: &[Rule],
    table: &Table,
    names: &Names,
    set: usize,
    event: u16,
) -> Box<[Action]> {
    let is = |wanted: &NameOrNumber| match wanted {
        NameOrNumber::Number(n) => *n == event,
        NameOrNumber::Name(name) => names.given(set, event) == Some(name),
    };
    let with_role = |of: fn(&Rule) -> &NameOrNumber| {
        let found = (0_u32..).zip(rules).filter(|(_, r)| is(of(r)));
        let mut found: Vec<(usize, u32)> = found.map(|(i, r)| (r.depth, i)).collect();
        found.sort_unstable();
        found
    };
    let ends = with_role(|r| &r.end);
    let starts = with_role(|r| &r.start);
    let counts = (0_u32..)
        .zip(&table.frequencies)
        .filter(|(_, f)| is(&f.event.event));
    (ends.iter().rev().map(|&(_, i)| Action::End(i)))
        .chain(starts.iter().map(|&(_, i)| Action::Start(i)))
        .chain(counts.map(|(i, _)| Action::Count(i)))
        .collect()
}
