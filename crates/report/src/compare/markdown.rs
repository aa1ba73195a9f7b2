//! A comparison as Markdown for GitHub: the summary, a table of what differs, and the rest folded
//! away.

use undertick_document::figures;

use super::terminal::{columns, summary};
use super::{Comparison, Row, Source};
use crate::remarks::number_of;
use crate::survey::machine;
use crate::table::markdown::{draw, text};

/// Maximum number of rows of a table: GitHub discards a summary of more than 1 MiB entirely.
const MOST_ROWS: usize = 2000;

/// The comparison as Markdown with tables in GitHub's syntax. Ends with a line break.
#[must_use]
pub fn render_markdown(found: &Comparison) -> String {
    let (differ, rest): (Vec<&Row>, Vec<&Row>) =
        (found.rows.iter()).partition(|row| row.differs() || is_too_slow(found, row));
    let mut parts = vec![format!("### {}", headline(found))];
    parts.extend(gate(found));
    parts.push([side("A", &found.a), side("B", &found.b)].join("  \n"));
    if !differ.is_empty() {
        parts.push(table(found, &differ));
    }
    if !rest.is_empty() {
        let what = match differ.is_empty() {
            true => number_of(rest.len() as u64, "figure"),
            false => format!("the other {}", number_of(rest.len() as u64, "figure")),
        };
        parts.push(folded(&what, &table(found, &rest)));
    }
    parts.push(text(&summary(found)));
    let only = [("A", &found.only_in_a), ("B", &found.only_in_b)];
    for (which, names) in only.iter().filter(|(_, names)| !names.is_empty()) {
        let names: Vec<String> = names.iter().take(MOST_ROWS).map(|n| text(n)).collect();
        parts.push(folded(
            &format!(
                "only in {which}: {}",
                number_of(names.len() as u64, "figure")
            ),
            &names.join(", "),
        ));
    }
    let warnings = found
        .warnings
        .iter()
        .map(|w| format!("> {}", text(&w.text)));
    let warnings: Vec<String> = warnings.collect();
    if !warnings.is_empty() {
        parts.push(format!("> [!NOTE]\n{}", warnings.join("\n>\n")));
    }
    parts.join("\n\n").replace('\u{a0}', " ") + "\n"
}

fn headline(found: &Comparison) -> String {
    let s = &found.summary;
    match (s.compared, s.differ) {
        (0, _) => "No figure is in both".to_owned(),
        (n, 0) => format!("None of {} is known to differ", number_of(n, "figure")),
        (n, differ) => format!(
            "{differ} of {} differ{}: {} better in B, {} worse",
            number_of(n, "figure"),
            if differ == 1 { "s" } else { "" },
            s.better,
            s.worse
        ),
    }
}

fn gate(found: &Comparison) -> Option<String> {
    let gate = found.gate.as_ref()?;
    let share = text(&figures::per_cent(gate.share));
    let names: Vec<String> = (found.rows.iter())
        .filter(|row| gate.too_slow.contains(&row.id))
        .map(|row| text(&row.name))
        .collect();
    Some(match names.is_empty() {
        true => format!("Nothing is surely slower by more than {share}."),
        false => format!(
            "**Surely slower by more than {share}: {}**",
            names.join(", ")
        ),
    })
}

fn is_too_slow(found: &Comparison, row: &Row) -> bool {
    let ids = found.gate.as_ref().map(|gate| &gate.too_slow);
    ids.is_some_and(|ids| ids.contains(&row.id))
}

fn side(which: &str, source: &Source) -> String {
    let runs = source.runs.map_or(String::new(), |runs| {
        format!(", {}", number_of(runs, "run"))
    });
    format!(
        "{which}: {}{runs} ({})",
        text(&source.file),
        text(&machine(&source.host))
    )
}

fn folded(summary: &str, body: &str) -> String {
    format!("<details><summary>{summary}</summary>\n\n{body}\n\n</details>")
}

fn table(found: &Comparison, rows: &[&Row]) -> String {
    let mut lines = draw(&columns(found), rows.iter().copied().take(MOST_ROWS));
    if rows.len() > MOST_ROWS {
        lines.push(format!("| and {} more | | | | | |", rows.len() - MOST_ROWS));
    }
    lines.join("\n")
}
