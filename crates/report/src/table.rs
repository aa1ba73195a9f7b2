//! Tables for every renderer. A column has a heading and a function from a row to a [`Cell`], which
//! says what is shown; each renderer decides once for each kind of cell how that looks.

pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod terminal;

use std::borrow::Cow;

use undertick_document::{IntervalReport, ShareOf};
use undertick_units::Estimate;

/// The columns of a table whose rows are `R`.
pub(crate) struct Columns<'a, R>(Vec<Column<'a, R>>);

struct Column<'a, R> {
    /// Heading on a terminal, where the column is shown there.
    on_terminal: Option<Cow<'a, str>>,
    /// Heading on a page and in Markdown, where the column is shown there.
    on_page: Option<Cow<'a, str>>,
    /// Whether the column is aligned to the left; on a terminal the first one always is.
    is_words: bool,
    cell: Box<dyn Fn(R) -> Cell<'a> + 'a>,
}

impl<'a, R> Columns<'a, R> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a column of figures. A line break in its heading is a space on a page.
    pub(crate) fn column(
        self,
        heading: impl Into<Cow<'a, str>>,
        cell: impl Fn(R) -> Cell<'a> + 'a,
    ) -> Self {
        let heading = heading.into();
        let on_page = heading.replace('\n', " ").into();
        self.with(Some(heading), Some(on_page), cell)
    }

    /// Adds a column of figures that only a terminal shows.
    pub(crate) fn terminal(self, heading: &'a str, cell: impl Fn(R) -> Cell<'a> + 'a) -> Self {
        self.with(Some(heading.into()), None, cell)
    }

    /// Adds a column of figures that only pages show.
    pub(crate) fn page(self, heading: &'a str, cell: impl Fn(R) -> Cell<'a> + 'a) -> Self {
        self.with(None, Some(heading.into()), cell)
    }

    fn with(
        mut self,
        on_terminal: Option<Cow<'a, str>>,
        on_page: Option<Cow<'a, str>>,
        cell: impl Fn(R) -> Cell<'a> + 'a,
    ) -> Self {
        self.0.push(Column {
            on_terminal,
            on_page,
            is_words: false,
            cell: Box::new(cell),
        });
        self
    }

    /// Makes the column that was added last one of words.
    pub(crate) fn words(mut self) -> Self {
        self.last().is_words = true;
        self
    }

    /// Gives the column that was added last another heading on a page.
    pub(crate) fn on_page(mut self, heading: impl Into<Cow<'a, str>>) -> Self {
        self.last().on_page = Some(heading.into());
        self
    }

    fn last(&mut self) -> &mut Column<'a, R> {
        self.0.last_mut().expect("a column was added before")
    }

    /// The columns of a terminal, with their headings.
    fn shown_on_terminal(&self) -> impl Iterator<Item = (&str, &Column<'a, R>)> {
        (self.0.iter()).filter_map(|column| Some((column.on_terminal.as_deref()?, column)))
    }

    /// The columns of a page, with their headings.
    fn shown_on_page(&self) -> impl Iterator<Item = (&str, &Column<'a, R>)> {
        (self.0.iter()).filter_map(|column| Some((column.on_page.as_deref()?, column)))
    }
}

/// What one place of a table shows. Text from a file may be hostile: the renderers make it harmless.
pub(crate) enum Cell<'a> {
    /// No figure, and a sign that says so.
    Nothing,
    /// No figure, because none is expected; a terminal leaves the place empty.
    Absent,
    /// An interval, by the number of its panel on the page.
    Interval(usize, &'a IntervalReport),
    /// Another name from the measured program, of any length.
    Name(&'a str),
    /// What the row is about; a page adds what that includes.
    About(&'a str, Cow<'a, str>),
    /// Text as it stands.
    Text(Cow<'a, str>),
    /// A figure as text with its unit.
    Figure(String),
    /// Text that must not be overlooked.
    Notable(String),
    /// Items, one a line where there is room.
    Lines(Vec<String>),
    /// A number without an interval, and its text.
    Number(f64, String),
    /// A count, in full where there is room.
    Count(u64),
    /// A duration without an interval, ns.
    Duration(f64),
    /// A count and the share of a whole that it is.
    Part(u64, f64),
    /// A value above its interval.
    Estimate(&'a Estimate),
    /// Text, and what adds to it beside it, such as the interval of a value.
    Beside(String, String),
    /// The share that an interval takes of another.
    ShareOf(&'a ShareOf),
    /// An SVG element; only pages have it.
    Drawing(String),
}

impl<'a> Cell<'a> {
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// A share of a whole, without an interval.
    pub(crate) fn share(share: f64) -> Self {
        Self::Number(share, undertick_document::figures::per_cent(share))
    }

    pub(crate) fn estimate(estimate: impl Into<Option<&'a Estimate>>) -> Self {
        estimate.into().map_or(Self::Nothing, Self::Estimate)
    }

    pub(crate) fn duration(ns: Option<f64>) -> Self {
        ns.map_or(Self::Nothing, Self::Duration)
    }
}
