//! A comparison as JUnit's XML, which CI systems show as tests: each figure is a test, one that is worse
//! has failed, and one of which nothing can be said is skipped.

use core::fmt::Write;

use super::{Comparison, Row, Verdict};
use crate::escape::Text;
use crate::survey::Better;

/// The comparison as a document of JUnit's XML. With a gate, only what is surely slower than it allows
/// has failed.
#[must_use]
pub fn render_junit(found: &Comparison) -> String {
    let mut text = String::new();
    write_junit(&mut text, found).expect("writing to a string does not fail");
    text
}

fn write_junit(text: &mut String, found: &Comparison) -> core::fmt::Result {
    let has_failed = |row: &&Row| match &found.gate {
        Some(gate) => gate.too_slow.contains(&row.id),
        None => is_worse(row),
    };
    let is_skipped = |row: &&Row| row.verdict == Verdict::CannotTell && !has_failed(row);
    let failures = found.rows.iter().filter(has_failed).count();
    let skipped = found.rows.iter().filter(is_skipped).count();
    let name = format!("{} against {}", found.b.file, found.a.file);
    writeln!(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        text,
        "<testsuites tests=\"{n}\" failures=\"{failures}\" errors=\"0\">\n\
         <testsuite name=\"{name}\" tests=\"{n}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">",
        n = found.rows.len(),
        name = Text(&name),
    )?;
    for row in &found.rows {
        write!(
            text,
            "<testcase classname=\"{}\" name=\"{}\"",
            Text(&row.group),
            Text(&row.name)
        )?;
        if row.b.unit == "ns" {
            write!(text, " time=\"{:.9}\"", row.b.value / 1e9)?;
        }
        text.push('>');
        let words = Text(&row.words);
        if has_failed(&row) {
            write!(text, "<failure type=\"slower\" message=\"{words}\"/>")?;
        } else if is_skipped(&row) {
            write!(text, "<skipped message=\"{words}\"/>")?;
        } else {
            write!(text, "<system-out>{words}</system-out>")?;
        }
        text.push_str("</testcase>\n");
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    Ok(())
}

/// Whether the second is surely worse.
const fn is_worse(row: &Row) -> bool {
    match (row.verdict, row.better) {
        (Verdict::Slower, _) => true,
        (Verdict::More, better) => matches!(better, Better::Lower),
        (Verdict::Less, better) => matches!(better, Better::Higher),
        _ => false,
    }
}
