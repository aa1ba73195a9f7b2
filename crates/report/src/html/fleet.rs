//! The page of a fleet: machines out of the ordinary, the slowest and the noisiest machines, each
//! metric's distribution, changes, and files that could not be read.

use core::fmt::{Result, Write};

use super::frame;
use crate::escape::Text;
use crate::fleet::{
    Distribution, Drift, Fleet, HostRow, OfType, OutlyingHost, Type, by_type, changes,
    distributions, drift_summary, groups, summary, type_name, types, versions,
};
use crate::survey::title;
use crate::table::html::plain;
use crate::table::{Cell, Columns};

/// Maximum number of rows in tables of machines; the document in the page has all.
const MOST_OUTLIERS: usize = 200;
const MOST_RANKED: usize = 10;
const MOST_LISTED: usize = 200;
/// Maximum number of types with a separate row in each metric.
const MOST_TYPES: usize = 6;

/// The whole page.
#[must_use]
pub fn render(fleet: &Fleet) -> String {
    let mut page = String::with_capacity(500_000);
    write_page(&mut page, fleet).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, fleet: &Fleet) -> Result {
    let groups = groups(fleet);
    let mut sections = vec![
        ("outliers".to_owned(), "Out of the ordinary".to_owned()),
        ("ranked".to_owned(), "Slowest and noisiest".to_owned()),
    ];
    sections.extend(
        fleet
            .drift
            .as_ref()
            .map(|_| ("drift".to_owned(), "Against before".to_owned())),
    );
    let named = groups.iter().enumerate();
    sections.extend(named.map(|(i, (group, _))| (format!("g{i}"), title(group).to_owned())));
    if !fleet.unreadable.is_empty() || !fleet.lacking.is_empty() {
        sections.push(("troubles".to_owned(), "Missing".to_owned()));
    }
    sections.push(("methods".to_owned(), "Methods".to_owned()));
    frame::head(
        page,
        &format!("Fleet of {} machines", fleet.hosts.len()),
        &summary(fleet),
        &sections,
    )?;
    writeln!(page, "<p>{}</p>", Text(&types(fleet)))?;
    let warnings: Vec<String> = fleet.warnings.iter().map(|w| w.text.clone()).collect();
    frame::list(page, "warnings", "Warnings", "warnings", &warnings)?;
    page.push_str("<section id=\"outliers\">\n<h2>Out of the ordinary</h2>\n");
    outlying(page, fleet, &fleet.outliers, true)?;
    page.push_str("</section>\n");
    ranked(page, fleet)?;
    if let Some(drift) = &fleet.drift {
        drifted(page, fleet, drift)?;
    }
    for (i, (group, metrics)) in groups.iter().enumerate() {
        write!(
            page,
            "<section id=\"g{i}\">\n<h2>{}</h2>\n",
            Text(title(group))
        )?;
        let drawn = |(_, of): OfType<'_>| Cell::Drawing(histogram(of));
        let columns = distributions(fleet).page("least to most", drawn);
        plain(page, &columns, by_type(metrics, MOST_TYPES))?;
        page.push_str("</section>\n");
    }
    troubles(page, fleet)?;
    methods(page, fleet)?;
    let document = serde_json::to_string(fleet).unwrap_or_else(|_| "null".to_owned());
    frame::foot(page, fleet.schema_version, &document)
}

fn outlying(page: &mut String, fleet: &Fleet, hosts: &[OutlyingHost], with_type: bool) -> Result {
    if hosts.is_empty() {
        page.push_str("<p>None.</p>\n");
        return Ok(());
    }
    let columns = Columns::<&OutlyingHost>::new()
        .page("machine", |host| {
            let of_type = fleet.types.get(host.of_type).filter(|_| with_type);
            Cell::About(&host.host, name_of(of_type).into())
        })
        .words()
        .page("why", |host| {
            let reasons = host.reasons.iter().take(6).map(|r| r.words.as_str());
            let more = match host.reasons.len().saturating_sub(6) {
                0 => String::new(),
                n => format!("; and {n} more"),
            };
            Cell::text(reasons.collect::<Vec<_>>().join("; ") + &more)
        })
        .words()
        .page("p, adjusted", |host| {
            Cell::text(format!("{:.0e}", host.adjusted_p))
        });
    plain(page, &columns, hosts.iter().take(MOST_OUTLIERS))?;
    left_out(page, hosts.len(), MOST_OUTLIERS)
}

/// The name of a type; empty where it is not to be shown.
fn name_of(of_type: Option<&Type>) -> String {
    of_type.map_or(String::new(), |t| type_name(&t.cpu_model))
}

fn left_out(page: &mut String, n: usize, most: usize) -> Result {
    match n.saturating_sub(most) {
        0 => Ok(()),
        n => writeln!(page, "<p class=\"hint\">And {n} more, in the document.</p>"),
    }
}

