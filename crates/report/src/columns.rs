//! The columns of a report's tables, each for the terminal and for the page.

use undertick_document::figures::{self, figure};
use undertick_document::{FrequencyReport, IntervalReport, Report, ShareOf, Slowed};
use undertick_units::Estimate;

use crate::remarks::{self, Fell};
use crate::table::{Cell, Columns};

/// A row of a table of intervals: the interval's number in the report, the interval, and what the
/// table shows of it.
pub(crate) type Row<'a, T = ()> = (usize, &'a IntervalReport, T);

/// The rows of a table: for each interval, whatever `of` finds in it.
pub(crate) fn rows<'a, T, I: IntoIterator<Item = T>>(
    report: &'a Report,
    of: impl Fn(&'a IntervalReport) -> I,
) -> Vec<Row<'a, T>> {
    let all = report.intervals.iter().enumerate();
    all.flat_map(|(number, i)| of(i).into_iter().map(move |found| (number, i, found)))
        .collect()
}

/// The columns of a table of intervals, beginning with their names.
fn named<'a, T>(heading: &'a str) -> Columns<'a, Row<'a, T>> {
    let columns = Columns::new();
    let columns = columns.column(heading, |(number, i, _)| Cell::Interval(number, i));
    columns.on_page("interval")
}

/// Every interval with its estimates.
pub(crate) fn estimates<'a>() -> Columns<'a, Row<'a>> {
    named::<()>("interval")
        .column("n", |(_, i, ())| {
            Cell::Number(i.count as f64, remarks::count(i))
        })
        .column("median", |(_, i, ())| Cell::estimate(&i.median))
        .column("mean", |(_, i, ())| Cell::estimate(&i.mean))
        .column("p99", |(_, i, ())| Cell::estimate(i.quantiles.get("0.99")))
        .column("max", |(_, i, ())| Cell::duration(i.statistics.max))
        .column("dropped", |(_, i, ())| {
            match i.count.saturating_add(i.culled.count) {
                0 => Cell::Nothing,
                _ => Cell::share(i.culled.share),
            }
        })
}

/// What was dropped and subtracted, and the figures without that.
pub(crate) fn dropped_and_subtracted<'a>() -> Columns<'a, Row<'a>> {
    let dropped = |(_, i, ()): Row<'a>| Cell::Part(i.culled.count, i.culled.share);
    named::<()>("before and after")
        .page("dropped", dropped)
        .column("because", |(_, i, ())| Cell::Lines(remarks::causes(i)))
        .words()
        .terminal("dropped", dropped)
        .terminal("median before\n-> after", |(_, i, ())| {
            before_and_after(i, &i.before_culling.median, &i.median)
        })
        .terminal("mean before\n-> after", |(_, i, ())| {
            before_and_after(i, &i.before_culling.mean, &i.mean)
        })
        .page("median, all", |(_, i, ())| {
            only_if(remarks::is_cleaned(i), &i.before_culling.median)
        })
        .page("median, as read", |(_, i, ())| {
            only_if(i.compensation.cost.is_some(), &i.uncompensated.median)
        })
        .page("median", |(_, i, ())| Cell::estimate(&i.median))
        .page("mean, all", |(_, i, ())| {
            only_if(remarks::is_cleaned(i), &i.before_culling.mean)
        })
        .page("mean, as read", |(_, i, ())| {
            only_if(i.compensation.cost.is_some(), &i.uncompensated.mean)
        })
        .page("mean", |(_, i, ())| Cell::estimate(&i.mean))
        .column("cost\nsubtracted", |(_, i, ())| {
            Cell::estimate(&i.compensation.cost)
        })
        .terminal("starts, ends\nunmatched", |(_, i, ())| {
            Cell::Count(i.unmatched)
        })
}

/// A figure with every sample as it was, above the figure without dropped samples and disturbances.
fn before_and_after<'a>(
    interval: &IntervalReport,
    before: &Option<Estimate>,
    after: &Option<Estimate>,
) -> Cell<'a> {
    let value = |e: &Option<Estimate>| {
        (e.as_ref()).map_or_else(|| "-".to_owned(), |e| figure(e).value_and_unit())
    };
    Cell::Lines(match remarks::is_cleaned(interval) {
        false => vec![value(after), "as before".to_owned()],
        true => vec![value(before), format!("-> {}", value(after))],
    })
}

