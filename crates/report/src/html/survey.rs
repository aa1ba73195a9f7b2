//! The page of a survey: a table for each group, every figure with its interval drawn.

use core::fmt::{Result, Write};
use undertick_document::figures;

use super::frame;
use crate::escape::Text;
use crate::remarks::unix_date;
use crate::survey::{Metric, Survey, columns, machine};
use crate::table::Cell;
use crate::table::html::plain;

/// The whole page.
#[must_use]
pub fn render(survey: &Survey) -> String {
    let mut page = String::with_capacity(100_000);
    write_page(&mut page, survey).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, survey: &Survey) -> Result {
    let mut sections: Vec<(String, String)> = (survey.groups().into_iter().enumerate())
        .map(|(i, (_, title))| (format!("g{i}"), title.to_owned()))
        .collect();
    if !survey.missing.is_empty() {
        sections.push(("missing".to_owned(), "Not measured".to_owned()));
    }
    sections.push(("methods".to_owned(), "Methods".to_owned()));
    let line = format!(
        "{}, {}, {:.0} s",
        machine(&survey.host),
        unix_date((survey.begun_unix_s * 1e9) as i64),
        survey.took_s
    );
    frame::head(
        page,
        &format!("Survey of {}", survey.host.name),
        &line,
        &sections,
    )?;
    if survey.interrupted {
        page.push_str("<ul class=\"warnings\"><li>Interrupted: this is what was complete by then.</li></ul>\n");
    }
    for (i, (group, title)) in survey.groups().into_iter().enumerate() {
        write!(page, "<section id=\"g{i}\">\n<h2>{}</h2>\n", Text(title))?;
        let metrics: Vec<&Metric> = survey.group(group).collect();
        let drawn = |m| Cell::Drawing(plot(m, &Axis::for_metric(m, &metrics)));
        let columns = columns(&metrics).page("", drawn);
        plain(page, &columns, metrics.iter().copied())?;
        page.push_str("</section>\n");
    }
    let missing: Vec<String> = (survey.missing.iter())
        .map(|m| format!("{}: {}", m.id, m.why))
        .collect();
    frame::list(page, "missing", "Not measured", "missing", &missing)?;
    let warnings: Vec<String> = survey.warnings.iter().map(|w| w.text.clone()).collect();
    frame::list(page, "warnings", "Warnings", "warnings", &warnings)?;
    methods(page, survey)?;
    let document = serde_json::to_string(survey).unwrap_or_else(|_| "null".to_owned());
    frame::foot(page, survey.schema_version, &document)
}

/// The axis of the metrics of one unit in a group; logarithmic where all are above 0.
struct Axis {
    lo: f64,
    hi: f64,
    is_log: bool,
}

/// Width of a drawing, in its own units.
const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 20.0;
/// Margin that is left free at both sides.
const MARGIN: f64 = 4.0;

impl Axis {
    fn for_metric(metric: &Metric, metrics: &[&Metric]) -> Self {
        let ends = (metrics.iter())
            .filter(|m| m.estimate.unit == metric.estimate.unit)
            .flat_map(|m| {
                let e = &m.estimate;
                [Some(e.value), e.interval.lo, e.interval.hi]
            })
            .flatten();
        let ends: Vec<f64> = ends.filter(|x| x.is_finite()).collect();
        let lo = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Speeds are close to each other; times differ by decades.
        let is_log = lo > 0.0 && hi > 4.0 * lo;
        Self { lo, hi, is_log }
    }

    fn x(&self, value: f64) -> f64 {
        let share = match self.is_log {
            true => (value / self.lo).ln() / (self.hi / self.lo).ln(),
            false => (value - self.lo) / (self.hi - self.lo),
        };
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.5
        };
        MARGIN + share * (WIDTH - 2.0 * MARGIN)
    }

    /// Grid lines at powers of ten.
    fn grid(&self) -> Vec<f64> {
        if !self.is_log {
            return Vec::new();
        }
        let (from, to) = (
            self.lo.log10().ceil() as i32,
            self.hi.log10().floor() as i32,
        );
        (from..=to.min(from + 20))
            .map(|power| self.x(10_f64.powi(power)))
            .collect()
    }
}

fn plot(metric: &Metric, axis: &Axis) -> String {
    let estimate = &metric.estimate;
    let x = |value: Option<f64>, other: f64| value.map_or(other, |value| axis.x(value));
    let (lo, hi) = (x(estimate.interval.lo, 0.0), x(estimate.interval.hi, WIDTH));
    let grid: String = (axis.grid().iter())
        .map(|x| format!("<path class=\"grid\" d=\"M{x:.1} 0V{HEIGHT}\"/>"))
        .collect();
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{grid}\
         <path class=\"whisker\" d=\"M{lo:.1} 10H{hi:.1}\"/><rect class=\"dot\" x=\"{:.1}\" y=\"4\" width=\"2.4\" height=\"12\"/></svg>",
        axis.x(estimate.value) - 1.2,
    )
}

fn methods(page: &mut String, survey: &Survey) -> Result {
    let level = figures::per_cent(survey.confidence);
    writeln!(
        page,
        "<section id=\"methods\">\n<h2>Methods</h2>\n<dl class=\"facts\">\n\
         <dt>Intervals</dt><dd>{level} intervals from the scatter between repetitions, each in processes of its \
         own, all spread over the survey. What changes more slowly than the survey lasts is not in them.</dd>\n\
         <dt>Clocks</dt><dd>Their intervals are bounds: the truth lies inside.</dd>\n\
         <dt>Once a second</dt><dd>What is exceeded once a second on average.</dd>\n\
         <dt>Drawings</dt><dd>One axis for all figures of a unit in a group, in logarithms where they are far \
         apart, with a line at each power of ten.</dd>\n</dl>\n</section>"
    )
}
