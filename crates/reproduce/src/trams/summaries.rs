//! Tables 2 to 5 in full: the number of samples, their maximum, minimum, mean and median, as printed
//! and as measured here.

use undertick_document::IntervalReport;
use undertick_report::reproduce::{Reproduction, Table};
use undertick_units::Estimate;

use crate::compared::{
    Figures, ItemDescription, NOT_PERFORMED, Published, bare, cell, item, shown, times,
};
use crate::tables::words;

/// One printed row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) table: &'static str,
    pub(super) name: &'static str,
    pub(super) n: u64,
    pub(super) max: Published,
    pub(super) min: Published,
    pub(super) mean: Published,
    pub(super) median: Option<Published>,
    pub(super) anomalies: Option<u64>,
}

impl Row {
    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split('|').map(str::trim);
        let mut next = || fields.next();
        let (table, name, n) = (next()?, next()?, next()?.parse().ok()?);
        let figure = |printed: &'static str| {
            let value = printed.parse().ok()?;
            Some(Published { value, printed })
        };
        Some(Self {
            table,
            name,
            n,
            max: figure(next()?)?,
            min: figure(next()?)?,
            mean: figure(next()?)?,
            median: figure(next()?),
            anomalies: next()?.parse().ok(),
        })
    }
}

/// The rows of a table, in their order.
pub(super) fn rows(table: &str) -> impl Iterator<Item = Row> {
    rows_of(include_str!("summaries.txt"), table)
}

/// Likewise, of a text with the same fields.
pub(super) fn rows_of(text: &'static str, table: &str) -> impl Iterator<Item = Row> {
    let lines = text.lines();
    (lines.filter(|line| !line.starts_with('#')))
        .map(|line| Row::parse(line).expect("every line has its fields"))
        .filter(move |row| row.table == table)
}

/// A table of the source, and where its rows are measured here.
struct Source {
    table: &'static str,
    title: &'static str,
    text: &'static str,
    /// What the rows differ by.
    by: &'static str,
    unit: &'static str,
    script: &'static str,
    step: &'static str,
    /// Parameters of the script; a row's size is another one.
    with: (&'static str, &'static str),
    by_size: bool,
}

const SOURCES: [Source; 5] = [
    Source {
        table: "2a",
        title: "Table 2a: gettimeofday",
        text: "Runs here are repetitions in fresh processes.",
        by: "run",
        unit: "us",
        script: "clocks",
        step: "read gettimeofday",
        with: ("readers", "1"),
        by_size: false,
    },
    Source {
        table: "2b",
        title: "Table 2b: getrusage",
        text: "Runs here are repetitions in fresh processes.",
        by: "run",
        unit: "us",
        script: "clocks",
        step: "read getrusage",
        with: ("readers", "1"),
        by_size: false,
    },
    Source {
        table: "4",
        title: "Table 4: fork against shared memory",
        text: "Published: until the child's first instruction. Here: until the call returns in the parent, with memory \
               touched in pages of 4 KiB.",
        by: "KB",
        unit: "ms",
        script: "fork-published",
        step: "fork",
        with: ("kind", "shared"),
        by_size: true,
    },
    Source {
        table: "5a",
        title: "Table 5a: initialising shared memory",
        text: "Here: shmget and shmat, as then; pages come when they are written first, which is part of initialising.",
        by: "KB",
        unit: "ms",
        script: "memory-published",
        step: "initialise",
        with: ("kind", "sysv"),
        by_size: true,
    },
    Source {
        table: "5b",
        title: "Table 5b: allocating shared memory",
        text: "Here: shmget and shmat, which make and map it, untouched.",
        by: "KB",
        unit: "ms",
        script: "memory-published",
        step: "allocate",
        with: ("kind", "sysv"),
        by_size: true,
    },
];

/// The figures of one row as measured here, ns.
#[derive(Clone, Debug, Default)]
struct Here {
    n: Option<u64>,
    max: Option<Estimate>,
    min: Option<Estimate>,
    mean: Option<Estimate>,
    median: Option<Estimate>,
}

impl Here {
    /// All repetitions together.
    fn of_all(interval: &IntervalReport) -> Self {
        let n = interval.count;
        let plain = |value: Option<f64>, what: &str| value.map(|ns| bare(ns, "ns", what, n));
        Self {
            n: Some(n),
            max: plain(interval.statistics.max, "largest of all samples"),
            min: plain(interval.statistics.min, "least of all samples"),
            mean: interval.mean.clone(),
            median: interval.median.clone(),
        }
    }

    /// One repetition, by its number from 1.
    fn of_run(interval: &IntervalReport, number: u32) -> Self {
        let repeated = interval.repeated.iter().flat_map(|r| &r.repetitions);
        let Some(run) = repeated.clone().find(|run| run.repetition == number) else {
            return Self::default();
        };
        let plain = |ns: f64| bare(ns, "ns", "of one repetition", run.count);
        Self {
            n: Some(run.count),
            max: run.max_ns.map(plain),
            min: run.min_ns.map(plain),
            mean: Some(plain(run.mean_ns)),
            median: Some(plain(run.median_ns)),
        }
    }
}

