//! The tables of the page.

use core::fmt::{Display, Result, Write};

use undertick_document::figures::{self, figure};
use undertick_document::{IntervalReport, Report};
use undertick_units::Estimate;

use super::escape::Text;
use crate::remarks;

/// A figure's text as the page shows it, with a proper micro sign.
pub(super) fn shown(text: &str) -> String {
    text.replace("\u{a0}us", "\u{a0}µs")
}

/// A duration without an interval, as text.
pub(super) fn duration(ns: f64) -> String {
    shown(&figures::duration(ns))
}

/// A value above its interval, or a dash.
pub(super) fn estimate(estimate: Option<&Estimate>) -> String {
    estimate.map_or("–".to_owned(), |estimate| {
        let figure = figure(estimate);
        format!(
            "{} <span class=\"within\">{}</span>",
            Text(&shown(&figure.value_and_unit())),
            Text(&figure.interval())
        )
    })
}

/// A cell with the number it sorts by; a cell without a number sorts last.
pub(super) fn cell(
    page: &mut String,
    label: &str,
    sort: Option<f64>,
    content: impl Display,
) -> Result {
    let sort = sort.filter(|v| v.is_finite());
    let sort = sort.map_or(String::new(), |v| format!(" data-sort=\"{v}\""));
    write!(page, "<td data-label=\"{label}\"{sort}>{content}</td>")
}

/// Headings of columns that a reader may sort by.
pub(super) fn headings_of(
    page: &mut String,
    headings: impl IntoIterator<Item = impl Display>,
) -> Result {
    for heading in headings {
        write!(
            page,
            "<th scope=\"col\"><span class=\"sort\">{heading}</span></th>"
        )?;
    }
    Ok(())
}

pub(super) fn name_cell(page: &mut String, interval: &IntervalReport, index: usize) -> Result {
    write!(
        page,
        "<th scope=\"row\" data-label=\"interval\"><a class=\"name\" href=\"#i{index}\">{}</a>{}</th>",
        Text(name_or_blank(&interval.name)),
        belongs(interval)
    )
}

/// Where an interval of an experiment belongs; several may have the same name.
pub(super) fn belongs(interval: &IntervalReport) -> String {
    let text = interval.repeated.as_ref().map(crate::experiment::belongs);
    text.map_or(String::new(), |text| {
        format!("<br><span class=\"hint\">{}</span>", Text(&text))
    })
}

/// A name, or a blank for an empty one, which would leave a link without text.
pub(super) fn name_or_blank(name: &str) -> &str {
    match name.trim().is_empty() {
        true => "(no name)",
        false => name,
    }
}

