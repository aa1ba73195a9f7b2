//! The report document: as JSON, as a page, as text, as a table.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use pyo3::prelude::*;
use undertick_document::{self as document, IntervalReport, PathReport, PathStates, StateReport};
use undertick_report::{compare, html, terminal};
use undertick_units::Estimate;

use crate::streams::Batches;
use crate::{Error, InputError};

/// A report.
#[pyclass(frozen, module = "undertick._native")]
pub struct Report(document::Report);

impl Report {
    pub const fn new(document: document::Report) -> Self {
        Self(document)
    }
}

#[pymethods]
impl Report {
    /// Reads the JSON that `undertick report --json` or `undertick run --json` printed.
    #[new]
    fn from_json(text: &str) -> PyResult<Self> {
        serde_json::from_str(text)
            .map(Self)
            .map_err(|e| InputError::new_err(format!("not a report of undertick: {e}")))
    }

    /// Returns the document as JSON.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.0).map_err(|e| Error::new_err(e.to_string()))
    }

    /// Returns a self-contained page.
    fn html(&self, py: Python<'_>) -> String {
        py.detach(|| html::render(&self.0))
    }

    /// Returns the text that the terminal shows.
    fn text(&self, columns: usize) -> String {
        let options = terminal::Options {
            columns,
            ..terminal::Options::default()
        };
        terminal::render(&self.0, options)
    }

    /// Returns one row for each interval.
    fn intervals(&self) -> PyResult<Batches> {
        table(&self.0.intervals)
            .map(Batches::table)
            .map_err(|e| Error::new_err(e.to_string()))
    }

    /// Returns one row for each path of the call tree.
    fn tree(&self) -> PyResult<Batches> {
        tree(&self.0)
            .map(Batches::table)
            .map_err(|e| Error::new_err(e.to_string()))
    }

    /// Returns one row for each state of a path, or of all paths.
    #[pyo3(signature = (path))]
    fn states(&self, path: Option<&str>) -> PyResult<Batches> {
        states(&self.0, path)
            .map(Batches::table)
            .map_err(|e| Error::new_err(e.to_string()))
    }
}

/// The names of each path, from the outermost span on, with `/` between them.
fn whole_names(report: &document::Report) -> Vec<String> {
    (0..report.paths.len())
        .map(|at| report.path_name(at))
        .collect()
}

/// Returns the states of paths as columns, of one path or of all; an unknown value is null.
fn states(
    report: &document::Report,
    path: Option<&str>,
) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let whole = whole_names(report);
    let name = |of: &PathStates| whole.get(of.path as usize).map_or("", String::as_str);
    let named = path.map(|path| report.paths_named(path));
    let wanted = (report.states.iter())
        .filter(|of| (named.as_ref()).is_none_or(|named| named.contains(&(of.path as usize))));
    let rows: Vec<(&PathStates, usize, &StateReport)> = wanted
        .flat_map(|of| (of.states.iter().enumerate()).map(move |(at, state)| (of, at, state)))
        .collect();
    let strings = |of: &dyn Fn(&(&PathStates, usize, &StateReport)) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    let counts = |of: &dyn Fn(&(&PathStates, usize, &StateReport)) -> u64| -> ArrayRef {
        let values = rows
            .iter()
            .map(|row| i64::try_from(of(row)).unwrap_or(i64::MAX));
        Arc::new(Int64Array::from_iter_values(values))
    };
    let floats = |of: &dyn Fn(&StateReport) -> Option<f64>| -> ArrayRef {
        Arc::new(
            rows.iter()
                .map(|(_, _, state)| of(state))
                .collect::<Float64Array>(),
        )
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("path", strings(&|(of, ..)| name(of).to_owned())),
        ("state", counts(&|(_, at, _)| *at as u64)),
        (
            "conditions",
            strings(&|(.., state)| undertick_report::states::conditions(state)),
        ),
        ("share", floats(&|state| Some(state.share.value))),
        ("share_lo", floats(&|state| state.share.interval.lo)),
        ("share_hi", floats(&|state| state.share.interval.hi)),
        (
            "median_ns",
            floats(&|state| Some(state.median.as_ref()?.value)),
        ),
        (
            "median_lo_ns",
            floats(&|state| state.median.as_ref()?.interval.lo),
        ),
        (
            "median_hi_ns",
            floats(&|state| state.median.as_ref()?.interval.hi),
        ),
        ("looked_at", counts(&|(of, ..)| of.looked_at)),
        (
            "explained",
            Arc::new(
                rows.iter()
                    .map(|(of, ..)| Some(of.explained))
                    .collect::<Float64Array>(),
            ),
        ),
    ];
    let nullable = |name: &str| name.ends_with("_ns") || name.starts_with("share_");
    RecordBatch::try_from_iter_with_nullable(
        (columns.into_iter()).map(|(name, column)| (name, column, nullable(name))),
    )
}

