//! The history of benchmarks on a terminal.

use std::collections::BTreeMap;

use undertick_document::figures;

use super::{History, of_newest, summary};
use crate::remarks::number_of;
use crate::table::terminal::draw;
use crate::text::{clean, wrap};

/// Minimum number of columns that the table fits in.
const FEWEST_COLUMNS: usize = 60;
/// Most lines about the newest version.
const MOST_LINES: usize = 10;

/// The history as text in at most `columns` columns. Ends with a line break.
#[must_use]
pub fn render(history: &History, columns: usize) -> String {
    let columns = columns.max(FEWEST_COLUMNS);
    let heading = format!("{}: {}", clean(&history.directory), summary(history));
    let mut parts = vec![
        wrap(&heading, columns, 2),
        draw(&super::columns(), history.benchmarks.iter(), columns),
    ];
    let lines = of_newest(history);
    let more = lines.len().saturating_sub(MOST_LINES);
    let shown = lines.iter().take(MOST_LINES).map(|line| clean(line));
    let shown: Vec<String> = shown.map(|line| wrap(&line, columns, 2)).collect();
    if !shown.is_empty() {
        parts.push(shown.join("\n"));
    }
    if more > 0 {
        parts.push(format!("And {more} more, in the JSON."));
    }
    parts.push(wrap(&ending(history), columns, 0));
    parts.join("\n\n").replace('\u{a0}', " ") + "\n"
}

fn ending(history: &History) -> String {
    let judged = history
        .benchmarks
        .iter()
        .filter(|of| of.newest.is_some())
        .count();
    let level = figures::per_cent(history.level);
    let mut text = match judged {
        0 => String::new(),
        judged => format!(
            "The newest version was compared with those since the last change, for {judged} of {}; of those \
             called slower or faster {} are false on average. ",
            number_of(history.benchmarks.len() as u64, "benchmark"),
            figures::per_cent(history.false_share)
        ),
    };
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for why in history
        .benchmarks
        .iter()
        .filter_map(|of| of.not_judged.as_deref())
    {
        *reasons.entry(why).or_default() += 1;
    }
    for (why, n) in reasons {
        text += &format!(
            "Not compared: {}: {}. ",
            number_of(n, "benchmark"),
            clean(why)
        );
    }
    text + &format!("Intervals are {level} CIs.")
}
