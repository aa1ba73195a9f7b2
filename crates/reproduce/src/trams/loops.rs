//! Table 1 and Figures 2 to 13: intervals between successive records, in a straight row and in three
//! loops, each with three arguments.

use undertick_document::{IntervalReport, Report};
use undertick_meter::loops::{ARGUMENTS, CONSTRUCTS, interval_name, name};
use undertick_report::plot::{Axis, Curve, Plot, Point, Style};
use undertick_report::reproduce::{Reproduction, Table};

use crate::compared::{ItemDescription, Published, bare, cell, item, published, times};
use crate::tables::words;

/// The first of these figures; they follow in the order of the constructs and of the arguments.
const FIRST_FIGURE: usize = 2;

/// What the text says of Figures 2 to 4, us, and of all of Figures 5 to 13. Table 1 and the figures
/// themselves are not legible in the scan.
const STRAIGHT: [Published; 3] = [
    published(3.0, "approximately 3"),
    published(3.5, "about 3 to 4"),
    published(6.0, "6 on average"),
];
const LOOPS: Published = published(9.0, "7 to 11, all loops");

pub(super) fn loops(found: &mut Reproduction, report: &Report) {
    let mut rows = Vec::new();
    for (c, construct) in CONSTRUCTS.iter().enumerate() {
        let mut curves = Vec::new();
        for (a, argument) in ARGUMENTS.iter().enumerate() {
            let figure = FIRST_FIGURE + c * ARGUMENTS.len() + a;
            let published = if c == 0 { STRAIGHT[a] } else { LOOPS };
            let name = name(construct, argument);
            let wanted = interval_name(construct, argument);
            let interval = report.intervals.iter().find(|i| i.name == wanted);
            rows.push(row(found, (figure, &name), published, interval));
            curves.extend(interval.map(|interval| histogram(argument, interval)));
        }
        let first = FIRST_FIGURE + c * ARGUMENTS.len();
        found.plots.push(Plot {
            title: format!(
                "Figures {first} to {}: {construct}",
                first + ARGUMENTS.len() - 1
            ),
            text: vec![
                "From one record to the next. As in the source, only what is kept is drawn."
                    .to_owned(),
            ],
            x: Axis::new("interval", "ns"),
            y: Axis::new("share of the intervals, for each ns", "1"),
            curves,
        });
    }
    found.tables.push(Table {
        title: "Table 1 and Figures 2 to 13: records in a row and in loops".to_owned(),
        text: vec![
            "Intervals from one record to the next; those over four times the minimum are dropped. Published, us: the \
             text's, because Table 1 and the figures are not legible in the scan. A loop's turn is in an interval with \
             the record; what is subtracted for the turn alone, 7 to 11 less 3 to 6, is not printed."
                .to_owned(),
        ],
        columns: words(&[
            "figure",
            "cell",
            "published, us",
            "n",
            "dropped",
            "min",
            "mean",
            "max",
            "times",
        ]),
        rows,
    });
}

fn row(
    found: &mut Reproduction,
    (figure, name): (usize, &str),
    published: Published,
    interval: Option<&IntervalReport>,
) -> Vec<String> {
    let n = interval.map_or(0, |i| i.count);
    let extreme = |value: Option<f64>| {
        let estimate = value.map(|ns| bare(ns, "ns", "of all intervals that are kept", n));
        cell(estimate.as_ref())
    };
    let dropped = interval.map_or_else(
        || "–".to_owned(),
        |i| format!("{:.2} %", 100.0 * i.culled.share),
    );
    let mean = interval.and_then(|i| i.mean.as_ref());
    let item = item(
        ItemDescription {
            id: format!("trams/figure-{figure}"),
            quantity: format!("from one record to the next, {name}"),
            unit: "us",
            published: Some(published),
            formula: None,
            note: format!("{dropped} of the intervals are dropped here"),
        },
        mean,
        "not measured: the program recorded nothing",
    );
    let cells = vec![
        figure.to_string(),
        name.to_owned(),
        published.printed.to_owned(),
        n.to_string(),
        dropped,
        extreme(interval.and_then(|i| i.statistics.min)),
        cell(mean),
        extreme(interval.and_then(|i| i.statistics.max)),
        times(item.ratio),
    ];
    found.items.push(item);
    cells
}

/// The share of each bin over its width, because the bins' widths grow.
fn histogram(name: &str, interval: &IntervalReport) -> Curve {
    let (edges, counts) = (&interval.histogram.edges, &interval.histogram.counts);
    let all: u64 = counts.iter().sum();
    let share = |i: usize| {
        let width = edges[i + 1] - edges[i];
        counts[i] as f64 / all.max(1) as f64 / width
    };
    let steps = (0..counts.len()).map(|i| Point::new(edges[i], share(i)));
    let end = edges.last().map(|end| Point::new(*end, 0.0));
    Curve {
        name: name.to_owned(),
        style: Style::Steps,
        points: steps.chain(end).collect(),
        is_of_previous: false,
    }
}
