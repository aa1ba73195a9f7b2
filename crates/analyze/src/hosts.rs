//! Messages between the traces of several hosts.

use std::collections::{HashMap, HashSet};

use undertick_format::manifest::Name;
use undertick_format::messages::Messages;
use undertick_format::read::Trace;
use undertick_format::schema::Kind;

use crate::columns::Columns;
use crate::error::{Error, Failed};
use crate::names::Names;
use crate::rules::known;
use crate::table::{Matching, NameOrNumber, Table};

/// Most keys of one interval that are stored; with more, every second key is removed, the same
/// ones on all hosts.
const MOST_KEYS: usize = 1 << 21;

/// Messages between hosts that their traces hold: intervals of the table with `match = "message"`
/// whose start is in one trace and whose end is in another. A key that comes more than once is
/// ambiguous and is left out, and so are boundaries without a key.
///
/// # Errors
/// A trace cannot be read, or the table names an event that no trace has.
pub fn messages(traces: &[Trace], table: &Table, source: &str) -> Result<Vec<Messages>, Failed> {
    let all: Vec<Name> = (traces.iter())
        .flat_map(|trace| trace.manifest.names.iter().cloned())
        .collect();
    let all = Names::new(&all, &table.names);
    let given: HashSet<&str> = all.all().collect();
    let mut rules = Vec::new();
    for interval in &table.intervals {
        if interval.matching == Matching::Message {
            known(&interval.start, &given, table).map_err(Error::from)?;
            known(&interval.end, &given, table).map_err(Error::from)?;
            let ends = [interval.start.event.clone(), interval.end.event.clone()];
            rules.push((ends, Keys::default()));
        }
    }
    for (host, trace) in traces.iter().enumerate() {
        let names = Names::new(&trace.manifest.names, &table.names);
        for batch in trace.batches() {
            let batch = batch?;
            gather(&mut rules, &Columns::from_batch(&batch)?, host, &names);
        }
    }
    let mut found: HashMap<(usize, usize), Vec<(i64, i64)>> = HashMap::new();
    for (_, keys) in rules {
        for ends in keys.ends.into_values() {
            if let [End::One(from, sent), End::One(to, received)] = ends
                && from != to
            {
                found.entry((from, to)).or_default().push((sent, received));
            }
        }
    }
    let mut messages: Vec<Messages> = (found.into_iter())
        .map(|((from, to), mut stamps)| {
            stamps.sort_unstable();
            Messages {
                from,
                to,
                source: source.to_owned(),
                stamps,
            }
        })
        .collect();
    messages.sort_unstable_by_key(|m| (m.from, m.to));
    Ok(messages)
}

/// The place where a key was seen as a start, or as an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    None,
    /// On one host, at one reading of its clock.
    One(usize, i64),
    More,
}

/// The boundaries of one interval, by key.
#[derive(Debug, Default)]
struct Keys {
    ends: HashMap<i64, [End; 2]>,
    /// Number of a key's lowest bits that must be 0.
    thinned: u32,
}

impl Keys {
    fn note(&mut self, key: i64, is_end: bool, host: usize, ts: i64) {
        if key.trailing_zeros() < self.thinned {
            return;
        }
        let end = &mut self.ends.entry(key).or_default()[usize::from(is_end)];
        *end = match *end {
            End::None => End::One(host, ts),
            _ => End::More,
        };
        if self.ends.len() > MOST_KEYS {
            self.thinned += 1;
            let thinned = self.thinned;
            self.ends.retain(|key, _| key.trailing_zeros() >= thinned);
        }
    }
}

fn gather(rules: &mut [([NameOrNumber; 2], Keys)], rows: &Columns<'_>, host: usize, names: &Names) {
    for i in 0..rows.n_rows() {
        if rows.mode[i] != 0 || rows.rows.kind[i] != Kind::Instant as i8 {
            continue;
        }
        let Ok(event) = u16::try_from(rows.rows.event[i]) else {
            continue;
        };
        for (ends, keys) in &mut *rules {
            for (is_end, boundary) in [(false, &ends[0]), (true, &ends[1])] {
                let is_it = match boundary {
                    NameOrNumber::Number(number) => *number == event,
                    NameOrNumber::Name(name) => {
                        names.given(names.set_of(rows.pid[i]), event) == Some(name)
                    }
                };
                if is_it {
                    keys.note(rows.rows.payload[i], is_end, host, rows.rows.ts[i]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
