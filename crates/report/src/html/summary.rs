//! The page in plain words: what was found, the caveats, and how to read it.

use core::fmt::{Result, Write};
use undertick_document::chapters::{self, Chapter};
use undertick_document::figures::{self, figure};
use undertick_document::{IntervalReport, Report};

use crate::escape::Text;
use crate::remarks::{self, number_of};
use crate::table::html::with_micro;
use crate::text::clean;

/// The book's address in the repository.
const BOOK: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/book");

pub(super) fn write(page: &mut String, report: &Report) -> Result {
    page.push_str("<section id=\"summary\">\n<h2>Summary</h2>\n<ul class=\"summary\">\n");
    let sentences = [
        (complete(report), completeness(report)),
        ("Where the time goes", largest(report)),
        (dropped(report), culling(report)),
        (fine_enough(report), clock(report)),
        (
            known_effect(report),
            remarks::perturbation(&report.trace) + ".",
        ),
    ];
    for (verdict, sentence) in sentences.iter().filter(|(_, s)| !s.is_empty()) {
        writeln!(
            page,
            "<li><b>{verdict}.</b> {}</li>",
            Text(&with_micro(sentence))
        )?;
    }
    page.push_str("</ul>\n");
    if !report.warnings.is_empty() {
        page.push_str("<h3>Warnings</h3>\n<ul class=\"warnings\">\n");
        for warning in &report.warnings {
            writeln!(
                page,
                "<li>{} <span class=\"code\">{}</span>{}</li>",
                Text(&warning.text),
                Text(&warning.code),
                chapter(&warning.code)
            )?;
        }
        page.push_str("</ul>\n");
    }
    writeln!(page, "</section>")
}

/// A link to the chapter that explains a warning's code; empty for an unknown code.
fn chapter(code: &str) -> String {
    let Some(Chapter { file, title }) = chapters::for_code(code) else {
        return String::new();
    };
    format!(
        " <span class=\"chapter\">See <a href=\"{BOOK}/{file}\">{title}</a>, \
         <code>docs/book/{file}</code>.</span>"
    )
}

const fn complete(report: &Report) -> &'static str {
    match report.trace.lost {
        0 => "Complete",
        _ => "Not complete",
    }
}

fn dropped(report: &Report) -> &'static str {
    match report.intervals.iter().any(|i| i.culled.count > 0) {
        true => "Some disturbed samples were dropped",
        false => "All samples were kept",
    }
}

/// Medians below this number of clock steps are not the figure to use.
const FEW_STEPS: f64 = 20.0;

fn fine_enough(report: &Report) -> &'static str {
    let coarse = |i: &IntervalReport| i.median_steps.is_some_and(|s| s.abs() < FEW_STEPS);
    match report.intervals.iter().any(coarse) {
        true => "The clock is coarse for the shortest intervals: use their means",
        false => "The clock is fine enough",
    }
}

const fn known_effect(report: &Report) -> &'static str {
    match report.trace.perturbation {
        Some(_) => "What measuring did to the program is known",
        None => "What measuring did to the program is not known",
    }
}

fn completeness(report: &Report) -> String {
    let trace = &report.trace;
    let span = trace.events_span_ns.map_or(String::new(), |ns| {
        format!(" over {}", figures::duration(ns))
    });
    let lost = match trace.lost {
        0 => "None was lost.".to_owned(),
        lost => format!(
            "{} were lost, {} of those written.",
            figures::count(lost),
            figures::per_cent(lost as f64 / trace.written.max(1) as f64)
        ),
    };
    format!(
        "{} from {} in {}{span}. {lost}",
        number_of(trace.events, "event"),
        number_of(trace.threads, "thread"),
        number_of(trace.processes, "process"),
    )
}

