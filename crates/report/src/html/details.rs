//! One panel per interval: its distribution and the figures that do not fit in the table.

use core::fmt::{Result, Write};
use undertick_document::{IntervalKind, IntervalReport, Reads, Report, figures};

use crate::escape::Text;
use crate::remarks;
use crate::table::html::{belongs, duration, estimate, name_or_blank, with_micro};

/// Medians below this number of clock steps are shown in steps too: a step is then more than a per
/// cent of the figure.
const COARSE_STEPS: f64 = 100.0;

pub(super) fn write(page: &mut String, report: &Report) -> Result {
    page.push_str(
        "<section id=\"distributions\">\n<h2>Distributions</h2>\n\
         <div class=\"scales\" id=\"scales\" hidden>\n\
         <fieldset><legend>Durations</legend>\
         <label><input type=\"radio\" name=\"x\" value=\"log\" checked> logarithmic</label>\
         <label><input type=\"radio\" name=\"x\" value=\"linear\"> linear</label></fieldset>\n\
         <fieldset><legend>Heights</legend>\
         <label><input type=\"radio\" name=\"y\" value=\"linear\" checked> linear</label>\
         <label><input type=\"radio\" name=\"y\" value=\"log\"> logarithmic</label></fieldset>\n\
         <fieldset><legend>Before</legend>\
         <label><input type=\"checkbox\" name=\"before\"> outlines: with what was dropped \
         (dashed), with nothing subtracted (grey)</label></fieldset>\n\
         <p class=\"hint legend\"><span class=\"stroke median\"></span>median \
         <span class=\"stroke mean\"></span>mean <span class=\"stroke p99\"></span>p99; shaded: \
         the intervals of median and mean; triangles: modes, where there are several. Drag to count a range.</p>\n</div>\n<div class=\"panels\">\n",
    );
    for (index, interval) in report.intervals.iter().enumerate() {
        panel(page, interval, index)?;
    }
    page.push_str("</div>\n</section>\n");
    Ok(())
}

fn panel(page: &mut String, interval: &IntervalReport, index: usize) -> Result {
    write!(
        page,
        "<article class=\"panel\" id=\"i{index}\" data-interval=\"{index}\">\n\
         <h3 class=\"name\">{}{}</h3>\n\
         <p class=\"hint\">{}, {}; {}</p>\n\
         <div class=\"chart\" data-chart=\"{index}\"></div>\n<dl class=\"facts\">\n",
        Text(name_or_blank(&interval.name)),
        belongs(interval),
        kind(interval.kind),
        reads(interval.reads),
        remarks::number_of(interval.count, "sample"),
    )?;
    let mut fact = |name: &str, content: String| -> Result {
        writeln!(page, "<dt>{}</dt><dd>{content}</dd>", Text(name))
    };
    if let Some(modes) = remarks::modes(interval) {
        fact("modes", Text(&with_micro(&modes)).to_string())?;
    }
    fact("mean", estimate(interval.mean.as_ref()))?;
    fact("median", estimate(interval.median.as_ref()))?;
    for (key, quantile) in &interval.quantiles {
        fact(&remarks::quantile_name(key), estimate(Some(quantile)))?;
    }
    if let Some(own) = &interval.of_this_run {
        fact("mean of this run itself", estimate(own.mean.as_ref()))?;
        fact("median of this run itself", estimate(own.median.as_ref()))?;
    }
    for (name, value) in [
        ("min", interval.statistics.min),
        ("max", interval.statistics.max),
        ("standard deviation", interval.statistics.sd),
    ] {
        if let Some(value) = value {
            fact(name, duration(value))?;
        }
    }
    match &interval.sampled {
        Some(sampled) => {
            fact("sampled", Text(&remarks::sampling(sampled)).to_string())?;
            fact("total of all executions", estimate(sampled.total.as_ref()))?;
        }
        None => {
            if let Some(total_ns) = interval.total_ns.filter(|_| interval.count > 0) {
                fact("total", duration(total_ns))?;
            }
        }
    }
    if let Some(slowed) = remarks::slowed(interval) {
        let words = Text(&with_micro(&slowed)).to_string();
        fact("slowed", format!("by {words}"))?;
    }
    if let Some(share) = &interval.share_of {
        let of = Text(name_or_blank(&share.of)).to_string();
        fact(
            "share",
            format!("{} of {of}", estimate(share.share.as_ref())),
        )?;
    }
    if let Some(cost) = &interval.compensation.cost {
        let text = format!(
            "{}, {}, n\u{a0}=\u{a0}{}",
            estimate(Some(cost)),
            Text(&cost.method),
            figures::count(cost.n)
        );
        fact("cost subtracted", text)?;
        let bare = interval.uncompensated.median.as_ref();
        fact("median without that", estimate(bare))?;
    }
    if let Some(k) = &interval.compensation.k {
        fact("variance ratio k", estimate(Some(k)))?;
    }
    // Only if the clock's step is visible in the figures.
    if let Some(steps) = interval.median_steps.filter(|s| *s < COARSE_STEPS) {
        fact("median in steps of the clock", format!("{steps:.1}"))?;
    }
    page.push_str("</dl>\n</article>\n");
    Ok(())
}

const fn kind(kind: IntervalKind) -> &'static str {
    match kind {
        IntervalKind::Nested => "begin to end, in one thread",
        IntervalKind::Stage => "stage between two points",
        IntervalKind::Pair => "two successive readings: the cost of a reading",
        IntervalKind::Period => "from one event to the next of its kind",
        IntervalKind::Key => "start to end with the same payload, in one thread",
        IntervalKind::Message => "start to end with the same payload, across threads",
    }
}

const fn reads(reads: Reads) -> &'static str {
    match reads {
        Reads::Plain => "plain readings",
        Reads::Unordered => "readings that wait for nothing: edges not ordered",
        Reads::Ordered => "serialised readings",
        Reads::Mixed => "plain and serialised readings",
    }
}
