//! The tables of the terminal report.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use undertick_document::figures::{self, figure};
use undertick_document::{IntervalReport, Report};
use undertick_units::Estimate;

use crate::remarks;
use crate::text::{clean, columns, shorten};

/// Width of a name, columns; the rest goes to a second line, then is cut.
const NAME_COLUMNS: usize = 26;

/// Median, mean and p99 with their intervals below; count, maximum, culled share.
pub(super) fn estimates(report: &Report, columns: usize) -> String {
    let mut table = new_table(columns);
    table.set_header(["interval", "n", "median", "mean", "p99", "max", "culled"]);
    for interval in &report.intervals {
        table.add_row([
            name(&interval.name),
            remarks::count(interval),
            estimate(interval.median.as_ref()),
            estimate(interval.mean.as_ref()),
            estimate(interval.quantiles.get("0.99")),
            interval.max.map_or(none(), figures::duration),
            match interval.count.saturating_add(interval.culled.count) {
                0 => none(),
                _ => figures::per_cent(interval.culled.share),
            },
        ]);
    }
    let (mean, quantiles) = remarks::methods(report);
    let sampled = match report.intervals.iter().any(|i| i.sampled.is_some()) {
        true => " (of: executions, of which those were recorded, drawn at random)",
        false => "",
    };
    let by = match mean == quantiles {
        true => format!("All by {mean}"),
        false => format!("Mean by {mean}; median and p99 by {quantiles}"),
    };
    let legend = format!(
        "[lo, hi]: {} interval of the figure above it, in its unit, {}; ?: cannot be given. n: \
         samples behind the figures{sampled}. {by}.",
        figures::per_cent(report.settings.confidence),
        remarks::scope(report),
    );
    format!(
        "{}\n{}",
        text_of(table, 1),
        crate::text::wrap(&legend, columns, 0)
    )
}

/// What was dropped and subtracted, and the figures without that.
pub(super) fn taken_out(report: &Report, columns: usize) -> String {
    let touched: Vec<&IntervalReport> = report
        .intervals
        .iter()
        .filter(|i| remarks::is_cleaned(i) || i.compensation.cost.is_some() || i.unmatched > 0)
        .collect();
    if touched.is_empty() {
        return "Nothing was taken out: no sample culled, no cost subtracted.".to_owned();
    }
    let mut table = new_table(columns);
    table.set_header([
        "taken out of",
        "because",
        "culled",
        "median before\n-> after",
        "mean before\n-> after",
        "cost\nsubtracted",
        "starts, ends\nunmatched",
    ]);
    for interval in touched {
        let before = &interval.before_culling;
        table.add_row([
            name(&interval.name),
            remarks::causes(interval).join("\n"),
            culled(interval),
            before_and_after(interval, before.median.as_ref(), interval.median.as_ref()),
            before_and_after(interval, before.mean.as_ref(), interval.mean.as_ref()),
            estimate(interval.compensation.cost.as_ref()),
            figures::short_count(interval.unmatched),
        ]);
    }
    text_of(table, 2)
}

/// How the time of the samples divides; `None` where that is not known.
pub(super) fn times(report: &Report, columns: usize) -> Option<String> {
    let mut table = new_table(columns);
    table.set_header(["time of"].into_iter().chain(remarks::TIMES));
    let mut any = false;
    for interval in &report.intervals {
        if let Some(times) = remarks::times(interval) {
            any = true;
            table.add_row(
                [name(&interval.name)]
                    .into_iter()
                    .chain(times.map(figures::duration)),
            );
        }
    }
    any.then(|| {
        format!(
            "{}\n{}",
            text_of(table, 1),
            crate::text::wrap(remarks::TIMES_LEGEND, columns, 0)
        )
    })
}

/// The causes in samples according to the kernel's own events; `None` if there are no such events.
pub(super) fn evidence(report: &Report, columns: usize) -> Option<String> {
    let mut table = new_table(columns);
    table.set_header([
        "fell into",
        "what",
        "samples",
        "share",
        "took",
        "so they\nwere",
    ]);
    let mut any = false;
    for interval in &report.intervals {
        for fell in remarks::fell_into(interval) {
            any = true;
            table.add_row([
                name(&interval.name),
                fell.what.clone(),
                figures::short_count(fell.count),
                fell.shares(),
                fell.time_ns.map_or(none(), figures::duration),
                fell.treatment().to_owned(),
            ]);
        }
    }
    any.then(|| text_of(table, 2))
}

