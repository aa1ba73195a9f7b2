//! The common parts of pages without their own script: head, sections, foot.

use core::fmt::{Result, Write};

use super::{POLICY, STYLE};
use crate::escape::{self, Text};

/// Styles of pages of tables alone.
pub(super) const OWN_STYLE: &str = ".figures td.words { white-space: normal; text-align: left; }\n\
    .figures th.words { text-align: left; }\n\
    .figures td.plot { width: 22%; min-width: 9rem; }\n\
    .figures td.plot svg { display: block; width: 100%; height: 2.1rem; background: var(--faint); }\n\
    td.plot .grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }\n\
    td.plot .bin { fill: var(--fill); }\n\
    td.plot .whisker { stroke: var(--median); stroke-width: 2; vector-effect: non-scaling-stroke; }\n\
    td.plot .dot { fill: var(--median); }\n\
    .bad { color: var(--alert); font-weight: 600; }\n\
    .includes { display: block; color: var(--quiet); font-size: 0.82rem; font-weight: 400; }\n\
    @media screen and (max-width: 56rem) {\n\
    .figures td.plot { width: 100%; } .figures td.plot::before { content: none; }\n\
    .figures td.plot svg { flex: 1; } .figures td.words { text-align: right; } }\n";

/// The page up to its header, with these styles after the common one.
pub(super) fn begin(page: &mut String, title: &str, styles: &[&str]) -> Result {
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>Undertick: {}</title>\n<style>\n{STYLE}",
        Text(title),
    )?;
    page.extend(styles.iter().copied());
    page.push_str("</style>\n</head>\n<body>\n<header>\n");
    Ok(())
}

/// The page up to its first section.
pub(super) fn head(
    page: &mut String,
    title: &str,
    line: &str,
    sections: &[(String, String)],
) -> Result {
    head_with(page, title, line, sections, "")
}

/// As [`head`], with more styles.
pub(super) fn head_with(
    page: &mut String,
    title: &str,
    line: &str,
    sections: &[(String, String)],
    styles: &str,
) -> Result {
    begin(page, title, &[OWN_STYLE, styles])?;
    write!(
        page,
        "<h1 class=\"name\">{}</h1>\n<p class=\"recorded\">{}</p>\n<nav aria-label=\"Sections\">",
        Text(title),
        Text(line),
    )?;
    for (id, name) in sections {
        write!(page, "<a href=\"#{}\">{}</a>", Text(id), Text(name))?;
    }
    page.push_str("</nav>\n</header>\n<main>\n");
    Ok(())
}

/// Links to those of these sections that are there (id, name, whether it is), and the begin of the
/// first one.
pub(super) fn nav(page: &mut String, sections: &[(&str, &str, bool)]) -> Result {
    page.push_str("<nav aria-label=\"Sections\">");
    for (id, name, _) in sections.iter().filter(|section| section.2) {
        write!(page, "<a href=\"#{id}\">{name}</a>")?;
    }
    page.push_str("</nav>\n</header>\n<main>\n");
    Ok(())
}

/// The end of the last section, and the document in an element of this id; `title` says whose it is.
pub(super) fn document(
    page: &mut String,
    (title, id): (&str, &str),
    version: u32,
    json: &str,
) -> Result {
    write!(
        page,
        "</main>\n<footer><p>{title}, document version {version}. The whole document is in this file, \
         as JSON, in the element <code>{id}</code>.</p></footer>\n\
         <script type=\"application/json\" id=\"{id}\">{}</script>\n",
        escape::json(json),
    )
}

/// The end of the page, with the document in it.
pub(super) fn foot(page: &mut String, version: u32, json: &str) -> Result {
    document(page, ("Undertick", "report"), version, json)?;
    page.push_str("</body>\n</html>\n");
    Ok(())
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
