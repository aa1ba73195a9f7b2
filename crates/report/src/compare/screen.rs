//! The first screen of a comparison: what differs, and of the rest how much of it is known to be alike.

use undertick_document::{Warning, figures};

use super::terminal::{columns, gate, legend, only_in, source_line, summary};
use super::{Comparison, FEW_RUNS, Row, Verdict, render};
use crate::first_screen::{FirstScreen, Group, LINES};
use crate::survey;
use crate::table::terminal::draw;
use crate::text::clean;

/// The most differences that get a row; they are in the document's order.
const ROWS: usize = 16;

/// The comparison on one screen of `room` columns; all of it where that fits.
#[must_use]
pub fn first_screen(found: &Comparison, room: usize) -> String {
    let whole = render(found, room);
    if whole.lines().count() <= LINES {
        return whole;
    }
    let (differ, rest): (Vec<&Row>, Vec<&Row>) = found.rows.iter().partition(|row| row.differs());
    let mut heading = vec![
        source_line("A", &found.a),
        source_line("B", &found.b),
        summary(found),
    ];
    heading.extend(gate(found));
    let rows = differ.iter().take(ROWS).copied();
    let mut table = match differ.is_empty() {
        true => String::new(),
        false => format!("What differs\n{}", draw(&columns(found), rows, room)),
    };
    match differ.len().saturating_sub(ROWS) {
        0 => {}
        n => table.push_str(&format!("\nand {n} more that differ")),
    }
    let mut groups: Vec<Group> = Vec::new();
    for these in rest.chunk_by(|a, b| a.group == b.group) {
        groups.push(Group {
            title: clean(survey::title(&these[0].group)),
            figures: unchanged(these),
        });
    }
    // Why nothing may be known comes before the other warnings.
    let is_why = |warning: &&Warning| warning.code == FEW_RUNS;
    let (why, others): (Vec<&Warning>, Vec<&Warning>) = found.warnings.iter().partition(is_why);
    let warnings = why.into_iter().chain(others).map(|w| clean(&w.text));
    let lonely = [("A", &found.only_in_a), ("B", &found.only_in_b)];
    let lonely = (lonely.iter())
        .filter(|(_, names)| !names.is_empty())
        .map(|(which, names)| only_in(which, names));
    FirstScreen {
        heading,
        table,
        groups,
        notes: warnings.chain(lonely).chain([legend(found)]).collect(),
        more: "--full (every figure)  --only NAME  --json  --html FILE",
    }
    .text(room)
}

/// Figures of which no difference is known: those with a bound first, each with it.
fn unchanged(rows: &[&Row]) -> Vec<String> {
    let alike = (rows.iter())
        .filter(|row| row.verdict == Verdict::Alike)
        .map(|row| match row.bound {
            Some(bound) => format!(
                "{} alike within {}",
                clean(&row.name),
                figures::per_cent(bound)
            ),
            None => format!("{} alike", clean(&row.name)),
        });
    let unknown = (rows.iter())
        .filter(|row| row.verdict == Verdict::CannotTell)
        .count();
    let unknown = (unknown > 0).then(|| format!("{unknown} cannot be told"));
    unknown.into_iter().chain(alike).collect()
}