/// Number of samples dropped, above their share.
fn culled(interval: &IntervalReport) -> String {
    match interval.culled.count {
        0 => "0".to_owned(),
        n => format!(
            "{}\n{}",
            figures::short_count(n),
            figures::per_cent(interval.culled.share)
        ),
    }
}

/// A figure with every sample as it was, above the figure without culled samples and disturbances.
fn before_and_after(
    interval: &IntervalReport,
    before: Option<&Estimate>,
    after: Option<&Estimate>,
) -> String {
    let value = |e: Option<&Estimate>| e.map_or(none(), |e| figure(e).value_and_unit());
    match remarks::is_cleaned(interval) {
        false => format!("{}\nas before", value(after)),
        true => format!("{}\n-> {}", value(before), value(after)),
    }
}

/// The share of an enclosing interval that each interval takes; `None` if no interval has one.
pub(super) fn shares(report: &Report, columns: usize) -> Option<String> {
    let mut table = new_table(columns);
    table.set_header(["interval", "share", "interval", "of"]);
    let mut any = false;
    for interval in &report.intervals {
        let Some(share_of) = &interval.share_of else {
            continue;
        };
        any = true;
        let share = share_of.share.as_ref().map(figure);
        table.add_row([
            name(&interval.name),
            share
                .as_ref()
                .map_or(none(), figures::Figure::value_and_unit),
            share.as_ref().map_or(none(), figures::Figure::interval),
            name(&share_of.of),
        ]);
    }
    any.then(|| text_of(table, 1))
}

/// How often events occurred; events beyond the `most` most frequent are only counted.
pub(super) fn frequencies(report: &Report, columns: usize, most: usize) -> String {
    let mut table = new_table(columns);
    table.set_header(["event", "count", "per second", "interval", "share"]);
    for frequency in report.frequencies.iter().take(most) {
        let rate = frequency.per_second.as_ref().map(figure);
        let share = frequency.share_of.as_ref().map(|share| {
            let text = share
                .share
                .as_ref()
                .map_or(none(), |e| figure(e).value_and_unit());
            format!("{text} of {}", shorten(&clean(&share.of), NAME_COLUMNS))
        });
        table.add_row([
            name(&frequency.name),
            figures::short_count(frequency.count),
            rate.as_ref()
                .map_or(none(), figures::Figure::value_and_unit),
            rate.as_ref().map_or(none(), figures::Figure::interval),
            share.unwrap_or_default(),
        ]);
    }
    let text = text_of(table, 1);
    match report.frequencies.len().saturating_sub(most) {
        0 => text,
        more => format!("{text}\n({more} rarer events: --json or --html FILE)"),
    }
}

/// A value above its interval.
fn estimate(estimate: Option<&Estimate>) -> String {
    estimate.map_or(none(), |estimate| {
        let figure = figure(estimate);
        format!("{}\n{}", figure.value_and_unit(), figure.interval())
    })
}

/// The placeholder where the document has no figure.
fn none() -> String {
    "-".to_owned()
}

/// A name on one line if it fits, else on two, else with its middle cut out.
fn name(name: &str) -> String {
    let name = shorten(&clean(name), 2 * NAME_COLUMNS - 1);
    if columns(&name) <= NAME_COLUMNS {
        return name;
    }
    let mut at = 0;
    for (next, c) in name.char_indices() {
        if columns(&name[..next + c.len_utf8()]) > NAME_COLUMNS {
            break;
        }
        at = next + c.len_utf8();
    }
    format!("{}\n{}", &name[..at], &name[at..])
}

pub(crate) fn new_table(columns: usize) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(columns).unwrap_or(u16::MAX));
    table
}

/// The table as text: text columns aligned to the left, figures to the right, no trailing spaces.
pub(crate) fn text_of(mut table: Table, text_columns: usize) -> String {
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i >= text_columns {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
        .to_string()
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}
