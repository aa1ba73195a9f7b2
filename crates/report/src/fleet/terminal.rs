//! A fleet on a terminal, beginning with the machines out of the ordinary.

use undertick_document::figures;

use super::{Distribution, Drift, Fleet, FleetMetric, HostRow, OutlyingHost, Type};
use crate::remarks::number_of;
use crate::survey::{self, Scale};
use crate::table::terminal::{new_table, text_of};
use crate::text::{clean, shorten, wrap};

/// Minimum number of columns that the tables fit in.
const FEWEST_COLUMNS: usize = 60;
/// Maximum number of machines, files or metrics that are listed; the document has all.
const MOST: usize = 20;
/// Number of the slowest and of the noisiest machines that are listed.
const MOST_RANKED: usize = 5;
/// Maximum number of reasons given for a machine.
const MOST_REASONS: usize = 4;
/// Maximum number of types with a separate row in each metric.
const MOST_TYPES: usize = 3;
/// Width of a name, columns.
const NAME_COLUMNS: usize = 36;

/// The fleet as text in at most `columns` columns. Ends with a line break.
#[must_use]
pub fn render(fleet: &Fleet, columns: usize) -> String {
    let columns = columns.max(FEWEST_COLUMNS);
    let mut parts = vec![
        wrap(&summary(fleet), columns, 2),
        wrap(&types(fleet), columns, 2),
    ];
    if !fleet.outliers.is_empty() {
        parts.push(outlying("Out of the ordinary", &fleet.outliers, columns));
    }
    parts.extend(ranked(
        "Slowest",
        &fleet.slowest(MOST_RANKED),
        |h| h.slowness,
        "times slower",
    ));
    parts.extend(ranked(
        "Noisiest",
        &fleet.noisiest(MOST_RANKED),
        |h| h.noise,
        "times wider intervals",
    ));
    for (group, metrics) in groups(fleet) {
        parts.push(distributions(fleet, group, &metrics, columns));
    }
    parts.extend(fleet.drift.as_ref().map(|drift| drifted(drift, columns)));
    parts.extend(troubles(fleet, columns));
    parts.join("\n\n").replace('\u{a0}', " ") + "\n"
}

/// The summary, which is the first thing to read.
pub(crate) fn summary(fleet: &Fleet) -> String {
    let hosts = number_of(fleet.hosts.len() as u64, "machine");
    let compared = fleet.types.iter().any(|t| t.compared);
    let found = match (fleet.outliers.len() as u64, compared) {
        (_, false) => "too few of any type to say who is out of the ordinary".to_owned(),
        (0, _) => "none is out of the ordinary".to_owned(),
        (n, _) => format!("{} out of the ordinary", is_or_are(n)),
    };
    let unread = match fleet.unreadable.len() as u64 {
        0 => String::new(),
        n => format!("; {} could not be read", number_of(n, "file")),
    };
    format!(
        "Fleet {}: {hosts}; {found} (false discoveries controlled: on average at most {} of the machines \
         found are not){unread}.",
        clean(&fleet.directory),
        figures::per_cent(fleet.false_share),
    )
}

fn is_or_are(n: u64) -> String {
    match n {
        1 => "1 is".to_owned(),
        n => format!("{n} are"),
    }
}

/// The types of machines and which of them were compared.
pub(crate) fn types(fleet: &Fleet) -> String {
    let (compared, rest): (Vec<_>, Vec<_>) = fleet.types.iter().partition(|t| t.compared);
    let number = |of: &Type| fleet.types.iter().position(|t| t == of).unwrap_or(0) + 1;
    let listed = compared.iter().take(MOST).map(|t| {
        let name = type_name(&t.cpu_model);
        format!("{}: {name} ({})", number(t), number_of(t.hosts, "machine"))
    });
    let listed: Vec<String> = listed.collect();
    let mut text = match listed.is_empty() {
        true => String::new(),
        false => format!(
            "Machines are compared within their type: {}.",
            listed.join(", ")
        ),
    };
    if !rest.is_empty() {
        let hosts: u64 = rest.iter().map(|t| t.hosts).sum();
        text.push_str(&format!(
            " {} of {} with fewer than 10 machines each: shown, not compared.",
            number_of(hosts, "machine"),
            number_of(rest.len() as u64, "type"),
        ));
    }
    text.trim().to_owned()
}

