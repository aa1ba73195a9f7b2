//! Benchmarks of many processes on a terminal.

use undertick_document::figures;

use super::{BenchmarkRun, BenchmarkRuns};
use crate::compare::SequentialEnd;
use crate::remarks::number_of;
use crate::survey::{figure, machine};
use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::{clean, wrap};

/// Minimum number of columns that the table fits in.
const FEWEST_COLUMNS: usize = 60;

/// The benchmarks as text in at most `columns` columns. Ends with a line break.
#[must_use]
pub fn render(runs: &BenchmarkRuns, columns: usize) -> String {
    let columns = columns.max(FEWEST_COLUMNS);
    let level = runs.benchmarks.first().map_or(0.95, |of| of.mean.level);
    let interval = format!("{} CI", figures::per_cent(level));
    let table: Columns<'_, &BenchmarkRun> = Columns::new()
        .column("benchmark", |of: &BenchmarkRun| Cell::Name(&of.name))
        .words()
        .column("mean", |of| Cell::text(figure(&of.mean).0))
        .column(interval, |of| Cell::text(figure(&of.mean).1))
        .column("min", |of| Cell::Duration(of.min_ns))
        .column("max", |of| Cell::Duration(of.max_ns))
        .column("samples", |of| Cell::Count(of.mean.n));
    let mut parts = vec![
        wrap(&heading(runs), columns, 2),
        draw(&table, runs.benchmarks.iter(), columns),
        wrap(&ending(runs), columns, 0),
    ];
    parts.extend(
        (runs.warnings.iter())
            .map(|warning| wrap(&format!("warning: {}", clean(&warning.text)), columns, 2)),
    );
    parts.join("\n\n").replace('\u{a0}', " ") + "\n"
}

fn heading(runs: &BenchmarkRuns) -> String {
    format!(
        "{} of {} ({}), {} in {:.0} s, on {}",
        number_of(runs.benchmarks.len() as u64, "benchmark"),
        clean(&runs.command.join(" ")),
        runs.harness.name(),
        number_of(runs.runs, "round"),
        runs.took_s,
        machine(&runs.host)
    )
}

fn ending(runs: &BenchmarkRuns) -> String {
    let within = figures::per_cent(runs.within);
    let is_wide = |of: &&BenchmarkRun| {
        let ends = of.mean.interval.lo.zip(of.mean.interval.hi);
        ends.is_none_or(|(lo, hi)| (hi - lo) / 2.0 > runs.within * of.mean.value.abs())
    };
    let wide = runs.benchmarks.iter().filter(is_wide).count();
    let why = match runs.end {
        SequentialEnd::Decided => format!("each mean is known within {within}"),
        SequentialEnd::Rounds => "all rounds that were allowed are made".to_owned(),
        SequentialEnd::Time => "the time is over".to_owned(),
        SequentialEnd::Interrupted => "stopped by the user".to_owned(),
        SequentialEnd::Failed => "ended early, see the warning".to_owned(),
    };
    let known = match (runs.end, wide) {
        (SequentialEnd::Decided, _) => String::new(),
        (_, 0) => format!("; each mean is known within {within}"),
        (_, wide) => format!(
            "; {wide} of {} not known within {within}",
            number_of(runs.benchmarks.len() as u64, "mean")
        ),
    };
    format!(
        "{why}{known}. Each process gives one sample. Whether a change made a \
         benchmark faster: undertick compare --bench OLD NEW."
    )
}