fn largest(report: &Report) -> String {
    // What lies between single events says nothing of where a program spends its time.
    let has_spans = (report.intervals.iter()).any(|of| of.kind.is_span());
    let largest = (report.intervals.iter())
        .filter(|interval| interval.count > 0 && (interval.kind.is_span() || !has_spans))
        .filter_map(|interval| Some((interval.total_ns?, interval)))
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    let Some((total_ns, interval)) = largest else {
        return "Nothing in the trace has a start and an end.".to_owned();
    };
    let median = interval.median.as_ref().map_or(String::new(), |median| {
        let figure = figure(median);
        let interval = match (median.interval.lo, median.interval.hi) {
            (None, None) => " of this recording; of another one it is not known".to_owned(),
            _ => format!(
                ", {} interval {}",
                figures::per_cent(median.level),
                figure.interval()
            ),
        };
        format!("; one takes {} (median{interval})", figure.value_and_unit())
    });
    let p99 = interval.quantiles.get("0.99").map_or(String::new(), |p99| {
        format!(
            ", 1 in 100 takes more than {}",
            figure(p99).value_and_unit()
        )
    });
    let others = match (report.intervals.len(), has_spans) {
        (1, _) => String::new(),
        (_, true) => " No span has a larger total.".to_owned(),
        (n, false) => format!(" Of {n} intervals, it has the largest total."),
    };
    format!(
        "{}: {} in {}{median}{p99}.{others}",
        clean(&interval.name),
        figures::duration(total_ns),
        number_of(interval.count, "sample"),
    )
}

fn culling(report: &Report) -> String {
    let sum = |of: fn(&IntervalReport) -> u64| {
        report
            .intervals
            .iter()
            .map(of)
            .fold(0_u64, u64::saturating_add)
    };
    let culled = sum(|i| i.culled.count);
    let matched = culled.saturating_add(sum(|i| i.count));
    if matched == 0 {
        return String::new();
    }
    if culled == 0 {
        return "No sample was dropped.".to_owned();
    }
    format!(
        "{} of {} samples ({}) were dropped; the figures before and after stand under Before and after.",
        figures::count(culled),
        figures::count(matched),
        figures::per_cent(culled as f64 / matched as f64)
    )
}

fn clock(report: &Report) -> String {
    let clock = &report.trace.clock;
    let compensated = report
        .intervals
        .iter()
        .filter(|i| i.compensation.cost.is_some())
        .count();
    let subtracted = match compensated {
        0 => "Nothing was subtracted for the recording itself.".to_owned(),
        n => format!(
            "The cost of recording was subtracted from {n} of {}.",
            number_of(report.intervals.len() as u64, "interval")
        ),
    };
    format!(
        "The clock, {}, moves {} at a time; cost of a reading: {}. {subtracted}",
        clean(&clock.name),
        figures::duration(clock.granularity_ns),
        remarks::read_cost(clock),
    )
}

/// The notes of the analysis on single intervals.
pub(super) fn notes(page: &mut String, report: &Report) -> Result {
    let notes = remarks::notes(report);
    if notes.is_empty() {
        return Ok(());
    }
    page.push_str("<section id=\"notes\">\n<h2>Notes</h2>\n<ul>\n");
    for note in notes {
        writeln!(
            page,
            "<li><b class=\"name\">{}</b>: {}</li>",
            Text(&note.about(8)),
            Text(&note.text)
        )?;
    }
    page.push_str("</ul>\n</section>\n");
    Ok(())
}

/// How the figures were made and what they mean.
pub(super) fn methods(page: &mut String, report: &Report) -> Result {
    let (mean, quantiles) = remarks::methods(report);
    let level = figures::per_cent(report.settings.confidence);
    writeln!(
        page,
        "<section id=\"methods\">\n<h2>Methods</h2>\n<dl class=\"facts\">\n\
         <dt>Settings</dt><dd>{}</dd>\n\
         <dt>Intervals</dt><dd>Behind each figure stands its {level} interval, {}: if the \
         measurement were repeated many times, this share of the intervals would hold the true value. \
         A ? is a bound that the data cannot give.</dd>\n\
         <dt>Mean</dt><dd>{}</dd>\n<dt>Median and quantiles</dt><dd>{}</dd>\n\
         <dt>Digits</dt><dd>Only those that the interval supports; bounds are rounded \
         outwards.</dd>\n\
         <dt>Dropped</dt><dd>A sample is dropped on evidence only; the cause is given with the \
         share, and the figures before and after.</dd>\n</dl>\n</section>",
        Text(&remarks::treatment(report)),
        Text(&remarks::scope(report)),
        Text(&mean),
        Text(&quantiles),
    )
}