pub(crate) fn type_name(cpu_model: &str) -> String {
    match cpu_model.trim().is_empty() {
        true => "CPU model not known".to_owned(),
        false => clean(cpu_model),
    }
}

fn outlying(title: &str, hosts: &[OutlyingHost], columns: usize) -> String {
    let mut lines = vec![title.to_owned()];
    for host in hosts.iter().take(MOST) {
        let mut reasons: Vec<&str> = (host.reasons.iter().take(MOST_REASONS))
            .map(|r| r.words.as_str())
            .collect();
        let more = match host.reasons.len().saturating_sub(MOST_REASONS) {
            0 => String::new(),
            n => format!("and {n} more"),
        };
        reasons.extend((!more.is_empty()).then_some(more.as_str()));
        let line = format!(
            "  {}: {} (p {:.0e})",
            shorten(&clean(&host.host), NAME_COLUMNS),
            clean(&reasons.join("; ")),
            host.adjusted_p
        );
        lines.push(wrap(&line, columns, 4));
    }
    lines.extend(left_out(hosts.len()));
    lines.join("\n")
}

fn left_out(n: usize) -> Option<String> {
    let n = n.saturating_sub(MOST);
    (n > 0).then(|| format!("  and {n} more: --json has all"))
}

fn ranked(
    title: &str,
    hosts: &[&HostRow],
    score: fn(&HostRow) -> Option<f64>,
    what: &str,
) -> Option<String> {
    let each: Vec<String> = (hosts.iter())
        .filter_map(|host| {
            let name = shorten(&clean(&host.host), NAME_COLUMNS);
            Some(format!("  {name}: {:.2} {what}", score(host)?))
        })
        .collect();
    (!each.is_empty()).then(|| {
        format!(
            "{title} (over all metrics, of their type)\n{}",
            each.join("\n")
        )
    })
}

/// The metrics by group, in order of occurrence.
pub(crate) fn groups(fleet: &Fleet) -> Vec<(&str, Vec<&FleetMetric>)> {
    let mut groups: Vec<(&str, Vec<&FleetMetric>)> = Vec::new();
    for metric in &fleet.metrics {
        match groups.iter_mut().find(|(group, _)| *group == metric.group) {
            Some((_, metrics)) => metrics.push(metric),
            None => groups.push((&metric.group, vec![metric])),
        }
    }
    groups
}

fn distributions(fleet: &Fleet, group: &str, metrics: &[&FleetMetric], columns: usize) -> String {
    let many = fleet.types.len() > 1;
    let mut header = vec!["what"];
    header.extend(many.then_some("type"));
    header.extend([
        "machines", "least", "5 %", "middle", "95 %", "most", "scatter", "out",
    ]);
    let mut table = new_table(columns);
    table.set_header(header);
    for metric in metrics {
        // If the types have few machines each, the table would fill the whole output.
        for of in metric.by_type.iter().take(MOST_TYPES) {
            let q = |i: usize| quantity(of.quantiles[i], &metric.unit);
            let mut row = vec![clean(&metric.name)];
            row.extend(many.then(|| (of.of_type + 1).to_string()));
            row.extend([of.hosts.to_string(), q(0), q(1), q(3), q(5), q(6)]);
            row.extend([scatter(metric, of), of.outlying.to_string()]);
            table.add_row(row);
        }
    }
    format!("{}\n{}", clean(survey::title(group)), text_of(table, 1))
}

/// A number in a metric's unit, as text.
pub(crate) fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "ns" => figures::duration(value),
        "1" => figures::per_cent(value),
        "1e-6" => format!("{value:.2}\u{a0}ppm"),
        unit => format!("{value:.3}\u{a0}{}", clean(unit)),
    }
}

pub(crate) fn scatter(metric: &FleetMetric, of: &Distribution) -> String {
    match (of.scatter, metric.scale) {
        (None, _) => String::new(),
        (Some(share), Scale::Ratio) => figures::per_cent(share),
        (Some(scatter), Scale::Difference) => quantity(scatter, &metric.unit),
    }
}

