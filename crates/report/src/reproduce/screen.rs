//! The first screen of `undertick reproduce`: what became of each table and figure.

use super::{Reproduction, TableOrFigure};
use crate::first_screen::{FirstScreen, Group};
use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::clean;

/// The most tables and figures that get a row; of more, each source gets a line.
const ROWS: usize = 24;

/// The list of tables and figures on one screen.
#[must_use]
pub fn first_screen(found: &Reproduction, columns: usize) -> String {
    let all = &found.tables_and_figures;
    let is_short = all.len() <= ROWS;
    let table = match is_short {
        true => draw(&columns_of_list(), all, columns),
        false => String::new(),
    };
    let groups = match is_short {
        true => Vec::new(),
        false => all
            .chunk_by(|a, b| a.source == b.source)
            .map(of_source)
            .collect(),
    };
    FirstScreen {
        heading: vec![clean(&found.title)],
        table,
        groups,
        notes: found
            .findings
            .iter()
            .map(|finding| clean(finding))
            .collect(),
        more: "--full (every table)  --html FILE (every figure, drawn)  --json",
    }
    .text(columns)
}

fn columns_of_list<'a>() -> Columns<'a, &'a TableOrFigure> {
    let text = |of: fn(&TableOrFigure) -> &str| move |one: &'a TableOrFigure| Cell::text(of(one));
    Columns::<&TableOrFigure>::new()
        .column("", text(|one| &one.name))
        .words()
        .column("printed", text(|one| &one.published))
        .column("formula", text(|one| &one.formula))
        .column("simulated", text(|one| &one.simulated))
        .column("here", text(|one| &one.measured))
        .column("verdict", |one| Cell::text(clean(short(&one.verdict))))
        .words()
}

/// A verdict without what it names.
fn short(verdict: &str) -> &str {
    verdict.split([';', ':']).next().unwrap_or_default()
}

/// How many tables and figures of a source are reproduced.
fn of_source(all: &[TableOrFigure]) -> Group {
    let mut kinds: [(&str, usize); 4] = [
        ("reproduced", 0),
        ("measured here", 0),
        ("in part or not", 0),
        ("drawings", 0),
    ];
    for one in all {
        let verdict = one.verdict.as_str();
        let kind = match verdict {
            v if v.starts_with("a drawing") => 3,
            v if v == "reproduced" || v.starts_with("reproduced;") => 0,
            v if v.starts_with("measured here") => 1,
            _ => 2,
        };
        kinds[kind].1 += 1;
    }
    let said = kinds.iter().filter(|(_, n)| *n > 0);
    Group {
        title: all
            .first()
            .map_or_else(String::new, |one| clean(&one.source)),
        figures: said.map(|(kind, n)| format!("{n} {kind}")).collect(),
    }
}
