//! The common parts of pages without their own script: head, sections, foot.

use core::fmt::{Display, Result, Write};

use super::escape::{self, Text};
use super::{POLICY, STYLE};

const OWN_STYLE: &str = ".figures td.words { white-space: normal; text-align: left; }\n\
    .figures th.words { text-align: left; }\n\
    .figures td.plot { width: 22%; min-width: 9rem; }\n\
    .figures td.plot svg { display: block; width: 100%; height: 2.1rem; background: var(--faint); }\n\
    .plot .grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }\n\
    .plot .bin { fill: var(--fill); }\n\
    .plot .whisker { stroke: var(--median); stroke-width: 2; vector-effect: non-scaling-stroke; }\n\
    .plot .dot { fill: var(--median); }\n\
    .bad { color: var(--alert); font-weight: 600; }\n\
    .includes { display: block; color: var(--quiet); font-size: 0.82rem; font-weight: 400; }\n\
    @media screen and (max-width: 56rem) {\n\
    .figures td.plot { width: 100%; } .figures td.plot::before { content: none; }\n\
    .figures td.plot svg { flex: 1; } .figures td.words { text-align: right; } }\n";

/// The page up to its first section.
pub(super) fn head(
    page: &mut String,
    title: &str,
    line: &str,
    sections: &[(String, String)],
) -> Result {
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>Undertick: {0}</title>\n<style>\n{STYLE}{OWN_STYLE}</style>\n</head>\n\
         <body>\n<header>\n<h1 class=\"name\">{0}</h1>\n<p class=\"recorded\">{1}</p>\n\
         <nav aria-label=\"Sections\">",
        Text(title),
        Text(line),
    )?;
    for (id, name) in sections {
        write!(page, "<a href=\"#{}\">{}</a>", Text(id), Text(name))?;
    }
    page.push_str("</nav>\n</header>\n<main>\n");
    Ok(())
}

/// The end of the page, with the document in it.
pub(super) fn foot(page: &mut String, version: u32, document: &str) -> Result {
    write!(
        page,
        "</main>\n<footer><p>Undertick, document version {version}. The whole document is in this file, \
         as JSON, in the element <code>report</code>.</p></footer>\n\
         <script type=\"application/json\" id=\"report\">{}</script>\n</body>\n</html>\n",
        escape::json(document),
    )
}

/// The start of a section with a table of these columns; columns of words are aligned to the left.
pub(super) fn table(page: &mut String, columns: &[(&str, bool)]) -> Result {
    page.push_str("<div class=\"wide\"><table class=\"figures\">\n<thead><tr>");
    for (name, is_words) in columns {
        let class = if *is_words { " class=\"words\"" } else { "" };
        write!(page, "<th scope=\"col\"{class}>{}</th>", Text(name))?;
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    Ok(())
}

/// The end of a table.
pub(super) fn end_of_table(page: &mut String) {
    page.push_str("</tbody></table></div>\n");
}

/// A cell whose content is already markup.
pub(super) fn cell(page: &mut String, label: &str, class: &str, content: impl Display) -> Result {
    let class = match class.is_empty() {
        true => String::new(),
        false => format!(" class=\"{class}\""),
    };
    write!(
        page,
        "<td data-label=\"{}\"{class}>{content}</td>",
        Text(label)
    )
}

/// The heading of a row: a name, and what it includes below.
pub(super) fn row_heading(page: &mut String, name: &str, below: &str) -> Result {
    let below = match below.is_empty() {
        true => String::new(),
        false => format!("<span class=\"includes\">{}</span>", Text(below)),
    };
    write!(
        page,
        "<tr><th scope=\"row\"><span class=\"name\">{}</span>{below}</th>",
        Text(name)
    )
}

/// A list of notes for the reader; empty if there are none.
pub(super) fn list(
    page: &mut String,
    id: &str,
    heading: &str,
    class: &str,
    items: &[String],
) -> Result {
    if items.is_empty() {
        return Ok(());
    }
    write!(
        page,
        "<section id=\"{id}\">\n<h2>{}</h2>\n<ul class=\"{class}\">\n",
        Text(heading)
    )?;
    for item in items {
        writeln!(page, "<li>{}</li>", Text(item))?;
    }
    page.push_str("</ul>\n</section>\n");
    Ok(())
}
