//! The document of `undertick reproduce` and its rendering for a terminal: published figures, and
//! the same figures computed by formula, simulated, and measured on this machine.

use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use crate::plot::Plot;
use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::{clean, wrap};

/// A source with its figures. The field names are the JSON shape that other
/// programs read; extend, never rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// Version of the document's format: 1.
    pub schema_version: u32,
    /// The source's short name, e.g. `slow-clock`; several joined by `+`.
    pub source: String,
    /// The source in full: author, year, title, number.
    pub title: String,
    /// All figures, one entry each.
    pub items: Vec<Item>,
    /// The same figures as tables for people.
    pub tables: Vec<Table>,
    /// Drawings of the figures; the terminal shows none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plots: Vec<Plot>,
    /// What the reader must know.
    pub findings: Vec<String>,
    /// Whether it ended early, so that some figures rest on less data than was asked for.
    pub interrupted: bool,
}

/// One figure of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Its name, e.g. `table-17b/(1,2)/mean`.
    pub id: String,
    /// What it is.
    pub quantity: String,
    /// Unit of all its figures; `1` for a bare number.
    pub unit: String,
    /// The value as printed; `None` where the source has no such figure.
    pub published: Option<f64>,
    /// The value computed again by formula.
    pub formula: Option<f64>,
    /// The value from a simulation whose truth is known.
    pub simulated: Option<Estimate>,
    /// The value measured on this machine.
    pub measured: Option<Estimate>,
    /// The published value over the measured one, where both exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Why they differ; empty if they do not.
    pub note: String,
}

/// A table for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Sentences above it.
    pub text: Vec<String>,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// The rows, each with as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The columns as they are drawn.
    pub(crate) fn shown(&self) -> Columns<'_, &Vec<String>> {
        let mut columns = Columns::<&Vec<String>>::new();
        for (index, heading) in self.columns.iter().enumerate() {
            columns = columns.column(clean(heading), move |row| {
                Cell::text(row.get(index).map_or("", |cell| cell))
            });
            if self.is_words(index) {
                columns = columns.words();
            }
        }
        columns
    }

    /// Whether a column holds words, which are aligned to the left.
    fn is_words(&self, column: usize) -> bool {
        let figure = |cell: &String| {
            cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "+-–".contains(c))
        };
        column == 0 || !self.rows.iter().filter_map(|r| r.get(column)).all(figure)
    }
}

/// The document as text in at most `columns` columns.
#[must_use]
pub fn render(found: &Reproduction, columns: usize) -> String {
    let mut parts = vec![wrap(&clean(&found.title), columns, 0)];
    for table in &found.tables {
        parts.push(drawn(table, columns));
    }
    if !found.findings.is_empty() {
        let lines = found.findings.iter();
        let lines: Vec<String> = lines
            .map(|f| wrap(&format!("* {}", clean(f)), columns, 2))
            .collect();
        parts.push(lines.join("\n"));
    }
    parts.join("\n\n") + "\n"
}

fn drawn(table: &Table, columns: usize) -> String {
    let mut lines = vec![clean(&table.title)];
    lines.extend(table.text.iter().map(|t| wrap(&clean(t), columns, 0)));
    lines.push(String::new());
    lines.push(draw(&table.shown(), &table.rows, columns));
    lines.join("\n")
}