fn drifted(drift: &Drift, columns: usize) -> String {
    let changed: Vec<_> = drift.metrics.iter().filter(|m| m.changed).collect();
    let mut text = wrap(&drift_summary(drift), columns, 2);
    if !changed.is_empty() {
        let mut table = new_table(columns);
        table.set_header(["what", "machines", "now to then", "interval"]);
        for metric in changed {
            table.add_row([
                clean(&metric.name),
                metric.hosts.to_string(),
                changed_by(metric.change, metric.scale, &metric.unit),
                bounds(metric.interval, metric.scale, &metric.unit),
            ]);
        }
        text.push('\n');
        text.push_str(&text_of(table, 1));
    }
    if !drift.changed.is_empty() {
        text.push_str("\n\n");
        text.push_str(&outlying(
            "Changed otherwise than the others",
            &drift.changed,
            columns,
        ));
    }
    text
}

/// How the fleet changed, in words.
pub(crate) fn drift_summary(drift: &Drift) -> String {
    let changed = drift.metrics.iter().filter(|m| m.changed).count();
    format!(
        "Against {}: {} in both ({} only now, {} only then); the fleet has changed in {changed} of {}; {} \
         changed otherwise than the others.",
        clean(&drift.directory),
        number_of(drift.hosts, "machine"),
        drift.only_now,
        drift.only_then,
        number_of(drift.metrics.len() as u64, "metric"),
        number_of(drift.changed.len() as u64, "machine"),
    )
}

/// A change as text: a ratio or a difference.
pub(crate) fn changed_by(change: f64, scale: Scale, unit: &str) -> String {
    match scale {
        Scale::Ratio => format!("{change:.3}"),
        Scale::Difference => format!(
            "{}{}",
            if change > 0.0 { "+" } else { "" },
            quantity(change, unit)
        ),
    }
}

pub(crate) fn bounds(interval: [Option<f64>; 2], scale: Scale, unit: &str) -> String {
    let [lo, hi] = interval.map(|b| b.map_or("?".to_owned(), |b| changed_by(b, scale, unit)));
    format!("[{lo}, {hi}]")
}

/// Versions of Undertick, if there are several, and the machines that have the rarer ones.
pub(crate) fn versions(fleet: &Fleet, at_most: usize) -> Vec<String> {
    let each = (fleet.versions.iter().take(at_most)).map(|(version, n)| {
        let mut names: Vec<String> = fleet.of_version(version).take(at_most).map(clean).collect();
        if !names.is_empty() && (names.len() as u64) < *n {
            names.push("...".to_owned());
        }
        let names = match names.is_empty() {
            true => String::new(),
            false => format!(": {}", names.join(", ")),
        };
        format!(
            "Undertick {} on {}{names}",
            clean(version),
            number_of(*n, "machine")
        )
    });
    match fleet.versions.len() {
        0 | 1 => Vec::new(),
        _ => each.collect(),
    }
}

fn troubles(fleet: &Fleet, columns: usize) -> Option<String> {
    let line = |text: String| wrap(&text, columns, 2);
    let mut lines: Vec<String> = Vec::new();
    for file in fleet.unreadable.iter().take(MOST) {
        lines.push(line(format!("not read: {}", clean(&file.why))));
    }
    lines.extend(left_out(fleet.unreadable.len()));
    for lacking in fleet.lacking.iter().take(MOST) {
        let why = match lacking.why.is_empty() {
            true => String::new(),
            false => format!(" ({})", clean(&lacking.why)),
        };
        lines.push(line(format!(
            "lacks: {}: {}{why}",
            shorten(&clean(&lacking.host), NAME_COLUMNS),
            clean(&lacking.metrics.join(", "))
        )));
    }
    lines.extend(left_out(fleet.lacking.len()));
    lines.extend(versions(fleet, MOST).into_iter().map(line));
    for warning in &fleet.warnings {
        lines.push(line(format!("warning: {}", clean(&warning.text))));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}
