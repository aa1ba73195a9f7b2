//! The page of `undertick interference`.

use core::fmt::Write;

use super::frame;
use crate::escape::Text;
use crate::interference::{Interference, RateHistogram, compared_in_words, losses, peaks, summary};
use crate::table::html::plain;

const OWN_STYLE: &str = ".rates { width: 100%; height: auto; display: block; }\n\
     .rates rect { fill: var(--accent, #36c); }\n\
     .rates line { stroke: currentColor; stroke-width: 1; opacity: .5; }\n\
     .rates text { fill: currentColor; font-size: 11px; }\n\
     .figures td.words { white-space: normal; text-align: left; }\n\
     .figures th.words { text-align: left; }\n";

/// The whole page.
#[must_use]
pub fn render(found: &Interference) -> String {
    let mut page = String::with_capacity(60_000);
    write_page(&mut page, found).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, found: &Interference) -> core::fmt::Result {
    frame::begin(page, "interference", &[OWN_STYLE])?;
    page.push_str(
        "<h1>Interference</h1>\n\
         <nav aria-label=\"Sections\"><a href=\"#peaks\">Peaks</a><a href=\"#rates\">Rates</a>\
         <a href=\"#losses\">Losses</a></nav>\n</header>\n<main>\n<ul class=\"summary\">\n",
    );
    for line in summary(found) {
        writeln!(page, "<li>{}</li>", Text(&line))?;
    }
    if let Some(compared) = &found.compared {
        writeln!(
            page,
            "<li>{}</li>",
            Text(&compared_in_words(compared, 10_000))
        )?;
    }
    for warning in &found.warnings {
        writeln!(page, "<li>{}</li>", Text(&warning.text))?;
    }
    page.push_str("</ul>\n");
    page.push_str("<section id=\"peaks\">\n<h2>Peaks</h2>\n");
    plain(page, &peaks(), &found.peaks)?;
    page.push_str("</section>\n");
    rates(page, &found.histogram)?;
    page.push_str("<section id=\"losses\">\n<h2>Losses</h2>\n");
    plain(page, &losses(found), &found.losses)?;
    page.push_str("</section>\n");
    let document = serde_json::to_string(found).unwrap_or_else(|_| "null".to_owned());
    frame::foot(page, found.schema_version, &document)
}

/// Time by rate on a logarithmic scale, so that a peak of half a percent is visible beside one of
/// 99.
fn rates(page: &mut String, histogram: &RateHistogram) -> core::fmt::Result {
    const WIDTH: f64 = 900.0;
    const HEIGHT: f64 = 260.0;
    const BOTTOM: f64 = 30.0;
    /// The lower end of the scale; its upper end is a share of 1.
    const LEAST: f64 = 1e-4;
    let all: f64 = histogram.seconds.iter().sum();
    let (Some(first), Some(last)) = (
        histogram.seconds.iter().position(|s| *s > 0.0),
        histogram.seconds.iter().rposition(|s| *s > 0.0),
    ) else {
        return Ok(());
    };
    let (from, to) = (
        histogram.edges[first].min(0.95),
        histogram.edges[last + 1].max(1.05),
    );
    let x = |rate: f64| 40.0 + (rate - from) / (to - from) * (WIDTH - 50.0);
    let y = |share: f64| {
        let height = (share.max(LEAST) / LEAST).log10() / (1.0 / LEAST).log10();
        (HEIGHT - BOTTOM) * (1.0 - height)
    };
    write!(
        page,
        "<section id=\"rates\">\n<h2>Rates</h2>\n<p class=\"hint\">Share of the time in each bin of the \
         rate, relative to the clean peak; the scale is logarithmic.</p>\n\
         <svg class=\"rates\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"histogram of rates\">\n"
    )?;
    for share in [1.0, 0.1, 0.01, 0.001] {
        let at = y(share);
        writeln!(
            page,
            "<line x1=\"40\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke-dasharray=\"2 4\"/>\
             <text x=\"0\" y=\"{:.1}\">{} %</text>",
            at.max(8.0) + 4.0,
            100.0 * share
        )?;
    }
    for bin in first..=last {
        let share = histogram.seconds[bin] / all;
        if share > LEAST {
            let (left, right) = (x(histogram.edges[bin]), x(histogram.edges[bin + 1]));
            writeln!(
                page,
                "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{:.3} to {:.3}: \
                 {:.3} % of the time, {} samples</title></rect>",
                y(share),
                (right - left - 0.5).max(0.5),
                HEIGHT - BOTTOM - y(share),
                histogram.edges[bin],
                histogram.edges[bin + 1],
                100.0 * share,
                histogram.counts[bin],
            )?;
        }
    }
    let step = if to - from > 0.6 { 0.2 } else { 0.05 };
    let mut tick = (from / step).ceil() * step;
    while tick <= to {
        writeln!(
            page,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{tick:.2}</text>",
            x(tick),
            HEIGHT - 10.0
        )?;
        tick += step;
    }
    page.push_str("</svg>\n</section>\n");
    Ok(())
}