/// Returns the paths of the call tree as columns; an unknown value is null.
fn tree(report: &document::Report) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let paths = &report.paths;
    let counts = |of: fn(&PathReport) -> u64| -> ArrayRef {
        let values = paths
            .iter()
            .map(|p| i64::try_from(of(p)).unwrap_or(i64::MAX));
        Arc::new(Int64Array::from_iter_values(values))
    };
    let floats = |of: fn(&PathReport) -> Option<f64>| -> ArrayRef {
        Arc::new(paths.iter().map(of).collect::<Float64Array>())
    };
    let whole = whole_names(report);
    let names = paths.iter().map(|path| path.name.as_str());
    let parents: Int64Array = paths.iter().map(|p| p.parent.map(i64::from)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("path", Arc::new(StringArray::from_iter_values(whole))),
        ("name", Arc::new(StringArray::from_iter_values(names))),
        ("parent", Arc::new(parents)),
        ("depth", counts(|p| u64::from(p.depth))),
        (
            "threads",
            Arc::new(
                paths
                    .iter()
                    .map(|p| p.threads.map(i64::from))
                    .collect::<Int64Array>(),
            ),
        ),
        ("calls", counts(|p| p.calls)),
        ("recursive_calls", counts(|p| p.recursive_calls)),
        (
            "is_switched",
            Arc::new(
                paths
                    .iter()
                    .map(|p| Some(p.is_switched))
                    .collect::<BooleanArray>(),
            ),
        ),
        ("total_ns", floats(|p| p.total.as_ref().map(|t| t.value))),
        ("total_lo_ns", floats(|p| p.total.as_ref()?.interval.lo)),
        ("total_hi_ns", floats(|p| p.total.as_ref()?.interval.hi)),
        ("self_ns", floats(|p| p.self_ns)),
        ("off_cpu_ns", floats(|p| p.off_cpu_ns)),
        ("share", floats(|p| p.share)),
        ("mean_ns", floats(PathReport::mean_ns)),
        ("median_ns", floats(|p| p.median_ns)),
        ("p99_ns", floats(|p| p.p99_ns)),
        ("max_ns", floats(|p| p.max_ns)),
    ];
    let nullable =
        |name: &str| name.ends_with("_ns") || ["parent", "threads", "share"].contains(&name);
    RecordBatch::try_from_iter_with_nullable(
        (columns.into_iter()).map(|(name, column)| (name, column, nullable(name))),
    )
}

/// A figure of an interval.
type OfInterval<'a> = &'a dyn Fn(&IntervalReport) -> Option<Estimate>;

/// Returns the intervals as columns; an unknown value is null.
fn table(intervals: &[IntervalReport]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let counts = |of: fn(&IntervalReport) -> u64| -> ArrayRef {
        let values = intervals
            .iter()
            .map(|i| i64::try_from(of(i)).unwrap_or(i64::MAX));
        Arc::new(Int64Array::from_iter_values(values))
    };
    let floats = |of: &dyn Fn(&IntervalReport) -> Option<f64>| -> ArrayRef {
        Arc::new(intervals.iter().map(of).collect::<Float64Array>())
    };
    let names = StringArray::from_iter_values(intervals.iter().map(|i| i.name.as_str()));
    let kinds = intervals.iter().map(|i| word(&i.kind));
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("name".into(), Arc::new(names)),
        (
            "kind".into(),
            Arc::new(StringArray::from_iter_values(kinds)),
        ),
        ("count".into(), counts(|i| i.count)),
        ("unmatched".into(), counts(|i| i.unmatched)),
        ("culled".into(), counts(|i| i.culled.count)),
        ("total_ns".into(), floats(&|i| i.total_ns)),
        ("min_ns".into(), floats(&|i| i.statistics.min)),
        ("max_ns".into(), floats(&|i| i.statistics.max)),
        ("sd_ns".into(), floats(&|i| i.statistics.sd)),
    ];
    let of_quantile = |key: &'static str| move |i: &IntervalReport| i.quantiles.get(key).cloned();
    let (p90, p99, p999) = (
        of_quantile("0.9"),
        of_quantile("0.99"),
        of_quantile("0.999"),
    );
    let estimates: [(&str, OfInterval<'_>); 5] = [
        ("mean", &|i| i.mean.clone()),
        ("median", &|i| i.median.clone()),
        ("p90", &p90),
        ("p99", &p99),
        ("p99_9", &p999),
    ];
    for (name, of) in estimates {
        let part = |of_estimate: fn(&Estimate) -> Option<f64>| {
            floats(&|i| of(i).and_then(|estimate| of_estimate(&estimate)))
        };
        columns.push((format!("{name}_ns"), part(|e| Some(e.value))));
        columns.push((format!("{name}_lo_ns"), part(|e| e.interval.lo)));
        columns.push((format!("{name}_hi_ns"), part(|e| e.interval.hi)));
    }
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| {
        let nullable = name.ends_with("_ns");
        (name, column, nullable)
    }))
}

/// Returns a value of an enumeration in the document, as its JSON has it.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Compares two documents, each given as its JSON and its name in errors. Returns the comparison as
/// JSON and as text.
#[pyfunction]
pub fn compare_documents(
    py: Python<'_>,
    a: (String, String),
    b: (String, String),
    level: f64,
) -> PyResult<(String, String)> {
    let found = py.detach(|| {
        let side = |(text, name): &(String, String)| -> Result<compare::Side, String> {
            let subject = compare::subject(text).map_err(|wrong| format!("{name}: {wrong}"))?;
            Ok(subject.side(name))
        };
        undertick_meter::compare::compare(side(&a)?, side(&b)?, level)
    });
    let found = found.map_err(InputError::new_err)?;
    let json = serde_json::to_string(&found).map_err(|e| Error::new_err(e.to_string()))?;
    Ok((json, compare::render(&found, 110)))
}
