//! Figures as drawings in the page.

use core::fmt::Write;

use crate::escape::Text;
use crate::plot::{Axis, Curve, Plot, Point, Style};

/// Colours of curves, as many as can be distinguished; further curves have different strokes.
pub(super) const PLOT_STYLE: &str = "\
figure.plot { margin: 0 0 1.5rem; }
figure.plot svg { width: 100%; max-width: 60rem; height: auto; display: block; background: var(--panel); border: 1px solid var(--line); }
figure.plot .grid { stroke: var(--faint); stroke-width: 1; }
figure.plot .axis { stroke: var(--quiet); stroke-width: 1; }
figure.plot text { fill: var(--quiet); font: 12px sans-serif; }
figure.plot .curve { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
figure.plot .legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; margin: 0.4rem 0 0; padding: 0; list-style: none; font-size: 0.9rem; }
figure.plot .legend svg { display: inline-block; width: 28px; height: 12px; border: 0; background: none; margin-right: 0.35rem; }
.c0 { --c: #1a5fb4; } .c1 { --c: #c64600; } .c2 { --c: #26803a; } .c3 { --c: #8a3ab9; } .c4 { --c: #8f6a00; } .c5 { --c: #00777d; }
@media (prefers-color-scheme: dark) { .c0 { --c: #78aeed; } .c1 { --c: #ff9a57; } .c2 { --c: #6ccf82; } .c3 { --c: #c79bee; } .c4 { --c: #e2bf4d; } .c5 { --c: #56cfd6; } }
.c0, .c1, .c2, .c3, .c4, .c5 { stroke: var(--c); }
.dot { fill: var(--c); stroke: none; }
.ring { fill: var(--panel); stroke: var(--c); stroke-width: 1.6; }
.bar { stroke: var(--c); stroke-width: 1; opacity: 0.6; }
";

const COLOURS: usize = 6;
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 340.0;
/// Left, right, top and bottom margins of the drawing.
const BORDERS: [f64; 4] = [72.0, 16.0, 14.0, 46.0];
/// Approximate number of ticks on an axis.
const TICKS: f64 = 6.0;

/// The figure and its heading, in a section with that id.
pub(super) fn plot(page: &mut String, id: &str, plot: &Plot) -> core::fmt::Result {
    writeln!(
        page,
        "<section id=\"{id}\">\n<h2>{}</h2>",
        Text(&plot.title)
    )?;
    for text in &plot.text {
        writeln!(page, "<p class=\"hint\">{}</p>", Text(text))?;
    }
    let points = || plot.curves.iter().flat_map(|curve| &curve.points);
    let x = Scale::for_axis(
        &plot.x,
        points().map(|p| p.x),
        [BORDERS[0], WIDTH - BORDERS[1]],
    );
    let ys = points().flat_map(|p| [p.y].into_iter().chain(p.within.into_iter().flatten()));
    let y = Scale::for_axis(&plot.y, ys, [HEIGHT - BORDERS[3], BORDERS[2]]);
    let (Some(x), Some(y)) = (x, y) else {
        page.push_str("<p>There is nothing to draw.</p>\n</section>\n");
        return Ok(());
    };
    writeln!(
        page,
        "<figure class=\"plot\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        Text(&plot.title)
    )?;
    axes(page, plot, &x, &y)?;
    let colours = colours(&plot.curves);
    for (curve, &index) in plot.curves.iter().zip(&colours) {
        drawn(page, index, curve, &x, &y)?;
    }
    page.push_str("</svg>\n<ul class=\"legend\">");
    for (curve, &index) in plot.curves.iter().zip(&colours) {
        write!(page, "<li><svg viewBox=\"0 0 28 12\" aria-hidden=\"true\">")?;
        let class = class(index);
        match curve.style {
            Style::Dots => write!(
                page,
                "<circle class=\"dot {class}\" cx=\"14\" cy=\"6\" r=\"3\"/>"
            )?,
            Style::Published => {
                write!(
                    page,
                    "<circle class=\"ring {class}\" cx=\"14\" cy=\"6\" r=\"4\"/>"
                )?;
            }
            Style::Line | Style::Steps => write!(
                page,
                "<path class=\"curve {class}\"{} d=\"M1 6H27\"/>",
                dashes(index)
            )?,
        }
        write!(page, "</svg>{}</li>", Text(&curve.name))?;
    }
    page.push_str("</ul></figure>\n</section>\n");
    Ok(())
}

/// Each curve's colour, by number; a published curve, or one that says so, has the colour of the curve
/// before it.
fn colours(curves: &[Curve]) -> Vec<usize> {
    let mut next = 0;
    curves
        .iter()
        .map(|curve| {
            let is_of_previous = curve.style == Style::Published || curve.is_of_previous;
            next += usize::from(!is_of_previous || next == 0);
            next - 1
        })
        .collect()
}

fn class(index: usize) -> String {
    format!("c{}", index % COLOURS)
}

fn dashes(index: usize) -> &'static str {
    match index / COLOURS % 3 {
        0 => "",
        1 => " stroke-dasharray=\"6 3\"",
        _ => " stroke-dasharray=\"2 3\"",
    }
}

fn axes(page: &mut String, plot: &Plot, x: &Scale, y: &Scale) -> core::fmt::Result {
    let [left, right] = [BORDERS[0], WIDTH - BORDERS[1]];
    let [top, bottom] = [BORDERS[2], HEIGHT - BORDERS[3]];
    for (at, label) in x.ticks() {
        writeln!(
            page,
            "<path class=\"grid\" d=\"M{at:.1} {top}V{bottom}\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{label}</text>",
            bottom + 16.0
        )?;
    }
    for (at, label) in y.ticks() {
        writeln!(
            page,
            "<path class=\"grid\" d=\"M{left} {at:.1}H{right}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{label}</text>",
            left - 6.0,
            at + 4.0
        )?;
    }
    writeln!(
        page,
        "<path class=\"axis\" fill=\"none\" d=\"M{left} {top}V{bottom}H{right}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(left, right),
        HEIGHT - 8.0,
        Text(&plot.x.label()),
        f64::midpoint(top, bottom),
        Text(&plot.y.label()),
    )
}

fn drawn(
    page: &mut String,
    index: usize,
    curve: &Curve,
    x: &Scale,
    y: &Scale,
) -> core::fmt::Result {
    let class = class(index);
    let place = |p: &Point| Some((x.place(p.x)?, y.place(p.y)?));
    match curve.style {
        Style::Line | Style::Steps => {
            let mut path = String::new();
            let mut last = None;
            for (x, y) in curve.points.iter().filter_map(place) {
                match (last.is_some(), curve.style) {
                    (false, _) => write!(path, "M{x:.1} {y:.1}")?,
                    (true, Style::Steps) => write!(path, "H{x:.1}V{y:.1}")?,
                    (true, _) => write!(path, "L{x:.1} {y:.1}")?,
                }
                last = Some((x, y));
            }
            let dashes = dashes(index);
            writeln!(page, "<path class=\"curve {class}\"{dashes} d=\"{path}\"/>")?;
        }
        Style::Dots | Style::Published => {
            let (kind, radius) = match curve.style {
                Style::Dots => ("dot", 2.2),
                _ => ("ring", 4.5),
            };
            for (x, y) in curve.points.iter().filter_map(place) {
                writeln!(
                    page,
                    "<circle class=\"{kind} {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>"
                )?;
            }
        }
    }
    for point in &curve.points {
        let Some([lo, hi]) = point.within else {
            continue;
        };
        if let (Some(at), Some(lo), Some(hi)) = (x.place(point.x), y.place(lo), y.place(hi)) {
            writeln!(
                page,
                "<path class=\"bar {class}\" d=\"M{at:.1} {lo:.1}V{hi:.1}\"/>"
            )?;
        }
    }
    Ok(())
}

/// The scale that maps values to positions.
struct Scale {
    log: bool,
    /// Minimum and maximum of the values drawn; their logarithms on a logarithmic axis.
    from: f64,
    to: f64,
    places: [f64; 2],
}

impl Scale {
    /// The scale of an axis; `None` where there is no value to be drawn.
    fn for_axis(axis: &Axis, values: impl Iterator<Item = f64>, places: [f64; 2]) -> Option<Self> {
        let usable = values
            .filter(|v| v.is_finite() && (!axis.log || *v > 0.0))
            .map(|v| if axis.log { v.log10() } else { v });
        let range = usable.fold(None, |range: Option<(f64, f64)>, v| {
            let (lo, hi) = range.unwrap_or((v, v));
            Some((lo.min(v), hi.max(v)))
        });
        let (mut from, mut to) = range?;
        if from == to {
            let around = if axis.log {
                0.3
            } else {
                (0.1 * from.abs()).max(0.5)
            };
            (from, to) = (from - around, to + around);
        }
        // Start at zero, unless that compresses the values too much.
        if !axis.log && from > 0.0 && from < 0.4 * to {
            from = 0.0;
        }
        let room = 0.02 * (to - from);
        let from = if from == 0.0 { 0.0 } else { from - room };
        Some(Self {
            log: axis.log,
            from,
            to: to + room,
            places,
        })
    }

    fn place(&self, value: f64) -> Option<f64> {
        let value = match self.log {
            true if value <= 0.0 => return None,
            true => value.log10(),
            false => value,
        };
        let share = (value - self.from) / (self.to - self.from);
        let [from, to] = self.places;
        share
            .is_finite()
            .then(|| from + share.clamp(0.0, 1.0) * (to - from))
    }

    /// Positions and labels of the ticks.
    fn ticks(&self) -> Vec<(f64, String)> {
        let span = self.to - self.from;
        let step = match self.log {
            true => (span / TICKS).ceil().max(1.0),
            false => {
                let rough = span / TICKS;
                let power = 10_f64.powf(rough.log10().floor());
                let factor = [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .find(|f| f * power >= rough);
                factor.unwrap_or(10.0) * power
            }
        };
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step).floor() as i64;
        (first..=last)
            .take(40)
            .map(|i| {
                let at = i as f64 * step;
                let value = if self.log { 10_f64.powf(at) } else { at };
                let place =
                    self.places[0] + (at - self.from) / span * (self.places[1] - self.places[0]);
                (place, number(value))
            })
            .collect()
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if !(1e-3..1e6).contains(&v) => format!("{value:.0e}"),
        v if v >= 100.0 || value == value.round() => format!("{value:.0}"),
        _ => {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
