//! Columns of time, and the share of each that spans took.

use std::collections::BTreeMap;

use undertick_document::timeline::Row;

/// The second that is shown, in ticks, and its columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) from: i64,
    /// The end, excluded.
    pub(crate) to: i64,
    pub(crate) columns: u32,
}

impl Window {
    pub(crate) fn ticks(&self) -> i64 {
        self.to - self.from
    }

    pub(crate) fn holds(&self, ts: i64) -> bool {
        (self.from..self.to).contains(&ts)
    }

    /// The column of a time in the window.
    pub(crate) fn column(&self, ts: i64) -> u32 {
        let offset = i128::from(ts - self.from) * i128::from(self.columns);
        u32::try_from(offset / i128::from(self.ticks().max(1))).unwrap_or(0)
    }

    /// Where a column begins: the first tick of which [`Self::column`] is this one.
    fn begin(&self, column: u32) -> i64 {
        let offset = i128::from(column) * i128::from(self.ticks());
        let columns = i128::from(self.columns);
        self.from + ((offset + columns - 1) / columns) as i64
    }
}

/// The time that one name took of a column.
#[derive(Clone, Copy, Debug)]
struct Share {
    name: u32,
    ticks: i64,
    began: u32,
}

/// The rows of one lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells {
    rows: BTreeMap<u32, Vec<Vec<Share>>>,
    /// Number of spans that touch the window.
    pub(crate) spans: u64,
    /// Time in row 0, ticks.
    pub(crate) busy: i64,
    /// Events lost, by column.
    pub(crate) losses: BTreeMap<u32, u64>,
}

impl Cells {
    /// Adds a span from `start` up to `end`, which touches the window.
    pub(crate) fn add(&mut self, window: &Window, row: u32, name: u32, start: i64, end: i64) {
        let (from, to) = (start.max(window.from), end.min(window.to));
        self.spans += 1;
        if row == 0 {
            self.busy += (to - from).max(0);
        }
        let columns =
            (self.rows.entry(row)).or_insert_with(|| vec![Vec::new(); window.columns as usize]);
        let mut at = from;
        let mut column = window.column(from.min(window.to - 1));
        loop {
            let end = window.begin(column + 1).min(to);
            let began = u32::from(at == start);
            add(
                &mut columns[column as usize],
                name,
                (end - at).max(0),
                began,
            );
            column += 1;
            at = end;
            if at >= to || column >= window.columns {
                return;
            }
        }
    }

    /// Adds a point, which takes no time.
    pub(crate) fn point(&mut self, window: &Window, row: u32, name: u32, at: i64) {
        let columns =
            (self.rows.entry(row)).or_insert_with(|| vec![Vec::new(); window.columns as usize]);
        add(&mut columns[window.column(at) as usize], name, 0, 1);
    }

    pub(crate) fn lost(&mut self, window: &Window, at: i64, n: u64) {
        let lost = self.losses.entry(window.column(at)).or_default();
        *lost = lost.saturating_add(n);
    }

    /// Merges the rows of another; `names` maps its names to those here.
    pub(crate) fn absorb(&mut self, other: Self, names: &[u32]) {
        for (row, columns) in other.rows {
            let here = (self.rows.entry(row)).or_insert_with(|| vec![Vec::new(); columns.len()]);
            for (here, column) in here.iter_mut().zip(columns) {
                for share in column {
                    add(here, names[share.name as usize], share.ticks, share.began);
                }
            }
        }
        self.spans += other.spans;
        self.busy += other.busy;
        for (column, n) in other.losses {
            let lost = self.losses.entry(column).or_default();
            *lost = lost.saturating_add(n);
        }
    }

    /// Whether nothing is in the window.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.losses.is_empty()
    }

    /// Columns that are not empty.
    pub(crate) fn filled(&self) -> usize {
        let filled = |columns: &Vec<Vec<Share>>| columns.iter().filter(|c| !c.is_empty()).count();
        self.rows.values().map(filled).sum()
    }

    /// Merges each pair of columns into one.
    pub(crate) fn halve(&mut self) {
        for columns in self.rows.values_mut() {
            let mut halved = vec![Vec::new(); columns.len().div_ceil(2)];
            for (column, shares) in columns.drain(..).enumerate() {
                for Share { name, ticks, began } in shares {
                    add(&mut halved[column / 2], name, ticks, began);
                }
            }
            *columns = halved;
        }
        let losses = std::mem::take(&mut self.losses);
        for (column, n) in losses {
            *self.losses.entry(column / 2).or_default() += n;
        }
    }

    /// The rows of the document; columns are `column_ticks` long each.
    pub(crate) fn rows(&self, column_ticks: f64) -> Vec<Row> {
        self.rows
            .iter()
            .map(|(&row, columns)| {
                let mut cells = Vec::new();
                for (column, shares) in columns.iter().enumerate() {
                    let most = shares.iter().max_by_key(|s| (s.ticks, s.began, s.name));
                    let Some(most) = most else { continue };
                    let ticks: i64 = shares.iter().map(|s| s.ticks).sum();
                    let share = (ticks as f64 / column_ticks * 1000.0).round();
                    let began = shares.iter().map(|s| s.began).sum();
                    cells.extend([column as u32, most.name, share as u32, began]);
                }
                Row { row, cells }
            })
            .collect()
    }
}

fn add(column: &mut Vec<Share>, name: u32, ticks: i64, began: u32) {
    match column.iter_mut().find(|share| share.name == name) {
        Some(share) => {
            share.ticks += ticks;
            share.began += began;
        }
        None => column.push(Share { name, ticks, began }),
    }
}

#[cfg(test)]
mod tests;