/// The table of estimates; each heading is a button that sorts.
pub(super) fn estimates(page: &mut String, report: &Report) -> Result {
    let level = figures::per_cent(report.settings.confidence);
    write!(
        page,
        "<section id=\"intervals\">\n<h2>Intervals</h2>\n<p class=\"hint\">In brackets: the {level} \
         interval, in the unit of its figure.</p>\n<div class=\"wide\"><table class=\"figures sortable\">\n<thead><tr>"
    )?;
    let headings = ["interval", "n", "median", "mean", "p99", "max", "culled"];
    headings_of(page, headings)?;
    let scale = Scale::for_report(report);
    write!(
        page,
        "<th scope=\"col\" class=\"bars\">{}</th></tr></thead>\n<tbody>\n",
        scale.heading()
    )?;
    for (index, interval) in report.intervals.iter().enumerate() {
        write!(page, "<tr data-interval=\"{index}\">")?;
        name_cell(page, interval, index)?;
        let value = |e: Option<&Estimate>| e.map(|e| e.value);
        let p99 = interval.quantiles.get("0.99");
        let matched = interval.count.saturating_add(interval.culled.count);
        cell(
            page,
            "n",
            Some(interval.count as f64),
            Text(&remarks::count(interval)),
        )?;
        for (label, e) in [
            ("median", interval.median.as_ref()),
            ("mean", interval.mean.as_ref()),
            ("p99", p99),
        ] {
            cell(page, label, value(e), estimate(e))?;
        }
        let max = interval.max.map_or("–".to_owned(), duration);
        cell(page, "max", interval.max, max)?;
        let culled = match matched {
            0 => "–".to_owned(),
            _ => Text(&figures::per_cent(interval.culled.share)).to_string(),
        };
        cell(
            page,
            "culled",
            (matched > 0).then_some(interval.culled.share),
            culled,
        )?;
        writeln!(
            page,
            "<td class=\"bars\">{}</td></tr>",
            scale.bars(interval)
        )?;
    }
    page.push_str(
        "</tbody>\n</table></div>\n<p class=\"hint legend\"><span class=\"key median\"></span>median \
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
    let known = |i: &IntervalReport| remarks::times(i);
    if report.intervals.iter().all(|i| known(i).is_none()) {
        return Ok(());
    }
    write!(
        page,
        "<section id=\"times\">\n<h2>Time</h2>\n<p class=\"hint\">{}</p>\n<div class=\"wide\">\
         <table class=\"figures sortable\">\n<thead><tr>",
        remarks::TIMES_LEGEND
    )?;
    headings_of(page, ["interval"].into_iter().chain(remarks::TIMES))?;
    page.push_str("</tr></thead>\n<tbody>\n");
    for (index, interval) in report.intervals.iter().enumerate() {
        let Some(times) = known(interval) else {
            continue;
        };
        write!(page, "<tr data-interval=\"{index}\">")?;
        name_cell(page, interval, index)?;
        for (label, ns) in remarks::TIMES.into_iter().zip(times) {
            cell(page, label, Some(ns), duration(ns))?;
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
    Ok(())
}

/// What was dropped and subtracted, with the figures before and after.
pub(super) fn taken_out(page: &mut String, report: &Report) -> Result {
    page.push_str("<section id=\"taken-out\">\n<h2>Before and after</h2>\n");
    let touched: Vec<(usize, &IntervalReport)> = report
        .intervals
        .iter()
        .enumerate()
        .filter(|(_, i)| remarks::is_cleaned(i) || i.compensation.cost.is_some())
        .collect();
    if touched.is_empty() {
        page.push_str("<p>No sample was left out and no cost subtracted.</p>\n</section>\n");
        return Ok(());
    }
    page.push_str(
        "<p class=\"hint\">Samples left out on evidence or less what disturbed them, and what \
         recording itself cost. All: with every matched sample and its disturbances; as read: \
         with nothing subtracted.</p>\n<div class=\"wide\"><table class=\"figures sortable\">\n<thead><tr>",
    );
    headings_of(
        page,
        [
            "interval",
            "left out",
            "because",
            "median, all",
            "median, as read",
            "median",
            "mean, all",
            "mean, as read",
            "mean",
            "cost subtracted",
        ],
    )?;
    page.push_str("</tr></thead>\n<tbody>\n");
    for (index, interval) in touched {
        write!(page, "<tr data-interval=\"{index}\">")?;
        name_cell(page, interval, index)?;
        let culled = &interval.culled;
        let share = format!(
            "{} <span class=\"within\">{}</span><span class=\"share\"><i style=\"width:{:.2}%\"></i></span>",
            figures::short_count(culled.count),
            Text(&figures::per_cent(culled.share)),
            (culled.share * 100.0).clamp(0.0, 100.0)
        );
        cell(page, "left out", Some(culled.share), share)?;
        cell(
            page,
            "because",
            None,
            Text(&remarks::causes(interval).join(", ")),
        )?;
        let before = match remarks::is_cleaned(interval) {
            false => (None, None),
            true => (
                interval.before_culling.median.as_ref(),
                interval.before_culling.mean.as_ref(),
            ),
        };
        let as_read = interval.compensation.cost.as_ref();
        let as_read = as_read.map(|_| &interval.uncompensated);
        for (label, e) in [
            ("median, all", before.0),
            ("median, as read", as_read.and_then(|a| a.median.as_ref())),
            ("median", interval.median.as_ref()),
            ("mean, all", before.1),
            ("mean, as read", as_read.and_then(|a| a.mean.as_ref())),
            ("mean", interval.mean.as_ref()),
            ("cost subtracted", interval.compensation.cost.as_ref()),
        ] {
            cell(page, label, e.map(|e| e.value), estimate(e))?;
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
    Ok(())
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
    let unmatched: Vec<(usize, &IntervalReport)> = report
        .intervals
        .iter()
        .enumerate()
        .filter(|(_, i)| i.unmatched > 0 || i.negative > 0)
        .collect();
    if unmatched.is_empty() {
        page.push_str("<p>Every start found its end.</p>\n</section>\n");
        return Ok(());
    }
    page.push_str("<div class=\"wide\"><table class=\"figures sortable\">\n<thead><tr>");
    let headings = [
        "interval",
        "starts without end",
        "of these by loss",
        "ends without start",
        "end read before start",
    ];
    headings_of(page, headings)?;
    page.push_str("</tr></thead>\n<tbody>\n");
    for (index, i) in unmatched {
        write!(page, "<tr data-interval=\"{index}\">")?;
        name_cell(page, i, index)?;
        let counts = [
            i.unmatched_starts,
            i.unmatched_by_loss,
            i.unmatched_ends,
            i.negative,
        ];
        for (heading, n) in headings[1..].iter().zip(counts) {
            cell(page, heading, Some(n as f64), figures::count(n))?;
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
    Ok(())
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
    page.push_str(
        "<section id=\"frequencies\">\n<h2>Frequencies</h2>\n<div class=\"wide\"><table class=\"figures sortable\">\n\
         <thead><tr>",
    );
    headings_of(page, ["event", "count", "per second", "share"])?;
    page.push_str("</tr></thead>\n<tbody>\n");
    for frequency in &report.frequencies {
        let name = Text(name_or_blank(&frequency.name));
        write!(
            page,
            "<tr><th scope=\"row\" data-label=\"event\"><span class=\"name\">{name}</span></th>"
        )?;
        let rate = frequency.per_second.as_ref();
        cell(
            page,
            "count",
            Some(frequency.count as f64),
            figures::count(frequency.count),
        )?;
        cell(page, "per second", rate.map(|e| e.value), estimate(rate))?;
        let share = frequency.share_of.as_ref();
        let text = share.map_or(String::new(), |share| {
            let of = Text(name_or_blank(&share.of));
            format!(
                "{} of <span class=\"name\">{of}</span>",
                estimate(share.share.as_ref())
            )
        });
        let value = share.and_then(|s| s.share.as_ref()).map(|e| e.value);
        cell(page, "share", value, text)?;
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
    Ok(())
}
