//! The page of a comparison: the call trees of both sides as one, drawn by change, and the tables.

use core::fmt::{Result, Write};

use undertick_document::figures;

use super::{SCRIPT, frame, tree};
use crate::compare::{
    Comparison, PathChange, PathSide, Row, columns, gate, legend, of_ratio, source_line, summary,
};
use crate::escape::Text;
use crate::table::html::{plain, with_micro};
use crate::table::{Cell, Columns};

/// What the drawing shows, before its bars.
const CHOICES: &str = "<label>Widths <select id=\"icicle-widths\"><option value=\"both\">A and B \
    together</option><option value=\"a\">A</option><option value=\"b\">B</option></select></label>";
const KEY: &str = "<p class=\"hint\"><span class=\"key slower\"></span>slower in B\
    <span class=\"key faster\"></span>faster in B<span class=\"key single\"></span>only in one\
    <span class=\"key alike\"></span>no known difference. The colour is that of the time of a call, the \
    stronger the more it changed; where chance may have made the difference there is none.</p>\n";

/// The whole page.
#[must_use]
pub fn render(found: &Comparison) -> String {
    let mut page = String::with_capacity(400_000);
    write_page(&mut page, found).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, found: &Comparison) -> Result {
    let (differ, rest): (Vec<&Row>, Vec<&Row>) = found.rows.iter().partition(|row| row.differs());
    let has_lonely = !found.only_in_a.is_empty() || !found.only_in_b.is_empty();
    let sections = [
        ("summary", "Summary", true),
        ("tree", "Call tree", !found.paths.is_empty()),
        ("differ", "What differs", !differ.is_empty()),
        ("rest", "The rest", !rest.is_empty()),
        ("lonely", "Only in one", has_lonely),
        ("warnings", "Warnings", !found.warnings.is_empty()),
        ("methods", "Methods", true),
    ];
    head(page, found, &sections)?;
    page.push_str("<section id=\"summary\">\n<h2>Summary</h2>\n<ul class=\"summary\">\n");
    for sentence in [Some(summary(found)), gate(found)].into_iter().flatten() {
        writeln!(page, "<li>{}</li>", Text(&with_micro(&sentence)))?;
    }
    page.push_str("</ul>\n</section>\n");
    if !found.paths.is_empty() {
        call_tree(page, found)?;
    }
    for (id, title, rows) in [
        ("differ", "What differs", &differ),
        ("rest", "The rest", &rest),
    ] {
        if !rows.is_empty() {
            write!(page, "<section id=\"{id}\">\n<h2>{title}</h2>\n")?;
            plain(page, &columns(found), rows.iter().copied())?;
            page.push_str("</section>\n");
        }
    }
    let lonely: Vec<String> = [("A", &found.only_in_a), ("B", &found.only_in_b)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(which, names)| format!("Only in {which}: {}", names.join(", ")))
        .collect();
    frame::list(page, "lonely", "Only in one", "summary", &lonely)?;
    let warnings: Vec<String> = found.warnings.iter().map(|w| w.text.clone()).collect();
    frame::list(page, "warnings", "Warnings", "warnings", &warnings)?;
    write!(
        page,
        "<section id=\"methods\">\n<h2>Methods</h2>\n<p>{}</p>\n</section>\n",
        Text(&legend(found))
    )?;
    foot(page, found)
}

fn head(page: &mut String, found: &Comparison, sections: &[(&str, &str, bool)]) -> Result {
    frame::begin(page, "comparison", &[frame::OWN_STYLE])?;
    page.push_str(
        "<div class=\"title\"><h1>Undertick comparison</h1>\
         <span><button type=\"button\" id=\"theme\" hidden>Theme: automatic</button></span></div>\n",
    );
    for (which, source) in [("A", &found.a), ("B", &found.b)] {
        let line = source_line(which, source);
        writeln!(page, "<p class=\"recorded\">{}</p>", Text(&line))?;
    }
    frame::nav(page, sections)
}

fn call_tree(page: &mut String, found: &Comparison) -> Result {
    page.push_str("<section id=\"tree\">\n<h2>Call tree</h2>\n");
    tree::Icicle {
        id: "icicle",
        label: "Call tree; the table below says the same in numbers",
        controls: CHOICES,
        key: &[tree::OF_TIMES, KEY].concat(),
    }
    .write(page)?;
    let shown = &found.paths[..found.paths.len().min(tree::MOST_ROWS)];
    let names: Vec<String> = (shown.iter())
        .map(|path| tree::indented(&path.name, path.depth))
        .collect();
    plain(
        page,
        &path_columns(found),
        names.iter().map(String::as_str).zip(shown),
    )?;
    tree::left_out(page, found.paths.len() - shown.len())?;
    writeln!(page, "</section>")
}

/// A row: the indented name, and its path.
type PathRow<'a> = (&'a str, &'a PathChange);

fn path_columns<'a>(found: &Comparison) -> Columns<'a, PathRow<'a>> {
    let calls = |side: Option<PathSide>| {
        Cell::text(side.map_or(String::new(), |side| {
            figures::count(side.calls.round() as u64)
        }))
    };
    let total = |side: Option<PathSide>| Cell::duration(side.and_then(|side| side.total_ns));
    let call = |side: Option<PathSide>| Cell::duration(side.and_then(|side| side.call_ns));
    let ratio = |path: &PathChange| {
        path.ratio.as_ref().map_or(String::new(), |ratio| {
            let (value, interval) = of_ratio(ratio);
            format!("{value} {interval}")
        })
    };
    Columns::new()
        .page("span", |(name, _): PathRow<'a>| Cell::Name(name))
        .page("calls A", move |(_, path)| calls(path.a))
        .page("calls B", move |(_, path)| calls(path.b))
        .page("total A", move |(_, path)| total(path.a))
        .page("total B", move |(_, path)| total(path.b))
        .page("call A", move |(_, path)| call(path.a))
        .page("call B", move |(_, path)| call(path.b))
        .page("B/A", move |(_, path)| Cell::Figure(ratio(path)))
        .on_page(format!(
            "B/A of a call, {}",
            figures::per_cent(found.confidence)
        ))
        .page("", |(_, path)| match path.differs() {
            true => Cell::Notable(path.words.clone()),
            false => Cell::text(&path.words),
        })
        .words()
}

fn foot(page: &mut String, found: &Comparison) -> Result {
    let document = serde_json::to_string(found).unwrap_or_else(|_| "null".to_owned());
    let title = ("Undertick comparison", "comparison");
    frame::document(page, title, found.schema_version, &document)?;
    write!(page, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
}
