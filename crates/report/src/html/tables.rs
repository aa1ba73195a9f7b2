//! The tables of the page.

use core::fmt::{Result, Write};

use undertick_document::figures;
use undertick_document::{IntervalReport, Report};
use undertick_units::Estimate;

use crate::columns::{self, rows};
use crate::escape::Text;
use crate::table::html::{duration, sortable, with_micro};
use crate::{remarks, table};

/// The table of estimates; each heading is a button that sorts.
pub(super) fn estimates(page: &mut String, report: &Report) -> Result {
    let level = figures::per_cent(report.settings.confidence);
    write!(
        page,
        "<section id=\"intervals\">\n<h2>Intervals</h2>\n<p class=\"hint\">In brackets: the {level} \
         interval, in the unit of its figure.</p>\n"
    )?;
    let scale = Scale::for_report(report);
    let bars = |row: &columns::Row<'_>| scale.bars(row.1);
    let rows = rows(report, |_| Some(()));
    let bars = Some((scale.heading(), &bars as _));
    table::html::write(page, &columns::estimates(), rows, true, bars)?;
    page.push_str(
        "<p class=\"hint legend\"><span class=\"key median\"></span>median \
         <span class=\"key mean\"></span>mean <span class=\"key p99\"></span>p99, each as wide as \
         its interval, on one logarithmic scale</p>\n</section>\n",
    );
    Ok(())
}

/// The logarithmic scale that all interval bars share.
struct Scale {
    /// Exponents of ten of the ends.
    from: i32,
    to: i32,
}

/// Width and height of a row of bars, in units of the drawing.
const BARS_WIDTH: f64 = 200.0;
const BARS_HEIGHT: f64 = 26.0;

impl Scale {
    fn for_report(report: &Report) -> Self {
        let values = report
            .intervals
            .iter()
            .flat_map(|i| bars_of(i).map(|(_, e)| e));
        let decades = values
            .flatten()
            .filter(|e| e.value > 0.0 && e.value.is_finite())
            .map(|e| e.value.log10());
        let (least, most) = decades.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), d| {
            (lo.min(d), hi.max(d))
        });
        if least > most {
            return Self { from: 0, to: 1 };
        }
        let from = (least - 0.05).floor() as i32;
        Self {
            from,
            to: ((most + 0.05).ceil() as i32).max(from + 1),
        }
    }

    fn x(&self, ns: f64) -> f64 {
        let share = (ns.log10() - f64::from(self.from)) / f64::from(self.to - self.from);
        (share * BARS_WIDTH).clamp(0.0, BARS_WIDTH)
    }

    fn heading(&self) -> String {
        format!(
            "<span>{}</span><span>{}</span>",
            end_of_scale(self.from),
            end_of_scale(self.to)
        )
    }

    fn bars(&self, interval: &IntervalReport) -> String {
        let mut svg = format!(
            "<svg viewBox=\"0 0 {BARS_WIDTH} {BARS_HEIGHT}\" preserveAspectRatio=\"none\" \
             aria-hidden=\"true\">"
        );
        svg.push_str("<path class=\"grid\" d=\"");
        for decade in self.from + 1..self.to {
            let x = self.x(10_f64.powi(decade));
            svg.push_str(&format!("M{x:.1} 0V{BARS_HEIGHT}"));
        }
        svg.push_str("\"/>");
        for (row, (class, estimate)) in bars_of(interval).into_iter().enumerate() {
            let Some(estimate) = estimate.filter(|e| e.value > 0.0) else {
                continue;
            };
            let bound = |bound: Option<f64>| bound.map_or(estimate.value, |b| b.max(1e-300));
            let (lo, hi) = (bound(estimate.interval.lo), bound(estimate.interval.hi));
            // Wide enough to be visible, however narrow the interval.
            let (mut x, mut end) = (self.x(lo), self.x(hi));
            if end - x < 3.0 {
                x = (self.x(estimate.value) - 1.5).clamp(0.0, BARS_WIDTH - 3.0);
                end = x + 3.0;
            }
            let y = 3.0 + 8.0 * row as f64;
            svg.push_str(&format!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"5\"/>",
                end - x
            ));
        }
        svg.push_str("</svg>");
        svg
    }
}

