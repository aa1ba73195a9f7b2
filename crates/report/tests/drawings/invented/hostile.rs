//! Reports with hostile text, impossible bounds and huge ranges.

use undertick_document::{Histogram, IntervalReport, Report, Warning};
use undertick_units::Interval;

use super::{empty_interval, estimate, interval, report};

/// Names that a hostile or careless program may give.
pub const NASTY_NAMES: [&str; 12] = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\" onmouseover=\"alert(3)",
    "' onfocus='alert(4)' autofocus='",
    "<!-- <script>",
    "]]>&lt;b&gt;&amp;",
    "\x1b[31mred\x1b[0m\x07\r\n\tbell",
    "测定测定测定测定测定测定测定测定测定测定测定测定测定测定测定测定测定测定测定测定",
    "a\u{202e}gnitnirp\u{202c}\u{200b}",
    "a_name_that_goes_on_and_on::through::many::modules::until::nobody::reads::it::any::more::<impl core::ops::Fn()>",
    "",
    "{{style}} {{data}} $& \\u003c \u{2028}",
];

/// Hostile names, missing bounds, huge ranges, zero counts, negative values.
pub fn nasty() -> Report {
    let sizes = [0.4, 7.0, 310.0, 5.2e4, 7.7e6, 3.1e9, 8.6e13];
    let mut intervals: Vec<IntervalReport> = NASTY_NAMES
        .iter()
        .enumerate()
        .map(|(i, name)| interval(name, sizes[i % sizes.len()], 10_u64.pow(i as u32 + 2)))
        .collect();
    intervals[0].mean.as_mut().unwrap().interval.hi = None;
    intervals[1].median.as_mut().unwrap().interval = Interval { lo: None, hi: None };
    intervals[2].mean = Some(estimate(-4.2, Some(-31.0), Some(22.0), "batch means", 12));
    intervals[2].statistics.min = Some(-57.0);
    intervals[2].histogram = Histogram {
        unit: "ns".to_owned(),
        edges: vec![-65.0, -55.0, -45.0, -35.0, -25.0, -15.0, -5.0, 5.0, 15.0],
        counts: vec![1, 0, 4, 900, 12_000, 8_000, 3_000, 5],
    };
    intervals[3].mean = Some(estimate(1e3, Some(-9e12), Some(9e14), "batch means", 2));
    intervals[4].count = u64::MAX;
    intervals[5] = empty_interval(NASTY_NAMES[5]);
    let mut report = report(intervals);
    report.trace.command = NASTY_NAMES.iter().map(|n| (*n).to_owned()).collect();
    report.trace.host.name = NASTY_NAMES[0].to_owned();
    report.trace.host.cpu_model = NASTY_NAMES[7].to_owned();
    report.trace.clock.name = NASTY_NAMES[1].to_owned();
    report.trace.duration_ns = None;
    report.settings.table = Some(NASTY_NAMES[2].to_owned());
    for name in NASTY_NAMES {
        report.warnings.push(Warning {
            code: name.to_owned(),
            text: format!("{name} {name}"),
        });
        report.intervals[0].notes.push(name.to_owned());
        report.trace.lost_by.insert(name.to_owned(), 5);
        report.intervals[0].culled.by.insert(name.to_owned(), 7);
        report.intervals[0].mean.as_mut().unwrap().method = name.to_owned();
    }
    report
}

/// The report with hostile text in every place: names, methods, units, causes, the keys of its
/// maps. Only what the document's types fix remains.
pub fn hostile_throughout(report: &Report) -> Report {
    fn poison(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => *text = POISON.to_owned(),
            serde_json::Value::Array(values) => values.iter_mut().for_each(poison),
            serde_json::Value::Object(fields) => {
                for (_, field) in fields.iter_mut().filter(|(key, _)| {
                    !["kind", "reads", "scope", "fact", "state"].contains(&key.as_str())
                }) {
                    poison(field);
                }
                for map in ["by", "lost_by"] {
                    if let Some(serde_json::Value::Object(entries)) = fields.get_mut(map) {
                        entries.insert(POISON.to_owned(), 3.into());
                    }
                }
                if let Some(serde_json::Value::Object(quantiles)) = fields.get_mut("quantiles") {
                    let p99 = quantiles.get("0.99").cloned();
                    quantiles.extend(p99.map(|p99| (POISON.to_owned(), p99)));
                }
            }
            _ => {}
        }
    }
    let mut json = serde_json::to_value(report).unwrap();
    poison(&mut json);
    serde_json::from_value(json).unwrap()
}

/// Ends a script, begins an element, leaves an attribute, controls a terminal.
pub const POISON: &str = "</script><poison onload='alert(1)' a=\"\x1b[2J\u{202e}";
