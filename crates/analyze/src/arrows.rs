//! Finds the rows from which and to which messages went, for tools that draw them as arrows.

use std::collections::HashMap;

use undertick_format::arrows::ArrowEnd;
use undertick_format::read::Trace;

use crate::columns::Columns;
use crate::error::{Error, Failed};
use crate::matching::Row;
use crate::names::Names;
use crate::rules::{Action, Rule, actions, rules};
use crate::table::{Matching, Table};

/// Most ends of messages that are examined: 100 MB.
const MOST: usize = 1 << 21;

/// The arrows of a trace.
#[derive(Debug, Default)]
pub struct Arrows {
    /// In the order of rows.
    pub ends: Vec<ArrowEnd>,
    /// Number of rows that found no other side.
    pub alone: u64,
    /// Number of rows for which there was no room, the last ones.
    pub left_out: u64,
}

/// One side of a message; sides are ordered so that matching ones find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Side {
    rule: u32,
    key: i64,
    is_end: bool,
    ts: i64,
    row: u64,
}

/// Returns the messages that a table defines. Per key the k-th start belongs to the k-th end, by
/// their times, as in a report.
///
/// # Errors
/// The trace cannot be read, or lacks an event of the table.
pub fn arrows(trace: &Trace, table: &Table) -> Result<Arrows, Failed> {
    let names = Names::new(&trace.manifest.names, &table.names);
    let rules = rules(table, &names).map_err(Error::from)?;
    let mut known: HashMap<(usize, u16), Box<[Action]>> = HashMap::new();
    let mut sides = Vec::new();
    let mut found = Arrows::default();
    let mut before = 0;
    for batch in trace.batches() {
        let batch = batch?;
        let columns = Columns::from_batch(&batch)?;
        for at in 0..columns.n_rows() {
            let Ok(event) = u16::try_from(columns.rows.event[at]) else {
                continue;
            };
            if columns.mode[at] != 0 {
                continue;
            }
            let set = names.set_of(columns.pid[at]);
            let actions = (known.entry((set, event)))
                .or_insert_with(|| actions(&rules, table, &names, set, event));
            let row = Row::new(&columns.rows, at);
            for side in actions
                .iter()
                .filter_map(|&action| side(action, &rules, &row))
            {
                if sides.len() == MOST {
                    found.left_out += 1;
                    continue;
                }
                sides.push(Side {
                    row: before + at as u64,
                    ..side
                });
            }
        }
        before += batch.num_rows() as u64;
    }
    sides.sort_unstable();
    for of_key in sides.chunk_by(|a, b| (a.rule, a.key) == (b.rule, b.key)) {
        let ends = of_key.partition_point(|side| !side.is_end);
        let (starts, ends) = of_key.split_at(ends);
        found.alone += starts.len().abs_diff(ends.len()) as u64;
        for pair in starts.iter().zip(ends) {
            let arrow = found.ends.len() as u64 / 2 + 1;
            for row in [pair.0.row, pair.1.row] {
                found.ends.push(ArrowEnd { row, arrow });
            }
        }
    }
    found.ends.sort_unstable();
    Ok(found)
}

/// The side of a message that a row is, if any.
fn side(action: Action, rules: &[Rule], row: &Row) -> Option<Side> {
    let (rule, is_end) = match action {
        Action::Start(rule) => (rule, false),
        Action::End(rule) => (rule, true),
        Action::Count(_) => return None,
    };
    if rules[rule as usize].matching != Matching::Message || !row.does(is_end) {
        return None;
    }
    Some(Side {
        rule,
        key: row.key(Matching::Message)?,
        is_end,
        ts: row.ts,
        row: 0,
    })
}
