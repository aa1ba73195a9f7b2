//! The page of a history: a table, and a plot for each benchmark.

use core::fmt::{Result, Write};
use std::collections::BTreeMap;

use super::frame;
use super::plot::{PLOT_STYLE, plot};
use crate::escape::Text;
use crate::history::{BenchmarkHistory, History, change_of, columns, of_newest, summary};
use crate::plot::{Axis, Curve, Plot, Point, Style};
use crate::table::html::plain;

/// Most machines that have a curve of their own in a plot.
const MOST_MACHINES: usize = 5;

/// The whole page.
#[must_use]
pub fn render(history: &History) -> String {
    let mut page = String::with_capacity(200_000);
    write_page(&mut page, history).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, history: &History) -> Result {
    let mut sections = vec![("all".to_owned(), "All benchmarks".to_owned())];
    let each = history.benchmarks.iter().enumerate();
    sections.extend(each.map(|(i, of)| (format!("b{i}"), of.name.clone())));
    let title = format!("Benchmarks in {}", history.directory);
    frame::head_with(page, &title, &summary(history), &sections, PLOT_STYLE)?;
    frame::list(
        page,
        "newest",
        "The newest version",
        "findings",
        &of_newest(history),
    )?;
    page.push_str("<section id=\"all\">\n<h2>All benchmarks</h2>\n");
    plain(page, &columns(), history.benchmarks.iter())?;
    page.push_str("</section>\n");
    for (i, of) in history.benchmarks.iter().enumerate() {
        plot(page, &format!("b{i}"), &drawing(of))?;
    }
    let document = serde_json::to_string(history).unwrap_or_else(|_| "null".to_owned());
    writeln!(
        page,
        "<section id=\"methods\">\n<h2>Methods</h2>\n<p>{}</p>\n</section>",
        Text(
            "A point is the geometric mean of the processes of a measurement. A change is a step of \
             their logarithms that permutations of the measurements reach with a chance of one in a \
             thousand at most; each machine has its own mean. The interval of its place is of the \
             likelihood ratio, that of its size of Student's t."
        )
    )?;
    frame::foot(page, history.schema_version, &document)
}

/// The measurements of each machine, and the levels between changes.
fn drawing(of: &BenchmarkHistory) -> Plot {
    let mut by_machine: BTreeMap<&str, Vec<(usize, f64, f64)>> = BTreeMap::new();
    for (i, point) in of.points.iter().enumerate() {
        let points = by_machine.entry(&point.machine).or_default();
        points.push((i, point.time_ns, point.level_ns));
    }
    let longest = of
        .points
        .iter()
        .map(|point| point.time_ns)
        .fold(0.0, f64::max);
    let (unit, by) = match longest {
        ..1e3 => ("ns", 1.0),
        ..1e6 => ("us", 1e3),
        ..1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let mut machines: Vec<_> = by_machine.into_iter().collect();
    machines.sort_by_key(|(_, points)| std::cmp::Reverse(points.len()));
    let mut curves = Vec::new();
    for (machine, points) in machines.iter().take(MOST_MACHINES) {
        let at = |value: fn(&(usize, f64, f64)) -> f64| {
            let point = |of: &(usize, f64, f64)| Point::new(of.0 as f64 + 1.0, value(of) / by);
            points.iter().map(point).collect::<Vec<_>>()
        };
        curves.push(Curve {
            name: (*machine).to_owned(),
            style: Style::Dots,
            points: at(|of| of.1),
            is_of_previous: false,
        });
        curves.push(Curve {
            name: format!("level on {machine}"),
            style: Style::Steps,
            points: at(|of| of.2),
            is_of_previous: true,
        });
    }
    let mut text: Vec<String> = (of.changes.iter())
        .map(|change| {
            let [from, until] = &change.within;
            let within = match from == until {
                true => String::new(),
                false => format!(", or between {from} and {until}"),
            };
            format!(
                "Measurement {}, from {} on{within}: {}.",
                change.at + 1,
                change.version,
                change_of(&change.ratio)
            )
        })
        .collect();
    if text.is_empty() {
        text.push("No change was found.".to_owned());
    }
    Plot {
        title: of.full_name(),
        text,
        x: Axis::new("measurement", "1"),
        y: Axis::new("time", unit),
        curves,
    }
}
