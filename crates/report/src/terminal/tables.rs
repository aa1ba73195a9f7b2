//! The tables of the terminal report.

use undertick_document::Report;
use undertick_document::figures;

use crate::columns::{self, rows};
use crate::remarks;
use crate::table::terminal::draw;
use crate::text::wrap;

/// Median, mean and p99 with their intervals below; count, maximum, culled share.
pub(super) fn estimates(report: &Report, room: usize) -> String {
    let rows = rows(report, |_| Some(()));
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
        draw(&columns::estimates(), rows, room),
        wrap(&legend, room, 0)
    )
}

/// What was dropped and subtracted, and the figures without that.
pub(super) fn dropped_and_subtracted(report: &Report, room: usize) -> String {
    let touched = rows(report, |i| {
        let is_touched = remarks::is_cleaned(i) || i.compensation.cost.is_some() || i.unmatched > 0;
        is_touched.then_some(())
    });
    match touched.is_empty() {
        true => "No sample was dropped, and no cost subtracted.".to_owned(),
        false => draw(&columns::dropped_and_subtracted(), touched, room),
    }
}

/// How the time of the samples divides; `None` where that is not known.
pub(super) fn times(report: &Report, room: usize) -> Option<String> {
    let known = rows(report, remarks::times);
    (!known.is_empty()).then(|| {
        let legend = wrap(remarks::TIMES_LEGEND, room, 0);
        format!("{}\n{legend}", draw(&columns::times(), known, room))
    })
}

/// The causes in samples according to the kernel's own events; `None` if there are no such events.
pub(super) fn evidence(report: &Report, room: usize) -> Option<String> {
    let fell = rows(report, remarks::fell_into);
    (!fell.is_empty()).then(|| draw(&columns::evidence(), fell, room))
}

/// The share of an enclosing interval that each interval takes; `None` if no interval has one.
pub(super) fn shares(report: &Report, room: usize) -> Option<String> {
    let shares = rows(report, |i| &i.share_of);
    (!shares.is_empty()).then(|| draw(&columns::shares(), shares, room))
}

/// How often events occurred; events beyond the `most` most frequent are only counted.
pub(super) fn frequencies(report: &Report, room: usize, most: usize) -> String {
    let shown = report.frequencies.iter().take(most);
    let text = draw(&columns::frequencies(), shown, room);
    match report.frequencies.len().saturating_sub(most) {
        0 => text,
        more => format!("{text}\n({more} rarer events: --json or --html FILE)"),
    }
}
