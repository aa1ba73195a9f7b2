//! A fleet on a terminal, beginning with the machines out of the ordinary.

use undertick_document::figures;

use super::{Distribution, Drift, Fleet, FleetMetric, HostRow, MetricDrift, OutlyingHost, Type};
use crate::remarks::number_of;
use crate::survey::{self, Scale};
use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
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
        let table = draw(
            &distributions(fleet),
            by_type(&metrics, MOST_TYPES),
            columns,
        );
        parts.push(format!("{}\n{table}", clean(survey::title(group))));
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

/// A metric, and its distribution over the machines of a type.
pub(crate) type OfType<'a> = (&'a FleetMetric, &'a Distribution);

/// The columns of the metrics' distributions.
pub(crate) fn distributions(fleet: &Fleet) -> Columns<'_, OfType<'_>> {
    let many = fleet.types.len() > 1;
    let mut columns = Columns::<OfType<'_>>::new()
        .column("what", move |(metric, of)| {
            let of_type = fleet.types.get(of.of_type).filter(|_| many);
            let name = of_type.map_or(String::new(), |t| type_name(&t.cpu_model));
            Cell::About(&metric.name, name.into())
        })
        .words();
    if many {
        columns = columns.terminal("type", |(_, of)| Cell::text((of.of_type + 1).to_string()));
    }
    let value =
        |at: usize| move |(m, of): OfType<'_>| Cell::Figure(quantity(of.quantiles[at], &m.unit));
    columns
        .column("machines", |(_, of)| Cell::text(of.hosts.to_string()))
        .column("min", value(0))
        .column("5 %", value(1))
        .column("middle", value(3))
        .column("95 %", value(5))
        .column("max", value(6))
        .column("scatter", |(metric, of)| Cell::Figure(scatter(metric, of)))
        .column("out", |(_, of)| match of.outlying {
            0 => Cell::text("0"),
            n => Cell::Notable(n.to_string()),
        })
}

/// The distributions of metrics, by at most `most` types each: where the types have few machines,
/// the table would fill the whole output.
pub(crate) fn by_type<'a>(
    metrics: &[&'a FleetMetric],
    most: usize,
) -> impl Iterator<Item = OfType<'a>> {
    (metrics.iter()).flat_map(move |&m| m.by_type.iter().take(most).map(move |of| (m, of)))
}

/// A number in a metric's unit, as text.
fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "ns" => figures::duration(value),
        "1" => figures::per_cent(value),
        "1e-6" => format!("{value:.2}\u{a0}ppm"),
        unit => format!("{value:.3}\u{a0}{}", clean(unit)),
    }
}

fn scatter(metric: &FleetMetric, of: &Distribution) -> String {
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
        text.push('\n');
        text.push_str(&draw(&changes(), changed, columns));
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

/// The columns of the changes of metrics.
pub(crate) fn changes<'a>() -> Columns<'a, &'a MetricDrift> {
    Columns::<&MetricDrift>::new()
        .column("what", |m| Cell::About(&m.name, "".into()))
        .words()
        .column("machines", |m| Cell::text(m.hosts.to_string()))
        .column("now to then", |m| {
            Cell::Figure(changed_by(m.change, m.scale, &m.unit))
        })
        .column("interval", |m| {
            Cell::Figure(bounds(m.interval, m.scale, &m.unit))
        })
        .page("verdict", |m| match (m.changed, m.scale) {
            (false, _) => Cell::text("no change seen"),
            (true, Scale::Ratio) => {
                Cell::Notable(format!("changed by {:+.1} %", (m.change - 1.0) * 100.0))
            }
            (true, Scale::Difference) => Cell::Notable("changed".to_owned()),
        })
        .words()
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
fn changed_by(change: f64, scale: Scale, unit: &str) -> String {
    match scale {
        Scale::Ratio => format!("{change:.3}"),
        Scale::Difference => format!(
            "{}{}",
            if change > 0.0 { "+" } else { "" },
            quantity(change, unit)
        ),
    }
}

fn bounds(interval: [Option<f64>; 2], scale: Scale, unit: &str) -> String {
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