/// A figure that is another one only on a condition; else it is not repeated.
fn only_if(differs: bool, figure: &Option<Estimate>) -> Cell<'_> {
    Cell::estimate(figure.as_ref().filter(|_| differs))
}

/// How the time of the samples divides; the rows are the intervals of which that is known.
pub(crate) fn times<'a>() -> Columns<'a, Row<'a, [f64; 4]>> {
    named::<[f64; 4]>("time of")
        .column("total", |(_, _, [total, ..])| Cell::Duration(total))
        .column("on CPU", |(_, _, [_, on, ..])| Cell::Duration(on))
        .column("off CPU", |(_, _, [.., off, _])| Cell::Duration(off))
        .column("taken off", |(_, _, [.., taken])| Cell::Duration(taken))
}

/// The causes in samples according to the kernel's own events.
pub(crate) fn evidence<'a>() -> Columns<'a, Row<'a, Fell>> {
    named::<Fell>("happened in")
        .column("what", |(_, _, fell)| Cell::text(fell.what))
        .words()
        .column("samples", |(_, _, fell)| {
            Cell::Number(fell.count as f64, figures::short_count(fell.count))
        })
        .column("share", |(_, _, fell)| {
            Cell::Number(fell.share, fell.shares())
        })
        .column("took", |(_, _, fell)| Cell::duration(fell.time_ns))
        .column("so they\nwere", |(_, _, fell)| Cell::text(fell.treatment()))
}

/// How often events occurred.
pub(crate) fn frequencies<'a>() -> Columns<'a, &'a FrequencyReport> {
    Columns::<&FrequencyReport>::new()
        .column("event", |f| Cell::Name(&f.name))
        .column("count", |f| Cell::Count(f.count))
        .terminal("per second", |f| value(f.per_second.as_ref()))
        .terminal("interval", |f| bounds(f.per_second.as_ref()))
        .page("per second", |f| Cell::estimate(&f.per_second))
        .column("share", |f| {
            (f.share_of.as_ref()).map_or(Cell::text(""), Cell::ShareOf)
        })
}

/// The share of an enclosing interval that each interval takes. The page has it in its details.
pub(crate) fn shares<'a>() -> Columns<'a, Row<'a, &'a ShareOf>> {
    named::<&ShareOf>("interval")
        .column("share", |(_, _, part)| value(part.share.as_ref()))
        .column("interval", |(_, _, part)| bounds(part.share.as_ref()))
        .column("of", |(_, _, part)| Cell::Name(&part.of))
}

/// By how much the measuring points slow intervals. The terminal has it in sentences.
pub(crate) fn slowed<'a>() -> Columns<'a, Row<'a, &'a Slowed>> {
    named::<&Slowed>("interval")
        .column("slowed by", |(_, _, s)| Cell::Estimate(&s.by))
        .column("share", |(_, _, s)| Cell::Estimate(&s.share))
        .column("per point", |(_, _, s)| Cell::estimate(&s.per_point))
        .column("points inside", |(_, _, s)| {
            Cell::Number(s.points, format!("{:.1} {}", s.points, s.what))
        })
        .column("samples with them", |(_, _, s)| Cell::Count(s.samples[0]))
        .column("and without", |(_, _, s)| Cell::Count(s.samples[1]))
}

/// Starts and ends without a partner. The terminal has only their sum.
pub(crate) fn unmatched<'a>() -> Columns<'a, Row<'a>> {
    named::<()>("interval")
        .column("starts without end", |(_, i, ())| {
            Cell::Count(i.unmatched_starts)
        })
        .column("of these by loss", |(_, i, ())| {
            Cell::Count(i.unmatched_by_loss)
        })
        .column("ends without start", |(_, i, ())| {
            Cell::Count(i.unmatched_ends)
        })
        .column("end read before start", |(_, i, ())| {
            Cell::Count(i.negative)
        })
}

/// A value whose interval has a column of its own.
fn value(estimate: Option<&Estimate>) -> Cell<'_> {
    estimate.map_or(Cell::Nothing, |e| Cell::Figure(figure(e).value_and_unit()))
}

/// The interval of a value.
fn bounds(estimate: Option<&Estimate>) -> Cell<'_> {
    estimate.map_or(Cell::Nothing, |e| Cell::text(figure(e).interval()))
}
