//! What tells the calls of a path apart: a sentence for each path, and the distribution of each of its
//! states, one below the other on one axis.

use core::fmt::{Result, Write};

use undertick_document::{PathStates, Report, StateReport};

use crate::escape::Text;
use crate::findings;
use crate::states::{conditions, share};
use crate::table::html::{self as table, with_micro};
use crate::table::{Cell, Columns};

/// Width and height of a distribution, in units of the drawing.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 40.0;
/// Narrowest mark of a median, likewise.
const MARK: f64 = 2.0;

pub(super) fn write(page: &mut String, report: &Report) -> Result {
    let found = findings::states(report);
    if found.is_empty() {
        return Ok(());
    }
    page.push_str(
        "<details id=\"states\">\n<summary>What tells calls apart</summary>\n\
         <p class=\"hint\">What comes together with long calls need not make them long. The share of the \
         scatter is that of the logarithms, in stretches of time that had no part in finding the states. \
         The drawings are as high as the share of the state's calls that each length has, on a logarithmic \
         axis from the left to the right end, and on one scale for all states of a path; the two ends also \
         hold what lies beyond them. The line is the median, as wide as its interval.</p>\n",
    );
    for (_, states, sentence) in found {
        writeln!(page, "<p>{}</p>", Text(&with_micro(&sentence)))?;
        of_path(page, states)?;
    }
    page.push_str("</details>\n");
    Ok(())
}

fn of_path(page: &mut String, states: &PathStates) -> Result {
    let columns = Columns::new()
        .page("calls", |state| Cell::Text(conditions(state).into()))
        .page("share", |state: &StateReport| {
            Cell::Text(share(&state.share).into())
        })
        .page("median", |state: &StateReport| {
            Cell::estimate(state.median.as_ref())
        });
    let drawing = Drawing::new(states);
    // Where rows are blocks, for want of width, nobody sees the heading.
    let heading = drawing.as_ref().map_or(String::new(), Drawing::heading);
    let ends = format!("<span class=\"ends\" aria-hidden=\"true\">{heading}</span>");
    let bars = |state: &&StateReport| match &drawing {
        Some(drawing) => drawing.svg(state) + &ends,
        None => String::new(),
    };
    let bars = drawing.is_some().then_some((heading, &bars as _));
    table::write(page, &columns, &states.states, false, bars)
}

/// The axes that the states of a path share.
struct Drawing<'a> {
    edges_ns: &'a [f64],
    /// The largest share of a state's calls per unit of the axis.
    most: f64,
}

impl<'a> Drawing<'a> {
    /// `None` where there is nothing to draw.
    fn new(states: &'a PathStates) -> Option<Self> {
        let mut drawing = Self {
            edges_ns: &states.edges_ns,
            most: 1.0,
        };
        let are_positive = drawing.edges_ns.first().is_some_and(|first| *first > 0.0);
        if !are_positive || drawing.edges_ns.len() < 2 {
            return None;
        }
        let densities = (states.states.iter()).flat_map(|state| drawing.densities(&state.counts));
        let most = densities.fold(0.0, f64::max);
        (most > 0.0).then(|| {
            drawing.most = most;
            drawing
        })
    }

    fn ends(&self) -> (f64, f64) {
        (self.edges_ns[0], self.edges_ns[self.edges_ns.len() - 1])
    }

    /// The place of a duration on the axis.
    fn x(&self, ns: f64) -> f64 {
        let (from, to) = self.ends();
        (WIDTH * (ns / from).ln() / (to / from).ln()).clamp(0.0, WIDTH)
    }

    /// The share of a state's calls in each bin, per unit of the axis.
    fn densities(&self, counts: &[u64]) -> Vec<f64> {
        let all = counts.iter().sum::<u64>().max(1) as f64;
        (self.edges_ns.windows(2).zip(counts))
            .map(|(edges, n)| *n as f64 / all / (self.x(edges[1]) - self.x(edges[0])).max(1e-9))
            .collect()
    }

    fn heading(&self) -> String {
        let (from, to) = self.ends();
        let end = |ns| format!("<span>{}</span>", table::duration(ns));
        end(from) + &end(to)
    }

    fn svg(&self, state: &StateReport) -> String {
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <path class=\"distribution\" d=\"M0 {HEIGHT}"
        );
        for (edges, density) in self.edges_ns.windows(2).zip(self.densities(&state.counts)) {
            let y = HEIGHT * (1.0 - density / self.most);
            svg.push_str(&format!("V{y:.1}H{:.1}", self.x(edges[1])));
        }
        svg.push_str(&format!("V{HEIGHT}Z\"/>"));
        if let Some(median) = &state.median {
            let (lo, hi) = (median.interval.lo, median.interval.hi);
            let [from, to] = [lo, hi].map(|end| self.x(end.unwrap_or(median.value)));
            let width = (to - from).max(MARK);
            let x = (f64::midpoint(from, to) - width / 2.0).clamp(0.0, WIDTH - width);
            svg.push_str(&format!(
                "<rect class=\"median\" x=\"{x:.1}\" y=\"0\" width=\"{width:.1}\" height=\"{HEIGHT}\"/>"
            ));
        }
        svg.push_str("</svg>");
        svg
    }
}
