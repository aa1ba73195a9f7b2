//! Which documents can be compared, and how they are distinguished from other files.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;
use undertick_document::{IntervalReport, Report, without_impossible};
use undertick_units::Estimate;

use super::Source;
use super::tree::{self, PathFigure};
use crate::benchmarks::{self, Benchmarks};
use crate::survey::{self, Host, Metric, Survey};
use crate::text::clean;

/// Number of clock steps below which a median says little ([`IntervalReport::median_steps`]).
const FEWEST_STEPS: f64 = 20.0;

/// A document with figures that can be compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// The document that `undertick survey --json` prints.
    Survey(Box<Survey>),
    /// The document that `undertick primitives`, `run` and `report` print with `--json`.
    Report(Box<Report>),
    /// The documents that `undertick compare --bench -o DIR` keeps.
    Benchmarks(Box<Benchmarks>),
}

/// One side of a comparison: its figures, each with a stable name.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// The document.
    pub about: Source,
    /// Its figures; every id occurs once.
    pub metrics: Vec<Metric>,
    /// Its call tree.
    pub paths: Vec<PathFigure>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// Whether it comes from one process, so that its confidence intervals exclude the differences
    /// between processes.
    pub is_one_run: bool,
}

/// Why a text cannot be compared: where it is wrong, and the mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotComparable {
    /// Line and column, or the field; may be empty.
    pub place: String,
    /// What is wrong.
    pub why: String,
    /// What to do.
    pub mend: String,
}

impl NotComparable {
    fn new(place: impl Into<String>, why: impl Into<String>, mend: impl Into<String>) -> Self {
        let (place, why, mend) = (place.into(), why.into(), mend.into());
        Self { place, why, mend }
    }
}

impl fmt::Display for NotComparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        write!(f, "{}; {}", self.why, self.mend)
    }
}

impl core::error::Error for NotComparable {}

const AGAIN: &str = "make it again with `undertick survey --json`";

/// Parses a document of any comparable kind from its text.
///
/// # Errors
/// The text is no document, a document of a kind that cannot be compared, or a broken one.
pub fn subject(text: &str) -> Result<Subject, NotComparable> {
    if text.trim().is_empty() {
        return Err(NotComparable::new("", "the file is empty", AGAIN));
    }
    let value: Value = serde_json::from_str(text).map_err(|e| not_json(text, &e))?;
    let Value::Object(fields) = &value else {
        let why = "the JSON is not an object, so it is no document of undertick";
        return Err(NotComparable::new("", why, AGAIN));
    };
    let has = |key: &str| fields.contains_key(key);
    let kind = fields.get("kind").and_then(Value::as_str);
    if kind == Some(survey::KIND) || (kind.is_none() && has("host") && has("metrics")) {
        version(&value, survey::SCHEMA_VERSION, "survey")?;
        let survey: Survey = serde_json::from_value(value)
            .map_err(|e| NotComparable::new("", format!("a survey, but broken: {e}"), AGAIN))?;
        survey
            .check()
            .map_err(|why| NotComparable::new("", format!("a survey, but broken: {why}"), AGAIN))?;
        return Ok(Subject::Survey(Box::new(survey)));
    }
    if kind == Some(benchmarks::KIND) {
        version(&value, benchmarks::SCHEMA_VERSION, "document of benchmarks")?;
        let found = serde_json::from_value(value).map_err(|e| {
            let mend = "make it again with `undertick compare --bench`";
            NotComparable::new(
                "",
                format!("a document of benchmarks, but broken: {e}"),
                mend,
            )
        })?;
        return Ok(Subject::Benchmarks(Box::new(found)));
    }
    if kind.is_none() && has("trace") && has("intervals") {
        version(&value, undertick_document::SCHEMA_VERSION, "report")?;
        let report = serde_json::from_value(value).map_err(|e| {
            let mend =
                "make it again with `undertick primitives --json` or `undertick report --json`";
            NotComparable::new("", format!("a report, but broken: {e}"), mend)
        })?;
        return Ok(Subject::Report(Box::new(without_impossible(report))));
    }
    Err(other_kind(kind, &has))
}

/// The error for text that is not JSON: perhaps truncated, or the terminal's output.
fn not_json(text: &str, error: &serde_json::Error) -> NotComparable {
    let place = format!("line {}, column {}", error.line(), error.column());
    let (why, mend) = match error.is_eof() {
        true => (
            "the JSON ends in the middle: the file was torn or is still being written",
            AGAIN,
        ),
        false if !text.trim_start().starts_with(['{', '[']) => (
            "no JSON",
            "give the file that `undertick survey --json` or `undertick primitives --json` printed",
        ),
        false => ("broken JSON", AGAIN),
    };
    NotComparable::new(place, format!("{why} ({error})"), mend)
}

fn version(value: &Value, known: u32, what: &str) -> Result<(), NotComparable> {
    match &value["schema_version"] {
        Value::Number(n) if n.as_u64() == Some(u64::from(known)) => Ok(()),
        other => Err(NotComparable::new(
            "schema_version",
            format!(
                "a {what} of version {}, and this undertick reads version {known}",
                clean(&other.to_string())
            ),
            format!(
                "make the {what} again with this undertick, or read it with the one that made it"
            ),
        )),
    }
}

