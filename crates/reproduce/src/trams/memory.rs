//! The time of fork against memory.

use undertick_document::LineReport;
use undertick_report::reproduce::{Reproduction, Table};

use super::summaries::{Row, rows};
use crate::compared::{
    Figures, ItemDescription, NOT_PERFORMED, Published, cell, item, published, ratio,
    straight_line, times,
};
use crate::tables::words;

/// Time without shared memory, ms.
const FORK_WITHOUT: Published = published(90.0, "90");

pub(super) fn fork(found: &mut Reproduction, figures: Figures<'_>) {
    let with = |kind: &'static str| [("kind", kind)];
    let mut cells = Vec::new();
    let without = figures.typical("fork-nothing", &[], "fork");
    let description =
        |id: String, quantity: String, value: Published, note: &str| ItemDescription {
            id,
            quantity,
            unit: "ms",
            published: Some(value),
            formula: None,
            note: note.to_owned(),
        };
    let nothing = item(
        description(
            "trams/fork/0".to_owned(),
            "fork without shared memory".to_owned(),
            FORK_WITHOUT,
            "",
        ),
        without,
        NOT_PERFORMED,
    );
    cells.push(vec![
        "0".to_owned(),
        "90".to_owned(),
        cell(without),
        times(nothing.ratio),
        "–".to_owned(),
    ]);
    found.items.push(nothing);
    let forks: Vec<Row> = rows("4").collect();
    for row in &forks {
        let bytes = format!("{}KB", row.name);
        let at = |kind| {
            let with = [("kind", kind), ("bytes", bytes.as_str())];
            figures.typical("fork-published", &with, "fork").cloned()
        };
        let (shared, private) = (at("shared"), at("private"));
        let item = item(
            description(
                format!("trams/fork/{bytes}"),
                format!("fork with {} KB of shared memory", row.name),
                row.mean,
                "24 samples were published",
            ),
            shared.as_ref(),
            NOT_PERFORMED,
        );
        cells.push(vec![
            row.name.to_owned(),
            row.mean.printed.to_owned(),
            cell(shared.as_ref()),
            times(item.ratio),
            cell(private.as_ref()),
        ]);
        found.items.push(item);
    }
    let points: Vec<(f64, f64)> = (forks.iter())
        .map(|row| (row.name.parse().expect("a size"), row.mean.value))
        .collect();
    let (at_0, slope) = straight_line(&points);
    for kind in ["shared", "private"] {
        let line = figures.line("fork-published", &with(kind));
        for (id, what, of, value) in [
            (
                "slope",
                "a MiB more",
                line.map(|l| &l.slope),
                slope * 1024.0,
            ),
            ("at-0", "at 0", line.map(|l| &l.intercept), at_0),
        ] {
            let mut item = item(
                ItemDescription {
                    id: format!("trams/fork/{id}/{kind}"),
                    quantity: format!("fork against {kind} memory, {what}"),
                    unit: "ms",
                    published: None,
                    formula: Some(value),
                    note: format!(
                        "by formula: least squares through the published points{}",
                        line.map_or_else(String::new, bent)
                    ),
                },
                of,
                NOT_PERFORMED,
            );
            item.ratio = ratio(item.formula, item.measured.as_ref());
            cells.push(vec![
                format!("{kind}: {what}"),
                format!("{value:.1}, by formula"),
                cell(of),
                times(item.ratio),
                "–".to_owned(),
            ]);
            found.items.push(item);
        }
    }
    found.tables.push(Table {
        title: "Fork against memory".to_owned(),
        text: vec![format!(
            "Published, ms: {at_0:.0} + {:.1} a MiB by least squares through the seven points, 90 without shared memory. \
             Here until the call returns in the parent, with memory touched in 4 KiB pages.",
            slope * 1024.0
        )],
        columns: words(&["KB", "published, ms", "shared", "times", "private"]),
        rows: cells,
    });
}

/// Says whether the points lie on the line.
fn bent(line: &LineReport) -> String {
    match (line.lack_of_fit_p, line.worst_share) {
        (Some(p), Some(share)) => {
            format!(
                "; here the points are within {:.0} % of a line (p {p:.2})",
                share * 100.0
            )
        }
        _ => String::new(),
    }
}