/// Adds Tables 2, 4 and 5 in full.
pub(super) fn summaries(found: &mut Reproduction, figures: Figures<'_>) {
    for source in &SOURCES {
        let mut lines = Vec::new();
        for row in rows(source.table) {
            let here = measured(source, &row, figures);
            lines.push(line(found, source, &row, &here));
        }
        let mut columns = words(&[source.by, "n", "here"]);
        for what in ["max", "min", "mean", "median"] {
            columns.extend([what.to_owned(), "here".to_owned(), "times".to_owned()]);
        }
        found.tables.push(Table {
            title: source.title.to_owned(),
            text: vec![format!("Published in {}. {}", source.unit, source.text)],
            columns,
            rows: lines,
        });
    }
}

fn measured(source: &Source, row: &Row, figures: Figures<'_>) -> Here {
    let size = format!("{}KB", row.name);
    let mut with = vec![source.with];
    if source.by_size {
        with.push(("bytes", &size));
    }
    let Some(interval) = figures.named(source.script, &with, source.step) else {
        return Here::default();
    };
    match row.name.parse() {
        Ok(number) if !source.by_size => Here::of_run(interval, number),
        _ => Here::of_all(interval),
    }
}

/// Adds the items of a row, and returns its cells.
fn line(found: &mut Reproduction, source: &Source, row: &Row, here: &Here) -> Vec<String> {
    let count = |n: Option<u64>| n.map_or_else(|| "–".to_owned(), |n| n.to_string());
    let mut cells = vec![row.name.to_owned(), row.n.to_string(), count(here.n)];
    let figures = [
        ("max", Some(row.max), &here.max),
        ("min", Some(row.min), &here.min),
        ("mean", Some(row.mean), &here.mean),
        ("median", row.median, &here.median),
    ];
    for (what, published, measured) in figures {
        let Some(published) = published else {
            cells.extend(["–".to_owned(), cell(measured.as_ref()), "–".to_owned()]);
            continue;
        };
        let missing = match here.n {
            Some(_) => {
                "not measured: a repetition has no such figure, or it is below the clock's step"
            }
            None => NOT_PERFORMED,
        };
        let description = ItemDescription {
            id: format!("trams/table-{}/{}/{what}", source.table, row.name),
            quantity: format!("{}, {} {}, {what}", source.title, source.by, row.name),
            unit: source.unit,
            published: Some(published),
            formula: None,
            note: format!("{} samples were published", row.n),
        };
        let item = item(description, measured.as_ref(), missing);
        cells.extend([
            published.printed.to_owned(),
            cell(shown(&item, measured.as_ref())),
            times(item.ratio),
        ]);
        found.items.push(item);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::rows;

    /// Figures that were read off the printed tables a second time.
    #[test]
    fn as_printed() {
        for (table, name, what, value) in [
            ("2a", "1", "mean", 682.08),
            ("2a", "4", "max", 1050.0),
            ("2a", "total", "median", 649.0),
            ("2b", "total", "mean", 871.45),
            ("2b", "5", "max", 1220.0),
            ("2b", "2", "min", 839.0),
            ("3a", "50", "max", 2477.0),
            ("3a", "200", "mean", 172.29),
            ("3a", "500", "anomalies", 32.0),
            ("3a", "500", "n", 501.0),
            ("3b", "600", "max", 1993.0),
            ("3b", "200", "min", 15.0),
            ("4", "33", "max", 166.0),
            ("4", "1941", "mean", 254.0),
            ("4", "4351", "min", 401.0),
            ("5a", "490", "median", 1002.0),
            ("5a", "1096", "mean", 2113.0),
            ("5a", "4351", "n", 43.0),
            ("5b", "1941", "max", 12_891.0),
            ("5b", "4351", "mean", 13_827.0),
            ("5b", "33", "min", 71.0),
        ] {
            let row = rows(table).find(|row| row.name == name);
            let row = row.unwrap_or_else(|| panic!("no row {table} {name}"));
            let is = match what {
                "n" => row.n as f64,
                "max" => row.max.value,
                "min" => row.min.value,
                "mean" => row.mean.value,
                "median" => row.median.expect("a median").value,
                _ => row.anomalies.expect("anomalies") as f64,
            };
            assert_eq!(is, value, "{table} {name} {what}");
        }
    }

    /// The totals of Table 2 follow from its runs, and every figure lies between its extremes: a
    /// digit that was read wrong shows.
    #[test]
    fn what_is_printed_fits_together() {
        let mut all = 0;
        for table in ["2a", "2b", "3a", "3b", "4", "5a", "5b"] {
            for row in rows(table) {
                all += 1;
                let (min, max) = (row.min.value, row.max.value);
                let median = row.median.map_or(row.mean.value, |m| m.value);
                assert!(min <= median && median <= max, "{row:?}");
                assert!(min <= row.mean.value && row.mean.value <= max, "{row:?}");
            }
        }
        assert_eq!(all, 12 + 14 + 7 + 14);
        for table in ["2a", "2b"] {
            let (runs, total): (Vec<_>, Vec<_>) = rows(table).partition(|row| row.name != "total");
            let total = total[0];
            assert_eq!(runs.iter().map(|run| run.n).sum::<u64>(), total.n);
            let most = runs.iter().map(|run| run.max.value).fold(0.0, f64::max);
            let least = runs
                .iter()
                .map(|run| run.min.value)
                .fold(f64::MAX, f64::min);
            assert_eq!((most, least), (total.max.value, total.min.value));
            let sum: f64 = runs.iter().map(|run| run.n as f64 * run.mean.value).sum();
            let mean = sum / total.n as f64;
            assert!((mean - total.mean.value).abs() < 0.01, "{table}: {mean}");
        }
    }
}