fn bars_of(interval: &IntervalReport) -> [(&'static str, Option<&Estimate>); 3] {
    [
        ("median", interval.median.as_ref()),
        ("mean", interval.mean.as_ref()),
        ("p99", interval.quantiles.get("0.99")),
    ]
}

/// `100 ns`: a power of ten with its unit, without digits that carry no information.
fn end_of_scale(decade: i32) -> String {
    if decade < 0 {
        return format!("1e{decade}\u{a0}ns");
    }
    let unit = ["ns", "µs", "ms", "s"][(decade / 3).min(3) as usize];
    let rest = decade - 3 * (decade / 3).min(3);
    if rest > 4 {
        return format!("1e{rest}\u{a0}{unit}");
    }
    format!("{}\u{a0}{unit}", 10_u64.pow(rest.unsigned_abs()))
}

/// How the time of the samples divides, where that is known.
pub(super) fn times(page: &mut String, report: &Report) -> Result {
    let known = rows(report, remarks::times);
    if known.is_empty() {
        return Ok(());
    }
    write!(
        page,
        "<section id=\"times\">\n<h2>Time</h2>\n<p class=\"hint\">{}</p>\n",
        remarks::TIMES_LEGEND
    )?;
    sortable(page, &columns::times(), known)?;
    writeln!(page, "</section>")
}

/// What was dropped and subtracted, with the figures before and after.
pub(super) fn dropped_and_subtracted(page: &mut String, report: &Report) -> Result {
    page.push_str("<section id=\"taken-out\">\n<h2>Before and after</h2>\n");
    let touched = rows(report, |i| {
        (remarks::is_cleaned(i) || i.compensation.cost.is_some()).then_some(())
    });
    if touched.is_empty() {
        page.push_str("<p>No sample was dropped, and no cost subtracted.</p>\n</section>\n");
        return Ok(());
    }
    page.push_str(
        "<p class=\"hint\">Samples were dropped on evidence, or the time of their \
         disturbances was subtracted, as was the cost of recording. All: with every matched sample and its disturbances; as read: \
         with nothing subtracted.</p>\n",
    );
    sortable(page, &columns::dropped_and_subtracted(), touched)?;
    writeln!(page, "</section>")
}

/// The causes in samples according to the kernel's own events; empty if there are no such events.
pub(super) fn evidence(page: &mut String, report: &Report) -> Result {
    let fell = rows(report, remarks::fell_into);
    if fell.is_empty() {
        return Ok(());
    }
    page.push_str(
        "<section id=\"evidence\">\n<h2>Evidence</h2>\n<p class=\"hint\">Disturbances \
         that the kernel reports. Their time is subtracted, or the sample is dropped; what the program \
         does itself stays.</p>\n",
    );
    sortable(page, &columns::evidence(), fell)?;
    writeln!(page, "</section>")
}

/// By how much the measuring points slowed the program, where that was measured.
pub(super) fn perturbation(page: &mut String, report: &Report) -> Result {
    writeln!(
        page,
        "<section id=\"perturbation\">\n<h2>Perturbation</h2>\n<p>{}.</p>",
        Text(&with_micro(&remarks::perturbation(&report.trace)))
    )?;
    let slowed = rows(report, |i| &i.slowed);
    if !slowed.is_empty() {
        page.push_str(
            "<p class=\"hint\">What lies inside was switched off and on at random while the program \
             ran. Nothing of this is subtracted.</p>\n",
        );
        sortable(page, &columns::slowed(), slowed)?;
    }
    writeln!(page, "</section>")
}

/// Events written, received and lost; starts and ends without a partner.
pub(super) fn losses(page: &mut String, report: &Report) -> Result {
    let trace = &report.trace;
    write!(
        page,
        "<section id=\"losses\">\n<h2>Losses</h2>\n<p>{} events written = {} received + {} lost.</p>\n",
        figures::count(trace.written),
        figures::count(trace.received),
        figures::count(trace.lost)
    )?;
    let causes: Vec<_> = trace.lost_by.iter().filter(|(_, n)| **n > 0).collect();
    if !causes.is_empty() {
        page.push_str("<dl class=\"facts\">\n");
        for (cause, n) in causes {
            writeln!(
                page,
                "<dt>{}</dt><dd>{}</dd>",
                Text(cause),
                figures::count(*n)
            )?;
        }
        page.push_str("</dl>\n");
    }
    let unmatched = rows(report, |i| {
        (i.unmatched > 0 || i.negative > 0).then_some(())
    });
    match unmatched.is_empty() {
        true => page.push_str("<p>Every start found its end.</p>\n"),
        false => sortable(page, &columns::unmatched(), unmatched)?,
    }
    writeln!(page, "</section>")
}

/// The clock behind every figure.
pub(super) fn clock(page: &mut String, report: &Report) -> Result {
    let clock = &report.trace.clock;
    page.push_str("<section id=\"clock\">\n<h2>Clock</h2>\n<dl class=\"facts\">\n");
    let facts = [
        ("Name", clock.name.clone()),
        (
            "Step (granularity)",
            format!(
                "{}, {}",
                duration(clock.granularity_ns),
                remarks::ticks(clock.granularity_ticks)
            ),
        ),
        ("Cost of a reading, median", remarks::read_cost(clock)),
        (
            "Length of a tick",
            format!("{:.6}\u{a0}ns", clock.ns_per_tick),
        ),
        (
            "Rate",
            format!(
                "{}, within {}; it scales every duration alike and is not part of the intervals",
                remarks::rate_source(&clock.rate_source),
                remarks::parts(clock.rate_error_ppb)
            ),
        ),
    ];
    for (name, fact) in facts {
        writeln!(page, "<dt>{name}</dt><dd>{}</dd>", Text(&fact))?;
    }
    page.push_str("</dl>\n</section>\n");
    Ok(())
}

/// How often events occurred.
pub(super) fn frequencies(page: &mut String, report: &Report) -> Result {
    page.push_str("<section id=\"frequencies\">\n<h2>Frequencies</h2>\n");
    sortable(page, &columns::frequencies(), &report.frequencies)?;
    writeln!(page, "</section>")
}