/// The error for Undertick's documents that have no figures to compare by name.
fn other_kind(kind: Option<&str>, has: &dyn Fn(&str) -> bool) -> NotComparable {
    let what = match kind {
        Some(kind) => format!("a document of the kind {:?}", clean(kind)),
        None if has("clocks") => "an audit of clocks".to_owned(),
        None if has("peaks") => "a run of the interference meter".to_owned(),
        None if has("methods") => "a calibration".to_owned(),
        None if has("items") => "a reproduction".to_owned(),
        None => "JSON of a kind that is not known".to_owned(),
    };
    NotComparable::new(
        "",
        format!("this is {what}, which cannot be compared"),
        "there can be: two of `undertick survey --json`, two of `undertick primitives --json`, two of `undertick report --json`, two traces, two directories of traces",
    )
}

impl Subject {
    /// Its kind, in one word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Survey(_) => "survey",
            Self::Report(_) => "report",
            Self::Benchmarks(_) => benchmarks::KIND,
        }
    }

    /// Its figures, as one side of a comparison; `file` is where it was read from.
    #[must_use]
    pub fn side(self, file: &str) -> Side {
        match self {
            Self::Survey(survey) => Side {
                about: Source {
                    file: file.to_owned(),
                    kind: "survey".to_owned(),
                    host: survey.host,
                    begun_unix_s: survey.begun_unix_s,
                    runs: None,
                },
                metrics: survey.metrics,
                paths: Vec::new(),
                interrupted: survey.interrupted,
                is_one_run: false,
            },
            Self::Report(report) => of_report(*report, file),
            Self::Benchmarks(found) => found.side(file),
        }
    }
}

fn of_report(report: Report, file: &str) -> Side {
    let trace = &report.trace;
    let host = Host {
        name: trace.host.name.clone(),
        cpus: trace.host.cpus,
        cpu_model: trace.host.cpu_model.clone(),
        arch: trace.host.arch.clone(),
        kernel: trace.host.kernel.clone(),
        clock: trace.clock.name.clone(),
        ..Host::default()
    };
    let intervals = report.intervals.iter().filter_map(of_interval);
    let lines = report.lines.iter().map(|line| {
        let with = values(&line.parameters);
        Metric::new(
            words(&[&line.script, &line.name, &with, "slope"]),
            &line.script,
            words(&[&line.name, &with]),
            line.slope.clone(),
            &line.includes,
        )
    });
    let mut metrics: Vec<Metric> = intervals.chain(lines).collect();
    number_the_same(&mut metrics);
    Side {
        about: Source {
            file: file.to_owned(),
            kind: "report".to_owned(),
            host,
            begun_unix_s: trace.started_unix_ns as f64 / 1e9,
            runs: None,
        },
        metrics,
        paths: tree::paths(&report),
        interrupted: false,
        is_one_run: report.intervals.iter().all(|i| i.repeated.is_none()),
    }
}

/// The figure of an interval to quote. Zero checks, and steps without a text on what they include,
/// are not compared where an experiment has others.
fn of_interval(interval: &IntervalReport) -> Option<Metric> {
    let (group, name, id, estimate, includes) = match &interval.repeated {
        Some(repeated) if interval.name.starts_with('(') && repeated.includes.is_empty() => {
            return None;
        }
        Some(repeated) => {
            let with = values(&repeated.parameters);
            (
                repeated.script.clone(),
                words(&[&repeated.process, &interval.name, &with]),
                words(&[&repeated.script, &repeated.process, &interval.name, &with]),
                repeated.typical.clone(),
                repeated.includes.clone(),
            )
        }
        None => (
            "intervals".to_owned(),
            interval.name.clone(),
            interval.name.clone(),
            to_quote(interval)?,
            String::new(),
        ),
    };
    Some(Metric::new(id, group, name, estimate, includes))
}

/// The median, or only the mean where the median is known to a step of the clock.
pub(super) fn to_quote(interval: &IntervalReport) -> Option<Estimate> {
    let is_coarse = (interval.median_steps).is_some_and(|steps| steps.abs() < FEWEST_STEPS);
    let (first, second) = match is_coarse {
        true => (&interval.mean, &interval.median),
        false => (&interval.median, &interval.mean),
    };
    first.clone().or_else(|| second.clone())
}

/// Parameters and their values on one line.
fn values(parameters: &std::collections::BTreeMap<String, String>) -> String {
    let each: Vec<String> = (parameters.iter())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    each.join(" ")
}

fn words(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|p| !p.is_empty()).collect();
    parts.join(" ")
}

/// Numbers metrics of equal names: their order distinguishes them.
fn number_the_same(metrics: &mut [Metric]) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for metric in metrics {
        let count = seen.entry(metric.id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            metric.id = format!("{} #{count}", metric.id);
            metric.name = format!("{} #{count}", metric.name);
        }
    }
}
