//! The time of fork against memory, and shared memory.

use undertick_document::LineReport;
use undertick_report::reproduce::{Reproduction, Table};

use crate::compared::{
    Figures, ItemDescription, NOT_PERFORMED, Published, cell, item, published, ratio,
    straight_line, times,
};
use crate::tables::words;

/// Sizes of the shared memory, KB, and the mean time of a fork with it, ms.
const FORKS: [(f64, Published); 7] = [
    (33.0, published(130.0, "130")),
    (125.0, published(137.0, "137")),
    (490.0, published(161.0, "161")),
    (1096.0, published(198.0, "198")),
    (1941.0, published(254.0, "254")),
    (3026.0, published(329.0, "329")),
    (4351.0, published(410.0, "410")),
];

/// Time without shared memory, ms.
const FORK_WITHOUT: Published = published(90.0, "90");

pub(super) fn fork(found: &mut Reproduction, figures: Figures<'_>) {
    let with = |kind: &'static str| [("kind", kind)];
    let mut rows = Vec::new();
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
    rows.push(vec![
        "0".to_owned(),
        "90".to_owned(),
        cell(without),
        times(nothing.ratio),
        "–".to_owned(),
    ]);
    found.items.push(nothing);
    for (kb, ms) in FORKS {
        let bytes = format!("{kb}KB");
        let at = |kind| {
            let with = [("kind", kind), ("bytes", bytes.as_str())];
            figures.typical("fork-published", &with, "fork").cloned()
        };
        let (shared, private) = (at("shared"), at("private"));
        let item = item(
            description(
                format!("trams/fork/{kb}KB"),
                format!("fork with {kb} KB of shared memory"),
                ms,
                "24 samples were published",
            ),
            shared.as_ref(),
            NOT_PERFORMED,
        );
        rows.push(vec![
            format!("{kb}"),
            ms.printed.to_owned(),
            cell(shared.as_ref()),
            times(item.ratio),
            cell(private.as_ref()),
        ]);
        found.items.push(item);
    }
    let (at_0, slope) = straight_line(&FORKS.map(|(kb, ms)| (kb, ms.value)));
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
            rows.push(vec![
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
        rows,
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

pub(super) fn memory(found: &mut Reproduction, figures: Figures<'_>) {
    let ends = [("33KB", 0_usize), ("4351KB", 1)];
    let steps = [
        (
            "initialise",
            "initialise shared memory",
            [published(209.0, "209"), published(2779.0, "2779")],
        ),
        (
            "allocate",
            "allocate shared memory",
            [published(72.0, "72"), published(13_827.0, "13827")],
        ),
    ];
    let mut rows = Vec::new();
    for (step, what, published) in steps {
        for kind in ["sysv", "shared"] {
            for (bytes, end) in ends {
                let with = [("kind", kind), ("bytes", bytes)];
                let measured = figures.typical("memory-published", &with, step);
                let description = ItemDescription {
                    id: format!("trams/memory/{step}/{kind}/{bytes}"),
                    quantity: format!("{what}, {kind}, {bytes}"),
                    unit: "ms",
                    published: Some(published[end]),
                    formula: None,
                    note: "the least and the largest mean are printed, for the least and the largest size".to_owned(),
                };
                let item = item(description, measured, NOT_PERFORMED);
                rows.push(vec![
                    format!("{what}, {kind}, {bytes}"),
                    published[end].printed.to_owned(),
                    cell(measured),
                    times(item.ratio),
                ]);
                found.items.push(item);
            }
        }
    }
    found.tables.push(Table {
        title: "Shared memory".to_owned(),
        text: vec![
            "sysv: shmget and shmat, as then; shared: anonymous shared memory. Here allocating makes and maps it, and \
             pages come when they are written first, which is part of initialising."
                .to_owned(),
        ],
        columns: words(&["quantity", "published, ms", "here", "times"]),
        rows,
    });
}