fn ranked(page: &mut String, fleet: &Fleet) -> Result {
    page.push_str(
        "<section id=\"ranked\">\n<h2>Slowest and noisiest</h2>\n<p class=\"hint\">Over all metrics, against the \
         middle machine of the type. Being first here is no finding: somebody always is.</p>\n<div class=\"panels\">\n",
    );
    one_ranking(
        page,
        fleet,
        "Slowest",
        "times slower",
        &fleet.slowest(MOST_RANKED),
        |h| h.slowness,
    )?;
    one_ranking(
        page,
        fleet,
        "Noisiest",
        "times wider intervals",
        &fleet.noisiest(MOST_RANKED),
        |h| h.noise,
    )?;
    page.push_str("</div>\n</section>\n");
    Ok(())
}

fn one_ranking(
    page: &mut String,
    fleet: &Fleet,
    heading: &str,
    what: &str,
    hosts: &[&HostRow],
    score: fn(&HostRow) -> Option<f64>,
) -> Result {
    writeln!(page, "<div class=\"panel\"><h3>{heading}</h3>")?;
    if hosts.is_empty() {
        page.push_str("<p>None.</p></div>\n");
        return Ok(());
    }
    let columns = Columns::<&HostRow>::new()
        .page("machine", |host| {
            let of_type = fleet
                .types
                .get(host.of_type)
                .filter(|_| fleet.types.len() != 1);
            Cell::About(&host.host, name_of(of_type).into())
        })
        .words()
        .page(what, |host| {
            let times = format!("{:.2}", score(host).unwrap_or(1.0));
            match host.is_outlier {
                true => Cell::Notable(times),
                false => Cell::text(times),
            }
        });
    plain(page, &columns, hosts.iter().copied())?;
    page.push_str("</div>\n");
    Ok(())
}

/// Bars scaled by the square root of the counts, so that single machines are visible.
fn histogram(of: &Distribution) -> String {
    let most = of.counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    let width = 200.0 / of.counts.len().max(1) as f64;
    let mut path = String::new();
    for (i, count) in of.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
        let height = 20.0 * (*count as f64 / most).sqrt();
        let x = width * i as f64;
        let _ = write!(path, "M{x:.1} 20v-{height:.1}h{:.1}V20z", width * 0.92);
    }
    format!(
        "<svg viewBox=\"0 0 200 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"bin\" d=\"{path}\"/></svg>"
    )
}

fn drifted(page: &mut String, fleet: &Fleet, drift: &Drift) -> Result {
    write!(
        page,
        "<section id=\"drift\">\n<h2>Against before</h2>\n<p>{}</p>\n",
        Text(&drift_summary(drift))
    )?;
    // Metrics that changed come first.
    let mut metrics: Vec<_> = drift.metrics.iter().collect();
    metrics.sort_by_key(|m| !m.changed);
    plain(page, &changes(), metrics)?;
    page.push_str("<h3>Machines that changed otherwise than the others</h3>\n");
    outlying(page, fleet, &drift.changed, false)?;
    let unread: Vec<String> = drift.unreadable.iter().map(|u| u.why.clone()).collect();
    page.push_str("</section>\n");
    frame::list(
        page,
        "unread-then",
        "Files of then that could not be read",
        "missing",
        &unread,
    )
}

fn troubles(page: &mut String, fleet: &Fleet) -> Result {
    page.push_str("<div id=\"troubles\">\n");
    let cut = |mut items: Vec<String>, n: usize| {
        if n > MOST_LISTED {
            items.push(format!("and {} more, in the document", n - MOST_LISTED));
        }
        items
    };
    let unread = fleet
        .unreadable
        .iter()
        .take(MOST_LISTED)
        .map(|u| u.why.clone())
        .collect();
    frame::list(
        page,
        "unread",
        "Files that could not be read",
        "missing",
        &cut(unread, fleet.unreadable.len()),
    )?;
    let lacking = fleet.lacking.iter().take(MOST_LISTED).map(|l| {
        let why = if l.why.is_empty() {
            String::new()
        } else {
            format!(" ({})", l.why)
        };
        format!("{}: {}{why}", l.host, l.metrics.join(", "))
    });
    frame::list(
        page,
        "lacking",
        "Machines that lack metrics",
        "missing",
        &cut(lacking.collect(), fleet.lacking.len()),
    )?;
    let versions = versions(fleet, MOST_RANKED);
    frame::list(
        page,
        "versions",
        "Versions of Undertick",
        "missing",
        &versions,
    )?;
    page.push_str("</div>\n");
    Ok(())
}

fn methods(page: &mut String, fleet: &Fleet) -> Result {
    let share = undertick_document::figures::per_cent(fleet.false_share);
    writeln!(
        page,
        "<section id=\"methods\">\n<h2>Methods</h2>\n<dl class=\"facts\">\n\
         <dt>Out of the ordinary</dt><dd>Farther from the other machines of the type than machines of this fleet \
         are: scatter and tails are found from the fleet, a machine's own interval is taken into account. Of the \
         machines found, on average at most {share} are false (Benjamini and Hochberg).</dd>\n\
         <dt>Scatter</dt><dd>By how much machines differ, by those in the middle, their own errors taken off.</dd>\n\
         <dt>Out</dt><dd>Machines out of the ordinary in this metric.</dd>\n\
         <dt>Drawings</dt><dd>From the least to the most, in logarithms where ratios are compared; the height is \
         the root of the number of machines, so that single ones are seen.</dd>\n</dl>\n</section>"
    )
}
