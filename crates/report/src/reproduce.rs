//! The document of `undertick reproduce` and its rendering for a terminal: published figures, and
//! the same figures computed by formula, simulated, and measured on this machine.

mod screen;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use crate::plot::Plot;
use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::{clean, wrap};

pub use screen::first_screen;

/// A source with its figures. The field names are the JSON shape that other
/// programs read; extend, never rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reproduction {
    /// Version of the document's format: 1.
    pub schema_version: u32,
    /// The source's short name, e.g. `slow-clock`; several joined by `+`.
    pub source: String,
    /// The source in full: author, year, title, number.
    pub title: String,
    /// Every table and figure of the source, and what became of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables_and_figures: Vec<TableOrFigure>,
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

impl Reproduction {
    /// A document without figures.
    #[must_use]
    pub fn new(source: &str, title: &str) -> Self {
        Self {
            schema_version: 1,
            source: source.to_owned(),
            title: title.to_owned(),
            tables_and_figures: Vec::new(),
            items: Vec::new(),
            tables: Vec::new(),
            plots: Vec::new(),
            findings: Vec::new(),
            interrupted: false,
        }
    }

    /// The list of all tables and figures as a table; `None` without any.
    pub(crate) fn list(&self) -> Option<Table> {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let row = |one: &TableOrFigure| {
            owned(&[
                &one.source,
                &one.name,
                &one.shows,
                &one.published,
                &one.formula,
                &one.simulated,
                &one.measured,
                &one.verdict,
            ])
        };
        (!self.tables_and_figures.is_empty()).then(|| Table {
            title: "Tables and figures of the sources".to_owned(),
            text: owned(&[
                "Numbers of figures: as printed, computed again by formula, simulated, and measured on this machine. \
                 What a machine of today measures cannot agree with what another one took; it is compared by how many \
                 times faster it is.",
            ]),
            columns: owned(&[
                "source", "table or figure", "shows", "printed", "formula", "simulated", "here", "verdict",
            ]),
            rows: self.tables_and_figures.iter().map(row).collect(),
        })
    }
}

/// A table or figure of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TableOrFigure {
    /// The source's short name, e.g. `slow-clock`.
    pub source: String,
    /// The name in the source, e.g. `Table 15`.
    pub name: String,
    /// What it shows.
    pub shows: String,
    /// What is printed: the number of figures, or a drawing.
    pub published: String,
    /// What was computed again by formula.
    pub formula: String,
    /// What was simulated.
    pub simulated: String,
    /// What was measured on this machine.
    pub measured: String,
    /// What became of it: reproduced, or why not.
    pub verdict: String,
    /// Ids of its figures among [`Reproduction::items`].
    pub items: Vec<String>,
}

/// What a figure, computed again or simulated, is beside the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The same within the tolerance that the note or the chapter on the source states.
    Agrees,
    /// Not the same.
    Differs,
    /// Not the same, because the printed figure does not follow from what the source says.
    Erratum,
    /// Only measured, on another machine than the published one: see [`Item::ratio`].
    OtherMachine,
    /// Not computed, simulated or measured: the note says why.
    Missing,
}

impl Verdict {
    /// The verdict in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Erratum => "erratum",
            Self::OtherMachine => "measured here",
            Self::Missing => "not measured",
        }
    }
}

/// One figure of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// What the figure is beside the published one; `None` where nothing is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Why they differ; empty if they do not.
    pub note: String,
}

/// A table for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    for table in found.list().iter().chain(&found.tables) {
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
